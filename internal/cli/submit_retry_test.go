package cli

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/reprise-engine/reprise/internal/service"
	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/queue"
)

// TestSubmitTriesAgain: refusals for want of room are no end, and nothing is submitted twice.
func TestSubmitTriesAgain(t *testing.T) {
	t.Parallel()
	overloaded := func(ms int64) *queue.Problem {
		return &queue.Problem{Code: queue.CodeOverloaded, Message: "the coordinator is overloaded: 5 jobs wait", RetryAfter: ms}
	}
	full := &queue.Problem{Code: queue.CodeFull, Message: "redis has no room", RetryAfter: 50}
	for _, c := range []struct {
		name           string
		refusals       []*queue.Problem
		args           []string
		code, asked    int
		least          time.Duration
		stdout, stderr string
	}{
		{"taken at last", []*queue.Problem{overloaded(200), full, overloaded(100)}, nil, 0, 4, 350 * time.Millisecond, "x", "not taken yet (overloaded): the coordinator is overloaded: 5 jobs wait; trying again in"},
		{"Redis comes back", []*queue.Problem{{Code: queue.CodeUnavailable, Message: "redis is unavailable", RetryAfter: 50}}, nil, 0, 2, 50 * time.Millisecond, "x", "not taken yet (unavailable)"},
		{"patience ends", slices.Repeat([]*queue.Problem{overloaded(100)}, 100), []string{"--retry-for", "400ms"}, service.ExitUnavailable, -1, 0, "", "gave up after"},
		{"no patience", []*queue.Problem{overloaded(100)}, []string{"--retry-for", "0"}, service.ExitUnavailable, 1, 0, "", "overloaded"},
		{"longer than patience", []*queue.Problem{overloaded(60_000)}, []string{"--retry-for", "10s"}, service.ExitUnavailable, 1, 0, "", "gave up after"},
		{"wrong is wrong", []*queue.Problem{{Code: queue.CodeBadRequest, Message: "no"}}, nil, service.ExitUsage, 1, 0, "", "no"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f := startFakeAPI(t)
			f.refusals = c.refusals
			begun := time.Now()
			got := f.run(t, append([]string{"submit", example("agent-parallel-tools.json"), "--id", "x"}, c.args...)...)
			assert.GreaterOrEqual(t, time.Since(begun), c.least)
			assert.Equal(t, c.code, got.code, got.stderr)
			assert.Equal(t, c.stdout, strings.TrimSpace(got.stdout))
			assert.Contains(t, got.stderr, c.stderr)
			f.mu.Lock()
			defer f.mu.Unlock()
			if c.asked < 0 {
				assert.Greater(t, len(f.submitted), 1)
				assert.Less(t, len(f.submitted), 6)
			} else {
				assert.Len(t, f.submitted, c.asked)
			}
			require.Empty(t, slices.DeleteFunc(f.submitted, func(id engine.ExecutionID) bool { return id == "x" }))
		})
	}
}
