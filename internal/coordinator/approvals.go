package coordinator

import (
	"context"
	"crypto/subtle"
	"fmt"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/reprise-engine/reprise/internal/links"
	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/queue"
	"github.com/reprise-engine/reprise/pkg/state"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// approvals lists open questions, oldest first.
func (c *Coordinator) approvals(ctx context.Context, r *queue.ApprovalsRequest) (*queue.ApprovalsAnswer, error) {
	answer := &queue.ApprovalsAnswer{Approvals: []queue.Approval{}}
	if r.Execution != "" {
		s, err := c.lookOpen(ctx, r.Execution)
		if err != nil {
			return nil, err
		}
		for _, p := range s.ParkedInOrder() {
			if p.Wait.Kind == engine.WaitApproval {
				answer.Approvals = append(answer.Approvals, c.approvalOf(s, p))
			}
		}
		return answer, nil
	}
	limit := r.Limit
	if limit <= 0 {
		limit = defaultListLimit
	}
	asked, next, err := c.config.Store.Questions(ctx, limit, r.Cursor)
	if err != nil {
		return nil, problemOf(err)
	}
	answer.Cursor = next
	var ids []engine.ExecutionID
	for _, q := range asked {
		if id, _, ok := engine.SplitToken(q.Token); ok && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	stored, err := c.config.Store.LoadOpen(ctx, ids)
	if err != nil {
		return nil, problemOf(err)
	}
	states := make(map[engine.ExecutionID]*engine.State, len(ids))
	for i, id := range ids {
		if stored[i] == nil {
			continue
		}
		if states[id], err = engine.Restore(stored[i].Tables); err != nil {
			return nil, &queue.Problem{Code: queue.CodeInternal, Message: fmt.Sprintf("execution %s: %v", id, err)}
		}
	}
	for _, q := range asked {
		id, _, _ := engine.SplitToken(q.Token)
		s := states[id]
		if s == nil {
			continue
		}
		if p := s.Parked[q.Token]; p != nil { // else it was decided since the index was read
			answer.Approvals = append(answer.Approvals, c.approvalOf(s, p))
		}
	}
	return answer, nil
}

// look reads an execution as it is stored now.
func (c *Coordinator) look(ctx context.Context, id engine.ExecutionID) (*engine.State, error) {
	s, _, err := c.storedState(ctx, id, c.config.Store.Load)
	return s, err
}

// lookOpen is look without run data, which costs the same however much of that there is.
func (c *Coordinator) lookOpen(ctx context.Context, id engine.ExecutionID) (*engine.State, error) {
	s, _, err := c.storedState(ctx, id, c.config.Store.LoadOpen)
	return s, err
}

func (c *Coordinator) storedState(ctx context.Context, id engine.ExecutionID, load func(context.Context, []engine.ExecutionID) ([]*state.Stored, error)) (*engine.State, *state.Stored, error) {
	if err := ValidID(id); err != nil {
		return nil, nil, badRequest("%v", err)
	}
	stored, err := load(ctx, []engine.ExecutionID{id})
	switch {
	case err != nil:
		return nil, nil, problemOf(err)
	case stored[0] == nil:
		return nil, nil, notFound(id)
	}
	s, err := engine.Restore(stored[0].Tables)
	if err != nil {
		return nil, nil, &queue.Problem{Code: queue.CodeInternal, Message: fmt.Sprintf("execution %s: %v", id, err)}
	}
	return s, stored[0], nil
}

// approvalOf shows an open question.
func (c *Coordinator) approvalOf(s *engine.State, p *engine.Parked) queue.Approval {
	a := queue.Approval{
		ID: p.Token, Execution: s.Meta.ID, Workflow: s.Meta.WorkflowName, Node: p.Entry.Node, RunIndex: p.Entry.Run,
		Asked: p.Since, Expires: p.Wait.Until, Bind: bindOf(s, &p.Entry),
	}
	if action := s.Action(&p.Entry); action != nil {
		a.CallID, a.Arguments = action.ID, shownArguments(action.Input)
	}
	if q := p.Wait.Question; q != nil {
		a.Title, a.Text, a.Approve, a.Deny, a.FreeText, a.Tool = q.Title, q.Text, q.Approve, q.Deny, q.FreeText, q.Tool
		if len(q.Arguments) > 0 {
			a.Arguments = q.Arguments
		}
	}
	if c.config.Links != nil {
		a.URL = c.config.Links.ApprovalURL(a.ID, a.Bind)
	}
	return a
}

// approval shows one question, also after it was decided.
func (c *Coordinator) approval(ctx context.Context, r *queue.ApprovalRequest) (*queue.Approval, error) {
	id, _, ok := engine.SplitToken(r.ID)
	if !ok || ValidID(id) != nil {
		return nil, noQuestion(r.ID)
	}
	s, err := c.lookOpen(ctx, id)
	if err != nil {
		return nil, err
	}
	if p := s.Parked[r.ID]; p != nil && p.Wait.Kind == engine.WaitApproval {
		a := c.approvalOf(s, p)
		return &a, nil
	}
	if s, err = c.look(ctx, id); err != nil {
		return nil, err
	}
	if a := decided(s, r.ID); a != nil {
		return a, nil
	}
	return nil, noQuestion(r.ID)
}

func noQuestion(id string) *queue.Problem {
	return &queue.Problem{Code: queue.CodeNotFound, Message: fmt.Sprintf("no question with the id %q", id)}
}

// decided is a question that is not open any more, as far as its run's record
// tells; nil when there was none of this id.
func decided(s *engine.State, token string) *queue.Approval {
	for node, runs := range s.Run {
		for run, record := range runs {
			if record == nil || record.Metadata == nil || record.Metadata.Wait != token || record.Metadata.Outcome == "" {
				continue
			}
			a := &queue.Approval{
				ID: token, Execution: s.Meta.ID, Workflow: s.Meta.WorkflowName, Node: node, RunIndex: run,
				CallID: record.Metadata.CallID, Outcome: record.Metadata.Outcome, Decision: record.Metadata.Decision,
				Asked: record.StartTime,
			}
			if asked := record.InputOverride[workflow.Tool]; len(asked) > 0 && len(asked[0]) > 0 {
				a.Arguments = shownArguments(asked[0][0].JSON)
			}
			a.Bind = links.Bind(s.Meta.ID, node, run, a.CallID, a.Arguments)
			return a
		}
	}
	return nil
}

// decide decides a question. Of two decisions the first counts, whichever
// coordinators they reach.
func (c *Coordinator) decide(ctx context.Context, r *queue.DecideRequest) (struct{}, error) {
	id, _, ok := engine.SplitToken(r.ID)
	if !ok || ValidID(id) != nil {
		return struct{}{}, noQuestion(r.ID)
	}
	decision := r.Decision
	var node string
	err := c.ask(ctx, id, func(x *execution) error {
		p := x.state.Parked[r.ID]
		if p == nil || p.Wait.Kind != engine.WaitApproval {
			return notOpen(x.state, r)
		}
		if r.Bind != "" && subtle.ConstantTimeCompare([]byte(r.Bind), []byte(bindOf(x.state, &p.Entry))) != 1 {
			return forbidden(r.ID)
		}
		now := c.now()
		if p.Wait.Until != 0 && now >= p.Wait.Until {
			return gone("the question %s expired at %s", r.ID, clock(p.Wait.Until))
		}
		if x.state.Meta.Error != nil {
			return gone("execution %s has failed and is about to end", id)
		}
		decision.At, node = now, p.Entry.Node
		return x.apply(c, engine.Resumed{At: now, Token: r.ID, Decision: &decision})
	})
	if err != nil {
		return struct{}{}, err
	}
	c.log.Info("question decided", zap.String("execution_id", string(id)), zap.String("node", node), zap.String("question", r.ID),
		zap.Bool("approved", decision.Approved), zap.String("by", decision.By))
	return struct{}{}, nil
}

// notOpen says why a question cannot be decided that is not open.
func notOpen(s *engine.State, r *queue.DecideRequest) *queue.Problem {
	if a := decided(s, r.ID); a != nil {
		if r.Bind != "" && subtle.ConstantTimeCompare([]byte(r.Bind), []byte(a.Bind)) != 1 {
			return forbidden(r.ID)
		}
		switch a.Outcome {
		case engine.OutcomeExpired:
			return gone("the question %s expired before it was decided", r.ID)
		case engine.OutcomeCanceled:
			return gone("the question %s is void: its execution is %s", r.ID, s.Meta.Status)
		}
		return conflict("the question %s was decided before: %s", r.ID, a.Outcome)
	}
	for _, job := range s.Jobs {
		if job.Token() == r.ID {
			// Whoever knows the link may be faster than the node that asks.
			return &queue.Problem{Code: queue.CodeUnavailable, Message: fmt.Sprintf("the question %s is not asked yet; try again", r.ID)}
		}
	}
	return noQuestion(r.ID)
}

func forbidden(id string) *queue.Problem {
	return &queue.Problem{Code: queue.CodeForbidden, Message: fmt.Sprintf("this link does not belong to the question %s: it was made for another call or other arguments", id)}
}

func gone(format string, args ...any) *queue.Problem {
	return &queue.Problem{Code: queue.CodeGone, Message: fmt.Sprintf(format, args...)}
}

func clock(milliseconds int64) string {
	return time.UnixMilli(milliseconds).UTC().Format(time.RFC3339)
}
