package crashtest

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/queue"
)

func never(effect) bool  { return false }
func always(effect) bool { return true }

// A worker is killed while one of its tools waits for an answer: the tool is
// run again elsewhere under the same key, what was finished is not.
func TestWorkerKilledInTheMiddleOfATool(t *testing.T) {
	t.Parallel()
	c := startCluster(t)
	for _, p := range c.coordinators {
		p.start("")
	}
	c.workers[0].start("") // alone, so that it is known who runs the tool
	for _, p := range append(append([]*process{}, c.coordinators...), c.workers[0]) {
		p.awaitReady()
	}
	c.connectOnly()
	arrived, open := c.ledger.hold("Beta")
	ids := c.submit(1)
	select {
	case <-arrived:
	case <-time.After(within):
		t.Fatal("the tool was not called")
	}
	// Alpha and Gamma are finished and committed before the worker dies.
	c.awaitToolDone(ids[0], "Alpha")
	c.awaitToolDone(ids[0], "Gamma")
	c.workers[0].kill()
	open()
	c.workers[1].start("")
	c.workers[2].start("")
	c.await(ids)
	c.ledger.check(t, ids, tools, func(e effect) bool { return e.tool == "Beta" })
	c.nothingLeft()
}

// A coordinator is killed between every pair of its steps, at different moments
// of the executions.
func TestCoordinatorKilledBetweenItsSteps(t *testing.T) {
	for _, point := range []string{"before-commit", "after-commit", "after-publish", "after-ack"} {
		for _, nth := range []int{1, 3, 6} {
			t.Run(fmt.Sprintf("%s_%d", point, nth), func(t *testing.T) {
				t.Parallel()
				c := startCluster(t)
				c.coordinators[0].start(fmt.Sprintf("%s=%d", point, nth))
				c.coordinators[1].start("")
				for _, w := range c.workers {
					w.start("")
				}
				c.connect()
				ids := c.submit(10)
				c.coordinators[0].awaitExit()
				c.coordinators[0].start("")
				c.await(ids)
				c.ledger.check(t, ids, tools, never)
				c.nothingLeft()
			})
		}
	}
}

// A worker is killed just before it runs a job and just after: before its
// result was sent.
func TestWorkerKilledAroundAJob(t *testing.T) {
	for _, point := range []string{"before-run", "after-run"} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			c := startCluster(t)
			for _, p := range c.coordinators {
				p.start("")
			}
			c.workers[0].start(point + "=4")
			c.workers[1].start("")
			c.workers[2].start("")
			c.connect()
			ids := c.submit(12)
			c.workers[0].awaitExit()
			c.await(ids)
			// What the dead worker had in its hands may have had its effect.
			c.ledger.check(t, ids, tools, always)
			c.nothingLeft()
		})
	}
}

// NATS is killed and started again while tools run.
func TestNATSRestart(t *testing.T) {
	t.Parallel()
	c := startCluster(t)
	c.startAll()
	arrived, open := c.ledger.hold("Alpha")
	ids := c.submit(5)
	for range ids {
		<-arrived
	}
	c.nats.Kill()
	open()
	c.nats.Restart()
	c.await(ids)
	c.ledger.check(t, ids, tools, never)
	more := c.submit(5)
	c.await(more)
	c.nothingLeft()
}

// The whole job stream is deleted while jobs are queued and running.
func TestJobStreamWiped(t *testing.T) {
	t.Parallel()
	c := startCluster(t)
	for _, p := range c.coordinators {
		p.start("")
		p.awaitReady()
	}
	c.connectOnly()
	ids := c.submit(5) // nobody works: their first jobs are on the stream
	nc, err := nats.Connect(c.nats.URL)
	require.NoError(t, err)
	defer nc.Close()
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	require.NoError(t, js.DeleteStream(t.Context(), queue.StreamJobs))
	for _, w := range c.workers {
		w.start("")
	}
	c.await(ids)
	c.ledger.check(t, ids, tools, never)
	c.nothingLeft()
}

// A worker that is paused beyond its lease wakes up with a result that was
// replaced: it changes nothing.
func TestWorkerPausedBeyondItsLease(t *testing.T) {
	t.Parallel()
	c := startCluster(t)
	for _, p := range c.coordinators {
		p.start("")
	}
	c.workers[0].start("")
	for _, p := range append(append([]*process{}, c.coordinators...), c.workers[0]) {
		p.awaitReady()
	}
	c.connectOnly()
	arrived, open := c.ledger.hold("Gamma")
	ids := c.submit(1)
	select {
	case <-arrived:
	case <-time.After(within):
		t.Fatal("the tool was not called")
	}
	c.awaitToolDone(ids[0], "Alpha")
	c.awaitToolDone(ids[0], "Beta")
	require.NoError(t, c.workers[0].cmd.Process.Signal(syscall.SIGSTOP))
	open()
	c.workers[1].start("")
	c.await(ids)
	require.NoError(t, c.workers[0].cmd.Process.Signal(syscall.SIGCONT))
	c.nothingLeft()
	c.ledger.check(t, ids, tools, func(e effect) bool { return e.tool == "Gamma" })
	c.await(ids) // still the same
}

// SIGTERM: a worker takes no more jobs, finishes what it runs, and ends.
func TestWorkerDrains(t *testing.T) {
	t.Parallel()
	c := startCluster(t)
	c.startAll()
	arrived, open := c.ledger.hold("Beta")
	ids := c.submit(6)
	for range ids {
		<-arrived
	}
	for _, w := range c.workers[:2] {
		require.NoError(t, w.cmd.Process.Signal(syscall.SIGTERM))
	}
	open()
	for _, w := range c.workers[:2] {
		w.awaitExit()
	}
	c.await(ids)
	c.ledger.check(t, ids, tools, never)
	c.nothingLeft()
}

// A tool that kills its worker each time is given up after the delivery limit:
// a dead letter, an error as the Agent's answer, and the rest goes on.
func TestToolThatKillsItsWorkers(t *testing.T) {
	t.Parallel()
	c := startCluster(t)
	for _, p := range c.coordinators {
		p.start("")
		p.awaitReady()
	}
	c.connectOnly()
	arrived, open := c.ledger.hold("Beta")
	c.workers[0].start("")
	ids := c.submit(1)
	for i := range c.workers { // as often as the delivery limit
		select {
		case <-arrived:
		case <-time.After(within):
			c.dump()
			t.Fatalf("the tool was not called by worker %d", i)
		}
		c.awaitToolDone(ids[0], "Alpha")
		c.awaitToolDone(ids[0], "Gamma")
		c.workers[i].kill()
		if i+1 < len(c.workers) {
			c.workers[i+1].start("")
		}
	}
	c.workers[0].start("")
	x := c.finished(ids[0])
	require.Equal(t, engine.StatusSuccess, x.Status)
	require.Len(t, x.records["Beta"], 1)
	require.Equal(t, engine.ReasonWorkerLost, x.records["Beta"][0].Error.Reason)
	letters, err := c.conn.DeadLetters(t.Context(), engine.ExecutionID(ids[0]), 0)
	require.NoError(t, err)
	require.Len(t, letters, 1)
	require.Equal(t, "Beta", letters[0].Node)
	open()
	c.ledger.check(t, ids, tools, func(e effect) bool { return e.tool == "Beta" })
	more := c.submit(3)
	c.await(more)
	c.nothingLeft()
}
