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
	// Stored again even if this process believes that it is: somebody may have
	// removed a document that nothing was named after.
	if err := c.config.Store.PutWorkflow(ctx, p.workflow.Hash, p.workflow.Raw); err != nil {
		return nil, problemOf(fmt.Errorf("store workflow %s: %w", id, err))
	}
	record, err := c.config.Store.UpdateNamedWorkflow(ctx, id, func(r *state.WorkflowRecord, _ bool) error {
		if r.Hash != p.workflow.Hash || r.Version == 0 {
			r.Version++
		}
		r.Name, r.Hash, r.UpdatedAt = p.workflow.Name, p.workflow.Hash, c.now()
		if r.Active {
			return c.activatable(ctx, id, p.workflow)
		}
		return nil
	})
	if err != nil {
		return nil, problemOf(fmt.Errorf("store workflow %s: %w", id, err))
	}
	return storedWorkflow(record), nil
}

// activateWorkflow has the triggers of a stored workflow begin executions of it, or no
// longer. Coordinators that host triggers see it within a moment.
func (c *Coordinator) activateWorkflow(ctx context.Context, r *queue.WorkflowActivateRequest) (*queue.StoredWorkflow, error) {
	if _, problem := c.record(ctx, r.ID); problem != nil {
		return nil, problem
	}
	record, err := c.config.Store.UpdateNamedWorkflow(ctx, r.ID, func(record *state.WorkflowRecord, found bool) error {
		switch {
		case !found:
			return &queue.Problem{Code: queue.CodeNotFound, Message: fmt.Sprintf("no workflow with the id %q is stored", r.ID)}
		case record.Active == r.Active:
			return nil
		case !r.Active:
			record.Active, record.ActivatedAt = false, 0
			return nil
		}
		p, problem := c.stored(ctx, record.Hash)
		if problem != nil {
			return problem
		}
		if err := c.activatable(ctx, r.ID, p.workflow); err != nil {
			return err
		}
		record.Active, record.ActivatedAt = true, c.now()
		return nil
	})
	if err != nil {
		return nil, problemOf(fmt.Errorf("activate workflow %s: %w", r.ID, err))
	}
	return storedWorkflow(record), nil
}

// activatable refuses a workflow that nothing would begin, or whose triggers cannot be
// hosted.
func (c *Coordinator) activatable(ctx context.Context, id string, w *workflow.Workflow) error {
	if c.config.CheckTriggers == nil {
		return nil
	}
	if err := c.config.CheckTriggers(ctx, id, w); err != nil {
		return &queue.Problem{Code: queue.CodeInvalidWorkflow, Message: fmt.Sprintf("the workflow cannot be active: %v", err)}
	}
	return nil
}

func storedWorkflow(r state.WorkflowRecord) *queue.StoredWorkflow {
	return &queue.StoredWorkflow{ID: r.ID, Name: r.Name, Hash: r.Hash, UpdatedAt: r.UpdatedAt, Version: r.Version, Active: r.Active, ActivatedAt: r.ActivatedAt}
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
