package items

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"testing"

	"github.com/reprise-engine/reprise/pkg/node"
	"github.com/reprise-engine/reprise/pkg/nodes/nodestest"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// recording is one run of a node on n8n 2.41.1: its parameters, what it was
// given, and what it put out.
type recording struct {
	Case        string             `json:"case"`
	Name        string             `json:"name"`
	Type        string             `json:"type"`
	TypeVersion float64            `json:"typeVersion"`
	Parameters  json.RawMessage    `json:"parameters"`
	OnError     workflow.OnError   `json:"onError"`
	Source      []*workflow.Source `json:"source"`
	Inputs      []workflow.Items   `json:"inputs"`
	Error       string             `json:"error"`
	Outputs     []workflow.Items   `json:"outputs"`
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
	for _, r := range recordings(t) {
		t.Run(r.Case+"/"+r.Name, func(t *testing.T) {
			nodeType, ok := registry.Find(r.Type, r.TypeVersion)
			if !ok {
				t.Fatalf("%s %v is not registered", r.Type, r.TypeVersion)
			}
			call := nodestest.Call(nodeType, string(r.Parameters))
			call.Node.Name, call.Node.TypeVersion, call.Node.OnError = r.Name, r.TypeVersion, r.OnError
			call.Inputs, call.Source = r.Inputs, r.Source
			call.RunScript = byDescendingID
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
			if got, want := render(result.Outputs), render(r.Outputs); got != want {
				t.Errorf("outputs:\n got %s\nwant %s", got, want)
			}
		})
	}
}

// byDescendingID stands in for the JavaScript of the recorded sorting.
func byDescendingID(_ context.Context, call *node.Call, _ node.Script) (*node.ScriptResult, error) {
	var order []int
	for i := range call.Inputs[0] {
		order = append(order, i)
	}
	slices.Reverse(order)
	value, err := json.Marshal(order)
	return &node.ScriptResult{Value: value, Type: "array"}, err
}

// render writes outputs for comparison, keys sorted: trailing empty ones count
// as absent.
func render(outputs []workflow.Items) string {
	for len(outputs) > 0 && len(outputs[len(outputs)-1]) == 0 {
		outputs = outputs[:len(outputs)-1]
	}
	var b bytes.Buffer
	for i, items := range outputs {
		fmt.Fprintf(&b, "\n  output %d", i)
		for _, item := range items {
			paired, _ := json.Marshal(item.PairedItem)
			fmt.Fprintf(&b, "\n    %s %s", canonical(string(item.JSON)), paired)
			for _, name := range fileNames(item) {
				fmt.Fprintf(&b, " %s=%s", name, item.Binary[name].FileName)
			}
		}
	}
	return b.String()
}
