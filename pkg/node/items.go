package node

import (
	"context"

	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

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

// Passed is an input item on its way through, linked to itself.
func Passed(item workflow.Item, index, input int) workflow.Item {
	if len(item.PairedItem) == 0 {
		item.PairedItem = workflow.PairedItems{{Item: index, Input: input}}
	}
	return item
}

// Outputs makes the result of a node from its outputs, none of which is null.
func Outputs(lists ...workflow.Items) *Result {
	for i := range lists {
		if lists[i] == nil {
			lists[i] = workflow.Items{}
		}
	}
	return &Result{Result: engine.Result{Outputs: lists}}
}
