package queue

import (
	"encoding/json"

	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/node"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// Version is the version of the messages below. A reader refuses a greater one.
const Version = 1

// Job is what a worker gets: one attempt of one slice of a node run, with all
// it needs. It is published on reprise.job.<pool>.<job id>.
type Job struct {
	Version        int                `json:"v"`
	ID             engine.JobID       `json:"id"`
	Execution      engine.ExecutionID `json:"execution"`
	Mode           string             `json:"mode,omitempty"`
	RunIndex       int                `json:"runIndex"`
	Slice          int                `json:"slice,omitempty"`
	Attempt        int                `json:"attempt"`
	IdempotencyKey string             `json:"idempotencyKey"`
	// Coordinator that dispatched the job and has its execution in memory.
	Coordinator string `json:"coordinator"`
	Pool        string `json:"pool,omitempty"`
	// DispatchedAt is when the job was committed, in milliseconds since 1970. A
	// worker that gets a message published much later than that, or one with
	// Confirm set (it may be published for the second time), asks before it
	// runs the job: it could be answered by now.
	DispatchedAt int64 `json:"dispatchedAt"`
	Confirm      bool  `json:"confirm,omitempty"`
	// Once: the node must not run twice. A worker asks (Redelivery) before it runs the
	// job, also when it was never delivered before.
	Once bool `json:"once,omitempty"`
	// Deadline in milliseconds since 1970; 0 is none.
	Deadline int64 `json:"deadline,omitempty"`
	// Plan is the JSON of a Plan: what does not change from run to run. PlanHash names
	// its content, so that a reader may keep the decoded form.
	Plan     json.RawMessage    `json:"plan"`
	PlanHash string             `json:"planHash"`
	Inputs   []workflow.Items   `json:"inputs"`
	Source   []*workflow.Source `json:"source,omitempty"`
	// ToolArguments and ToolCallID of a tool run.
	ToolArguments json.RawMessage `json:"toolArguments,omitempty"`
	ToolCallID    string          `json:"toolCallId,omitempty"`
	// ResumeURL ($execution.resumeUrl), ResumeFormURL and ApprovalURL, for nodes that can use them.
	ResumeURL     string `json:"resumeUrl,omitempty"`
	ResumeFormURL string `json:"resumeFormUrl,omitempty"`
	ApprovalURL   string `json:"approvalUrl,omitempty"`
	// CustomData of the execution ($execution.customData), for nodes that read it.
	CustomData map[string]string `json:"customData,omitempty"`
	// Resumption of a run that waited.
	Resumption *engine.Resumption `json:"resumption,omitempty"`
	// Rounds answered so far, for a resumed requester.
	Rounds  []engine.Round  `json:"rounds,omitempty"`
	Context json.RawMessage `json:"context,omitempty"`
	// RunData of the nodes that expressions refer to: node, run index.
	RunData map[string]map[int]JobRecord `json:"runData,omitempty"`
	// Runs is the true number of runs of the nodes in RunData.
	Runs map[string]int `json:"runs,omitempty"`
	// TraceParent is the W3C trace context of the execution.
	TraceParent string `json:"traceparent,omitempty"`
	// Token proves to coordinators that its bearer was given this job; "" when they do not
	// ask for proof.
	Token string `json:"token,omitempty"`
}

// Plan is the part of a job that is the same for every run of a node of one
// workflow document.
type Plan struct {
	WorkflowID   string `json:"workflowId,omitempty"`
	WorkflowName string `json:"workflowName,omitempty"`
	Active       bool   `json:"active,omitempty"`
	Timezone     string `json:"timezone,omitempty"`
	// Node is the name of the node to run; Nodes holds it, its sub-nodes (all
	// levels) and the nodes its expressions name.
	Node  string           `json:"node"`
	Nodes []*workflow.Node `json:"nodes"`
	// SubNodes of the nodes: node name, connection type, names in order.
	SubNodes map[string]map[string][]string `json:"subNodes,omitempty"`
}

// JobRecord is a run record as far as expressions need it. Outputs of a record
// that is only walked through for lineage have items without json.
type JobRecord struct {
	Source  []*workflow.Source `json:"source,omitempty"`
	Outputs []workflow.Items   `json:"outputs,omitempty"`
}

// Result is a worker's answer to a job, sent as a request to
// reprise.result.<coordinator>, or to reprise.result when that one is gone.
type Result struct {
	Version   int                `json:"v"`
	Job       engine.JobID       `json:"job"`
	Execution engine.ExecutionID `json:"execution"`
	// Ack is the reply subject of the job's JetStream message; the coordinator
	// acknowledges it on the worker's behalf once the result is committed.
	Ack    string      `json:"ack"`
	Result node.Result `json:"result"`
	// HandedBack: the worker stops and has no result. It gives the job back (-NAK); to be
	// told keeps this from counting as a loss.
	HandedBack bool `json:"handedBack,omitempty"`
	// Token is the job's.
	Token string `json:"token,omitempty"`
}

// Reply is the answer to a Result or a Redelivery question.
type Reply struct {
	// Verdict: "ok" (committed), "run", "drop", or "error" with Error set and
	// worth another try.
	Verdict string `json:"verdict"`
	Error   string `json:"error,omitempty"`
}

// The verdicts of a Reply.
const (
	VerdictOK    = "ok"
	VerdictRun   = "run"
	VerdictDrop  = "drop"
	VerdictError = "error"
)

// Redelivery asks what to do with a job that was delivered before, or that must
// not run twice: run it or drop it. Sent as a request to reprise.redelivery.
type Redelivery struct {
	Version    int                `json:"v"`
	Job        engine.JobID       `json:"job"`
	Execution  engine.ExecutionID `json:"execution"`
	Deliveries int                `json:"deliveries"`
	// Asker names this delivery of the job to this worker, so that a question which
	// is repeated because its answer was lost gets the same answer.
	Asker string `json:"asker,omitempty"`
	// Running: the asker runs the job already, for long, and only asks whether it still
	// counts. Nothing is noted.
	Running bool `json:"running,omitempty"`
	// Token is the job's.
	Token string `json:"token,omitempty"`
}

// Submission asks for a new execution: a request to the micro service's submit
// endpoint, or a message in the stream REPRISE_SUBMIT.
type Submission struct {
	Version int `json:"v"`
	// ID is the execution id and idempotency key; empty lets the coordinator choose
	// one (not for durable submissions).
	ID engine.ExecutionID `json:"id,omitempty"`
	// Workflow document, or WorkflowHash of one that is stored.
	Workflow     json.RawMessage `json:"workflow,omitempty"`
	WorkflowHash string          `json:"workflowHash,omitempty"`
	// WorkflowID names a workflow that was put into the store, in its latest form.
	WorkflowID string `json:"workflowId,omitempty"`
	Start      string `json:"start,omitempty"`
	// Priority is "high", "normal" or "low"; "" is the workflow's own. Tenant is on whose
	// behalf it runs: waiting jobs of different tenants take turns.
	Priority string         `json:"priority,omitempty"`
	Tenant   string         `json:"tenant,omitempty"`
	Mode     string         `json:"mode,omitempty"`
	Input    workflow.Items `json:"input,omitempty"`
	// Destination runs the workflow up to a node only. With RunData of an earlier run
	// ({"node": [record …]}) what it has is not run again.
	Destination *engine.Destination         `json:"destination,omitempty"`
	RunData     map[string][]*engine.Record `json:"runData,omitempty"`
	// TraceParent is the W3C trace context of whoever submits: the execution's trace links to it.
	// The header traceparent of the message says the same.
	TraceParent string `json:"traceparent,omitempty"`
}

// Problem is an error answer of the API. Codes are documented in docs/protocol.md.
type Problem struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	// Details lists the single problems of an invalid workflow.
	Details []string `json:"details,omitempty"`
	// RetryAfter, of a problem that may be over then, is in milliseconds; 0 says nothing.
	RetryAfter int64 `json:"retryAfter,omitempty"`
}

func (p *Problem) Error() string { return p.Message }

// Control is a message to all workers: stop the jobs named.
type Control struct {
	Drop []engine.JobID `json:"drop,omitempty"`
}

// Live is a notice about an execution on reprise.live.<execution>.
type Live struct {
	Execution engine.ExecutionID `json:"execution"`
	engine.Live
}
