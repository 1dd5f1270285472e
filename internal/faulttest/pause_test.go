package faulttest

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/reprise-engine/reprise/internal/cluster"
	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/queue"
)

// passes waits until a time has passed in which a fault lasts: nothing that could
// be awaited happens then.
func passes(d time.Duration) { <-time.After(d) }

// Report 116: the coordinator that owns executions is stopped while their tools run, and
// wakes up beyond all its claims with their results in its ears: they change nothing, and
// nothing runs again.
func TestReport116CoordinatorPausedBeyondItsClaims(t *testing.T) {
	t.Parallel()
	c := cluster.New(t, cluster.Options{Lease: calm})
	owner := c.Coordinators[0]
	c.Start(append([]*cluster.Process{owner}, c.Workers...)...) // alone, so that it owns all
	arrived, open := c.Ledger.Hold("Beta")
	ids := c.Submit(6)
	arrives(t, arrived, len(ids))
	for _, id := range ids {
		c.AwaitDone(id, "Gamma", within)
	}
	c.Start(c.Coordinators[1])
	owner.Pause()
	open()
	took := c.AwaitFinished(ids, within)
	if *full {
		passes(12 * time.Second) // beyond the claims of timers (5 s) and sweeps (4 s)
	}
	owner.Continue()
	c.Settled(ids, within, cluster.Once)
	recovered(t, c, "coordinator paused", "all executions finished", took, 20*time.Second)
	c.Coordinators[1].Kill() // the one that was paused works again, alone
	c.Settled(append(ids, c.Submit(10)...), within, cluster.Once)
}

// Report 116, to the point: the coordinator is stopped between what it has decided and the
// commit of it. Another one has gone on when it wakes and commits: that is refused, it
// loads what is stored, and finds nothing left to do. Stopped for longer than a commit may
// take, 10 s, it gives up by itself.
func TestReport116StaleCommitIsRefused(t *testing.T) {
	t.Parallel()
	c := cluster.New(t, cluster.Options{Lease: calm, Env: []string{"REPRISE_LOG_LEVEL=debug"}})
	owner, armed := c.Coordinators[0], filepath.Join(t.TempDir(), "armed")
	owner.Start("before-commit:stop@" + armed)
	c.Start(c.Workers...)
	c.AwaitReady(owner)
	arrived, open := c.Ledger.Hold("Beta")
	ids := c.Submit(1)
	arrives(t, arrived, len(ids))
	c.AwaitDone(ids[0], "Alpha", within)
	c.AwaitDone(ids[0], "Gamma", within)
	require.NoError(t, os.WriteFile(armed, nil, 0o600))
	stopped := time.Now()
	open()
	owner.AwaitStopped(within)
	states, err := c.Look(ids...)
	require.NoError(t, err)
	beta := states[0].Run["Beta"]
	require.True(t, len(beta) == 0 || beta[0] == nil || beta[0].Status != engine.StatusSuccess, "the owner has committed it already")
	c.Start(c.Coordinators[1])
	c.AwaitDone(ids[0], "Beta", within)
	took := time.Since(stopped)
	require.NotContains(t, owner.Log(), refusedCommit)
	owner.Continue()
	require.Less(t, took, recoveryLimit, "another one has gone on")
	if took < 9*time.Second {
		c.Await(within, func() string {
			if !strings.Contains(owner.Log(), refusedCommit) {
				return "the commit on old state was not refused"
			}
			return ""
		})
	}
	c.Settled(ids, within, cluster.Once)
	c.Coordinators[1].Kill()
	c.Settled(append(ids, c.Submit(10)...), within, cluster.Once)
}

// refusedCommit is what a coordinator logs, at level debug, when its commit was refused.
const refusedCommit = "stale commit refused"

// Reports 59 and 66: a worker is stopped beyond its lease; another one does the work.
// It wakes up and is too late: one end, one effect more under the same key, no third.
func TestReport59WorkerPausedBeyondItsLease(t *testing.T) {
	t.Parallel()
	c := cluster.New(t, cluster.Options{})
	c.Start(append(append([]*cluster.Process{}, c.Coordinators...), c.Workers[0])...)
	arrived, open := c.Ledger.Hold("Gamma")
	ids := c.Submit(2)
	arrives(t, arrived, len(ids))
	for _, id := range ids {
		c.AwaitDone(id, "Beta", within)
	}
	c.Workers[0].Pause()
	paused := time.Now()
	c.Start(c.Workers[1:]...)
	arrives(t, arrived, len(ids)) // at another worker
	open()
	c.AwaitFinished(ids, within)
	took := time.Since(paused)
	c.Workers[0].Continue()
	c.Settled(ids, within, cluster.RepeatedOf("Gamma"))
	for _, id := range ids {
		require.Len(t, c.Ledger.Keys(id, "Gamma"), 2, "once by the worker that was stopped, once by another")
	}
	recovered(t, c, "worker paused", "its executions finished", took, recoveryLimit)
}

// Report 101: a worker stalls beyond its lease, another one gets the job, and the first
// one's result arrives: it counts. The second one dies then: nothing is lost, and
// nobody does it a third time.
func TestReport101LateAck(t *testing.T) {
	t.Parallel()
	c := cluster.New(t, cluster.Options{})
	c.Start(append(append([]*cluster.Process{}, c.Coordinators...), c.Workers[0])...)
	first, second := make(chan struct{}), make(chan struct{})
	arrived := make(chan int, 10)
	c.Ledger.Answer("Gamma", func(call cluster.Call) int {
		arrived <- call.Nth
		gate := first
		if call.Nth > 1 {
			gate = second
		}
		select {
		case <-gate:
		case <-call.Gone.Done():
		}
		return http.StatusOK
	})
	defer close(second)
	ids := c.Submit(1)
	await := func(nth int) {
		t.Helper()
		select {
		case got := <-arrived:
			require.Equal(t, nth, got)
		case <-time.After(within):
			c.Dump()
			t.Fatalf("request %d did not come", nth)
		}
	}
	await(1)
	c.AwaitDone(ids[0], "Alpha", within)
	c.AwaitDone(ids[0], "Beta", within)
	c.Workers[0].Pause()
	c.Start(c.Workers[1])
	await(2)
	close(first)
	c.Workers[0].Continue()
	c.AwaitFinished(ids, within)
	c.Workers[1].Kill()
	c.Start(c.Workers[2])
	c.Settled(ids, within, cluster.RepeatedOf("Gamma"))
	require.Len(t, c.Ledger.Keys(ids[0], "Gamma"), 2)
}

// Reports 61 and 102: a tool that takes three times the lease is not given to anybody
// else as long as its worker lives.
func TestReport61ToolLongerThanItsLease(t *testing.T) {
	t.Parallel()
	lease := 2 * time.Second
	c := cluster.New(t, cluster.Options{Lease: lease})
	c.Ledger.Answer("Beta", cluster.Takes(3*lease))
	c.StartAll()
	ids := c.Submit(3)
	c.Settled(ids, within, cluster.Once)
}

// Reports 87 and 102: the job of a killed worker is with another one within the lease
// and five seconds, however long its tool may take.
func TestReport87WorkerKilledIsReplacedSoon(t *testing.T) {
	t.Parallel()
	c := cluster.New(t, cluster.Options{})
	c.Start(append(append([]*cluster.Process{}, c.Coordinators...), c.Workers[0])...)
	arrived, open := c.Ledger.Hold("Beta")
	ids := c.Submit(1)
	arrives(t, arrived, 1)
	c.AwaitDone(ids[0], "Alpha", within)
	c.AwaitDone(ids[0], "Gamma", within)
	c.Start(c.Workers[1:]...)
	c.Workers[0].Kill()
	killed := time.Now()
	arrives(t, arrived, 1)
	recovered(t, c, "worker killed with a long tool", "its tool was called again", time.Since(killed), cluster.ShortLease+5*time.Second)
	open()
	c.Settled(ids, within, cluster.RepeatedOf("Beta"))
}

// Report 100: the lease of a job begins when a worker runs it, not when it is
// fetched: with one slot and jobs of 0.6 leases none is given out twice.
func TestReport100NoPrefetch(t *testing.T) {
	t.Parallel()
	lease := 1500 * time.Millisecond
	c := cluster.New(t, cluster.Options{Lease: lease, Workers: 1, Concurrency: 1})
	c.Ledger.Answer("Pay", cluster.Takes(lease*6/10))
	c.StartAll()
	ids := c.SubmitOf(c.Ledger.Chain("pay", "Pay"), 12)
	c.AwaitFinished(ids, within)
	c.Idle(within)
	statuses(t, c, ids, engine.StatusSuccess)
	for _, id := range ids {
		require.Len(t, c.Ledger.Keys(id, "Pay"), 1)
	}
	require.Equal(t, 1, c.Ledger.Most(), "one slot, one job")
	info := consumer(t, c)
	require.EqualValues(t, len(ids), info.Delivered.Consumer, "each job was delivered once")
}

// Report 106: jobs of a dead worker do not use up what its pool may have outstanding.
func TestReport106DeadWorkerDoesNotBlockOthers(t *testing.T) {
	t.Parallel()
	c := cluster.New(t, cluster.Options{Lease: 8 * time.Second, Workers: 2, Concurrency: 32})
	c.Start(append(append([]*cluster.Process{}, c.Coordinators...), c.Workers[0])...)
	arrived, open := c.Ledger.Hold("Slow")
	held := c.SubmitOf(c.Ledger.Chain("slow", "Slow"), 24)
	arrives(t, arrived, len(held))
	c.Start(c.Workers[1])
	c.Workers[0].Kill()
	require.EqualValues(t, len(held), consumer(t, c).NumAckPending, "the dead worker has them all")
	ids := c.Submit(3)
	took := c.AwaitFinished(ids, within)
	open()
	require.NotZero(t, consumer(t, c).NumAckPending, "the dead worker's jobs were still outstanding")
	recovered(t, c, "worker with 24 jobs killed", "other executions finished", took, 6*time.Second)
	c.AwaitFinished(held, within)
	statuses(t, c, held, engine.StatusSuccess)
	c.Settled(ids, within, cluster.Once)
}

// consumer is what the server knows of the workers' consumer.
func consumer(t *testing.T, c *cluster.Cluster) *jetstream.ConsumerInfo {
	t.Helper()
	js := stream(t, c)
	consumer, err := js.Consumer(t.Context(), queue.StreamJobs, "pool-default")
	require.NoError(t, err)
	return consumer.CachedInfo()
}
