package coordinator

import (
	"context"
	"errors"
	"fmt"
	"time"

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
	weight  int64  // the bytes that it counts for in its lane's cache
	// current: it was loaded for the group at hand, so no other coordinator's
	// commit is missing.
	current bool

	// place that it has, or waits for, among the unfinished executions of its workflow; nil for none.
	place *place

	steps  engine.Step // merged
	memory []memoryAppend
	dirty  bool
	// republish: publish all open jobs and start all children, not only new ones.
	republish bool
	// swept: the sweeper asks, so what others were to be told is told again.
	swept bool
	// quiet: nothing is missing, so the sweeper need not come again soon.
	quiet bool
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

// refusedError is the engine's refusal of an event; nothing was changed, and it
// would be refused again.
type refusedError struct{ error }

func (e *refusedError) Unwrap() error { return e.error }

// apply applies an event and, as long as the engine asks for nodes that the
// coordinator runs itself, their results.
func (x *execution) apply(c *Coordinator, ev engine.Event) error {
	events := []engine.Event{ev}
	for inline := 0; len(events) > 0; events = events[1:] {
		step, err := x.program.machine.Apply(x.state, events[0])
		if err != nil {
			return &refusedError{err}
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
			result, err := c.runner.RunPlan(context.Background(), c.buildJob(x.program, x.state, &job), n.plan, x.state)
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
	x.steps.Children = append(x.steps.Children, step.Children...)
	x.steps.Orphans = append(x.steps.Orphans, step.Orphans...)
	x.steps.Questions = append(x.steps.Questions, step.Questions...)
	x.steps.Live = append(x.steps.Live, step.Live...)
	x.steps.Done = x.steps.Done || step.Done
}

// commit is what the store has to write.
func (x *execution) commit(c *Coordinator, now int64) state.Commit {
	meta := &x.state.Meta
	commit := state.Commit{
		Execution: x.id, Version: x.version, Token: c.token(),
		Changes: x.steps.Changes, Timers: x.steps.Timers, Questions: x.steps.Questions,
		Status: meta.Status, Finished: meta.Status.Finished(), At: now,
		WorkflowID: meta.WorkflowID, WorkflowName: meta.WorkflowName,
		StartedAt: meta.StartedAt, StoppedAt: meta.StoppedAt,
		Unsettled: meta.Status.Finished() && x.owes(), Quiet: x.foundNothing(),
		NextSweep: now + c.config.SweepAfter.Milliseconds(),
	}
	switch {
	case meta.Status == engine.StatusNew:
		commit.NextSweep = now + queuedSweep.Milliseconds()
	case x.idle():
		commit.NextSweep = now + idleSweep.Milliseconds()
	}
	return commit
}

// foundNothing reports whether the execution was begun to look for something new, and there
// was nothing: then no node has left a record, and as in n8n nobody is to see that it was there.
func (x *execution) foundNothing() bool {
	if x.state.Meta.Mode != modeTrigger || x.state.Meta.Status != engine.StatusSuccess {
		return false
	}
	for _, runs := range x.state.Run {
		for _, record := range runs {
			if record != nil {
				return false
			}
		}
	}
	return true
}

// idleSweep is when the sweeper looks at an execution that only waits for a
// moment, a call or a person: what that is needs no sweeper.
const idleSweep = 24 * time.Hour

// idle reports whether everything that the execution waits for comes by itself: its
// turn, or when it has begun: it has no job, and no child or orphan that others may not have heard of.
func (x *execution) idle() bool {
	if x.state.Meta.Status == engine.StatusNew {
		return true
	}
	if x.state.Meta.Status != engine.StatusWaiting || len(x.state.Jobs) > 0 {
		return false
	}
	if x.quiet && len(x.steps.Changes) == 0 {
		return true
	}
	return len(x.state.Meta.Orphans) == 0 && len(x.state.Outstanding()) == 0
}

// committed forgets what was written and returns the jobs to publish. repeated
// tells that they may be on the stream already, or even be answered by now.
func (x *execution) committed(log *zap.Logger) (jobs []engine.Job, repeated bool, step engine.Step) {
	if x.dirty {
		x.version++
	}
	step = x.steps
	if x.republish {
		for _, open := range x.state.JobsInOrder() {
			if open.RetryAt == 0 {
				jobs = append(jobs, open.Job)
			}
		}
		if len(jobs) > 0 {
			log.Debug("open jobs are published again", zap.String("execution_id", string(x.id)), zap.Int("jobs", len(jobs)))
		}
		step.Children = x.state.Outstanding()
	} else {
		for _, job := range step.Jobs {
			if open := x.state.Jobs[job.ID]; open != nil { // not settled by a later event of the same group
				jobs = append(jobs, job)
			}
		}
	}
	repeated = x.republish
	x.steps, x.memory, x.republish, x.dirty, x.current = engine.Step{}, nil, false, false, false
	x.swept, x.quiet = false, false
	return jobs, repeated, step
}
