package workflow

import (
	"errors"
	"strings"
)

// ErrNoStart is returned by Start; the text is n8n's.
var ErrNoStart = errors.New("No node to start the workflow from could be found") // n8n's words

// Triggers whose type decides about the start.
const (
	manualTrigger = "n8n-nodes-base.manualTrigger"
	errorTrigger  = "n8n-nodes-base.errorTrigger"
	chatTrigger   = "@n8n/n8n-nodes-langchain.chatTrigger"
	evalTrigger   = "n8n-nodes-base.evaluationTrigger"
)

// Start is the node an execution starts from when none is named: the only
// enabled node of the main flow if there is just one, else the first enabled
// trigger. A manual trigger goes before a chat trigger, that before all
// others in file order. The trigger of evaluations, which begins tests, and the error
// trigger, which waits for another workflow's failure, come last. The error is ErrNoStart.
func (w *Workflow) Start(c Catalog) (*Node, error) {
	var only, best *Node
	candidates := 0
	for _, n := range w.Nodes {
		if n.Disabled || w.Node(n.Name) != n {
			continue
		}
		if !w.attached(n, c) {
			candidates++
			only = n
		}
		if isTrigger(c, n) && (best == nil || startRank(n) < startRank(best)) {
			best = n
		}
	}
	switch {
	case candidates == 1:
		return only, nil
	case best != nil:
		return best, nil
	}
	return nil, ErrNoStart
}

func startRank(n *Node) int {
	switch n.Type {
	case manualTrigger:
		return 0
	case chatTrigger:
		return 1
	case evalTrigger:
		return 3
	case errorTrigger:
		return 4
	}
	return 2
}

// isTrigger goes by the name of the type when the catalog does not know it, so
// that an unknown trigger is not also reported as a missing one.
func isTrigger(c Catalog, n *Node) bool {
	if spec, _ := c.Lookup(n.Type, n.TypeVersion); spec != nil {
		return spec.Trigger
	}
	return strings.HasSuffix(n.Type, "Trigger")
}

// attached reports whether a node serves others and has no place in the main
// flow: by its type, or because it is wired as a sub-node.
func (w *Workflow) attached(n *Node, c Catalog) bool {
	if spec, _ := c.Lookup(n.Type, n.TypeVersion); spec != nil && spec.SubNode {
		return true
	}
	for connType, outputs := range w.out[n.Name] {
		if connType == Main {
			continue
		}
		for _, targets := range outputs {
			if len(targets) > 0 {
				return true
			}
		}
	}
	return false
}
