package coordinator

import (
	"context"
	"errors"
	"time"

	"go.uber.org/zap"

	"github.com/reprise-engine/reprise/internal/failpoint"
	"github.com/reprise-engine/reprise/pkg/engine"
)

// What an execution has to bring about in others happens after its own commit:
// start children, cancel those nobody waits for, tell the parent how it ended,
// start the error workflow, give up its place. All of it can be read from the committed state and
// done twice without harm, so the state itself is the outbox: an execution whose
// last commit owes something is stored as unsettled, and the sweeper comes back
// for it until it is settled.

// errands are what one execution has to bring about in others.
type errands struct {
	id   engine.ExecutionID
	list []errand
	// settle: the execution is over and owes nothing more when all is done.
	settle bool
	// done is called when all succeeded; may be nil.
	done func()
}

// errand is one thing to bring about. It returns soon and calls done once. last says
// that it will not be tried again here.
type errand func(r *errandRun, last bool, done func(error))

// errandRun is what the errands of one group share.
type errandRun struct {
	c *Coordinator
	// named are the workflows looked up so far, so that a hundred children of
	// one workflow are one look-up.
	named map[string]*named
}

// owes reports whether an execution that is over must still bring about
// something in others.
func (x *execution) owes() bool {
	meta := &x.state.Meta
	return meta.Parent != nil && !meta.Parent.Detached || len(meta.Orphans) > 0 || x.place != nil || x.errorWorkflow() != nil
}

// errandsOf lists what follows from a commit; nil when nothing does. With swept, all
// that may have been missed is listed again.
func (c *Coordinator) errandsOf(x *execution, step *engine.Step, swept bool) *errands {
	e := &errands{id: x.id}
	meta := &x.state.Meta
	since := c.now()
	switch {
	case meta.Status.Finished() && (step.Done || swept):
		e.settle = swept || x.owes()
		if parent := meta.Parent; parent != nil && !parent.Detached {
			e.list = append(e.list, c.tellParent(parent, childResult(x.state)))
		}
		if start := x.errorWorkflow(); start != nil {
			e.list = append(e.list, start)
		}
		for _, id := range meta.Orphans {
			if !started(step.Children, id) { // else it was never begun
				e.list = append(e.list, c.cancelOrphan(id))
			}
		}
		if x.place != nil {
			e.list = append(e.list, c.leaveGate(x))
		}
	case !meta.Status.Finished():
		orphans := step.Orphans
		if swept {
			orphans = meta.Orphans
		}
		for _, child := range step.Children {
			if !contains(orphans, child.Execution) {
				e.list = append(e.list, c.startChild(x, child, since, swept))
			}
		}
		for _, id := range orphans {
			if !started(step.Children, id) {
				e.list = append(e.list, c.cancelOrphan(id))
			}
		}
		if swept && x.place != nil {
			e.list = append(e.list, c.keepGate(x))
		}
		if swept && meta.Status == engine.StatusWaiting && len(e.list) > 0 {
			e.done = c.rest(x)
		}
	}
	if len(e.list) == 0 && !e.settle {
		return nil
	}
	return e
}

func started(children []engine.ChildStart, id engine.ExecutionID) bool {
	for i := range children {
		if children[i].Execution == id {
			return true
		}
	}
	return false
}

func contains(ids []engine.ExecutionID, id engine.ExecutionID) bool {
	for _, other := range ids {
		if other == id {
			return true
		}
	}
	return false
}

// rest has the sweeper leave an execution alone whose children were all found to
// be there: each of them will tell how it ended.
func (c *Coordinator) rest(x *execution) func() {
	known := map[engine.ExecutionID]bool{}
	for _, child := range x.state.Outstanding() {
		known[child.Execution] = true
	}
	return func() {
		c.hand(&work{
			id: x.id,
			handle: func(x *execution) error {
				for _, child := range x.state.Outstanding() {
					if !known[child.Execution] {
						return nil
					}
				}
				x.quiet, x.dirty = true, true
				return nil
			},
			finish: func(err error) {
				if err != nil && !errors.Is(err, errNotFound) {
					c.log.Debug("waiting execution was not put to rest", zap.String("execution_id", string(x.id)), zap.Error(err))
				}
			},
		})
	}
}

// How often errands are tried before they are left to the sweeper, and the pauses
// between: twelve seconds in all.
const (
	errandTries    = 8
	errandPause    = 100 * time.Millisecond
	errandPauseMax = 6400 * time.Millisecond
)

// runErrands does what follows from a group of commits, without the lane: what is
// done in other executions goes through their lanes, and lanes must not wait
// for each other.
func (c *Coordinator) runErrands(groups []*errands) {
	if len(groups) == 0 {
		return
	}
	c.wg.Go(func() {
		failpoint.Hit("before-errands")
		run := &errandRun{c: c, named: map[string]*named{}}
		pause := errandPause
		for try := 1; ; try++ {
			groups = run.try(groups, try == errandTries)
			if len(groups) == 0 {
				return
			}
			if try == errandTries {
				for _, e := range groups {
					c.log.Warn("other executions were not told yet; the sweeper repeats it", zap.String("execution_id", string(e.id)))
				}
				return
			}
			select {
			case <-time.After(pause):
			case <-c.stopping: // the state says what is owed, another coordinator does it
				return
			}
			pause = min(2*pause, errandPauseMax)
			clear(run.named)
		}
	})
}

// try does all errands at once, settles the executions that owe nothing more, and
// returns the groups that still have something to do.
func (r *errandRun) try(groups []*errands, last bool) (left []*errands) {
	type outcome struct {
		group *errands
		one   errand
		err   error
	}
	count := 0
	for _, e := range groups {
		count += len(e.list)
	}
	outcomes := make(chan outcome, count)
	for _, e := range groups {
		for _, one := range e.list {
			one(r, last, func(err error) { outcomes <- outcome{e, one, err} })
		}
		e.list = nil
	}
	for range count {
		o := <-outcomes
		if o.err == nil {
			continue
		}
		o.group.list = append(o.group.list, o.one)
		r.c.log.Debug("another execution was not told", zap.String("execution_id", string(o.group.id)), zap.Error(o.err))
	}
	failpoint.Hit("before-settle")
	var settled []engine.ExecutionID
	for _, e := range groups {
		switch {
		case len(e.list) > 0:
			left = append(left, e)
			continue
		case e.settle:
			settled = append(settled, e.id)
		}
		if e.done != nil {
			e.done()
		}
	}
	r.c.settle(settled)
	return left
}

// settle notes that executions owe nothing more. When that is not noted the
// sweeper tells everyone again, which changes nothing, and notes it then.
func (c *Coordinator) settle(ids []engine.ExecutionID) {
	if len(ids) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(c.ctx, storeTimeout)
	defer cancel()
	if err := c.config.Store.Settle(ctx, ids); err != nil {
		c.log.Warn("finished executions were not settled; the sweeper repeats it", zap.Int("executions", len(ids)), zap.Error(err))
	}
}
