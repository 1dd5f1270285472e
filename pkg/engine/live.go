package engine

import (
	"fmt"

	"github.com/reprise-engine/reprise/pkg/workflow"
)

// tell adds a notice with the stack as it is now.
func (t *tx) tell(l Live) {
	if l.At == 0 {
		l.At = t.at
	}
	l.Stack = t.s.StackNames()
	t.step.Live = append(t.step.Live, l)
}

func (t *tx) tellFinished(e *Entry, r *Record) {
	t.tell(Live{
		Kind: LiveNodeFinished, Node: e.Node, Run: e.Run, Type: e.outputType(),
		Status: r.Status, Error: r.Error.text(),
	})
}

// outputType is the connection type a run's output is logged under (R7).
func (e *Entry) outputType() string {
	if e.AsTool() {
		return workflow.Tool
	}
	return workflow.Main
}

// StackNames is the stack as people read it, top first: "Shout", or
// "AI Agent(resume: 2 results)".
func (s *State) StackNames() []string {
	names := make([]string, 0, len(s.Stack))
	for i := len(s.Stack) - 1; i >= 0; i-- {
		e := s.Stack[i]
		name := e.Node
		if rounds := s.Rounds[e.RunRef()]; e.Kind == EntryResume && len(rounds) > 0 {
			name = fmt.Sprintf("%s(resume: %d results)", e.Node, len(rounds[len(rounds)-1].Calls))
		}
		names = append(names, name)
	}
	return names
}
