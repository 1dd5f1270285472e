package core

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/reprise-engine/reprise/pkg/nodes/nodestest"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// A loop that is over begins again when it is entered from where it was entered
// first, and only then: what still comes back from its body is not looped over.
func TestLoopEnteredAgain(t *testing.T) {
	for name, c := range map[string]struct {
		context string
		source  workflow.Source
		want    string
	}{
		"from outside, when it is over":     {`{"start":0,"next":1,"done":true}`, workflow.Source{PreviousNode: "Before", PreviousNodeRun: 1}, `{"start":2,"next":1}`},
		"from its body, when it is over":    {`{"start":0,"next":1,"done":true}`, workflow.Source{PreviousNode: "Body"}, `{"start":0,"next":1,"done":true}`},
		"from another output, when it is":   {`{"start":0,"next":1,"done":true}`, workflow.Source{PreviousNode: "Before", PreviousNodeOutput: 1}, `{"start":0,"next":1,"done":true}`},
		"from outside, while it goes on":    {`{"start":0,"next":0}`, workflow.Source{PreviousNode: "Before", PreviousNodeRun: 1}, `{"start":0,"next":1}`},
		"as an earlier version had left it": {`{"start":0,"next":1}`, workflow.Source{PreviousNode: "Before", PreviousNodeRun: 1}, `{"start":0,"next":1,"done":true}`},
	} {
		t.Run(name, func(t *testing.T) {
			call := nodestest.Call(Loop(), `{}`, nodestest.Items(`{"x":1}`))
			call.RunIndex, call.Context, call.Source = 2, json.RawMessage(c.context), []*workflow.Source{&c.source}
			call.RunData = nodestest.RunData{
				"Node":   {{Source: []*workflow.Source{{PreviousNode: "Before"}}}, {Source: []*workflow.Source{{PreviousNode: "Body"}}}},
				"Before": {{Main: []workflow.Items{nodestest.Items(`{"n":1}`)}}, {Main: []workflow.Items{nodestest.Items(`{"n":2}`)}}},
				"Body":   {{Main: []workflow.Items{nodestest.Items(`{"b":1}`)}}},
			}
			result, err := call.Type.Execute(context.Background(), call)
			if err != nil {
				t.Fatal(err)
			}
			if got := string(result.Context); got != c.want {
				t.Errorf("context: got %s, want %s", got, c.want)
			}
		})
	}
}
