package items

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/node"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// value reads a parameter for an item. It does not exist when it is absent or
// undefined.
func value(ctx context.Context, call *node.Call, item int, path string) (gjson.Result, error) {
	raw := gjson.GetBytes(call.Node.Parameters, path)
	if !strings.Contains(raw.Raw, `"=`) {
		return raw, nil
	}
	resolved, err := call.Parameters.Resolve(ctx, call, item, json.RawMessage(raw.Raw))
	if err != nil {
		return gjson.Result{}, node.ParameterError(err, item, path)
	}
	return gjson.ParseBytes(resolved), nil
}

// choice reads a text parameter for an item.
func choice(ctx context.Context, call *node.Call, item int, path, fallback string) (string, error) {
	found, err := value(ctx, call, item, path)
	if err != nil || found.Type == gjson.Null {
		return fallback, err
	}
	return found.String(), nil
}

// fieldNames reads a parameter that names fields: a text with commas, a list,
// or, as Item Lists had it first, {"fields": [{"fieldName": ...}]}.
func fieldNames(ctx context.Context, call *node.Call, item int, path string) ([]string, error) {
	found, err := value(ctx, call, item, path)
	if err != nil {
		return nil, err
	}
	var names []string
	add := func(name string) {
		if name = strings.TrimSpace(name); name != "" {
			names = append(names, name)
		}
	}
	switch {
	case found.IsArray():
		for _, element := range found.Array() {
			if element.Type == gjson.JSON || element.Type == gjson.Null {
				return nil, notAName(item, path, element)
			}
			add(element.String())
		}
	case found.IsObject():
		fields := found.Get("fields")
		if !fields.IsArray() {
			return nil, notAName(item, path, found)
		}
		for _, field := range fields.Array() {
			add(field.Get("fieldName").String())
		}
	default:
		for _, name := range strings.Split(found.String(), ",") {
			add(name)
		}
	}
	return names, nil
}

// notAName refuses what is given where the name of a field should be.
func notAName(item int, path string, found gjson.Result) error {
	kind := "an object"
	switch {
	case found.IsArray():
		kind = "a list"
	case found.Type == gjson.Null:
		kind = "null"
	}
	return node.OperationError(item, "The parameter '"+path+"' is "+kind+", but it has to name a field",
		"Write the name of the field as text (for example 'items'), not an expression that gives what is in it.")
}

// toggle reads an option that is on or off. Options are read once a run.
func toggle(ctx context.Context, call *node.Call, path string) (bool, error) {
	return call.Bool(ctx, 0, path, false)
}

// dotted reports whether field names are paths.
func dotted(ctx context.Context, call *node.Call) (bool, error) {
	disabled, err := toggle(ctx, call, "options.disableDotNotation")
	return !disabled, err
}

// passAll are the items of the first input on their way through.
func passAll(call *node.Call) workflow.Items {
	out := make(workflow.Items, len(call.Input(0)))
	for i, item := range call.Input(0) {
		out[i] = node.Passed(item, i, 0)
	}
	return out
}

// hint leaves a remark in the node's record for whoever looks at it.
func hint(result *node.Result, message string) {
	result.Hints = append(result.Hints, engine.Hint{Message: message})
}
