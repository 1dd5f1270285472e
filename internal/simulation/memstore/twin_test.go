package memstore_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reprise-engine/reprise/internal/redistest"
	"github.com/reprise-engine/reprise/internal/simulation/memstore"
	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/state"
)

// TestGatesAsInRedis does the same at random in both stores, gate by gate, and expects the same.
func TestGatesAsInRedis(t *testing.T) {
	t.Parallel()
	url := redistest.Start(t).URL()
	for seed := range uint64(20) {
		real, err := state.Open(t.Context(), state.Config{URL: url, Prefix: fmt.Sprintf("seed%d", seed)})
		require.NoError(t, err)
		t.Cleanup(func() { _ = real.Close() })
		twin := memstore.New(memstore.Config{})
		rng := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // it must be repeatable
		now := int64(1_000_000)
		for step := range 150 {
			now += rng.Int64N(1500)
			id := func() engine.ExecutionID { return engine.ExecutionID(fmt.Sprintf("x%d", rng.IntN(8))) }
			c := state.GateCall{Op: state.GateOp(rng.IntN(3)), Gate: "w", Execution: id(), Limit: 2 + step/60, At: now}
			if c.Op == state.GateEnter && rng.IntN(3) == 0 {
				c.Line = []engine.ExecutionID{id(), id()}
			}
			if c.Op == state.GateLeave && rng.IntN(4) == 0 {
				c.Execution = ""
			}
			calls := []state.GateCall{c}
			require.Equal(t, real.Gate(t.Context(), calls), twin.Gate(t.Context(), calls), "seed %d, step %d: %+v", seed, step, c)
			want, err := real.Gates(t.Context())
			require.NoError(t, err)
			got, err := twin.Gates(t.Context())
			require.NoError(t, err)
			require.Equal(t, want, got, "seed %d, step %d: %+v", seed, step, c)
			other := id()
			at, err := real.GatePosition(t.Context(), "w", other)
			require.NoError(t, err)
			position, err := twin.GatePosition(t.Context(), "w", other)
			require.NoError(t, err)
			require.Equal(t, at, position)
		}
	}
}

// TestMomentsAsInRedis: the clocks differ by what passes between two calls.
func TestMomentsAsInRedis(t *testing.T) {
	t.Parallel()
	real, err := state.Open(t.Context(), state.Config{URL: redistest.Start(t).URL(), Prefix: "moments"})
	require.NoError(t, err)
	t.Cleanup(func() { _ = real.Close() })
	twin := memstore.New(memstore.Config{})
	rng := rand.New(rand.NewPCG(1, 0)) //nolint:gosec // it must be repeatable
	for step := range 200 {
		r := state.Reservation{Limit: "l", Holder: fmt.Sprintf("h%d", rng.IntN(100)), Count: 3 + step/100, Per: time.Hour}
		want, err := real.Reserve(t.Context(), []state.Reservation{r})
		require.NoError(t, err)
		got, err := twin.Reserve(t.Context(), []state.Reservation{r})
		require.NoError(t, err)
		require.InDelta(t, want[0].Seconds(), got[0].Seconds(), 30, "step %d: %+v", step, r)
	}
}

// TestHeldAsInRedis: what the dispatcher asks about executions.
func TestHeldAsInRedis(t *testing.T) {
	t.Parallel()
	real, err := state.Open(t.Context(), state.Config{URL: redistest.Start(t).URL(), Prefix: "held"})
	require.NoError(t, err)
	t.Cleanup(func() { _ = real.Close() })
	type store interface {
		Commit(ctx context.Context, commits []state.Commit) []error
		OpenJobs(ctx context.Context, jobs []state.JobRef) ([]bool, error)
		Postpone(ctx context.Context, ids []engine.ExecutionID, next int64) error
		ClaimStale(ctx context.Context, now, next int64, limit int) ([]engine.ExecutionID, error)
		CountByStatus(ctx context.Context) (map[engine.Status]int64, error)
		Stuck(ctx context.Context, before int64) ([]state.StuckExecution, error)
		Turn(ctx context.Context, name string, interval int64) (bool, error)
	}
	for name, s := range map[string]store{"redis": real, "memory": memstore.New(memstore.Config{})} {
		change := engine.Change{Table: engine.TableOpen, Field: engine.JobField("a_1"), Value: []byte("{}")}
		for _, err := range s.Commit(t.Context(), []state.Commit{
			{Execution: "a", Status: engine.StatusRunning, At: 10, NextSweep: 100, WorkflowName: "w", Changes: []engine.Change{change}},
			{Execution: "b", Status: engine.StatusNew, At: 10, NextSweep: 100},
			{Execution: "c", Status: engine.StatusSuccess, At: 10},
		}) {
			require.NoError(t, err, name)
		}
		open, err := s.OpenJobs(t.Context(), []state.JobRef{{Execution: "a", Job: "a_1"}, {Execution: "a", Job: "a_2"}, {Execution: "z", Job: "z_1"}})
		require.NoError(t, err)
		require.Equal(t, []bool{true, false, false}, open, name)
		require.NoError(t, s.Postpone(t.Context(), []engine.ExecutionID{"a", "c", "z"}, 200))
		stale, err := s.ClaimStale(t.Context(), 150, 1000, 10)
		require.NoError(t, err)
		require.Equal(t, []engine.ExecutionID{"b"}, stale, name)
		stale, err = s.ClaimStale(t.Context(), 250, 1000, 10)
		require.NoError(t, err)
		require.Equal(t, []engine.ExecutionID{"a"}, stale, name)
		stuck, err := s.Stuck(t.Context(), 10)
		require.NoError(t, err)
		require.Equal(t, []state.StuckExecution{{Execution: "a", WorkflowName: "w", Moved: 10}}, stuck, name)
		counts, err := s.CountByStatus(t.Context())
		require.NoError(t, err)
		for status, n := range map[engine.Status]int64{engine.StatusRunning: 1, engine.StatusNew: 1, engine.StatusSuccess: 1, engine.StatusError: 0} {
			require.Equal(t, n, counts[status], "%s in %s", status, name)
		}
		first, err := s.Turn(t.Context(), "x", 60_000)
		require.NoError(t, err)
		second, err := s.Turn(t.Context(), "x", 60_000)
		require.NoError(t, err)
		require.Equal(t, []bool{true, false}, []bool{first, second}, name)
	}
}
