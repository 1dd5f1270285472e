package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reprise-engine/reprise/internal/runner"
	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/expression"
	"github.com/reprise-engine/reprise/pkg/node"
	"github.com/reprise-engine/reprise/pkg/queue"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// delivery is a job in the tests' hands.
type delivery struct {
	job        queue.Job
	deliveries int
	published  time.Time

	mu   sync.Mutex
	said []string // what the worker told the stream
}

func (d *delivery) Job() *queue.Job      { return &d.job }
func (d *delivery) Deliveries() int      { return d.deliveries }
func (d *delivery) Published() time.Time { return d.published }
func (d *delivery) Ack() string          { return "ack." + string(d.job.ID) }
func (d *delivery) InProgress() error    { return d.say("progress") }
func (d *delivery) Nak(time.Duration) error {
	return d.say("nak")
}
func (d *delivery) Term() error { return d.say("term") }
func (d *delivery) Done()       { _ = d.say("done") }

func (d *delivery) say(word string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.said = append(d.said, word)
	return nil
}

func (d *delivery) told() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return append([]string{}, d.said...)
}

// world is the source and the coordinators.
type world struct {
	jobs      chan Delivery
	results   chan *queue.Result
	confirm   func(n int) (queue.Reply, error) // of the n-th try to send a result
	verdict   string
	held      bool
	connected time.Time
	last      Delivery // comes a moment after no more are wanted
	slots     int

	mu        sync.Mutex
	sends     int
	questions int
	doubts    int // questions about jobs that run
	slow      time.Duration
	over      bool
}

func (w *world) Next(ctx context.Context) (Delivery, error) {
	select {
	case d := <-w.jobs:
		return d, nil
	case <-ctx.Done():
		if d := w.last; d != nil {
			w.last = nil
			time.Sleep(time.Second)
			return d, nil
		}
		return nil, ctx.Err()
	}
}

func (w *world) SendResult(_ context.Context, _ string, r *queue.Result) (queue.Reply, error) {
	w.mu.Lock()
	w.sends++
	n := w.sends
	w.mu.Unlock()
	reply, err := queue.Reply{Verdict: queue.VerdictOK}, error(nil)
	if w.confirm != nil {
		reply, err = w.confirm(n)
	}
	if err == nil && reply.Verdict == queue.VerdictOK {
		w.results <- r
	}
	return reply, err
}

func (w *world) AskRedelivery(_ context.Context, q *queue.Redelivery) (queue.Reply, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if q.Running {
		w.doubts++
		if w.over {
			return queue.Reply{Verdict: queue.VerdictDrop}, nil
		}
		return queue.Reply{Verdict: queue.VerdictRun}, nil
	}
	w.questions++
	time.Sleep(w.slow)
	return queue.Reply{Verdict: w.verdict}, nil
}

func (w *world) AskHolder(context.Context, engine.JobID) (bool, error) { return w.held, nil }
func (w *world) ConnectedAt() (time.Time, bool)                        { return w.connected, false }
func (w *world) Healthy() error                                        { return nil }

func (w *world) asked() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.questions
}

// start runs a worker whose only node type does run.
func start(t *testing.T, w *world, run func(context.Context) error) *Worker {
	t.Helper()
	registry := &node.Registry{}
	registry.Register(&node.Type{
		Spec: workflow.Spec{Type: "test.work", Versions: []float64{1}},
		Execute: func(ctx context.Context, _ *node.Call) (*node.Result, error) {
			return &node.Result{Result: engine.Result{Outputs: []workflow.Items{{{JSON: json.RawMessage(`{}`)}}}}}, run(ctx)
		},
	})
	w.jobs, w.results = make(chan Delivery), make(chan *queue.Result, 10)
	worker := New(Config{
		Name: "test", Source: w, Transport: w, Lease: 3 * time.Second, Slots: w.slots,
		Runner: runner.New(runner.Config{Registry: registry, Evaluator: &expression.Evaluator{}}),
	})
	worker.Start()
	return worker
}

func newDelivery(id string) *delivery {
	plan := queue.Plan{Node: "Work", Nodes: []*workflow.Node{{Name: "Work", Type: "test.work", TypeVersion: 1, Parameters: []byte("{}")}}}
	raw, _ := json.Marshal(plan)
	return &delivery{
		job:        queue.Job{ID: engine.JobID(id), Execution: "x", Plan: raw, PlanHash: "p", DispatchedAt: time.Now().UnixMilli()},
		deliveries: 1, published: time.Now(),
	}
}

func nothing(context.Context) error { return nil }

func untilStopped(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }

func TestWhichJobsAreAskedAbout(t *testing.T) {
	for _, test := range []struct {
		name   string
		change func(*delivery, *world)
		asks   bool
	}{
		{"a new one is not", func(*delivery, *world) {}, false},
		{"delivered before", func(d *delivery, _ *world) { d.deliveries = 2 }, true},
		{"published a second time", func(d *delivery, _ *world) { d.job.Confirm = true }, true},
		{"published long after its commit", func(d *delivery, _ *world) { d.published = d.published.Add(lateAfter + time.Second) }, true},
		{"older than the connection", func(d *delivery, w *world) { w.connected = d.published.Add(time.Second) }, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := &world{verdict: queue.VerdictRun}
				worker := start(t, w, nothing)
				defer worker.Stop(t.Context())
				d := newDelivery("x_1")
				test.change(d, w)
				w.jobs <- d
				result := <-w.results
				require.Equal(t, engine.JobID("x_1"), result.Job)
				require.Equal(t, "ack.x_1", result.Ack)
				require.Equal(t, test.asks, w.asked() == 1, "asked %d times", w.asked())
			})
		})
	}
}

func TestAJobThatIsHeldOrAnsweredIsNotRun(t *testing.T) {
	for _, test := range []struct {
		name string
		w    *world
		said string
	}{
		{"another worker holds it", &world{held: true, verdict: queue.VerdictRun}, "nak"},
		{"it was answered", &world{verdict: queue.VerdictDrop}, "term"},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ran := false
				worker := start(t, test.w, func(context.Context) error { ran = true; return nil })
				d := newDelivery("x_1")
				d.deliveries = 2
				test.w.jobs <- d
				synctest.Wait()
				worker.Stop(t.Context())
				require.False(t, ran)
				require.Contains(t, d.told(), test.said)
				require.Contains(t, d.told(), "done")
			})
		})
	}
}

func TestAResultIsSentUntilItIsConfirmed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{}
		w.confirm = func(n int) (queue.Reply, error) {
			switch n {
			case 1:
				return queue.Reply{}, errors.New("no coordinator")
			case 2:
				return queue.Reply{Verdict: queue.VerdictError, Error: "redis is away"}, nil
			}
			return queue.Reply{Verdict: queue.VerdictOK}, nil
		}
		worker := start(t, w, nothing)
		defer worker.Stop(t.Context())
		d := newDelivery("x_1")
		w.jobs <- d
		<-w.results
		require.Equal(t, 3, w.sends)
		require.NotContains(t, d.told(), "nak")
		require.Equal(t, "done", d.told()[0], "the slot is free while the result waits")
	})
}

func TestTheLeaseIsKeptWhileAJobRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{}
		worker := start(t, w, func(context.Context) error { time.Sleep(10 * time.Second); return nil })
		defer worker.Stop(t.Context())
		d := newDelivery("x_1")
		w.jobs <- d
		<-w.results
		progress := 0
		for _, word := range d.told() {
			if word == "progress" {
				progress++
			}
		}
		require.GreaterOrEqual(t, progress, 9, "a sign of life every third of the lease")
	})
}

func TestDropStopsARunningJob(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{}
		worker := start(t, w, untilStopped)
		d := newDelivery("x_1")
		w.jobs <- d
		synctest.Wait()
		require.True(t, worker.Holds("x_1"))
		worker.Drop([]engine.JobID{"x_1", "unknown"})
		synctest.Wait()
		require.False(t, worker.Holds("x_1"))
		require.Contains(t, d.told(), "term")
		worker.Stop(t.Context())
	})
}

// The order to drop a job was lost with the coordinator that gave it.
func TestAJobThatTakesLongIsAskedAboutWhileItRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{}
		worker := start(t, w, untilStopped)
		d := newDelivery("x_1")
		w.jobs <- d
		time.Sleep(30 * time.Second)
		require.True(t, worker.Holds("x_1"))
		w.mu.Lock()
		require.Equal(t, 2, w.doubts, "once every four leases")
		w.over = true
		w.mu.Unlock()
		time.Sleep(12 * time.Second)
		require.False(t, worker.Holds("x_1"))
		require.Contains(t, d.told(), "term")
		worker.Stop(t.Context())
	})
}

// A question about a large execution takes long: the job must not be given to others meanwhile.
func TestTheLeaseIsKeptWhileACoordinatorIsAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{verdict: queue.VerdictRun, slow: 10 * time.Second}
		worker := start(t, w, nothing)
		defer worker.Stop(t.Context())
		d := newDelivery("x_1")
		d.deliveries = 2
		w.jobs <- d
		<-w.results
		progress := 0
		for _, word := range d.told() {
			if word == "progress" {
				progress++
			}
		}
		require.GreaterOrEqual(t, progress, 9, "a sign of life every third of the lease")
	})
}

func TestStopHandsBackWhatDoesNotFinishInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{}
		worker := start(t, w, untilStopped)
		d := newDelivery("x_1")
		w.jobs <- d
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		began := time.Now()
		worker.Stop(ctx)
		require.Equal(t, 5*time.Second, time.Since(began))
		require.Contains(t, d.told(), "nak")
		worker.Stop(ctx) // harmless
	})
}

// A job that was on its way when the worker was stopped is run like the others.
// A worker has as many jobs at once as it has slots, however many that are.
func TestManySlots(t *testing.T) {
	const slots = 3000
	away := func(int) (queue.Reply, error) { return queue.Reply{}, errors.New("no coordinator is there") }
	w := &world{slots: slots, confirm: away}
	var running sync.WaitGroup
	running.Add(slots)
	worker := start(t, w, func(ctx context.Context) error { running.Done(); return untilStopped(ctx) })
	for i := range slots {
		select {
		case w.jobs <- newDelivery(fmt.Sprint("e_", i)):
		case <-time.After(10 * time.Second):
			t.Fatalf("no more than %d jobs run", i)
		}
	}
	running.Wait()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	worker.Stop(ctx)
}

// However many jobs end at the same moment, a coordinator is sent no more results than it can answer soon.
func TestResultsAreSentInTurn(t *testing.T) {
	const jobs = 2 * maxSending
	var sending, most atomic.Int64
	answer := make(chan struct{})
	w := &world{slots: jobs, confirm: func(int) (queue.Reply, error) {
		now := sending.Add(1)
		for before := most.Load(); now > before && !most.CompareAndSwap(before, now); before = most.Load() {
		}
		<-answer
		sending.Add(-1)
		return queue.Reply{Verdict: queue.VerdictOK}, nil
	}}
	worker := start(t, w, nothing)
	for i := range jobs {
		w.jobs <- newDelivery(fmt.Sprint("e_", i))
	}
	require.Eventually(t, func() bool { return sending.Load() == maxSending }, 10*time.Second, time.Millisecond)
	close(answer)
	for range jobs {
		<-w.results
	}
	require.EqualValues(t, maxSending, most.Load())
	worker.Stop(t.Context())
}

func TestStopWaitsForTheLastJob(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{last: newDelivery("x_1")}
		worker := start(t, w, func(ctx context.Context) error {
			select {
			case <-time.After(time.Second):
			case <-ctx.Done():
			}
			return ctx.Err()
		})
		synctest.Wait()
		worker.Stop(t.Context())
		require.Len(t, w.results, 1, "its result is confirmed when Stop returns")
		result := <-w.results
		require.False(t, result.HandedBack)
		require.Nil(t, result.Result.Error)
		require.Len(t, result.Result.Outputs, 1)
	})
}
