package engine

import (
	"encoding/json"

	"github.com/reprise-engine/reprise/pkg/workflow"
)

// ExecutionID names one run of a workflow. It is chosen by the client (then it
// is the submission's idempotency key) or is a UUID; it holds only letters,
// digits, "-" and "_", so that it can be a NATS subject token.
type ExecutionID string

// JobID names one attempt of one slice of a node run: "<execution>_<n>". n
// counts the jobs of the execution, so replaying events gives the same ids.
type JobID string

// Status is the status of an execution or of a run record, in n8n's words.
type Status string

// The statuses. New is stored and not begun: it waits for its turn.
const (
	StatusNew      Status = "new"
	StatusRunning  Status = "running"
	StatusSuccess  Status = "success"
	StatusError    Status = "error"
	StatusWaiting  Status = "waiting"
	StatusCanceled Status = "canceled"
)

// Finished reports whether an execution of this status is over for good.
func (s Status) Finished() bool {
	return s == StatusSuccess || s == StatusError || s == StatusCanceled
}

// Reason is the machine-readable cause of a failure.
type Reason string

// The reasons. An ordinary error of a node's own code has none.
const (
	ReasonTimeout      Reason = "timeout"
	ReasonWorkerLost   Reason = "worker_lost"   // the worker vanished and the node may not be repeated, or was repeated too often
	ReasonBadArguments Reason = "bad_arguments" // a tool's arguments do not fit its schema
	ReasonUnknownTool  Reason = "unknown_tool"
	ReasonTooLarge     Reason = "too_large"
	ReasonCanceled     Reason = "canceled"
	ReasonModel        Reason = "model_error"
	ReasonExpression   Reason = "expression_error"
	ReasonBadRequest   Reason = "bad_engine_request"
	ReasonTooManyRuns  Reason = "too_many_runs" // a node ran more often than the limit allows
	ReasonTooDeep      Reason = "too_deep"      // executions started one another deeper than the limit allows
)

// NodeError is a node's failure: data of the execution, not a Go error. It
// implements error so that node code can return one.
type NodeError struct {
	Message     string          `json:"message"`
	Description string          `json:"description,omitempty"`
	Name        string          `json:"name,omitempty"` // n8n's class: NodeOperationError, NodeApiError …
	Reason      Reason          `json:"reason,omitempty"`
	HTTPCode    string          `json:"httpCode,omitempty"`
	ItemIndex   *int            `json:"itemIndex,omitempty"`
	Node        string          `json:"nodeName,omitempty"`
	Context     json.RawMessage `json:"context,omitempty"`
	// NotRetryable failures are final whatever the node's retry settings say.
	NotRetryable bool `json:"notRetryable,omitempty"`
}

func (e *NodeError) Error() string { return e.Message }

// Record is one run of a node in the run data (n8n's ITaskData).
type Record struct {
	StartTime      int64              `json:"startTime"`     // milliseconds since 1970
	ExecutionTime  int64              `json:"executionTime"` // milliseconds
	ExecutionIndex int                `json:"executionIndex"`
	Status         Status             `json:"executionStatus,omitempty"`
	Source         []*workflow.Source `json:"source"`
	// Data by connection type and output: "main", or "ai_tool" for a node that
	// ran as a tool, or a sub-node's type.
	Data          map[string][]workflow.Items `json:"data,omitempty"`
	InputOverride map[string][]workflow.Items `json:"inputOverride,omitempty"`
	Error         *NodeError                  `json:"error,omitempty"`
	Metadata      *RecordMetadata             `json:"metadata,omitempty"`
	Hints         []Hint                      `json:"hints,omitempty"`
	Logs          []string                    `json:"logs,omitempty"`     // what node code wrote to the console
	Attempts      int                         `json:"attempts,omitempty"` // when more than one was needed
	Worker        string                      `json:"worker,omitempty"`   // who ran the last attempt
}

// Hint is a remark on a run that is not an error.
type Hint struct {
	Message string `json:"message"`
}

// RecordMetadata is the part of n8n's ITaskMetadata that is produced here.
type RecordMetadata struct {
	NodeWasResumed           bool             `json:"nodeWasResumed,omitempty"`
	PreserveSourceOverwrite  bool             `json:"preserveSourceOverwrite,omitempty"`
	PreservedSourceOverwrite *workflow.Source `json:"preservedSourceOverwrite,omitempty"`
	SubRun                   []SubRunRef      `json:"subRun,omitempty"`
	// CallID is the model's id of the tool call that this run answers.
	CallID string `json:"toolCallId,omitempty"`
	// Round of the requester's tool calls this run belongs to, from 0.
	Round *int `json:"round,omitempty"`
	// Rounds is the number of requests this run made.
	Rounds int `json:"rounds,omitempty"`
	// Wait is the token of the run's last wait; Outcome how its question was decided,
	// and Decision by whom.
	Wait     string    `json:"wait,omitempty"`
	Outcome  Outcome   `json:"outcome,omitempty"`
	Decision *Decision `json:"decision,omitempty"`
	// SubExecution is the execution that the run started when it was one (the items
	// name theirs when there were several), SubExecutionsCount how many there were.
	SubExecution       *ExecutionRef `json:"subExecution,omitempty"`
	SubExecutionsCount int           `json:"subExecutionsCount,omitempty"`
	// Response is the answer that the run gave to the HTTP call which began the execution.
	Response *WebhookResponse `json:"response,omitempty"`
	// CustomData is what the run noted about the execution, see State.CustomData.
	CustomData map[string]string `json:"customData,omitempty"`
	// ParentExecution is in the record of the node an execution began with.
	ParentExecution *ExecutionRef `json:"parentExecution,omitempty"`
}

// ExecutionRef names an execution in run data.
type ExecutionRef struct {
	ExecutionID ExecutionID `json:"executionId"`
	WorkflowID  string      `json:"workflowId,omitempty"`
}

// SubRunRef points to the record of a sub-node used by a run.
type SubRunRef struct {
	Node     string `json:"node"`
	RunIndex int    `json:"runIndex"`
}

// Action asks for one run of a tool node (n8n's ExecuteNodeAction).
type Action struct {
	ActionType string          `json:"actionType"` // always "ExecutionNodeAction"
	NodeName   string          `json:"nodeName"`
	Input      json.RawMessage `json:"input"` // the arguments, an object, exactly as the model gave them
	Type       string          `json:"type"`  // "ai_tool"
	ID         string          `json:"id"`    // the model's call id
	Metadata   ActionMetadata  `json:"metadata"`
	// Error, when set, is the answer: the record is reserved and closed with it
	// and the tool is not run (arguments that break the tool's schema).
	Error *NodeError `json:"error,omitempty"`
}

// ActionMetadata goes with an action: ItemIndex is read by the engine, the rest
// comes back unchanged.
type ActionMetadata struct {
	ItemIndex int    `json:"itemIndex"`
	ToolName  string `json:"toolName,omitempty"`
	// Approval is the run of the gate that allows this call: an approved question of
	// the same requester about the same call id and arguments. A tool that is
	// connected through a gate runs only with it, and once.
	Approval *RunRef         `json:"approval,omitempty"`
	Extra    json.RawMessage `json:"extra,omitempty"`
}

// Request is a node's answer "run these tools, then call me again" (R1).
// Metadata is opaque and comes back with the answers.
type Request struct {
	Actions  []Action        `json:"actions"`
	Metadata json.RawMessage `json:"metadata,omitempty"`
}

// Round is one answered Request. A resumed node receives all rounds of its run
// so far, oldest first; each is stored once.
type Round struct {
	Metadata json.RawMessage `json:"metadata,omitempty"`
	Results  []ActionResult  `json:"results"` // in the order asked
}

// ActionResult is the answer to one action: the record of the tool's run.
type ActionResult struct {
	Action   Action  `json:"action"`
	RunIndex int     `json:"runIndex"`
	Record   *Record `json:"record"`
}

// SubRun is one use of a sub-node (a model or memory call) inside a node's
// run; it becomes a record of that sub-node.
type SubRun struct {
	Node      string           `json:"node"`
	Type      string           `json:"type"` // connection type, "ai_languageModel"
	StartTime int64            `json:"startTime"`
	Duration  int64            `json:"duration"` // milliseconds
	Input     []workflow.Items `json:"input,omitempty"`
	Output    []workflow.Items `json:"output,omitempty"`
	Error     *NodeError       `json:"error,omitempty"`
}

// Result is what one slice of a node's run produced. Exactly one of Outputs,
// Request, Wait and Error counts, in the order Error, Request, Wait, Outputs; all
// absent is n8n's null output: the branch ends silently.
type Result struct {
	// Outputs by main output index. A node returns as many as its Spec declares
	// (fewer is read as null for the rest).
	Outputs []workflow.Items `json:"outputs,omitempty"`
	Request *Request         `json:"request,omitempty"`
	Wait    *Wait            `json:"wait,omitempty"`
	Error   *NodeError       `json:"error,omitempty"`
	SubRuns []SubRun         `json:"subRuns,omitempty"`
	// Context replaces the node's stored context (loop state) when not nil.
	Context json.RawMessage `json:"context,omitempty"`
	Hints   []Hint          `json:"hints,omitempty"`
	Logs    []string        `json:"logs,omitempty"`
	// ExecutionStatusError marks the record as error although there are Outputs.
	RecordError *NodeError `json:"recordError,omitempty"`
	Worker      string     `json:"worker,omitempty"`
	// Response answers whoever began the execution with an HTTP call. It is kept in the
	// record, so that the answer outlives every process; of several the first counts.
	Response *WebhookResponse `json:"response,omitempty"`
	// CustomData are keys and values about the execution. They count when the run ends with this result.
	CustomData map[string]string `json:"customData,omitempty"`
}

// Ref points to data that is already in the state: the items of one output of
// a run record, or the execution's own input.
type Ref struct {
	Node   string `json:"node,omitempty"`
	Run    int    `json:"run,omitempty"`
	Output int    `json:"output,omitempty"`
	// Literal items belong to no record: the trigger's input, or the empty item
	// that the v0 order forces into an input.
	Literal workflow.Items `json:"literal,omitempty"`
	// Null is "no data for this input".
	Null bool `json:"null,omitempty"`
	// Given tells an input that the caller gave from the empty item that stands
	// in for none; it goes before pinned data.
	Given bool `json:"given,omitempty"`
	// Empty is "data, but no items".
	Empty bool `json:"empty,omitempty"`
}

// EntryKind tells the three kinds of stack entries apart.
type EntryKind string

// The kinds of entry.
const (
	EntryMain   EntryKind = ""       // a node of the main flow
	EntryTool   EntryKind = "tool"   // a tool call of an open round
	EntryResume EntryKind = "resume" // a requester that waits for its round's answers
)

// RunRef names one run of a node.
type RunRef struct {
	Node string `json:"node"`
	Run  int    `json:"run"`
}

// Entry is one element of an execution's stack. It names its node and refers
// to its data; nothing about a run is kept on the node.
type Entry struct {
	// Seq orders the stack: the entry with the greatest Seq is on top. It is
	// also the entry's identity.
	Seq    int64              `json:"seq"`
	Node   string             `json:"node"`
	Kind   EntryKind          `json:"kind,omitempty"`
	Inputs []Ref              `json:"inputs,omitempty"` // per main input
	Source []*workflow.Source `json:"source"`
	// Run is the reserved run index, -1 until the entry is popped.
	Run int `json:"run"`
	// Caller, Round and Action say which call a tool entry answers.
	Caller *RunRef `json:"caller,omitempty"`
	Round  int     `json:"round,omitempty"`
	Action int     `json:"action,omitempty"`
	// Preserved is the lineage override handed down to tools (n8n's
	// preservedSourceOverwrite).
	Preserved *workflow.Source `json:"preserved,omitempty"`
	// Once keeps only the first item of each input (the node's executeOnce).
	Once bool `json:"once,omitempty"`
	// Progress of the run so far; nil until the run was announced.
	Progress *Progress `json:"progress,omitempty"`
	// Waits is how often the run was parked, Wait the token of the last time, and
	// Resumption what ended that wait (State.Resumption has all of it).
	Waits      int         `json:"waits,omitempty"`
	Wait       string      `json:"wait,omitempty"`
	Resumption *Resumption `json:"resumption,omitempty"`
	// Again is the wait for children that broke off with a failed execution; a retry
	// waits on for those that had not ended.
	Again *Wait `json:"again,omitempty"`
	// Key is the idempotency key of a slice that failed in the execution which this
	// one retries.
	Key string `json:"key,omitempty"`
}

// AsTool reports whether the entry is a tool call, also one that is itself a
// requester and was resumed.
func (e *Entry) AsTool() bool { return e.Caller != nil }

// RunRef names the run of the entry.
func (e *Entry) RunRef() RunRef { return RunRef{Node: e.Node, Run: e.Run} }

// Progress is what is known of a run that has begun and not ended. It has a
// constant size however many rounds the run takes (waits apart).
type Progress struct {
	// StartTime and ExecutionIndex of the run's record, fixed when the run was
	// announced.
	StartTime      int64 `json:"startTime"`
	ExecutionIndex int   `json:"executionIndex"`
	// Spent is how many milliseconds the earlier attempts and slices took.
	Spent int64 `json:"spent,omitempty"`
	// Retries is how many attempts were repeated.
	Retries int `json:"retries,omitempty"`
	// Earlier is what the slices before the last wait left for the record.
	Earlier *Earlier `json:"earlier,omitempty"`
}

// Job is one attempt of one slice of a node run, to be executed outside the
// engine. The caller resolves Entry.Inputs from the State.
type Job struct {
	ID    JobID `json:"id"`
	Entry Entry `json:"entry"`
	// Slice counts the calls of this run: 0 is the first, n is the call that
	// receives n answered rounds.
	Slice   int `json:"slice"`
	Attempt int `json:"attempt"` // from 1
	// IdempotencyKey is the same for all attempts of a slice.
	IdempotencyKey string `json:"idempotencyKey"`
	// DispatchedAt and Deadline in milliseconds since 1970; Deadline 0 is none.
	DispatchedAt int64 `json:"dispatchedAt"`
	Deadline     int64 `json:"deadline,omitempty"`
}

// Event is something that happened to an execution. Every event carries its
// time in milliseconds since 1970; the engine has no clock.
type Event interface{ isEvent() }

// Started begins an execution at node Start (empty: the engine chooses) with
// Input as the trigger's output (nil: one empty item).
type Started struct {
	At    int64
	Start string
	Input workflow.Items
	// Destination, when set, is the only node that the run is for: nodes that do
	// not lead to it are left out (n8n's destinationNode).
	Destination *Destination
	// Partial, when not nil, takes the place of Start and Input: what to begin with
	// in a run that reuses earlier run data (Machine.PlanPartial).
	Partial *Partial
}

// Enqueued stores an execution that has to wait for its turn; Begin is what Admitted
// starts it with.
type Enqueued struct {
	At    int64
	Begin Started
}

// Admitted starts an execution that waited for its turn.
type Admitted struct {
	At int64
	// From, when not nil, takes the place of Enqueued.Begin: the execution goes on where
	// that one broke off, as with Retried.
	From *State
}

// Destination is where a run ends.
type Destination struct {
	Node string `json:"nodeName"`
	// Exclusive leaves the node itself out.
	Exclusive bool `json:"exclusive,omitempty"`
}

// Partial is a run that begins in the middle, with run data of an earlier one.
type Partial struct {
	RunData map[string][]*Record // what is kept
	Entries []Entry              // to run, the first on top
	Joins   []Join               // inputs that have come already
}

// Retried begins an execution where a failed one broke off: with its run data,
// stack and rounds, the failed runs to be run again. From is not changed.
type Retried struct {
	At   int64
	From *State
}

// NodeFinished brings the result of a job. A result for a job that is not open
// changes nothing.
type NodeFinished struct {
	At     int64
	Job    JobID
	Result Result
}

// TimerFired says that a timer is due. One that is not set changes nothing.
type TimerFired struct {
	At    int64
	Timer string
}

// Resumed says that what a parked run waits for has happened: its webhook was
// called (Data) or its question decided (Decision). It changes nothing when the run
// is not parked (any more).
type Resumed struct {
	At       int64
	Token    string
	Data     json.RawMessage
	Decision *Decision
}

// ChildFinished brings the end of an execution that was started for a parked
// run, or for a detached one that it is stored. It changes nothing when the run is
// not parked or has this result.
type ChildFinished struct {
	At     int64
	Token  string
	Index  int
	Result ChildResult
}

// CancelRequested ends the execution for good.
type CancelRequested struct {
	At     int64
	Reason string // for the record, may be empty
}

// GivenAgain says that a worker may run a job that asked before it began: one that
// must not run twice, or one whose worker vanished. It is counted, so that a job
// which kills its workers ends. To names the delivery.
type GivenAgain struct {
	At  int64
	Job JobID
	To  string
}

// HandedBack says that a worker which stops gave a job back without a result: that
// does not count as a loss.
type HandedBack struct {
	At  int64
	Job JobID
}

// Held says that no worker can have a job before Until, as it waits for its turn: its node's
// timeout counts from then. Whoever holds it says so again when it is held for longer, or goes
// earlier. It changes nothing for a node without a timeout.
type Held struct {
	At    int64
	Job   JobID
	Until int64
}

// WorkerLost says that a job was given up: its worker vanished and the node
// may not be repeated, or was repeated too often.
type WorkerLost struct {
	At      int64
	Job     JobID
	Message string
}

func (Started) isEvent()         {}
func (NodeFinished) isEvent()    {}
func (TimerFired) isEvent()      {}
func (Enqueued) isEvent()        {}
func (Admitted) isEvent()        {}
func (Retried) isEvent()         {}
func (Resumed) isEvent()         {}
func (ChildFinished) isEvent()   {}
func (CancelRequested) isEvent() {}
func (GivenAgain) isEvent()      {}
func (HandedBack) isEvent()      {}
func (Held) isEvent()            {}
func (WorkerLost) isEvent()      {}

// Step is the effect of one event. The caller commits Changes and Timers
// first, then publishes Jobs and withdraws Dropped, then acknowledges the
// event. Live may be lost.
type Step struct {
	Changes []Change
	Timers  []TimerChange
	Jobs    []Job
	// Dropped are jobs that no longer count (cancel, timeout): workers are told,
	// their results will change nothing.
	Dropped []JobID
	// Children are to be started. Starting one again is harmless: it has an id of
	// its own.
	Children []ChildStart
	// Orphans are executions to be cancelled: nobody waits for them any more.
	Orphans []ExecutionID
	// Questions that were asked, or are over when At is 0; the ID is the token. They
	// are an index for people, written in the commit.
	Questions []TimerChange
	Live      []Live
	// Done: the execution is over; its keys may get their expiry.
	Done bool
	// Ignored: the event was late or repeated and changed nothing.
	Ignored bool
}

// Table is one of the four hashes an execution is stored in.
type Table string

// The tables. Fields of TableRun are "<run>:<node>", of TableStack the entry's
// Seq; TableOpen holds jobs in flight, rounds, partly filled inputs, timers and
// node contexts under "job:", "round:", "join:", "timer:" and "context:".
const (
	TableMeta  Table = "meta"
	TableStack Table = "stack"
	TableRun   Table = "run"
	TableOpen  Table = "open"
)

// Change sets one field of a table, or deletes it when Value is nil. A later
// change of a field replaces an earlier one.
type Change struct {
	Table Table
	Field string
	Value []byte
}

// TimerChange sets the timer ID to fire at At (milliseconds since 1970), or
// clears it when At is 0.
type TimerChange struct {
	ID string
	At int64
}

// LiveKind says what a Live notice reports.
type LiveKind string

// The notices, named after n8n's hooks.
const (
	LiveExecutionStarted  LiveKind = "workflowExecuteBefore"
	LiveNodeStarted       LiveKind = "nodeExecuteBefore"
	LiveNodeFinished      LiveKind = "nodeExecuteAfter"
	LiveExecutionFinished LiveKind = "workflowExecuteAfter" // also, with StatusWaiting, when all that is left waits
	LiveExecutionResumed  LiveKind = "workflowExecuteResume"
)

// Live is a notice for people who watch: what a node or the execution just did.
// The start of a sub-node's run is told when the run it serves ends a slice,
// with its own time.
type Live struct {
	Kind   LiveKind `json:"kind"`
	At     int64    `json:"at"`
	Node   string   `json:"node,omitempty"`
	Run    int      `json:"run,omitempty"`
	Type   string   `json:"type,omitempty"` // connection type the output is logged under
	Status Status   `json:"status,omitempty"`
	Error  string   `json:"error,omitempty"`
	// Stack is the stack after the notice's pop or push, top first, as people read it:
	// "Shout", or "AI Agent(resume: 2 results)".
	Stack []string `json:"stack"`
}
