package http

import (
	"context"
	"fmt"
	nethttp "net/http"
	"regexp"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/reprise-engine/reprise/pkg/node"
	"github.com/reprise-engine/reprise/pkg/nodes/jsonobject"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// placeholder is where the arguments of a model go in the old HTTP Request Tool: {name}.
var placeholder = regexp.MustCompile(`\{([a-zA-Z0-9_-]{1,64})\}`)

// template reads the parameters of the old HTTP Request Tool. The same reading finds which
// arguments it has, and fills them in.
type template struct {
	*parameters
	// arguments are the model's.
	arguments gjson.Result
	// describing: the arguments are not there yet, and are noted in asked.
	describing bool
	asked      []askedFor
}

// askedFor is an argument of the tool.
type askedFor struct {
	name, kind string
	optional   bool
}

func (c Config) executeOldTool(ctx context.Context, call *node.Call) (*node.Result, error) {
	x := &execution{Config: c, call: call, output: (*response).toolItems}
	x.read = func(p *parameters) *request {
		t := &template{parameters: p, arguments: gjson.ParseBytes(call.ToolArguments)}
		if call.ToolArguments == nil && p.item < len(x.input) {
			t.arguments = gjson.ParseBytes(x.input[p.item].JSON)
		}
		return t.request()
	}
	return x.execute(ctx)
}

// toolItems is one text or JSON value for the model.
func (resp *response) toolItems(o options, input workflow.Item, index int) (workflow.Items, error) {
	if resp.isFile {
		return nil, operationError("The response is a file, which cannot be shown to a model")
	}
	return resp.items(o, input, index)
}

// request evaluates the parameters.
func (t *template) request() *request {
	r := &request{
		method: strings.ToUpper(t.text("method", nethttp.MethodGet)),
		options: options{
			timeout: defaultTimeout, follow: true, maxRedirects: defaultMaxRedirects,
			format: "autodetect", property: "response", optimize: t.readOptimization(),
		},
	}
	r.url = t.target()
	if t.flag("sendQuery", false) {
		r.query = t.values("specifyQuery", "parametersQuery.values", "jsonQuery", "query", "JSON Query Parameters")
	}
	if t.flag("sendHeaders", false) {
		r.headers = t.values("specifyHeaders", "parametersHeaders.values", "jsonHeaders", "headers", "JSON Headers")
	}
	if t.flag("sendBody", false) {
		r.body = t.body()
	}
	return r
}

// target is the URL. What a model writes stays inside the part of it where the placeholder
// stands, unless the URL is nothing but one.
func (t *template) target() string {
	pattern := strings.TrimSpace(t.text("url", ""))
	whole := placeholder.FindString(pattern) == pattern
	filled := t.fill(pattern, func(value gjson.Result) string {
		if whole {
			return value.String()
		}
		return escape(value.String())
	})
	if t.describing || t.err != nil {
		return filled
	}
	lower := strings.ToLower(filled)
	if !strings.HasPrefix(lower, "http://") && !strings.HasPrefix(lower, "https://") {
		t.err = operationError(fmt.Sprintf(`Invalid URL: %s. URL must start with "http" or "https".`, filled))
	}
	return filled
}

// values are the query, the headers or the body as an object: of fields, of JSON, or the model's own.
func (t *template) values(how, fields, source, argument, label string) jsonobject.Object {
	switch t.text(how, "keypair") {
	case "json":
		return t.objectOf(t.json(t.text(source, "")), label)
	case "model":
		value := t.argument(argument, "json", false)
		if value.Type == gjson.String { // a model that writes the object as text
			return t.objectOf(value.Str, label)
		}
		return t.objectOf(value.Raw, label)
	}
	var o jsonobject.Object
	t.value(fields).ForEach(func(_, entry gjson.Result) bool {
		name := entry.Get("name").String()
		switch provider := entry.Get("valueProvider").String(); {
		case name == "":
		case provider == "fieldValue":
			o.Set(name, t.field(entry.Get("value")))
		default:
			if value := t.argument(name, "", provider == "modelOptional"); value.Exists() && value.Type != gjson.Null {
				o.Set(name, value.Raw)
			}
		}
		return t.err == nil
	})
	return o
}

func (t *template) objectOf(raw, label string) jsonobject.Object {
	if t.describing || t.err != nil {
		return jsonobject.Object{}
	}
	if !gjson.Valid(raw) || !gjson.Parse(raw).IsObject() {
		t.err = operationError(fmt.Sprintf("The value in the %q field is not a JSON object", label))
		return jsonobject.Object{}
	}
	return jsonobject.Parse(raw)
}

func (t *template) body() body {
	const contentType = "application/json"
	if t.text("specifyBody", "keypair") != "json" {
		return plainBody(compact(t.values("specifyBody", "parametersBody.values", "", "body", "Body").String()), contentType)
	}
	raw := t.json(t.text("jsonBody", ""))
	if !t.describing && t.err == nil && !gjson.Valid(raw) {
		t.err = operationError(`The value in the "JSON Body" field is not valid JSON`)
	}
	return plainBody(compact(raw), contentType)
}

// field is a value that the workflow gives; one that is only a placeholder keeps the argument's type.
func (t *template) field(value gjson.Result) string {
	if value.Type != gjson.String {
		if !value.Exists() {
			return `""`
		}
		return value.Raw
	}
	if only := placeholder.FindString(value.Str); only != "" && only == value.Str {
		if argument := t.argument(only[1:len(only)-1], "", false); argument.Exists() {
			return argument.Raw
		}
		return "null"
	}
	return jsonobject.Quote(t.fill(value.Str, gjson.Result.String))
}

// fill replaces the placeholders of a text.
func (t *template) fill(text string, write func(gjson.Result) string) string {
	return placeholder.ReplaceAllStringFunc(text, func(found string) string {
		return write(t.argument(found[1:len(found)-1], "", false))
	})
}

// json fills the placeholders of JSON: one that stands in a string becomes a part of it, one that is
// a whole string or stands outside of any becomes a value.
func (t *template) json(text string) string {
	var b strings.Builder
	inside := false
	for at := 0; at < len(text); {
		c := text[at]
		found := placeholder.FindStringIndex(text[at:])
		switch {
		case found != nil && found[0] == 0:
			value := t.argument(text[at+1:at+found[1]-1], "", false)
			if !inside {
				b.WriteString(orNull(value.Raw))
			} else {
				quoted := jsonobject.Quote(value.String())
				b.WriteString(quoted[1 : len(quoted)-1])
			}
			at += found[1]
			continue
		case found != nil && found[0] == 1 && c == '"' && !inside && strings.HasPrefix(text[at+found[1]:], `"`):
			b.WriteString(orNull(t.argument(text[at+2:at+found[1]-1], "", false).Raw))
			at += found[1] + 1
			continue
		case c == '\\' && inside && at+1 < len(text):
			b.WriteByte(c)
			at++
			c = text[at]
		case c == '"':
			inside = !inside
		}
		b.WriteByte(c)
		at++
	}
	return b.String()
}

func orNull(raw string) string {
	if raw == "" {
		return "null"
	}
	return raw
}

// argument is what the model gave for a name.
func (t *template) argument(name, kind string, optional bool) gjson.Result {
	if t.describing {
		for i := range t.asked {
			if t.asked[i].name == name {
				t.asked[i].optional = t.asked[i].optional && optional
				return gjson.Result{}
			}
		}
		t.asked = append(t.asked, askedFor{name: name, kind: kind, optional: optional})
		return gjson.Result{}
	}
	value := at(t.arguments, []string{name})
	if !value.Exists() && !optional && t.err == nil {
		t.err = operationError(fmt.Sprintf("The argument %q of the tool is missing", name))
	}
	return value
}

// describeOldTool shows the tool to a model: its arguments are the placeholders, and the fields that
// are left to the model, as far as they are used.
func describeOldTool(ctx context.Context, call *node.Call) (*node.ToolDescription, error) {
	t := &template{parameters: &parameters{ctx: ctx, call: call}, describing: true}
	t.request()
	description := t.text("toolDescription", "")
	name := call.Node.Name
	if call.Node.TypeVersion < 1.1 {
		name = t.text("name", name)
	}
	definitions := t.value("placeholderDefinitions.values").Array()
	if t.err != nil {
		return nil, t.err
	}
	if description == "" {
		description = toolDescription
	}
	var properties jsonobject.Object
	var required []string
	for _, a := range t.asked {
		var property jsonobject.Object
		for _, definition := range definitions {
			if definition.Get("name").String() != a.name {
				continue
			}
			if kind := definition.Get("type").String(); kind != "" {
				a.kind = kind
			}
			if told := definition.Get("description").String(); told != "" {
				property.Set("description", jsonobject.Quote(told))
			}
		}
		switch a.kind {
		case "number", "boolean", "string":
			property.Set("type", jsonobject.Quote(a.kind))
		case "json":
			property.Set("type", `"object"`)
			property.Set("additionalProperties", "true")
		default: // "not specified"
			property.Set("type", `"string"`)
		}
		properties.Set(a.name, property.String())
		if !a.optional {
			required = append(required, a.name)
		}
	}
	schema := jsonobject.Schema(properties, required, true)
	return &node.ToolDescription{Name: name, Description: description, Schema: schema.JSON()}, nil
}
