// Package expression evaluates n8n expressions: parameter values that start
// with "=" and hold any number of {{ }} segments.
//
// Plain property paths ($json.a["b"], $('X').item.json.y, $input.first().json.z …)
// are evaluated in Go; everything else in a JavaScript engine with time and
// memory limits (package javascript). Both give the same results.
package expression

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/reprise-engine/reprise/pkg/workflow"
)

// Scope is what the variables of an expression refer to, for one run of one
// node.
type Scope struct {
	Execution struct {
		ID, Mode, ResumeURL string
	}
	Workflow struct {
		ID, Name string
		Active   bool
	}
	// Node is the node whose parameters are evaluated.
	Node     *workflow.Node
	RunIndex int
	// Inputs and Sources of this run, per main input.
	Inputs  []workflow.Items
	Sources []*workflow.Source
	// RunData gives the records of other nodes.
	RunData RunData
	// Nodes by name, for $('X').params and to tell an unknown node from one
	// that was not executed.
	Nodes map[string]*workflow.Node
	// ToolArguments is what $fromAI reads, nil outside a tool run.
	ToolArguments json.RawMessage
	Timezone      string // IANA name; "" is UTC
	Now           time.Time
	// Vars is $vars; Env is $env, nil when access is off.
	Vars, Env map[string]string
}

// RunData is read access to the run data of an execution.
type RunData interface {
	Runs(node string) int
	Items(node string, run, output int) (items workflow.Items, ok bool)
	Sources(node string, run int) []*workflow.Source
}

// Value is the result of an expression. JSON is nil for undefined; Kind tells what JSON
// hides.
type Value struct {
	JSON json.RawMessage
	Kind string // "", "undefined", "NaN", "Infinity" or "-Infinity"
}

// Evaluator evaluates expressions. It is safe for concurrent use.
type Evaluator struct{}

// New returns an evaluator.
func New() (*Evaluator, error) { return &Evaluator{}, nil }

// Close frees the JavaScript engine.
func (e *Evaluator) Close() error { return nil }

// Evaluate evaluates one parameter value (with its leading "=") for one input
// item. Errors that n8n swallows give undefined; its own errors (an unknown or
// unexecuted node, a missing paired item, bad syntax …) are returned as *Error.
func (e *Evaluator) Evaluate(ctx context.Context, s *Scope, item int, text string) (Value, error) {
	return Value{}, errors.New("to be written")
}

// Resolve evaluates every expression in a parameter tree. undefined gives nil at the
// top and is left out inside objects.
func (e *Evaluator) Resolve(ctx context.Context, s *Scope, item int, raw json.RawMessage) (json.RawMessage, error) {
	return nil, errors.New("to be written")
}

// Simple reports whether every expression in a parameter tree is on the fast
// path, so that it can be evaluated without JavaScript.
func Simple(raw json.RawMessage) bool { return false }

// References is what the expressions (or code) of a node refer to.
type References struct {
	// Nodes whose outputs are read, sorted.
	Nodes []string
	// Lineage: paired items are followed ($('X').item, .pairedItem, itemMatching), so
	// the records between here and there are needed too (without their json).
	Lineage bool
	// AllRuns: a run index is given or computed, so every run of Nodes is needed.
	AllRuns bool
	// All: names are computed ($(name)), so everything that ran is needed.
	All bool
}

// FindReferences reads what a parameter tree refers to. code also looks into
// texts that are no expressions (the source of Code nodes).
func FindReferences(raw json.RawMessage, code bool) References { return References{All: true} }

// Error is an error that n8n raises from an expression.
type Error struct {
	Message, Description string
	// Type is n8n's cause: "paired_item_no_info", "no_execution_data" … or "".
	Type string
}

func (e *Error) Error() string { return e.Message }
