package text

import (
	"context"
	"errors"
	"fmt"

	"github.com/tidwall/gjson"

	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/node"
	"github.com/reprise-engine/reprise/pkg/nodes/jsonobject"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// XML turns XML into JSON and JSON into XML, in the manner of xml2js. An item that fails
// on a node that continues on errors is left out, as in n8n; one that has an output for
// errors gets it there.
func XML() *node.Type {
	return &node.Type{
		Spec: workflow.Spec{Type: base + "xml", Versions: []float64{1}},
		Execute: func(ctx context.Context, call *node.Call) (*node.Result, error) {
			return call.ByItem(ctx, func(i int) (workflow.Items, error) {
				item, err := xmlItem(ctx, call, i)
				var failure *engine.NodeError
				if errors.As(err, &failure) && call.Node.OnError != workflow.OnErrorOutput && call.Survives(ctx, err) {
					return nil, nil
				}
				return workflow.Items{item}, err
			})
		},
	}
}

func xmlItem(ctx context.Context, call *node.Call, i int) (workflow.Item, error) {
	var none workflow.Item
	mode, err := call.String(ctx, i, "mode", "xmlToJson")
	if err != nil {
		return none, err
	}
	property, err := call.String(ctx, i, "dataPropertyName", "data")
	if err != nil {
		return none, err
	}
	o, err := optionsOf(ctx, call, i)
	if err != nil {
		return none, err
	}
	item := call.Input(0)[i]
	switch mode {
	case "xmlToJson":
		raw := jsonobject.Parse(item.JSON).GetPath(property)
		if raw == "" {
			return none, node.OperationError(i, fmt.Sprintf("Item has no property %q", property), "parameter dataPropertyName: name the field with the XML")
		}
		object, err := parseXML(asText(gjson.Parse(raw)), o)
		if err != nil {
			return none, node.OperationError(i, "The XML cannot be read", err.Error())
		}
		return workflow.Item{JSON: object.JSON()}, nil
	case "jsonToxml":
		text, err := buildXML(jsonobject.Parse(item.JSON), o)
		if err != nil {
			return none, node.OperationError(i, "The item cannot be written as XML", err.Error())
		}
		var object jsonobject.Object
		object.Set(property, jsonobject.Quote(text))
		return workflow.Item{JSON: object.JSON()}, nil
	}
	return none, node.Unknown(i, "mode", mode, "jsonToxml", "xmlToJson")
}
