package api

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/reprise-engine/reprise/internal/links"
	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/queue"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

const executionID engine.ExecutionID = "order-4711"

// backend keeps one question as coordinators do, and records what it is asked. The
// funcs replace its answers.
type backend struct {
	mu       sync.Mutex
	approval *queue.Approval
	resumes  []queue.ResumeRequest
	callers  *engine.Callers
	decides  []queue.DecideRequest

	resume       func(queue.ResumeRequest) (*queue.ResumeAnswer, error)
	approvalErr  error
	decideErr    error
	get          func(engine.ExecutionID) (*queue.Execution, error)
	waitFinished func(context.Context) (*queue.Execution, error)
}

func (b *backend) Callers(_ context.Context, r queue.ResumeRequest) (*engine.Callers, error) {
	if len(r.Data) > 0 {
		return nil, errors.New("what a caller sends is told before it is known whom the wait asks for")
	}
	return b.callers, nil
}

func (b *backend) Resume(_ context.Context, r queue.ResumeRequest) (*queue.ResumeAnswer, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.resumes = append(b.resumes, r)
	if b.resume != nil {
		return b.resume(r)
	}
	return &queue.ResumeAnswer{Response: engine.WebhookResponse{Body: `{"message":"Workflow was started"}`}}, nil
}

func (b *backend) Approval(_ context.Context, id string) (*queue.Approval, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.approvalErr != nil:
		return nil, b.approvalErr
	case b.approval == nil || b.approval.ID != id:
		return nil, &queue.Problem{Code: queue.CodeNotFound, Message: "no such approval"}
	}
	a := *b.approval
	return &a, nil
}

func (b *backend) Decide(_ context.Context, r queue.DecideRequest) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.decides = append(b.decides, r)
	switch {
	case b.decideErr != nil:
		return b.decideErr
	case b.approval == nil || b.approval.ID != r.ID:
		return &queue.Problem{Code: queue.CodeNotFound, Message: "no such approval"}
	case b.approval.Bind != r.Bind:
		return &queue.Problem{Code: queue.CodeForbidden, Message: "another question"}
	case b.approval.Outcome != "":
		return &queue.Problem{Code: queue.CodeConflict, Message: "decided before"}
	}
	b.approval.Outcome, b.approval.Decision = engine.OutcomeDenied, &r.Decision
	if r.Decision.Approved {
		b.approval.Outcome = engine.OutcomeApproved
	}
	return nil
}

func (b *backend) Get(_ context.Context, id engine.ExecutionID, _ bool) (*queue.Execution, error) {
	if b.get != nil {
		return b.get(id)
	}
	return nil, &queue.Problem{Code: queue.CodeNotFound, Message: "no such execution"}
}

func (b *backend) WaitFinished(ctx context.Context, _ engine.ExecutionID, _, _ bool) (*queue.Execution, error) {
	return b.waitFinished(ctx)
}

func (b *backend) outcome() engine.Outcome {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.approval.Outcome
}

// fixture is a handler with its backend, and everything that it logs.
type fixture struct {
	*backend
	signer  *links.Signer
	handler http.Handler
	logs    *observer.ObservedLogs
}

const publicURL = "https://flows.example.com/base"

func newFixture(t testing.TB, change ...func(*Config)) *fixture {
	t.Helper()
	core, logs := observer.New(zapcore.DebugLevel)
	f := &fixture{
		backend: &backend{approval: question()},
		signer:  links.New([]byte("0123456789abcdef0123456789abcdef"), publicURL),
		logs:    logs,
	}
	c := Config{Backend: f.backend, Signer: f.signer, Log: zap.New(core), Now: func() time.Time { return noon }}
	for _, f := range change {
		f(&c)
	}
	f.handler = Handler(c)
	return f
}

func question() *queue.Approval {
	arguments := []byte(`{"to":"Ada","amount":100.10}`)
	return &queue.Approval{
		ID: string(executionID) + "_3", Execution: executionID, Workflow: "Orders", Node: "Ask first", CallID: "call_1",
		Tool: "Send money", Arguments: arguments, Title: "Send the money?", Text: "It cannot be taken back.",
		Approve: "Send it", Deny: "Do not", Asked: noon.UnixMilli(), Expires: noon.Add(2 * time.Hour).UnixMilli(),
		Bind: links.Bind(executionID, "Ask first", 0, "call_1", arguments),
	}
}

// path makes the request target of a link, as a proxy that removes the public
// URL's path sends it.
func path(t testing.TB, link string) string {
	t.Helper()
	rest, ok := strings.CutPrefix(link, publicURL)
	require.True(t, ok, link)
	return rest
}

func (f *fixture) approvalPath(t testing.TB) string {
	return path(t, f.signer.ApprovalURL(f.approval.ID, f.approval.Bind))
}

func (f *fixture) resumePath(t testing.TB, link int) string {
	return path(t, f.signer.ResumeURL(executionID, link))
}

// call sends a request and returns the answer. headers are name, value, ….
func (f *fixture) call(t testing.TB, method, target, body string, headers ...string) (*http.Response, string) {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, target, strings.NewReader(body))
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	f.handler.ServeHTTP(w, r)
	answer := w.Result()
	data, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	f.noSecrets(t, target, body)
	return answer, string(data)
}

func (f *fixture) post(t testing.TB, target string, form url.Values) (*http.Response, string) {
	t.Helper()
	return f.call(t, http.MethodPost, target, form.Encode(), "Content-Type", "application/x-www-form-urlencoded")
}

// noSecrets looks for the signature and the body in everything logged so far.
func (f *fixture) noSecrets(t testing.TB, target, body string) {
	t.Helper()
	u, err := url.Parse(target)
	require.NoError(t, err)
	for _, entry := range f.logs.All() {
		encoded, err := zapcore.NewJSONEncoder(zapcore.EncoderConfig{MessageKey: "m"}).EncodeEntry(entry.Entry, entry.Context)
		require.NoError(t, err)
		if signature := u.Query().Get(links.Parameter); signature != "" {
			require.NotContains(t, encoded.String(), signature)
		}
		if body != "" {
			require.NotContains(t, encoded.String(), body)
		}
	}
}

func requireProblem(t testing.TB, body, code string) {
	t.Helper()
	require.Contains(t, body, `"code":"`+code+`"`)
	require.Contains(t, body, `"message":"`)
}

func TestElsewhere(t *testing.T) {
	f := newFixture(t)
	for _, target := range []string{"/", "/healthz", "/webhook-waiting", "/webhook-waiting/", "/approval", "/approval/", "/approval/a/b", "/base/nothing"} {
		answer, body := f.call(t, http.MethodGet, target, "")
		require.Equal(t, http.StatusNotFound, answer.StatusCode, target)
		require.Equal(t, "application/json; charset=utf-8", answer.Header.Get("Content-Type"))
		requireProblem(t, body, queue.CodeNotFound)
	}
}

// A proxy may keep the path of the public URL or remove it.
func TestBelowThePublicPath(t *testing.T) {
	f := newFixture(t)
	for _, target := range []string{f.approvalPath(t), "/base" + f.approvalPath(t)} {
		answer, _ := f.call(t, http.MethodGet, target, "")
		require.Equal(t, http.StatusOK, answer.StatusCode, target)
	}
	answer, _ := f.call(t, http.MethodGet, "/based"+f.approvalPath(t), "")
	require.Equal(t, http.StatusNotFound, answer.StatusCode)
}
