package queue

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest"

	"github.com/reprise-engine/reprise/internal/embedded"
	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/node"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// The goroutine of nats.go is left when a connection is closed in the moment in which it begins: its
// channel is forgotten before it reads it.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("github.com/nats-io/nats.go/jetstream.(*jetStream).resetPendingAcksOnReconnect"))
}

const patience = 15 * time.Second

func startNATS(t testing.TB, dir string, o embedded.NATSOptions) *embedded.NATS {
	t.Helper()
	n, err := embedded.StartNATS(dir, o)
	require.NoError(t, err)
	t.Cleanup(n.Shutdown)
	return n
}

func connect(t testing.TB, url string) *Conn {
	t.Helper()
	log := zap.NewNop()
	if _, ok := t.(*testing.T); ok {
		log = zaptest.NewLogger(t)
	}
	c, err := Connect(t.Context(), Config{URL: url, Name: t.Name(), Log: log})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c
}

// start gives a coordinator's and a worker's connection to a new server with streams.
func start(t testing.TB) (coordinator, worker *Conn) {
	t.Helper()
	n := startNATS(t, t.TempDir(), embedded.NATSOptions{})
	coordinator = connect(t, n.URL)
	require.NoError(t, coordinator.EnsureStreams(t.Context(), Streams{}))
	return coordinator, connect(t, n.URL)
}

func job(id int) *Job {
	return &Job{
		Version: Version, ID: engine.JobID(fmt.Sprintf("exec-1_%d", id)), Execution: "exec-1", Attempt: 1,
		Coordinator: "c1", IdempotencyKey: "key", Plan: json.RawMessage(`{"node":"A"}`), PlanHash: "h",
		Inputs: []workflow.Items{{{JSON: json.RawMessage(`{"text":"<b>&"}`)}}},
	}
}

func jobs(t testing.TB, c *Conn, config WorkerConfig, pools ...string) *JobConsumer {
	t.Helper()
	if len(pools) == 0 {
		pools = []string{DefaultPool}
	}
	consumer, err := c.Jobs(t.Context(), pools, config)
	require.NoError(t, err)
	t.Cleanup(consumer.Stop)
	return consumer
}

func next(t testing.TB, j *JobConsumer) *JobDelivery {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	d, err := j.Next(ctx)
	require.NoError(t, err)
	return d
}

func publish(t testing.TB, c *Conn, jobs ...*Job) {
	t.Helper()
	for i, err := range c.PublishJobs(t.Context(), jobs) {
		require.NoError(t, err, "job %s", jobs[i].ID)
	}
}

// noneWithin asserts that no job comes for a while.
func noneWithin(t testing.TB, j *JobConsumer, d time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	got, err := j.Next(ctx)
	if err == nil {
		t.Fatalf("got job %s, delivery %d, want none", got.Job().ID, got.Deliveries())
	}
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

func queued(t testing.TB, c *Conn) uint64 {
	t.Helper()
	stream, err := c.js.Stream(t.Context(), StreamJobs)
	require.NoError(t, err)
	return stream.CachedInfo().State.Msgs
}

func TestJobIsRefusedUntilAcknowledgedAndAcceptedAfter(t *testing.T) {
	coordinator, worker := start(t)
	publish(t, coordinator, job(1))
	require.Equal(t, []error{ErrQueued}, coordinator.PublishJobs(t.Context(), []*Job{job(1)}), "while queued")

	j := jobs(t, worker, WorkerConfig{Slots: 4})
	d := next(t, j)
	require.Equal(t, job(1), d.Job())
	require.Equal(t, 1, d.Deliveries())
	require.WithinDuration(t, time.Now(), d.Published(), time.Minute)
	require.Equal(t, []error{ErrQueued}, coordinator.PublishJobs(t.Context(), []*Job{job(1)}), "while running")

	require.NoError(t, coordinator.Ack(d.Ack()))
	require.Eventually(t, func() bool { return queued(t, coordinator) == 0 }, patience, time.Millisecond)
	publish(t, coordinator, job(1))
	require.Equal(t, 1, next(t, j).Deliveries())
	require.EqualValues(t, 2, coordinator.Stats().Published)
	require.EqualValues(t, 2, coordinator.Stats().Refused)
}

func TestPublishReportsEachJobByItself(t *testing.T) {
	coordinator, _ := start(t)
	publish(t, coordinator, job(2))
	bad, badPool := job(1), job(4)
	bad.ID, badPool.Pool = "exec.1_*", "a.b"
	errs := coordinator.PublishJobs(t.Context(), []*Job{job(1), bad, job(2), badPool, job(3)})
	require.NoError(t, errs[0])
	require.ErrorContains(t, errs[1], "only letters, digits")
	require.ErrorIs(t, errs[2], ErrQueued)
	require.ErrorContains(t, errs[3], "pool")
	require.NoError(t, errs[4])
	require.EqualValues(t, 3, queued(t, coordinator))
}

func TestUnacknowledgedJobComesAgain(t *testing.T) {
	coordinator, worker := start(t)
	j := jobs(t, worker, WorkerConfig{Slots: 4, AckWait: 300 * time.Millisecond})
	publish(t, coordinator, job(1))
	first := next(t, j)
	require.Equal(t, 1, first.Deliveries())
	second := next(t, j)
	require.Equal(t, 2, second.Deliveries())
	require.Equal(t, first.Job().ID, second.Job().ID)

	// Signs of life put it off.
	for range 8 {
		require.NoError(t, second.InProgress())
		noneWithin(t, j, 150*time.Millisecond)
	}
	require.NoError(t, second.Nak(0))
	third := next(t, j)
	require.Equal(t, 3, third.Deliveries())
	require.NoError(t, third.Term())
	noneWithin(t, j, 600*time.Millisecond)
	require.Zero(t, queued(t, coordinator))
}

func TestWorkerNeverHoldsMoreThanItsSlots(t *testing.T) {
	coordinator, worker := start(t)
	const slots, total = 5, 200
	a := jobs(t, worker, WorkerConfig{Slots: slots})
	var all []*Job
	for i := range total {
		all = append(all, job(i))
	}
	publish(t, coordinator, all...)

	var taken []*JobDelivery
	for range slots {
		taken = append(taken, next(t, a))
	}
	noneWithin(t, a, 100*time.Millisecond)
	info, err := coordinator.js.Consumer(t.Context(), StreamJobs, consumerJobs(DefaultPool))
	require.NoError(t, err)
	require.Equal(t, slots, info.CachedInfo().NumAckPending, "the server must not have given out more")

	// Another worker gets the rest although the first one has not moved.
	b := jobs(t, worker, WorkerConfig{Slots: 16})
	var held, most atomic.Int64
	var wg sync.WaitGroup
	for range total - slots {
		d := next(t, b)
		most.Store(max(most.Load(), held.Add(1)))
		wg.Go(func() {
			require.NoError(t, coordinator.Ack(d.Ack()))
			held.Add(-1)
			d.Done()
			d.Done()
		})
	}
	wg.Wait()
	require.LessOrEqual(t, most.Load(), int64(16))
	require.Equal(t, slots, a.Held())
	require.Zero(t, b.Held())
	for _, d := range taken {
		require.NoError(t, coordinator.Ack(d.Ack()))
		d.Done()
	}
	require.Eventually(t, func() bool { return queued(t, coordinator) == 0 }, patience, time.Millisecond)
}

func TestPoolsShareSlotsAndNoneStarves(t *testing.T) {
	coordinator, worker := start(t)
	j := jobs(t, worker, WorkerConfig{Slots: 4}, "gpu", "default", "gpu", "")
	in := func(pool string, n int) (out []*Job) {
		for i := range n {
			one := job(i)
			one.ID, one.Pool = engine.JobID(fmt.Sprintf("%s_%d", pool, i)), pool
			out = append(out, one)
		}
		return out
	}
	publish(t, coordinator, in("default", 100)...)
	publish(t, coordinator, in("gpu", 3)...)
	seen := map[string]int{}
	for seen["gpu"] < 3 {
		d := next(t, j)
		require.LessOrEqual(t, j.Held(), 4)
		seen[poolName(d.Job().Pool)]++
		require.NoError(t, coordinator.Ack(d.Ack()))
		d.Done()
	}
	require.Less(t, seen["default"], 100, "the small pool must not wait for the big one")
	for seen["default"] < 100 {
		d := next(t, j)
		seen[poolName(d.Job().Pool)]++
		require.NoError(t, coordinator.Ack(d.Ack()))
		d.Done()
	}

	_, err := worker.Jobs(t.Context(), []string{"a", "b"}, WorkerConfig{Slots: 1})
	require.ErrorContains(t, err, "at least one slot for each")
	_, err = worker.Jobs(t.Context(), []string{"a.b"}, WorkerConfig{Slots: 1})
	require.ErrorContains(t, err, "pool")
	_, err = worker.Jobs(t.Context(), nil, WorkerConfig{Slots: 1})
	require.ErrorContains(t, err, "at least one pool")
}

func TestStopHandsBackWhatWasNotTaken(t *testing.T) {
	coordinator, worker := start(t)
	j := jobs(t, worker, WorkerConfig{Slots: 8})
	publish(t, coordinator, job(1), job(2), job(3))
	held := next(t, j)
	require.Eventually(t, func() bool { return j.Held() == 3 }, patience, time.Millisecond)
	j.Stop()
	j.Stop()
	_, err := j.Next(t.Context())
	require.ErrorIs(t, err, ErrClosed)

	// Long before the lease of 30 s, another worker has them.
	other := jobs(t, worker, WorkerConfig{Slots: 8})
	for range 2 {
		d := next(t, other)
		require.Equal(t, 2, d.Deliveries())
		require.NotEqual(t, held.Job().ID, d.Job().ID)
		require.NoError(t, coordinator.Ack(d.Ack()))
	}
	require.NoError(t, coordinator.Ack(held.Ack()), "a job that is held may still be answered")
	require.Eventually(t, func() bool { return queued(t, coordinator) == 0 }, patience, time.Millisecond)
}

// A worker stops at the moment at which it is given a job: it gets the job, or an error.
func TestNextWhileStopping(t *testing.T) {
	coordinator, worker := start(t)
	j := jobs(t, worker, WorkerConfig{Slots: 1})
	publish(t, coordinator, job(1))
	require.Eventually(t, func() bool { return j.Held() == 1 }, patience, time.Millisecond)
	stopped, stop := context.WithCancel(t.Context())
	stop()
	d, err := j.Next(stopped)
	require.NoError(t, err)
	require.NotNil(t, d)
	require.Equal(t, job(1).ID, d.Job().ID)
	d.Done()
	d, err = j.Next(stopped)
	require.ErrorIs(t, err, context.Canceled)
	require.Nil(t, d)
}

func TestWithdraw(t *testing.T) {
	coordinator, worker := start(t)
	publish(t, coordinator, job(1), job(2))
	require.NoError(t, coordinator.Withdraw(t.Context(), "", job(1).ID, "never-was_1"))
	j := jobs(t, worker, WorkerConfig{Slots: 2})
	require.Equal(t, job(2).ID, next(t, j).Job().ID)
	noneWithin(t, j, 50*time.Millisecond)
}

func TestJobsThatCannotBeRead(t *testing.T) {
	coordinator, worker := start(t)
	j := jobs(t, worker, WorkerConfig{Slots: 1})
	newer := job(1)
	newer.Version = Version + 1
	publish(t, coordinator, newer)
	_, err := coordinator.js.Publish(t.Context(), "reprise.job.default.x_1", []byte(`{"v":1,"inputs":"nonsense"}`))
	require.NoError(t, err)
	_, err = coordinator.js.Publish(t.Context(), "reprise.job.default.x_2", []byte(`{"v":99,"inputs":"another shape"}`))
	require.NoError(t, err)
	publish(t, coordinator, job(2))
	require.Equal(t, job(2).ID, next(t, j).Job().ID, "with one slot: those before it were passed over")
	// The signal that removes the damaged one is not confirmed.
	require.Eventually(t, func() bool { return queued(t, coordinator) == 3 }, 10*time.Second, 5*time.Millisecond,
		"the damaged one is gone, those for newer workers are kept")
}

func result(d *JobDelivery, text string) *Result {
	quoted, _ := json.Marshal(text)
	return &Result{
		Version: Version, Job: d.Job().ID, Execution: d.Job().Execution, Ack: d.Ack(),
		Result: node.Result{Result: engine.Result{Outputs: []workflow.Items{{{JSON: json.RawMessage(`{"text":` + string(quoted) + `}`)}}}}},
	}
}
