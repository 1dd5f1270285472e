package state_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reprise-engine/reprise/internal/redistest"
	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/state"
)

func reserve(t testing.TB, s *state.Store, limit, holder string, count int, per time.Duration) time.Duration {
	t.Helper()
	waits, err := s.Reserve(t.Context(), []state.Reservation{{Limit: limit, Holder: holder, Count: count, Per: per}})
	require.NoError(t, err)
	return waits[0]
}

// In no span of the length of a limit are there more moments than it allows, whoever asks.
func TestReservationsKeepTheLimit(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	const count, per = 5, time.Second
	var wg sync.WaitGroup
	for c := range 2 {
		s := open(t, srv.URL(), func(c *state.Config) { c.Prefix = "same" })
		wg.Go(func() {
			for i := range 20 {
				reserve(t, s, "w:n", fmt.Sprintf("%d-%d", c, i), count, per)
			}
		})
	}
	wg.Wait()
	raw := client(t, srv.Addr())
	keys, err := raw.Keys(t.Context(), "*limit:w:n:*").Result()
	require.NoError(t, err)
	require.Len(t, keys, 40)
	var moments []int
	for _, key := range keys {
		at, err := raw.Get(t.Context(), key).Int()
		require.NoError(t, err)
		moments = append(moments, at)
	}
	slices.Sort(moments)
	for i := range moments[count:] {
		require.GreaterOrEqual(t, moments[i+count]-moments[i], int(per.Milliseconds()))
	}
	require.Less(t, moments[39]-moments[0], 8500, "and they are not further apart than need be")
}

func TestReservationAskedAgain(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	s, raw := open(t, srv.URL()), client(t, srv.Addr())
	require.Zero(t, reserve(t, s, "l", "a", 1, time.Hour))
	first := reserve(t, s, "l", "b", 1, time.Hour)
	require.InDelta(t, time.Hour, first, float64(time.Minute))
	require.LessOrEqual(t, reserve(t, s, "l", "b", 1, time.Hour), first, "the same moment, which has come nearer")
	require.Zero(t, reserve(t, s, "l", "a", 1, time.Hour))
	require.InDelta(t, 2*time.Hour, reserve(t, s, "l", "c", 1, time.Hour), float64(time.Minute), "asking again took no other moment")
	require.Zero(t, reserve(t, s, "other", "a", 1, time.Hour), "limits do not share")
	require.InDelta(t, 2*time.Hour, reserve(t, s, "l", "d", 2, time.Hour), float64(time.Minute), "a limit that was changed begins after what it gave out")
	keys, err := raw.Keys(t.Context(), "*limit*").Result()
	require.NoError(t, err)
	require.NotEmpty(t, keys)
	for _, key := range keys {
		require.Positive(t, raw.PTTL(t.Context(), key).Val(), "%s has no expiry", key)
	}
	_, err = s.Reserve(t.Context(), []state.Reservation{{Limit: "l"}})
	require.Error(t, err)
}

func TestOpenJobsAndPostpone(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	s := open(t, srv.URL())
	c := create("x")
	c.NextSweep = 100
	c.Changes = append(c.Changes, engine.Change{Table: engine.TableOpen, Field: engine.JobField("x_0"), Value: []byte(`{}`)})
	other := create("y")
	other.NextSweep = 100
	commit(t, s, c, other)
	open, err := s.OpenJobs(t.Context(), []state.JobRef{{Execution: "x", Job: "x_0"}, {Execution: "x", Job: "x_1"}, {Execution: "none", Job: "none_0"}})
	require.NoError(t, err)
	require.Equal(t, []bool{true, false, false}, open)

	require.NoError(t, s.Postpone(t.Context(), []engine.ExecutionID{"x", "none"}, 500))
	stale, err := s.ClaimStale(t.Context(), 200, 300, 10)
	require.NoError(t, err)
	require.Equal(t, []engine.ExecutionID{"y"}, stale)
	stale, err = s.ClaimStale(t.Context(), 501, 600, 10)
	require.NoError(t, err)
	require.ElementsMatch(t, []engine.ExecutionID{"x", "y"}, stale, "one that is not there was not added")

	counts, err := s.CountByStatus(t.Context())
	require.NoError(t, err)
	require.Equal(t, int64(2), counts[engine.StatusRunning])
	require.Equal(t, int64(0), counts[engine.StatusError])
}
