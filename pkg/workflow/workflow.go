package workflow

import "encoding/json"

// Connection types. Main carries items; the others attach a sub-node (model,
// memory, tool, parser) to the node that uses it, from the sub-node to its user.
const (
	Main          = "main"
	LanguageModel = "ai_languageModel"
	Memory        = "ai_memory"
	Tool          = "ai_tool"
	OutputParser  = "ai_outputParser"
)

// OnError says what a node's failure does to the execution.
type OnError string

// The values of OnError. Unset means stop for ordinary nodes and continue for
// tools.
const (
	OnErrorUnset    OnError = ""
	OnErrorStop     OnError = "stopWorkflow"
	OnErrorContinue OnError = "continueRegularOutput"
	OnErrorOutput   OnError = "continueErrorOutput"
)

// Node is one node of the document. Parameters are kept as written; values
// that are strings starting with "=" are expressions.
type Node struct {
	ID               string                   `json:"id,omitempty"`
	Name             string                   `json:"name"`
	Type             string                   `json:"type"`
	TypeVersion      float64                  `json:"typeVersion"`
	Position         [2]float64               `json:"position"`
	Parameters       json.RawMessage          `json:"parameters"`
	Credentials      map[string]CredentialRef `json:"credentials,omitempty"`
	Disabled         bool                     `json:"disabled,omitempty"`
	RetryOnFail      bool                     `json:"retryOnFail,omitempty"`
	MaxTries         int                      `json:"maxTries,omitempty"`
	WaitBetweenTries int                      `json:"waitBetweenTries,omitempty"` // milliseconds
	AlwaysOutputData bool                     `json:"alwaysOutputData,omitempty"`
	ExecuteOnce      bool                     `json:"executeOnce,omitempty"`
	OnError          OnError                  `json:"onError,omitempty"`
	ContinueOnFail   bool                     `json:"continueOnFail,omitempty"` // older spelling of continueRegularOutput
	WebhookID        string                   `json:"webhookId,omitempty"`
	// Timeout in milliseconds ends an attempt that takes longer; 0 is none.
	// Pool is the worker pool the node runs in; "" is "default". Both are
	// reprise's own, other programs ignore them.
	Timeout int    `json:"timeout,omitempty"`
	Pool    string `json:"pool,omitempty"`
	// OnWorkerLost says what becomes of a run whose worker vanished; it is
	// reprise's own too. "" is the workflow's setting, or else the type's default.
	OnWorkerLost OnWorkerLost `json:"onWorkerLost,omitempty"`
	// RateLimit of the node's jobs over all executions of the workflow, in ParseRate's
	// form; reprise's own too.
	RateLimit string `json:"rateLimit,omitempty"`
}

// Continues reports whether an execution goes on after an error of the node, so that the node
// deals with failures item by item.
func (n *Node) Continues() bool {
	return n.ContinueOnFail || n.OnError == OnErrorContinue || n.OnError == OnErrorOutput
}

// OnWorkerLost says what becomes of a run whose worker vanished in the middle.
type OnWorkerLost string

// The values of OnWorkerLost.
const (
	// WorkerLostRepeat runs the node again, with the same idempotency key.
	WorkerLostRepeat OnWorkerLost = "repeat"
	// WorkerLostGiveUp does not: the run fails, its outcome is unknown.
	WorkerLostGiveUp OnWorkerLost = "giveUp"
)

func (o OnWorkerLost) known() bool {
	return o == "" || o == WorkerLostRepeat || o == WorkerLostGiveUp
}

// CredentialRef names a credential; its secret is known to workers only.
type CredentialRef struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

// Target is the receiving end of a connection.
type Target struct {
	Node  string `json:"node"`
	Type  string `json:"type"`
	Index int    `json:"index"`
}

// Origin is the sending end of a connection, seen from its target.
type Origin struct {
	Node   string
	Output int
}

// Settings are the workflow's settings that the engine knows.
type Settings struct {
	ExecutionOrder   string  `json:"executionOrder,omitempty"`   // "v1", or anything else for v0
	ToolExecution    string  `json:"toolExecution,omitempty"`    // "sequential" runs the tools of a round one by one
	ErrorWorkflow    string  `json:"errorWorkflow,omitempty"`    // id of the workflow started when this one fails
	Timezone         string  `json:"timezone,omitempty"`         // IANA name
	ExecutionTimeout float64 `json:"executionTimeout,omitempty"` // seconds; 0 or less is none
	MaxRunsPerNode   float64 `json:"maxRunsPerNode,omitempty"`   // bounds loops; 0 or less is the engine's own limit
	// OnWorkerLost of the nodes that say nothing themselves.
	OnWorkerLost OnWorkerLost `json:"onWorkerLost,omitempty"`
	// RateLimit of new executions (ParseRate), and Priority of their jobs where the
	// submission names none; both are reprise's own.
	RateLimit string `json:"rateLimit,omitempty"`
	Priority  string `json:"priority,omitempty"`
	// MaxConcurrency bounds the unfinished executions; 0 leaves it to the coordinators.
	MaxConcurrency float64 `json:"maxConcurrency,omitempty"`
}

// Spec is what the document and the engine must know about a node type; the
// node SDK embeds it in its description of a type.
type Spec struct {
	// Type is the full name in the file ("n8n-nodes-base.set").
	Type string
	// Versions lists the typeVersions that are implemented.
	Versions []float64
	// Trigger nodes start an execution; their input is their output.
	Trigger bool
	// Polls is a trigger that looks for its input itself: it is run like any other node
	// when the execution was begun without input.
	Polls bool
	// ToolNode may be wired to an Agent as a tool.
	ToolNode bool
	// SubNode is never run by itself (models, memories, parsers).
	SubNode bool
	// SubNodes are the connection types the node needs at least one of, with a
	// person's word for it ("Chat Model").
	SubNodes map[string]string
	// Accepts lists the connection types that may be attached besides those of
	// SubNodes. A type with neither takes no sub-nodes.
	Accepts []string
	// Outputs gives the number of main outputs of a node without its error
	// output. nil means one.
	Outputs func(*Node) int
	// RequiredInputs are the main inputs that must have data before a node with
	// several inputs may run although others got none; nil means none of them,
	// as many as it has inputs means it never runs without all.
	RequiredInputs func(*Node) []int
}

// OutputCount is the number of regular main outputs of n.
func (s *Spec) OutputCount(n *Node) int {
	if s == nil || s.Outputs == nil {
		return 1
	}
	return s.Outputs(n)
}

// Catalog finds node types. Lookup with a known type and an unknown version
// returns the Spec and false.
type Catalog interface {
	Lookup(nodeType string, version float64) (spec *Spec, ok bool)
}

// Workflow is a parsed document. Its exported fields must not be changed.
type Workflow struct {
	ID     string
	Name   string
	Active bool
	// Nodes in file order. Notes are the sticky notes, which are no nodes.
	Nodes    []*Node
	Notes    []*Node
	Settings Settings
	PinData  map[string]Items
	// Raw is the document as it was given, with its wrapper and without byte
	// order mark. Hash is a SHA-256 in hex, under which the document is stored;
	// it does not depend on spacing or on how a message escaped the document.
	Raw  json.RawMessage
	Hash string

	byName map[string]*Node
	// out[source][type][output] and in[target][type][input], in file order.
	out map[string]map[string][][]Target
	in  map[string]map[string][][]Origin
	// problems that Parse found and forgave.
	problems Problems
}
