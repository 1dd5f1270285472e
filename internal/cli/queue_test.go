package cli

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/queue"
)

func TestQueueTable(t *testing.T) {
	var b strings.Builder
	printQueue(&b, style{}, &queue.QueueAnswer{
		At: 100_000, Coordinators: 2, StuckExecutions: 3, Stuck: []engine.ExecutionID{"a", "b"}, Executions: map[engine.Status]int64{engine.StatusRunning: 7, engine.StatusError: 0},
		Pools: []queue.QueuePool{
			{Pool: "default", Waiting: 120, Published: 64, Running: 32, OldestMillis: 1234, Workers: 2, Idle: 1, Slots: 32},
			{Pool: "gpu", Published: 1, OldestMillis: 40_000, Stuck: true},
		},
		Workers: []queue.QueueWorker{{WorkerNotice: queue.WorkerNotice{
			Name: "worker-1", Slots: 32, Pools: map[string]int{"default": 32, "gpu": 2}, Busy: map[string]int{"default": 30, "gpu": 2},
		}, Seen: 99_000}, {WorkerNotice: queue.WorkerNotice{Name: "worker-2", Slots: 8, Pools: map[string]int{"default": 8}, IdleSince: 55_000}, Seen: 98_000},
			{WorkerNotice: queue.WorkerNotice{Name: "worker-3", Slots: 8, Pools: map[string]int{"default": 8}, Busy: map[string]int{"default": 3}}, Seen: 96_000}},
	})
	require.Equal(t, strings.TrimPrefix(`
POOL              WAITING  LIMITED  PUBLISHED  RUNNING    OLDEST  WORKERS   IDLE  SLOTS
default               120        0         64       32      1.2s        2      1     32
gpu                     0        0          1        0       40s        0      0      0  stuck

WORKER                             BUSY  SLOTS  IDLE        POOLS
worker-1                             32     32              default,gpu:2
worker-2                              0      8  45s         default
worker-3                              3      8  silent      default

coordinators: 2   running: 7
stuck: 3 executions make no progress: a b …; look at them with "reprise executions show ID"
`, "\n"), b.String())
}
