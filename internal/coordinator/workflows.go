package coordinator

import (
	"context"
	"errors"
	"fmt"

	"github.com/reprise-engine/reprise/pkg/queue"
	"github.com/reprise-engine/reprise/pkg/state"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// stored makes the workflow ready that is stored under a hash.
func (c *Coordinator) stored(ctx context.Context, hash string) (*program, *queue.Problem) {
	p, err := c.program(ctx, hash)
	switch {
	case errors.Is(err, state.ErrNotFound):
		return nil, &queue.Problem{Code: queue.CodeNotFound, Message: fmt.Sprintf("no workflow is stored under the hash %s", hash)}
	case err != nil:
		return nil, problemOf(err)
	}
	return p, nil
}

// latest makes the workflow ready that is stored under an id now.
func (c *Coordinator) latest(ctx context.Context, id string) (*program, *queue.Problem) {
	record, problem := c.record(ctx, id)
	if problem != nil {
		return nil, problem
	}
	return c.stored(ctx, record.Hash)
}

func (c *Coordinator) record(ctx context.Context, id string) (state.WorkflowRecord, *queue.Problem) {
	if id == "" {
		return state.WorkflowRecord{}, badRequest("the id of the workflow is missing")
	}
	record, err := c.config.Store.NamedWorkflow(ctx, id)
	switch {
	case errors.Is(err, state.ErrNotFound):
		return record, &queue.Problem{Code: queue.CodeNotFound, Message: fmt.Sprintf("no workflow with the id %q is stored: store it with `reprise workflows put FILE`", id)}
	case err != nil:
		return record, problemOf(err)
	}
	return record, nil
}

// putWorkflow stores a document under an id, for others to run by it.
func (c *Coordinator) putWorkflow(ctx context.Context, r *queue.WorkflowPutRequest) (*queue.StoredWorkflow, error) {
	if len(r.Document) == 0 {
		return nil, badRequest("the document is missing")
	}
	w, err := workflow.Parse(r.Document)
	if err != nil {
		return nil, &queue.Problem{Code: queue.CodeInvalidWorkflow, Message: err.Error()}
	}
	id := r.ID
	if id == "" {
		id = w.ID
	}
	if id == "" {
		return nil, badRequest("the workflow has no id: give one, or write it into the document as \"id\"")
	}
	p, problem := c.document(ctx, r.Document, "", nil)
	if problem != nil {
		return nil, problem
	}
	record := state.WorkflowRecord{ID: id, Name: p.workflow.Name, Hash: p.workflow.Hash, UpdatedAt: c.now()}
	// Stored again even if this process believes that it is: somebody may have
	// removed a document that nothing was named after.
	if err := c.config.Store.PutWorkflow(ctx, record.Hash, p.workflow.Raw); err != nil {
		return nil, problemOf(fmt.Errorf("store workflow %s: %w", id, err))
	}
	if err := c.config.Store.PutNamedWorkflow(ctx, record); err != nil {
		return nil, problemOf(fmt.Errorf("store workflow %s: %w", id, err))
	}
	return storedWorkflow(record), nil
}

func storedWorkflow(r state.WorkflowRecord) *queue.StoredWorkflow {
	return &queue.StoredWorkflow{ID: r.ID, Name: r.Name, Hash: r.Hash, UpdatedAt: r.UpdatedAt}
}

func (c *Coordinator) getWorkflow(ctx context.Context, r *queue.WorkflowRequest) (*queue.StoredWorkflow, error) {
	record, problem := c.record(ctx, r.ID)
	if problem != nil {
		return nil, problem
	}
	document, err := c.config.Store.Workflow(ctx, record.Hash)
	if err != nil {
		return nil, problemOf(fmt.Errorf("load workflow %s: %w", r.ID, err))
	}
	answer := storedWorkflow(record)
	answer.Document = document
	return answer, nil
}

func (c *Coordinator) listWorkflows(ctx context.Context, _ *queue.WorkflowRequest) (*queue.WorkflowsAnswer, error) {
	records, err := c.config.Store.NamedWorkflows(ctx)
	if err != nil {
		return nil, problemOf(err)
	}
	answer := &queue.WorkflowsAnswer{Workflows: make([]queue.StoredWorkflow, 0, len(records))}
	for _, record := range records {
		answer.Workflows = append(answer.Workflows, *storedWorkflow(record))
	}
	return answer, nil
}

// deleteWorkflow forgets an id. The document stays for the executions that run it.
func (c *Coordinator) deleteWorkflow(ctx context.Context, r *queue.WorkflowRequest) (struct{}, error) {
	if _, problem := c.record(ctx, r.ID); problem != nil {
		return struct{}{}, problem
	}
	if err := c.config.Store.DeleteNamedWorkflow(ctx, r.ID); err != nil {
		return struct{}{}, problemOf(fmt.Errorf("delete workflow %s: %w", r.ID, err))
	}
	return struct{}{}, nil
}
