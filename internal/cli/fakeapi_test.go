package cli

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-engine/reprise/internal/embedded"
	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/queue"
)

// fakeAPI answers as coordinators do, for what is awkward to bring about with
// real ones: pages, many failed executions, questions that expired.
type fakeAPI struct {
	url string

	mu         sync.Mutex
	executions []queue.Execution // newest first
	approvals  []queue.Approval  // oldest first
	workflows  map[string]queue.StoredWorkflow
	retries    []queue.RetryRequest
	resumes    []queue.ResumeRequest
	decisions  []queue.DecideRequest
	submitted  []engine.ExecutionID
	refusals   []*queue.Problem // of submissions, one after the other
}

func notFound(what string) error {
	return &queue.Problem{Code: queue.CodeNotFound, Message: what + " not found"}
}

// pageSize is small, so that there is more than one page.
const pageSize = 2

func startFakeAPI(t *testing.T) *fakeAPI {
	t.Helper()
	server, err := embedded.StartNATS(t.TempDir(), embedded.NATSOptions{})
	require.NoError(t, err)
	t.Cleanup(server.Shutdown)
	f := &fakeAPI{url: server.URL, workflows: map[string]queue.StoredWorkflow{}}
	conn, err := queue.Connect(t.Context(), queue.Config{URL: server.URL})
	require.NoError(t, err)
	t.Cleanup(conn.Close)
	stop, err := conn.ServeAPI(queue.API{Submit: f.submit, Get: f.get, List: f.list, More: map[string]queue.Handler{
		queue.EndpointApprovals: queue.Handle(f.listApprovals), queue.EndpointApproval: queue.Handle(f.approval),
		queue.EndpointDecide: queue.Handle(f.decide), queue.EndpointRetry: queue.Handle(f.retry), queue.EndpointResume: queue.Handle(f.resume),
		queue.EndpointWorkflowPut: queue.Handle(f.put), queue.EndpointWorkflowGet: queue.Handle(f.workflow),
		queue.EndpointWorkflowList: queue.Handle(f.listWorkflows), queue.EndpointWorkflowDelete: queue.Handle(f.delete),
		queue.EndpointWorkflowActive: queue.Handle(f.activate),
	}})
	require.NoError(t, err)
	t.Cleanup(stop)
	return f
}

// run runs a command line against the API.
func (f *fakeAPI) run(t *testing.T, args ...string) outcome {
	t.Helper()
	return reprise(t, append(args, "--nats", f.url)...)
}

func (f *fakeAPI) submit(_ context.Context, s *queue.Submission, answer func(engine.ExecutionID, *queue.Problem)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.submitted = append(f.submitted, s.ID)
	if len(f.refusals) > 0 {
		first := f.refusals[0]
		f.refusals = f.refusals[1:]
		answer("", first)
		return
	}
	answer(s.ID, nil)
}

func (f *fakeAPI) get(_ context.Context, r *queue.GetRequest) (*queue.Execution, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, x := range f.executions {
		if x.ID == r.ID {
			return &x, nil
		}
	}
	return nil, notFound("execution " + string(r.ID))
}

func (f *fakeAPI) list(_ context.Context, r *queue.ListRequest) (*queue.ListAnswer, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := slices.DeleteFunc(slices.Clone(f.executions), func(x queue.Execution) bool {
		return r.Status != "" && x.Status != r.Status || r.WorkflowID != "" && x.WorkflowID != r.WorkflowID
	})
	from := slices.IndexFunc(all, func(x queue.Execution) bool { return string(x.ID) == r.Cursor }) + 1
	answer := &queue.ListAnswer{Executions: all[from:min(len(all), from+pageSize)]}
	if from+pageSize < len(all) {
		answer.Cursor = string(all[from+pageSize-1].ID)
	}
	return answer, nil
}

func (f *fakeAPI) listApprovals(_ context.Context, r *queue.ApprovalsRequest) (*queue.ApprovalsAnswer, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := slices.DeleteFunc(slices.Clone(f.approvals), func(a queue.Approval) bool {
		return a.Outcome != "" || r.Execution != "" && a.Execution != r.Execution
	})
	from := slices.IndexFunc(all, func(a queue.Approval) bool { return a.ID == r.Cursor }) + 1
	answer := &queue.ApprovalsAnswer{Approvals: all[from:min(len(all), from+pageSize)]}
	if from+pageSize < len(all) {
		answer.Cursor = all[from+pageSize-1].ID
	}
	return answer, nil
}

func (f *fakeAPI) approval(_ context.Context, r *queue.ApprovalRequest) (*queue.Approval, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, a := range f.approvals {
		if a.ID == r.ID {
			return &a, nil
		}
	}
	return nil, notFound("approval")
}

func (f *fakeAPI) decide(_ context.Context, r *queue.DecideRequest) (struct{}, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := range f.approvals {
		a := &f.approvals[i]
		switch {
		case a.ID != r.ID:
			continue
		case a.Outcome == engine.OutcomeExpired || a.Outcome == engine.OutcomeCanceled:
			return struct{}{}, &queue.Problem{Code: queue.CodeGone, Message: "gone"}
		case a.Outcome != "":
			return struct{}{}, &queue.Problem{Code: queue.CodeConflict, Message: "decided"}
		}
		a.Outcome, a.Decision = engine.OutcomeDenied, &r.Decision
		if r.Decision.Approved {
			a.Outcome = engine.OutcomeApproved
		}
		f.decisions = append(f.decisions, *r)
		return struct{}{}, nil
	}
	return struct{}{}, notFound("approval")
}

func (f *fakeAPI) retry(_ context.Context, r *queue.RetryRequest) (*queue.SubmitAnswer, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.retries = append(f.retries, *r)
	if strings.HasPrefix(string(r.ID), "stuck") {
		return nil, &queue.Problem{Code: queue.CodeConflict, Message: "its run data is gone"}
	}
	x := queue.Execution{ID: r.NewID, Status: engine.StatusSuccess, RetryOf: r.ID, StartedAt: 1 << 50}
	if strings.HasPrefix(string(r.ID), "hopeless") {
		x.Status, x.Error = engine.StatusError, &engine.NodeError{Message: "still broken"}
	}
	f.executions = append([]queue.Execution{x}, f.executions...)
	return &queue.SubmitAnswer{ID: r.NewID}, nil
}

func (f *fakeAPI) resume(ctx context.Context, r *queue.ResumeRequest) (*queue.ResumeAnswer, error) {
	x, err := f.get(ctx, &queue.GetRequest{ID: r.Execution})
	if err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, w := range x.Waiting {
		if w.Kind == engine.WaitWebhook {
			f.resumes = append(f.resumes, *r)
			return &queue.ResumeAnswer{Response: engine.WebhookResponse{Body: "thank you"}}, nil
		}
	}
	return nil, &queue.Problem{Code: queue.CodeConflict, Message: "no wait for a webhook fits"}
}

func (f *fakeAPI) put(_ context.Context, r *queue.WorkflowPutRequest) (*queue.StoredWorkflow, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if r.ID == "refused" {
		return nil, &queue.Problem{Code: queue.CodeInvalidWorkflow, Message: "it has a teleporter"}
	}
	w := queue.StoredWorkflow{ID: r.ID, Name: "Lab", Hash: "h", UpdatedAt: 1_700_000_000_000, Document: r.Document}
	f.workflows[r.ID] = w
	w.Document = nil
	return &w, nil
}

func (f *fakeAPI) workflow(_ context.Context, r *queue.WorkflowRequest) (*queue.StoredWorkflow, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	w, ok := f.workflows[r.ID]
	if !ok {
		return nil, notFound("workflow")
	}
	return &w, nil
}

func (f *fakeAPI) listWorkflows(context.Context, *queue.WorkflowRequest) (*queue.WorkflowsAnswer, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	answer := &queue.WorkflowsAnswer{}
	for _, w := range f.workflows {
		w.Document = nil
		answer.Workflows = append(answer.Workflows, w)
	}
	return answer, nil
}

func (f *fakeAPI) activate(_ context.Context, r *queue.WorkflowActivateRequest) (*queue.StoredWorkflow, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	w, ok := f.workflows[r.ID]
	if !ok {
		return nil, notFound("workflow")
	}
	w.Active = r.Active
	f.workflows[r.ID] = w
	return &w, nil
}

func (f *fakeAPI) delete(ctx context.Context, r *queue.WorkflowRequest) (struct{}, error) {
	if _, err := f.workflow(ctx, r); err != nil {
		return struct{}{}, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.workflows, r.ID)
	return struct{}{}, nil
}
