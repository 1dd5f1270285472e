package core

import (
	"context"
	"encoding/json"

	"github.com/reprise-engine/reprise/pkg/node"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

const base = "n8n-nodes-base."

// starts are the types that begin an execution. Listening for the outside
// event is the business of whoever submits the execution; in it they pass on
// what they were given.
var starts = []struct {
	name     string
	versions []float64
}{
	{base + "manualTrigger", []float64{1}},
	{base + "start", []float64{1}},
	{base + "webhook", []float64{1, 1.1, 2, 2.1}},
	{base + "scheduleTrigger", []float64{1, 1.1, 1.2, 1.3}},
	{base + "cron", []float64{1, 1.1, 2}},
	{base + "interval", []float64{1}},
	{base + "sseTrigger", []float64{1}},
	{base + "executeWorkflowTrigger", []float64{1, 1.1}},
	{base + "formTrigger", []float64{1, 2, 2.1, 2.2, 2.3, 2.4, 2.5}},
	{base + "errorTrigger", []float64{1}},
	{"@n8n/n8n-nodes-langchain.chatTrigger", []float64{1, 1.1, 1.2, 1.3, 1.4}},
	{"@n8n/n8n-nodes-langchain.manualChatTrigger", []float64{1, 1.1}},
}

// accepts are the nodes that may be attached to a start: the memory that a chat shows.
var accepts = map[string][]string{"@n8n/n8n-nodes-langchain.chatTrigger": {workflow.Memory}}

// Triggers returns the start node types.
func Triggers() []*node.Type {
	var types []*node.Type
	for _, start := range starts {
		types = append(types, &node.Type{
			Spec:    workflow.Spec{Type: start.name, Versions: start.versions, Trigger: true, Accepts: accepts[start.name]},
			Inline:  true,
			Execute: startExecution,
		})
	}
	return types
}

func startExecution(_ context.Context, call *node.Call) (*node.Result, error) {
	items := call.Input(0)
	if items == nil {
		items = workflow.Items{{JSON: json.RawMessage(`{}`)}}
	}
	return passAll(items), nil
}

// NoOp passes its items on.
func NoOp() *node.Type {
	return &node.Type{
		Spec:   workflow.Spec{Type: base + "noOp", Versions: []float64{1}},
		Inline: true,
		Execute: func(_ context.Context, call *node.Call) (*node.Result, error) {
			return passAll(call.Input(0)), nil
		},
	}
}

func passAll(items workflow.Items) *node.Result {
	out := make(workflow.Items, len(items))
	for i, item := range items {
		out[i] = node.Passed(item, i, 0)
	}
	return node.Outputs(out)
}
