package engine

import "github.com/reprise-engine/reprise/pkg/workflow"

// Machine applies events to executions of one workflow. It is immutable and
// may be shared.
type Machine struct {
	workflow *workflow.Workflow
	catalog  workflow.Catalog
}

// New returns the machine of a workflow.
func New(w *workflow.Workflow, c workflow.Catalog) *Machine {
	return &Machine{workflow: w, catalog: c}
}

// Workflow is the document the machine runs.
func (m *Machine) Workflow() *workflow.Workflow { return m.workflow }

// spec of a node's type; nil when it is unknown.
func (m *Machine) spec(n *workflow.Node) *workflow.Spec {
	spec, _ := m.catalog.Lookup(n.Type, n.TypeVersion)
	return spec
}

func (m *Machine) trigger(n *workflow.Node) bool {
	spec := m.spec(n)
	return spec != nil && spec.Trigger
}

// sequential reports whether the tools of a round run one by one (R19).
func (m *Machine) sequential() bool { return m.workflow.Settings.ToolExecution == "sequential" }

// inputCount is the number of main inputs the scheduler knows: those that are
// connected, as in n8n, not those that the node's type declares.
func (m *Machine) inputCount(node string) int {
	return len(m.workflow.Origins(node, workflow.Main))
}
