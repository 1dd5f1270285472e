package queue

import (
	"context"
	"fmt"
	"slices"

	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// EndpointResponse tells what the caller is answered who began an execution.
const EndpointResponse = "response"

// ResponseRequest asks for the answer of an execution, with Outputs also for those of
// its last node once it is over.
type ResponseRequest struct {
	Version int                `json:"v"`
	ID      engine.ExecutionID `json:"id"`
	Outputs bool               `json:"outputs,omitempty"`
	// Brief: while the execution goes on, what a node gave as the response is not asked for, for which
	// all run data would have to be read.
	Brief bool `json:"brief,omitempty"`
	// Link, when set, is the number in the link of a form: of the waits only those are told that it fits.
	Link *int `json:"link,omitempty"`
	// From leaves out the responses of runs whose execution index is lower.
	From int `json:"from,omitempty"`
}

// ResponseAnswer is what an execution has for its caller so far.
type ResponseAnswer struct {
	Status engine.Status `json:"status"`
	// Response is the first that a node gave; nil when none did yet.
	Response *engine.WebhookResponse `json:"response,omitempty"`
	// Outputs of the last node and Error, of one that is over.
	Outputs []workflow.Items  `json:"outputs,omitempty"`
	Error   *engine.NodeError `json:"error,omitempty"`
	// Waiting is what it waits for.
	Waiting []Waiting `json:"waiting,omitempty"`
	// Over: the wait that the link in the request belongs to is over.
	Over bool `json:"over,omitempty"`
}

// Awaited says what WaitResponse waits for besides the end of the execution.
type Awaited struct {
	// Nodes whose response is the answer; nil does not wait for any.
	Nodes []string
	// Any node's response is the answer.
	Any bool
	// Waiting returns when the execution waits; with Link, when it waits with the form of that link
	// or did so before.
	Waiting bool
	Link    *int
	// From leaves out the responses of runs whose execution index is lower.
	From int
	// Outputs are wanted.
	Outputs bool
}

// WaitResponse waits until an execution has an answer for its caller, or is over. The answer is
// in the stored execution, so it does not matter which coordinator runs it or is asked.
func (c *Conn) WaitResponse(ctx context.Context, id engine.ExecutionID, a Awaited) (r *ResponseAnswer, err error) {
	matters := func(n *Live) bool {
		return n.Kind == engine.LiveExecutionFinished || n.Status == engine.StatusWaiting ||
			n.Kind == engine.LiveNodeFinished && (a.Any || a.Link != nil || slices.Contains(a.Nodes, n.Node))
	}
	err = c.waitUntil(ctx, id, matters, func(ctx context.Context) (bool, error) {
		r, err = ask[*ResponseAnswer](ctx, c, subjectAPI+EndpointResponse, ResponseRequest{
			Version: Version, ID: id, Outputs: a.Outputs, Brief: len(a.Nodes) == 0 && !a.Any, Link: a.Link, From: a.From,
		})
		if err == nil && r == nil {
			err = errNoAnswer
		}
		if err != nil {
			return false, err
		}
		switch {
		case r.Status.Finished(), (a.Any || len(a.Nodes) > 0) && r.Response != nil:
			return true, nil
		case a.Link != nil:
			return a.Waiting && (r.Over || len(r.Waiting) > 0), nil
		}
		return a.Waiting && r.Status == engine.StatusWaiting, nil
	})
	if err != nil {
		return nil, fmt.Errorf("wait for the response of execution %s: %w", id, err)
	}
	return r, nil
}
