package faulttest

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/reprise-engine/reprise/internal/cluster"
	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/queue"
)

// Report 107: NATS is killed under load and comes back: every worker takes jobs
// again within ten seconds, and nobody was restarted.
func TestReport107NATSRestartUnderLoad(t *testing.T) {
	t.Parallel()
	c := cluster.New(t, cluster.Options{Lease: calm})
	c.StartAll()
	for _, tool := range c.Tools {
		c.Ledger.Answer(tool, cluster.Takes(200*time.Millisecond))
	}
	ids := c.Submit(20)
	var more []string
	submitted := make(chan struct{})
	go func() { // goes on while there is no NATS
		defer close(submitted)
		more = c.SubmitOf(c.Workflow, 20)
	}()
	c.NATS.Kill()
	c.AwaitReadiness(false, recoveryLimit, c.Processes()...)
	c.NATS.Restart()
	back := time.Now()
	working := map[string]bool{}
	c.Await(within, func() string {
		batch := c.Submit(6)
		c.AwaitFinished(batch, within)
		more := workers(t, c, batch, back)
		for name := range more {
			working[name] = true
		}
		ids = append(ids, batch...)
		if len(working) < len(c.Workers) {
			return fmt.Sprintf("only %d workers take jobs", len(working))
		}
		return ""
	})
	recovered(t, c, "NATS restarted under load", "all workers took jobs", time.Since(back), recoveryLimit)
	<-submitted
	c.Settled(append(ids, more...), within, cluster.Once)
}

// workers are those that ran something of executions after a moment.
func workers(t *testing.T, c *cluster.Cluster, ids []string, after time.Time) map[string]bool {
	t.Helper()
	states, err := c.Look(ids...)
	require.NoError(t, err)
	found := map[string]bool{}
	for _, s := range states {
		for _, runs := range s.Run {
			for _, r := range runs {
				if r != nil && r.Worker != "" && r.StartTime >= after.UnixMilli() {
					found[r.Worker] = true
				}
			}
		}
	}
	return found
}

// Report 108: the job stream is deleted while jobs are queued, and while tools are
// outstanding. It is created again, and what was on it is published again from Redis.
func TestReport108JobStreamDeleted(t *testing.T) {
	t.Parallel()
	c := cluster.New(t, cluster.Options{Lease: calm})
	c.StartAll()
	arrived, open := c.Ledger.Hold("Beta")
	ids := c.Submit(7) // 7 tools held, and what comes after them
	arrives(t, arrived, len(ids))
	js := stream(t, c)
	require.NoError(t, js.DeleteStream(t.Context(), queue.StreamJobs))
	deleted := time.Now()
	open()
	ids = append(ids, c.Submit(7)...)
	c.AwaitFinished(ids, within)
	recovered(t, c, "job stream deleted", "all executions finished", time.Since(deleted), 20*time.Second)
	c.Settled(ids, within, cluster.Once)
}

// Reports 73, 74 and 103: a job that was lost on the stream is published again, however soon; the
// same job is not on the stream twice, however often it is published.
func TestReport103LostJobIsPublishedAgain(t *testing.T) {
	t.Parallel()
	c := cluster.New(t, cluster.Options{})
	c.Start(c.Coordinators...)
	ids := c.Submit(3) // nobody works: their first jobs rest on the stream
	jobs, err := stream(t, c).Stream(t.Context(), queue.StreamJobs)
	require.NoError(t, err)
	holds := func(n uint64) func() string {
		return func() string {
			info, err := jobs.Info(t.Context())
			if err != nil || info.State.Msgs != n {
				return fmt.Sprintf("the stream has %d messages, want %d (%v)", info.State.Msgs, n, err)
			}
			return ""
		}
	}
	c.Await(within, holds(3))
	require.NoError(t, jobs.Purge(t.Context()))
	took := c.Await(within, holds(3))
	recovered(t, c, "job stream purged", "jobs published again", took, recoveryLimit)
	for until := time.Now().Add(3 * cluster.ShortSweep); time.Now().Before(until); passes(100 * time.Millisecond) {
		require.Empty(t, holds(3)())
	}
	c.Start(c.Workers...)
	c.Settled(ids, within, cluster.Once)
	require.LessOrEqual(t, consumer(t, c).Delivered.Consumer, uint64(3*6), "no job was delivered twice")
}

// Report 104: acknowledgements of publications are lost. What was published is run
// once, also when the coordinator publishes it again.
func TestReport104LostPublishAcks(t *testing.T) {
	t.Parallel()
	var wire *cluster.Wire
	c := cluster.New(t, cluster.Options{Lease: calm, NATSVia: func(addr string) string { wire = cluster.NewWire(t, addr); return wire.Addr() }})
	var lost atomic.Int64
	var losing atomic.Bool
	losing.Store(true)
	wire.LoseFrames(func(frame []byte) bool {
		if losing.Load() && bytes.Contains(frame, []byte(`"stream":"REPRISE_JOBS","seq":`)) {
			lost.Add(1)
			return true
		}
		return false
	})
	c.StartAll()
	ids := c.Submit(5)
	c.AwaitFinished(ids, within)
	require.NotZero(t, lost.Load())
	// Ten seconds later the acknowledgements are missed, and the jobs are published again.
	before := lost.Load()
	c.Await(within, func() string {
		if lost.Load() == before {
			return "no job was published again"
		}
		return ""
	})
	losing.Store(false)
	c.Settled(append(ids, c.Submit(2)...), within, cluster.Once)
}

// Report 109: what a tool needs is away for five seconds. Its attempts are spread over
// more than that, under one key, and the last one succeeds; no delivery is used up.
func TestReport109ShortOutageOfAService(t *testing.T) {
	t.Parallel()
	c := cluster.New(t, cluster.Options{Lease: calm})
	var mu sync.Mutex
	var at []time.Time
	c.Ledger.Answer("Flaky", func(cluster.Call) int {
		mu.Lock()
		defer mu.Unlock()
		at = append(at, time.Now())
		if time.Since(at[0]) < 5*time.Second {
			return http.StatusServiceUnavailable
		}
		return http.StatusOK
	})
	c.StartAll()
	step := c.Ledger.Step("Flaky")
	step["retryOnFail"], step["maxTries"], step["waitBetweenTries"] = true, 5, 2000
	ids := c.SubmitOf(cluster.Document("flaky", nil, []cluster.Object{cluster.Trigger(), step}, "Start -> Flaky"), 1)
	c.AwaitFinished(ids, within)
	c.Idle(within)
	statuses(t, c, ids, engine.StatusSuccess)
	mu.Lock()
	defer mu.Unlock()
	require.GreaterOrEqual(t, len(at), 3)
	for i := 1; i < len(at); i++ {
		require.GreaterOrEqual(t, at[i].Sub(at[i-1]), 1900*time.Millisecond, "attempts are spaced")
	}
	keys := c.Ledger.Keys(ids[0], "Flaky")
	for _, key := range keys {
		require.Equal(t, keys[0], key)
	}
	letters, err := c.Conn.DeadLetters(t.Context(), engine.ExecutionID(ids[0]), 0)
	require.NoError(t, err)
	require.Empty(t, letters)
}

// Report 109, inside the engine: all coordinators are away for a while. Workers keep
// their results, nothing runs again, and no delivery is used up.
func TestReport109CoordinatorsAway(t *testing.T) {
	t.Parallel()
	c := cluster.New(t, cluster.Options{})
	c.StartAll()
	arrived, open := c.Ledger.Hold("Beta")
	ids := c.Submit(4)
	arrives(t, arrived, len(ids))
	for _, p := range c.Coordinators {
		p.Kill()
	}
	open()
	passes(outage(2 * cluster.ShortLease))
	c.Start(c.Coordinators...)
	back := time.Now()
	c.AwaitFinished(ids, within)
	recovered(t, c, "no coordinator for two leases", "executions finished", time.Since(back), recoveryLimit)
	c.Settled(ids, within, cluster.Once)
}

// NATS has no room left: durable submissions are refused and say why, the jobs of what
// runs wait in Redis, and are published when there is room.
func TestNATSFull(t *testing.T) {
	t.Parallel()
	config := filepath.Join(t.TempDir(), "nats.conf")
	require.NoError(t, os.WriteFile(config, []byte("jetstream { max_file_store: 4MB }\n"), 0o600))
	c := cluster.New(t, cluster.Options{Lease: calm, NATSArgs: []string{"-c", config}})
	c.StartAll()
	arrived, open := c.Ledger.Hold("Beta")
	ids := c.Submit(3)
	arrives(t, arrived, len(ids))
	js := stream(t, c)
	_, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "OTHERS", Subjects: []string{"others"}})
	require.NoError(t, err)
	for size := 64 << 10; size > 0; size /= 4 { // to the last byte
		for {
			if _, err = js.Publish(t.Context(), "others", make([]byte, size)); err != nil {
				break
			}
		}
	}
	require.ErrorContains(t, err, "resources")
	refused := cluster.NewIDs(1)[0]
	err = c.Conn.SubmitDurable(t.Context(), &queue.Submission{ID: engine.ExecutionID(refused), Workflow: c.Workflow})
	require.ErrorIs(t, err, queue.ErrFull)
	open()
	c.Await(within, func() string {
		if !strings.Contains(c.Coordinators[0].Log()+c.Coordinators[1].Log(), "job was not published") {
			return "no coordinator says that a job cannot be published"
		}
		return ""
	})
	require.NoError(t, js.DeleteStream(t.Context(), "OTHERS"))
	took := c.AwaitFinished(ids, within)
	recovered(t, c, "NATS store full", "running executions finished", took, recoveryLimit)
	c.Settled(append(ids, c.Submit(3)...), within, cluster.Once)
}
