package mockllm

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/tidwall/gjson"
)

// Config of a Server. The zero value is a server of the built-in rule.
type Config struct {
	// Script is played for the models it names; nil for none.
	Script *Script
	// ThinkTime delays every answer, on top of a scenario's own think_ms. 0 is none.
	ThinkTime time.Duration
	// Token is the API key that requests must carry; "" accepts any and none.
	Token string
}

// Server answers OpenAI's chat completions and Responses API. It is safe for
// concurrent use.
type Server struct {
	config Config
	mux    *http.ServeMux
	rule   rule

	requests atomic.Int64
	ids      atomic.Uint64
	idPrefix string
}

var _ http.Handler = (*Server)(nil)

const (
	maxRequestBytes = 32 << 20
	shutdownTimeout = 3 * time.Second
)

// New returns a server. It serves under /v1, and /healthz without a key.
func New(config Config) *Server {
	s := &Server{config: config, mux: http.NewServeMux()}
	var seed [5]byte
	_, _ = rand.Read(seed[:]) // never fails (crypto/rand)
	s.idPrefix = hex.EncodeToString(seed[:])
	s.mux.HandleFunc("POST /v1/chat/completions", s.chat)
	s.mux.HandleFunc("POST /v1/responses", s.responses)
	s.mux.HandleFunc("GET /v1/models", s.models)
	s.mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, http.StatusOK, []byte(`{"status":"ok"}`))
	})
	s.mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		writeError(w, http.StatusNotFound, "not_found", "no "+r.Method+" "+r.URL.Path+" here; the API is under /v1")
	})
	return s
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !s.authorized(r) {
		writeError(w, http.StatusUnauthorized, "invalid_api_key", "Incorrect API key provided")
		return
	}
	s.mux.ServeHTTP(w, r)
}

// Requests counts the completions that were asked for so far, failed ones included.
func (s *Server) Requests() int64 { return s.requests.Load() }

// Serve listens on addr ("127.0.0.1:18080") until ctx ends, then finishes the
// answers under way and returns nil.
func (s *Server) Serve(ctx context.Context, addr string) error {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", addr)
	if err != nil {
		return fmt.Errorf("mock model: listen on %s: %w", addr, err)
	}
	return s.ServeListener(ctx, listener)
}

// ServeListener is Serve on a listener of the caller's, which it closes.
func (s *Server) ServeListener(ctx context.Context, listener net.Listener) error {
	server := &http.Server{Handler: s, ReadHeaderTimeout: 10 * time.Second}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	select {
	case err := <-served:
		return fmt.Errorf("mock model: serve on %s: %w", listener.Addr(), err)
	case <-ctx.Done():
	}
	stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
	defer cancel()
	err := server.Shutdown(stop)
	if errors.Is(err, context.DeadlineExceeded) {
		err = server.Close()
	}
	if stopped := <-served; err == nil && !errors.Is(stopped, http.ErrServerClosed) {
		err = stopped
	}
	return err
}

func (s *Server) authorized(r *http.Request) bool {
	if s.config.Token == "" || r.URL.Path == "/healthz" {
		return true
	}
	key, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	return ok && subtle.ConstantTimeCompare([]byte(key), []byte(s.config.Token)) == 1
}

// answer is what the model says.
type answer struct {
	content string
	calls   []toolCall
}

type toolCall struct{ id, name, args string }

// tokens estimates at four bytes a token.
func (a *answer) tokens() int {
	n := (len(a.content) + 3) / 4
	for _, c := range a.calls {
		n += (len(c.name)+len(c.args)+3)/4 + 4
	}
	return max(n, 1)
}

func (r *request) tokens() int { return (r.conversation.bytes+len(r.tools))/4 + 8 }

// decide reads the body, thinks and answers; nil when an error was written or
// the caller has gone.
func (s *Server) decide(w http.ResponseWriter, r *http.Request, read func(string) *request) (*request, *answer) {
	s.requests.Add(1)
	body, err := readBody(w, r)
	if err != nil {
		writeError(w, http.StatusBadRequest, "bad_request", "read the request: "+err.Error())
		return nil, nil
	}
	if !gjson.Valid(body) {
		writeError(w, http.StatusBadRequest, "invalid_json", "the request is not valid JSON")
		return nil, nil
	}
	req := read(body)
	if req.model == "" {
		writeError(w, http.StatusBadRequest, "missing_model", "you must provide a model parameter")
		return nil, nil
	}
	think := s.config.ThinkTime
	var a *answer
	if sc := s.config.Script.scenario(req.model); sc != nil {
		think += sc.think
		if sc.failStatus == 0 {
			a = sc.answer(&req.conversation)
		}
		if !wait(r.Context(), think) {
			return nil, nil
		}
		if a == nil {
			writeError(w, sc.failStatus, "mock_error", "scripted failure")
			return nil, nil
		}
	} else {
		a = s.rule.answer(req)
		if !wait(r.Context(), think) {
			return nil, nil
		}
	}
	for i := range a.calls {
		if a.calls[i].id == "" {
			a.calls[i].id = s.id("call_")
		}
	}
	return req, a
}

func (s *Script) scenario(model string) *scenario {
	if s == nil {
		return nil
	}
	return s.models[model]
}

func (sc *scenario) answer(c *conversation) *answer {
	t := sc.pick(c.prompt, len(c.results))
	a := &answer{content: t.content.render(c)}
	for _, call := range t.calls {
		a.calls = append(a.calls, toolCall{id: call.id, name: call.name, args: call.args.renderJSON(c)})
	}
	return a
}

// id returns an id that no other answer of any server has.
func (s *Server) id(prefix string) string {
	return prefix + s.idPrefix + strconv.FormatUint(s.ids.Add(1), 36)
}

// wait reports whether d passed before ctx ended.
func wait(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return true
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

func readBody(w http.ResponseWriter, r *http.Request) (string, error) {
	body := http.MaxBytesReader(w, r.Body, maxRequestBytes)
	if n := r.ContentLength; n >= 0 && n <= maxRequestBytes { // spares io.ReadAll's growing and copying
		b := make([]byte, n)
		_, err := io.ReadFull(body, b)
		return string(b), err
	}
	b, err := io.ReadAll(body)
	return string(b), err
}

func writeJSON(w http.ResponseWriter, status int, body []byte) {
	h := w.Header()
	h["Content-Type"] = []string{"application/json"}
	h["Content-Length"] = []string{strconv.Itoa(len(body))}
	w.WriteHeader(status)
	_, _ = w.Write(body) // the caller has gone when this fails
}

func writeError(w http.ResponseWriter, status int, code, message string) {
	b := append([]byte(nil), `{"error":{"message":`...)
	b = gjson.AppendJSONString(b, message)
	b = append(b, `,"type":"`...)
	switch {
	case code == "mock_error":
		b = append(b, "mock_error"...)
	case status >= 500:
		b = append(b, "server_error"...)
	default:
		b = append(b, "invalid_request_error"...)
	}
	b = append(b, `","param":null,"code":"`...)
	b = append(b, code...)
	b = append(b, `"}}`...)
	writeJSON(w, status, b)
}
