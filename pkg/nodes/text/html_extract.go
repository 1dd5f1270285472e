package text

import (
	"context"
	"fmt"
	"regexp"
	"strings"

	"github.com/PuerkitoBio/goquery"
	"github.com/tidwall/gjson"

	"github.com/reprise-engine/reprise/pkg/node"
	"github.com/reprise-engine/reprise/pkg/nodes/jsonobject"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// HTMLExtract is the extraction of HTML as a node of its own, which n8n had before.
func HTMLExtract() *node.Type {
	return &node.Type{
		Spec: workflow.Spec{Type: base + "htmlExtract", Versions: []float64{1}},
		Execute: func(ctx context.Context, call *node.Call) (*node.Result, error) {
			return call.ByItem(ctx, func(i int) (workflow.Items, error) { return extract(ctx, call, i, false) })
		},
	}
}

// extraction is one value that is wanted.
type extraction struct {
	key, selector, kind, attribute string

	list bool
	// skip are the selectors of what text leaves out.
	skip []string
}

// extractions is all that is wanted of a page.
type extractions struct {
	values        []extraction
	trim, cleanUp bool
	// layout: text keeps the lines that the page has when it is shown.
	layout bool
}

// extract takes an item's page apart; each text of a list of them gives an item.
func extract(ctx context.Context, call *node.Call, i int, layout bool) (workflow.Items, error) {
	pages, err := pagesOf(ctx, call, i)
	if err != nil {
		return nil, err
	}
	wanted, err := wantedOf(ctx, call, i)
	if err != nil {
		return nil, err
	}
	wanted.layout = layout
	var items workflow.Items
	for _, page := range pages {
		document, err := goquery.NewDocumentFromReader(strings.NewReader(page))
		if err != nil {
			return nil, node.OperationError(i, "The HTML cannot be read", err.Error())
		}
		var object jsonobject.Object
		for _, value := range wanted.values {
			found, err := find(document.Selection, value.selector)
			if err != nil {
				return nil, node.OperationError(i, fmt.Sprintf("The CSS selector %q is not valid", value.selector), err.Error())
			}
			if err := wanted.check(value.skip); err != nil {
				return nil, node.OperationError(i, "The selectors to skip are not valid", err.Error())
			}
			object.Set(value.key, wanted.read(value, found))
		}
		items = append(items, workflow.Item{JSON: object.JSON()})
	}
	return items, nil
}

// pagesOf reads the HTML of an item: a field, or a file.
func pagesOf(ctx context.Context, call *node.Call, i int) ([]string, error) {
	source, err := call.String(ctx, i, "sourceData", "json")
	if err != nil {
		return nil, err
	}
	name, err := call.String(ctx, i, "dataPropertyName", "data")
	if err != nil {
		return nil, err
	}
	switch source {
	case "binary":
		page, err := fileText(ctx, call, i, name)
		return []string{page}, err
	case "json":
	default:
		return nil, node.Unknown(i, "sourceData", source, "json", "binary")
	}
	raw := jsonobject.Parse(call.Input(0)[i].JSON).GetPath(name)
	if raw == "" {
		return nil, node.OperationError(i, fmt.Sprintf("No property named %q exists!", name), "")
	}
	value := gjson.Parse(raw)
	if !value.IsArray() {
		return []string{asText(value)}, nil
	}
	var pages []string
	for _, element := range value.Array() {
		pages = append(pages, asText(element))
	}
	return pages, nil
}

func wantedOf(ctx context.Context, call *node.Call, i int) (*extractions, error) {
	raw, err := call.Param(ctx, i, "extractionValues.values")
	if err != nil {
		return nil, err
	}
	wanted := &extractions{}
	if wanted.trim, err = call.Bool(ctx, i, "options.trimValues", false); err != nil {
		return nil, err
	}
	if wanted.cleanUp, err = call.Bool(ctx, i, "options.cleanUpText", false); err != nil {
		return nil, err
	}
	for n, value := range gjson.ParseBytes(raw).Array() {
		v := extraction{
			key: value.Get("key").String(), selector: value.Get("cssSelector").String(), kind: value.Get("returnValue").String(),
			attribute: value.Get("attribute").String(), list: value.Get("returnArray").Bool(),
		}
		for _, selector := range strings.Split(value.Get("skipSelectors").String(), ",") {
			if selector = strings.TrimSpace(selector); selector != "" {
				v.skip = append(v.skip, selector)
			}
		}
		path := fmt.Sprintf("extractionValues.values.%d", n)
		switch v.kind {
		case "":
			v.kind = "text"
		case "attribute", "html", "text", "value":
		default:
			return nil, node.Unknown(i, path+".returnValue", v.kind, "attribute", "html", "text", "value")
		}
		if strings.TrimSpace(v.selector) == "" {
			return nil, node.OperationError(i, fmt.Sprintf("The value %q has no CSS selector", v.key), "parameter "+path+".cssSelector")
		}
		wanted.values = append(wanted.values, v)
	}
	return wanted, nil
}

func (w *extractions) check(selectors []string) error {
	for _, selector := range selectors {
		if _, err := find(&goquery.Selection{}, selector); err != nil {
			return fmt.Errorf("%q: %w", selector, err)
		}
	}
	return nil
}

// read is the JSON of a value; "" when there is none.
func (w *extractions) read(value extraction, found *goquery.Selection) string {
	if !value.list {
		// Text is that of all that was found; the rest is taken from the first.
		text, ok := w.valueOf(value, found)
		switch {
		case !ok && value.kind == "html":
			return "null"
		case !ok:
			return ""
		}
		return jsonobject.Quote(text)
	}
	var list []string
	found.Each(func(_ int, one *goquery.Selection) {
		raw := "null"
		if text, ok := w.valueOf(value, one); ok {
			raw = jsonobject.Quote(text)
		}
		list = append(list, raw)
	})
	return "[" + strings.Join(list, ",") + "]"
}

var (
	lineBreaks = regexp.MustCompile(`\r\n|\r|\n`)
	whiteSpace = regexp.MustCompile(`\s+`)
)

func (w *extractions) valueOf(value extraction, found *goquery.Selection) (text string, ok bool) {
	switch value.kind {
	case "attribute":
		text, ok = found.Attr(value.attribute)
	case "html":
		if found.Length() > 0 {
			inner, err := found.Html()
			text, ok = inner, err == nil
		}
	case "value":
		text, ok = formValue(found)
	default:
		text, ok = found.Text(), true
		if w.layout || len(value.skip) > 0 {
			text = shownText(found, value.skip)
		}
	}
	if ok && w.trim {
		text = strings.TrimSpace(text)
	}
	if ok && w.cleanUp {
		text = whiteSpace.ReplaceAllString(lineBreaks.ReplaceAllString(strings.TrimSpace(text), " "), " ")
	}
	return text, ok
}

// formValue is what a form would send for a field.
func formValue(found *goquery.Selection) (string, bool) {
	first := found.First()
	switch goquery.NodeName(first) {
	case "textarea":
		return first.Text(), true
	case "select":
		option := first.Find("option[selected]").First()
		if option.Length() == 0 {
			option = first.Find("option").First()
		}
		if value, ok := option.Attr("value"); ok {
			return value, true
		}
		return option.Text(), option.Length() > 0
	}
	return first.Attr("value")
}
