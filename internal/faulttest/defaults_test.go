package faulttest

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reprise-engine/reprise/internal/cluster"
)

// recoveryLimit is what the product promises with the settings that nobody has
// changed: ten seconds from a kill, or from the moment a server is back.
const recoveryLimit = 10 * time.Second

// arrives waits until n calls of a held tool have had their effect.
func arrives(t *testing.T, arrived <-chan cluster.Effect, n int) {
	t.Helper()
	for i := range n {
		select {
		case <-arrived:
		case <-time.After(within):
			t.Fatalf("only %d of %d calls came", i, n)
		}
	}
}

// A worker dies with tools in its hands, which are held by the outside world: the
// time counts until other workers have finished the executions.
func TestDefaultsWorkerKilled(t *testing.T) {
	t.Parallel()
	c := cluster.New(t, cluster.Options{Defaults: true})
	c.Start(append(append([]*cluster.Process{}, c.Coordinators...), c.Workers[0])...)
	arrived, open := c.Ledger.Hold("Beta")
	ids := c.Submit(5)
	arrives(t, arrived, len(ids))
	for _, id := range ids {
		c.AwaitDone(id, "Alpha", within)
		c.AwaitDone(id, "Gamma", within)
	}
	c.Start(c.Workers[1:]...)
	c.Workers[0].Kill()
	open()
	took := c.AwaitFinished(ids, within)
	c.Settled(ids, within, cluster.RepeatedOf("Beta"))
	recovered(t, c, "worker killed with tools in its hands", "its executions finished", took, recoveryLimit)
}

// A coordinator dies between commit and publish: nobody but the sweeper knows of
// the jobs that it did not publish.
func TestDefaultsCoordinatorKilledBeforePublish(t *testing.T) {
	t.Parallel()
	for point, moment := range map[string]string{
		"before-commit=4": "before its commit", "after-commit=4": "between commit and publish", "after-publish=4": "after it published",
	} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			c := cluster.New(t, cluster.Options{Defaults: true})
			c.Coordinators[0].Start(point)
			c.Coordinators[1].Start("")
			for _, w := range c.Workers {
				w.Start("")
			}
			c.AwaitReady(c.Processes()...)
			ids := submitUntilExit(c, c.Coordinators[0], func() []string { return c.Submit(10) })
			took := c.AwaitFinished(ids, within)
			c.Settled(ids, within, cluster.Once)
			recovered(t, c, "coordinator killed "+moment, "all executions finished", took, recoveryLimit)
		})
	}
}

// NATS is killed while tools run, and comes back.
func TestDefaultsNATSRestarted(t *testing.T) {
	t.Parallel()
	c := cluster.New(t, cluster.Options{Defaults: true})
	c.StartAll()
	arrived, open := c.Ledger.Hold("Alpha")
	ids := c.Submit(5)
	arrives(t, arrived, len(ids))
	c.NATS.Kill()
	open()
	c.AwaitReadiness(false, recoveryLimit, c.Processes()...)
	c.NATS.Restart()
	took := c.AwaitFinished(ids, within)
	recovered(t, c, "NATS killed and restarted", "running executions finished", took, recoveryLimit)
	next := time.Now()
	more := c.Submit(5)
	c.AwaitFinished(more, within)
	recovered(t, c, "NATS killed and restarted", "new executions finished", time.Since(next), recoveryLimit)
	c.Settled(append(ids, more...), within, cluster.Once)
}

// Redis is killed while tools run, and comes back with its append-only file.
func TestDefaultsRedisRestarted(t *testing.T) {
	t.Parallel()
	c := cluster.New(t, cluster.Options{Defaults: true})
	c.StartAll()
	arrived, open := c.Ledger.Hold("Alpha")
	ids := c.Submit(5)
	arrives(t, arrived, len(ids))
	c.Redis.Kill()
	open()
	c.AwaitReadiness(false, recoveryLimit, c.Coordinators...)
	require.Error(t, c.SubmitOnce(c.Workflow, cluster.NewIDs(1)[0]), "work was taken that nobody can store")
	c.Redis.Restart(t)
	took := c.AwaitFinished(ids, within)
	recovered(t, c, "Redis killed and restarted", "running executions finished", took, recoveryLimit)
	next := time.Now()
	more := c.Submit(5)
	c.AwaitFinished(more, within)
	recovered(t, c, "Redis killed and restarted", "new executions finished", time.Since(next), recoveryLimit)
	c.Settled(append(ids, more...), within, cluster.Once)
}
