package coordinator

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"go.uber.org/zap"

	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/queue"
	"github.com/reprise-engine/reprise/pkg/state"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// Submit creates an execution and calls answer once, when it is stored: with
// its id, or with what is wrong. A submission with the id of an execution that
// exists is answered like the first one, so it can be repeated.
func (c *Coordinator) Submit(ctx context.Context, sub *queue.Submission, answer func(engine.ExecutionID, *queue.Problem)) {
	p, problem := c.prepare(ctx, sub)
	if problem != nil {
		answer("", problem)
		return
	}
	id := sub.ID
	if id == "" {
		id = engine.ExecutionID(uuid.NewString())
	}
	mode := sub.Mode
	if mode == "" {
		mode = "trigger"
	}
	meta := engine.Meta{
		ID: id, Mode: mode, WorkflowHash: p.workflow.Hash,
		WorkflowID: p.workflow.ID, WorkflowName: p.workflow.Name,
	}
	c.hand(&work{
		id:     id,
		create: func() (*program, *engine.State) { return p, engine.NewState(meta) },
		handle: func(x *execution) error {
			if x.version > 0 || x.dirty { // it is in memory already
				return state.ErrExists
			}
			return x.apply(c, engine.Started{At: c.now(), Start: sub.Start, Input: sub.Input})
		},
		finish: func(err error) {
			if err != nil && !errors.Is(err, state.ErrExists) {
				answer("", problemOf(err))
				return
			}
			if err == nil {
				c.log.Info("execution started", zap.String("execution_id", string(id)), zap.String("workflow", meta.WorkflowName))
			}
			answer(id, nil)
		},
	})
}

// prepare checks a submission and makes its workflow ready. The document is
// stored before an execution refers to it.
func (c *Coordinator) prepare(ctx context.Context, sub *queue.Submission) (*program, *queue.Problem) {
	if sub.Version > queue.Version {
		return nil, &queue.Problem{Code: queue.CodeVersion, Message: fmt.Sprintf("submission has version %d, this coordinator knows %d: upgrade the coordinators first", sub.Version, queue.Version)}
	}
	if sub.ID != "" {
		if err := ValidID(sub.ID); err != nil {
			return nil, &queue.Problem{Code: queue.CodeBadRequest, Message: err.Error()}
		}
	}
	for i, item := range sub.Input {
		if trimmed := item.JSON; len(trimmed) > 0 && trimmed[0] != '{' {
			return nil, &queue.Problem{Code: queue.CodeBadRequest, Message: fmt.Sprintf("input item %d: json must be an object", i)}
		}
	}
	var p *program
	switch {
	case len(sub.Workflow) > 0:
		var problem *queue.Problem
		if p, problem = c.submitted(ctx, sub); problem != nil {
			return nil, problem
		}
	case sub.WorkflowHash != "":
		var err error
		if p, err = c.program(ctx, sub.WorkflowHash); err != nil {
			if errors.Is(err, state.ErrNotFound) {
				return nil, &queue.Problem{Code: queue.CodeNotFound, Message: fmt.Sprintf("no workflow is stored under the hash %s", sub.WorkflowHash)}
			}
			return nil, problemOf(err)
		}
	default:
		return nil, &queue.Problem{Code: queue.CodeBadRequest, Message: "submission without workflow: give the document in \"workflow\", or the hash of a stored one in \"workflowHash\""}
	}
	if sub.Start != "" && p.workflow.Node(sub.Start) == nil {
		return nil, &queue.Problem{Code: queue.CodeBadRequest, Message: fmt.Sprintf("the workflow has no node %q to start from", sub.Start)}
	}
	return p, nil
}

// submitted makes the document of a submission ready. Documents that were
// submitted before are known by their bytes and not read again.
func (c *Coordinator) submitted(ctx context.Context, sub *queue.Submission) (*program, *queue.Problem) {
	bytes := fingerprint(sub.Workflow)
	if p := c.documents.get(bytes); p != nil && sub.Start == "" {
		return p, nil
	}
	w, err := workflow.Parse(sub.Workflow)
	if err != nil {
		return nil, &queue.Problem{Code: queue.CodeInvalidWorkflow, Message: err.Error()}
	}
	if problems := workflow.ValidateStart(w, c.config.Registry, sub.Start); problems.Err() != nil {
		return nil, invalidWorkflow(problems)
	}
	p := c.programs.get(w.Hash)
	if p == nil {
		if p, err = compile(w, c.config.Registry); err != nil {
			return nil, &queue.Problem{Code: queue.CodeInvalidWorkflow, Message: err.Error()}
		}
		if err := c.config.Store.PutWorkflow(ctx, w.Hash, w.Raw); err != nil {
			return nil, problemOf(fmt.Errorf("store workflow: %w", err))
		}
		c.programs.put(w.Hash, p)
	}
	if sub.Start == "" {
		c.documents.put(bytes, p)
	}
	return p, nil
}

// fingerprint tells documents apart by their bytes; their layout counts, unlike
// in workflow.Workflow.Hash.
func fingerprint(document []byte) string {
	sum := sha256.Sum256(document)
	return string(sum[:])
}

func invalidWorkflow(problems workflow.Problems) *queue.Problem {
	p := &queue.Problem{Code: queue.CodeInvalidWorkflow, Message: problems.Err().Error()}
	for _, one := range problems {
		p.Details = append(p.Details, one.String())
	}
	return p
}

// problemOf is the API's form of an error of the infrastructure.
func problemOf(err error) *queue.Problem {
	code := queue.CodeUnavailable
	switch {
	case errors.Is(err, errNotFound) || errors.Is(err, state.ErrNotFound):
		code = queue.CodeNotFound
	case errors.Is(err, state.ErrFilter):
		code = queue.CodeBadRequest
	case errors.Is(err, state.ErrFull):
		code = queue.CodeFull
	}
	return &queue.Problem{Code: code, Message: err.Error()}
}
