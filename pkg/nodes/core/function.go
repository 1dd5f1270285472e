package core

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/tidwall/gjson"

	"github.com/reprise-engine/reprise/pkg/node"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// Function runs JavaScript over all items, which it finds as items: what there was
// before Code nodes.
func Function() *node.Type {
	return oldCode("function", executeFunction)
}

// FunctionItem runs JavaScript on each item, whose json it finds as item and returns.
func FunctionItem() *node.Type {
	return oldCode("functionItem", executeFunctionItem)
}

func oldCode(name string, execute func(context.Context, *node.Call, node.Script) (*node.Result, error)) *node.Type {
	return &node.Type{
		Spec: workflow.Spec{Type: base + name, Versions: []float64{1}},
		Once: func(n *workflow.Node) bool { return sends(gjson.GetBytes(n.Parameters, "functionCode").Str) },
		Execute: func(ctx context.Context, call *node.Call) (*node.Result, error) {
			code := parameter(call, "functionCode").String()
			if code == "" {
				return nil, node.OperationError(-1, "The node has no code", "Write some that returns what it is to put out.")
			}
			if call.RunScript == nil {
				return nil, errors.New("this process runs no scripts")
			}
			return execute(ctx, call, node.Script{Code: code, Old: name, GoOn: call.Node.Continues()})
		},
	}
}

func executeFunction(ctx context.Context, call *node.Call, code node.Script) (*node.Result, error) {
	code.Item = node.AllItems
	script, err := call.RunScript(ctx, call, code)
	if script == nil {
		script = &node.ScriptResult{}
	}
	var items workflow.Items
	if err == nil {
		if items, err = functionItems(script); err == nil {
			return logged(node.Outputs(items), script.Logs), nil
		}
	}
	if !thrown(ctx, call, err) {
		return failed(err, script.Logs)
	}
	return logged(node.Outputs(workflow.Items{node.ErrorItem(err.Error(), workflow.Paired(0))}), script.Logs), nil
}

// functionItems makes items of what a function returned: a list of items.
func functionItems(script *node.ScriptResult) (workflow.Items, error) {
	value := scriptValue(script)
	if !value.Exists() || value.Type == gjson.Null {
		return nil, node.OperationError(-1, "No data got returned. Always return an Array of items!", "")
	}
	list := value.Array()
	if !value.IsArray() {
		// The words of JavaScript about n8n's own check.
		if !value.IsObject() || !value.Get("json").Exists() {
			return nil, node.OperationError(-1, "executionData.every is not a function", "Return a list of items: [{ json: {…} }, …]")
		}
		list = []gjson.Result{value}
	}
	items := make(workflow.Items, 0, len(list))
	for i, element := range list {
		if !element.IsObject() || !element.Get("json").Exists() {
			return nil, node.OperationError(i, "All returned items have to contain a property named \"json\"!", "")
		}
		if !element.Get("json").IsObject() {
			return nil, node.OperationError(i, "The json-property has to be an object!", "")
		}
		item, failure := readItem(element, i)
		if failure != nil {
			return nil, failure
		}
		items = append(items, item)
	}
	return items, nil
}

func executeFunctionItem(ctx context.Context, call *node.Call, code node.Script) (*node.Result, error) {
	code.Item = node.EachItem
	script, err := call.RunScript(ctx, call, code)
	if script == nil {
		script = &node.ScriptResult{}
	}
	if err != nil {
		return failed(err, script.Logs)
	}
	out := make(workflow.Items, 0, len(script.Each))
	for i := range script.Each {
		item, err := functionItem(&script.Each[i], i)
		if err != nil {
			if !thrown(ctx, call, err) {
				return failed(err, script.Logs)
			}
			item = node.ErrorItem(err.Error(), workflow.Paired(i))
		}
		out = append(out, item)
	}
	return logged(node.Outputs(out), script.Logs), nil
}

func functionItem(result *node.ScriptResult, i int) (workflow.Item, error) {
	item := workflow.Item{PairedItem: workflow.Paired(i)}
	if result.Err != nil {
		if result.Err.ItemIndex == nil {
			result.Err.ItemIndex = &i
		}
		return item, result.Err
	}
	value := scriptValue(result)
	if !value.Exists() || value.Type == gjson.Null {
		return item, node.OperationError(i, "No data got returned. Always return an Object!", "")
	}
	if !value.IsObject() {
		return item, node.OperationError(i, "The returned data has to be an object!", "Return the item's data: { field: value, … }")
	}
	item.JSON = json.RawMessage(value.Raw)
	if len(result.Binary) > 0 && json.Unmarshal(result.Binary, &item.Binary) != nil {
		return item, notAnObject(i, "binary")
	}
	return item, nil
}
