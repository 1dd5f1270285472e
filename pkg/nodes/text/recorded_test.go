package text

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-engine/reprise/pkg/node"
	"github.com/reprise-engine/reprise/pkg/nodes/nodestest"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// recording is one run of a node on n8n 2.41.1.
type recording struct {
	Case        string                       `json:"case"`
	Name        string                       `json:"name"`
	Type        string                       `json:"type"`
	TypeVersion float64                      `json:"typeVersion"`
	Parameters  json.RawMessage              `json:"parameters"`
	OnError     workflow.OnError             `json:"onError"`
	Values      map[string][]json.RawMessage `json:"values"`
	Inputs      []workflow.Items             `json:"inputs"`
	Outputs     []workflow.Items             `json:"outputs"`
}

func TestRecordedRuns(t *testing.T) {
	var registry node.Registry
	registry.Register(Types()...)
	file, err := os.ReadFile("testdata/recorded.jsonl")
	require.NoError(t, err)
	for line := range bytes.Lines(file) {
		var r recording
		require.NoError(t, json.Unmarshal(line, &r))
		t.Run(r.Case+"/"+r.Name, func(t *testing.T) {
			nodeType, ok := registry.Find(r.Type, r.TypeVersion)
			require.True(t, ok, "%s %v is registered", r.Type, r.TypeVersion)
			call := nodestest.Call(nodeType, string(r.Parameters), r.Inputs...)
			call.Node.TypeVersion, call.Node.OnError = r.TypeVersion, r.OnError
			call.Parameters = nodestest.Resolver{Values: r.Values}
			result, err := nodeType.Execute(context.Background(), call)
			require.NoError(t, err)
			want, got := r.Outputs[0], result.Outputs[0]
			require.Len(t, got, len(want))
			for i := range want {
				require.JSONEq(t, string(want[i].JSON), string(got[i].JSON))
				require.Equal(t, want[i].PairedItem, got[i].PairedItem)
			}
		})
	}
}
