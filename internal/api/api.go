// Package api is the HTTP side of coordinators: the signed links that executions
// hand out lead here. It keeps no state and asks any coordinator, so it does not
// matter which process a link reaches.
//
//	ANY       /webhook-waiting/{execution}[/{suffix}]   resumes a wait, with the call as its item
//	GET       /approval/{token}                         shows a question, whoever looks
//	POST      /approval/{token}                         decides it, once
//
// Link previews and mail scanners open links with GET and HEAD. So only POST
// decides a question, and HEAD does nothing at all. A resume URL is called by programs, with
// the method that the workflow says.
//
// The signature in a link is the permission to use it. It is checked before
// anything else is done, and is not logged; neither is what is sent.
package api

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"
	"go.uber.org/zap"

	"github.com/reprise-engine/reprise/internal/callers"
	"github.com/reprise-engine/reprise/internal/links"
	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/queue"
)

// Backend asks the coordinators. Refusals are *queue.Problem.
type Backend interface {
	// Callers says who may end the wait that a request would end.
	Callers(ctx context.Context, r queue.ResumeRequest) (*engine.Callers, error)
	Resume(ctx context.Context, r queue.ResumeRequest) (*queue.ResumeAnswer, error)
	Approval(ctx context.Context, id string) (*queue.Approval, error)
	Decide(ctx context.Context, r queue.DecideRequest) error
	Get(ctx context.Context, id engine.ExecutionID, data bool) (*queue.Execution, error)
	WaitFinished(ctx context.Context, id engine.ExecutionID, data, waiting bool) (*queue.Execution, error)
}

var _ Backend = (*queue.Conn)(nil)

// Config is what the handler needs. Backend and Signer must be set.
type Config struct {
	Backend Backend
	Signer  *links.Signer
	// Credentials of callers; nil refuses calls for waits that ask for any.
	Credentials callers.Credentials
	Log         *zap.Logger      // nil means none
	Now         func() time.Time // nil is time.Now
	// MaxBody is the most bytes that a resume call may send; 0 is 16 MB.
	MaxBody int64
	// MaxWait is how long a resume call that is answered with the execution's output
	// waits for its end; 0 is 5 minutes.
	MaxWait time.Duration
}

const (
	defaultMaxBody = 16 << 20
	defaultMaxWait = 5 * time.Minute
	// maxDecision bounds the form of a decision: a person's words.
	maxDecision = 1 << 20
	// bodyTimeout is how long a caller may take to send a body.
	bodyTimeout = time.Minute
)

// retrySoon and retryLater are the seconds of Retry-After: for what is about to
// happen, and for a server that is away.
const (
	retrySoon  = 1
	retryLater = 3
)

type handler struct {
	Config
	public *url.URL // of the Signer; empty when that has none
}

// Handler serves the links. It may be mounted at the root or, for proxies that
// keep it, below the path of the public URL.
func Handler(c Config) http.Handler {
	if c.Log == nil {
		c.Log = zap.NewNop()
	}
	c.Log = c.Log.Named("api")
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.MaxBody <= 0 {
		c.MaxBody = defaultMaxBody
	}
	if c.MaxWait <= 0 {
		c.MaxWait = defaultMaxWait
	}
	h := &handler{Config: c}
	var err error
	if h.public, err = url.Parse(c.Signer.PublicURL()); err != nil {
		h.public = &url.URL{} // links cannot be made of it, so none lead here
	}
	r := chi.NewRouter()
	r.HandleFunc(links.ResumePath+"{execution}", h.resume)
	r.HandleFunc(links.ResumePath+"{execution}/*", h.resume)
	r.HandleFunc(links.ApprovalPath+"{token}", h.approval)
	r.NotFound(func(w http.ResponseWriter, _ *http.Request) {
		fail(w, http.StatusNotFound, queue.CodeNotFound, "there is nothing at this address")
	})
	return h.plainPath(r)
}

// plainPath gives the router the decoded path below the public URL's own. Ids hold
// nothing that is escaped, and a suffix is compared as it was written.
func (h *handler) plainPath(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.Header().Set("Referrer-Policy", "no-referrer") // the address is the permission
		w.Header().Set("Cache-Control", "no-store")
		u := *r.URL
		u.RawPath = ""
		if rest, ok := strings.CutPrefix(u.Path, strings.TrimRight(h.public.Path, "/")); ok && strings.HasPrefix(rest, "/") {
			u.Path = rest
		}
		r2 := *r
		r2.URL = &u
		next.ServeHTTP(w, &r2)
	})
}

// signature takes the signature and the other parameters apart. People write
// {{ $execution.resumeUrl }}/suffix and {{ $execution.resumeUrl }}?a=b, which puts
// both behind the signature; signatures hold neither character.
func signature(query url.Values) (signature, suffix string, rest url.Values) {
	rest = url.Values{}
	for name, values := range query {
		rest[name] = values
	}
	whole := query.Get(links.Parameter)
	signature = whole
	if i := strings.IndexAny(whole, "/?"); i >= 0 {
		signature = whole[:i]
		suffix, more, _ := strings.Cut(whole[i:], "?")
		added, err := url.ParseQuery(more)
		if err == nil {
			for name, values := range added {
				rest[name] = append(values, rest[name]...)
			}
		}
		rest.Set(links.Parameter, signature)
		return signature, strings.Trim(suffix, "/"), rest
	}
	return signature, "", rest
}

// allow answers a method that a path does not have.
func allow(w http.ResponseWriter, methods ...string) {
	w.Header().Set("Allow", strings.Join(methods, ", "))
	fail(w, http.StatusMethodNotAllowed, queue.CodeBadRequest, "this address takes "+strings.Join(methods, ", "))
}

// fail answers with a problem as JSON.
func fail(w http.ResponseWriter, status int, code, message string) {
	writeJSON(w, status, queue.Problem{Code: code, Message: message})
}

func writeJSON(w http.ResponseWriter, status int, value any) {
	data, err := json.Marshal(value)
	if err != nil { // our own types: it does not happen
		status, data = http.StatusInternalServerError, []byte(`{"code":"internal","message":"the answer cannot be written"}`)
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(data)
}

// refusal is what the caller is told about a backend's error: the words of a
// *queue.Problem, and nothing of what is wrong inside.
func (h *handler) refusal(w http.ResponseWriter, doing string, err error) (status int, p *queue.Problem) {
	p = queue.ProblemOf(err)
	var said *queue.Problem
	known := errors.As(err, &said)
	switch p.Code {
	case queue.CodeInternal:
		h.Log.Error(doing, zap.Error(err))
		p = &queue.Problem{Code: p.Code, Message: "something went wrong here; the log of the coordinator says what"}
	case queue.CodeUnavailable, queue.CodeFull:
		h.Log.Warn(doing, zap.Error(err))
		if !known {
			p = &queue.Problem{Code: p.Code, Message: "no coordinator can take this now; try again in a moment"}
		}
		w.Header().Set("Retry-After", strconv.Itoa(retryLater))
	}
	return p.Status(), p
}
