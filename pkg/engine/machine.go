package engine

import (
	"errors"

	"github.com/reprise-engine/reprise/pkg/workflow"
)

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

// NewState returns the state of an execution that has not started.
func NewState(meta Meta) *State { panic("to be written") }

// Apply applies one event; see the package comment for the caller's duties.
func (m *Machine) Apply(s *State, ev Event) (Step, error) { return Step{}, errors.New("to be written") }

// Tables is a stored execution: the fields of its hashes.
type Tables map[Table]map[string][]byte

// Restore builds the state that the tables hold.
func Restore(t Tables) (*State, error) { return nil, errors.New("to be written") }

// Check returns an error naming the first broken invariant.
func (m *Machine) Check(s *State) error { return nil }

// Inputs resolves what an entry refers to: its items per main input, stamped
// with their own index as pairedItem. A tool entry has one item, the
// requester's item overlaid by the arguments, plus toolCallId (R5).
func (s *State) Inputs(e *Entry) []workflow.Items { return nil }

// Rounds returns the answered rounds of a requester's run, oldest first.
func (s *State) Answers(caller RunRef) []Round { return nil }
