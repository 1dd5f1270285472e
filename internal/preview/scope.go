package preview

import (
	"time"

	"github.com/reprise-engine/reprise/pkg/expression"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// resumeURL has the form of the URL that an execution is resumed at, and leads nowhere.
const resumeURL = "http://localhost/webhook-waiting/preview"

// Scope is what expressions of the node see.
func (d *Data) Scope(now time.Time) *expression.Scope {
	s := &expression.Scope{
		Node: d.Node, RunIndex: d.RunIndex, Inputs: d.Inputs, Sources: d.Sources, RunData: d.RunData,
		Nodes: make(map[string]*workflow.Node, len(d.Workflow.Nodes)), Ancestors: d.Workflow.Ancestors(d.Node.Name),
		Timezone: d.Workflow.Settings.Timezone, Now: now,
	}
	for _, n := range d.Workflow.Nodes {
		s.Nodes[n.Name] = n
	}
	s.Execution.ID, s.Execution.Mode, s.Execution.ResumeURL = "preview", "cli", resumeURL
	s.Workflow.ID, s.Workflow.Name, s.Workflow.Active = d.Workflow.ID, d.Workflow.Name, d.Workflow.Active
	return s
}

// Alone is the scope of an expression that belongs to no workflow: it has an input and
// nothing else.
func Alone(input workflow.Items, timezone string, now time.Time) *expression.Scope {
	s := &expression.Scope{Inputs: []workflow.Items{input}, Timezone: timezone, Now: now}
	s.Execution.ID, s.Execution.Mode, s.Execution.ResumeURL = "preview", "cli", resumeURL
	return s
}
