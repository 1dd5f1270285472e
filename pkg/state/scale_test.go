package state_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reprise-engine/reprise/internal/redistest"
	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/state"
)

// With a hundred thousand timers and as many open questions, looking for due
// timers, a page of questions and claiming stay as cheap as with a few. Ten are of one
// execution, to spare the test the writing of the rest of them.
func TestHundredThousandTimersAndQuestions(t *testing.T) {
	t.Parallel()
	s := open(t, redistest.Start(t).URL())
	const executions, each, batchSize, due = 10_000, 10, 250, 5_000
	const asked = int64(1_700_000_000_000)
	const deadline = asked + 86_400_000
	name := func(i int) string { return fmt.Sprintf("01234567-89ab-cdef-0123-%012d", i%executions) }
	token := func(i int) string { return fmt.Sprintf("%s_%d", name(i), i/executions) }
	began := time.Now()
	batch := make([]state.Commit, batchSize)
	for i := 0; i < executions; i += batchSize {
		for j := range batch {
			c := state.Commit{Execution: engine.ExecutionID(name(i + j)), Status: engine.StatusWaiting, At: asked, NextSweep: deadline}
			for k := i + j; k < executions*each; k += executions {
				c.Timers = append(c.Timers, engine.TimerChange{ID: fmt.Sprint("wait:", k), At: deadline + int64(k)})
				c.Questions = append(c.Questions, engine.TimerChange{ID: token(k), At: asked + int64(k)/3}) // three at the same instant
			}
			batch[j] = c
		}
		commit(t, s, batch...)
	}
	t.Logf("%d timers and questions written: %s", executions*each, time.Since(began).Round(time.Millisecond))

	measure := func(what string, limit time.Duration, trips uint64, f func()) {
		before, began := s.Stats().RoundTrips, time.Now()
		f()
		took, made := time.Since(began), s.Stats().RoundTrips-before
		t.Logf("%s: %s, %d round trips", what, took.Round(10*time.Microsecond), made)
		require.Less(t, took, limit, what)
		require.LessOrEqual(t, made, trips, what)
	}
	for range 3 {
		measure("idle look for timers", time.Second, 1, func() {
			got, err := s.ClaimTimers(t.Context(), deadline-1, deadline, due)
			require.NoError(t, err)
			require.Empty(t, got)
		})
	}
	cursor := ""
	for page := range 3 {
		measure(fmt.Sprintf("page %d of 50 questions", page+1), time.Second, 2, func() {
			got, next, err := s.Questions(t.Context(), 50, cursor)
			require.NoError(t, err)
			require.Len(t, got, 50)
			for i, q := range got {
				require.Equal(t, state.Asked{Token: token(50*page + i), At: asked + int64(50*page+i)/3}, q)
			}
			cursor = next
		})
	}
	measure("page of 1000 questions", time.Second, 3, func() {
		got, _, err := s.Questions(t.Context(), 1000, fmt.Sprintf("%d.%s", asked+74_999/3, token(74_999)))
		require.NoError(t, err)
		require.Len(t, got, 1000)
		require.Equal(t, token(75_000), got[0].Token)
		require.Equal(t, token(75_999), got[999].Token)
	})

	seen := map[string]bool{}
	now := deadline + due - 1
	measure("claim of 5,000 timers", 5*time.Second, 5, func() {
		got, err := s.ClaimTimers(t.Context(), now, now+10_000, due)
		require.NoError(t, err)
		require.Greater(t, len(got), due*9/10, "one claim takes nearly all, however they are spread")
		for _, d := range got {
			require.LessOrEqual(t, d.At, now)
			seen[d.Timer] = true
		}
	})
	measure("claim of what is left", time.Second, 5, func() {
		got, err := s.ClaimTimers(t.Context(), now, now+10_000, due)
		require.NoError(t, err)
		for _, d := range got {
			seen[d.Timer] = true
		}
	})
	require.Len(t, seen, due)
	measure("sweep of 1,024 executions", 5*time.Second, 5, func() {
		got, err := s.ClaimStale(t.Context(), deadline, deadline+10_000, 1024)
		require.NoError(t, err)
		require.Len(t, got, 1024)
	})
}
