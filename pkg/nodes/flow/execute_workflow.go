package flow

import (
	"context"
	"fmt"

	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/node"
	"github.com/reprise-engine/reprise/pkg/nodes/jsonobject"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// ExecuteWorkflow (Execute Sub-workflow) runs another workflow: once with all items,
// or once for each.
func ExecuteWorkflow() *node.Type {
	return &node.Type{
		Spec:    workflow.Spec{Type: base + "executeWorkflow", Versions: []float64{1, 1.1, 1.2, 1.3}},
		Waits:   true,
		Execute: executeWorkflow,
	}
}

var executeSources = []string{"database", "parameter", "localFile", "url"}

// caller is one run of an Execute Sub-workflow node.
type caller struct {
	call   *node.Call
	items  workflow.Items
	inputs *inputs
	documents
}

func executeWorkflow(ctx context.Context, call *node.Call) (*node.Result, error) {
	c := &caller{call: call, items: call.Input(0), inputs: readInputs(call), documents: documents{call: call}}
	mode, err := call.String(ctx, 0, "mode", "once")
	switch {
	case err != nil:
		return nil, err
	case len(c.items) == 0:
		return output(nil), nil
	case mode == "once" && call.Resumption == nil:
		return c.startOne(ctx)
	case mode == "once":
		return c.endOne(ctx)
	case mode == "each" && call.Resumption == nil:
		return c.startEach(ctx)
	case mode == "each":
		return c.endEach(ctx)
	}
	return nil, node.OperationError(-1, fmt.Sprintf("The mode %q is unknown", mode), "The parameter mode must be once or each.")
}

// startOne starts the one child. Which workflow it is, and whether the node waits for
// it, follows from the first item.
func (c *caller) startOne(ctx context.Context) (*node.Result, error) {
	run, detached, err := c.prepare(ctx, 0)
	for i := range c.items {
		var item workflow.Item
		if err != nil {
			break
		}
		if item, err = c.given(ctx, i, i); err == nil {
			run.Input = append(run.Input, item)
		}
	}
	if failure, ok := survivable(ctx, c.call, err); ok {
		return output(workflow.Items{node.ErrorItem(failure.Message, workflow.PairedWithAll(len(c.items)))}), nil
	}
	if err != nil {
		return nil, err
	}
	return waiting(engine.Wait{Kind: engine.WaitChildren, Children: &engine.Children{
		Runs: []engine.ChildRun{run}, Detached: detached,
	}}), nil
}

func (c *caller) endOne(ctx context.Context) (*node.Result, error) {
	var child *engine.ChildResult
	if len(c.call.Resumption.Children) > 0 {
		child = c.call.Resumption.Children[0]
	}
	if failure := childFailure(child); failure != nil {
		if _, ok := survivable(ctx, c.call, failure); !ok {
			return nil, failure
		}
		item := node.ErrorItem(failure.Message, workflow.PairedWithAll(len(c.items)))
		item.Metadata = link(c.call, child, true)
		return output(workflow.Items{item}), nil
	}
	if child.Status == engine.StatusRunning {
		items := make(workflow.Items, len(c.items))
		for i := range items {
			item, err := c.handedOver(ctx, i)
			if err != nil {
				return nil, err
			}
			items[i] = item
		}
		return output(items), nil
	}
	items := childItems(child)
	for i := range items {
		// As many out as in: n8n takes them for the same ones.
		if items[i].PairedItem = workflow.PairedWithAll(len(c.items)); len(items) == len(c.items) {
			items[i].PairedItem = workflow.Paired(i)
		}
	}
	result := output(items)
	result.Hints = lostOutputs(child)
	return result, nil
}

// startEach starts a child per item, one after the other. Items whose parameters
// cannot be evaluated have none when the node continues on errors.
func (c *caller) startEach(ctx context.Context) (*node.Result, error) {
	children, failed, err := c.prepareEach(ctx)
	if err != nil {
		return nil, err
	}
	if len(children.Runs) == 0 {
		items := make(workflow.Items, len(c.items))
		for i := range items {
			items[i] = node.ErrorItem(failed[i].Message, workflow.Paired(i))
		}
		return output(items), nil
	}
	return waiting(engine.Wait{Kind: engine.WaitChildren, Children: children}), nil
}

// prepareEach makes the children of all items; failed holds the failures of those
// that have none, by item.
func (c *caller) prepareEach(ctx context.Context) (*engine.Children, map[int]*engine.NodeError, error) {
	children := &engine.Children{}
	failed := map[int]*engine.NodeError{}
	for i := range c.items {
		run, detached, err := c.prepare(ctx, i)
		var item workflow.Item
		if err == nil {
			item, err = c.given(ctx, i, 0)
		}
		if err == nil && len(children.Runs) > 0 && detached != children.Detached {
			return nil, nil, node.OperationError(i, "The node waits for the sub-workflows of some items and not for others",
				"The option “Wait for Sub-Workflow Completion” must be the same for all items.")
		}
		if failure, ok := survivable(ctx, c.call, err); ok {
			failed[i] = failure
			continue
		}
		if err != nil {
			return nil, nil, err
		}
		run.Input = workflow.Items{item}
		children.Runs = append(children.Runs, run)
		children.Detached = detached
	}
	_, goesOn := survivable(ctx, c.call, &engine.NodeError{})
	children.Sequential, children.StopOnError = !children.Detached, !children.Detached && !goesOn
	return children, failed, nil
}

func (c *caller) endEach(ctx context.Context) (*node.Result, error) {
	children := c.call.Resumption.Children
	var failed map[int]*engine.NodeError
	if len(children) != len(c.items) {
		// Which items had no child is not kept: it follows from the same inputs.
		again, failures, err := c.prepareEach(ctx)
		if err != nil {
			return nil, err
		}
		if failed = failures; len(again.Runs) != len(children) {
			return nil, node.OperationError(-1, "The node's parameters have other values than before its sub-workflows ran",
				"Use no expressions with changing results, such as $now, where an item may fail because of them.")
		}
	}
	var out workflow.Items
	var hints []engine.Hint
	next := 0
	for i := range c.items {
		failure := failed[i]
		var child *engine.ChildResult
		if failure == nil {
			child = children[next]
			next++
			failure = childFailure(child)
		}
		if failure != nil {
			if _, ok := survivable(ctx, c.call, failure); !ok {
				return nil, eachFailure(i, failure)
			}
			item := node.ErrorItem(failure.Message, workflow.Paired(i))
			item.Metadata = link(c.call, child, true)
			out = append(out, item)
			continue
		}
		items := childItems(child)
		if child.Status == engine.StatusRunning {
			item, err := c.handedOver(ctx, i)
			if err != nil {
				return nil, err
			}
			items = workflow.Items{item}
		}
		for _, item := range items {
			item.PairedItem, item.Metadata = workflow.Paired(i), link(c.call, child, false)
			out = append(out, item)
		}
		if hints == nil {
			hints = lostOutputs(child)
		}
	}
	result := output(out)
	result.Hints = hints
	return result, nil
}

// eachFailure is n8n's error of a child that was started for one of several items:
// it says which, and the child's own message is the description.
func eachFailure(item int, failure *engine.NodeError) *engine.NodeError {
	named := *failure
	named.Message = fmt.Sprintf("Error executing workflow with item at index %d", item)
	named.Description = failure.Message
	named.ItemIndex = &item
	return &named
}

// prepare finds the workflow to start for an item.
func (c *caller) prepare(ctx context.Context, item int) (run engine.ChildRun, detached bool, err error) {
	waits, err := c.call.Bool(ctx, item, "options.waitForSubWorkflow", true)
	if err != nil {
		return run, false, err
	}
	run, err = c.find(ctx, item, executeSources...)
	return run, !waits, err
}

// given is what the child gets for an item, as its item number index.
func (c *caller) given(ctx context.Context, i, index int) (workflow.Item, error) {
	if c.inputs.passes() {
		return childItem(c.items[i].JSON, c.items[i].Binary, index), nil
	}
	o, err := c.inputs.over(ctx, i, jsonobject.Parse(c.items[i].JSON))
	if err != nil {
		return workflow.Item{}, err
	}
	return childItem(c.inputs.asked(o).JSON(), c.items[i].Binary, index), nil
}

// handedOver is what is given out for an item whose child is not awaited.
func (c *caller) handedOver(ctx context.Context, i int) (workflow.Item, error) {
	if c.inputs.passes() {
		return childItem(c.items[i].JSON, c.items[i].Binary, i), nil
	}
	o, err := c.inputs.over(ctx, i, jsonobject.Parse(c.items[i].JSON))
	return childItem(o.JSON(), c.items[i].Binary, i), err
}
