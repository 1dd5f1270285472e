package coordinator

import (
	"context"
	"errors"
	"fmt"

	"go.uber.org/zap"

	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/node"
	"github.com/reprise-engine/reprise/pkg/state"
)

// execution is one execution in a lane's memory, and what has been applied to
// it since its last commit.
type execution struct {
	id      engine.ExecutionID
	program *program
	state   *engine.State
	version uint64 // of the stored form; 0 when it was never committed
	used    int64  // when it was last needed, milliseconds
	// current: it was loaded for the group at hand, so no other coordinator's
	// commit is missing.
	current bool

	steps     engine.Step // merged
	memory    []memoryAppend
	republish bool // publish all open jobs, not only new ones
	dirty     bool
}

// memoryAppend is a conversation's growth, to be stored before the commit that
// makes the result count.
type memoryAppend struct {
	id string
	node.MemoryAppend
}

// errStale says that an event seems late or repeated to a state that may lack
// another coordinator's commits, so it must be looked at again on what is stored.
var errStale = errors.New("state in memory may be stale")

// apply applies an event and, as long as the engine asks for nodes that the
// coordinator runs itself, their results.
func (x *execution) apply(c *Coordinator, ev engine.Event) error {
	events := []engine.Event{ev}
	for inline := 0; len(events) > 0; events = events[1:] {
		step, err := x.program.machine.Apply(x.state, events[0])
		if err != nil {
			return fmt.Errorf("apply %T to execution %s: %w", events[0], x.id, err)
		}
		if step.Ignored {
			if !x.current {
				return errStale
			}
			x.republish = true // whoever repeats an event may have missed what followed from it
			continue
		}
		x.merge(&step)
		for _, job := range step.Jobs {
			n := x.program.nodes[job.Entry.Node]
			if !n.inline || inline >= maxInline {
				x.steps.Jobs = append(x.steps.Jobs, job)
				continue
			}
			inline++
			result, err := c.runner.RunPlan(context.Background(), buildJob(x.program, x.state, &job, c.config.ID), n.plan, x.state)
			if err != nil {
				return fmt.Errorf("run node %q of execution %s: %w", job.Entry.Node, x.id, err)
			}
			events = append(events, engine.NodeFinished{At: c.now(), Job: job.ID, Result: result.Result})
		}
	}
	return nil
}

// merge adds a step to what the next commit writes. Jobs are added by the caller.
func (x *execution) merge(step *engine.Step) {
	x.dirty = true
	x.steps.Changes = append(x.steps.Changes, step.Changes...)
	x.steps.Timers = append(x.steps.Timers, step.Timers...)
	x.steps.Dropped = append(x.steps.Dropped, step.Dropped...)
	x.steps.Live = append(x.steps.Live, step.Live...)
	x.steps.Done = x.steps.Done || step.Done
}

// commit is what the store has to write.
func (x *execution) commit(c *Coordinator, now int64) state.Commit {
	meta := &x.state.Meta
	return state.Commit{
		Execution: x.id, Version: x.version, Token: c.token(),
		Changes: x.steps.Changes, Timers: x.steps.Timers,
		Status: meta.Status, Finished: meta.Status.Finished(), At: now,
		WorkflowID: meta.WorkflowID, WorkflowName: meta.WorkflowName,
		StartedAt: meta.StartedAt, StoppedAt: meta.StoppedAt,
		NextSweep: now + c.config.SweepAfter.Milliseconds(),
	}
}

// committed forgets what was written and returns the jobs to publish. repeated
// tells that they may be on the stream already, or even be answered by now.
func (x *execution) committed(log *zap.Logger) (jobs []engine.Job, repeated bool, step engine.Step) {
	if x.dirty {
		x.version++
	}
	step = x.steps
	if x.republish {
		for _, open := range x.state.Jobs {
			if open.RetryAt == 0 {
				jobs = append(jobs, open.Job)
			}
		}
		if len(jobs) > 0 {
			log.Debug("open jobs are published again", zap.String("execution_id", string(x.id)), zap.Int("jobs", len(jobs)))
		}
	} else {
		for _, job := range step.Jobs {
			if open := x.state.Jobs[job.ID]; open != nil { // not settled by a later event of the same group
				jobs = append(jobs, job)
			}
		}
	}
	repeated = x.republish
	x.steps, x.memory, x.republish, x.dirty, x.current = engine.Step{}, nil, false, false, false
	return jobs, repeated, step
}
