package engine_test

import (
	"bytes"
	"maps"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// stored is an execution whose node A is in flight.
func stored(t *testing.T) (*execution, engine.Tables) {
	t.Helper()
	w, err := sketch(`
		Start: trigger
		A: node
		B: node
		Start -> A
		A -> B`)
	require.NoError(t, err)
	x := newExecution(w)
	x.must(t, engine.Started{At: x.now})
	tables, err := x.state.Tables()
	require.NoError(t, err)
	return x, tables
}

// What an older program must not touch it refuses, and says why.
func TestNewerExecutionsAreLeftAlone(t *testing.T) {
	for name, change := range map[string]func(engine.Tables){
		"format": func(t engine.Tables) {
			t[engine.TableMeta]["identity"] = bytes.Replace(t[engine.TableMeta]["identity"], []byte("{"), []byte(`{"format":2,`), 1)
		},
		"format, and identity has another shape": func(t engine.Tables) {
			t[engine.TableMeta]["identity"] = []byte(`{"format":2,"id":{"text":"x"},"mode":7}`)
		},
		"flag": func(t engine.Tables) {
			t[engine.TableMeta]["identity"] = bytes.Replace(t[engine.TableMeta]["identity"], []byte("{"), []byte(`{"flags":[1000000],`), 1)
		},
		"open field": func(t engine.Tables) { t[engine.TableOpen]["saga:1"] = []byte(`{}`) },
	} {
		t.Run(name, func(t *testing.T) {
			_, tables := stored(t)
			_, err := engine.Restore(tables)
			require.NoError(t, err)
			change(tables)
			_, err = engine.Restore(tables)
			require.ErrorIs(t, err, engine.ErrNewer)
			require.ErrorContains(t, err, "finish the upgrade")
		})
	}
}

// Fields that a newer program has added are read past, and stay where the older one does not
// write anew: in the identity, and in the records and entries that its event does not concern.
func TestUnknownFieldsAreKept(t *testing.T) {
	x, tables := stored(t)
	for _, table := range tables {
		for field, value := range table {
			if bytes.HasPrefix(value, []byte("{")) && !strings.HasPrefix(field, "context:") {
				table[field] = bytes.Replace(value, []byte("{"), []byte(`{"added":{"since":[1,2]},`), 1)
			}
		}
	}
	before := maps.Clone(tables[engine.TableMeta])
	start := string(tables[engine.TableRun]["0:Start"])
	require.Contains(t, start, "added")

	state, err := engine.Restore(tables)
	require.NoError(t, err)
	x.state = state
	answer := engine.Result{Outputs: []workflow.Items{{{JSON: []byte(`{}`)}}}}
	for _, node := range []string{"A", "B"} {
		step, err := x.machine.Apply(x.state, engine.NodeFinished{At: x.now, Job: x.mustJob(t, node), Result: answer})
		require.NoError(t, err)
		tables.Add(step.Changes)
	}
	require.Equal(t, engine.StatusSuccess, x.state.Meta.Status)
	require.Equal(t, before["identity"], tables[engine.TableMeta]["identity"])
	require.Equal(t, start, string(tables[engine.TableRun]["0:Start"]))
	_, err = engine.Restore(tables)
	require.NoError(t, err)
}
