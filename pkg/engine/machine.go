package engine

import "github.com/reprise-engine/reprise/pkg/workflow"

// Machine applies events to executions of one workflow. It is immutable and
// may be shared.
type Machine struct {
	workflow *workflow.Workflow
	catalog  workflow.Catalog
	limits   Limits
}

// Limits end executions that would not end by themselves.
type Limits struct {
	// RunsPerNode bounds how often one node runs in an execution; 0 is
	// DefaultRunsPerNode. The workflow's settings may say otherwise (maxRunsPerNode).
	RunsPerNode int
	// Depth bounds how deep executions start one another; 0 is DefaultDepth.
	Depth int
	// RunDataBytes bounds the records that an execution writes, as they are stored; 0 is
	// DefaultRunDataBytes.
	RunDataBytes int64
}

// The limits of an execution that sets none.
const (
	DefaultRunsPerNode = 10_000
	DefaultDepth       = 20
)

// New returns the machine of a workflow, with the default limits.
func New(w *workflow.Workflow, c workflow.Catalog) *Machine {
	return NewLimited(w, c, Limits{})
}

// NewLimited is New with limits.
func NewLimited(w *workflow.Workflow, c workflow.Catalog, l Limits) *Machine {
	if l.RunsPerNode <= 0 {
		l.RunsPerNode = DefaultRunsPerNode
	}
	if w.Settings.MaxRunsPerNode > 0 {
		l.RunsPerNode = int(w.Settings.MaxRunsPerNode)
	}
	if l.RunDataBytes <= 0 {
		l.RunDataBytes = DefaultRunDataBytes
	}
	if l.Depth <= 0 {
		l.Depth = DefaultDepth
	}
	return &Machine{workflow: w, catalog: c, limits: l}
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

// polls reports whether a trigger looks for its input itself.
func (m *Machine) polls(n *workflow.Node) bool {
	spec := m.spec(n)
	return spec != nil && spec.Polls
}

// sequential reports whether the tools of a round run one by one (R19).
func (m *Machine) sequential() bool { return m.workflow.Settings.ToolExecution == "sequential" }

// inputCount is the number of main inputs the scheduler knows: those that are
// connected, as in n8n, not those that the node's type declares.
func (m *Machine) inputCount(node string) int {
	return len(m.workflow.Origins(node, workflow.Main))
}
