package faulttest

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reprise-engine/reprise/internal/cluster"
	"github.com/reprise-engine/reprise/internal/redistest"
	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/queue"
)

// purge empties the job stream, with what is queued and what is running.
func purge(t *testing.T, c *cluster.Cluster) {
	t.Helper()
	jobs, err := stream(t, c).Stream(t.Context(), queue.StreamJobs)
	require.NoError(t, err)
	require.NoError(t, jobs.Purge(t.Context()))
}

// Report 60: everything is restarted after executions have finished: they stay what they are.
func TestReport60RestartChangesNoEnd(t *testing.T) {
	t.Parallel()
	c := cluster.New(t, cluster.Options{Lease: calm})
	c.StartAll()
	ids := c.Submit(20)
	c.Settled(ids, within, cluster.Once)
	before, err := c.Look(ids...)
	require.NoError(t, err)
	for _, p := range c.Processes() {
		p.Kill()
	}
	c.NATS.Kill()
	c.Redis.Restart(t)
	c.NATS.Restart()
	c.StartAll()
	more := c.Submit(5)
	c.Settled(append(more, ids...), within, cluster.Once)
	after, err := c.Look(ids...)
	require.NoError(t, err)
	for i := range ids {
		require.Equal(t, before[i].Meta, after[i].Meta)
	}
}

// Report 67: two coordinators look for the same orphans while one of them is asked to end,
// and Redis' answers are lost on the way. The work is done once, and none is dropped.
func TestReport67TwoLookForTheSameOrphans(t *testing.T) {
	t.Parallel()
	var proxy *redistest.Proxy
	c := cluster.New(t, cluster.Options{Lease: calm, RedisVia: func(addr string) string {
		proxy = redistest.StartProxy(t, addr)
		return strings.TrimSuffix(strings.TrimPrefix(proxy.URL(), "redis://"), "/0")
	}})
	c.Start(c.Coordinators...)
	ids := c.Submit(10) // nobody works: their first jobs rest on the stream
	purge(t, c)
	proxy.LoseReplies(6, "evalsha")
	c.Coordinators[0].Terminate()
	c.Start(c.Workers...)
	took := c.AwaitFinished(ids, within)
	recovered(t, c, "jobs lost, a coordinator ends, Redis' replies lost", "all executions finished", took, recoveryLimit)
	c.Coordinators[0].AwaitExit(within)
	c.Settled(ids, within, cluster.Once)
}

// Report 69: the server forgets who has which job, while tools run: the workers' consumer is
// deleted. Jobs go on, and what runs is not given to another worker beside it.
func TestReport69ConsumerDeleted(t *testing.T) {
	t.Parallel()
	c := cluster.New(t, cluster.Options{Lease: calm})
	c.StartAll()
	arrived, open := c.Ledger.Hold("Beta")
	ids := c.Submit(5)
	arrives(t, arrived, len(ids))
	require.NoError(t, stream(t, c).DeleteConsumer(t.Context(), queue.StreamJobs, "pool-default"))
	deleted := time.Now()
	more := c.Submit(5) // is worked on by a new consumer, after what had been given out before
	arrives(t, arrived, len(more))
	open()
	ids = append(ids, more...)
	c.AwaitFinished(ids, within)
	recovered(t, c, "workers' consumer deleted", "all executions finished", time.Since(deleted), recoveryLimit)
	c.Settled(ids, within, cluster.Once)
}

// Report 75: one execution runs, ten are queued, when everything is killed and the queue is
// lost. All eleven end.
func TestReport75EverythingKilledAndTheQueueLost(t *testing.T) {
	t.Parallel()
	c := cluster.New(t, cluster.Options{Workers: 1, Concurrency: 1})
	c.StartAll()
	arrived, open := c.Ledger.Hold("Work")
	document := c.Ledger.Chain("work", "Work", "Then")
	ids := c.SubmitOf(document, 1)
	arrives(t, arrived, 1)
	ids = append(ids, c.SubmitOf(document, 10)...)
	for _, p := range c.Processes() {
		p.Kill()
	}
	purge(t, c)
	c.NATS.Kill()
	c.Redis.Restart(t)
	c.NATS.Restart()
	open()
	c.StartAll()
	begin := time.Now()
	c.AwaitFinished(ids, within)
	recovered(t, c, "everything killed, and the jobs lost", "all executions finished", time.Since(begin), recoveryLimit)
	c.Idle(within)
	statuses(t, c, ids, engine.StatusSuccess)
	for i, id := range ids {
		want := 1
		if i == 0 {
			want = 2 // its worker died with it
		}
		keys := c.Ledger.Keys(id, "Work")
		require.Len(t, keys, want, "%s", id)
		require.Equal(t, keys[0], keys[want-1])
		require.Len(t, c.Ledger.Keys(id, "Then"), 1)
	}
}

// Report 111: the connection of a worker that waits for a job dies, and nobody is told. The
// job it is given there is with another worker soon.
func TestReport111JobForADeadConnection(t *testing.T) {
	t.Parallel()
	c := cluster.New(t, cluster.Options{Workers: 2})
	wire := cluster.NewWire(t, strings.TrimPrefix(c.NATS.URL, "nats://"))
	c.Workers[0].Env = append(c.Workers[0].Env, "REPRISE_NATS_URL=nats://"+wire.Addr())
	c.Start(append(append([]*cluster.Process{}, c.Coordinators...), c.Workers[0])...)
	c.Settled(c.Submit(1), within, cluster.Once) // it takes jobs
	wire.Kill()
	ids := c.Submit(3)
	require.Eventually(t, func() bool { return consumer(t, c).NumAckPending == len(ids) }, within, 5*time.Millisecond,
		"the jobs were given to the dead connection")
	given := time.Now()
	c.Start(c.Workers[1])
	c.AwaitFinished(ids, within)
	recovered(t, c, "jobs given to a dead connection", "their executions finished", time.Since(given), recoveryLimit)
	c.Settled(ids, within, cluster.Once)
}
