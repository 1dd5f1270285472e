package coordinator

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/queue"
)

// desk is a dispatcher with a clock of the test.
type desk struct {
	*dispatcher
	t     testing.TB
	clock int64
	made  int
}

func newDesk(t testing.TB) *desk {
	d := &desk{t: t, clock: 1_000_000}
	d.dispatcher = newDispatcher("self", 5000, func() int64 { return d.clock })
	return d
}

// job is an offer of a job "<execution>_<n>" with a new n.
func (d *desk) job(execution string, change ...func(*offer)) offer {
	d.made++
	o := offer{
		job:   &queue.Job{ID: engine.JobID(fmt.Sprintf("%s_%d", execution, d.made)), Execution: engine.ExecutionID(execution)},
		class: classNormal, workflow: "w", started: d.clock,
	}
	for _, f := range change {
		f(&o)
	}
	return o
}

func of(tenant string) func(*offer)   { return func(o *offer) { o.tenant = tenant } }
func in(workflow string) func(*offer) { return func(o *offer) { o.workflow = workflow } }
func at(class int) func(*offer)       { return func(o *offer) { o.class = class } }
func repeated(o *offer)               { o.job.Confirm = true }

func ids(jobs []*queue.Job) []engine.JobID {
	var out []engine.JobID
	for _, j := range jobs {
		out = append(out, j.ID)
	}
	return out
}

func (d *desk) give(offers ...offer) release { return d.exchange(nil, offers) }

func (d *desk) answer(ids ...engine.JobID) release {
	var settled []settledJob
	for _, id := range ids {
		settled = append(settled, settledJob{id: id})
	}
	return d.exchange(settled, nil)
}

// fill makes the window of the default pool full and returns the jobs in it.
func (d *desk) fillWindow() []engine.JobID {
	var out []engine.JobID
	for range windowUnknown {
		out = append(out, ids(d.give(d.job("first")).jobs)...)
	}
	require.Len(d.t, out, windowUnknown)
	return out
}

// served answers published jobs one by one, slowly, and returns what is published instead.
func (d *desk) served(published []engine.JobID, n int) []engine.JobID {
	var out []engine.JobID
	for i := range n {
		d.clock += windowSpan // so that speed does not widen the window
		r := d.answer(published[i])
		out = append(out, ids(append(r.jobs, r.late...))...)
	}
	return out
}

func (d *desk) consistent() {
	d.t.Helper()
	held, bytes, published := 0, int64(0), map[string]int{}
	for _, e := range d.jobs {
		require.NotEqual(d.t, stateGone, e.state)
		require.Same(d.t, e, e.execution.jobs[e.index])
		if e.state == statePublished {
			published[e.pool.name]++
			require.Nil(d.t, e.job, "a published job takes no memory")
		} else {
			held++
			require.NotZero(d.t, e.bytes)
		}
		bytes += e.bytes
	}
	require.Equal(d.t, held, d.held)
	require.Equal(d.t, bytes, d.heldBytes)
	for name, p := range d.pools {
		require.Equal(d.t, published[name], p.published)
	}
	for _, x := range d.executions {
		require.NotEmpty(d.t, x.jobs)
	}
}

func TestTenantsTakeTurns(t *testing.T) {
	d := newDesk(t)
	published := d.fillWindow()
	for range 5000 {
		require.Empty(t, d.give(d.job("flood", of("A"))).jobs)
	}
	d.clock += 10
	b := d.job("b", of("B"))
	require.Empty(t, d.give(b).jobs)
	require.Contains(t, d.served(published, 2), b.job.ID, "B waits for one job of A at most")
	d.consistent()
}

func TestWorkflowsTakeTurnsAndExecutionsQueue(t *testing.T) {
	d := newDesk(t)
	published := d.fillWindow()
	for range 10 {
		d.give(d.job("x", in("1")))
	}
	d.clock++
	for range 10 {
		d.give(d.job("y", in("1")))
	}
	d.give(d.job("z", in("2")))
	// A later job of the older execution goes before those of the younger.
	older := d.job("x", in("1"), func(o *offer) { o.started = 1_000_000 })
	d.give(older)
	got := d.served(published, 13)
	text := ""
	for _, id := range got {
		text += strings.SplitN(string(id), "_", 2)[0]
	}
	require.Equal(t, "xzxxxxxxxxxxy", text)
	require.Equal(t, older.job.ID, got[11])
}

func TestLowPriorityIsNotStarved(t *testing.T) {
	d := newDesk(t)
	published := d.fillWindow()
	for range 300 {
		d.give(d.job("high", at(classHigh)), d.job("normal", at(classNormal)), d.job("low", at(classLow)))
	}
	count := map[string]int{}
	for _, id := range d.served(published, 210) {
		count[strings.SplitN(string(id), "_", 2)[0]]++
	}
	require.InDelta(t, 160, count["high"], 2)
	require.InDelta(t, 40, count["normal"], 2)
	require.InDelta(t, 10, count["low"], 2)
}

func TestWindowFollowsWorkersAndCoordinators(t *testing.T) {
	d := newDesk(t)
	p := d.pool("")
	require.Equal(t, windowUnknown, d.window(p, d.clock))
	d.heard(func(f *fleet, now int64) {
		f.worker(queue.WorkerNotice{ID: "1", Pools: map[string]int{"default": 100}}, now)
	})
	d.heard(func(f *fleet, now int64) {
		f.worker(queue.WorkerNotice{ID: "2", Pools: map[string]int{"default": 20, "gpu": 2}}, now)
	})
	require.Equal(t, 240, d.window(p, d.clock))
	require.Equal(t, windowLeast, d.window(d.pool("gpu"), d.clock))
	d.heard(func(f *fleet, now int64) { f.coordinator(queue.CoordinatorNotice{ID: "other"}, now) })
	d.heard(func(f *fleet, now int64) { f.coordinator(queue.CoordinatorNotice{ID: "self"}, now) })
	require.Equal(t, 120, d.window(p, d.clock))
	d.heard(func(f *fleet, now int64) {
		f.worker(queue.WorkerNotice{ID: "1", Pools: map[string]int{"default": 100}, Draining: true}, now)
	})
	require.Equal(t, 20, d.window(p, d.clock))
	d.clock += queue.AnnounceGone.Milliseconds() + 1
	d.tick()
	require.Equal(t, windowUnknown, d.window(p, d.clock), "who is silent is gone")
}

func TestFastWorkersWidenTheWindow(t *testing.T) {
	d := newDesk(t)
	d.heard(func(f *fleet, now int64) {
		f.worker(queue.WorkerNotice{ID: "1", Pools: map[string]int{"default": 4}}, now)
	})
	open := []engine.JobID{}
	for range 1000 {
		open = append(open, ids(d.give(d.job("x")).jobs)...)
	}
	require.Len(t, open, windowLeast)
	for range 200 {
		r := d.answer(open[0])
		open = append(open[1:], ids(r.jobs)...)
	}
	require.GreaterOrEqual(t, len(open), 150, "what is answered in a moment may be on its way")
	d.consistent()
}

func TestRepeatedPublication(t *testing.T) {
	d := newDesk(t)
	published := d.fillWindow()
	waits := d.job("x")
	require.Empty(t, d.give(waits).jobs)
	require.True(t, d.holds(waits.job.ID))
	again := waits
	again.job = &queue.Job{ID: waits.job.ID, Execution: "x", Confirm: true}
	require.Empty(t, d.give(again).jobs, "what waits is not published")
	out := offer{job: &queue.Job{ID: published[0], Execution: "first", Confirm: true}, workflow: "w"}
	require.Equal(t, published[:1], ids(d.give(out).jobs), "what is out is published again")
	require.Equal(t, windowUnknown, d.pool("").published, "without a second place")
	require.Equal(t, []engine.JobID{waits.job.ID}, d.served(published, 1))
	d.consistent()
}

func TestPublishedByAnotherCoordinator(t *testing.T) {
	d := newDesk(t)
	d.heard(func(f *fleet, now int64) { f.coordinator(queue.CoordinatorNotice{ID: "other"}, now) })
	theirs, ours := d.job("x", repeated), d.job("y")
	require.Len(t, d.give(theirs, ours).jobs, 2)
	d.disown([]engine.JobID{theirs.job.ID, ours.job.ID})
	require.Equal(t, 1, d.pool("").published, "a job that was queued already takes no place here")
	lost := d.job("z", repeated)
	d.give(lost)
	r := d.exchange([]settledJob{{id: lost.job.ID}, {id: ours.job.ID}, {id: "unknown_1"}, {id: "inline_1", fresh: true}}, nil)
	require.Equal(t, []engine.JobID{lost.job.ID, "unknown_1"}, r.foreign, "others are told of what they may know")
	require.Empty(t, d.jobs)
	require.Empty(t, d.executions)
}

func TestEveryEndFreesThePlace(t *testing.T) {
	for name, end := range map[string]func(d *desk, id engine.JobID){
		"a commit here":                  func(d *desk, id engine.JobID) { d.answer(id) },
		"told by another coordinator":    func(d *desk, id engine.JobID) { d.elsewhere([]engine.JobID{id}) },
		"the execution is over or gone":  func(d *desk, _ engine.JobID) { d.reconcile("x", nil) },
		"found settled when it was read": func(d *desk, _ engine.JobID) { d.reconcile("x", map[engine.JobID]*engine.OpenJob{"x_0": {}}) },
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t)
			d.fillWindow()
			for range 3 { // one of each: published, waiting, limited
				d.answer("first_1")
			}
			o := d.job("x")
			require.Len(t, d.give(o).jobs, 1)
			waits, paced := d.job("x"), d.job("x", func(o *offer) { o.limits = []limit{{}} })
			r := d.give(waits, paced)
			require.Len(t, r.reserve, 1)
			d.limited(r.reserve[0], d.clock+1000)
			for _, id := range []engine.JobID{o.job.ID, waits.job.ID, paced.job.ID} {
				end(d, id)
			}
			d.clock += 10_000
			tick, _ := d.tick()
			require.Empty(t, append(tick.jobs, tick.late...), "what has ended is not published")
			require.Empty(t, d.executions["x"])
			require.Equal(t, windowUnknown-1, d.pool("").published)
			require.Zero(t, d.held)
			d.consistent()
		})
	}
}

func TestLimitedJobsGoAtTheirMoment(t *testing.T) {
	d := newDesk(t)
	d.fillWindow()
	limited := func(o *offer) { o.limits = []limit{{}} }
	r := d.give(d.job("x", limited), d.job("y", limited))
	require.Len(t, r.reserve, 2)
	require.Empty(t, r.jobs)
	d.limited(r.reserve[0], d.clock+3000)
	d.limited(r.reserve[1], d.clock+500)
	got, next := d.tick()
	require.Empty(t, got.jobs)
	require.Equal(t, d.clock+500, next)
	d.clock = next
	got, next = d.tick()
	require.Equal(t, []engine.JobID{r.reserve[1].id}, ids(got.jobs), "also when the window is full")
	d.clock = next
	got, next = d.tick()
	require.Empty(t, got.jobs)
	require.Equal(t, []engine.JobID{r.reserve[0].id}, ids(got.late), "one that was held for long is looked up")
	require.Zero(t, next)
}

func TestHeldExecutionsAreKeptFromSweepers(t *testing.T) {
	d := newDesk(t)
	published := d.fillWindow()
	d.give(d.job("x"))
	require.Empty(t, d.unsafe(d.clock+10_000), "its commit has put the sweep off")
	d.clock += 3000
	require.Equal(t, []engine.ExecutionID{"first", "x"}, d.unsafe(d.clock+10_000))
	require.Empty(t, d.unsafe(d.clock+10_000))
	d.moved("x") // a commit sets it anew
	d.clock += 3000
	require.Equal(t, []engine.ExecutionID{"x"}, d.unsafe(d.clock+10_000))
	d.endanger([]engine.ExecutionID{"x"})
	require.Equal(t, []engine.ExecutionID{"x"}, d.unsafe(d.clock+10_000))
	require.Equal(t, []engine.ExecutionID{"x"}, d.withHeld())
	d.served(published, 1)
	require.Empty(t, d.withHeld())
}

// A pool is stuck when jobs are old that nobody runs, not when some take long.
func TestPoolsThatAreStuck(t *testing.T) {
	for _, c := range []struct {
		name    string
		jobs    int
		workers []queue.WorkerNotice
		stuck   bool
		idle    int
	}{
		{"no worker", 1, nil, true, 0},
		{"a long job, another worker idle", 1, []queue.WorkerNotice{{ID: "a", Busy: map[string]int{"default": 1}}, {ID: "b", IdleSince: 1}}, false, 1},
		{"a job beside it that nobody runs", 2, []queue.WorkerNotice{{ID: "a", Busy: map[string]int{"default": 1}}, {ID: "b", IdleSince: 1}}, true, 1},
		{"all are busy", 5, []queue.WorkerNotice{{ID: "a", Busy: map[string]int{"default": 1}}}, false, 0},
		{"nothing to do", 0, []queue.WorkerNotice{{ID: "a", IdleSince: 1}}, false, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := newDesk(t)
			for range c.jobs {
				d.give(d.job("x"))
			}
			d.clock += stuckAfter.Milliseconds() + 1
			for _, w := range c.workers {
				w.Pools, w.Slots = map[string]int{"default": 1}, 1
				d.heard(func(f *fleet, now int64) { f.worker(w, now) })
			}
			got := d.view(d.figures())
			require.Len(t, got.Pools, 1)
			p := got.Pools[0]
			require.Equal(t, c.stuck, p.Stuck, "%+v", p)
			require.Equal(t, c.jobs, p.Old)
			require.Equal(t, c.idle, p.Idle)
			if c.jobs > 0 {
				require.Equal(t, stuckAfter.Milliseconds()+1, p.OldestMillis)
			}
		})
	}
}

func TestJobsOutForLongAreLookedAt(t *testing.T) {
	d := newDesk(t)
	d.give(d.job("x"), d.job("x"), d.job("y"))
	require.Empty(t, d.overdue(10))
	d.clock += 5000
	require.Len(t, d.overdue(1), 1)
	require.Len(t, d.overdue(10), 1, "the other one")
	d.clock += 9999
	require.Empty(t, d.overdue(10))
	d.clock++
	require.Equal(t, []engine.ExecutionID{"x", "y"}, d.overdue(10))
}

// A job that was held for long is looked up before it is published. When its execution is swept meanwhile,
// that publishes it, and the look-up must not do so again.
func TestLateJobIsNotPublishedBesideItsSweep(t *testing.T) {
	d := newDesk(t)
	published := d.fillWindow()
	late := d.job("slow")
	d.give(late)
	d.clock += lateHeld + 1
	r := d.answer(published[0])
	require.Equal(t, []engine.JobID{late.job.ID}, ids(r.late))
	require.True(t, d.lacks(late.job.ID))
	require.Equal(t, []engine.JobID{late.job.ID}, ids(d.give(late).jobs))
	require.False(t, d.lacks(late.job.ID))
	d.answer(late.job.ID)
	require.False(t, d.lacks(late.job.ID), "it is answered")
}

// BenchmarkDispatch is a job's way through the dispatcher when there is room, and when 10,000
// others wait.
func BenchmarkDispatch(b *testing.B) {
	for _, waiting := range []int{0, 10_000} {
		b.Run(fmt.Sprintf("waiting=%d", waiting), func(b *testing.B) {
			d := newDispatcher("self", 5000, func() int64 { return 1 })
			var out []engine.JobID
			give := func(n int) {
				o := offer{
					job:   &queue.Job{ID: engine.JobID(fmt.Sprintf("x%d_1", n)), Execution: engine.ExecutionID(fmt.Sprintf("x%d", n))},
					class: n % classes, tenant: fmt.Sprint(n % 7), workflow: fmt.Sprint(n % 3),
				}
				for _, j := range d.exchange(nil, []offer{o}).jobs {
					out = append(out, j.ID)
				}
			}
			offers := make([]offer, b.N)
			for n := range offers {
				offers[n] = offer{
					job:   &queue.Job{ID: engine.JobID(fmt.Sprintf("j%d_1", n)), Execution: engine.ExecutionID(fmt.Sprintf("j%d", n))},
					class: n % classes, tenant: fmt.Sprint(n % 7), workflow: fmt.Sprint(n % 3),
				}
			}
			if waiting > 0 {
				for n := range waiting + windowUnknown {
					give(n)
				}
			}
			b.ReportAllocs()
			b.ResetTimer()
			for n := range b.N {
				for _, j := range d.exchange(nil, offers[n:n+1]).jobs {
					out = append(out, j.ID)
				}
				for _, j := range d.exchange([]settledJob{{id: out[0]}}, nil).jobs {
					out = append(out, j.ID)
				}
				out = out[1:]
			}
		})
	}
}
