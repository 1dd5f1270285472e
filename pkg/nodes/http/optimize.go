package http

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/tidwall/gjson"

	"github.com/reprise-engine/reprise/pkg/nodes/jsonobject"
	"github.com/reprise-engine/reprise/pkg/nodes/text"
)

// optimization makes an answer shorter for the model that asked for it.
type optimization struct {
	kind string // json, html or text

	field   string   // of a JSON answer: where its data are, "" for the whole
	include string   // all, selected or except
	fields  []string // paths with dots

	selector  string // of an HTML answer
	onlyShown bool
	omit      []string

	maxLength int // in characters; 0 is no limit
}

// defaultMaxLength is in characters.
const defaultMaxLength = 1000

// readOptimization reads how a tool's answer is made shorter; nil when it is not.
func (p *parameters) readOptimization() *optimization {
	if !p.flag("optimizeResponse", false) {
		return nil
	}
	o := &optimization{kind: p.text("responseType", "json")}
	switch o.kind {
	case "json":
		o.field = p.text("dataField", "")
		o.include = p.text("fieldsToInclude", "all")
		o.fields = listed(p.text("fields", ""))
	case "html":
		o.selector = p.text("cssSelector", "body")
		if o.onlyShown = p.flag("onlyContent", false); o.onlyShown {
			o.omit = listed(p.text("elementsToOmit", ""))
		}
	case "text":
	default:
		if p.err == nil {
			p.err = operationError(fmt.Sprintf("expected response type %q is not supported; use json, html or text", o.kind))
		}
	}
	if o.kind != "json" && p.flag("truncateResponse", false) {
		o.maxLength = max(int(p.number("maxLength", defaultMaxLength)), 0)
	}
	return o
}

func listed(list string) []string {
	var out []string
	for one := range strings.SplitSeq(list, ",") {
		if one = strings.TrimSpace(one); one != "" {
			out = append(out, one)
		}
	}
	return out
}

// shorten returns the kind and the JSON of what is left of an answer.
func (o *optimization) shorten(resp *response) (kind, body string, err error) {
	if o.kind == "json" {
		body, err = resp.value("json", options{format: "json"})
		if err != nil {
			return "", "", operationError("The response is not JSON; change the expected response type of the tool")
		}
		body, err = o.data(body)
		return "json", body, err
	}
	answer := resp.decoded()
	switch {
	case o.kind == "html":
		parts, err := text.Parts(answer, o.selector, o.onlyShown, o.omit)
		if err != nil {
			return "", "", operationError(err.Error())
		}
		answer = strings.Join(parts, "\n")
	case strings.HasSuffix(resp.mediaType(), "html"): // a page's text is what it shows
		parts, err := text.Parts(answer, "body", true, nil)
		if err != nil {
			return "", "", operationError(err.Error())
		}
		answer = strings.Join(parts, "\n")
	}
	return "text", jsonobject.Quote(cut(answer, o.maxLength)), nil
}

// cut keeps the first characters of a text.
func cut(text string, most int) string {
	if most <= 0 || utf8.RuneCountInString(text) <= most {
		return text
	}
	for i := range text {
		if most--; most < 0 {
			return text[:i]
		}
	}
	return text
}

// data are the wanted fields of a JSON answer.
func (o *optimization) data(body string) (string, error) {
	if o.field != "" {
		value := at(gjson.Parse(body), strings.Split(o.field, "."))
		if !value.Exists() {
			return "", operationError(fmt.Sprintf("The field %q that should hold the data is not in the response; it has %s", o.field, fieldsOf(body)))
		}
		body = value.Raw
	}
	if o.include != "selected" && o.include != "except" {
		return body, nil
	}
	value := gjson.Parse(body)
	if !value.IsArray() {
		return o.pick(value), nil
	}
	elements := []string{}
	value.ForEach(func(_, element gjson.Result) bool {
		elements = append(elements, o.pick(element))
		return true
	})
	return "[" + strings.Join(elements, ",") + "]", nil
}

func (o *optimization) pick(value gjson.Result) string {
	if !value.IsObject() {
		return value.Raw
	}
	paths := make([][]string, len(o.fields))
	for i, field := range o.fields {
		paths[i] = strings.Split(field, ".")
	}
	if o.include == "except" {
		return without(value, paths)
	}
	return only(value, paths)
}

// only is an object of the members at some paths, in their order in the answer.
func only(value gjson.Result, paths [][]string) string {
	var o jsonobject.Object
	value.ForEach(func(key, member gjson.Result) bool {
		deeper, whole := below(paths, key.String())
		switch {
		case whole:
			o.Set(key.String(), member.Raw)
		case len(deeper) > 0 && member.IsObject():
			if inner := only(member, deeper); inner != "{}" {
				o.Set(key.String(), inner)
			}
		}
		return true
	})
	return o.String()
}

// without is an object less the members at some paths.
func without(value gjson.Result, paths [][]string) string {
	var o jsonobject.Object
	value.ForEach(func(key, member gjson.Result) bool {
		deeper, whole := below(paths, key.String())
		switch {
		case whole:
		case len(deeper) > 0 && member.IsObject():
			o.Set(key.String(), without(member, deeper))
		default:
			o.Set(key.String(), member.Raw)
		}
		return true
	})
	return o.String()
}

// below are the rests of the paths that begin with a key; whole when one ends there.
func below(paths [][]string, key string) (rest [][]string, whole bool) {
	for _, path := range paths {
		if path[0] != key {
			continue
		}
		if len(path) == 1 {
			return nil, true
		}
		rest = append(rest, path[1:])
	}
	return rest, false
}

// at follows a path of keys and indices, which are not gjson's: a key may have its characters.
func at(value gjson.Result, path []string) gjson.Result {
	for _, step := range path {
		found, index := gjson.Result{}, 0
		list := value.IsArray()
		value.ForEach(func(key, member gjson.Result) bool {
			if !list && key.String() == step || list && fmt.Sprint(index) == step {
				found = member
			}
			index++
			return !found.Exists()
		})
		value = found
	}
	return value
}

func fieldsOf(body string) string {
	value := gjson.Parse(body)
	if !value.IsObject() {
		return "no fields"
	}
	var names []string
	value.ForEach(func(key, _ gjson.Result) bool {
		names = append(names, jsonobject.Quote(key.String()))
		return true
	})
	return strings.Join(names, ", ")
}
