package coordinator

import (
	"context"
	"encoding/json"
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
		c.serveNotices,
		func() (func(), error) { return t.ServeMemory(c.config.Store.Memory) },
		func() (func(), error) { return t.ServeSubmissions(c.onDurable) },
		func() (func(), error) {
			return t.ServeAPI(queue.API{
				Version: c.config.Version, Submit: c.Submit, Get: c.get, List: c.list, Cancel: c.cancelExecution,
				MaxSubmission: c.config.MaxSubmissionBytes,
				More: map[string]queue.Handler{
					queue.EndpointResume:         queue.Handle(c.resume),
					queue.EndpointCallers:        queue.Handle(c.callers),
					queue.EndpointApprovals:      queue.Handle(c.approvals),
					queue.EndpointApproval:       queue.Handle(c.approval),
					queue.EndpointDecide:         queue.Handle(c.decide),
					queue.EndpointQueue:          queue.Handle(c.queueView),
					queue.EndpointRetry:          queue.Handle(c.retry),
					queue.EndpointWorkflowPut:    queue.Handle(c.putWorkflow),
					queue.EndpointWorkflowGet:    queue.Handle(c.getWorkflow),
					queue.EndpointWorkflowList:   queue.Handle(c.listWorkflows),
					queue.EndpointWorkflowDelete: queue.Handle(c.deleteWorkflow),
					queue.EndpointWorkflowActive: queue.Handle(c.activateWorkflow),
					queue.EndpointResponse:       queue.Handle(c.response),
					queue.EndpointTable:          queue.Handle(c.table),
				},
			})
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
	if sized, ok := d.(interface{ Size() int }); ok && sized.Size() > c.config.MaxSubmissionBytes {
		d.Term(queue.SubmissionTooLarge(int64(sized.Size()), c.config.MaxSubmissionBytes))
		return
	}
	c.Submit(c.ctx, d.Submitted(), func(id engine.ExecutionID, problem *queue.Problem) {
		switch {
		case problem == nil:
			d.Ack()
		case problem.Code == queue.CodeUnavailable || problem.Code == queue.CodeFull || problem.Code == queue.CodeOverloaded ||
			problem.Code == queue.CodeVersion: // it is for a newer coordinator
			d.Nak(max(retrySubmission, time.Duration(problem.RetryAfter)*time.Millisecond))
		default:
			c.config.Telemetry.Refused(problem)
			c.log.Warn("durable submission refused", zap.String("execution_id", string(d.Submitted().ID)), zap.String("code", problem.Code))
			d.Term(problem)
		}
	})
}

// get answers with an execution as it is stored.
func (c *Coordinator) get(ctx context.Context, r *queue.GetRequest) (*queue.Execution, error) {
	look := c.lookOpen
	if r.Data {
		look = c.look
	}
	s, err := look(ctx, r.ID)
	if err != nil {
		return nil, err
	}
	m := &s.Meta
	x := &queue.Execution{
		ID: r.ID, Status: m.Status, Mode: m.Mode, WorkflowID: m.WorkflowID, WorkflowName: m.WorkflowName,
		WorkflowHash: m.WorkflowHash, StartedAt: m.StartedAt, StoppedAt: m.StoppedAt, LastNode: m.LastNode, Error: m.Error,
		RetryOf: m.RetryOf, QueuePosition: c.queuePosition(ctx, m),
	}
	if m.Parent != nil {
		x.Parent = m.Parent.Execution
	}
	if !m.Status.Finished() {
		x.Stack = s.StackNames()
	}
	x.Waiting = c.waitsOf(s)
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
			StartedAt: s.StartedAt, StoppedAt: s.StoppedAt, Mode: s.Mode, Parent: s.Parent, RetryOf: s.RetryOf,
		})
	}
	return answer, nil
}

// cancelExecution ends an execution for good, and with it those it started and
// waits for.
func (c *Coordinator) cancelExecution(ctx context.Context, r *queue.CancelRequest) error {
	return c.ask(ctx, r.ID, func(x *execution) error {
		if status := x.state.Meta.Status; status.Finished() {
			if status == engine.StatusCanceled {
				return nil
			}
			return conflict("execution %s is finished: %s", r.ID, status)
		}
		return x.apply(c, engine.CancelRequested{At: c.now(), Reason: r.Reason})
	})
}
