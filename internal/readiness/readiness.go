// Package readiness says whether workflow documents can run here, and what is missing
// when they cannot: before anything runs, and for many documents at once.
//
// It goes further than workflow.Validate, which looks at the document alone: settings that
// a node type does not support, kinds of credentials, expressions and scripts that do not
// compile, modules that scripts load, and workflows that are called. What only a run can
// tell (a computed setting, a wrong URL) it does not know.
package readiness

import (
	"context"
	"fmt"
	"slices"

	"github.com/reprise-engine/reprise/pkg/expression"
	"github.com/reprise-engine/reprise/pkg/node"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// Kind says what a finding is about.
type Kind string

// The kinds, in the order in which they are told.
const (
	KindType           Kind = "node type"
	KindVersion        Kind = "version"
	KindOption         Kind = "option"
	KindCredentialType Kind = "credential type"
	KindCredential     Kind = "credential"
	KindExpression     Kind = "expression"
	KindCode           Kind = "code"
	KindModule         Kind = "module"
	KindWorkflow       Kind = "sub-workflow"
	KindDocument       Kind = "document" // anything else that is wrong with the document
)

// Finding is one thing that a workflow lacks (an error: it cannot run) or that a person should
// know (a warning).
type Finding struct {
	workflow.Problem
	Kind Kind `json:"kind"`
	// What is missing, in words that are the same in all workflows that miss it.
	What string `json:"what"`
}

// Report is what was found in one workflow, errors first.
type Report struct {
	File     string    `json:"file,omitempty"`
	ID       string    `json:"id,omitempty"`
	Name     string    `json:"name,omitempty"`
	Runs     bool      `json:"canRun"`
	Nodes    int       `json:"nodes"` // enabled ones
	Findings []Finding `json:"findings"`
}

// Checker checks workflows. It may be used by several goroutines.
type Checker struct {
	Registry  *node.Registry
	Evaluator *expression.Evaluator
	// HasCredential reports whether a credential is there; nil does not look.
	HasCredential func(credentialType string, ref workflow.CredentialRef) bool
	// HasWorkflow reports whether a workflow with that id is there; nil does not look. A
	// missing one is an error when all that there are were given (Complete), else a warning.
	HasWorkflow func(id string) bool
	Complete    bool
}

// Check checks a workflow. Its error is one of the script engine or of ctx.
func (c *Checker) Check(ctx context.Context, w *workflow.Workflow) (*Report, error) {
	r := &run{checker: c, workflow: w, reachable: w.Reachable(c.Registry)}
	r.document()
	for _, n := range w.Nodes {
		if n.Disabled {
			continue
		}
		r.nodes++
		r.node(n)
	}
	r.errorWorkflow()
	if err := r.compile(ctx); err != nil {
		return nil, fmt.Errorf("check the scripts of %q: %w", w.Name, err)
	}
	slices.SortStableFunc(r.findings, func(a, b Finding) int { return severityRank(a) - severityRank(b) })
	report := &Report{ID: w.ID, Name: w.Name, Nodes: r.nodes, Findings: r.findings, Runs: true}
	if report.Findings == nil {
		report.Findings = []Finding{}
	}
	for _, f := range r.findings {
		report.Runs = report.Runs && f.Severity != workflow.SeverityError
	}
	return report, nil
}

func severityRank(f Finding) int {
	if f.Severity == workflow.SeverityError {
		return 0
	}
	return 1
}

// run is one check.
type run struct {
	checker   *Checker
	workflow  *workflow.Workflow
	reachable map[string]bool
	nodes     int
	findings  []Finding

	texts, scripts []place
	modules        []place // text is the module
}

// place is a text in a node's parameters.
type place struct {
	node *workflow.Node
	path string
	text string
}

func (r *run) add(kind Kind, severity workflow.Severity, node, field, what, format string, args ...any) {
	r.findings = append(r.findings, Finding{
		Problem: workflow.Problem{Severity: severity, Node: node, Field: field, Message: fmt.Sprintf(format, args...)},
		Kind:    kind, What: what,
	})
}

// fails is the severity of what makes a node fail: nobody minds in one that is never run.
func (r *run) fails(n *workflow.Node) workflow.Severity {
	_, pinned := r.workflow.PinData[n.Name]
	if r.reachable[n.Name] && !pinned {
		return workflow.SeverityError
	}
	return workflow.SeverityWarning
}

// document takes over what the document alone tells.
func (r *run) document() {
	for _, p := range workflow.Validate(r.workflow, r.checker.Registry) {
		f := Finding{Problem: p, Kind: KindDocument, What: p.Message}
		n := r.workflow.Node(p.Node)
		switch {
		case n != nil && p.Field == "type":
			f.Kind, f.What = KindType, n.Type
		case n != nil && p.Field == "typeVersion":
			f.Kind, f.What = KindVersion, fmt.Sprintf("%s %v", n.Type, n.TypeVersion)
		case n != nil && p.Field != "":
			f.What = n.Type + ": " + p.Field
		}
		r.findings = append(r.findings, f)
	}
}
