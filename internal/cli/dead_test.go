package cli

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/reprise-engine/reprise/internal/redistest"
	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/state"
)

func TestDeadUsage(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{
		"no number":  {"dead", "show", "order-4711"},
		"zero":       {"dead", "drop", "0"},
		"among good": {"dead", "replay", "1", "x"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			reprise(t, args...).failed(t, 2, "its id is a number", "reprise dead list")
		})
	}
	reprise(t, "dead", "list", "--output", "xml").failed(t, 2, "xml")
	reprise(t, "dead", "replay").failed(t, 2, "give the ids of dead letters", "reprise dead list")
}

func TestDoctorNamesStuckExecutions(t *testing.T) {
	t.Parallel()
	store, err := state.Open(t.Context(), state.Config{URL: redistest.Start(t).URL(), Prefix: "reprise"})
	require.NoError(t, err)
	defer func() { require.NoError(t, store.Close()) }()
	at := time.Now().Add(-20 * time.Minute).UnixMilli()
	require.NoError(t, store.Commit(t.Context(), []state.Commit{{
		Execution: "stands-still", Status: engine.StatusRunning, At: at,
		Changes: []engine.Change{{Table: engine.TableMeta, Field: "x", Value: []byte("1")}},
	}})[0])
	f, err := examineStuck(t.Context(), store, 15*time.Minute)
	require.NoError(t, err)
	assert.False(t, f.OK)
	assert.Contains(t, f.Found, "1 run without progress for 15m0s, the first for 20m")
	assert.Contains(t, f.Found, "stands-still")
	f, err = examineStuck(t.Context(), store, time.Hour)
	require.NoError(t, err)
	assert.True(t, f.OK)
}
