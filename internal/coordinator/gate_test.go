package coordinator_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reprise-engine/reprise/internal/coordinator"
	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/queue"
	"github.com/reprise-engine/reprise/pkg/state"
)

// gated starts coordinators that know limits.
func gated(c *coordinator.Config) { c.Gates = c.Store.(coordinator.Gates) }

type names = map[string]any

// atMost is a workflow of one node with a limit.
func atMost(limit int) []byte {
	return flow("limited", names{"maxConcurrency": limit}, "Start: test.trigger", "Work: test.work")
}

// begun waits until so many jobs were given to the worker, and returns whose they are, in order.
func (f *fixture) begun(ran *ledger, name string, n int) (ids []engine.ExecutionID) {
	f.t.Helper()
	require.Eventually(f.t, func() bool { return len(ran.of("", name)) >= n }, within, 5*time.Millisecond)
	for _, job := range ran.of("", name) {
		ids = append(ids, job.Execution)
	}
	require.Len(f.t, ids, n)
	return ids
}

func (f *fixture) status(id engine.ExecutionID) engine.Status {
	f.t.Helper()
	x, err := f.conn.Get(f.t.Context(), id, false)
	require.NoError(f.t, err)
	return x.Status
}

// emptyGates waits until nobody is in a gate.
func (f *fixture) emptyGates() {
	f.t.Helper()
	require.Eventually(f.t, func() bool {
		gates, err := f.stores[0].Gates(f.t.Context())
		return err == nil && len(gates) == 0
	}, within, 10*time.Millisecond)
}

// door is a worker whose nodes answer when they are let through.
type door struct {
	ctx   context.Context
	mu    sync.Mutex
	opens map[engine.ExecutionID]chan struct{}
}

func (d *door) of(id engine.ExecutionID) chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.opens == nil {
		d.opens = map[engine.ExecutionID]chan struct{}{}
	}
	if d.opens[id] == nil {
		d.opens[id] = make(chan struct{})
	}
	return d.opens[id]
}

func (d *door) run(job *queue.Job, _ string) (engine.Result, bool) {
	select {
	case <-d.of(job.Execution):
		return outputs(`{}`), true
	case <-d.ctx.Done():
		return engine.Result{}, false
	}
}

func (d *door) open(ids ...engine.ExecutionID) {
	for _, id := range ids {
		close(d.of(id))
	}
}

// However many are submitted, to whichever coordinators: only as many as allowed are
// unfinished, and they begin in the order in which they came.
func TestConcurrencyIsFirstInFirstOut(t *testing.T) {
	t.Parallel()
	f := startWith(t, 2, gated)
	d := &door{ctx: t.Context()}
	ran := f.work(d.run)
	var all []engine.ExecutionID
	for i := range 6 {
		all = append(all, f.begin(queue.Submission{ID: engine.ExecutionID(fmt.Sprintf("x%d", i)), Workflow: atMost(2)}))
	}
	require.ElementsMatch(t, all[:2], f.begun(ran, "Work", 2))
	waiting, err := f.conn.List(t.Context(), queue.ListRequest{Status: engine.StatusNew})
	require.NoError(t, err)
	require.Len(t, waiting.Executions, 4)
	for i, id := range all[2:] {
		x, err := f.conn.Get(t.Context(), id, false)
		require.NoError(t, err)
		require.Equal(t, engine.StatusNew, x.Status)
		require.Equal(t, i+1, x.QueuePosition)
	}
	_, err = f.conn.Submit(t.Context(), &queue.Submission{ID: "x3", Workflow: atMost(2)})
	require.NoError(t, err, "a repeat")
	for i, id := range all {
		d.open(id)
		f.finished(string(id))
		if i+3 <= len(all) {
			require.ElementsMatch(t, all[:i+3], f.begun(ran, "Work", i+3))
		}
	}
	f.emptyGates()
	f.settled()
	_, err = f.conn.Submit(t.Context(), &queue.Submission{ID: "x3", Workflow: atMost(2)})
	require.NoError(t, err, "a repeat of one that is over")
	f.emptyGates()
	require.Len(t, ran.of("", "Work"), 6)
}

// The coordinators' default holds for workflows that say nothing, one by one; also for those without id.
func TestConcurrencyByDefault(t *testing.T) {
	t.Parallel()
	f := startWith(t, 1, func(c *coordinator.Config) { gated(c); c.WorkflowConcurrency = 1 })
	d := &door{ctx: t.Context()}
	ran := f.work(d.run)
	f.begin(queue.Submission{ID: "a1", Workflow: flow("a", nil, "Start: test.trigger", "Work: test.work")})
	f.begin(queue.Submission{ID: "b1", Workflow: flow("", nil, "Start: test.trigger", "Work: test.work")})
	f.begin(queue.Submission{ID: "a2", Workflow: flow("a", nil, "Start: test.trigger", "Work: test.work")})
	f.begin(queue.Submission{ID: "b2", Workflow: flow("", nil, "Start: test.trigger", "Work: test.work")})
	f.begin(queue.Submission{ID: "c1", Workflow: flow("c", names{"maxConcurrency": 2}, "Start: test.trigger", "Work: test.work")})
	f.begin(queue.Submission{ID: "c2", Workflow: flow("c", names{"maxConcurrency": 2}, "Start: test.trigger", "Work: test.work")})
	require.ElementsMatch(t, []engine.ExecutionID{"a1", "b1", "c1", "c2"}, f.begun(ran, "Work", 4))
	require.Equal(t, engine.StatusNew, f.status("a2"))
	require.Equal(t, engine.StatusNew, f.status("b2"))
	d.open("a1", "a2", "b1", "b2", "c1", "c2")
	f.finished("a2")
	f.finished("b2")
}

// Report 90: an execution that waits holds its place among the unfinished executions of its
// workflow, so that a limit of 1 is strictly serial; but it holds no worker.
func TestReport90WaitingHoldsItsPlaceAndNoWorker(t *testing.T) {
	t.Parallel()
	f := startWith(t, 2, gated)
	ran := f.work(func(job *queue.Job, name string) (engine.Result, bool) {
		if name == "Ask" && job.Resumption == nil {
			return wait(engine.Wait{Kind: engine.WaitWebhook, Webhook: &engine.WebhookWait{Method: "GET"}}), true
		}
		return outputs(`{}`), true
	})
	serial := flow("serial", names{"maxConcurrency": 1}, "Start: test.trigger", "Ask: test.wait", "Work: test.work")
	ids := []engine.ExecutionID{"s0", "s1", "s2", "s3", "s4", "s5"} // more than the worker has slots
	for _, id := range ids {
		f.begin(queue.Submission{ID: id, Workflow: serial})
	}
	for i, id := range ids {
		f.waiting(id, 1)
		for _, later := range ids[i+1:] {
			require.Equal(t, engine.StatusNew, f.status(later))
		}
		other := f.begin(queue.Submission{Workflow: flow("other", nil, "Start: test.trigger", "Work: test.work")})
		f.finished(string(other)) // the worker is free
		_, err := f.conn.Resume(t.Context(), queue.ResumeRequest{Execution: id})
		require.NoError(t, err)
		f.finished(string(id))
	}
	for i, id := range ids[1:] {
		before, after := ran.of(ids[i], "Work")[0], ran.of(id, "Ask")[0]
		require.Less(t, before.DispatchedAt, after.DispatchedAt+1, "one after the other")
	}
	f.emptyGates()
}

// Report 56: a workflow that calls itself does not wait for its own place.
func TestReport56WorkflowCallsItselfAtLimitOne(t *testing.T) {
	t.Parallel()
	f := startWith(t, 2, gated)
	f.put(flow("self", names{"maxConcurrency": 1}, childStart, "Call: test.wait"))
	depth := func(job *queue.Job) int {
		n := 0
		_, err := fmt.Sscanf(string(job.Inputs[0][0].JSON), `{"n":%d}`, &n)
		require.NoError(t, err)
		return n
	}
	f.work(func(job *queue.Job, _ string) (engine.Result, bool) {
		n := depth(job)
		if n == 3 || job.Resumption != nil {
			return outputs(fmt.Sprintf(`{"was":%d}`, n)), true
		}
		return wait(engine.Wait{Kind: engine.WaitChildren, Children: &engine.Children{Runs: runs("self", fmt.Sprintf(`{"n":%d}`, n+1))}}), true
	})
	for i := range 3 {
		f.begin(queue.Submission{ID: engine.ExecutionID(fmt.Sprintf("root%d", i)), WorkflowID: "self", Input: items(`{"n":0}`)})
	}
	for i := range 3 {
		x, _ := f.finished(fmt.Sprintf("root%d", i))
		require.Equal(t, engine.StatusSuccess, x.Status)
	}
	page, err := f.conn.List(t.Context(), queue.ListRequest{})
	require.NoError(t, err)
	require.Len(t, page.Executions, 12)
	f.emptyGates()
}

// Children of a workflow at its limit wait like others; their parents wait for them.
func TestChildrenWaitForTheirTurn(t *testing.T) {
	t.Parallel()
	f := startWith(t, 2, gated)
	var at, most atomic.Int32
	f.calls(engine.Children{Runs: runs("child", `{"n":0}`, `{"n":1}`, `{"n":2}`, `{"n":3}`)}, func(*queue.Job, string) (engine.Result, bool) {
		if n := at.Add(1); n > most.Load() {
			most.Store(n)
		}
		defer at.Add(-1)
		time.Sleep(20 * time.Millisecond) // so that they would be at work together
		return outputs(`{"x":1}`), true
	})
	f.put(flow("child", names{"maxConcurrency": 1}, childStart, "Work: test.work"))
	f.begin(queue.Submission{ID: "p1", Workflow: parentFlow()})
	f.begin(queue.Submission{ID: "p2", Workflow: parentFlow()})
	for _, id := range []string{"p1", "p2"} {
		_, run := f.finished(id)
		require.Len(t, f.got(run), 4)
	}
	require.EqualValues(t, 1, most.Load())
	f.emptyGates()
}

// An execution that does not wait for what it starts lends no place: the next one has its own turn.
func TestDetachedChildTakesItsTurn(t *testing.T) {
	t.Parallel()
	f := startWith(t, 1, gated)
	f.put(flow("self", names{"maxConcurrency": 1}, childStart, "Call: test.wait", "Work: test.work"))
	d := &door{ctx: t.Context()}
	var started atomic.Int32
	ran := f.work(func(job *queue.Job, name string) (engine.Result, bool) {
		switch {
		case name == "Work":
			return d.run(job, name)
		case job.Resumption == nil && started.Add(1) == 1:
			return wait(engine.Wait{Kind: engine.WaitChildren, Children: &engine.Children{Detached: true, Runs: runs("self", `{}`)}}), true
		}
		return outputs(`{}`), true
	})
	f.begin(queue.Submission{ID: "root", WorkflowID: "self"})
	f.begun(ran, "Work", 1)
	page, err := f.conn.List(t.Context(), queue.ListRequest{Status: engine.StatusNew})
	require.NoError(t, err)
	require.Len(t, page.Executions, 1)
	child := page.Executions[0].ID
	d.open("root", child)
	x, _ := f.finished(string(child))
	require.Equal(t, engine.StatusSuccess, x.Status)
	f.emptyGates()
}

// Cancel reaches those in the queue, and the cancel of one that runs makes room.
func TestCancelInTheQueue(t *testing.T) {
	t.Parallel()
	f := startWith(t, 2, gated)
	d := &door{ctx: t.Context()}
	ran := f.work(d.run)
	for _, id := range []engine.ExecutionID{"a", "b", "c"} {
		f.begin(queue.Submission{ID: id, Workflow: atMost(1)})
	}
	f.begun(ran, "Work", 1)
	require.NoError(t, f.conn.Cancel(t.Context(), "b", "not needed"))
	x, _ := f.finished("b")
	require.Equal(t, engine.StatusCanceled, x.Status)
	require.Equal(t, engine.ReasonCanceled, x.Error.Reason)
	require.NoError(t, f.conn.Cancel(t.Context(), "a", ""))
	require.Equal(t, []engine.ExecutionID{"a", "c"}, f.begun(ran, "Work", 2))
	d.open("c")
	f.finished("c")
	require.Empty(t, ran.of("b", "Work"))
	f.emptyGates()
	f.settled()
}

// A retry waits for its turn like others, and goes on from where the first one failed.
func TestRetryWaitsForItsTurn(t *testing.T) {
	t.Parallel()
	f := startWith(t, 2, gated)
	var broken atomic.Bool
	broken.Store(true)
	d := &door{ctx: t.Context()}
	ran := f.work(func(job *queue.Job, name string) (engine.Result, bool) {
		if name == "Shaky" && broken.Load() {
			return failure("no luck"), true
		}
		if name == "Shaky" {
			return d.run(job, name)
		}
		return outputs(`{"paid":true}`), true
	})
	document := flow("serial", names{"maxConcurrency": 1}, "Start: test.trigger", "Pay: test.work", "Shaky: test.work")
	f.begin(queue.Submission{ID: "first", Workflow: document})
	f.finished("first")
	broken.Store(false)
	f.begin(queue.Submission{ID: "between", Workflow: document})
	f.begun(ran, "Shaky", 2)
	for range 2 { // the same request again is answered like the first
		_, err := f.conn.Retry(t.Context(), queue.RetryRequest{ID: "first", NewID: "again"})
		require.NoError(t, err)
	}
	require.Equal(t, engine.StatusNew, f.status("again"))
	d.open("between", "again")
	x, _ := f.finished("again")
	require.Equal(t, engine.StatusSuccess, x.Status)
	require.Len(t, ran.of("", "Pay"), 2, "of first and between")
	f.emptyGates()
}

// Places of executions that were never stored, as their coordinator died, are given out again, within
// seconds and by whoever is there.
func TestReport81PlacesOfTheDeadAreFree(t *testing.T) {
	t.Parallel()
	f := startWith(t, 2, gated)
	d := &door{ctx: t.Context()}
	ran := f.work(d.run)
	now := time.Now().UnixMilli()
	for i := range 5 {
		a := f.stores[0].Gate(t.Context(), []state.GateCall{{Gate: "limited", Execution: engine.ExecutionID(fmt.Sprintf("dead%d", i)), Limit: 5, At: now}})
		require.NoError(t, a[0].Err)
		require.Zero(t, a[0].Position)
	}
	a := f.stores[0].Gate(t.Context(), []state.GateCall{{Gate: "limited", Execution: "queued-dead", Limit: 5, At: now}})
	require.Equal(t, 1, a[0].Position)
	f.begin(queue.Submission{ID: "alive", Workflow: atMost(5)})
	require.Equal(t, engine.StatusNew, f.status("alive"))
	before := time.Now()
	f.begun(ran, "Work", 1)
	require.Less(t, time.Since(before), 6*time.Second, "the default lease")
	d.open("alive")
	f.finished("alive")
	f.emptyGates()
}

// A coordinator that dies after it called the next execution, or before it could leave: others go on.
func TestGateOfADeadCoordinator(t *testing.T) {
	t.Parallel()
	f := startWith(t, 1, gated)
	d := &door{ctx: t.Context()}
	ran := f.work(d.run)
	for _, id := range []engine.ExecutionID{"a", "b", "c"} {
		f.begin(queue.Submission{ID: id, Workflow: atMost(1)})
	}
	f.begun(ran, "Work", 1)
	// b is called, and whoever called it does not tell it.
	a := f.stores[0].Gate(t.Context(), []state.GateCall{{Op: state.GateLeave, Gate: "limited", Execution: "a", At: time.Now().UnixMilli()}})
	require.NoError(t, a[0].Err)
	require.Equal(t, []engine.ExecutionID{"b"}, a[0].Next)
	f.begun(ran, "Work", 2)
	f.stop()
	f.add(gated)
	d.open("a", "b", "c")
	for _, id := range []string{"a", "b", "c"} {
		f.finished(id)
	}
	order := f.begun(ran, "Work", len(ran.of("", "Work")))
	require.Equal(t, engine.ExecutionID("c"), order[slices.Index(order, "c")])
	f.emptyGates()
	f.settled()
}

// leaveless is a coordinator's store that does not reach gates to leave them.
type leaveless struct {
	*state.Store
	broken *atomic.Bool
}

func (l leaveless) Gate(ctx context.Context, calls []state.GateCall) []state.GateAnswer {
	answers := make([]state.GateAnswer, len(calls))
	for i, c := range calls {
		if c.Op == state.GateLeave && l.broken.Load() {
			answers[i].Err = state.ErrUnavailable
			continue
		}
		answers[i] = l.Store.Gate(ctx, calls[i:i+1])[0]
	}
	return answers
}

// An end whose place was not given up is not forgotten: it stays unsettled.
func TestPlaceIsGivenUpLater(t *testing.T) {
	t.Parallel()
	var broken atomic.Bool
	broken.Store(true)
	f := startWith(t, 1, func(c *coordinator.Config) { c.Gates = leaveless{c.Store.(*state.Store), &broken} })
	d := &door{ctx: t.Context()}
	ran := f.work(d.run)
	f.begin(queue.Submission{ID: "a", Workflow: atMost(1)})
	f.begin(queue.Submission{ID: "b", Workflow: atMost(1)})
	d.open("a", "b")
	f.finished("a")
	require.Equal(t, engine.StatusNew, f.status("b"))
	f.stop() // dies with what it owes
	broken.Store(false)
	f.add(gated)
	f.finished("b")
	require.Len(t, ran.of("", "Work"), 2)
	f.emptyGates()
	f.settled()
}

// Whoever is refused looks after its place by work for the same lane. The lane must not wait for room in its
// own queue then.
func TestManyRefusalsInOneLane(t *testing.T) {
	t.Parallel()
	f := startWith(t, 1, func(c *coordinator.Config) {
		gated(c)
		c.Lanes, c.Group = 1, 1
	})
	f.work(func(*queue.Job, string) (engine.Result, bool) { return outputs(`{}`), true })
	answers := make(chan error)
	const repeats = 100
	for range repeats {
		go func() {
			_, err := f.conn.Submit(t.Context(), &queue.Submission{ID: "x", Workflow: atMost(1)})
			answers <- err
		}()
	}
	for range repeats {
		require.NoError(t, <-answers)
	}
	f.ended("x", engine.StatusSuccess)
	f.emptyGates()
}
