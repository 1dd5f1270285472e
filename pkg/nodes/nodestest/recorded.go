package nodestest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"testing"

	"github.com/reprise-engine/reprise/pkg/node"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// Recording is one run of a node on n8n 2.41.1: its parameters, what it was given, and
// what it put out, or the error that it failed with.
type Recording struct {
	Case        string             `json:"case"`
	Name        string             `json:"name"`
	Type        string             `json:"type"`
	TypeVersion float64            `json:"typeVersion"`
	Parameters  json.RawMessage    `json:"parameters"`
	OnError     workflow.OnError   `json:"onError"`
	Timezone    string             `json:"timezone"`
	Run         int                `json:"run"`
	Source      []*workflow.Source `json:"source"`
	Inputs      []workflow.Items   `json:"inputs"`
	// Values are the results of its expressions, see Resolver.
	Values  map[string][]json.RawMessage `json:"values"`
	Error   string                       `json:"error"`
	Outputs []workflow.Items             `json:"outputs"`
	// History has what other nodes put out, and this one in its earlier runs.
	History RunData `json:"history"`
}

// RunRecordings runs each of the recordings in testdata/recorded.jsonl, one a line, on node types, and
// compares what comes out. What one run keeps in its context, the node's next run of the same case finds.
// prepare, when not nil, changes a call before it is made.
func RunRecordings(t *testing.T, types []*node.Type, prepare func(*node.Call)) {
	t.Helper()
	var registry node.Registry
	registry.Register(types...)
	file, err := os.ReadFile("testdata/recorded.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	contexts := map[string]json.RawMessage{}
	for line := range bytes.Lines(file) {
		var r Recording
		if err := json.Unmarshal(line, &r); err != nil {
			t.Fatal(err)
		}
		t.Run(fmt.Sprintf("%s/%s/%d", r.Case, r.Name, r.Run), func(t *testing.T) {
			nodeType, ok := registry.Find(r.Type, r.TypeVersion)
			if !ok {
				t.Fatalf("%s %v is not registered", r.Type, r.TypeVersion)
			}
			key := r.Case + "/" + r.Name
			call := r.call(nodeType)
			call.Context = contexts[key]
			if prepare != nil {
				prepare(call)
			}
			result, err := nodeType.Execute(context.Background(), call)
			if r.Error != "" {
				if err == nil || err.Error() != r.Error {
					t.Fatalf("error: got %v, want %s", err, r.Error)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			contexts[key] = result.Context
			if got, want := Render(result.Outputs), Render(r.Outputs); got != want {
				t.Errorf("outputs:\n got %s\nwant %s", got, want)
			}
		})
	}
}

func (r *Recording) call(t *node.Type) *node.Call {
	call := Call(t, string(r.Parameters))
	call.Node.Name, call.Node.TypeVersion, call.Node.OnError = r.Name, r.TypeVersion, r.OnError
	call.Inputs, call.Source, call.RunIndex = r.Inputs, r.Source, r.Run
	call.Execution.Mode, call.Workflow.Timezone = "trigger", r.Timezone
	call.Parameters = Resolver{Values: r.Values}
	if r.History != nil {
		// The records that follow this run were not there yet.
		r.History[r.Name] = r.History[r.Name][:r.Run]
		call.RunData = r.History
	}
	return call
}

// Render writes outputs for comparison: trailing empty ones count as absent.
func Render(outputs []workflow.Items) string {
	for len(outputs) > 0 && len(outputs[len(outputs)-1]) == 0 {
		outputs = outputs[:len(outputs)-1]
	}
	var b bytes.Buffer
	for i, items := range outputs {
		fmt.Fprintf(&b, "\n  output %d", i)
		for _, item := range items {
			paired, _ := json.Marshal(item.PairedItem)
			var compacted bytes.Buffer
			_ = json.Compact(&compacted, item.JSON)
			fmt.Fprintf(&b, "\n    %s %s", &compacted, paired)
			if len(item.Binary) > 0 {
				files, _ := json.Marshal(item.Binary)
				fmt.Fprintf(&b, " %s", files)
			}
		}
	}
	return b.String()
}
