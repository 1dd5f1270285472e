package workflow

import (
	"fmt"
	"strings"
)

// Severity tells what stops an execution from what a person should know.
type Severity string

// The severities.
const (
	SeverityError   Severity = "error"
	SeverityWarning Severity = "warning"
)

// Problem is one thing that is wrong with a document.
type Problem struct {
	Severity Severity `json:"severity"`
	// Node is the node's name, "" when the problem is the workflow's.
	Node string `json:"node,omitempty"`
	// Field of the node or workflow: "typeVersion", "settings.timezone",
	// "connections.main[0]"; "" when the problem is the whole of it.
	Field   string `json:"field,omitempty"`
	Message string `json:"message"`
}

// String is the problem as a person reads it, without its severity.
func (p Problem) String() string {
	var where []string
	if p.Node != "" {
		where = append(where, fmt.Sprintf("node %q", p.Node))
	}
	if p.Field != "" {
		where = append(where, p.Field)
	}
	if len(where) == 0 {
		return p.Message
	}
	return strings.Join(where, ", ") + ": " + p.Message
}

// Problems are all problems of a document.
type Problems []Problem

// Errors are the problems that stop the workflow from running.
func (p Problems) Errors() Problems { return p.of(SeverityError) }

// Warnings are the problems with which the workflow runs.
func (p Problems) Warnings() Problems { return p.of(SeverityWarning) }

func (p Problems) of(s Severity) Problems {
	var found Problems
	for _, one := range p {
		if one.Severity == s {
			found = append(found, one)
		}
	}
	return found
}

// Err is an *InvalidError with the errors among p, or nil when there are none.
func (p Problems) Err() error {
	if found := p.Errors(); len(found) > 0 {
		return &InvalidError{Problems: found}
	}
	return nil
}

// InvalidError is a workflow that cannot run. Its text has a line per problem.
type InvalidError struct {
	Problems Problems
}

func (e *InvalidError) Error() string {
	if len(e.Problems) == 1 {
		return "invalid workflow: " + e.Problems[0].String()
	}
	var b strings.Builder
	fmt.Fprintf(&b, "invalid workflow, %d problems:", len(e.Problems))
	for _, p := range e.Problems {
		b.WriteString("\n  - " + p.String())
	}
	return b.String()
}
