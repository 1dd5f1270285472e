package engine

import (
	"fmt"
	"slices"
)

// destination reports whether a run ends at this node: what it feeds is not run.
func (t *tx) destination(node string) bool {
	d := t.s.Meta.Destination
	return d != nil && d.Node == node
}

// leftOut reports whether a node of the main flow has no part in a run up to a
// destination.
func (t *tx) leftOut(node string) bool {
	d := t.s.Meta.Destination
	switch {
	case d == nil:
		return false
	case d.Node == node:
		return d.Exclusive
	}
	return !slices.Contains(t.workflow.Ancestors(d.Node), node)
}

func (t *tx) tooManyRuns(node string) *NodeError {
	return &NodeError{
		Message:     fmt.Sprintf("Node %q ran %d times: the execution seems to be in an endless loop and was stopped", node, len(t.s.Run[node])),
		Description: "Mend the loop's condition. If it is right, raise maxRunsPerNode in the workflow's settings or the coordinators' limit.",
		Reason:      ReasonTooManyRuns, Node: node, NotRetryable: true,
	}
}
