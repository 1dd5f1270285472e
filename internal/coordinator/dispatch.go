package coordinator

import (
	"slices"
	"sync"

	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/queue"
)

// The dispatcher decides when a committed job is published. At most a window of the jobs
// of a pool are published and not answered; the others wait here, so that what comes later can
// still go first: by priority, and in fairness to other tenants and workflows. All of it is
// memory. The jobs are open jobs of their executions in the store, so a coordinator that
// dies loses none: the sweep of another one finds them.
//
//	offered -> limited -> waiting -> published -> settled
//
// A job is settled by the commit that removes it from its execution's state, whatever the
// cause: its result, a timeout, a cancel, the loss of its worker. That commit may be another
// coordinator's, who tells so (reprise.settled). Should that be lost, the execution is looked at
// when the job has been out for long. While a coordinator lives it looks itself after the
// executions whose jobs it knows: it puts off other coordinators' sweeps, which do not know what is
// held, and sweeps them when they are silent.

// entryState is where a job is.
type entryState int8

const (
	stateGone      entryState = iota // not known any more
	stateReserving                   // its moment under a rate limit is being asked for
	stateLimited                     // until due
	stateWaiting                     // in its pool's queue
	statePublished                   // and not settled
)

// entry is a job that the dispatcher knows.
type entry struct {
	id       engine.JobID
	job      *queue.Job // nil once it is published
	state    entryState
	class    int
	tenant   string
	workflow string
	started  int64 // of the execution
	order    uint64
	limits   []limit
	// timeout of the node in milliseconds, 0 for none; deadline is when it ends by what is
	// stored, and extended that it was moved as the job was held.
	timeout, deadline int64
	extended          bool
	bytes             int64 // while it is held

	execution *executionWork
	index     int // in execution.jobs
	pool      *poolWork
	came      int64 // milliseconds
	due       int64 // from a rate limit
	published int64
	look      int64 // when the execution is looked at if the job is not settled by then
	looks     int
	// repeated: it was unknown when it was published again, so another coordinator may
	// know it too.
	repeated bool
	// again: it was published again after it was given out here, as its execution was swept.
	again bool
}

// executionWork are the jobs of one execution.
type executionWork struct {
	id    engine.ExecutionID
	jobs  []*entry
	held  int
	sweep int64 // until when other coordinators leave it alone
}

// poolWork are the jobs of one pool.
type poolWork struct {
	name      string
	waiting   fairQueue
	limited   int
	published int
	speed     speed
}

// offer is a committed job that is to be published when its turn comes.
type offer struct {
	job      *queue.Job
	class    int
	tenant   string
	workflow string
	started  int64
	limits   []limit
	timeout  int64 // of the node, in milliseconds
}

// release is what is to be done now.
type release struct {
	jobs []*queue.Job
	// late jobs have been held for so long that they are looked up before.
	late []*queue.Job
	// timed jobs have been held and have a time limit, which counts from now on.
	timed []*queue.Job
	// extend are held jobs whose time limit would end soon.
	extend []heldJob
	// reserve are the entries whose rate limits are to be asked.
	reserve []*entry
	// foreign jobs were settled that another coordinator may have published.
	foreign []engine.JobID
}

// lateHeld is from when on a job that was held is looked up before it is published, in
// milliseconds: by then a sweeper may have published it, and a worker may have answered it.
const lateHeld = 2000

type dispatcher struct {
	sweepAfter int64 // milliseconds
	now        func() int64
	wake       chan struct{}

	mu         sync.Mutex
	fleet      fleet
	jobs       map[engine.JobID]*entry
	executions map[engine.ExecutionID]*executionWork
	pools      map[string]*poolWork
	due        dueHeap
	order      uint64
	held       int // limited and waiting
	heldBytes  int64
}

func newDispatcher(self string, sweepAfter int64, now func() int64) *dispatcher {
	return &dispatcher{
		sweepAfter: sweepAfter, now: now, wake: make(chan struct{}, 1), fleet: newFleet(self),
		jobs: map[engine.JobID]*entry{}, executions: map[engine.ExecutionID]*executionWork{}, pools: map[string]*poolWork{},
	}
}

// exchange takes jobs that were settled and jobs that were committed, and returns what
// may be published now.
func (d *dispatcher) exchange(settled []settledJob, offers []offer) release {
	var r release
	d.mu.Lock()
	defer d.mu.Unlock()
	now := d.now()
	for _, s := range settled {
		e := d.jobs[s.id]
		if len(d.fleet.coordinators) > 0 && (e == nil && !s.fresh || e != nil && e.repeated) {
			r.foreign = append(r.foreign, s.id)
		}
		if e != nil {
			if e.state == statePublished {
				e.pool.speed.add(now)
			}
			d.settle(e)
			d.fill(e.pool, now, &r)
		}
	}
	for i := range offers {
		d.offer(&offers[i], now, &r)
	}
	return r
}

// offer takes one job.
func (d *dispatcher) offer(o *offer, now int64, r *release) {
	if e := d.jobs[o.job.ID]; e != nil {
		if e.state == statePublished { // the stream may have lost it
			e.again = true
			r.jobs = append(r.jobs, o.job)
		}
		return
	}
	e := d.add(o, now)
	if len(o.limits) > 0 {
		d.hold(e, stateReserving, now, r)
		e.pool.limited++
		r.reserve = append(r.reserve, e)
		return
	}
	if e.pool.waiting.size == 0 && e.pool.published < d.window(e.pool, now) {
		d.unhold(e)
		r.jobs = append(r.jobs, d.publish(e, now))
		return
	}
	d.hold(e, stateWaiting, now, r)
	e.pool.waiting.push(e)
	d.fill(e.pool, now, r)
}

func (d *dispatcher) add(o *offer, now int64) *entry {
	x := d.executions[o.job.Execution]
	if x == nil {
		x = &executionWork{id: o.job.Execution, sweep: now + d.sweepAfter}
		d.executions[x.id] = x
	}
	d.order++
	e := &entry{
		id: o.job.ID, job: o.job, class: o.class, tenant: o.tenant, workflow: o.workflow, started: o.started, order: d.order,
		limits: o.limits, timeout: o.timeout, deadline: o.job.Deadline, execution: x, index: len(x.jobs), pool: d.pool(o.job.Pool), came: now, repeated: o.job.Confirm,
	}
	x.jobs = append(x.jobs, e)
	d.jobs[e.id] = e
	x.held++
	d.held++
	return e
}

func (d *dispatcher) pool(name string) *poolWork {
	if name == "" {
		name = queue.DefaultPool
	}
	p := d.pools[name]
	if p == nil {
		p = &poolWork{name: name}
		d.pools[name] = p
	}
	return p
}

func (d *dispatcher) unhold(e *entry) {
	e.execution.held--
	d.held--
	d.heldBytes -= e.bytes
	e.bytes = 0
}

// publish gives the job of an entry that is held no more.
func (d *dispatcher) publish(e *entry, now int64) *queue.Job {
	job := e.job
	e.job, e.state, e.published = nil, statePublished, now
	e.look = now + d.lookAfter(0)
	e.pool.published++
	return job
}

// settle forgets a job.
func (d *dispatcher) settle(e *entry) {
	switch e.state {
	case stateReserving, stateLimited:
		e.pool.limited--
		d.unhold(e)
	case stateWaiting:
		e.pool.waiting.remove(e)
		d.unhold(e)
	case statePublished:
		e.pool.published--
	}
	e.state, e.job = stateGone, nil
	delete(d.jobs, e.id)
	x := e.execution
	last := len(x.jobs) - 1
	x.jobs[e.index] = x.jobs[last]
	x.jobs[e.index].index = e.index
	x.jobs[last] = nil
	if x.jobs = x.jobs[:last]; last == 0 {
		delete(d.executions, x.id)
	}
}

func (d *dispatcher) window(p *poolWork, now int64) int {
	return max(d.fleet.window(p.name), p.speed.lately(now))
}

// fill publishes of a pool what there is room for.
func (d *dispatcher) fill(p *poolWork, now int64, r *release) {
	if p.waiting.size == 0 {
		return
	}
	for window := d.window(p, now); p.waiting.size > 0 && p.published < window; {
		d.let(p.waiting.pop(), now, r)
	}
}

// let publishes a job that was held.
func (d *dispatcher) let(e *entry, now int64, r *release) {
	held := now - e.came
	d.unhold(e)
	switch job := d.publish(e, now); {
	case e.timeout > 0 && (e.extended || held > shortHold):
		r.timed = append(r.timed, job)
	case held > lateHeld:
		r.late = append(r.late, job)
	default:
		r.jobs = append(r.jobs, job)
	}
}

// holds reports whether a job waits here, so that publishing it again would break
// a limit.
func (d *dispatcher) holds(id engine.JobID) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	e := d.jobs[id]
	return e != nil && e.state != statePublished
}

// lacks reports whether a job that was given out is known, not settled, and was not published
// again meanwhile.
func (d *dispatcher) lacks(id engine.JobID) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	e := d.jobs[id]
	return e != nil && !e.again
}

// reconcile settles the jobs of an execution that are not open any more; nil for one that
// is over or gone.
func (d *dispatcher) reconcile(id engine.ExecutionID, open map[engine.JobID]*engine.OpenJob) release {
	var r release
	d.mu.Lock()
	defer d.mu.Unlock()
	x := d.executions[id]
	if x == nil {
		return r
	}
	now := d.now()
	for _, e := range slices.Clone(x.jobs) {
		if open[e.id] == nil {
			d.settle(e)
			d.fill(e.pool, now, &r)
		}
	}
	return r
}

// moved notes that an execution was committed, which sets when sweepers look at it.
func (d *dispatcher) moved(id engine.ExecutionID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if x := d.executions[id]; x != nil {
		x.sweep = d.now() + d.sweepAfter
	}
}

// disown forgets jobs that turned out to be queued or running already, published by another
// coordinator: they take no place of ours.
func (d *dispatcher) disown(ids []engine.JobID) release {
	var r release
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, id := range ids {
		if e := d.jobs[id]; e != nil && e.repeated && e.state == statePublished {
			d.settle(e)
			d.fill(e.pool, d.now(), &r)
		}
	}
	return r
}

// elsewhere settles jobs that another coordinator committed away.
func (d *dispatcher) elsewhere(ids []engine.JobID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	known := false
	for _, id := range ids {
		if e := d.jobs[id]; e != nil {
			d.settle(e)
			known = true
		}
	}
	if known {
		d.kick()
	}
}

// limited sets when a job may go that has a rate limit.
func (d *dispatcher) limited(e *entry, due int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if e.state != stateReserving {
		return // settled meanwhile
	}
	e.state, e.due = stateLimited, due
	d.due.push(e)
	d.kick()
}

// kick has the loop look soon.
func (d *dispatcher) kick() {
	select {
	case d.wake <- struct{}{}:
	default:
	}
}

// tick releases what has become due or has room now, and says when the next job is due, 0
// when none is.
func (d *dispatcher) tick() (r release, next int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := d.now()
	d.fleet.expire(now)
	for e := d.due.popDue(now); e != nil; e = d.due.popDue(now) {
		// Its limit spaces it already, and a full window must not bunch what it has spaced.
		e.pool.limited--
		d.let(e, now, &r)
	}
	for _, name := range sortedNames(d.pools) {
		d.fill(d.pools[name], now, &r)
	}
	if len(d.due) > 0 {
		next = d.due[0].due
	}
	return r, next
}

// lookAfter is how long a job may be published until its execution is looked at: as for
// sweeps, longer after the first time.
func (d *dispatcher) lookAfter(looks int) int64 {
	if looks == 0 {
		return d.sweepAfter
	}
	return 2 * d.sweepAfter
}

// overdue lists executions that have had jobs out for long.
func (d *dispatcher) overdue(limit int) []engine.ExecutionID {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := d.now()
	found := map[engine.ExecutionID]bool{}
	for _, e := range d.jobs {
		if e.state == statePublished && e.look <= now && (len(found) < limit || found[e.execution.id]) {
			found[e.execution.id] = true
			e.looks++
			e.look = now + d.lookAfter(e.looks)
		}
	}
	return sortedNames(found)
}

// unsafe lists the executions that other coordinators would sweep soon, and takes them to
// be postponed to until.
func (d *dispatcher) unsafe(until int64) []engine.ExecutionID {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := d.now()
	var ids []engine.ExecutionID
	for id, x := range d.executions {
		if x.sweep-now < d.sweepAfter/2 {
			x.sweep = until
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// withHeld lists the executions that have held jobs.
func (d *dispatcher) withHeld() []engine.ExecutionID {
	d.mu.Lock()
	defer d.mu.Unlock()
	var ids []engine.ExecutionID
	for id, x := range d.executions {
		if x.held > 0 {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

func sortedNames[K ~string, V any](m map[K]V) []K {
	names := make([]K, 0, len(m))
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
