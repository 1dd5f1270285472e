package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"
)

// Effect is one tool call of one execution as the outside world sees it.
type Effect struct{ Execution, Tool string }

// Call is one request for an effect.
type Call struct {
	Effect
	Nth int // request for this effect, from 1
	// Caller is the address of the worker's connection.
	Caller string
	// Gone ends when the worker has given up the request, or has died.
	Gone context.Context
}

// Answering decides how the ledger answers a call of a tool, after its effect. It may
// wait. A status of 400 or more is a failed tool.
type Answering func(Call) (status int)

// Ledger is the outside world: an HTTP server that every tool calls. It counts a
// call's effect when the request arrives, before it answers.
type Ledger struct {
	URL string

	mu      sync.Mutex
	keys    map[Effect][]string // idempotency key of every request
	active  int
	most    int
	answers map[string]Answering
	arrived map[string]chan Effect
	gates   map[string]chan struct{}
}

func startLedger(t testing.TB) *Ledger {
	l := &Ledger{keys: map[Effect][]string{}, answers: map[string]Answering{}, arrived: map[string]chan Effect{}, gates: map[string]chan struct{}{}}
	server := httptest.NewServer(http.HandlerFunc(l.serve))
	l.URL = server.URL
	t.Cleanup(func() {
		l.openAll()
		server.CloseClientConnections()
		server.Close()
	})
	return l
}

func (l *Ledger) serve(w http.ResponseWriter, r *http.Request) {
	e := Effect{Execution: r.Header.Get("X-Execution"), Tool: r.URL.Query().Get("tool")}
	l.mu.Lock()
	l.keys[e] = append(l.keys[e], r.Header.Get("Idempotency-Key"))
	nth := len(l.keys[e])
	l.active++
	l.most = max(l.most, l.active)
	arrived, gate, answer := l.arrived[e.Tool], l.gates[e.Tool], l.answers[e.Tool]
	l.mu.Unlock()
	defer func() {
		l.mu.Lock()
		l.active--
		l.mu.Unlock()
	}()
	if arrived != nil {
		select {
		case arrived <- e:
		default:
		}
	}
	if gate != nil {
		select {
		case <-gate:
		case <-r.Context().Done():
			return
		}
	}
	w.Header().Set("Content-Type", "application/json")
	if answer != nil {
		if status := answer(Call{Effect: e, Nth: nth, Caller: r.RemoteAddr, Gone: r.Context()}); status >= http.StatusBadRequest {
			w.WriteHeader(status)
			_ = json.NewEncoder(w).Encode(map[string]string{"message": "refused"})
			return
		}
	}
	_ = json.NewEncoder(w).Encode(map[string]string{"done": e.Tool})
}

// Answer sets how calls of a tool are answered.
func (l *Ledger) Answer(tool string, how Answering) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.answers[tool] = how
}

// Takes is an answer that comes after d.
func Takes(d time.Duration) Answering {
	return func(c Call) int {
		select {
		case <-time.After(d):
		case <-c.Gone.Done():
		}
		return http.StatusOK
	}
}

// Hold makes calls of a tool wait after their effect until open is called; arrived
// tells of each.
func (l *Ledger) Hold(tool string) (arrived <-chan Effect, open func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	ch, gate := make(chan Effect, 1000), make(chan struct{})
	l.arrived[tool], l.gates[tool] = ch, gate
	return ch, sync.OnceFunc(func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.gates[tool] == gate {
			close(gate)
			delete(l.gates, tool)
			delete(l.arrived, tool)
		}
	})
}

func (l *Ledger) openAll() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for tool, gate := range l.gates {
		close(gate)
		delete(l.gates, tool)
	}
}

// Keys are the idempotency keys of all requests of one effect, in order.
func (l *Ledger) Keys(execution, tool string) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.keys[Effect{execution, tool}])
}

// Most is the greatest number of requests that were under way at once.
func (l *Ledger) Most() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.most
}

// Repeats says whether an effect may have been asked for more than once.
type Repeats func(Effect) bool

// Once allows no repetition.
func Once(Effect) bool { return false }

// Repeated allows all repetitions, under the same key.
func Repeated(Effect) bool { return true }

// RepeatedOf allows repetitions of one tool.
func RepeatedOf(tool string) Repeats { return func(e Effect) bool { return e.Tool == tool } }

// problems lists effects that are missing, too many, or repeated under another key.
func (l *Ledger) problems(executions, tools []string, repeats Repeats) (found []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, id := range executions {
		for _, tool := range tools {
			e := Effect{id, tool}
			keys := l.keys[e]
			switch {
			case len(keys) == 0:
				found = append(found, fmt.Sprintf("%s of %s had no effect", tool, id))
			case len(keys) > 1 && !repeats(e):
				found = append(found, fmt.Sprintf("%s of %s had its effect %d times", tool, id, len(keys)))
			}
			for _, key := range keys {
				if key == "" || key != keys[0] {
					found = append(found, fmt.Sprintf("%s of %s was repeated under another key: %q", tool, id, keys))
				}
			}
		}
	}
	seen := map[string]Effect{}
	for e, keys := range l.keys {
		if other, ok := seen[keys[0]]; ok {
			found = append(found, fmt.Sprintf("%v and %v share the idempotency key %s", e, other, keys[0]))
		}
		seen[keys[0]] = e
	}
	return found
}
