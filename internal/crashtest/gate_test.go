package crashtest

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/queue"
)

// serial is a workflow of two steps with a limit of its unfinished executions.
func (c *cluster) serial(limit int) []byte {
	return document("serial", object{"maxConcurrency": limit}, []object{trigger(), c.ledger.step("Pay"), c.ledger.step("Ship")},
		"Start -> Pay", "Pay -> Ship")
}

// Report 81: everything is killed while as many executions run as may. They are not counted for ever:
// after the restart they go on when their workers' lease is over, and others begin.
func TestReport81CrashAtTheLimit(t *testing.T) {
	t.Parallel()
	c := startClusterOf(t, 1)
	c.startAll()
	const limit = 5
	arrived, open := c.ledger.hold("Pay")
	ids := newIDs(limit + 5)
	c.begin(ids[:limit], queue.Submission{Workflow: c.serial(limit)})
	for range limit {
		select {
		case <-arrived:
		case <-time.After(within):
			c.dump()
			t.Fatal("not all run")
		}
	}
	waiting := ids[limit:]
	c.begin(waiting[:2], queue.Submission{Workflow: c.serial(limit)})
	for _, id := range waiting[:2] {
		x, err := c.conn.Get(t.Context(), engine.ExecutionID(id), false)
		require.NoError(t, err)
		require.Equal(t, engine.StatusNew, x.Status)
	}
	c.killProcesses()
	open()
	c.startProcesses()
	back := time.Now()
	c.begin(waiting[2:], queue.Submission{Workflow: c.serial(limit)})
	for _, id := range ids {
		x := c.finished(id)
		require.Equal(t, engine.StatusSuccess, x.Status)
	}
	for _, id := range waiting {
		x, err := c.conn.Get(t.Context(), engine.ExecutionID(id), false)
		require.NoError(t, err)
		began := time.UnixMilli(x.StartedAt).Sub(back)
		t.Logf("%s began %s after the restart", id, began.Round(time.Millisecond))
		require.Less(t, began, lease+3*time.Second, "%s began late", id)
	}
	c.nothingLeft()
}

// Coordinators die where a place is taken and given up, one after the other: all executions run, once.
func TestCoordinatorKilledAtTheGate(t *testing.T) {
	for _, point := range []string{"after-enter-gate", "before-leave-gate", "after-leave-gate"} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			c := startClusterOf(t, 1)
			c.startDoomed(point + "=2")
			ids := newIDs(6)
			submitted := make(chan struct{})
			go func() {
				defer close(submitted)
				for _, id := range ids {
					c.begin([]string{id}, queue.Submission{Workflow: c.serial(1)})
				}
			}()
			c.succeed(point)
			<-submitted
			type span struct{ from, to int64 }
			var spans []span
			for _, id := range ids {
				x := c.finished(id)
				require.Equal(t, engine.StatusSuccess, x.Status, id)
				spans = append(spans, span{x.StartedAt, x.StoppedAt})
			}
			for i, a := range spans {
				for _, b := range spans[i+1:] {
					require.True(t, a.to <= b.from || b.to <= a.from, "two at a time: %v", spans)
				}
			}
			c.ledger.check(t, ids, []string{"Pay", "Ship"}, never)
			c.nothingLeft()
		})
	}
}
