package ai

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/tidwall/gjson"

	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/node"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// Agent is the AI Agent. All versions run the same loop; see the package comment. As a tool of another Agent it runs
// like any tool and makes requests of its own.
func Agent() *node.Type {
	return &node.Type{
		Spec: workflow.Spec{
			Type:     family + "agent",
			Versions: []float64{1, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.7, 1.8, 1.9, 2, 2.1, 2.2, 3, 3.1},
			SubNodes: map[string]string{workflow.LanguageModel: "Chat Model"},
			Accepts:  []string{workflow.Memory, workflow.Tool, workflow.OutputParser},
		},
		// A slice only asks models; what its tools do is in runs of their own.
		Execute: executeAgent,
	}
}

// agentRun is one slice of an Agent's run.
type agentRun struct {
	call   *node.Call
	models *models
	box    *toolbox
	memory *windowMemory     // nil: none
	parser *structuredParser // nil: none
	items  []*agentItem
}

func executeAgent(ctx context.Context, call *node.Call) (*node.Result, error) {
	if kind := gjson.GetBytes(call.Node.Parameters, "agent").Str; kind == "sqlAgent" {
		return nil, operationError("The SQL agent is not supported", "Use a Tools Agent with a tool that queries the database.")
	}
	if len(call.Inputs) == 0 || len(call.Inputs[0]) == 0 {
		return &node.Result{Result: engine.Result{Outputs: []workflow.Items{{}}}}, nil
	}
	run, err := openAgent(ctx, call)
	if err != nil {
		return nil, err
	}
	if err := run.replay(); err != nil {
		return nil, err
	}
	if run.approvals() {
		return run.result()
	}
	if err := run.ask(ctx); err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return run.failed(err), nil
	}
	return run.result()
}

func openAgent(ctx context.Context, call *node.Call) (*agentRun, error) {
	run := &agentRun{call: call}
	var err error
	if run.models, err = findModels(ctx, call); err != nil {
		return nil, err
	}
	if run.box, err = openToolbox(ctx, call); err != nil {
		return nil, err
	}
	if run.memory, err = findMemory(call); err != nil {
		return nil, err
	}
	if run.parser, err = findParser(ctx, call); err != nil {
		return nil, err
	}
	if run.parser != nil {
		run.box.add(run.parser.tool())
	}
	for i := range call.Inputs[0] {
		run.items = append(run.items, &agentItem{run: run, index: i})
	}
	return run, nil
}

// ask continues the items that are not finished, batch by batch, those of a
// batch at the same time. The first failure ends it after its batch, unless
// the node goes on after errors.
func (r *agentRun) ask(ctx context.Context) error {
	size, _, err := number(ctx, r.call, 0, "options.batching.batchSize")
	if err != nil {
		return err
	}
	delay, _, err := number(ctx, r.call, 0, "options.batching.delayBetweenBatches")
	if err != nil {
		return err
	}
	batch := max(1, int(size))
	asked := false
	for first := 0; first < len(r.items); first += batch {
		open := unfinished(r.items[first:min(first+batch, len(r.items))])
		if len(open) == 0 {
			continue
		}
		if asked && delay > 0 {
			if err := pause(ctx, time.Duration(delay)*time.Millisecond); err != nil {
				return err
			}
		}
		asked = true
		if err := r.askBatch(ctx, open); err != nil {
			return err
		}
	}
	return nil
}

func unfinished(items []*agentItem) []*agentItem {
	var open []*agentItem
	for _, item := range items {
		if item.final == nil {
			open = append(open, item)
		}
	}
	return open
}

func (r *agentRun) askBatch(ctx context.Context, batch []*agentItem) error {
	failures := make([]error, len(batch))
	if len(batch) == 1 {
		failures[0] = batch[0].advance(ctx)
	} else {
		var wait sync.WaitGroup
		for i, item := range batch {
			wait.Go(func() { failures[i] = item.advance(ctx) })
		}
		wait.Wait()
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	for i, err := range failures {
		if err == nil {
			continue
		}
		failure := agentFailure(err, batch[i].index)
		if !r.call.Node.Continues() {
			return failure
		}
		batch[i].fail(failure)
	}
	return nil
}

// agentFailure is an item's error as the Agent's own.
func agentFailure(err error, item int) *engine.NodeError {
	var failure *engine.NodeError
	if errors.As(err, &failure) {
		copied := *failure
		failure = &copied
	} else {
		failure = &engine.NodeError{Message: err.Error()}
	}
	if failure.Name == "" {
		failure.Name = "NodeOperationError"
	}
	if failure.Message == "" || failure.Message == "Error" {
		failure.Message = "Agent execution failed"
	}
	failure.ItemIndex = &item
	return failure
}

// failed is the result of a run that an item's failure ended; what models
// and memories did is kept.
func (r *agentRun) failed(err error) *node.Result {
	var failure *engine.NodeError
	if !errors.As(err, &failure) {
		failure = operationError(err.Error(), "")
	}
	return &node.Result{Result: engine.Result{Error: failure, SubRuns: r.subRuns()}}
}

func (r *agentRun) subRuns() []engine.SubRun {
	var all []engine.SubRun
	for _, item := range r.items {
		all = append(all, item.runs...)
	}
	return all
}

// result is a request when any item waits for tools, else the items.
func (r *agentRun) result() (*node.Result, error) {
	result := &node.Result{Result: engine.Result{SubRuns: r.subRuns()}}
	if r.memory != nil {
		result.Memory = r.memory.appended
	}
	request, err := r.request()
	if err != nil {
		return nil, fmt.Errorf("write the agent's state: %w", err)
	}
	if request != nil {
		result.Request = request
		return result, nil
	}
	output := make(workflow.Items, len(r.items))
	for i, item := range r.items {
		output[i] = workflow.Item{JSON: item.final.JSON, PairedItem: workflow.Paired(i)}
	}
	result.Outputs = []workflow.Items{output}
	return result, nil
}

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// field is a field of an input item.
func field(call *node.Call, item int, name string) gjson.Result {
	if len(call.Inputs) == 0 || item >= len(call.Inputs[0]) {
		return gjson.Result{}
	}
	return gjson.GetBytes(call.Inputs[0][item].JSON, gjson.Escape(name))
}
