package core

import (
	"context"
	"errors"

	"github.com/tidwall/gjson"

	"github.com/reprise-engine/reprise/pkg/node"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// AITransform runs the JavaScript that n8n's editor had a model write for the node's instructions, over
// all items at once, as Code does. No model is asked when it runs, so without code it can do nothing.
func AITransform() *node.Type {
	return &node.Type{
		Spec: workflow.Spec{Type: base + "aiTransform", Versions: []float64{1}},
		Once: func(n *workflow.Node) bool { return sends(gjson.GetBytes(n.Parameters, "jsCode").Str) },
		Execute: func(ctx context.Context, call *node.Call) (*node.Result, error) {
			code := parameter(call, "jsCode").String()
			if code == "" {
				failure := node.OperationError(-1, "The node has no code",
					"The code is generated in n8n's editor, from the instructions: generate it there, or use a Code node.")
				failure.NotRetryable = true
				return nil, failure
			}
			if call.RunScript == nil {
				return nil, errors.New("this process runs no scripts")
			}
			return codeAll(ctx, call, node.Script{Code: code, Item: node.AllItems})
		},
	}
}
