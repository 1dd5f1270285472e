package bench

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"time"

	"github.com/reprise-engine/reprise/internal/mockllm"
)

// cheapModel answers the workers' requests to a model in memory. Executions of a scenario
// ask the same questions, so each is thought about once: what is measured is the engine
// and its nodes, up to the bytes that they would send.
type cheapModel struct {
	script *mockllm.Script // what it answers besides its rule; may be nil
	// held, when it is not nil, is closed when answers may be given.
	held     chan struct{}
	release  sync.Once
	delay    time.Duration // how long it thinks about each answer
	thinking atomic.Int64  // requests that have no answer yet

	mu      sync.RWMutex
	server  *mockllm.Server
	answers map[string]*httptest.ResponseRecorder
}

// newCheapModel makes a model that thinks for so long, and when it is held not before open.
func newCheapModel(delay time.Duration, held bool) *cheapModel {
	m := &cheapModel{delay: delay}
	if held {
		m.held = make(chan struct{})
	}
	return m
}

// open lets a model answer that was held. A second call is harmless.
func (m *cheapModel) open() {
	if m != nil && m.held != nil {
		m.release.Do(func() { close(m.held) })
	}
}

// RoundTrip implements http.RoundTripper.
func (m *cheapModel) RoundTrip(r *http.Request) (*http.Response, error) {
	var body bytes.Buffer
	if r.Body != nil {
		defer func() { _ = r.Body.Close() }()
		if _, err := body.ReadFrom(r.Body); err != nil {
			return nil, fmt.Errorf("read request to the model: %w", err)
		}
	}
	if m.held != nil {
		m.thinking.Add(1)
		defer m.thinking.Add(-1)
		select {
		case <-m.held:
		case <-r.Context().Done():
			return nil, r.Context().Err()
		}
	}
	if m.delay > 0 {
		select {
		case <-time.After(m.delay):
		case <-r.Context().Done():
			return nil, r.Context().Err()
		}
	}
	m.mu.RLock()
	answer := m.answers[body.String()]
	m.mu.RUnlock()
	if answer == nil {
		answer = m.think(r, body.Bytes())
	}
	return &http.Response{
		Status: http.StatusText(answer.Code), StatusCode: answer.Code, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: answer.Header().Clone(), Body: io.NopCloser(bytes.NewReader(answer.Body.Bytes())),
		ContentLength: int64(answer.Body.Len()), Request: r,
	}, nil
}

// think has the mock model answer a question that is new.
func (m *cheapModel) think(r *http.Request, body []byte) *httptest.ResponseRecorder {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.server == nil {
		m.server, m.answers = mockllm.New(mockllm.Config{Script: m.script}), map[string]*httptest.ResponseRecorder{}
	}
	asked := httptest.NewRequestWithContext(r.Context(), r.Method, r.URL.Path, bytes.NewReader(body))
	asked.Header = r.Header.Clone()
	answer := httptest.NewRecorder()
	m.server.ServeHTTP(answer, asked)
	if answer.Code == http.StatusOK {
		m.answers[string(body)] = answer
	}
	return answer
}
