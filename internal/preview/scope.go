package preview

import (
	"time"

	"github.com/reprise-engine/reprise/pkg/expression"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// resumeURL and formURL have the form of the URLs that an execution is resumed at, and lead nowhere.
const (
	resumeURL = "http://localhost/webhook-waiting/preview"
	formURL   = "http://localhost/form-waiting/preview"
)

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
	s.Execution.ID, s.Execution.Mode, s.Execution.ResumeURL, s.Execution.ResumeFormURL = "preview", "cli", resumeURL, formURL
	s.Workflow.ID, s.Workflow.Name, s.Workflow.Active = d.Workflow.ID, d.Workflow.Name, d.Workflow.Active
	return s
}

// Alone is the scope of an expression that belongs to no workflow: it has an input and
// nothing else.
func Alone(input workflow.Items, timezone string, now time.Time) *expression.Scope {
	s := &expression.Scope{Inputs: []workflow.Items{input}, Timezone: timezone, Now: now}
	s.Execution.ID, s.Execution.Mode, s.Execution.ResumeURL, s.Execution.ResumeFormURL = "preview", "cli", resumeURL, formURL
	return s
}
