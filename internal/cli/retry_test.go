package cli

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/queue"
)

func TestRetry(t *testing.T) {
	t.Parallel()
	f := startFakeAPI(t)
	got := f.run(t, "executions", "retry", "a", "stuck", "b")
	assert.Equal(t, 1, got.code)
	require.Len(t, f.retries, 3)
	assert.Equal(t, fmt.Sprintf("a -> %s\nb -> %s\n", f.retries[0].NewID, f.retries[2].NewID), got.stdout)
	assert.Contains(t, got.stderr, "retry execution stuck: its run data is gone")
	assert.NotEqual(t, f.retries[0].NewID, f.retries[2].NewID)
	assert.False(t, f.retries[0].FromStart)
	assert.False(t, f.retries[0].Latest)

	got = f.run(t, "executions", "retry", "a", "--from-start", "--workflow", "latest", "--output", "json")
	assert.Zero(t, got.code, got.stderr)
	assert.True(t, f.retries[3].FromStart)
	assert.True(t, f.retries[3].Latest)
	assert.JSONEq(t, fmt.Sprintf(`[{"id": "a", "newId": %q}]`, f.retries[3].NewID), got.stdout)

	got = f.run(t, "executions", "retry", "--wait", "a", "hopeless")
	assert.Equal(t, 1, got.code)
	assert.Contains(t, got.stdout, fmt.Sprintf("%s success\n", f.retries[4].NewID))
	assert.Contains(t, got.stdout, fmt.Sprintf("%s error: still broken\n", f.retries[5].NewID))
	assert.Zero(t, f.run(t, "executions", "retry", "--wait", "a").code)
}

// TestRetryAll: what was retried since, or was started by another execution, is
// left out; nothing is done without being asked for.
func TestRetryAll(t *testing.T) {
	t.Parallel()
	f := startFakeAPI(t)
	now := time.Now()
	for i, x := range []queue.Execution{
		{ID: "e9", Status: engine.StatusSuccess, RetryOf: "e5"},
		{ID: "e8", Status: engine.StatusError, WorkflowID: "orders"},
		{ID: "e7", Status: engine.StatusError, Parent: "e6"},
		{ID: "e6", Status: engine.StatusError},
		{ID: "e5", Status: engine.StatusError},
		{ID: "e4", Status: engine.StatusSuccess},
		{ID: "e3", Status: engine.StatusCanceled},
		{ID: "e2", Status: engine.StatusError, WorkflowID: "orders"},
	} {
		x.StartedAt = now.Add(-time.Duration(i) * time.Hour).UnixMilli()
		f.executions = append(f.executions, x)
	}
	f.run(t, "executions", "retry", "--all").failed(t, 2, "3 executions", "--yes")
	require.Empty(t, f.retries)

	ids := func(args ...string) []string {
		t.Helper()
		f.retries = nil
		kept := f.executions
		got := f.run(t, append([]string{"executions", "retry", "--all", "--yes", "--output", "json"}, args...)...)
		f.executions = kept
		assert.Zero(t, got.code, got.stderr)
		var done []retried
		require.NoError(t, json.Unmarshal([]byte(got.stdout), &done), got.stdout)
		out := []string{}
		for _, r := range done {
			out = append(out, string(r.ID))
		}
		return out
	}
	assert.Equal(t, []string{"e2", "e6", "e8"}, ids())
	assert.Equal(t, []string{"e6", "e8"}, ids("--limit", "2"))
	assert.Equal(t, []string{"e6", "e8"}, ids("--since", "5h"))
	assert.Equal(t, []string{"e2", "e8"}, ids("--workflow-id", "orders"))
	assert.Equal(t, []string{"e3"}, ids("--status", "canceled"))
	assert.Equal(t, []string{}, ids("--since", "1ms", "--workflow-id", "nothing"))

	got := f.run(t, "executions", "retry", "--all", "--yes")
	assert.Contains(t, got.stderr, "left out: 1 that were retried already")
	assert.Contains(t, got.stderr, "left out: 1 that other executions started")
}

func TestRetryBadInput(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args  []string
		texts []string
	}{
		{[]string{}, []string{"--all"}},
		{[]string{"a", "--all"}, []string{"--all"}},
		{[]string{"a", "--from-start", "--from-failed"}, []string{"from-start", "from-failed"}},
		{[]string{"a", "--workflow", "newest"}, []string{"newest", "latest"}},
		{[]string{"a", "--since", "2h"}, []string{"--since", "--all"}},
		{[]string{"a", "--yes"}, []string{"--yes", "--all"}},
		{[]string{"--all", "--status", "success"}, []string{"success", "canceled"}},
		{[]string{"--all", "--limit", "-1"}, []string{"--limit"}},
		{[]string{"a", "--output", "xml"}, []string{"xml"}},
	} {
		reprise(t, append([]string{"executions", "retry"}, c.args...)...).failed(t, 2, c.texts...)
	}
}

func failedExecution(id engine.ExecutionID) queue.Execution {
	return queue.Execution{ID: id, Status: engine.StatusError, StartedAt: time.Now().UnixMilli()}
}
