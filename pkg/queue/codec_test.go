package queue

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// The codec gives the same bytes as encoding/json, but for escaped HTML, and
// reads them the same way.
func TestCodecIsLikeTheStandardOne(t *testing.T) {
	job := &Job{
		Version: 1, ID: "x_1", Execution: "x", Plan: []byte(`{"node":"A","nodes":[{"name":"A","parameters":{"b":1,"a":"é \u00e9 <b>"}}]}`),
		Inputs: []workflow.Items{
			{{JSON: []byte(`{"z":1.0,"a":[1e3,null]}`), PairedItem: workflow.Paired(3)}},
			nil,
			{},
			{{JSON: []byte(`{}`), PairedItem: workflow.PairedItems{{Item: 1}, {Item: 2, Input: 1, SourceOverwrite: &workflow.Source{PreviousNode: "A"}}}}},
		},
		RunData: map[string]map[int]JobRecord{"B": {2: {Outputs: []workflow.Items{{}}}, 10: {}}, "A": {}},
		Runs:    map[string]int{"B": 11, "A": 0},
		Rounds: []engine.Round{{Metadata: []byte(`{"k":[]}`), Results: []engine.ActionResult{{
			Action: engine.Action{Input: []byte(`{"q":"\"quoted\""}`)}, Record: &engine.Record{Data: map[string][]workflow.Items{"ai_tool": {nil}}},
		}}}},
	}
	want, err := json.Marshal(job)
	require.NoError(t, err)
	for name, encode := range map[string]func(any) ([]byte, error){"encode": encode, "trusted": encodeTrusted} {
		got, err := encode(job)
		require.NoError(t, err, name)
		require.JSONEq(t, string(want), string(got), name)
		var std, own Job
		require.NoError(t, json.Unmarshal(want, &std))
		require.NoError(t, decode(got, &own))
		std.Plan, own.Plan = nil, nil // spelled differently, same JSON
		require.Equal(t, std, own, name)
	}
}

func TestCodecRefusesWhatIsNotJSON(t *testing.T) {
	bad := &Result{Job: "x_1"}
	bad.Result.Outputs = []workflow.Items{{{JSON: []byte(`{"open":`)}}}
	_, err := encode(bad)
	require.Error(t, err)
	for _, text := range []string{``, `{`, `{"v":1} x`, `{"result":{"outputs":[[{"json":{"a":}}]]}}`, `{"result":{"outputs":[[{"json":{"a":1}]]}}`, "\x00"} {
		require.Error(t, decode([]byte(text), &Result{}), text)
	}
}
