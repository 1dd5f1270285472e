package state_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reprise-engine/reprise/internal/redistest"
	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/state"
)

// lookSeldom has a store rely on what it knows.
func lookSeldom(c *state.Config) { c.LookEvery = time.Hour }

// withTimer makes an execution whose only timer and next sweep are at that time.
func withTimer(id string, at int64) state.Commit {
	c := create(engine.ExecutionID(id))
	c.Timers = []engine.TimerChange{{ID: "t", At: at}}
	c.NextSweep = at
	return c
}

// claimed lists the executions whose timers are due.
func claimed(t *testing.T, s *state.Store, now, until int64) (ids []string) {
	t.Helper()
	due, err := s.ClaimTimers(t.Context(), now, until, 1000)
	require.NoError(t, err)
	for _, d := range due {
		ids = append(ids, string(d.Execution))
	}
	slices.Sort(ids)
	return ids
}

// swept lists the executions that are to be looked at.
func swept(t *testing.T, s *state.Store, now, next int64) (ids []string) {
	t.Helper()
	stale, err := s.ClaimStale(t.Context(), now, next, 1000)
	require.NoError(t, err)
	for _, id := range stale {
		ids = append(ids, string(id))
	}
	slices.Sort(ids)
	return ids
}

// An idle process looks for timers five times and for sweeps once a second. With much that waits
// for a distant moment, it sends what two looks at everything cost, and nothing in between.
func TestIdleLooksCostNothing(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	raw := client(t, srv.Addr())
	s := open(t, srv.URL(), lookSeldom)
	var commits []state.Commit
	for i := range 1000 {
		commits = append(commits, withTimer(fmt.Sprint("e", i), 1e15))
	}
	commit(t, s, commits...)
	require.NoError(t, raw.ConfigResetStat(t.Context()).Err())
	for now := range int64(500) {
		require.Empty(t, claimed(t, s, now, now+5000))
		require.Empty(t, swept(t, s, now, now+5000))
	}
	sent := infoNumber(t, raw, "stats", "total_commands_processed")
	require.Less(t, sent, int64(2*state.Shards+10), "commands that 1000 looks sent")
}

// With nothing set, also a look at everything is one command.
func TestEmptyLooksAreOneCommand(t *testing.T) {
	t.Parallel()
	s := open(t, redistest.Shared(t).URL())
	before := s.Stats()
	require.Empty(t, claimed(t, s, 100, 200))
	require.Empty(t, swept(t, s, 100, 200))
	gates, err := s.Gates(t.Context())
	require.NoError(t, err)
	require.Empty(t, gates)
	require.Equal(t, uint64(3), s.Stats().Commands-before.Commands)
}

// What others have set is found at the next look at everything, and what was seen then is taken at
// its time, also when whoever has set it is gone.
func TestOthersTimersAreFound(t *testing.T) {
	t.Parallel()
	url := redistest.Shared(t).URL()
	name := fmt.Sprintf("%s.%d", t.Name(), rand.Int64())
	prefix := func(c *state.Config) { c.Prefix = name }
	mine := open(t, url, prefix, lookSeldom)
	others := open(t, url, prefix)
	commit(t, others, withTimer("a", 100), withTimer("b", 2000))
	require.Equal(t, []string{"a"}, claimed(t, mine, 150, 9000), "the first look is at everything")
	require.Equal(t, []string{"a"}, swept(t, mine, 150, 9000))
	commit(t, others, withTimer("c", 300))
	require.Empty(t, claimed(t, mine, 400, 9000), "it is not known yet")
	require.Empty(t, swept(t, mine, 400, 9000))
	require.Equal(t, []string{"b"}, claimed(t, mine, 2000, 9000), "it was seen")
	require.Equal(t, []string{"b"}, swept(t, mine, 2000, 9000))

	looking := open(t, url, prefix, func(c *state.Config) { c.LookEvery = 50 * time.Millisecond })
	require.Equal(t, []string{"c"}, claimed(t, looking, 2000, 9000), "it had never looked")
	commit(t, others, withTimer("d", 2100))
	require.Eventually(t, func() bool { return slices.Equal(claimed(t, looking, 2200, 9000), []string{"d"}) }, 10*time.Second, 10*time.Millisecond)
}

// Many set timers while others of the process take them: none is forgotten, whatever was read
// while it was set.
func TestNoTimerIsForgotten(t *testing.T) {
	t.Parallel()
	s := open(t, redistest.Shared(t).URL(), lookSeldom)
	const writers, each = 4, 150
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for i := range each {
				// Times before, at and after what the claimers ask for, in no order.
				at := time.Now().UnixMilli() + rand.Int64N(40) - 20
				for _, err := range s.Commit(t.Context(), []state.Commit{withTimer(fmt.Sprintf("w%d-%d", w, i), at)}) {
					if err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	seen := map[string]int{}
	var mu sync.Mutex
	missing := func() int {
		mu.Lock()
		defer mu.Unlock()
		return writers*each - len(seen)
	}
	for range 2 {
		wg.Go(func() {
			for deadline := time.Now().Add(20 * time.Second); missing() > 0 && time.Now().Before(deadline); {
				for _, id := range claimed(t, s, time.Now().UnixMilli(), 1e15) {
					mu.Lock()
					seen[id]++
					mu.Unlock()
				}
			}
		})
	}
	wg.Wait()
	require.Zero(t, missing(), "timers that nobody was given")
	for id, n := range seen {
		require.Equal(t, 1, n, "%s was claimed twice", id)
	}
	var sweeps []string
	for more := []string{""}; len(more) > 0; sweeps = append(sweeps, more...) {
		more = swept(t, s, 1e14, 1e15)
	}
	require.Len(t, sweeps, writers*each)
}

// A process whose clock is ahead takes nothing from others that is not due yet.
func TestNothingIsDueBeforeTheServersClock(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	s := open(t, srv.URL(), lookSeldom)
	now := time.Now().UnixMilli()
	minutes := func(n int64) int64 { return now + n*time.Minute.Milliseconds() }
	for _, err := range s.Commit(t.Context(), []state.Commit{withTimer("past", minutes(-1)), withTimer("soon", minutes(1))}) {
		require.NoError(t, err)
	}
	require.Equal(t, []string{"past"}, claimed(t, s, minutes(60), minutes(61)))
	require.Equal(t, []string{"past"}, swept(t, s, minutes(60), minutes(61)))
}
