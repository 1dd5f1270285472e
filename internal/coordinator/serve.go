package coordinator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/queue"
	"github.com/reprise-engine/reprise/pkg/state"
)

// Transport is what the coordinator needs of pkg/queue. The Serve functions call
// their handler for one message at a time; it must not block for long.
type Transport interface {
	ServeResults(coordinator string, handler func(r *queue.Result, size int, reply func(queue.Reply))) (stop func(), err error)
	ServeRedelivery(handler func(q *queue.Redelivery, reply func(queue.Reply))) (stop func(), err error)
	ServeMemory(load func(ctx context.Context, session string, n int) ([]json.RawMessage, error)) (stop func(), err error)
	ServeSubmissions(handler func(DurableSubmission)) (stop func(), err error)
	ServeAPI(api queue.API) (stop func(), err error)

	// PublishJobs starts to publish jobs and returns; wait returns the outcome of each.
	PublishJobs(ctx context.Context, jobs []*queue.Job) (wait func() []error)
	PublishControl(c queue.Control) error
	// Withdraw removes jobs from a pool's queue; those that are not there are no error.
	Withdraw(ctx context.Context, pool string, jobs ...engine.JobID) error
	PublishLive(id engine.ExecutionID, notices []engine.Live) error
	PublishDead(ctx context.Context, letter *queue.DeadLetter) error
	// Ack acknowledges a job's message on the worker's behalf.
	Ack(ack string) error
	Healthy() error
}

// DurableSubmission is a submission from the stream, to be answered once.
type DurableSubmission interface {
	Submitted() *queue.Submission
	Ack()
	// Nak has it given out again after a delay, Term refuses it for good.
	Nak(delay time.Duration)
	Term(problem *queue.Problem)
}

// retrySubmission is how long a durable submission rests that could not be stored.
const retrySubmission = time.Second

// serve subscribes to everything that reaches a coordinator.
func (c *Coordinator) serve(context.Context) error {
	t := c.config.Transport
	for _, subscribe := range []func() (func(), error){
		func() (func(), error) {
			return t.ServeResults(c.config.ID, func(r *queue.Result, _ int, reply func(queue.Reply)) { c.onResult(r, reply) })
		},
		func() (func(), error) { return t.ServeRedelivery(c.onRedelivery) },
		func() (func(), error) { return t.ServeMemory(c.config.Store.Memory) },
		func() (func(), error) { return t.ServeSubmissions(c.onDurable) },
		func() (func(), error) {
			return t.ServeAPI(queue.API{Version: c.config.Version, Submit: c.Submit, Get: c.get, List: c.list, Cancel: c.cancelExecution})
		},
	} {
		stop, err := subscribe()
		if err != nil {
			return err
		}
		c.stops = append(c.stops, stop)
	}
	return nil
}

func (c *Coordinator) onDurable(d DurableSubmission) {
	c.Submit(c.ctx, d.Submitted(), func(id engine.ExecutionID, problem *queue.Problem) {
		switch {
		case problem == nil:
			d.Ack()
		case problem.Code == queue.CodeUnavailable || problem.Code == queue.CodeFull:
			d.Nak(retrySubmission)
		default:
			c.log.Warn("durable submission refused", zap.String("execution_id", string(d.Submitted().ID)), zap.String("code", problem.Code))
			d.Term(problem)
		}
	})
}

// get answers with an execution as it is stored.
func (c *Coordinator) get(ctx context.Context, r *queue.GetRequest) (*queue.Execution, error) {
	if err := ValidID(r.ID); err != nil {
		return nil, &queue.Problem{Code: queue.CodeBadRequest, Message: err.Error()}
	}
	stored, err := c.config.Store.Load(ctx, []engine.ExecutionID{r.ID})
	if err != nil {
		return nil, problemOf(err)
	}
	if stored[0] == nil {
		return nil, &queue.Problem{Code: queue.CodeNotFound, Message: fmt.Sprintf("no execution %s: it was never submitted, or its retention is over", r.ID)}
	}
	s, err := engine.Restore(stored[0].Tables)
	if err != nil {
		return nil, &queue.Problem{Code: queue.CodeInternal, Message: fmt.Sprintf("execution %s: %v", r.ID, err)}
	}
	m := &s.Meta
	x := &queue.Execution{
		ID: r.ID, Status: m.Status, Mode: m.Mode, WorkflowID: m.WorkflowID, WorkflowName: m.WorkflowName,
		WorkflowHash: m.WorkflowHash, StartedAt: m.StartedAt, StoppedAt: m.StoppedAt, LastNode: m.LastNode, Error: m.Error,
	}
	if !m.Status.Finished() {
		x.Stack = s.StackNames()
	}
	if r.Data {
		if x.Data, err = json.Marshal(s.RunExecutionData().Data); err != nil {
			return nil, &queue.Problem{Code: queue.CodeInternal, Message: fmt.Sprintf("execution %s: %v", r.ID, err)}
		}
	}
	return x, nil
}

const defaultListLimit = 50

func (c *Coordinator) list(ctx context.Context, r *queue.ListRequest) (*queue.ListAnswer, error) {
	limit := r.Limit
	if limit <= 0 {
		limit = defaultListLimit
	}
	filter := state.Filter{Workflow: r.WorkflowID, Limit: limit, Cursor: r.Cursor}
	if r.Status != "" {
		filter.Status = []engine.Status{r.Status}
	}
	page, cursor, err := c.config.Store.List(ctx, filter)
	if err != nil {
		return nil, problemOf(err)
	}
	answer := &queue.ListAnswer{Cursor: cursor, Executions: make([]queue.Execution, 0, len(page))}
	for _, s := range page {
		answer.Executions = append(answer.Executions, queue.Execution{
			ID: s.ID, Status: s.Status, WorkflowID: s.WorkflowID, WorkflowName: s.WorkflowName,
			StartedAt: s.StartedAt, StoppedAt: s.StoppedAt,
		})
	}
	return answer, nil
}

// cancelExecution ends an execution for good.
func (c *Coordinator) cancelExecution(ctx context.Context, r *queue.CancelRequest) error {
	if err := ValidID(r.ID); err != nil {
		return &queue.Problem{Code: queue.CodeBadRequest, Message: err.Error()}
	}
	var conflict *queue.Problem
	done := make(chan error, 1)
	c.hand(&work{
		id: r.ID, fresh: true,
		handle: func(x *execution) error {
			conflict = nil
			if status := x.state.Meta.Status; status.Finished() && status != engine.StatusCanceled {
				conflict = &queue.Problem{Code: queue.CodeConflict, Message: fmt.Sprintf("execution %s is finished: %s", r.ID, status)}
				return nil
			}
			return x.apply(c, engine.CancelRequested{At: c.now(), Reason: r.Reason})
		},
		finish: func(err error) { done <- err },
	})
	select {
	case err := <-done:
		switch {
		case errors.Is(err, errNotFound):
			return &queue.Problem{Code: queue.CodeNotFound, Message: fmt.Sprintf("no execution %s", r.ID)}
		case err != nil:
			return problemOf(err)
		case conflict != nil:
			return conflict
		}
		return nil
	case <-ctx.Done():
		return problemOf(ctx.Err())
	}
}
