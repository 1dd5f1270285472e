package state_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-engine/reprise/internal/redistest"
	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/state"
)

func TestStuck(t *testing.T) {
	t.Parallel()
	s := open(t, redistest.Start(t).URL())
	change := []engine.Change{{Table: engine.TableMeta, Field: "x", Value: []byte("1")}}
	commit := func(id engine.ExecutionID, version uint64, status engine.Status, at int64, changes []engine.Change) {
		t.Helper()
		require.NoError(t, s.Commit(t.Context(), []state.Commit{{
			Execution: id, Version: version, Status: status, At: at, Changes: changes, WorkflowName: "W",
		}})[0])
	}
	commit("still", 0, engine.StatusRunning, 100, change)
	commit("still", 1, engine.StatusRunning, 110, change)
	commit("still", 2, engine.StatusRunning, 900, nil) // a sweep changes nothing
	commit("stiller", 0, engine.StatusRunning, 100, change)
	commit("moves", 0, engine.StatusRunning, 100, change)
	commit("moves", 1, engine.StatusRunning, 900, change)
	commit("waits", 0, engine.StatusWaiting, 100, change)
	commit("queued", 0, engine.StatusNew, 100, change)
	commit("over", 0, engine.StatusRunning, 100, change)
	commit("over", 1, engine.StatusSuccess, 101, change)
	commit("young", 0, engine.StatusRunning, 600, change)
	stuck, err := s.Stuck(t.Context(), 500)
	require.NoError(t, err)
	require.Equal(t, []state.StuckExecution{{"stiller", "W", 100}, {"still", "W", 110}}, stuck)
	stuck, err = s.Stuck(t.Context(), 105)
	require.NoError(t, err)
	require.Len(t, stuck, 1)
	stuck, err = s.Stuck(t.Context(), 99)
	require.NoError(t, err)
	require.Empty(t, stuck)
}
