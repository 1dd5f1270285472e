package queue

import (
	"context"
	"fmt"

	"github.com/reprise-engine/reprise/pkg/engine"
)

// Submit asks a coordinator for a new execution and returns its id once it is
// stored. A *Problem says what is wrong with the submission. With an ID of the
// caller's choice a repetition is harmless.
func (c *Conn) Submit(ctx context.Context, s *Submission) (engine.ExecutionID, error) {
	sent := *s
	sent.Version = Version
	answer, err := ask[SubmitAnswer](ctx, c, subjectAPI+EndpointSubmit, sent)
	if err != nil {
		return "", fmt.Errorf("submit: %w", err)
	}
	if answer.ID == "" {
		return "", fmt.Errorf("submit: %w", errNoAnswer)
	}
	return answer.ID, nil
}

// Get returns an execution, with data its run data too. One that does not
// exist is a *Problem with CodeNotFound.
func (c *Conn) Get(ctx context.Context, id engine.ExecutionID, data bool) (*Execution, error) {
	answer, err := ask[*Execution](ctx, c, subjectAPI+EndpointGet, GetRequest{Version: Version, ID: id, Data: data})
	if err == nil && answer == nil {
		err = errNoAnswer
	}
	if err != nil {
		return nil, fmt.Errorf("get execution %s: %w", id, err)
	}
	return answer, nil
}

// List returns one page of executions, newest first.
func (c *Conn) List(ctx context.Context, r ListRequest) (*ListAnswer, error) {
	r.Version = Version
	answer, err := ask[ListAnswer](ctx, c, subjectAPI+EndpointList, r)
	if err != nil {
		return nil, fmt.Errorf("list executions: %w", err)
	}
	return &answer, nil
}

// Cancel ends an execution. One that is finished is a *Problem with CodeConflict.
func (c *Conn) Cancel(ctx context.Context, id engine.ExecutionID, reason string) error {
	_, err := ask[empty](ctx, c, subjectAPI+EndpointCancel, CancelRequest{Version: Version, ID: id, Reason: reason})
	if err != nil {
		return fmt.Errorf("cancel execution %s: %w", id, err)
	}
	return nil
}

// Call asks any endpoint of the micro service and decodes the answer into
// answer, which may be nil. A *Problem is the endpoint's refusal.
func Call[Answer any](ctx context.Context, c *Conn, endpoint string, request any) (Answer, error) {
	if err := ValidToken("endpoint", endpoint); err != nil {
		var none Answer
		return none, err
	}
	return ask[Answer](ctx, c, subjectAPI+endpoint, request)
}

// WaitFinished waits until an execution is finished and returns it, with data its
// run data too. It also returns when the execution is waiting and waiting is true.
func (c *Conn) WaitFinished(ctx context.Context, id engine.ExecutionID, data, waiting bool) (e *Execution, err error) {
	matters := func(n *Live) bool { return n.Kind == engine.LiveExecutionFinished || n.Status == engine.StatusWaiting }
	err = c.waitUntil(ctx, id, matters, func(ctx context.Context) (bool, error) {
		if e, err = c.Get(ctx, id, false); err != nil {
			return false, err
		}
		over := e.Status.Finished() || waiting && e.Status == engine.StatusWaiting
		if over && data {
			e, err = c.Get(ctx, id, true)
		}
		return over && err == nil, err
	})
	if err != nil {
		return nil, fmt.Errorf("wait for execution %s: %w", id, err)
	}
	return e, nil
}
