package text

import (
	"context"
	"encoding/json"

	"github.com/tidwall/gjson"

	"github.com/reprise-engine/reprise/pkg/node"
	"github.com/reprise-engine/reprise/pkg/nodes/jsonobject"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// HTML fills templates, takes pages apart and makes tables.
func HTML() *node.Type {
	return &node.Type{
		Spec: workflow.Spec{Type: base + "html", Versions: []float64{1, 1.1, 1.2}},
		Execute: func(ctx context.Context, call *node.Call) (*node.Result, error) {
			if len(call.Input(0)) == 0 {
				return call.ByItem(ctx, nil)
			}
			operation, err := call.String(ctx, 0, "operation", "generateHtmlTemplate")
			if err != nil {
				return nil, err
			}
			switch operation {
			case "generateHtmlTemplate":
				return call.ByItem(ctx, func(i int) (workflow.Items, error) { return template(ctx, call, i) })
			case "extractHtmlContent":
				return call.ByItem(ctx, func(i int) (workflow.Items, error) {
					return extract(ctx, call, i, call.Node.TypeVersion > 1)
				})
			case "convertToHtmlTable":
				return table(ctx, call)
			}
			return nil, node.Unknown(0, "operation", operation, "convertToHtmlTable", "extractHtmlContent", "generateHtmlTemplate")
		},
	}
}

// template fills in a template. It is kept without the = of other parameters with
// expressions.
func template(ctx context.Context, call *node.Call, i int) (workflow.Items, error) {
	raw := gjson.ParseBytes(call.Raw("html"))
	text := raw.Str
	if text != "" && text[0] != '=' {
		text = "=" + text
	}
	value := json.RawMessage(`""`)
	if text != "" {
		var err error
		if value, err = call.Parameters.Resolve(ctx, call, i, json.RawMessage(jsonobject.Quote(text))); err != nil {
			return nil, node.ParameterError(err, i, "html")
		}
	}
	var object jsonobject.Object
	object.Set("html", jsonobject.Quote(asText(gjson.ParseBytes(value))))
	return workflow.Items{{JSON: object.JSON()}}, nil
}
