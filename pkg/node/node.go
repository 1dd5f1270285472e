// Package node is the SDK of node types: what a type declares, what it is
// given for one run, and the registry that finds it. A tool has two faces:
// Execute runs it on an item, Describe shows it to a model.
//
// Node code has no access to Redis or NATS. What it needs from outside comes
// through its Call, so the same type runs in a worker, in the coordinator (when
// it is cheap and pure) and in a test.
package node

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sort"
	"time"

	"go.uber.org/zap"

	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/table"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// Type is a node type.
type Type struct {
	workflow.Spec
	// Waits: the type may return a Wait, so its runs are told where they can be resumed.
	Waits bool
	// Once reports whether a run of the node must not be repeated when its worker
	// vanished in the middle, unless the workflow says otherwise (onWorkerLost): it
	// does something outside that nobody can tell from its repetition. nil is never.
	Once func(*workflow.Node) bool
	// Inline types are cheap and have no side effects: the coordinator runs
	// them itself when all their expressions are plain paths.
	Inline bool
	// Apart reports whether a node of an Inline type is none, since what it is told to do is
	// not cheap; nil is never.
	Apart func(*workflow.Node) bool
	// History asks for the records of the node itself and of what fed it in
	// its earlier runs (loops).
	History bool
	// Support says which settings are honoured, as far as it is declared.
	Support Support
	// Execute runs the node. An error that is an *engine.NodeError fails the
	// node with it; any other error fails it with the error's text. Exactly
	// ctx.Err() after ctx ended means the attempt was stopped.
	Execute func(ctx context.Context, call *Call) (*Result, error)
	// Describe shows a tool node to the model; nil for other nodes. It gets a
	// call without inputs.
	Describe func(ctx context.Context, call *Call) (*ToolDescription, error)
}

// Result is what Execute returns.
type Result struct {
	engine.Result
	// Memory is appended to conversation memories when the result is committed,
	// once however often the node runs.
	Memory []MemoryAppend `json:"memory,omitempty"`
}

// MemoryAppend adds messages to the end of a conversation.
type MemoryAppend struct {
	Session  string            `json:"session"`
	Messages []json.RawMessage `json:"messages"`
}

// ToolDescription is a tool's face towards the model.
type ToolDescription struct {
	Name        string          `json:"name"` // legal and distinct names are the Agent's business
	Description string          `json:"description"`
	Schema      json.RawMessage `json:"schema"` // JSON schema of the arguments, an object
}

// Call is one run of a node: what it is given and what it may use. It is
// owned by the run.
type Call struct {
	Node      *workflow.Node
	Execution ExecutionInfo
	Workflow  WorkflowInfo
	RunIndex  int
	Attempt   int
	// IdempotencyKey is the same for every attempt of this run's slice.
	IdempotencyKey string
	// Inputs per main input, items stamped with their index.
	Inputs []workflow.Items
	Source []*workflow.Source
	// Rounds are the answered requests of this run, oldest first; empty on the
	// first call.
	Rounds []engine.Round
	// ToolArguments are the model's arguments when the node runs as a tool, else nil.
	ToolArguments json.RawMessage
	ToolCallID    string
	// Resumption is what ended the run's last wait, nil when it did not wait.
	Resumption *engine.Resumption
	// Context is what an earlier run of this node left in Result.Context.
	Context json.RawMessage
	// SubNodes are the nodes attached to this one, by connection type, in order,
	// each with its own sub-nodes.
	SubNodes map[string][]*Call
	// RunData gives the records of other nodes that the job brought along.
	RunData RunData
	// Type is the registered type of Node.
	Type *Type

	Services
}

// Services are what the surrounding process lends to a run.
type Services struct {
	Log        *zap.Logger // never nil
	Now        func() time.Time
	HTTP       *http.Client
	Parameters ParameterResolver
	// Credentials returns the secret data of a credential; workers only.
	Credentials func(ctx context.Context, credentialType string, ref workflow.CredentialRef) (map[string]any, error)
	// Files reads and makes the files of items; nil keeps them inside the items.
	Files *Files
	// LoadMemory returns the last n messages of a conversation, oldest first;
	// n <= 0 means all.
	LoadMemory func(ctx context.Context, session string, n int) ([]json.RawMessage, error)
	// Tables fulfils a request to the data tables; nil where there are none. A *table.Error says why it
	// cannot be fulfilled.
	Tables func(ctx context.Context, r *table.Request) (*table.Answer, error)
	// RunScript runs the code of a Code node. What it threw, and that it was stopped, is an
	// *engine.NodeError; the result then still has what was written to the console.
	RunScript func(ctx context.Context, call *Call, script Script) (*ScriptResult, error)
	// ObserveModel is called around a question to a language model, which is asked with the
	// context that it returns; nil observes nothing.
	ObserveModel func(ctx context.Context, call *ModelCall) (_ context.Context, end func())
}

// What Script.Item may be besides the index of an item.
const (
	// AllItems runs a script once, with all items.
	AllItems = -1
	// EachItem runs a script on every item of the first input, one after the other.
	EachItem = -2
)

// Script is code to run with the globals of a Code node.
type Script struct {
	Code string
	// Language is "" for JavaScript or "python".
	Language string
	// Item is the index of $json / $input.item, AllItems or EachItem.
	Item int
	// GoOn: with EachItem, what the code throws does not keep it from the next item.
	GoOn bool
	// Old is "function" or "functionItem" for the nodes that were there before Code nodes,
	// whose code finds its items in another form.
	Old string
	// Globals are extra variables by name, as JSON (toolCode's query).
	Globals map[string]json.RawMessage
	// Closed: the code, which is the node's own, has nothing but Globals: no data of the execution and
	// no helpers.
	Closed bool
	// Timeout ends the script; 0 is the process's default.
	Timeout time.Duration
}

// ScriptResult is what a script returned, as JSON ("" for undefined), and what it
// wrote to the console.
type ScriptResult struct {
	Value json.RawMessage
	// Type is JavaScript's typeof of the returned value, "array" and "null" told apart.
	Type string
	// Binary are the files of the item after an old functionItem, as JSON; nil is none.
	Binary json.RawMessage
	// Each are the results of EachItem in the order of the items, with Err for what was
	// thrown. It is shorter when the code threw and was not to go on.
	Each []ScriptResult
	Err  *engine.NodeError
	Logs []string
}

// ParameterResolver evaluates the expressions in a node's parameters.
type ParameterResolver interface {
	// Resolve returns raw (a parameter, possibly a tree) with every expression
	// in it evaluated for that input item. undefined gives nil at the top and is left out inside.
	Resolve(ctx context.Context, call *Call, item int, raw json.RawMessage) (json.RawMessage, error)
}

// RunData is read access to the run data of an execution.
type RunData interface {
	// Runs is the number of runs of a node; 0 when it was not executed.
	Runs(node string) int
	// Items of one main output of one run; ok is false when there is no such run.
	Items(node string, run, output int) (items workflow.Items, ok bool)
	// Sources of one run, per main input.
	Sources(node string, run int) []*workflow.Source
}

// ExecutionInfo is what node code may know about its execution.
type ExecutionInfo struct {
	ID   engine.ExecutionID
	Mode string
	// ResumeURL is called to end a webhook wait of the execution ($execution.resumeUrl);
	// ApprovalURL shows and decides the question that this slice will ask. Both are ""
	// when the coordinators have no public URL or the node cannot use them.
	ResumeURL, ApprovalURL string
}

// WorkflowInfo is what node code may know about its workflow.
type WorkflowInfo struct {
	ID       string
	Name     string
	Active   bool
	Timezone string
	// Nodes by name that expressions may refer to ($('X').params).
	Nodes map[string]*workflow.Node
}

// Registry finds types by name and version. The zero value is empty.
type Registry struct {
	types map[string][]*Type
}

// Register adds types; it panics when a name and version is taken, which is a mistake
// of the program.
func (r *Registry) Register(types ...*Type) {
	if r.types == nil {
		r.types = map[string][]*Type{}
	}
	for _, t := range types {
		for _, other := range r.types[t.Type] {
			for _, v := range other.Versions {
				for _, w := range t.Versions {
					if v == w {
						panic(fmt.Sprintf("node: %s version %v registered twice", t.Type, v))
					}
				}
			}
		}
		r.types[t.Type] = append(r.types[t.Type], t)
	}
}

// Find returns the type that serves a name and version.
func (r *Registry) Find(name string, version float64) (*Type, bool) {
	for _, t := range r.types[name] {
		for _, v := range t.Versions {
			if v == version {
				return t, true
			}
		}
	}
	return nil, false
}

// Types are the registered types of a name: they share its versions among them.
func (r *Registry) Types(name string) []*Type { return r.types[name] }

// Lookup implements workflow.Catalog.
func (r *Registry) Lookup(name string, version float64) (*workflow.Spec, bool) {
	if t, ok := r.Find(name, version); ok {
		return &t.Spec, true
	}
	if all := r.types[name]; len(all) > 0 {
		return &all[0].Spec, false
	}
	return nil, false
}

// Names lists the registered type names, sorted.
func (r *Registry) Names() []string {
	names := make([]string, 0, len(r.types))
	for name := range r.types {
		names = append(names, name)
	}
	sort.Strings(names)
	return names
}
