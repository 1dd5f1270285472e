package coordinator

import (
	"context"
	"errors"
	"time"

	"go.uber.org/zap"

	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/queue"
	"github.com/reprise-engine/reprise/pkg/state"
)

// HeldStore is what the dispatcher needs of a store to look after the jobs that it holds
// back. With a Store that is none, such jobs are published as if they were late, rate limits are
// not kept, and the executions are left to whoever's sweeper comes first, as their sweeps cannot be
// put off.
type HeldStore interface {
	// OpenJobs reports which jobs are still open.
	OpenJobs(ctx context.Context, jobs []state.JobRef) ([]bool, error)
	// Postpone sets when sweepers look at executions next.
	Postpone(ctx context.Context, ids []engine.ExecutionID, next int64) error
	// Reserve gives out moments under rate limits.
	Reserve(ctx context.Context, wanted []state.Reservation) ([]time.Duration, error)
	CountByStatus(ctx context.Context) (map[engine.Status]int64, error)
}

// Notices is what the dispatcher needs of a transport to know of workers and of other
// coordinators. With a Transport that is none it hands out jobs in portions of a fixed size.
type Notices interface {
	AnnounceCoordinator(n queue.CoordinatorNotice) error
	AnnounceSettled(jobs []engine.JobID) error
	ServeNotices(worker func(queue.WorkerNotice), coordinator func(queue.CoordinatorNotice), gone func([]engine.JobID)) (stop func(), err error)
}

var (
	_ HeldStore = (*state.Store)(nil)
	_ Notices   = (*queue.Conn)(nil)
)

func (c *Coordinator) heldStore() HeldStore {
	s, _ := c.config.Store.(HeldStore)
	return s
}

func (c *Coordinator) notices() Notices {
	n, _ := c.config.Transport.(Notices)
	return n
}

// perform does what the dispatcher decided.
func (c *Coordinator) perform(r release) {
	c.publishJobs(r.jobs)
	if len(r.late) > 0 {
		c.wg.Go(func() { c.publishLate(r.late) })
	}
	if len(r.timed) > 0 { // lanes call this, which must not wait for a lane
		c.wg.Go(func() { c.publishTimed(r.timed) })
	}
	if len(r.extend) > 0 {
		c.wg.Go(func() { c.keepTime(r.extend) })
	}
	if len(r.reserve) > 0 {
		c.wg.Go(func() { c.reserve(r.reserve) })
	}
	if n := c.notices(); n != nil && len(r.foreign) > 0 {
		if err := n.AnnounceSettled(r.foreign); err != nil {
			c.log.Debug("other coordinators were not told of settled jobs", zap.Error(err))
		}
	}
}

const (
	// lateGroup is how many jobs are looked up in one round trip.
	lateGroup = 256
	// slowLookup is from when on, in milliseconds, workers are to ask about jobs that were
	// looked up, all the same.
	slowLookup = 100
)

// publishLate publishes jobs that were held for long, unless they were answered meanwhile:
// should this process have stood still, a sweeper may have published them. A worker need not
// ask about those that are found to be open now.
func (c *Coordinator) publishLate(jobs []*queue.Job) {
	store := c.heldStore()
	for len(jobs) > 0 {
		group := jobs[:min(lateGroup, len(jobs))]
		jobs = jobs[len(group):]
		if store == nil {
			c.publishJobs(group) // workers see that they are late, and ask
			continue
		}
		refs := make([]state.JobRef, len(group))
		for i, job := range group {
			refs[i] = state.JobRef{Execution: job.Execution, Job: job.ID}
		}
		var open []bool
		var asked int64
		if !c.persist("held jobs cannot be looked up", func(ctx context.Context) (err error) {
			asked = c.now()
			open, err = store.OpenJobs(ctx, refs)
			return err
		}) {
			return // another coordinator's sweeper finds them
		}
		// An answer that was long on its way may be out of date.
		slow := c.now()-asked > slowLookup
		var gone []settledJob
		kept := group[:0]
		for i, job := range group {
			switch {
			case !open[i]:
				gone = append(gone, settledJob{id: job.ID})
			case c.dispatch.lacks(job.ID): // else it was answered, or published otherwise, while it was looked up
				job.DispatchedAt = asked
				job.Confirm = job.Confirm || slow
				kept = append(kept, job)
			}
		}
		c.publishJobs(kept)
		if len(gone) > 0 {
			c.perform(c.dispatch.exchange(gone, nil))
		}
	}
}

// persist tries until it succeeds or the coordinator stops, which it reports as false.
func (c *Coordinator) persist(what string, try func(ctx context.Context) error) bool {
	for pause := 100 * time.Millisecond; ; pause = min(2*pause, 2*time.Second) {
		ctx, cancel := context.WithTimeout(c.ctx, storeTimeout)
		err := try(ctx)
		cancel()
		if err == nil {
			return true
		}
		c.log.Warn(what, zap.Error(err))
		select {
		case <-time.After(pause):
		case <-c.stopping:
			return false
		}
	}
}

// How often the dispatcher looks for what has room or was forgotten.
const (
	tickEvery = 250 * time.Millisecond
	// tickFirst keeps the loop out of step with those that look at timers and sweeps, so that
	// they do not hand in their work at the same moment.
	tickFirst = 37 * time.Millisecond
	lookEvery = time.Second
	lookGroup = 1024
)

// dispatchLoop publishes what is held when its time has come, and keeps other coordinators
// from sweeping it.
func (c *Coordinator) dispatchLoop() {
	timer := time.NewTimer(tickFirst)
	defer timer.Stop()
	var looked, announced time.Time
	for {
		select {
		case <-timer.C:
		case <-c.dispatch.wake:
		case <-c.stopping:
			return
		}
		r, due := c.dispatch.tick()
		c.perform(r)
		now := c.config.Now()
		if now.Sub(announced) >= queue.AnnounceEvery {
			announced = now
			c.announce(false)
		}
		if now.Sub(looked) >= min(lookEvery, c.config.SweepAfter/4) {
			looked = now
			c.perform(release{extend: c.dispatch.expiring()})
			if c.heldStore() != nil {
				c.keepHeld()
				c.lookOverdue()
			}
		}
		wait := tickEvery
		if due > 0 {
			wait = min(wait, time.Duration(max(due-c.now(), 1))*time.Millisecond)
		}
		timer.Reset(wait)
	}
}

// keepHeld puts off other coordinators' sweeps of executions whose jobs are known here.
func (c *Coordinator) keepHeld() {
	until := c.now() + c.config.SweepAfter.Milliseconds()
	ids := c.dispatch.unsafe(until)
	if len(ids) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(c.ctx, storeTimeout)
	defer cancel()
	if err := c.heldStore().Postpone(ctx, ids, until); err != nil {
		c.log.Warn("sweeps were not put off", zap.Int("executions", len(ids)), zap.Error(err))
		c.dispatch.endanger(ids)
	}
}

// lookOverdue sweeps executions whose jobs have been out for long: another coordinator may
// have committed their results, or the stream may have lost them.
func (c *Coordinator) lookOverdue() {
	for _, id := range c.dispatch.overdue(lookGroup) {
		w := c.sweepWork(id)
		finish := w.finish
		w.finish = func(err error) {
			if errors.Is(err, errNotFound) {
				c.perform(c.dispatch.reconcile(id, nil))
			}
			finish(err)
		}
		c.hand(w)
	}
}

// announce tells other coordinators, and people who ask them, what waits here.
func (c *Coordinator) announce(last bool) {
	n := c.notices()
	if n == nil {
		return
	}
	notice := queue.CoordinatorNotice{ID: c.config.ID, Gone: last}
	if !last {
		notice = c.notice()
	}
	if err := n.AnnounceCoordinator(notice); err != nil {
		c.log.Debug("coordinator was not announced", zap.Error(err))
	}
}

// handOver lets other coordinators sweep at once what is held here, when this one stops.
func (c *Coordinator) handOver(ctx context.Context) {
	c.announce(true)
	store, ids := c.heldStore(), c.dispatch.withHeld()
	if store == nil || len(ids) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	if err := store.Postpone(ctx, ids, c.now()); err != nil {
		c.log.Warn("waiting jobs were not handed over; they are found later", zap.Int("executions", len(ids)), zap.Error(err))
		return
	}
	c.log.Info("waiting jobs are left to other coordinators", zap.Int("executions", len(ids)))
}

// serveNotices hears of workers and other coordinators.
func (c *Coordinator) serveNotices() (stop func(), err error) {
	n := c.notices()
	if n == nil {
		return func() {}, nil
	}
	return n.ServeNotices(
		func(w queue.WorkerNotice) { c.dispatch.heard(func(f *fleet, now int64) { f.worker(w, now) }) },
		func(o queue.CoordinatorNotice) { c.dispatch.heard(func(f *fleet, now int64) { f.coordinator(o, now) }) },
		c.dispatch.elsewhere)
}

// settledJob is a job that a commit removed from its execution's state.
type settledJob struct {
	id engine.JobID
	// fresh: the same changes made it, so nobody else has heard of it.
	fresh bool
}

// settledBy adds the jobs that changes remove from an execution's state.
func settledBy(jobs []settledJob, changes []engine.Change) []settledJob {
	for i := range changes {
		change := &changes[i]
		if change.Table != engine.TableOpen || change.Value != nil {
			continue
		}
		if id, ok := engine.JobOf(change.Field); ok {
			jobs = append(jobs, settledJob{id, madeBy(changes[:i], change.Field)})
		}
	}
	return jobs
}

// madeBy reports whether changes set a field. What was set last is looked at first: nodes
// that the coordinator runs itself are made and settled next to each other.
func madeBy(changes []engine.Change, field string) bool {
	for i := len(changes) - 1; i >= 0; i-- {
		if changes[i].Table == engine.TableOpen && changes[i].Field == field {
			return true
		}
	}
	return false
}

// caughtUp is what a group has learned of an execution's place in the store.
type caughtUp struct {
	loaded    bool // with what other coordinators have committed
	committed bool // by us
}

// catchUp tells the dispatcher.
func (c *Coordinator) catchUp(x *execution, how caughtUp) {
	if how.loaded || x.state.Meta.Status.Finished() {
		c.perform(c.dispatch.reconcile(x.id, x.state.Jobs))
	}
	if how.committed {
		c.dispatch.moved(x.id)
	}
}
