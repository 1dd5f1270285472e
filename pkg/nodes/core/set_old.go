package core

import (
	"context"

	"github.com/tidwall/gjson"

	"github.com/reprise-engine/reprise/pkg/node"
	"github.com/reprise-engine/reprise/pkg/nodes/jsonobject"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// SetOld is Set before 3: values grouped by type and taken as they come.
func SetOld() *node.Type {
	return &node.Type{
		Spec:   workflow.Spec{Type: base + "set", Versions: []float64{1, 2}},
		Inline: true,
		Execute: func(ctx context.Context, call *node.Call) (*node.Result, error) {
			var out workflow.Items
			for i := range call.Input(0) {
				item, err := setOldItem(ctx, call, i)
				if err != nil {
					if !call.Survives(ctx, err) {
						return nil, err
					}
					item = node.ErrorItem(err.Error(), workflow.Paired(i))
				}
				out = append(out, item)
			}
			return node.Outputs(out), nil
		},
	}
}

func setOldItem(ctx context.Context, call *node.Call, i int) (workflow.Item, error) {
	source := call.Input(0)[i]
	item := workflow.Item{PairedItem: workflow.Paired(i)}
	only, err := flag(ctx, call, i, "keepOnlySet", false)
	if err != nil {
		return item, err
	}
	dots, err := flag(ctx, call, i, "options.dotNotation", true)
	if err != nil {
		return item, err
	}
	var object jsonobject.Object
	if !only {
		object = jsonobject.Parse(source.JSON)
		item.Binary = source.Binary
	}
	for _, kind := range []string{"boolean", "number", "string"} {
		parameter(call, "values."+kind).ForEach(func(_, field gjson.Result) bool {
			var name, value gjson.Result
			if name, err = resolve(ctx, call, i, field.Get("name"), "name"); err != nil {
				return false
			}
			if value, err = resolve(ctx, call, i, field.Get("value"), name.String()); err != nil {
				return false
			}
			if dots {
				object.SetPath(name.String(), value.Raw)
			} else {
				object.Set(name.String(), value.Raw)
			}
			return true
		})
		if err != nil {
			return item, err
		}
	}
	item.JSON = object.JSON()
	return item, nil
}
