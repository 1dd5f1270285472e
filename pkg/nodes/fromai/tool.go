package fromai

import (
	"context"
	"fmt"
	"slices"

	"github.com/reprise-engine/reprise/pkg/node"
)

// Variant is how a node type is an Agent's tool.
type Variant struct {
	// Description is what a model is told of the tool when its user wrote nothing.
	Description string
	// Versions of the type that are a tool; nil is all.
	Versions []float64
}

// WithTools returns types and, of those that have a variant by their name, the tool: the same node under the
// name with "Tool" at its end, shown to the model with the description that its user wrote and with the
// arguments that its parameters ask for by $fromAI. It panics for a name that none of the types has, which
// is a mistake of the program.
func WithTools(types []*node.Type, variants map[string]Variant) []*node.Type {
	all := slices.Clone(types)
	used := map[string]bool{}
	for _, t := range types {
		v, ok := variants[t.Type]
		if !ok {
			continue
		}
		used[t.Type] = true
		if tool := v.of(t); len(tool.Versions) > 0 {
			all = append(all, tool)
		}
	}
	for name := range variants {
		if !used[name] {
			panic("fromai: tool of " + name + ", which is not among the types")
		}
	}
	return all
}

func (v Variant) of(t *node.Type) *node.Type {
	tool := *t
	tool.Type += "Tool"
	tool.ToolNode = true
	tool.Inline = false
	if v.Versions != nil {
		tool.Versions = slices.DeleteFunc(slices.Clone(t.Versions), func(version float64) bool { return !slices.Contains(v.Versions, version) })
	}
	tool.Describe = func(ctx context.Context, call *node.Call) (*node.ToolDescription, error) {
		description, err := call.String(ctx, 0, "toolDescription", "")
		if err != nil {
			return nil, err
		}
		if description == "" {
			description = v.Description
		}
		schema, err := Schema(call.Node.Parameters)
		if err != nil {
			return nil, fmt.Errorf("arguments of tool %q: %w", call.Node.Name, err)
		}
		return &node.ToolDescription{Name: call.Node.Name, Description: description, Schema: schema}, nil
	}
	return &tool
}
