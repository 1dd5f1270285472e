package coordinator

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"go.uber.org/zap"

	"github.com/reprise-engine/reprise/internal/failpoint"
	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/nodes/flow"
	"github.com/reprise-engine/reprise/pkg/queue"
	"github.com/reprise-engine/reprise/pkg/state"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// The modes of executions that others start, in n8n's words, and of those that
// nobody says another of.
const (
	modeChild   = "integrated"
	modeError   = "error"
	modeRetry   = "retry"
	modeTrigger = "trigger"
)

const (
	childTrigger = "n8n-nodes-base.executeWorkflowTrigger"
	errorTrigger = "n8n-nodes-base.errorTrigger"
)

// slowStart is from when on the start of a child may have been overtaken by its
// parent's end. Whoever cancels a child that is not there waits longer than this
// for it to come (see cancelOrphan).
const slowStart = 2000 // milliseconds

// startChild creates the execution that a parked run waits for. A child that
// cannot be created is one that failed: the parent hears why. since is when the
// parent asked for it.
func (c *Coordinator) startChild(x *execution, child engine.ChildStart, since int64, swept bool) errand {
	parent := &engine.Parent{
		Execution: x.id, WorkflowID: x.state.Meta.WorkflowID, Token: child.Token, Index: child.Index, Detached: child.Detached,
	}
	failed := func(r *errandRun, last bool, why *engine.NodeError, done func(error)) {
		c.log.Info("child execution cannot be started", zap.String("execution_id", string(x.id)), zap.String("workflow_id", child.WorkflowID),
			zap.String("reason", why.Message))
		c.tellParent(parent, engine.ChildResult{WorkflowID: child.WorkflowID, Status: engine.StatusError, Error: why})(r, last, done)
	}
	return func(r *errandRun, last bool, done func(error)) {
		failpoint.Hit("before-start-child")
		p, id, problem := r.childProgram(child)
		switch {
		case problem == nil:
		case problem.Code == queue.CodeUnavailable || problem.Code == queue.CodeFull || problem.Code == queue.CodeInternal:
			done(problem)
			return
		default:
			failed(r, last, childError(child, problem), done)
			return
		}
		start, input := "", child.Input
		if n := enabled(p.workflow, childTrigger); n != nil {
			var err error
			if input, err = flow.Received(n, input); err != nil {
				failed(r, last, &engine.NodeError{Message: err.Error(), NotRetryable: true}, done)
				return
			}
			start = n.Name
		}
		meta := engine.Meta{
			ID: child.Execution, Mode: modeChild, WorkflowHash: p.workflow.Hash, WorkflowID: id, WorkflowName: p.workflow.Name,
			Parent: parent, Root: child.Root, Depth: child.Depth,
			Priority: x.state.Meta.Priority, Tenant: x.state.Meta.Tenant,
		}
		// Called by the lane, which must not wait for a lane, its own included.
		c.create(p, meta, engine.Started{Start: start, Input: input}, func(err error) {
			failpoint.Hit("after-start-child")
			refused := (*refusedError)(nil)
			switch {
			case errors.As(err, &refused):
				c.wg.Go(func() { failed(r, last, &engine.NodeError{Message: refused.Error(), NotRetryable: true}, done) })
			case err != nil && !errors.Is(err, state.ErrExists):
				done(fmt.Errorf("start child %s: %w", child.Execution, err))
			case child.Detached:
				stored := engine.ChildResult{Execution: child.Execution, WorkflowID: id, Status: engine.StatusRunning}
				c.wg.Go(func() { c.tellParent(parent, stored)(r, last, done) })
			case swept && err != nil:
				c.wg.Go(func() { c.remindChild(child.Execution, done) })
			case c.now()-since > slowStart:
				c.wg.Go(func() { c.checkChild(parent, child.Execution, done) })
			default:
				done(nil)
			}
		})
	}
}

// childProgram is the workflow of a child, and the id it is known by.
func (r *errandRun) childProgram(child engine.ChildStart) (p *program, id string, problem *queue.Problem) {
	ctx, cancel := context.WithTimeout(r.c.ctx, storeTimeout)
	defer cancel()
	if len(child.Workflow) > 0 {
		p, problem = r.c.document(ctx, child.Workflow, "", nil)
		if problem != nil {
			return nil, "", problem
		}
		return p, p.workflow.ID, nil
	}
	found := r.lookUp(ctx, child.WorkflowID)
	return found.program, child.WorkflowID, found.problem
}

// named is a stored workflow, or why there is none.
type named struct {
	program *program
	problem *queue.Problem
}

// lookUp finds a stored workflow by its id. It is called by one goroutine.
func (r *errandRun) lookUp(ctx context.Context, id string) *named {
	found := r.named[id]
	if found == nil {
		found = &named{}
		found.program, found.problem = r.c.latest(ctx, id)
		r.named[id] = found
	}
	return found
}

// childError is what a node is told whose workflow cannot be run.
func childError(child engine.ChildStart, problem *queue.Problem) *engine.NodeError {
	why := &engine.NodeError{Message: problem.Message, NotRetryable: true}
	if problem.Code == queue.CodeNotFound {
		why.Message = "Workflow is not active and cannot be executed." // n8n's words for one that it cannot start
		why.Description = fmt.Sprintf("No workflow with the id %q is stored. Store it with `reprise workflows put FILE`, or give its folder with --workflows DIR.", child.WorkflowID)
	} else if len(problem.Details) > 0 {
		why.Message = "The workflow to be executed is not valid."
		why.Description = strings.Join(problem.Details, "\n")
	}
	return why
}

// enabled finds the first enabled node of a type.
func enabled(w *workflow.Workflow, nodeType string) *workflow.Node {
	for _, n := range w.Nodes {
		if n.Type == nodeType && !n.Disabled {
			return n
		}
	}
	return nil
}

// childResult is what an execution that is over gives to its parent.
func childResult(s *engine.State) engine.ChildResult {
	outputs, err := s.Outcome()
	return engine.ChildResult{
		Execution: s.Meta.ID, WorkflowID: s.Meta.WorkflowID, Status: s.Meta.Status, Outputs: outputs, Error: err,
	}
}

// tellParent brings a child's result to the run that waits for it. One that does
// not wait any more, or is gone, needs none.
func (c *Coordinator) tellParent(parent *engine.Parent, result engine.ChildResult) errand {
	return func(_ *errandRun, _ bool, done func(error)) {
		failpoint.Hit("before-tell-parent")
		c.hand(&work{
			id: parent.Execution,
			handle: func(x *execution) error {
				return x.apply(c, engine.ChildFinished{At: c.now(), Token: parent.Token, Index: parent.Index, Result: result})
			},
			finish: func(err error) {
				failpoint.Hit("after-tell-parent")
				if err != nil && !errors.Is(err, errNotFound) {
					done(fmt.Errorf("tell execution %s of its child %s: %w", parent.Execution, result.Execution, err))
					return
				}
				done(nil)
			},
		})
	}
}

// remindChild has a child that was there already tell its parent again, should
// it be over.
func (c *Coordinator) remindChild(id engine.ExecutionID, done func(error)) {
	c.hand(&work{
		id: id, fresh: true,
		handle: func(x *execution) error { x.swept = x.state.Meta.Status.Finished(); return nil },
		finish: func(err error) {
			if errors.Is(err, errNotFound) {
				err = nil
			}
			done(err)
		},
	})
}

// checkChild cancels a child whose parent does not wait for it any more. The
// parent may have been cancelled before the child was there to be.
func (c *Coordinator) checkChild(parent *engine.Parent, child engine.ExecutionID, done func(error)) {
	waits := false
	c.hand(&work{
		id: parent.Execution, fresh: true,
		handle: func(x *execution) error {
			waits = started(x.state.Outstanding(), child)
			return nil
		},
		finish: func(err error) {
			switch {
			case err != nil && !errors.Is(err, errNotFound):
				done(err)
			case waits:
				done(nil)
			default:
				c.wg.Go(func() { c.cancelOrphan(child)(nil, true, done) })
			}
		},
	})
}

// reasonOrphan is in the record of an execution that nobody waits for.
const reasonOrphan = "The execution that started this one was cancelled or does not wait for it any more"

// cancelOrphan cancels an execution that was started for another and is not
// needed. One that is not there may be on its way, so it is looked for until
// the last try; whoever creates it later than that sees that it is not needed.
func (c *Coordinator) cancelOrphan(id engine.ExecutionID) errand {
	return func(_ *errandRun, last bool, done func(error)) {
		failpoint.Hit("before-cancel-orphan")
		c.hand(&work{
			id: id, fresh: true,
			handle: func(x *execution) error {
				if x.state.Meta.Status.Finished() {
					return nil
				}
				return x.apply(c, engine.CancelRequested{At: c.now(), Reason: reasonOrphan})
			},
			finish: func(err error) {
				if errors.Is(err, errNotFound) && last {
					err = nil
				}
				if err != nil {
					err = fmt.Errorf("cancel execution %s: %w", id, err)
				}
				done(err)
			},
		})
	}
}
