package coordinator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/google/uuid"

	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/queue"
	"github.com/reprise-engine/reprise/pkg/state"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// retry runs an execution again as a new one: a failed one from where it broke
// off, any from its start; on the document it had or on the latest.
func (c *Coordinator) retry(ctx context.Context, r *queue.RetryRequest) (*queue.SubmitAnswer, error) {
	id := r.NewID
	if id == "" {
		id = engine.ExecutionID(uuid.NewString())
	}
	if err := ValidID(id); err != nil {
		return nil, badRequest("%v", err)
	}
	if id == r.ID {
		return nil, badRequest("the new execution needs another id than %s", r.ID)
	}
	if problem := c.overloaded(id); problem != nil {
		return nil, problem
	}
	from, input, err := c.lookInput(ctx, r.ID)
	if err != nil {
		return nil, err
	}
	if problem := retryable(from, r); problem != nil {
		return nil, problem
	}
	p, problem := c.retryProgram(ctx, from, r)
	if problem != nil {
		return nil, problem
	}
	var ev engine.Event = engine.Retried{From: from}
	if r.FromStart {
		started, problem := again(from, input, p)
		if problem != nil {
			return nil, problem
		}
		ev = started
	} else if problem := namesNodes(from, p.workflow); problem != nil {
		return nil, problem
	}
	meta := engine.Meta{
		ID: id, Mode: modeRetry, RetryOf: r.ID, WorkflowHash: p.workflow.Hash,
		WorkflowID: from.Meta.WorkflowID, WorkflowName: p.workflow.Name,
		Priority: from.Meta.Priority, Tenant: from.Meta.Tenant,
	}
	done := make(chan error, 1)
	c.create(p, meta, ev, func(err error) { done <- err })
	select {
	case err = <-done:
	case <-ctx.Done():
		return nil, problemOf(ctx.Err())
	}
	if errors.Is(err, state.ErrExists) {
		// The same request again, or an id that is taken?
		var s *engine.State
		if s, err = c.lookOpen(ctx, id); err == nil && s.Meta.RetryOf != r.ID {
			err = conflict("the id %s is taken by an execution that is no retry of %s", id, r.ID)
		}
	}
	if err != nil {
		return nil, problemOf(err)
	}
	return &queue.SubmitAnswer{ID: id}, nil
}

// retryable says what stands against running an execution again.
func retryable(from *engine.State, r *queue.RetryRequest) *queue.Problem {
	switch status := from.Meta.Status; {
	case !status.Finished():
		return conflict("execution %s is not over (%s): cancel it first, or wait for its end", r.ID, status)
	case r.FromStart || status == engine.StatusError:
		return nil
	case status == engine.StatusCanceled:
		return conflict("execution %s was cancelled and keeps nothing to go on from: run it again from the start", r.ID)
	default:
		return conflict("execution %s ended well, so there is nothing to go on from: run it again from the start", r.ID)
	}
}

// retryProgram is the workflow that a retry runs.
func (c *Coordinator) retryProgram(ctx context.Context, from *engine.State, r *queue.RetryRequest) (*program, *queue.Problem) {
	if !r.Latest {
		return c.stored(ctx, from.Meta.WorkflowHash)
	}
	if from.Meta.WorkflowID == "" {
		return nil, conflict("the workflow of execution %s has no id, so there is no latest form of it", r.ID)
	}
	return c.latest(ctx, from.Meta.WorkflowID)
}

// namesNodes checks that a workflow has all the nodes that a failed execution is to
// go on with.
func namesNodes(from *engine.State, w *workflow.Workflow) *queue.Problem {
	missing := map[string]bool{}
	need := func(name string) {
		if w.Node(name) == nil {
			missing[name] = true
		}
	}
	for _, e := range from.Stack {
		need(e.Node)
	}
	for caller, rounds := range from.Rounds {
		need(caller.Node)
		for _, round := range rounds {
			for i := range round.Calls {
				need(round.Calls[i].Action.NodeName)
			}
		}
	}
	for name := range from.Joins {
		need(name)
	}
	for name := range missing {
		return conflict("the latest workflow has no node %q any more, which execution %s is to go on with (%d such nodes): "+
			"run it again from the start, or on the document it had", name, from.Meta.ID, len(missing))
	}
	return nil
}

// again is the event that begins an execution like an earlier one: at the same
// node, with the same input.
func again(from *engine.State, kept *keptInput, p *program) (engine.Started, *queue.Problem) {
	ev := engine.Started{Destination: from.Meta.Destination}
	if kept != nil {
		ev.Start, ev.Input = kept.Start, kept.Input
	} else if name, first := firstRecord(from); first != nil {
		ev.Start = name
		n := p.workflow.Node(name)
		if outputs := first.Data[workflow.Main]; len(outputs) > 0 && n != nil && p.trigger(n) {
			ev.Input = outputs[0] // a trigger's output is its input
		}
	}
	if ev.Start != "" && p.workflow.Node(ev.Start) == nil {
		return ev, conflict("the latest workflow has no node %q any more, where execution %s began", ev.Start, from.Meta.ID)
	}
	if d := ev.Destination; d != nil && p.workflow.Node(d.Node) == nil {
		return ev, conflict("the latest workflow has no node %q any more, up to which execution %s ran", d.Node, from.Meta.ID)
	}
	return ev, nil
}

// firstRecord is the record that an execution began with.
func firstRecord(s *engine.State) (name string, first *engine.Record) {
	for node, runs := range s.Run {
		for _, record := range runs {
			if record != nil && len(record.Source) == 0 && (first == nil || record.ExecutionIndex < first.ExecutionIndex) {
				name, first = node, record
			}
		}
	}
	return name, first
}

// fieldInput of the meta table holds the input of an execution that began at a
// node which is no trigger: no record shows it.
const fieldInput = "input"

// keptInput is how an execution began.
type keptInput struct {
	Start string         `json:"start"`
	Input workflow.Items `json:"input"`
}

// keepInput stores how the execution begins if its records will not tell.
func (x *execution) keepInput(c *Coordinator, ev engine.Started) {
	if ev.Partial != nil || len(ev.Input) == 0 {
		return
	}
	n := x.program.workflow.Node(ev.Start)
	if ev.Start == "" {
		n, _ = x.program.workflow.Start(c.config.Registry) // the engine has started it
	}
	if n == nil || x.program.trigger(n) {
		return
	}
	value, err := json.Marshal(keptInput{Start: n.Name, Input: ev.Input})
	if err != nil {
		return // the engine has refused such an input already
	}
	x.steps.Changes = append(x.steps.Changes, engine.Change{Table: engine.TableMeta, Field: fieldInput, Value: value})
}

// lookInput is look with how the execution began, as far as that is stored.
func (c *Coordinator) lookInput(ctx context.Context, id engine.ExecutionID) (*engine.State, *keptInput, error) {
	s, stored, err := c.storedState(ctx, id, c.config.Store.Load)
	if err != nil {
		return nil, nil, err
	}
	value := stored.Tables[engine.TableMeta][fieldInput]
	if value == nil {
		return s, nil, nil
	}
	kept := &keptInput{}
	if err := json.Unmarshal(value, kept); err != nil {
		return nil, nil, &queue.Problem{Code: queue.CodeInternal, Message: fmt.Sprintf("input of execution %s: %v", id, err)}
	}
	return s, kept, nil
}
