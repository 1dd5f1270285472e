package core

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/node"
	"github.com/reprise-engine/reprise/pkg/nodes/jsonobject"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// Set (Edit Fields) makes new items from fields given one by one or as JSON.
func Set() *node.Type {
	return &node.Type{
		Spec:    workflow.Spec{Type: base + "set", Versions: []float64{3, 3.1, 3.2, 3.3, 3.4}},
		Inline:  true,
		Execute: executeSet,
	}
}

// assignment is one field to set, with expressions still in it.
type assignment struct {
	name, value gjson.Result
	kind        string
}

func executeSet(ctx context.Context, call *node.Call) (*node.Result, error) {
	var fields []assignment
	raw := parameter(call, "mode").Str == "raw"
	if !raw {
		fields = assignments(call)
	}
	copies, err := setCopies(ctx, call)
	if err != nil {
		return nil, err
	}
	items := call.Input(0)
	out := make(workflow.Items, 0, len(items)*copies)
	for i := range items {
		item, err := setItem(ctx, call, i, fields, raw)
		if err != nil {
			if !call.Survives(ctx, err) {
				return nil, err
			}
			item = node.ErrorItem(err.Error(), workflow.Paired(i))
		}
		for range copies {
			out = append(out, item)
		}
	}
	return node.Outputs(out), nil
}

// setCopies is how often each item is put out. Duplicates are for trying a
// workflow out, so they come in manual executions only.
func setCopies(ctx context.Context, call *node.Call) (int, error) {
	if call.Execution.Mode != "manual" || !parameter(call, "duplicateItem").Bool() {
		return 1, nil
	}
	count, err := call.Int(ctx, 0, "duplicateCount", 0)
	return max(count, 0) + 1, err
}

// assignments reads the fields: "assignments" since 3.3, "fields" before.
func assignments(call *node.Call) []assignment {
	var found []assignment
	if call.Node.TypeVersion >= 3.3 {
		parameter(call, "assignments.assignments").ForEach(func(_, a gjson.Result) bool {
			var field assignment
			field.kind = "string"
			a.ForEach(func(key, value gjson.Result) bool {
				switch key.Str {
				case "name":
					field.name = value
				case "value":
					field.value = value
				case "type":
					field.kind = value.Str
				}
				return true
			})
			found = append(found, field)
			return true
		})
		return found
	}
	parameter(call, "fields.values").ForEach(func(_, f gjson.Result) bool {
		kind := f.Get("type").Str
		if kind == "" {
			kind = "stringValue"
		}
		found = append(found, assignment{f.Get("name"), f.Get(kind), strings.TrimSuffix(kind, "Value")})
		return true
	})
	return found
}

func setItem(ctx context.Context, call *node.Call, i int, fields []assignment, raw bool) (workflow.Item, error) {
	source := call.Input(0)[i]
	item := workflow.Item{PairedItem: workflow.Paired(i)}
	object, included, err := setBase(ctx, call, i, source)
	if err != nil {
		return item, err
	}
	if included {
		keep, err := keepsBinary(ctx, call, i)
		if err != nil {
			return item, err
		}
		if keep {
			item.Binary = source.Binary
		}
	}
	dots, err := flag(ctx, call, i, "options.dotNotation", true)
	if err != nil {
		return item, err
	}
	put := object.Set
	if dots {
		put = object.SetPath
	}
	if raw {
		given, err := setJSON(ctx, call, i)
		if err != nil {
			return item, err
		}
		for _, m := range jsonobject.Parse(given.Raw).Members() {
			put(m.Key, m.Value)
		}
		item.JSON = object.JSON()
		return item, nil
	}
	for _, field := range fields {
		name, err := resolve(ctx, call, i, field.name, "name")
		if err != nil {
			return item, err
		}
		value, err := resolve(ctx, call, i, field.value, name.String())
		if err != nil {
			return item, err
		}
		if field.kind == "binary" {
			setBinary(&item, source, name.String(), value)
			continue
		}
		converted, ok := convert(value, field.kind)
		if !ok {
			lenient, err := flag(ctx, call, i, "options.ignoreConversionErrors", false)
			if err != nil {
				return item, err
			}
			if !lenient {
				return item, conversionError(i, name.String(), field.kind, value)
			}
		}
		text := converted.Raw
		if text == "" {
			text = "null" // undefined stays as a field
		}
		put(name.String(), text)
	}
	item.JSON = object.JSON()
	return item, nil
}

func conversionError(i int, name, kind string, value gjson.Result) *engine.NodeError {
	got := "'" + value.String() + "'"
	switch {
	case value.IsArray():
		got = "array"
	case value.IsObject():
		got = "object"
	}
	return node.OperationError(i, "'"+name+"' expects a "+kind+" but we got "+got+" [item "+formatNumber(float64(i))+"]",
		`To fix the error try to change the type for the field "`+name+
			`" or activate the option “Ignore Type Conversion Errors” to apply a less strict type validation`)
}

// setBase returns the fields taken over from the input item; included is false
// when none are wanted.
func setBase(ctx context.Context, call *node.Call, i int, source workflow.Item) (object jsonobject.Object, included bool, err error) {
	include := "all"
	if call.Node.TypeVersion >= 3.3 {
		others, err := flag(ctx, call, i, "includeOtherFields", false)
		if err != nil || !others {
			return object, false, err
		}
	}
	if include, err = choice(ctx, call, i, "include", include); err != nil {
		return object, false, err
	}
	switch include {
	case "none":
		return object, false, nil
	case "selected":
		fields, err := resolve(ctx, call, i, parameter(call, "includeFields"), "includeFields")
		if err != nil {
			return object, false, err
		}
		all := jsonobject.Parse(source.JSON)
		for _, field := range names(fields) {
			parts := jsonobject.Split(field)
			object.Set(parts[len(parts)-1], all.GetPath(field))
		}
		return object, true, nil
	case "except":
		fields, err := resolve(ctx, call, i, parameter(call, "excludeFields"), "excludeFields")
		if err != nil {
			return object, false, err
		}
		object = jsonobject.Parse(source.JSON)
		for _, field := range names(fields) {
			object.DeletePath(field)
		}
		return object, true, nil
	}
	return jsonobject.Parse(source.JSON), true, nil
}

// keepsBinary tells whether files travel on with the included fields. The
// option changed its sense with 3.4.
func keepsBinary(ctx context.Context, call *node.Call, i int) (bool, error) {
	if call.Node.TypeVersion < 3.4 {
		return flag(ctx, call, i, "options.includeBinary", false)
	}
	strip, err := flag(ctx, call, i, "options.stripBinary", false)
	return !strip, err
}

// setBinary gives the item a file: value names a file of the input item, or is
// its description.
func setBinary(item *workflow.Item, source workflow.Item, name string, value gjson.Result) {
	var file workflow.Binary
	if value.IsObject() {
		if json.Unmarshal([]byte(value.Raw), &file) != nil {
			return
		}
	} else {
		var ok bool
		if file, ok = source.Binary[value.String()]; !ok {
			return
		}
	}
	files := map[string]workflow.Binary{name: file}
	for key, other := range item.Binary {
		if key != name {
			files[key] = other
		}
	}
	item.Binary = files
}

// setJSON evaluates the JSON of raw mode, which is an object or a text that
// holds one.
func setJSON(ctx context.Context, call *node.Call, i int) (gjson.Result, error) {
	value, err := resolve(ctx, call, i, parameter(call, "jsonOutput"), "jsonOutput")
	if err != nil {
		return value, err
	}
	if value.Type == gjson.String {
		if !gjson.Valid(value.Str) {
			return value, node.OperationError(i, "The 'JSON Output' in item "+formatNumber(float64(i))+" contains invalid JSON", "")
		}
		value = gjson.Parse(value.Str)
	}
	if !value.IsObject() {
		return value, node.OperationError(i, "The 'JSON Output' in item "+formatNumber(float64(i))+" does not contain a valid JSON object", "")
	}
	return value, nil
}
