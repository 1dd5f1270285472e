package flow

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

// WorkflowTool lets an Agent call another workflow. Run without an Agent it starts a
// child per item and takes the item's fields for the model's arguments.
func WorkflowTool() *node.Type {
	return &node.Type{
		Spec: workflow.Spec{
			Type: family + "toolWorkflow", Versions: []float64{1, 1.1, 1.2, 1.3, 2, 2.1, 2.2}, ToolNode: true,
		},
		Waits:    true,
		Execute:  executeTool,
		Describe: describeTool,
	}
}

var toolSources = []string{"database", "parameter"}

// noResponse is n8n's error of a child that gave nothing out.
const noResponse = `There was an error: "The workflow did not return a response"`

func executeTool(ctx context.Context, call *node.Call) (*node.Result, error) {
	items := call.Input(0)
	if len(items) == 0 {
		return output(nil), nil
	}
	if call.Resumption != nil {
		return endTool(ctx, call)
	}
	children := &engine.Children{Sequential: true, StopOnError: true}
	for i, item := range items {
		asked := *call
		if asked.ToolArguments == nil {
			asked.ToolArguments = item.JSON // $fromAI reads them, too
		}
		run, err := (&documents{call: &asked}).find(ctx, i, toolSources...)
		if err != nil {
			return nil, err
		}
		given, err := toolInput(ctx, &asked, i)
		if err != nil {
			return nil, err
		}
		run.Input = workflow.Items{childItem(given.JSON(), nil, 0)}
		children.Runs = append(children.Runs, run)
	}
	return waiting(engine.Wait{Kind: engine.WaitChildren, Children: children}), nil
}

// toolInput is the item of the child: the mapped inputs, or else what the model said,
// its text as query. Before version 2 arguments of a schema of the node's own are the
// query as a whole. Fields that the node sets itself go over what the model said.
func toolInput(ctx context.Context, call *node.Call, item int) (jsonobject.Object, error) {
	given := jsonobject.Parse(call.ToolArguments)
	old := call.Node.TypeVersion < 2
	whole := false
	if old {
		var err error
		if whole, err = call.Bool(ctx, item, "specifyInputSchema", false); err != nil {
			return given, err
		}
	}
	query := given.Get("input")
	if whole {
		query = given.String()
	}
	if query != "" {
		given = jsonobject.Object{}
		given.Set("query", query)
	}
	if !old {
		in := readInputs(call)
		over, err := in.over(ctx, item, given)
		if err != nil {
			return given, err
		}
		given = in.asked(over)
	}
	err := setFields(ctx, call, item, &given)
	return given, err
}

// setFields adds the "Extra Workflow Inputs", which are given like the fields of the
// Set node's third version.
func setFields(ctx context.Context, call *node.Call, item int, o *jsonobject.Object) error {
	if len(call.Raw("fields.values")) == 0 {
		return nil
	}
	resolved, err := call.Param(ctx, item, "fields.values")
	if err != nil {
		return err
	}
	gjson.ParseBytes(resolved).ForEach(func(_, f gjson.Result) bool {
		member := f.Get("type").Str
		if member == "" {
			member = "stringValue"
		}
		kind, name := strings.TrimSuffix(member, "Value"), f.Get("name").String()
		value := gjson.Parse(orNull(f.Get(member).Raw))
		fitted, ok := conversion{text: true, lenient: true}.apply(value, kind)
		if !ok {
			err = typeError(item, name, kind, value)
		}
		o.Set(name, fitted)
		return ok
	})
	return err
}

func endTool(ctx context.Context, call *node.Call) (*node.Result, error) {
	var out workflow.Items
	for i, child := range call.Resumption.Children {
		if failure := childFailure(child); failure != nil {
			return nil, failure
		}
		items := childItems(child)
		if len(items) == 0 {
			return nil, node.OperationError(i, noResponse, "The last node of the called workflow gave out no item.")
		}
		if call.Node.TypeVersion < 2.1 {
			items = items[:1]
		}
		if call.Node.TypeVersion < 1.3 {
			chosen, err := responseProperty(ctx, call, i, items[0].JSON)
			if err != nil {
				return nil, err
			}
			items[0] = workflow.Item{JSON: chosen}
		}
		for _, item := range items {
			item.PairedItem = workflow.Paired(i)
			out = append(out, item)
		}
	}
	return output(out), nil
}

// responseProperty picks the "Field to Return" of an item; an object is the answer
// itself, anything else its response. An item without the field is the answer as it is.
func responseProperty(ctx context.Context, call *node.Call, i int, item json.RawMessage) (json.RawMessage, error) {
	name, err := call.String(ctx, i, "responsePropertyName", "response")
	if err != nil {
		return nil, err
	}
	value := jsonobject.Parse(item).GetPath(name)
	switch {
	case value == "":
		return item, nil
	case value[0] == '{':
		return json.RawMessage(value), nil
	}
	return json.RawMessage(`{"response":` + value + `}`), nil
}
