package coordinator

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"go.uber.org/zap"

	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/queue"
)

// ask does work on what is stored now of an execution and waits until what it did is
// committed. When the commit is refused handle is called again, so it must set
// all it reports each time. A *queue.Problem that handle returns is the answer.
func (c *Coordinator) ask(ctx context.Context, id engine.ExecutionID, handle func(x *execution) error) error {
	if err := ValidID(id); err != nil {
		return badRequest("%v", err)
	}
	var problem *queue.Problem
	done := make(chan error, 1)
	c.hand(&work{
		id: id, fresh: true,
		handle: func(x *execution) error {
			problem = nil
			err := handle(x)
			if errors.As(err, &problem) {
				return nil // an answer, not a failure: nothing was changed
			}
			return err
		},
		finish: func(err error) { done <- err },
	})
	select {
	case err := <-done:
		switch {
		case errors.Is(err, errNotFound):
			return notFound(id)
		case err != nil:
			return problemOf(err)
		case problem != nil:
			return problem
		}
		return nil
	case <-ctx.Done():
		return problemOf(ctx.Err())
	}
}

func notFound(id engine.ExecutionID) *queue.Problem {
	return &queue.Problem{Code: queue.CodeNotFound, Message: fmt.Sprintf("no execution %s: it was never submitted, or its retention is over", id)}
}

// resume ends the wait for a webhook: the oldest that fits. Of two calls for one
// wait the second is refused.
func (c *Coordinator) resume(ctx context.Context, r *queue.ResumeRequest) (*queue.ResumeAnswer, error) {
	var answer *queue.ResumeAnswer
	var node string
	err := c.ask(ctx, r.Execution, func(x *execution) error {
		p, problem := waitFor(x.state, r)
		if problem != nil {
			return problem
		}
		if problem := unchecked(p, r); problem != nil {
			return problem
		}
		answer, node = &queue.ResumeAnswer{}, p.Entry.Node
		if p.Entry.Progress != nil {
			answer.Run = p.Entry.Progress.ExecutionIndex
		}
		if hook := p.Wait.Webhook; hook != nil {
			answer.Response, answer.AfterEnd = hook.Response, hook.AfterEnd
		}
		return x.apply(c, engine.Resumed{At: c.now(), Token: p.Token, Data: r.Data})
	})
	if err != nil {
		return nil, err
	}
	c.log.Info("execution resumed by a call", zap.String("execution_id", string(r.Execution)), zap.String("node", node))
	return answer, nil
}

// waitFor chooses the wait that a call resumes, or says why there is none.
func waitFor(s *engine.State, r *queue.ResumeRequest) (*engine.Parked, *queue.Problem) {
	status := s.Meta.Status
	switch {
	case status.Finished():
		return nil, conflict("execution %s is finished: %s", r.Execution, status)
	case s.Meta.Error != nil:
		return nil, conflict("execution %s has failed and is about to end", r.Execution)
	}
	var other *engine.Parked // that the link fits, but not the call
	for _, p := range s.ParkedInOrder() {
		if p.Wait.Kind != engine.WaitWebhook || !linkFits(p, r.Link) {
			continue
		}
		hook := p.Wait.Webhook
		if hook == nil {
			hook = &engine.WebhookWait{}
		}
		if trimPath(hook.Suffix) == trimPath(r.Suffix) && (r.Method == "" || strings.EqualFold(r.Method, method(hook))) {
			return p, nil
		}
		if other == nil {
			other = p
		}
	}
	switch {
	case other != nil:
		hook := other.Wait.Webhook
		if hook == nil {
			hook = &engine.WebhookWait{}
		}
		if len(hook.Form) > 0 {
			return nil, conflict("execution %s waits for a form to be sent, which only its page does", r.Execution)
		}
		return nil, conflict("execution %s waits for another call: %s with the path suffix %q", r.Execution, method(hook), hook.Suffix)
	case r.Link != nil && *r.Link <= s.Meta.LastWebhook:
		return nil, conflict("the wait of execution %s that this link belongs to is over: it was answered, or its time was up", r.Execution)
	case status == engine.StatusWaiting:
		return nil, conflict("execution %s does not wait for a call", r.Execution)
	}
	return nil, conflict("execution %s is running and does not wait for a call", r.Execution)
}

// callers says who may end the wait that a call is for. Credentials are read where calls come in, and
// checked there.
func (c *Coordinator) callers(ctx context.Context, r *queue.ResumeRequest) (*queue.CallersAnswer, error) {
	answer := &queue.CallersAnswer{}
	err := c.ask(ctx, r.Execution, func(x *execution) error {
		p, problem := waitFor(x.state, r)
		if problem != nil {
			return problem
		}
		if hook := p.Wait.Webhook; hook != nil {
			answer.Callers = hook.Callers
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return answer, nil
}

// unchecked refuses a call whose caller was not checked as the wait wants.
func unchecked(p *engine.Parked, r *queue.ResumeRequest) *queue.Problem {
	hook := p.Wait.Webhook
	if hook == nil || hook.Callers == nil || r.Link == nil || r.Checked != nil && *r.Checked == *hook.Callers {
		return nil
	}
	return &queue.Problem{Code: queue.CodeUnauthorized, Message: "the wait is ended only by callers who have proved who they are"}
}

// linkFits reports whether a resume URL resumes a wait: it was made after the wait
// for a webhook before it and not after it.
func linkFits(p *engine.Parked, link *int) bool {
	if link == nil {
		return true
	}
	_, number, ok := engine.SplitToken(p.Token)
	return ok && p.After < *link && *link <= number
}

func method(hook *engine.WebhookWait) string {
	if hook.Method == "" {
		return "GET"
	}
	return hook.Method
}

func trimPath(path string) string { return strings.Trim(path, "/") }
