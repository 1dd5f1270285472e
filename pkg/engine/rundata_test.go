package engine_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// sizes runs a chain of three nodes that each give out an item of so many bytes.
func sizes(t *testing.T, limit int64, size int) *execution {
	t.Helper()
	w, err := sketch(`
		Start: trigger
		A: node
		B: node
		C: node
		Start -> A
		A -> B
		B -> C`)
	require.NoError(t, err)
	x := newExecution(w)
	x.machine = engine.NewLimited(w, catalog{}, engine.Limits{RunDataBytes: limit})
	x.must(t, engine.Started{At: x.now})
	for _, node := range []string{"A", "B", "C"} {
		if x.state.Meta.Status.Finished() {
			break
		}
		item := workflow.Item{JSON: []byte(`{"text":"` + strings.Repeat("x", size) + `"}`)}
		x.must(t, engine.NodeFinished{At: x.now, Job: x.mustJob(t, node), Result: engine.Result{Outputs: []workflow.Items{{item}}}})
	}
	return x
}

func TestRunDataIsLimited(t *testing.T) {
	x := sizes(t, 5000, 2000)
	require.Equal(t, engine.StatusError, x.state.Meta.Status)
	require.Equal(t, engine.ReasonTooLarge, x.state.Meta.Error.Reason)
	require.Contains(t, x.state.Meta.Error.Message, "bytes, more than the 5000 allowed")
	require.Contains(t, x.state.Meta.Error.Description, "REPRISE_MAX_RUN_DATA_BYTES")
	require.Equal(t, "C", x.state.Meta.LastNode, "the third item is the one too much")
	require.Len(t, x.state.Run["C"], 1, "and what was too large is kept")
	require.Empty(t, x.state.Jobs)
}

func TestRunDataWithinItsLimit(t *testing.T) {
	x := sizes(t, 1_000_000, 2000)
	require.Equal(t, engine.StatusSuccess, x.state.Meta.Status)
	tables, err := x.state.Tables()
	require.NoError(t, err)
	var stored int64
	for _, value := range tables[engine.TableRun] {
		stored += int64(len(value))
	}
	require.Equal(t, stored, x.state.Meta.RunBytes, "records that are written once count as they are stored")
	again, err := engine.Restore(tables)
	require.NoError(t, err)
	require.Equal(t, stored, again.Meta.RunBytes)
}
