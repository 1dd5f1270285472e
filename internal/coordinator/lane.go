package coordinator

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/reprise-engine/reprise/internal/failpoint"
	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/state"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// work is something to do with one execution.
type work struct {
	id engine.ExecutionID
	at int64 // when it was handed in, milliseconds
	// fresh work must see what is stored now, not what is in memory.
	fresh bool
	// create makes the state of a new execution; nil for one that exists.
	create func() (*program, *engine.State)
	// handle does the work on the loaded execution. It may run again when the
	// commit is refused.
	handle func(x *execution) error
	// finish is told the outcome once, after the commit and the publishing:
	// nil, errNotFound, state.ErrExists, or why it could not be done now.
	finish func(error)
}

// errNotFound says that an execution is unknown: never submitted, or deleted
// after its retention.
var errNotFound = errors.New("execution not found")

// lane handles the work of its share of executions, in order, in groups.
type lane struct {
	c     *Coordinator
	work  chan *work
	cache *cache
	// since is when the work was handed in that is done now, 0 when there is none.
	since atomic.Int64
}

func newLane(c *Coordinator) *lane {
	return &lane{c: c, work: make(chan *work, 4*c.config.Group), cache: newCache(int64(c.config.CacheBytes / c.config.Lanes))}
}

const (
	// commitTries bounds how often work is applied again after a refused commit.
	commitTries = 8
	// storeTimeout bounds one exchange with Redis.
	storeTimeout = 10 * time.Second
	// slowAfter is how long after it was made a job is published, in milliseconds, with the
	// order to ask before it is run.
	slowAfter = 1000
)

// run handles groups until the channel is closed and empty.
func (l *lane) run() {
	for first := range l.work {
		l.since.Store(first.at)
		group := []*work{first}
		for more := true; more && len(group) < l.c.config.Group; {
			select {
			case w, ok := <-l.work:
				if more = ok; ok {
					group = append(group, w)
				}
			default:
				more = false
			}
		}
		l.c.config.Telemetry.Group(len(group), time.Duration(l.c.now()-first.at)*time.Millisecond)
		l.handle(group)
		l.since.Store(0)
	}
}

// handle does a group of work. Work of an execution whose commit is refused is
// done again on what is stored now.
func (l *lane) handle(group []*work) {
	for try := 1; len(group) > 0; try++ {
		var again []*work
		for _, refused := range l.attempt(group) {
			if try == commitTries {
				refused.finish(fmt.Errorf("execution %s: commit refused %d times: %w", refused.id, try, state.ErrConflict))
				continue
			}
			again = append(again, refused)
		}
		group = again
	}
	l.cache.tidy(l.c.now())
}

// batch is the work of one execution in one group.
type batch struct {
	x     *execution
	fresh bool
	work  []*work // still to be answered
	ended error   // why all of it failed
}

// attempt does a group once and returns the work whose commit was refused.
func (l *lane) attempt(group []*work) (refused []*work) {
	batches := l.load(group)
	var commits []state.Commit
	var written []*batch
	now := l.c.now()
	for _, b := range batches {
		if errors.Is(b.run(l), errStale) {
			l.cache.forget(b.x.id)
			refused = append(refused, b.work...)
			continue
		}
		if b.x == nil || len(b.work) == 0 {
			continue
		}
		if err := l.storeMemory(b.x); err != nil {
			b.fail(l, err)
			continue
		}
		written = append(written, b)
		if b.x.dirty {
			commits = append(commits, b.x.commit(l.c, now))
		}
	}
	errs := l.commit(commits)
	var done []*batch
	for _, b := range written {
		var err error
		if b.x.dirty {
			err, errs = errs[0], errs[1:]
		}
		switch {
		case err == nil:
			done = append(done, b)
		case errors.Is(err, state.ErrConflict):
			l.c.log.Debug("stale commit refused", zap.String("execution_id", string(b.x.id)))
			l.cache.forget(b.x.id)
			refused = append(refused, b.work...)
		case errors.Is(err, state.ErrExists):
			l.cache.forget(b.x.id)
			for _, w := range b.work {
				if w.create != nil {
					w.finish(err)
				} else {
					refused = append(refused, w)
				}
			}
		default:
			b.fail(l, err)
		}
	}
	l.publish(done)
	return refused
}

func (l *lane) commit(commits []state.Commit) []error {
	if len(commits) == 0 {
		return nil
	}
	ctx, cancel := l.exchange()
	defer cancel()
	failpoint.Hit("before-commit")
	start := time.Now()
	errs := l.c.config.Store.Commit(ctx, commits)
	l.c.observeCommit(time.Since(start), errs)
	failpoint.Hit("after-commit")
	return errs
}

// exchange bounds one exchange with Redis.
func (l *lane) exchange() (context.Context, context.CancelFunc) {
	return context.WithTimeout(l.c.ctx, storeTimeout)
}

// load sorts a group by execution and brings those into memory that are not there.
func (l *lane) load(group []*work) []*batch {
	var batches []*batch
	byID := map[engine.ExecutionID]*batch{}
	var missing []engine.ExecutionID
	for _, w := range group {
		b := byID[w.id]
		if b == nil {
			b = &batch{x: l.cache.get(w.id)}
			byID[w.id] = b
			batches = append(batches, b)
		}
		b.work = append(b.work, w)
		b.fresh = b.fresh || w.fresh
	}
	for _, b := range batches {
		id := b.work[0].id
		if b.fresh {
			l.cache.forget(id)
			b.x = nil
		}
		if b.x == nil && b.work[0].create == nil {
			missing = append(missing, id)
		}
	}
	if len(missing) == 0 {
		return batches
	}
	ctx, cancel := l.exchange()
	defer cancel()
	stored, err := l.c.config.Store.Load(ctx, missing)
	for i, id := range missing {
		b := byID[id]
		if err != nil {
			b.ended = fmt.Errorf("load execution %s: %w", id, err)
			continue
		}
		if stored[i] == nil {
			b.ended = fmt.Errorf("execution %s: %w", id, errNotFound)
			continue
		}
		b.x, b.ended = l.restore(id, stored[i])
		if b.x != nil {
			b.x.current = true
			l.cache.put(b.x)
		}
	}
	return batches
}

// restore is the coordinator's, in an exchange of its own: loading may have taken long.
func (l *lane) restore(id engine.ExecutionID, stored *state.Stored) (*execution, error) {
	ctx, cancel := l.exchange()
	defer cancel()
	return l.c.restore(ctx, id, stored)
}

// restore builds an execution from its stored form.
func (c *Coordinator) restore(ctx context.Context, id engine.ExecutionID, stored *state.Stored) (*execution, error) {
	s, err := engine.Restore(stored.Tables)
	if err != nil {
		return nil, fmt.Errorf("restore execution %s: %w", id, err)
	}
	p, err := c.program(ctx, s.Meta.WorkflowHash)
	if err != nil {
		return nil, fmt.Errorf("execution %s: %w", id, err)
	}
	place, err := c.placeOf(stored)
	if err != nil {
		return nil, fmt.Errorf("restore execution %s: %w", id, err)
	}
	return &execution{id: id, program: p, state: s, version: stored.Version, place: place}, nil
}

// program returns the compiled workflow of a stored document.
func (c *Coordinator) program(ctx context.Context, hash string) (*program, error) {
	if p := c.programs.get(hash); p != nil {
		return p, nil
	}
	document, err := c.config.Store.Workflow(ctx, hash)
	if err != nil {
		return nil, fmt.Errorf("load workflow %s: %w", hash, err)
	}
	w, err := workflow.Parse(document)
	if err != nil {
		return nil, fmt.Errorf("parse stored workflow %s: %w", hash, err)
	}
	p, err := compile(w, c.config.Registry, c.config.Limits)
	if err != nil {
		return nil, err
	}
	c.programs.put(hash, p)
	return p, nil
}

// run does the batch's work in memory. Work that fails by itself is answered
// at once and leaves no trace. errStale: nothing counts, all of it is to be done
// again on what is stored.
func (b *batch) run(l *lane) error {
	all := b.work
	var kept []*work
	for i, w := range all {
		if b.x == nil && w.create != nil && (b.ended == nil || errors.Is(b.ended, errNotFound)) {
			b.ended = nil
			p, s := w.create()
			b.x = &execution{id: w.id, program: p, state: s}
			l.cache.put(b.x)
		}
		if b.x == nil {
			if b.ended == nil {
				b.ended = fmt.Errorf("execution %s: %w", w.id, errNotFound)
			}
			w.finish(b.ended)
			continue
		}
		b.x.used = l.c.now()
		if err := w.handle(b.x); errors.Is(err, errStale) {
			b.work = append(kept, all[i:]...)
			return errStale
		} else if err != nil {
			if !errors.Is(err, state.ErrExists) {
				l.c.log.Error("event was not applied", zap.String("execution_id", string(w.id)), zap.Error(err))
			}
			if b.x.version == 0 && !b.x.dirty { // it has not begun
				l.cache.forget(w.id)
				b.x = nil
			}
			w.finish(err)
			continue
		}
		kept = append(kept, w)
	}
	b.work = kept
	return nil
}

// fail answers all work of the batch and forgets the execution, which is in a
// state that was not stored.
func (b *batch) fail(l *lane, err error) {
	l.cache.forget(b.x.id)
	for _, w := range b.work {
		w.finish(err)
	}
}

// storeMemory appends to conversations, before the commit that makes it count:
// a repeat of the event finds the appends done.
func (l *lane) storeMemory(x *execution) error {
	if len(x.memory) == 0 {
		return nil
	}
	ctx, cancel := l.exchange()
	defer cancel()
	for _, m := range x.memory {
		if err := l.c.config.Store.AppendMemory(ctx, m.Session, m.id, m.Messages); err != nil {
			return fmt.Errorf("append to conversation of execution %s: %w", x.id, err)
		}
	}
	return nil
}

// publish sends the jobs of all committed batches, then answers their work,
// tells watchers, and lets others know what concerns them.
func (l *lane) publish(done []*batch) {
	var offers []offer
	var settled []settledJob
	var errands []*errands
	steps, caught := make([]engine.Step, len(done)), make([]caughtUp, len(done))
	now := l.c.now()
	for i, b := range done {
		swept, loaded, dirty := b.x.swept, b.x.current, b.x.dirty
		ready, repeated, step := b.x.committed(l.c.log)
		steps[i] = step
		for k := range ready {
			if repeated && l.c.dispatch.holds(ready[k].ID) {
				continue
			}
			job := l.c.buildJob(b.x.program, b.x.state, &ready[k])
			// Whoever repeats an event that we are slow with publishes its jobs too.
			job.Confirm = repeated || now-ready[k].DispatchedAt > slowAfter
			job.TraceParent = l.c.config.Telemetry.TraceParent(&b.x.state.Meta)
			addRunData(b.x.program, b.x.state, job, &ready[k])
			offers = append(offers, l.c.offerOf(b.x, job, &ready[k]))
		}
		settled = settledBy(settled, step.Changes)
		caught[i] = caughtUp{loaded: loaded, committed: dirty}
		l.c.drop(b.x, step.Dropped)
		if e := l.c.errandsOf(b.x, &step, swept); e != nil {
			errands = append(errands, e)
		}
	}
	if len(offers)+len(settled) > 0 {
		l.c.perform(l.c.dispatch.exchange(settled, offers))
	}
	for i, b := range done {
		l.c.catchUp(b.x, caught[i])
	}
	failpoint.Hit("after-publish")
	for i, b := range done {
		for _, w := range b.work {
			w.finish(nil)
		}
		l.c.tell(b.x, steps[i].Live)
		switch status := b.x.state.Meta.Status; {
		case status.Finished():
			l.cache.forget(b.x.id)
			l.c.observeEnd(b.x, steps[i].Done)
			if steps[i].Done {
				l.c.logFinished(b.x)
			}
		case status == engine.StatusWaiting:
			l.cache.forget(b.x.id) // what waits holds no memory
			l.c.logWaiting(b.x, steps[i].Live)
		default:
			l.cache.weigh(b.x)
		}
	}
	failpoint.Hit("after-ack")
	l.c.runErrands(errands)
}

var tokens atomic.Uint64

// token returns a commit token that no other commit has.
func (c *Coordinator) token() string {
	return c.config.ID + "." + strconv.FormatUint(tokens.Add(1), 36)
}
