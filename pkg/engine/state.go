package engine

import (
	"encoding/json"

	"github.com/reprise-engine/reprise/pkg/workflow"
)

// State is one execution between two events. It is owned by one goroutine at a
// time. Only Apply changes it.
type State struct {
	Meta Meta
	// Begin of an execution that waits for its turn (StatusNew), else nil.
	Begin *Started
	// Stack in stack order: the last entry is on top (greatest Seq).
	Stack []*Entry
	// Run is the run data: records by node, indexed by run. A nil record is a
	// run index given to a job that is still in flight.
	Run map[string][]*Record
	// Jobs in flight (also those that wait for a retry), by id.
	Jobs map[JobID]*OpenJob
	// Rounds of requesters that have not finished, oldest first.
	Rounds map[RunRef][]*OpenRound
	// Joins are partly filled inputs of multi-input nodes, by node, oldest first.
	Joins map[string][]*Join
	// Parked runs, by token, and what is known of the children they wait for, by
	// token and index.
	Parked   map[string]*Parked
	Children map[string]map[int]*ChildResult
	// Timers that are set: id to due time in milliseconds.
	Timers map[string]int64
	// Context is what nodes keep between their runs (loop state).
	Context map[string]json.RawMessage

	// resumes finds the stack entry of a requester that waits, so that a tool's
	// input does not need a search; parked finds the wait of a run.
	resumes map[RunRef]*Entry
	parked  map[RunRef]*Parked
}

// Meta are the scalar facts of an execution.
type Meta struct {
	ID           ExecutionID `json:"id"`
	WorkflowHash string      `json:"workflowHash"`
	WorkflowID   string      `json:"workflowId,omitempty"`
	WorkflowName string      `json:"workflowName,omitempty"`
	Mode         string      `json:"mode"` // manual, trigger, chat …
	// Parent of an execution that another one started; Root is the first of that line
	// and Depth how many are above this one.
	Parent *Parent     `json:"parent,omitempty"`
	Root   ExecutionID `json:"root,omitempty"`
	Depth  int         `json:"depth,omitempty"`
	// RetryOf is the execution that this one repeats.
	RetryOf ExecutionID `json:"retryOf,omitempty"`
	// Priority ("high", "low"; "" is normal) and Tenant of its jobs among those of others.
	Priority string `json:"priority,omitempty"`
	Tenant   string `json:"tenant,omitempty"`
	// TraceParent is the W3C trace context of who asked for the execution.
	TraceParent string `json:"traceparent,omitempty"`
	// Destination of a run up to a node.
	Destination *Destination `json:"destination,omitempty"`
	Status      Status       `json:"status"`
	StartedAt   int64        `json:"startedAt,omitempty"` // milliseconds since 1970
	StoppedAt   int64        `json:"stoppedAt,omitempty"`
	LastNode    string       `json:"lastNode,omitempty"` // n8n's lastNodeExecuted
	// Error of an execution that failed. With StatusRunning it means that the
	// execution is stopping: nothing new is dispatched, and it ends when the
	// jobs in flight have answered, so that no effect goes unrecorded.
	Error     *NodeError `json:"error,omitempty"`
	NextIndex int        `json:"nextIndex"` // next executionIndex
	NextJob   int        `json:"nextJob"`   // number of the next job
	NextTop   int64      `json:"nextTop"`   // Seq of the next entry pushed on top
	NextLast  int64      `json:"nextLast"`  // Seq of the next entry appended below (negative)
	NextJoin  int        `json:"nextJoin"`
	// LastWebhook is the number of the last wait for a webhook, -1 before the first.
	LastWebhook int `json:"lastWebhook"`
	// TimeLeft of the execution's time limit while it waits for people, in milliseconds.
	TimeLeft int64 `json:"timeLeft,omitempty"`
	// RunBytes is the length of all records written so far.
	RunBytes int64 `json:"runBytes,omitempty"`
	// Orphans are children to be cancelled that nobody waits for any more.
	Orphans []ExecutionID `json:"orphans,omitempty"`
	// Flags are the numbered behaviours this execution was started with. None
	// exists yet. A change of the engine that could alter an execution in flight
	// gets the next number, which is added to knownFlags, is written into Meta by whoever starts executions,
	// and asks for its flag, so that an upgrade never changes what is running. A program that does
	// not know one of them leaves the execution alone: see Format.
	Flags []int `json:"flags,omitempty"`
}

// OpenJob is a job in flight, or one whose retry waits for its timer.
type OpenJob struct {
	Job
	Progress
	// RetryAt is when the next attempt is to be dispatched; 0 when in flight.
	RetryAt int64 `json:"retryAt,omitempty"`
	// GivenAgain counts how often the job was given to another worker.
	GivenAgain int `json:"givenAgain,omitempty"`
	// GivenTo names the delivery that was last allowed to run the job.
	GivenTo string `json:"givenTo,omitempty"`
	// SubRuns and Logs of earlier attempts of this slice.
	SubRuns []SubRunRef `json:"subRuns,omitempty"`
	Logs    []string    `json:"logs,omitempty"`
}

// OpenRound is one request of a requester's run and where its answers are.
type OpenRound struct {
	Caller   RunRef          `json:"caller"`
	Index    int             `json:"index"`
	Metadata json.RawMessage `json:"metadata,omitempty"`
	Calls    []Call          `json:"calls"`
	// SubRuns, Logs and Hints of the slice that made the request.
	SubRuns []SubRunRef `json:"subRuns,omitempty"`
	Logs    []string    `json:"logs,omitempty"`
	Hints   []Hint      `json:"hints,omitempty"`
	// Open is the number of calls without an answer: those whose record is
	// still running. It is counted again on Restore, so that an answer does not
	// store the round a second time.
	Open int `json:"-"`
}

// Call is one action of a round and the run reserved for it. The arguments
// are the action's Input.
type Call struct {
	Action Action `json:"action"`
	Run    int    `json:"run"`
}

// Join collects the inputs of a node with several of them.
type Join struct {
	Seq    int                `json:"seq"`
	Node   string             `json:"node"`
	Inputs []Ref              `json:"inputs"`
	Source []*workflow.Source `json:"source"`
}
