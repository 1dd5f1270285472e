// Package expression evaluates n8n expressions: parameter values that start
// with "=" and hold any number of {{ }} segments.
//
// Plain property paths ($json.a["b"], $('X').item.json.y, $input.first().json.z …)
// are evaluated in Go; everything else in a JavaScript engine with time and
// memory limits (package javascript). Both give the same results.
package expression

import (
	"encoding/json"
	"time"

	"github.com/reprise-engine/reprise/pkg/workflow"
)

// Scope is what the variables of an expression refer to, for one run of one
// node. What it refers to must not change once it was used: evaluators keep what
// they read, also for copies of a scope. Now should be set, and be the same in the copies.
type Scope struct {
	Execution struct {
		ID, Mode, ResumeURL, ResumeFormURL string
		// IdempotencyKey is the same for every attempt of this run's slice.
		IdempotencyKey string
		// CustomData is what earlier runs noted about the execution; nil is nothing.
		CustomData map[string]string
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
	// Ancestors are the names of the nodes from which Node can be reached, nil
	// when they are not known. They only tell a node that was not executed yet
	// from one that never feeds this one.
	Ancestors []string
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

// Error is an error that n8n raises from an expression.
type Error struct {
	Message     string `json:"message"`
	Description string `json:"description,omitempty"`
	// Name is n8n's class, "ExpressionError" when empty.
	Name string `json:"name,omitempty"`
	// Type is n8n's cause: "paired_item_no_info", "no_execution_data" … or "".
	Type string `json:"type,omitempty"`
}

func (e *Error) Error() string { return e.Message }
