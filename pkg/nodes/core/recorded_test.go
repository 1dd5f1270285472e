package core

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"testing"

	"github.com/reprise-engine/reprise/pkg/node"
	"github.com/reprise-engine/reprise/pkg/nodes/nodestest"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// recording is one run of a node on n8n 2.41.1: its parameters, what it was
// given, and what it put out. Values are the results of its expressions.
type recording struct {
	Case        string                       `json:"case"`
	Name        string                       `json:"name"`
	Type        string                       `json:"type"`
	TypeVersion float64                      `json:"typeVersion"`
	Parameters  json.RawMessage              `json:"parameters"`
	OnError     workflow.OnError             `json:"onError"`
	Run         int                          `json:"run"`
	Source      []*workflow.Source           `json:"source"`
	Inputs      []workflow.Items             `json:"inputs"`
	Values      map[string][]json.RawMessage `json:"values"`
	Error       string                       `json:"error"`
	Outputs     []workflow.Items             `json:"outputs"`
	History     nodestest.RunData            `json:"history"`
}

func recordings(t *testing.T) []recording {
	t.Helper()
	file, err := os.Open("testdata/recorded.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var all []recording
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var r recording
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			t.Fatal(err)
		}
		all = append(all, r)
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}

func TestRecordedRuns(t *testing.T) {
	var registry node.Registry
	registry.Register(Types()...)
	contexts := map[string]json.RawMessage{}
	for _, r := range recordings(t) {
		t.Run(fmt.Sprintf("%s/%s/%d", r.Case, r.Name, r.Run), func(t *testing.T) {
			nodeType, ok := registry.Find(r.Type, r.TypeVersion)
			if !ok {
				t.Fatalf("%s %v is not registered", r.Type, r.TypeVersion)
			}
			call := nodestest.Call(nodeType, string(r.Parameters))
			call.Node.Name, call.Node.TypeVersion, call.Node.OnError = r.Name, r.TypeVersion, r.OnError
			call.Inputs, call.Source, call.RunIndex = r.Inputs, r.Source, r.Run
			call.Execution.Mode = "trigger"
			call.Parameters = nodestest.Resolver{Values: r.Values}
			// The records that follow this run were not there yet.
			if r.History != nil {
				r.History[r.Name] = r.History[r.Name][:r.Run]
				call.RunData = r.History
			}
			key := r.Case + "/" + r.Name
			call.Context = contexts[key]
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
			if got, want := render(result.Outputs), render(r.Outputs); got != want {
				t.Errorf("outputs:\n got %s\nwant %s", got, want)
			}
		})
	}
}

// render writes outputs for comparison: trailing empty ones count as absent.
func render(outputs []workflow.Items) string {
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
