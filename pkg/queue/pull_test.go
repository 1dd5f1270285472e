package queue

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// What a worker asked for is over before its jobs are given to others, so that one that was
// stopped is not given them again.
func TestPullsEndBeforeJobsGoToOthers(t *testing.T) {
	for lease, want := range map[time.Duration]time.Duration{
		0: 5 * time.Second, time.Second: time.Second * 2 / 3, 3 * time.Second: 2 * time.Second, 6 * time.Second: 4 * time.Second, time.Minute: 5 * time.Second,
	} {
		require.Equal(t, want, pullExpiry(lease, false), "%s", lease)
		require.LessOrEqual(t, pullExpiry(lease, true), pullExpiresShared)
	}
}

// A worker that has nothing to do exchanges two messages with the server for each pull.
func TestIdleWorkerIsQuiet(t *testing.T) {
	_, worker := start(t)
	jobs(t, worker, WorkerConfig{Slots: 4, AckWait: 900 * time.Millisecond})
	pulls := func() uint64 { return worker.Stats().Pulls }
	require.Eventually(t, func() bool { return pulls() >= 2 }, patience, time.Millisecond)
	before := worker.Stats()
	require.Eventually(t, func() bool { return pulls() >= before.Pulls+5 }, patience, time.Millisecond)
	after := worker.Stats()
	n := after.Pulls - before.Pulls
	require.LessOrEqual(t, after.OutMsgs-before.OutMsgs, n)
	require.LessOrEqual(t, after.InMsgs-before.InMsgs, n)
}

// A consumer that was deleted has forgotten what it gave out: what was published before the
// new one was created counts as published before the connection.
func TestConsumerCreatedAgain(t *testing.T) {
	coordinator, worker := start(t)
	j := jobs(t, worker, WorkerConfig{Slots: 4, AckWait: 30 * time.Second})
	publish(t, coordinator, job(1))
	first := next(t, j)
	_, again := worker.ConnectedAt()
	require.False(t, again)
	require.NoError(t, coordinator.js.DeleteConsumer(t.Context(), StreamJobs, consumerJobs(poolName(""))))
	second := next(t, j)
	require.Equal(t, first.Job().ID, second.Job().ID)
	require.Equal(t, 1, second.Deliveries(), "the server does not know of the first one")
	at, again := worker.ConnectedAt()
	require.True(t, again)
	require.True(t, second.Published().Before(at))
}

// A worker that has all its slots taken asks for nothing and is not told that the consumer was
// deleted, and created again by another. It finds out by the first job it is given then.
func TestConsumerCreatedAgainByAnother(t *testing.T) {
	coordinator, worker := start(t)
	j := jobs(t, worker, WorkerConfig{Slots: 2, AckWait: 30 * time.Second})
	publish(t, coordinator, job(1))
	first := next(t, j)
	publish(t, coordinator, job(2))
	second := next(t, j)
	name := consumerJobs(poolName(""))
	consumer, err := coordinator.js.Consumer(t.Context(), StreamJobs, name)
	require.NoError(t, err)
	require.NoError(t, coordinator.js.DeleteConsumer(t.Context(), StreamJobs, name))
	_, err = coordinator.js.CreateConsumer(t.Context(), StreamJobs, consumer.CachedInfo().Config)
	require.NoError(t, err)
	_, again := worker.ConnectedAt()
	require.False(t, again, "nobody told the worker")
	second.Done()
	repeated := next(t, j)
	require.Equal(t, first.Job().ID, repeated.Job().ID)
	require.Equal(t, 1, repeated.Deliveries(), "the server does not know of the first one")
	at, again := worker.ConnectedAt()
	require.True(t, again)
	require.True(t, repeated.Published().Before(at))
}
