package fromai

import (
	"context"
	"fmt"

	"github.com/reprise-engine/reprise/pkg/node"
)

// Tool is the variant of a node type that is an Agent's tool: the same node under the name with "Tool" at its end,
// shown to the model with the description that its user wrote, else fallback, and with the arguments that its
// parameters ask for by $fromAI.
func Tool(t *node.Type, fallback string) *node.Type {
	tool := *t
	tool.Type += "Tool"
	tool.ToolNode = true
	tool.Inline = false
	tool.Describe = func(ctx context.Context, call *node.Call) (*node.ToolDescription, error) {
		description, err := call.String(ctx, 0, "toolDescription", fallback)
		if err != nil {
			return nil, err
		}
		if description == "" {
			description = fallback
		}
		schema, err := Schema(call.Node.Parameters)
		if err != nil {
			return nil, fmt.Errorf("arguments of tool %q: %w", call.Node.Name, err)
		}
		return &node.ToolDescription{Name: call.Node.Name, Description: description, Schema: schema}, nil
	}
	return &tool
}
