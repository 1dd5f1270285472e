package queue

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

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
func (c *Conn) WaitResponse(ctx context.Context, id engine.ExecutionID, a Awaited) (*ResponseAnswer, error) {
	changed := make(chan struct{}, 1)
	stop, err := c.WatchLive(id, func(n Live) {
		if n.Kind == engine.LiveExecutionFinished || n.Status == engine.StatusWaiting ||
			n.Kind == engine.LiveNodeFinished && slices.Contains(a.Nodes, n.Node) {
			select {
			case changed <- struct{}{}:
			default:
			}
		}
	})
	if err != nil {
		return nil, err
	}
	defer stop()
	ticker := time.NewTicker(lookAgain)
	defer ticker.Stop()
	for {
		r, late, err := c.askResponse(ctx, ResponseRequest{Version: Version, ID: id, Outputs: a.Outputs})
		switch {
		case late && ctx.Err() == nil: // whoever was asked is gone: ask another one
		case err == nil && r == nil:
			return nil, fmt.Errorf("response of execution %s: %w", id, errNoAnswer)
		case err == nil && (r.Status.Finished() || len(a.Nodes) > 0 && r.Response != nil || a.Waiting && r.Status == engine.StatusWaiting):
			return r, nil
		case ctx.Err() != nil:
			return nil, fmt.Errorf("wait for the response of execution %s: %w", id, ctx.Err())
		case err != nil && !errors.Is(err, ErrUnavailable) && !errors.Is(err, ErrNoCoordinator):
			return nil, fmt.Errorf("response of execution %s: %w", id, err)
		}
		select {
		case <-changed:
		case <-ticker.C:
		case <-ctx.Done():
			return nil, fmt.Errorf("wait for the response of execution %s: %w", id, ctx.Err())
		}
	}
}

// responsePatience is how long one coordinator may take to answer. The caller's own deadline is
// no limit for a question: the coordinator that got it may have died with it.
const responsePatience = 5 * time.Second

// askResponse asks once; late says that no answer came in time.
func (c *Conn) askResponse(ctx context.Context, r ResponseRequest) (answer *ResponseAnswer, late bool, err error) {
	one, cancel := context.WithTimeout(ctx, responsePatience)
	defer cancel()
	answer, err = ask[*ResponseAnswer](one, c, subjectAPI+EndpointResponse, r)
	return answer, err != nil && one.Err() != nil, err
}
