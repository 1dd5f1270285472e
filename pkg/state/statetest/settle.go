package statetest

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/state"
)

// unsettled makes a commit that finishes, with others still to be told.
func unsettled(id engine.ExecutionID, version uint64, nextSweep int64) state.Commit {
	c := update(id, version, engine.StatusSuccess)
	c.Unsettled, c.NextSweep = true, nextSweep
	return c
}

func stale(t *testing.T, s Store, now, next int64) []engine.ExecutionID {
	t.Helper()
	ids, err := s.ClaimStale(t.Context(), now, next, 1000)
	require.NoError(t, err)
	return ids
}

// unsettledIsSwept follows one from its end until everybody was told.
func unsettledIsSwept(t *testing.T, s Store) {
	end := unsettled("a", 1, 20_000)
	commit(t, s, create("a", 1), end, end)
	require.Equal(t, []string{"a"}, idsOf(pages(t, s, state.Filter{Status: []engine.Status{engine.StatusSuccess}})))
	require.Empty(t, stale(t, s, 19_999, 90_000))
	require.Equal(t, []engine.ExecutionID{"a"}, stale(t, s, 20_000, 30_000))
	require.Empty(t, stale(t, s, 29_999, 90_000), "put off, as others are")
	_, sweep, err := s.NextDue(t.Context())
	require.NoError(t, err)
	require.Equal(t, int64(30_000), sweep)
	require.Equal(t, []engine.ExecutionID{"a"}, stale(t, s, 30_000, 40_000), "whoever claimed it died")
	require.Equal(t, engine.StatusSuccess, load(t, s, "a").Status, "what to tell is still there")
	require.ErrorIs(t, commitErr(t, s, update("a", 2, engine.StatusRunning)), state.ErrFinished)

	require.NoError(t, s.Settle(t.Context(), []engine.ExecutionID{"a"}))
	require.NoError(t, s.Settle(t.Context(), []engine.ExecutionID{"a"}))
	require.Empty(t, stale(t, s, 1e12, 2e12))
	commit(t, s, end) // a late repeat brings nothing back
	require.Empty(t, stale(t, s, 1e12, 2e12))
	require.Equal(t, uint64(2), load(t, s, "a").Version, "settling takes nothing away")
	require.Len(t, pages(t, s, state.Filter{}), 1)

	born := create("b", 50) // created and finished at once
	born.Status, born.Unsettled, born.NextSweep = engine.StatusError, true, 0
	commit(t, s, born)
	require.Empty(t, stale(t, s, 49, 9000))
	require.Equal(t, []engine.ExecutionID{"b"}, stale(t, s, 50, 9000), "no next sweep is at the commit's time")
}

// settleLeavesUnfinished settles a mixture of everything at once.
func settleLeavesUnfinished(t *testing.T, s Store) {
	const n = 300 // more than one round trip takes
	var ids []engine.ExecutionID
	var commits []state.Commit
	for i := range n {
		id := engine.ExecutionID(fmt.Sprintf("e%03d", i))
		ids = append(ids, id)
		commits = append(commits, create(id, 1))
		switch i % 3 {
		case 0:
			commits = append(commits, unsettled(id, 1, 1000))
		case 1:
			commits = append(commits, update(id, 1, engine.StatusWaiting))
		}
	}
	commit(t, s, commits...)
	require.NoError(t, s.Settle(t.Context(), append(ids, "never-was")))
	left := stale(t, s, 1e12, 2e12)
	require.Len(t, left, 2*n/3)
	for _, id := range left {
		require.False(t, load(t, s, id).Status.Finished(), id)
	}
	going := update("e001", 2, engine.StatusRunning)
	going.Unsettled = true // means nothing yet
	commit(t, s, going, update("e001", 3, engine.StatusSuccess))
	require.NotContains(t, stale(t, s, 3e12, 4e12), engine.ExecutionID("e001"), "an end with nobody to tell")
	require.NoError(t, s.Settle(t.Context(), nil))
	require.Error(t, s.Settle(t.Context(), []engine.ExecutionID{"a:b"}))
}

// unsettledAndRemoved checks the ways an unsettled execution can go.
func unsettledAndRemoved(t *testing.T, s Store) {
	commit(t, s, create("a", 1), unsettled("a", 1, 5000), create("b", 1), unsettled("b", 1, 5000))
	require.ErrorIs(t, s.Delete(t.Context(), "a"), state.ErrUnsettled)
	require.NotNil(t, load(t, s, "a"))
	require.NoError(t, s.Settle(t.Context(), []engine.ExecutionID{"a"}))
	require.NoError(t, s.Delete(t.Context(), "a"))

	removed, err := s.Prune(t.Context(), 1e12)
	require.NoError(t, err)
	require.Equal(t, 1, removed)
	require.Nil(t, load(t, s, "b"))
	require.Empty(t, stale(t, s, 1e12, 2e12), "no leftovers")
	require.ErrorIs(t, s.Delete(t.Context(), "b"), state.ErrNotFound)
}
