package queue

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/reprise-engine/reprise/pkg/engine"
)

// More endpoints of the micro service.
const (
	EndpointResume         = "resume"
	EndpointCallers        = "callers"
	EndpointApprovals      = "approvals"
	EndpointApproval       = "approval"
	EndpointDecide         = "decide"
	EndpointRetry          = "retry"
	EndpointWorkflowPut    = "workflow-put"
	EndpointWorkflowGet    = "workflow-get"
	EndpointWorkflowList   = "workflow-list"
	EndpointWorkflowDelete = "workflow-delete"
	EndpointWorkflowActive = "workflow-active"
)

// ResumeRequest ends the wait for a webhook. Execution and what follows choose
// the wait: the oldest that fits. None that fits is a *Problem with CodeConflict,
// an unknown execution one with CodeNotFound, and one that asks for other callers than Checked one
// with CodeUnauthorized.
type ResumeRequest struct {
	Version   int                `json:"v"`
	Execution engine.ExecutionID `json:"execution"`
	// Link is the number in the resume URL that was called; nil fits any wait.
	Link   *int   `json:"link,omitempty"`
	Suffix string `json:"suffix,omitempty"`
	Method string `json:"method,omitempty"` // "" fits any
	// Checked is what the caller has been checked against. It does not count without a Link: who
	// speaks to coordinators without one is no caller from outside.
	Checked *engine.Callers `json:"checked,omitempty"`
	// Data is the item the waiting node gives out: {"headers", "params", "query", "body"}.
	Data json.RawMessage `json:"data"`
}

// ResumeAnswer says how the caller of the webhook is to be answered.
type ResumeAnswer struct {
	Response engine.WebhookResponse `json:"response"`
	// AfterEnd: with the execution's last output instead, when it is over.
	AfterEnd bool `json:"afterEnd,omitempty"`
	// Run is the execution index of the run that was resumed: what answers the call began later.
	Run int `json:"run,omitempty"`
}

// Approval is a question to a person and what became of it.
type Approval struct {
	ID        string             `json:"id"` // the token of the wait, "<execution>_<n>"
	Execution engine.ExecutionID `json:"execution"`
	Workflow  string             `json:"workflow,omitempty"` // its name
	Node      string             `json:"node"`
	RunIndex  int                `json:"runIndex"`
	CallID    string             `json:"callId,omitempty"`
	Tool      string             `json:"tool,omitempty"`
	Arguments json.RawMessage    `json:"arguments,omitempty"`
	Title     string             `json:"title,omitempty"`
	Text      string             `json:"text,omitempty"`
	Approve   string             `json:"approve,omitempty"` // labels of the buttons
	Deny      string             `json:"deny,omitempty"`
	FreeText  bool               `json:"freeText,omitempty"`
	URL       string             `json:"url,omitempty"`
	Asked     int64              `json:"asked"`             // milliseconds since 1970
	Expires   int64              `json:"expires,omitempty"` // 0: never
	// Outcome is empty while the question is open; then Decision may say more.
	Outcome  engine.Outcome   `json:"outcome,omitempty"`
	Decision *engine.Decision `json:"decision,omitempty"`
	// Bind is a digest of what the question is about; see DecideRequest.
	Bind string `json:"bind"`
}

// ApprovalsRequest asks for open questions, oldest first.
type ApprovalsRequest struct {
	Version   int                `json:"v"`
	Execution engine.ExecutionID `json:"execution,omitempty"` // only of this one
	Limit     int                `json:"limit,omitempty"`     // 0 is the coordinator's default
	Cursor    string             `json:"cursor,omitempty"`    // of the page before
}

// ApprovalsAnswer is one page; Cursor is empty on the last.
type ApprovalsAnswer struct {
	Approvals []Approval `json:"approvals"`
	Cursor    string     `json:"cursor,omitempty"`
}

// ApprovalRequest asks for one question, also for one that is decided.
type ApprovalRequest struct {
	Version int    `json:"v"`
	ID      string `json:"id"`
}

// DecideRequest decides a question, once. Answers: CodeConflict when it was
// decided before, CodeGone when it expired or its execution is over, CodeForbidden
// when Bind is given and is not the question's, CodeNotFound.
type DecideRequest struct {
	Version  int             `json:"v"`
	ID       string          `json:"id"`
	Bind     string          `json:"bind,omitempty"`
	Decision engine.Decision `json:"decision"`
}

// RetryRequest runs an execution again, as a new one.
type RetryRequest struct {
	Version int                `json:"v"`
	ID      engine.ExecutionID `json:"id"`
	// FromStart begins anew with the same input; else a failed execution goes on
	// where it broke off, with what it has done.
	FromStart bool `json:"fromStart,omitempty"`
	// Latest takes the workflow as it is stored now under its id, instead of the
	// document that failed.
	Latest bool `json:"latest,omitempty"`
	// NewID of the new execution, its idempotency key; empty lets the coordinator choose.
	NewID engine.ExecutionID `json:"newId,omitempty"`
}

// StoredWorkflow is a workflow under its id.
type StoredWorkflow struct {
	ID        string          `json:"id"`
	Name      string          `json:"name,omitempty"`
	Hash      string          `json:"hash"`
	UpdatedAt int64           `json:"updatedAt"` // milliseconds since 1970
	Document  json.RawMessage `json:"document,omitempty"`
	// Version counts the documents that were stored under the id.
	Version int `json:"version,omitempty"`
	// Active: its triggers begin executions, since ActivatedAt (milliseconds since 1970).
	Active      bool  `json:"active"`
	ActivatedAt int64 `json:"activatedAt,omitempty"`
}

// WorkflowActivateRequest has the triggers of a stored workflow begin executions, or no
// longer. A workflow without a trigger that can be hosted is a *Problem with CodeInvalidWorkflow.
type WorkflowActivateRequest struct {
	Version int    `json:"v"`
	ID      string `json:"id"`
	Active  bool   `json:"active"`
}

// WorkflowPutRequest stores a document under the id in it, or under ID.
type WorkflowPutRequest struct {
	Version  int             `json:"v"`
	ID       string          `json:"id,omitempty"`
	Document json.RawMessage `json:"document"`
}

// WorkflowRequest names a stored workflow.
type WorkflowRequest struct {
	Version int    `json:"v"`
	ID      string `json:"id"`
}

// WorkflowsAnswer lists stored workflows by id, without their documents.
type WorkflowsAnswer struct {
	Workflows []StoredWorkflow `json:"workflows"`
}

// Resume ends the wait for a webhook.
func (c *Conn) Resume(ctx context.Context, r ResumeRequest) (*ResumeAnswer, error) {
	r.Version = Version
	answer, err := ask[*ResumeAnswer](ctx, c, subjectAPI+EndpointResume, r)
	if err == nil && answer == nil {
		err = errNoAnswer
	}
	if err != nil {
		return nil, fmt.Errorf("resume execution %s: %w", r.Execution, err)
	}
	return answer, nil
}

// CallersAnswer says who may end a wait.
type CallersAnswer struct {
	Callers *engine.Callers `json:"callers,omitempty"`
}

// Callers returns who may end the wait that r would end; nil is whoever has its link. What the
// caller sent is not part of the question, as it holds what proves who calls.
func (c *Conn) Callers(ctx context.Context, r ResumeRequest) (*engine.Callers, error) {
	r.Version, r.Data = Version, nil
	answer, err := ask[*CallersAnswer](ctx, c, subjectAPI+EndpointCallers, r)
	if err == nil && answer == nil {
		err = errNoAnswer
	}
	if err != nil {
		return nil, fmt.Errorf("callers of execution %s: %w", r.Execution, err)
	}
	return answer.Callers, nil
}

// Approvals returns one page of open questions, oldest first.
func (c *Conn) Approvals(ctx context.Context, r ApprovalsRequest) (*ApprovalsAnswer, error) {
	r.Version = Version
	answer, err := ask[ApprovalsAnswer](ctx, c, subjectAPI+EndpointApprovals, r)
	if err != nil {
		return nil, fmt.Errorf("list approvals: %w", err)
	}
	return &answer, nil
}

// Approval returns one question.
func (c *Conn) Approval(ctx context.Context, id string) (*Approval, error) {
	answer, err := ask[*Approval](ctx, c, subjectAPI+EndpointApproval, ApprovalRequest{Version: Version, ID: id})
	if err == nil && answer == nil {
		err = errNoAnswer
	}
	if err != nil {
		return nil, fmt.Errorf("get approval %s: %w", id, err)
	}
	return answer, nil
}

// Decide decides a question; see DecideRequest for its refusals.
func (c *Conn) Decide(ctx context.Context, r DecideRequest) error {
	r.Version = Version
	if _, err := ask[empty](ctx, c, subjectAPI+EndpointDecide, r); err != nil {
		return fmt.Errorf("decide %s: %w", r.ID, err)
	}
	return nil
}

// Retry runs an execution again and returns the id of the new one.
func (c *Conn) Retry(ctx context.Context, r RetryRequest) (engine.ExecutionID, error) {
	r.Version = Version
	answer, err := ask[SubmitAnswer](ctx, c, subjectAPI+EndpointRetry, r)
	if err == nil && answer.ID == "" {
		err = errNoAnswer
	}
	if err != nil {
		return "", fmt.Errorf("retry execution %s: %w", r.ID, err)
	}
	return answer.ID, nil
}

// PutWorkflow stores a workflow under its id.
func (c *Conn) PutWorkflow(ctx context.Context, r WorkflowPutRequest) (*StoredWorkflow, error) {
	r.Version = Version
	answer, err := ask[*StoredWorkflow](ctx, c, subjectAPI+EndpointWorkflowPut, r)
	if err == nil && answer == nil {
		err = errNoAnswer
	}
	if err != nil {
		return nil, fmt.Errorf("store workflow: %w", err)
	}
	return answer, nil
}

// Workflow returns a stored workflow with its document.
func (c *Conn) Workflow(ctx context.Context, id string) (*StoredWorkflow, error) {
	answer, err := ask[*StoredWorkflow](ctx, c, subjectAPI+EndpointWorkflowGet, WorkflowRequest{Version: Version, ID: id})
	if err == nil && answer == nil {
		err = errNoAnswer
	}
	if err != nil {
		return nil, fmt.Errorf("get workflow %s: %w", id, err)
	}
	return answer, nil
}

// Workflows lists the stored workflows.
func (c *Conn) Workflows(ctx context.Context) ([]StoredWorkflow, error) {
	answer, err := ask[WorkflowsAnswer](ctx, c, subjectAPI+EndpointWorkflowList, WorkflowRequest{Version: Version})
	if err != nil {
		return nil, fmt.Errorf("list workflows: %w", err)
	}
	return answer.Workflows, nil
}

// ActivateWorkflow switches the triggers of a stored workflow on or off.
func (c *Conn) ActivateWorkflow(ctx context.Context, id string, active bool) (*StoredWorkflow, error) {
	answer, err := ask[*StoredWorkflow](ctx, c, subjectAPI+EndpointWorkflowActive, WorkflowActivateRequest{Version: Version, ID: id, Active: active})
	if err == nil && answer == nil {
		err = errNoAnswer
	}
	if err != nil {
		return nil, fmt.Errorf("activate workflow %s: %w", id, err)
	}
	return answer, nil
}

// DeleteWorkflow forgets a stored workflow. Executions of it go on.
func (c *Conn) DeleteWorkflow(ctx context.Context, id string) error {
	if _, err := ask[empty](ctx, c, subjectAPI+EndpointWorkflowDelete, WorkflowRequest{Version: Version, ID: id}); err != nil {
		return fmt.Errorf("delete workflow %s: %w", id, err)
	}
	return nil
}
