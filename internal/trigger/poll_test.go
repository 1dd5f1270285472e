package trigger

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/queue"
	"github.com/reprise-engine/reprise/pkg/state"
)

// Polls of a trigger follow one another, whichever process begins them.
func TestPollsFollowOneAnother(t *testing.T) {
	now := at(t, "2025-01-15T10:07:03Z")
	f := &fakes{document: scheduleDocument(t, "rssFeedReadTrigger", "UTC", `{"feedUrl":"https://x","pollTimes":{"item":[{"mode":"everyMinute"}]}}`).Raw}
	f.record = state.WorkflowRecord{ID: "w", Hash: "h", Active: true, ActivatedAt: at(t, "2025-01-15T09:00:00Z").UnixMilli()}
	host := func() *Host {
		h := New(Config{Backend: f, Store: f, Now: func() time.Time { return now }, MissedWindow: 30 * time.Minute})
		require.NoError(t, h.refresh(t.Context()))
		return h
	}
	f.stored = map[engine.ExecutionID]bool{}
	one, other := host(), host()
	turn := func(h *Host) (ids []engine.ExecutionID) {
		f.submitted = nil
		h.clock.turn(t.Context())
		for _, s := range f.submitted {
			require.Nil(t, s.Input, "the node looks for its input itself")
			require.Equal(t, "Clock", s.Start)
			ids = append(ids, s.ID)
		}
		return ids
	}
	first := turn(one)
	require.Len(t, first, 1)
	require.Equal(t, first, turn(other), "the same one, which is stored once")

	// It was submitted and is not stored: whoever is slow may still store it, so nobody begins another.
	now = now.Add(time.Minute)
	require.Equal(t, first, turn(one))
	f.stored[first[0]] = false
	now = now.Add(time.Minute)
	require.Empty(t, turn(one), "it is not over")
	require.Empty(t, turn(other))
	now = now.Add(time.Minute)
	f.stored[first[0]] = true
	second := turn(other)
	require.Len(t, second, 1)
	require.NotEqual(t, first, second)
	require.Equal(t, second, turn(one))

	f.err = &queue.Problem{Code: queue.CodeUnavailable, Message: "away"}
	f.stored[second[0]] = true
	now = now.Add(time.Minute)
	require.Empty(t, turn(one))
	f.err = nil
	third := turn(other)
	require.Len(t, third, 1)

	// Nobody knows it any more, and nobody can be about to store it.
	now = now.Add(time.Hour)
	last := turn(one)
	require.Len(t, last, 1)
	require.NotEqual(t, third, last)
}

func TestPollTimes(t *testing.T) {
	start := at(t, "2025-01-15T10:07:03Z")
	for parameters, want := range map[string]string{
		`{}`: "2025-01-15T10:08:00Z",
		`{"pollTimes":{"item":[{"mode":"everyHour","minute":30}]}}`:                    "2025-01-15T10:30:00Z",
		`{"pollTimes":{"item":[{"mode":"everyX","value":15,"unit":"minutes"}]}}`:       "2025-01-15T10:15:00Z",
		`{"pollTimes":{"item":[{"mode":"everyDay","hour":7}]}}`:                        "2025-01-16T07:00:00Z",
		`{"pollTimes":{"item":[{"mode":"custom","cronExpression":"0 */20 * * * *"}]}}`: "2025-01-15T10:20:00Z",
	} {
		s := &source{id: "w", activatedAt: start.UnixMilli(), workflow: scheduleDocument(t, "rssFeedReadTrigger", "UTC", parameters)}
		all, err := schedulesOf(t.Context(), nil, s)
		require.NoError(t, err)
		require.True(t, all[0].poll)
		require.Equal(t, want, all[0].next(start).UTC().Format(time.RFC3339), parameters)
	}
	s := &source{id: "w", activatedAt: start.UnixMilli(), workflow: scheduleDocument(t, "rssFeedReadTrigger", "UTC", `{"pollTimes":{"item":[{"mode":"everyX","value":2}]}}`)}
	all, err := schedulesOf(t.Context(), nil, s)
	require.NoError(t, err)
	moment := all[0].next(start)
	require.Equal(t, 2*time.Hour, all[0].next(moment).Sub(moment), "hours unless it says minutes")
}
