package flow

import (
	"context"
	"encoding/json"

	"github.com/tidwall/gjson"

	"github.com/reprise-engine/reprise/pkg/node"
	"github.com/reprise-engine/reprise/pkg/nodes/fromai"
	"github.com/reprise-engine/reprise/pkg/nodes/jsonobject"
)

// describeTool shows the tool to the model. Up to version 2.1 it has a name of its
// own; without one, and later, it has the node's.
func describeTool(ctx context.Context, call *node.Call) (*node.ToolDescription, error) {
	description, err := call.String(ctx, 0, "description", "")
	if err != nil {
		return nil, err
	}
	name := ""
	if call.Node.TypeVersion < 2.2 {
		if name, err = call.String(ctx, 0, "name", ""); err != nil {
			return nil, err
		}
	}
	if name == "" {
		name = call.Node.Name
	}
	schema, err := toolSchema(ctx, call)
	if err != nil {
		return nil, err
	}
	return &node.ToolDescription{Name: name, Description: description, Schema: schema}, nil
}

// toolSchema is what the model has to give: from version 2 on what the workflow
// inputs ask $fromAI for, before it the schema that the node specifies, and one text
// where there is neither.
func toolSchema(ctx context.Context, call *node.Call) (json.RawMessage, error) {
	if call.Node.TypeVersion >= 2 {
		return inputsSchema(call)
	}
	own, err := call.Bool(ctx, 0, "specifyInputSchema", false)
	if err != nil || !own {
		return fromai.TextSchema, err
	}
	kind, err := call.String(ctx, 0, "schemaType", "fromJson")
	if err != nil {
		return nil, err
	}
	path := "jsonSchemaExample"
	if kind == "manual" {
		path = "inputSchema"
	}
	text, err := call.String(ctx, 0, path, "")
	if err != nil {
		return nil, err
	}
	if !gjson.Valid(text) {
		return nil, node.OperationError(-1, "The parameter "+path+" of "+call.Node.Name+" is not valid JSON", "")
	}
	source := gjson.Parse(text)
	switch {
	case !source.IsObject():
		return nil, node.OperationError(-1, "The parameter "+path+" of "+call.Node.Name+" is not an object",
			"A tool's arguments are an object with a property for each.")
	case kind == "manual":
		return json.RawMessage(source.Raw), nil
	}
	return json.RawMessage(jsonobject.SchemaOfExample(source.Raw, call.Node.TypeVersion >= 1.3, true)), nil
}

func inputsSchema(call *node.Call) (json.RawMessage, error) {
	values := call.Raw("workflowInputs.value")
	schema, err := fromai.Schema(values)
	if err != nil {
		return nil, node.OperationError(-1, "The workflow inputs of "+call.Node.Name+" are not valid", err.Error())
	}
	if gjson.GetBytes(schema, "properties.@keys.#").Int() == 0 {
		return fromai.TextSchema, nil
	}
	return schema, nil
}
