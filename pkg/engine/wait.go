package engine

import (
	"encoding/json"

	"github.com/reprise-engine/reprise/pkg/workflow"
)

// WaitKind says what a parked run waits for.
type WaitKind string

// The kinds of wait. Each but WaitTime names an outside party, so it may do
// without a deadline.
const (
	WaitTime     WaitKind = "time"     // a moment
	WaitWebhook  WaitKind = "webhook"  // a call of the execution's resume URL
	WaitApproval WaitKind = "approval" // a person's decision
	WaitChildren WaitKind = "children" // executions that were started for it
)

// Wait is a node's answer "call me again when this has happened". The run is
// parked: it holds no job and no worker, and what does not depend on it goes
// on. When it is resumed the node is called again, as the next slice of the same
// run, with a Resumption that says what happened.
type Wait struct {
	Kind WaitKind `json:"kind"`
	// Until is the deadline in milliseconds since 1970, when the run is resumed with
	// Expired set; 0 is none. WaitTime must have one.
	Until int64 `json:"until,omitempty"`
	// Of these the one that belongs to Kind is set.
	Webhook  *WebhookWait `json:"webhook,omitempty"`
	Question *Question    `json:"question,omitempty"`
	Children *Children    `json:"children,omitempty"`
}

// WebhookWait is the HTTP call that resumes a run, and how it is answered.
type WebhookWait struct {
	Method string `json:"method,omitempty"` // "" is GET
	Suffix string `json:"suffix,omitempty"` // path after the execution's id
	// Response to the caller. With AfterEnd it is the execution's last output
	// instead, once it is over.
	Response WebhookResponse `json:"response"`
	AfterEnd bool            `json:"afterEnd,omitempty"`
	// Form is the page that a person fills in to make the call; the HTTP side knows its
	// shape. Such a wait is not resumed by a call of the resume URL, but by its form's.
	Form json.RawMessage `json:"form,omitempty"`
	// Linked: the form is filled in by whoever was given its link, not by the person whose form
	// began the execution.
	Linked bool `json:"linked,omitempty"`
	// Callers are those who may make the call; nil is whoever has the link.
	Callers *Callers `json:"callers,omitempty"`
}

// Callers are those who prove who they are by a credential.
type Callers struct {
	Type       string                 `json:"type"` // of the credential: httpBasicAuth, httpHeaderAuth or jwtAuth
	Credential workflow.CredentialRef `json:"credential"`
}

// WebhookResponse is an answer to an HTTP call.
type WebhookResponse struct {
	Status  int               `json:"status,omitempty"` // 0 is 200
	Headers map[string]string `json:"headers,omitempty"`
	Body    string            `json:"body,omitempty"`
	// Binary, when set, is sent instead of Body.
	Binary *workflow.Binary `json:"binary,omitempty"`
}

// Question is what a person is asked.
type Question struct {
	Title string `json:"title,omitempty"`
	Text  string `json:"text,omitempty"`
	// Tool is the node that is run when the answer is yes, ToolName its name towards the
	// model and Arguments what it is run with, as they are shown. Empty for a question
	// that is not about a tool call.
	Tool      string          `json:"tool,omitempty"`
	ToolName  string          `json:"toolName,omitempty"`
	Arguments json.RawMessage `json:"arguments,omitempty"`
	// Approve and Deny are the labels of the buttons; without Deny there is one.
	Approve string `json:"approve,omitempty"`
	Deny    string `json:"deny,omitempty"`
	// FreeText asks for a text instead of a decision.
	FreeText bool `json:"freeText,omitempty"`
}

// Decision answers a Question.
type Decision struct {
	Approved bool   `json:"approved"`
	Feedback string `json:"feedback,omitempty"` // what the person wrote
	By       string `json:"by,omitempty"`       // who decided, as far as it is known
	At       int64  `json:"at"`                 // milliseconds since 1970
}

// Children are the executions that a run starts.
type Children struct {
	Runs []ChildRun `json:"runs"`
	// Sequential starts each when the one before has ended; StopOnError starts no more
	// after one that did not end well.
	Sequential  bool `json:"sequential,omitempty"`
	StopOnError bool `json:"stopOnError,omitempty"`
	// Detached children are not awaited: the run is resumed when they are stored.
	Detached bool `json:"detached,omitempty"`
}

// ChildRun is one execution to start: of a stored workflow, by its id, or of a
// document.
type ChildRun struct {
	WorkflowID string          `json:"workflowId,omitempty"`
	Workflow   json.RawMessage `json:"workflow,omitempty"`
	Input      workflow.Items  `json:"input"`
}

// ChildResult is how a child ended. A detached child that was stored has
// StatusRunning.
type ChildResult struct {
	Execution  ExecutionID `json:"execution,omitempty"` // empty when it could not be started
	WorkflowID string      `json:"workflowId,omitempty"`
	Status     Status      `json:"status"`
	// Outputs are those of the child's last node.
	Outputs []workflow.Items `json:"outputs,omitempty"`
	Error   *NodeError       `json:"error,omitempty"`
}

// Resumption tells a node that was called again what happened.
type Resumption struct {
	Kind WaitKind `json:"kind"`
	// Expired: the deadline passed first.
	Expired bool `json:"expired,omitempty"`
	// Data is the item of the webhook's call: {"headers", "params", "query", "body"}.
	Data     json.RawMessage `json:"data,omitempty"`
	Decision *Decision       `json:"decision,omitempty"`
	// Children in the order of Children.Runs; nil for those that were not started.
	Children []*ChildResult `json:"children,omitempty"`
}

// Outcome of a Question, kept in the run's record.
type Outcome string

// The outcomes.
const (
	OutcomeApproved Outcome = "approved"
	OutcomeDenied   Outcome = "denied"
	OutcomeExpired  Outcome = "expired"
	OutcomeCanceled Outcome = "canceled"
)

// Parked is a run that waits.
type Parked struct {
	// Token names the wait in the whole system, "<execution>_<n>" (Job.Token).
	Token string `json:"token"`
	Entry Entry  `json:"entry"` // with Progress
	Wait  Wait   `json:"wait"`
	Since int64  `json:"since"` // milliseconds since 1970
	// Deadline of the node's own timeout while it waits for children; 0 is none.
	Deadline int64 `json:"deadline,omitempty"`
	// After is the number of the webhook wait before this one, -1 for the first:
	// a resume URL that was made before that one does not resume this one.
	After int `json:"after"`
	// Before is what ended the run's wait before this one: a retry of a failed execution
	// calls the node again as it was called before it asked for this wait.
	Before *Resumption `json:"before,omitempty"`
}

// ChildStart is an execution to be started for a parked run.
type ChildStart struct {
	Execution ExecutionID // its id: the same whenever it is asked for
	Token     string      // of the parked run
	Index     int         // among its Children.Runs
	Depth     int
	Root      ExecutionID
	Detached  bool
	ChildRun
}

// Parent links an execution to the parked run that it was started for.
type Parent struct {
	Execution  ExecutionID `json:"execution"`
	WorkflowID string      `json:"workflowId,omitempty"`
	Token      string      `json:"token"`
	Index      int         `json:"index"`
	// Detached: the parent does not wait for the end.
	Detached bool `json:"detached,omitempty"`
}
