package statetest

import (
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/state"
)

// withTimers makes a running execution with timers.
func withTimers(id engine.ExecutionID, timers ...engine.TimerChange) state.Commit {
	c := create(id, 1)
	c.Timers = timers
	return c
}

func claim(t *testing.T, s Store, now, until int64) []state.Due {
	t.Helper()
	due, err := s.ClaimTimers(t.Context(), now, until, 1000)
	require.NoError(t, err)
	return due
}

// timersClaimedOnce has several claimers take the timers of many shards.
func timersClaimedOnce(t *testing.T, s Store) {
	const executions, claimers = 120, 4
	var commits []state.Commit
	for i := range executions {
		commits = append(commits, withTimers(engine.ExecutionID(fmt.Sprintf("e%d", i)),
			engine.TimerChange{ID: "first", At: int64(100 + i)}, engine.TimerChange{ID: "second|with bar", At: int64(300 + i)},
			engine.TimerChange{ID: "later", At: 5000}))
	}
	commit(t, s, commits...)
	require.Empty(t, claim(t, s, 99, 1000), "nothing is due")

	var mu sync.Mutex
	seen := map[string]int64{}
	var wg sync.WaitGroup
	for range claimers {
		wg.Go(func() {
			for {
				due, err := s.ClaimTimers(t.Context(), 1000, 9000, 25)
				if err != nil {
					t.Errorf("claim: %v", err)
					return
				}
				if len(due) == 0 {
					return
				}
				if len(due) > 25 {
					t.Errorf("%d timers claimed, limit 25", len(due))
				}
				mu.Lock()
				for _, d := range due {
					key := string(d.Execution) + "/" + d.Timer
					if _, twice := seen[key]; twice {
						t.Errorf("%s claimed twice", key)
					}
					seen[key] = d.At
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	require.Len(t, seen, 2*executions)
	require.Equal(t, int64(107), seen["e7/first"])
	require.Equal(t, int64(307), seen["e7/second|with bar"])
}

// timersOfOneShard has most of what is due in one shard: the others' share of
// the limit is not lost to it.
func timersOfOneShard(t *testing.T, s Store) {
	busy := withTimers("busy")
	for i := range 1800 {
		busy.Timers = append(busy.Timers, engine.TimerChange{ID: fmt.Sprintf("t%04d", i), At: int64(1 + i)})
	}
	commits := []state.Commit{busy}
	for i := range 100 {
		commits = append(commits, withTimers(engine.ExecutionID(fmt.Sprintf("e%d", i)), engine.TimerChange{ID: "t", At: 1}))
	}
	commit(t, s, commits...)
	due, err := s.ClaimTimers(t.Context(), 2000, 9000, 1900)
	require.NoError(t, err)
	require.Len(t, due, 1900)
	seen := map[state.Due]bool{}
	for _, d := range due {
		require.False(t, seen[d], "%+v", d)
		seen[d] = true
	}
	require.Empty(t, claim(t, s, 2000, 9000))
}

func timerClaimEnds(t *testing.T, s Store) {
	commit(t, s, withTimers("a", engine.TimerChange{ID: "t", At: 100}))
	require.Equal(t, []state.Due{{Execution: "a", Timer: "t", At: 100, Claim: 500}}, claim(t, s, 100, 500))
	require.Empty(t, claim(t, s, 499, 900), "claimed by another")
	require.Equal(t, []state.Due{{Execution: "a", Timer: "t", At: 500, Claim: 900}}, claim(t, s, 500, 900), "the claimer died")
}

func timersFollowCommits(t *testing.T, s Store) {
	commit(t, s, withTimers("a", engine.TimerChange{ID: "x", At: 100}, engine.TimerChange{ID: "y", At: 100},
		engine.TimerChange{ID: "z", At: 100}, engine.TimerChange{ID: "z"}))
	require.Len(t, claim(t, s, 100, 500), 2, "z was set and cleared in one commit")
	u := update("a", 1, engine.StatusRunning)
	u.Timers = []engine.TimerChange{{ID: "x"}, {ID: "x", At: 50}, {ID: "x", At: 300}, {ID: "y"}}
	commit(t, s, u)
	require.Empty(t, claim(t, s, 299, 500))
	require.Equal(t, []state.Due{{Execution: "a", Timer: "x", At: 300, Claim: 5000}}, claim(t, s, 1e3, 5000), "set anew and cleared in spite of the claims")
}

func timersDropped(t *testing.T, s Store) {
	commit(t, s, withTimers("a", engine.TimerChange{ID: "gone", At: 100}, engine.TimerChange{ID: "anew", At: 100}))
	due := claim(t, s, 100, 500)
	require.Len(t, due, 2)
	u := update("a", 1, engine.StatusRunning)
	u.Timers = []engine.TimerChange{{ID: "anew", At: 200}}
	commit(t, s, u)
	require.NoError(t, s.DropTimers(t.Context(), due))
	require.Equal(t, []state.Due{{Execution: "a", Timer: "anew", At: 200, Claim: 9000}}, claim(t, s, 5000, 9000),
		"what was set anew since the claim stays")
	require.NoError(t, s.DropTimers(t.Context(), nil))
}

func sweepClaimed(t *testing.T, s Store) {
	stale := func(now, next int64) []engine.ExecutionID {
		ids, err := s.ClaimStale(t.Context(), now, next, 10)
		require.NoError(t, err)
		return ids
	}
	commit(t, s, create("a", 100)) // next sweep at 1100
	require.Empty(t, stale(1099, 5000))
	require.Equal(t, []engine.ExecutionID{"a"}, stale(1100, 5000))
	require.Empty(t, stale(4999, 9000), "put off")
	u := update("a", 1, engine.StatusWaiting)
	commit(t, s, u) // says nothing about the sweep
	require.Equal(t, []engine.ExecutionID{"a"}, stale(5000, 6000))
	u = update("a", 2, engine.StatusRunning)
	u.NextSweep = 20_000
	commit(t, s, u)
	require.Empty(t, stale(19_999, 30_000), "a commit is a sign of life")
	commit(t, s, update("a", 3, engine.StatusCanceled))
	require.Empty(t, stale(1e9, 2e9), "nothing is left to sweep")
	none, err := s.ClaimStale(t.Context(), 1e9, 2e9, 0)
	require.NoError(t, err)
	require.Empty(t, none)
}

func nextDue(t *testing.T, s Store) {
	timer, sweep, err := s.NextDue(t.Context())
	require.NoError(t, err)
	require.Zero(t, timer)
	require.Zero(t, sweep)
	commit(t, s, withTimers("a", engine.TimerChange{ID: "t", At: 700}), withTimers("b", engine.TimerChange{ID: "t", At: 300}))
	timer, sweep, err = s.NextDue(t.Context())
	require.NoError(t, err)
	require.Equal(t, int64(300), timer)
	require.Equal(t, int64(1001), sweep)
}
