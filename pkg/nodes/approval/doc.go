// Package approval holds the nodes that ask a person and need no outside
// service, and what every node that asks has in common.
//
// A gate stands between tools and an Agent:
//
//	tool ~ai_tool~> gate ~ai_tool~> Agent
//
// The Agent asks for the gate in place of the tool, with
//
//	{"toolParameters": {the tool's arguments}, "tool": "name the model used", …}
//
// where further members are the gate's own parameters that the model fills in. The
// gate answers with a Wait whose Question names the tool and shows its arguments, byte
// for byte. When the wait is over it is called again and says how it ended, in n8n's
// shape; running the tool is the Agent's business, and the engine lets it do so only
// after a yes to just this call.
//
//	decided:  {"data": {"approved": true, "respondedAt": "2026-…Z", "chatInput": "feedback, if any"}}
//	expired:  {"data": {"approved": false, "expired": true}}
//	a text:   {"data": {"text": "what the person wrote"}}
//
// Asking twice is harmless: a repeated attempt asks the same question again, and a
// run has one wait at a time.
package approval

import (
	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/node"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// The names of the types.
const (
	TypeGate     = "reprise.approvalHitlTool"
	TypeApproval = "reprise.approval"
)

// Types returns the node types of the package.
func Types() []*node.Type {
	return node.Supporting([]*node.Type{
		{
			Spec:  GateSpec(TypeGate, 1),
			Waits: true, Inline: true,
			Execute: gate,
		},
		{
			Spec: workflow.Spec{
				Type: TypeApproval, Versions: []float64{1},
				Outputs: func(*workflow.Node) int { return 2 },
			},
			Waits: true, Inline: true,
			Execute: ask,
		},
	}, supported)
}

// GateSpec is what a gate declares: it is wired like a tool, and at least one tool
// is wired to it. It has no Describe: a model sees the tools behind it.
func GateSpec(name string, versions ...float64) workflow.Spec {
	return workflow.Spec{
		Type: name, Versions: versions, ToolNode: true,
		SubNodes: map[string]string{workflow.Tool: "Tool"},
		Accepts:  []string{workflow.Tool},
	}
}

// operationError is n8n's error of a node's own code. Trying again would not help.
func operationError(message, description string) *engine.NodeError {
	return &engine.NodeError{Name: "NodeOperationError", Message: message, Description: description, NotRetryable: true}
}
