package coordinator

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/queue"
)

// heard takes a notice.
func (d *dispatcher) heard(take func(f *fleet, now int64)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	take(&d.fleet, d.now())
	d.kick()
}

// endanger notes that executions were not postponed.
func (d *dispatcher) endanger(ids []engine.ExecutionID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, id := range ids {
		if x := d.executions[id]; x != nil {
			x.sweep = 0
		}
	}
}

// backlog is the number of jobs held back, about what they take of memory, and how long it may
// take until a tenth of them has gone.
func (d *dispatcher) backlog() (held int, bytes int64, wait time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	now, lately := d.now(), 0
	for _, p := range d.pools {
		lately += p.speed.lately(now)
	}
	return d.held, d.heldBytes, time.Duration(d.held/10/max(lately, 1)*windowSpan) * time.Millisecond
}

// figures are the jobs known here, by pool.
func (d *dispatcher) figures() map[string]queue.PoolNotice {
	d.mu.Lock()
	defer d.mu.Unlock()
	out, now := map[string]queue.PoolNotice{}, d.now()
	for name, p := range d.pools {
		if p.waiting.size+p.limited+p.published > 0 {
			out[name] = queue.PoolNotice{Waiting: p.waiting.size, Limited: p.limited, Published: p.published}
		}
	}
	for _, e := range d.jobs {
		if e.state != stateWaiting && e.state != statePublished {
			continue
		}
		f := out[e.pool.name]
		if f.Oldest == 0 || e.came < f.Oldest {
			f.Oldest = e.came
		}
		if now-e.came > stuckAfter.Milliseconds() {
			f.Old++
		}
		out[e.pool.name] = f
	}
	return out
}

// stuckAfter is from when on a job that is not answered although a worker is idle means
// that something is wrong.
const stuckAfter = 30 * time.Second

// silentAfter is from when on a worker that was not heard of counts as none in what people are
// shown. It is forgotten later (queue.AnnounceGone), as nothing is lost by publishing for it.
const silentAfter = queue.AnnounceEvery + queue.AnnounceEvery/2

// queueView answers operators: what waits, runs and is idle.
func (c *Coordinator) queueView(ctx context.Context, r *queue.QueueRequest) (*queue.QueueAnswer, error) {
	notice := c.notice()
	answer := c.dispatch.view(notice.Pools)
	answer.Fleet = c.dispatch.coordinators(notice)
	if store := c.heldStore(); store != nil && r.Counts {
		counts, err := store.CountByStatus(ctx)
		if err != nil {
			return nil, problemOf(err)
		}
		answer.Executions = counts
	}
	if r.Counts && c.config.Gates != nil {
		stuck, err := c.config.Gates.Stuck(ctx, c.now()-c.config.StuckAfter.Milliseconds())
		if err != nil {
			return nil, problemOf(err)
		}
		answer.StuckExecutions = len(stuck)
		for _, s := range stuck[:min(len(stuck), maxNamed)] {
			answer.Stuck = append(answer.Stuck, s.Execution)
		}
	}
	return answer, nil
}

// notice is what this coordinator says of itself.
func (c *Coordinator) notice() queue.CoordinatorNotice {
	_, lag := c.Lanes()
	return queue.CoordinatorNotice{
		ID: c.config.ID, Pools: c.dispatch.figures(),
		Started: c.started.Load(), Finished: c.finished.Load(), LagMillis: lag.Milliseconds(),
	}
}

// coordinators lists this one and those that have announced themselves.
func (d *dispatcher) coordinators(own queue.CoordinatorNotice) []queue.QueueCoordinator {
	d.mu.Lock()
	defer d.mu.Unlock()
	list := make([]queue.QueueCoordinator, 0, 1+len(d.fleet.coordinators))
	add := func(n *queue.CoordinatorNotice, at int64) {
		held := 0
		for _, p := range n.Pools {
			held += p.Waiting + p.Limited
		}
		list = append(list, queue.QueueCoordinator{ID: n.ID, Seen: at, Held: held, LagMillis: n.LagMillis, Started: n.Started, Finished: n.Finished})
	}
	add(&own, d.now())
	for _, id := range sortedNames(d.fleet.coordinators) {
		add(&d.fleet.coordinators[id].CoordinatorNotice, d.fleet.coordinators[id].at)
	}
	return list
}

// view adds up own figures and those that others have announced.
func (d *dispatcher) view(own map[string]queue.PoolNotice) *queue.QueueAnswer {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := d.now()
	answer := &queue.QueueAnswer{At: now, Coordinators: 1 + len(d.fleet.coordinators), Pools: []queue.QueuePool{}, Workers: []queue.QueueWorker{}}
	pools, idle := map[string]*queue.QueuePool{}, map[string]bool{}
	pool := func(name string) *queue.QueuePool {
		p := pools[name]
		if p == nil {
			p = &queue.QueuePool{Pool: name}
			pools[name] = p
		}
		return p
	}
	add := func(figures map[string]queue.PoolNotice) {
		for name, f := range figures {
			p := pool(name)
			p.Waiting, p.Limited, p.Published = p.Waiting+f.Waiting, p.Limited+f.Limited, p.Published+f.Published
			p.Old += f.Old
			if f.Oldest != 0 {
				p.OldestMillis = max(p.OldestMillis, now-f.Oldest)
			}
		}
	}
	add(own)
	for _, c := range d.fleet.coordinators {
		add(c.Pools)
	}
	for _, w := range d.fleet.workers {
		answer.Workers = append(answer.Workers, queue.QueueWorker{WorkerNotice: w.WorkerNotice, Seen: w.at})
		if now-w.at > silentAfter.Milliseconds() {
			continue // it may be dead, and what it had may be with others
		}
		for name, n := range w.Busy {
			pool(name).Running += n
		}
		if w.Draining {
			continue
		}
		for name, slots := range w.Pools {
			p := pool(name)
			p.Workers++
			p.Slots += slots
			if w.IdleSince != 0 {
				p.Idle++
			}
			idle[name] = idle[name] || w.IdleSince != 0 && now-w.IdleSince > stuckAfter.Milliseconds()
		}
	}
	for name, p := range pools {
		// Jobs that run for long are not stuck, whoever else is idle.
		p.Stuck = p.Old > p.Running && (p.Workers == 0 || idle[name])
		answer.Pools = append(answer.Pools, *p)
	}
	slices.SortFunc(answer.Pools, func(a, b queue.QueuePool) int { return strings.Compare(a.Pool, b.Pool) })
	slices.SortFunc(answer.Workers, func(a, b queue.QueueWorker) int {
		return strings.Compare(a.Name+"\x00"+a.ID, b.Name+"\x00"+b.ID)
	})
	return answer
}
