package node

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// OperationError is n8n's error of a node's own code; item -1 names no item.
func OperationError(item int, message, description string) *engine.NodeError {
	failure := &engine.NodeError{Name: "NodeOperationError", Message: message, Description: description}
	if item >= 0 {
		failure.ItemIndex = &item
	}
	return failure
}

// Survives reports whether a node that continues on errors may turn err into data. The end of
// the attempt is none of its business, and a tool's failure belongs to the engine, which tells
// the model.
func (c *Call) Survives(ctx context.Context, err error) bool {
	var failure *engine.NodeError
	return c.Node.Continues() && c.ToolCallID == "" && c.ToolArguments == nil && ctx.Err() == nil && errors.As(err, &failure)
}

// ErrorItem is what stands for an item that failed: {"error": message}.
func ErrorItem(message string, paired workflow.PairedItems) workflow.Item {
	text, err := workflow.Encode(message, workflow.CheckRaw)
	if err != nil {
		text = []byte(`""`) // a text can always be encoded
	}
	return workflow.Item{JSON: json.RawMessage(`{"error":` + string(text) + `}`), PairedItem: paired}
}

// Input returns the items of an input, nil when nothing came there.
func (c *Call) Input(i int) workflow.Items {
	if i >= len(c.Inputs) {
		return nil
	}
	return c.Inputs[i]
}

// ByItem makes the output of what each item of the first input is made into, paired with it.
// An item that fails becomes an ErrorItem when the node continues on errors.
func (c *Call) ByItem(ctx context.Context, convert func(i int) (workflow.Items, error)) (*Result, error) {
	out := workflow.Items{}
	for i := range c.Input(0) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		made, err := convert(i)
		if err != nil {
			if !c.Survives(ctx, err) {
				return nil, err
			}
			made = workflow.Items{ErrorItem(err.Error(), nil)}
		}
		for _, item := range made {
			item.PairedItem = workflow.Paired(i)
			out = append(out, item)
		}
	}
	return &Result{Result: engine.Result{Outputs: []workflow.Items{out}}}, nil
}
