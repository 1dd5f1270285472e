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
}

// Awaited says what WaitResponse waits for besides the end of the execution.
type Awaited struct {
	// Nodes whose response is the answer; nil does not wait for any.
	Nodes []string
	// Waiting returns when the execution waits.
	Waiting bool
	// Outputs are wanted.
	Outputs bool
}

// WaitResponse waits until an execution has an answer for its caller, or is over. The answer is
// in the stored execution, so it does not matter which coordinator runs it or is asked.
func (c *Conn) WaitResponse(ctx context.Context, id engine.ExecutionID, a Awaited) (r *ResponseAnswer, err error) {
	matters := func(n *Live) bool {
		return n.Kind == engine.LiveExecutionFinished || n.Status == engine.StatusWaiting ||
			n.Kind == engine.LiveNodeFinished && slices.Contains(a.Nodes, n.Node)
	}
	err = c.waitUntil(ctx, id, matters, func(ctx context.Context) (bool, error) {
		r, err = ask[*ResponseAnswer](ctx, c, subjectAPI+EndpointResponse, ResponseRequest{
			Version: Version, ID: id, Outputs: a.Outputs, Brief: len(a.Nodes) == 0,
		})
		if err == nil && r == nil {
			err = errNoAnswer
		}
		if err != nil {
			return false, err
		}
		return r.Status.Finished() || len(a.Nodes) > 0 && r.Response != nil || a.Waiting && r.Status == engine.StatusWaiting, nil
	})
	if err != nil {
		return nil, fmt.Errorf("wait for the response of execution %s: %w", id, err)
	}
	return r, nil
}
