package core

import (
	"context"

	"github.com/reprise-engine/reprise/pkg/node"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// decide tells whether an item meets a node's conditions.
type decide func(ctx context.Context, call *node.Call, item int) (bool, error)

// If sends items that meet its conditions to output 0, the others to output 1.
func If() *node.Type {
	return splitter("if", []float64{2, 2.1, 2.2, 2.3}, 2, readFilter)
}

// IfOld is If with conditions grouped by type.
func IfOld() *node.Type {
	return splitter("if", []float64{1}, 2, readOldFilter("combineOperation", "any"))
}

// Filter keeps the items that meet its conditions. The others are recorded
// as a second output that nothing can be connected to, as in n8n.
func Filter() *node.Type {
	return splitter("filter", []float64{2, 2.1, 2.2, 2.3}, 1, readFilter)
}

// FilterOld is Filter with conditions grouped by type.
func FilterOld() *node.Type {
	return splitter("filter", []float64{1}, 1, readOldFilter("combineConditions", "OR"))
}

// splitter is a node that parts its items in two. An item whose conditions
// cannot be evaluated goes, unchanged, to the second output when the node
// continues on errors.
func splitter(name string, versions []float64, outputCount int, read func(context.Context, *node.Call) (decide, error)) *node.Type {
	return &node.Type{
		Spec: workflow.Spec{
			Type: base + name, Versions: versions,
			Outputs: func(*workflow.Node) int { return outputCount },
		},
		Inline: true,
		Execute: func(ctx context.Context, call *node.Call) (*node.Result, error) {
			met, err := read(ctx, call)
			if err != nil {
				return nil, err
			}
			var yes, no workflow.Items
			for i, item := range call.Input(0) {
				ok, err := met(ctx, call, i)
				if err != nil && !call.Survives(ctx, err) {
					return nil, err
				}
				if ok && err == nil {
					yes = append(yes, node.Passed(item, i, 0))
				} else {
					no = append(no, node.Passed(item, i, 0))
				}
			}
			return node.Outputs(yes, no), nil
		},
	}
}

func readFilter(ctx context.Context, call *node.Call) (decide, error) {
	c, err := readConditions(ctx, call, "conditions")
	return c.evaluate, err
}
