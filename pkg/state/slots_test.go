package state_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reprise-engine/reprise/internal/redistest"
	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/state"
)

func TestOneTakesASlot(t *testing.T) {
	t.Parallel()
	s := open(t, redistest.Start(t).URL())
	first := state.Slot{Execution: "poll-1", Moment: 1, TakenAt: 2}
	calls := 0
	taken, err := s.TakeSlot(t.Context(), "flow {1}", func(have state.Slot) (state.Slot, bool, error) {
		if calls++; calls == 1 { // somebody else is faster
			_, err := s.TakeSlot(t.Context(), "flow {1}", func(have state.Slot) (state.Slot, bool, error) {
				require.Zero(t, have)
				return first, true, nil
			})
			require.NoError(t, err)
			return state.Slot{Execution: "poll-2"}, true, nil
		}
		return have, false, nil
	})
	require.NoError(t, err)
	require.Equal(t, first, taken)
	require.Equal(t, 2, calls, "it is asked again when the slot has changed")
}

func TestLeaseHasOneHolder(t *testing.T) {
	t.Parallel()
	s := open(t, redistest.Start(t).URL())
	lease := func(holder string, length time.Duration, note *string) state.Lease {
		t.Helper()
		l, err := s.Lease(t.Context(), "stream {1}", holder, length, note)
		require.NoError(t, err)
		return l
	}
	require.True(t, lease("a", time.Minute, nil).Held)
	other := lease("b", time.Minute, nil)
	require.False(t, other.Held)
	require.InDelta(t, time.Minute, other.Free, float64(10*time.Second))
	note := "event 7"
	require.True(t, lease("a", time.Minute, &note).Held, "the holder keeps it")
	require.NoError(t, s.Release(t.Context(), "stream {1}", "b"))
	require.False(t, lease("b", time.Minute, nil).Held, "only the holder gives it back")
	require.NoError(t, s.Release(t.Context(), "stream {1}", "a"))
	got := lease("b", 50*time.Millisecond, nil)
	require.Equal(t, state.Lease{Held: true, Note: note}, got, "with what the last one left")
	require.Eventually(t, func() bool { return lease("a", time.Minute, nil).Held }, 10*time.Second, 10*time.Millisecond, "it runs out")
}

// A quiet end leaves no list with the execution in it, and its id is known for a while.
func TestQuietEnd(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	s := open(t, server.URL())
	stored, over, err := s.Begun(t.Context(), "quiet", "Feed")
	require.NoError(t, err)
	require.False(t, stored || over)
	require.NoError(t, s.Commit(t.Context(), []state.Commit{{Execution: "quiet", Status: engine.StatusRunning, At: 1000, WorkflowID: "w"}})[0])
	stored, over, err = s.Begun(t.Context(), "quiet", "Feed")
	require.NoError(t, err)
	require.True(t, stored)
	require.False(t, over)
	require.NoError(t, s.Commit(t.Context(), []state.Commit{{Execution: "quiet", Version: 1, Status: engine.StatusSuccess, Finished: true, Quiet: true, At: 2000}})[0])
	page, _, err := s.List(t.Context(), state.Filter{})
	require.NoError(t, err)
	require.Empty(t, page)
	stored, over, err = s.Begun(t.Context(), "quiet", "Feed")
	require.NoError(t, err)
	require.True(t, stored && over)
	require.ErrorIs(t, s.Commit(t.Context(), []state.Commit{{Execution: "quiet", Status: engine.StatusRunning, At: 3000}})[0], state.ErrExists, "it does not begin again")

	// A node that ended while the execution goes on.
	require.NoError(t, s.Commit(t.Context(), []state.Commit{{Execution: "found", Status: engine.StatusRunning, At: 1000, Changes: []engine.Change{
		{Table: engine.TableRun, Field: engine.RunField("Feed", 0), Value: []byte("{}")},
	}}})[0])
	stored, over, err = s.Begun(t.Context(), "found", "Feed")
	require.NoError(t, err)
	require.True(t, stored && over)
}
