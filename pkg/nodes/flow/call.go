package flow

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/node"
	"github.com/reprise-engine/reprise/pkg/nodes/jsonobject"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// operationError is n8n's error of a node's own code; item -1 names no item.
func operationError(item int, message, description string) *engine.NodeError {
	failure := &engine.NodeError{Name: "NodeOperationError", Message: message, Description: description}
	if item >= 0 {
		failure.ItemIndex = &item
	}
	return failure
}

// survivable returns the failure in err that a node which continues on errors may
// turn into data. The end of the attempt is none of its business, and a tool's
// failure belongs to the engine, which tells the model.
func survivable(ctx context.Context, call *node.Call, err error) (*engine.NodeError, bool) {
	n := call.Node
	continues := n.ContinueOnFail || n.OnError == workflow.OnErrorContinue || n.OnError == workflow.OnErrorOutput
	var failure *engine.NodeError
	ok := continues && call.ToolCallID == "" && call.ToolArguments == nil && ctx.Err() == nil && errors.As(err, &failure)
	return failure, ok
}

// errorItem stands for what failed.
func errorItem(failure *engine.NodeError, paired workflow.PairedItems) workflow.Item {
	return workflow.Item{JSON: json.RawMessage(`{"error":` + jsonobject.Quote(failure.Message) + `}`), PairedItem: paired}
}

func mainInput(call *node.Call) workflow.Items {
	if len(call.Inputs) == 0 {
		return nil
	}
	return call.Inputs[0]
}

// allOf is the lineage of what was made from all of n items.
func allOf(n int) workflow.PairedItems {
	all := make(workflow.PairedItems, n)
	for i := range all {
		all[i].Item = i
	}
	return all
}

func output(items workflow.Items) *node.Result {
	if items == nil {
		items = workflow.Items{}
	}
	return &node.Result{Result: engine.Result{Outputs: []workflow.Items{items}}}
}

// passed gives out the input. Items that come with no lineage are linked to
// themselves.
func passed(call *node.Call) *node.Result {
	items := append(workflow.Items{}, mainInput(call)...)
	for i := range items {
		if len(items[i].PairedItem) == 0 {
			items[i].PairedItem = workflow.Paired(i)
		}
	}
	return output(items)
}

func waiting(wait engine.Wait) *node.Result {
	return &node.Result{Result: engine.Result{Wait: &wait}}
}
