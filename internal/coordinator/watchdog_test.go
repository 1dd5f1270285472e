package coordinator_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/reprise-engine/reprise/internal/coordinator"
	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/queue"
)

// Executions that make no progress are named in the log, once in an interval by one of the coordinators.
// Those that wait, or wait for their turn, are not.
func TestStuckExecutionsAreNamed(t *testing.T) {
	t.Parallel()
	core, logged := observer.New(zap.WarnLevel)
	f := startWith(t, 2, func(c *coordinator.Config) { gated(c); c.StuckAfter = 400 * time.Millisecond; c.Log = zap.New(core) })
	d := &door{ctx: t.Context()}
	f.work(func(job *queue.Job, name string) (engine.Result, bool) {
		if name == "Ask" {
			return wait(engine.Wait{Kind: engine.WaitWebhook, Webhook: &engine.WebhookWait{Method: "GET"}}), true
		}
		return d.run(job, name)
	})
	f.begin(queue.Submission{ID: "asks", Workflow: flow("asks", nil, "Start: test.trigger", "Ask: test.wait")})
	f.begin(queue.Submission{ID: "stands", Workflow: atMost(1)})
	f.begin(queue.Submission{ID: "queued", Workflow: atMost(1)})
	entries := func() []observer.LoggedEntry {
		return logged.FilterMessageSnippet("no progress").All()
	}
	require.Eventually(t, func() bool { return len(entries()) > 0 }, within, 10*time.Millisecond)
	fields := entries()[0].ContextMap()
	require.Equal(t, []any{"stands"}, fields["execution_ids"])
	require.EqualValues(t, 1, fields["stuck_executions"])
	d.open("stands", "queued")
	f.finished("queued")
}
