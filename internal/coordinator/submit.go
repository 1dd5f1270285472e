package coordinator

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"go.uber.org/zap"

	"github.com/reprise-engine/reprise/internal/telemetry"
	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/queue"
	"github.com/reprise-engine/reprise/pkg/state"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// Submit creates an execution and calls answer once, when it is stored: with
// its id, or with what is wrong. A submission with the id of an execution that
// exists is answered like the first one, so it can be repeated.
func (c *Coordinator) Submit(ctx context.Context, sub *queue.Submission, answer func(engine.ExecutionID, *queue.Problem)) {
	answer = c.observeSubmission(answer)
	if problem := c.overloaded(sub.ID); problem != nil {
		answer("", problem)
		return
	}
	p, problem := c.prepare(ctx, sub)
	var partial *engine.Partial
	if problem == nil && sub.RunData != nil {
		partial, problem = planPartial(p, sub)
	}
	if problem != nil {
		answer("", problem)
		return
	}
	id := sub.ID
	if id == "" {
		id = engine.ExecutionID(uuid.NewString())
	}
	mode := sub.Mode
	if mode == "" {
		mode = modeTrigger
	}
	meta := engine.Meta{
		ID: id, Mode: mode, WorkflowHash: p.workflow.Hash,
		WorkflowID: p.workflow.ID, WorkflowName: p.workflow.Name,
		Priority: p.priority(sub.Priority), Tenant: sub.Tenant, TraceParent: telemetry.TraceParent(sub.TraceParent),
	}
	if sub.WorkflowID != "" {
		meta.WorkflowID = sub.WorkflowID
	}
	started := engine.Started{Start: sub.Start, Input: sub.Input, Destination: sub.Destination, Partial: partial}
	c.create(p, meta, started, func(err error) {
		if err != nil && !errors.Is(err, state.ErrExists) {
			answer("", problemOf(err))
			return
		}
		answer(id, nil)
	})
}

// create stores a new execution that begins with ev, a Started or Retried without its
// time. finish is told once, by a lane: nil, state.ErrExists, a *refusedError,
// or why it could not be done now.
func (c *Coordinator) create(p *program, meta engine.Meta, ev engine.Event, finish func(error)) {
	if limit := c.concurrency(p); limit > 0 {
		c.createInGate(p, meta, ev, limit, finish)
		return
	}
	c.store(p, meta, ev, nil, finish)
}

// store is create for an execution whose place is known; nil when it needs none.
func (c *Coordinator) store(p *program, meta engine.Meta, ev engine.Event, place *place, finish func(error)) {
	exists := false
	c.hand(&work{
		id:     meta.ID,
		create: func() (*program, *engine.State) { return p, engine.NewState(meta) },
		handle: func(x *execution) error {
			exists = x.version == 0 && x.dirty
			switch {
			case x.version > 0:
				return state.ErrExists
			case exists: // the one before in the group makes it: it exists if that is stored
				return nil
			}
			x.keepPlace(place)
			if place.queued() {
				return x.enqueue(c, ev)
			}
			switch ev := ev.(type) {
			case engine.Started:
				ev.At = c.now()
				if err := x.apply(c, ev); err != nil {
					return err
				}
				x.keepInput(c, ev)
			case engine.Retried:
				ev.At = c.now()
				return x.apply(c, ev)
			}
			return nil
		},
		finish: func(err error) {
			if err == nil && exists {
				err = state.ErrExists
			}
			switch {
			case err == nil && place.queued():
				c.log.Info("execution waits for its turn", zap.String("execution_id", string(meta.ID)), zap.String("workflow", meta.WorkflowName),
					zap.Int("position", place.position))
			case err == nil:
				c.observeStart()
				c.log.Info("execution started", zap.String("execution_id", string(meta.ID)), zap.String("workflow", meta.WorkflowName),
					zap.String("mode", meta.Mode))
			}
			finish(err)
		},
	})
}

// prepare checks a submission and makes its workflow ready. The document is
// stored before an execution refers to it.
func (c *Coordinator) prepare(ctx context.Context, sub *queue.Submission) (*program, *queue.Problem) {
	if sub.Version > queue.Version {
		return nil, &queue.Problem{Code: queue.CodeVersion, Message: fmt.Sprintf("submission has version %d, this coordinator knows %d: upgrade the coordinators first", sub.Version, queue.Version)}
	}
	if sub.ID != "" {
		if err := ValidID(sub.ID); err != nil {
			return nil, badRequest("%v", err)
		}
	}
	if problem := checkPriority(sub); problem != nil {
		return nil, problem
	}
	for i, item := range sub.Input {
		if trimmed := item.JSON; len(trimmed) > 0 && trimmed[0] != '{' {
			return nil, badRequest("input item %d: json must be an object", i)
		}
	}
	var p *program
	var problem *queue.Problem
	switch {
	case len(sub.Workflow) > 0:
		p, problem = c.document(ctx, sub.Workflow, sub.Start, sub.Destination)
	case sub.WorkflowHash != "":
		p, problem = c.stored(ctx, sub.WorkflowHash)
	case sub.WorkflowID != "":
		p, problem = c.latest(ctx, sub.WorkflowID)
	default:
		problem = badRequest("submission without workflow: give the document in \"workflow\", or the hash of a stored one in \"workflowHash\", or its id in \"workflowId\"")
	}
	if problem != nil {
		return nil, problem
	}
	if sub.Start != "" && p.workflow.Node(sub.Start) == nil {
		return nil, badRequest("the workflow has no node %q to start from", sub.Start)
	}
	if d := sub.Destination; d != nil && p.workflow.Node(d.Node) == nil {
		return nil, badRequest("the workflow has no node %q to run up to", d.Node)
	}
	return p, nil
}

// planPartial decides what a submission with run data begins with.
func planPartial(p *program, sub *queue.Submission) (*engine.Partial, *queue.Problem) {
	if sub.Destination == nil {
		return nil, badRequest("a submission with \"runData\" needs a \"destination\", the node to run up to")
	}
	partial, err := p.machine.PlanPartial(*sub.Destination, sub.RunData)
	if err != nil {
		return nil, badRequest("%v", err)
	}
	return partial, nil
}

// document makes a workflow ready that came as a document. Documents that came
// before are known by their bytes and not read again.
//
// What is wrong with nodes that a run up to a node does not reach does not matter;
// to is nil for a run of the whole.
func (c *Coordinator) document(ctx context.Context, document []byte, start string, to *engine.Destination) (*program, *queue.Problem) {
	bytes := fingerprint(document)
	if p := c.documents.get(bytes); p != nil && start == "" {
		return p, nil
	}
	w, err := workflow.Parse(document)
	if err != nil {
		return nil, &queue.Problem{Code: queue.CodeInvalidWorkflow, Message: err.Error()}
	}
	problems := workflow.ValidateStart(w, c.config.Registry, start)
	if to != nil && problems.Err() != nil {
		problems = workflow.ValidateUpTo(w, c.config.Registry, start, to.Node, to.Exclusive)
	}
	if problems.Err() != nil {
		return nil, invalidWorkflow(problems)
	}
	p := c.programs.get(w.Hash)
	if p == nil {
		if p, err = compile(w, c.config.Registry, c.config.Limits); err != nil {
			return nil, &queue.Problem{Code: queue.CodeInvalidWorkflow, Message: err.Error()}
		}
		if err := c.config.Store.PutWorkflow(ctx, w.Hash, w.Raw); err != nil {
			return nil, problemOf(fmt.Errorf("store workflow: %w", err))
		}
		c.programs.put(w.Hash, p)
	}
	if start == "" && to == nil {
		c.documents.put(bytes, p)
	}
	return p, nil
}

// fingerprint tells documents apart by their bytes; their layout counts, unlike
// in workflow.Workflow.Hash.
func fingerprint(document []byte) string {
	sum := sha256.Sum256(document)
	return string(sum[:])
}

func badRequest(format string, args ...any) *queue.Problem {
	return &queue.Problem{Code: queue.CodeBadRequest, Message: fmt.Sprintf(format, args...)}
}

func conflict(format string, args ...any) *queue.Problem {
	return &queue.Problem{Code: queue.CodeConflict, Message: fmt.Sprintf(format, args...)}
}

func invalidWorkflow(problems workflow.Problems) *queue.Problem {
	p := &queue.Problem{Code: queue.CodeInvalidWorkflow, Message: problems.Err().Error()}
	for _, one := range problems {
		p.Details = append(p.Details, one.String())
	}
	return p
}

// problemOf is the API's form of an error of the infrastructure, or of the
// engine's refusal.
func problemOf(err error) *queue.Problem {
	var problem *queue.Problem
	if errors.As(err, &problem) {
		return problem
	}
	code, retryAfter := queue.CodeUnavailable, time.Duration(0)
	refused := (*refusedError)(nil)
	switch {
	case errors.As(err, &refused):
		code = queue.CodeBadRequest
	case errors.Is(err, errNotFound) || errors.Is(err, state.ErrNotFound):
		code = queue.CodeNotFound
	case errors.Is(err, state.ErrFilter):
		code = queue.CodeBadRequest
	case errors.Is(err, state.ErrFull):
		code, retryAfter = queue.CodeFull, retryFull
	}
	return &queue.Problem{Code: code, Message: err.Error(), RetryAfter: retryAfter.Milliseconds()}
}
