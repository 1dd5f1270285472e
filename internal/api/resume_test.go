package api

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reprise-engine/reprise/internal/links"
	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/queue"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

func TestResume(t *testing.T) {
	f := newFixture(t)
	answer, body := f.call(t, http.MethodPost, f.resumePath(t, 7), `{"resumed":"yes"}`, "Content-Type", "application/json")
	require.Equal(t, http.StatusOK, answer.StatusCode)
	require.Equal(t, "application/json; charset=utf-8", answer.Header.Get("Content-Type"))
	require.JSONEq(t, `{"message":"Workflow was started"}`, body)
	require.Len(t, f.resumes, 1)
	r := f.resumes[0]
	require.Equal(t, executionID, r.Execution)
	require.Equal(t, 7, *r.Link)
	require.Equal(t, http.MethodPost, r.Method)
	require.Empty(t, r.Suffix)
}

func TestResumeMethods(t *testing.T) {
	for method, status := range map[string]int{
		"GET": 200, "POST": 200, "PUT": 200, "PATCH": 200, "DELETE": 200,
		"HEAD": 405, "OPTIONS": 405, "TRACE": 405, "CONNECT": 405, "BREW": 405,
	} {
		t.Run(method, func(t *testing.T) {
			f := newFixture(t)
			answer, _ := f.call(t, method, f.resumePath(t, 0), "")
			require.Equal(t, status, answer.StatusCode)
			if status == 200 {
				require.Len(t, f.resumes, 1)
				require.Equal(t, method, f.resumes[0].Method, "the coordinator decides whether it fits")
			} else {
				require.Empty(t, f.resumes)
			}
		})
	}
}

// What people make of {{ $execution.resumeUrl }} in a workflow.
func TestResumeSuffix(t *testing.T) {
	link := func(f *fixture, t *testing.T) string { return f.resumePath(t, 1) }
	for name, c := range map[string]struct {
		target        func(f *fixture, t *testing.T) string
		suffix, query string
	}{
		"in the path": {func(f *fixture, t *testing.T) string {
			return strings.Replace(link(f, t), "?", "/order/paid?", 1) + "&a=1"
		}, "order/paid", `{"a":"1"}`},
		"slash at the end": {func(f *fixture, t *testing.T) string { return strings.Replace(link(f, t), "?", "/?", 1) }, "", `{}`},
		"escaped": {func(f *fixture, t *testing.T) string {
			return strings.Replace(link(f, t), "?", "/a%20b%2Fc/?", 1)
		}, "a b/c", `{}`},
		"behind the signature":         {func(f *fixture, t *testing.T) string { return link(f, t) + "/paid" }, "paid", `{}`},
		"query behind it":              {func(f *fixture, t *testing.T) string { return link(f, t) + "?a=1&b=2" }, "", `{"a":"1","b":"2"}`},
		"both behind it":               {func(f *fixture, t *testing.T) string { return link(f, t) + "/paid?a=1&a=2" }, "paid", `{"a":["1","2"]}`},
		"the path's before the others": {func(f *fixture, t *testing.T) string { return strings.Replace(link(f, t), "?", "/x?", 1) + "/y" }, "x", `{}`},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			answer, body := f.call(t, http.MethodGet, c.target(f, t), "")
			require.Equal(t, http.StatusOK, answer.StatusCode, body)
			require.Len(t, f.resumes, 1)
			require.Equal(t, c.suffix, f.resumes[0].Suffix)
			var item struct {
				Query map[string]any `json:"query"`
			}
			require.NoError(t, json.Unmarshal(f.resumes[0].Data, &item))
			_, ok := f.signer.CheckResume(executionID, item.Query[links.Parameter].(string))
			require.True(t, ok, "the signature alone is left")
			delete(item.Query, links.Parameter)
			got, err := json.Marshal(item.Query)
			require.NoError(t, err)
			require.JSONEq(t, c.query, string(got))
		})
	}
}

// A wait that asks for callers is ended by a call of one of them, whose proof is not kept.
func TestResumeByCallers(t *testing.T) {
	basic := &engine.Callers{Type: "httpBasicAuth", Credential: workflow.CredentialRef{ID: "b", Name: "basic"}}
	for name, c := range map[string]struct {
		wants     *engine.Callers
		headers   []string
		status    int
		code      string
		challenge string
	}{
		"basic":                 {basic, []string{"Authorization", "Basic YW5uOnJpZ2h0"}, 200, "", ""},
		"nothing sent":          {basic, nil, 401, queue.CodeUnauthorized, `Basic realm="Webhook"`},
		"wrong":                 {basic, []string{"Authorization", "Basic YW5uOndyb25n"}, 403, queue.CodeForbidden, ""},
		"header":                {&engine.Callers{Type: "httpHeaderAuth", Credential: workflow.CredentialRef{ID: "h"}}, []string{"X-Key", "right"}, 200, "", ""},
		"header, wrong":         {&engine.Callers{Type: "httpHeaderAuth", Credential: workflow.CredentialRef{ID: "h"}}, []string{"X-Key", "wrong"}, 403, queue.CodeForbidden, ""},
		"an unknown credential": {&engine.Callers{Type: "httpBasicAuth", Credential: workflow.CredentialRef{ID: "x", Name: "secret-name"}}, []string{"Authorization", "Basic Og=="}, 500, queue.CodeInternal, ""},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, func(config *Config) {
				config.Credentials = func(_ context.Context, kind string, ref workflow.CredentialRef) (map[string]any, error) {
					data := map[string]map[string]any{"b": {"user": "ann", "password": "right"}, "h": {"name": "X-Key", "value": "right"}}[ref.ID]
					if data == nil {
						return nil, errors.New("no such credential")
					}
					return data, nil
				}
			})
			f.callers = c.wants
			f.resume = func(r queue.ResumeRequest) (*queue.ResumeAnswer, error) {
				require.Equal(t, c.wants, r.Checked)
				return &queue.ResumeAnswer{Response: engine.WebhookResponse{Body: "thanks"}}, nil
			}
			answer, body := f.call(t, http.MethodPost, f.resumePath(t, 1), `{"n":1}`, append(c.headers, "Content-Type", "application/json")...)
			require.Equal(t, c.status, answer.StatusCode, body)
			require.Equal(t, c.challenge, answer.Header.Get("WWW-Authenticate"))
			require.NotContains(t, body, "secret-name")
			if c.status != 200 {
				require.Empty(t, f.resumes)
				require.Contains(t, body, `"code":"`+c.code+`"`)
				return
			}
			require.Equal(t, "thanks", body)
			require.Len(t, f.resumes, 1)
			var item struct {
				Headers map[string]string
				Body    json.RawMessage
			}
			require.NoError(t, json.Unmarshal(f.resumes[0].Data, &item))
			require.JSONEq(t, `{"n":1}`, string(item.Body))
			require.Contains(t, item.Headers, "content-type")
			require.NotContains(t, item.Headers, strings.ToLower(c.headers[0]))
		})
	}
}

// Between the two questions the wait may have become another, with other callers.
func TestResumeByCallersOfAnotherWait(t *testing.T) {
	f := newFixture(t, func(config *Config) {
		config.Credentials = func(context.Context, string, workflow.CredentialRef) (map[string]any, error) {
			return map[string]any{"user": "ann", "password": "right"}, nil
		}
	})
	f.callers = &engine.Callers{Type: "httpBasicAuth", Credential: workflow.CredentialRef{ID: "b", Name: "secret-name"}}
	f.resume = func(queue.ResumeRequest) (*queue.ResumeAnswer, error) {
		return nil, &queue.Problem{Code: queue.CodeUnauthorized, Message: "prove it"}
	}
	answer, body := f.call(t, http.MethodPost, f.resumePath(t, 1), "", "Authorization", "Basic YW5uOnJpZ2h0")
	require.Equal(t, 401, answer.StatusCode)
	require.NotContains(t, body, "secret-name")
}

func TestResumeRefusals(t *testing.T) {
	problem := func(code string) func(queue.ResumeRequest) (*queue.ResumeAnswer, error) {
		return func(queue.ResumeRequest) (*queue.ResumeAnswer, error) {
			return nil, &queue.Problem{Code: code, Message: "said the coordinator"}
		}
	}
	for name, c := range map[string]struct {
		resume func(queue.ResumeRequest) (*queue.ResumeAnswer, error)
		status int
		code   string
		retry  bool
	}{
		"unknown execution": {problem(queue.CodeNotFound), 404, queue.CodeNotFound, false},
		"not waiting":       {problem(queue.CodeConflict), 409, queue.CodeConflict, false},
		"expired":           {problem(queue.CodeGone), 410, queue.CodeGone, false},
		"too large":         {problem(queue.CodeTooLarge), 413, queue.CodeTooLarge, false},
		"unavailable":       {problem(queue.CodeUnavailable), 503, queue.CodeUnavailable, true},
		"full":              {problem(queue.CodeFull), 507, queue.CodeFull, true},
		"no coordinator": {func(queue.ResumeRequest) (*queue.ResumeAnswer, error) { return nil, queue.ErrNoCoordinator },
			503, queue.CodeUnavailable, true},
		"a fault": {func(queue.ResumeRequest) (*queue.ResumeAnswer, error) {
			return nil, errors.New("redis: password wrong")
		},
			500, queue.CodeInternal, false},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.resume = c.resume
			answer, body := f.call(t, http.MethodPost, f.resumePath(t, 1), "")
			require.Equal(t, c.status, answer.StatusCode)
			requireProblem(t, body, c.code)
			require.NotContains(t, body, "password")
			require.Equal(t, c.retry, answer.Header.Get("Retry-After") != "")
		})
	}
}

func TestResumeIsNotPrefetched(t *testing.T) {
	f := newFixture(t)
	for _, header := range [][2]string{{"Sec-Purpose", "prefetch;prerender"}, {"Purpose", "prefetch"}, {"X-Moz", "prefetch"}, {"X-Purpose", "preview"}} {
		answer, _ := f.call(t, http.MethodGet, f.resumePath(t, 1), "", header[0], header[1])
		require.Equal(t, http.StatusServiceUnavailable, answer.StatusCode)
	}
	require.Empty(t, f.resumes)
}

func TestResumeResponse(t *testing.T) {
	for name, c := range map[string]struct {
		response    engine.WebhookResponse
		status      int
		contentType string
	}{
		"nothing":       {engine.WebhookResponse{Status: 204}, 204, ""},
		"JSON":          {engine.WebhookResponse{Body: `{"a":1}`}, 200, "application/json; charset=utf-8"},
		"text":          {engine.WebhookResponse{Status: 202, Body: "<b>queued</b>"}, 202, "text/plain; charset=utf-8"},
		"as it says":    {engine.WebhookResponse{Status: 418, Body: "<b>tea</b>", Headers: map[string]string{"Content-Type": "text/html"}}, 418, "text/html"},
		"no status":     {engine.WebhookResponse{Status: 42, Body: "x"}, 200, "text/plain; charset=utf-8"},
		"own headers":   {engine.WebhookResponse{Body: "x", Headers: map[string]string{"Content-Length": "77", "transfer-encoding": "chunked"}}, 200, "text/plain; charset=utf-8"},
		"other headers": {engine.WebhookResponse{Body: "x", Headers: map[string]string{"X-Lab": "yes"}}, 200, "text/plain; charset=utf-8"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.resume = func(queue.ResumeRequest) (*queue.ResumeAnswer, error) {
				return &queue.ResumeAnswer{Response: c.response}, nil
			}
			answer, body := f.call(t, http.MethodPost, f.resumePath(t, 1), "")
			require.Equal(t, c.status, answer.StatusCode)
			require.Equal(t, c.response.Body, body)
			require.Equal(t, c.contentType, answer.Header.Get("Content-Type"))
			require.Equal(t, c.response.Headers["X-Lab"], answer.Header.Get("X-Lab"))
			require.Empty(t, answer.Header.Get("Transfer-Encoding"))
			require.NotEqual(t, "77", answer.Header.Get("Content-Length"))
			require.Contains(t, answer.Header.Get("Content-Security-Policy"), "sandbox", "no page of a workflow has this server's origin")
		})
	}
}

func TestResumeAnsweredAfterTheEnd(t *testing.T) {
	run := func(last string) json.RawMessage {
		return json.RawMessage(`{"resultData":{"lastNodeExecuted":"B","runData":{"A":[{"data":{"main":[[{"json":{"a":1}}]]}}],"B":` + last + `}}}`)
	}
	for name, c := range map[string]struct {
		execution *queue.Execution
		err       error
		status    int
		body      string
	}{
		"first item": {&queue.Execution{Status: engine.StatusSuccess, Data: run(`[{"data":{"main":[[{"json":{"n":0}}]]}},{"data":{"main":[[{"json":{"n":1.10}},{"json":{"n":2}}]]}}]`)},
			nil, 201, `{"n":1.10}`},
		"other output": {&queue.Execution{Status: engine.StatusSuccess, Data: run(`[{"data":{"main":[[],[{"json":{"n":2}}]]}}]`)},
			nil, 201, `{"n":2}`},
		"no item": {&queue.Execution{Status: engine.StatusSuccess, Data: run(`[{"data":{"main":[[]]}}]`)},
			nil, 500, `{"code":0,"message":"No item to return was found"}`},
		"no output": {&queue.Execution{Status: engine.StatusSuccess, Data: run(`[{}]`)},
			nil, 500, `{"code":0,"message":"No item to return was found"}`},
		"no node": {&queue.Execution{Status: engine.StatusSuccess, Data: json.RawMessage(`{"resultData":{"runData":{}}}`)},
			nil, 500, `{"code":0,"message":"No item to return was found"}`},
		"failed":     {&queue.Execution{Status: engine.StatusError}, nil, 500, `{"message":"Error in workflow"}`},
		"canceled":   {&queue.Execution{Status: engine.StatusCanceled}, nil, 500, `{"message":"Error in workflow"}`},
		"unreadable": {&queue.Execution{Status: engine.StatusSuccess, Data: json.RawMessage(`[]`)}, nil, 500, `{"code":"internal","message":"the execution's output cannot be read"}`},
		"lost": {nil, &queue.Problem{Code: queue.CodeNotFound, Message: "no such execution"}, 404,
			`{"code":"not_found","message":"the execution goes on, but its output is not known: no such execution"}`},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.resume = func(queue.ResumeRequest) (*queue.ResumeAnswer, error) {
				return &queue.ResumeAnswer{AfterEnd: true, Response: engine.WebhookResponse{Status: 201}}, nil
			}
			f.waitFinished = func(context.Context) (*queue.Execution, error) { return c.execution, c.err }
			answer, body := f.call(t, http.MethodPost, f.resumePath(t, 1), "")
			require.Equal(t, c.status, answer.StatusCode)
			require.Equal(t, c.body, body)
			require.Equal(t, "application/json; charset=utf-8", answer.Header.Get("Content-Type"))
		})
	}
}

func TestResumeDoesNotWaitForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		f.resume = func(queue.ResumeRequest) (*queue.ResumeAnswer, error) {
			return &queue.ResumeAnswer{AfterEnd: true}, nil
		}
		f.waitFinished = func(ctx context.Context) (*queue.Execution, error) {
			_, bounded := ctx.Deadline()
			require.False(t, bounded, "the questions have their own time limit")
			<-ctx.Done()
			return nil, ctx.Err()
		}
		begin := time.Now()
		answer, body := f.call(t, http.MethodPost, f.resumePath(t, 1), "")
		require.Equal(t, 5*time.Minute, time.Since(begin))
		require.Equal(t, http.StatusAccepted, answer.StatusCode)
		requireProblem(t, body, "running")
	})
}
