package crashtest

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
)

// effect is one tool call of one execution as the outside world sees it.
type effect struct{ execution, tool string }

// ledger is the outside world: an HTTP server that every tool calls.
type ledger struct {
	*httptest.Server

	mu      sync.Mutex
	keys    map[effect][]string // idempotency key of every request that had its effect
	arrived map[string]chan string
	gates   map[string]chan struct{}
	broken  map[string]bool
}

func startLedger(t *testing.T) *ledger {
	l := &ledger{keys: map[effect][]string{}, arrived: map[string]chan string{}, gates: map[string]chan struct{}{}, broken: map[string]bool{}}
	l.Server = httptest.NewServer(http.HandlerFunc(l.serve))
	t.Cleanup(func() {
		l.openAll()
		l.Close()
	})
	return l
}

func (l *ledger) serve(w http.ResponseWriter, r *http.Request) {
	e := effect{execution: r.Header.Get("X-Execution"), tool: r.URL.Query().Get("tool")}
	key := r.Header.Get("Idempotency-Key")
	l.mu.Lock()
	l.keys[e] = append(l.keys[e], key)
	arrived, gate, broken := l.arrived[e.tool], l.gates[e.tool], l.broken[e.tool]
	l.mu.Unlock()
	if arrived != nil {
		select {
		case arrived <- e.execution:
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
	if broken {
		http.Error(w, `{"message":"out of order"}`, http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]string{"done": e.tool})
}

// hold makes calls of a tool wait after their effect until open is called; arrived
// tells the execution of each.
func (l *ledger) hold(tool string) (arrived <-chan string, open func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	ch, gate := make(chan string, 100), make(chan struct{})
	l.arrived[tool], l.gates[tool] = ch, gate
	return ch, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.gates[tool] == gate {
			close(gate)
			delete(l.gates, tool)
		}
	}
}

// breaks makes a tool fail from now on.
func (l *ledger) breaks(tool string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.broken[tool] = true
}

// keysOf are the idempotency keys of the requests of a tool in an execution.
func (l *ledger) keysOf(execution, tool string) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.keys[effect{execution, tool}])
}

// executionsOf are the executions in which a tool had its effect, with how often.
func (l *ledger) executionsOf(tool string) map[string]int {
	l.mu.Lock()
	defer l.mu.Unlock()
	found := map[string]int{}
	for e, keys := range l.keys {
		if e.tool == tool {
			found[e.execution] = len(keys)
		}
	}
	return found
}

func (l *ledger) openAll() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for tool, gate := range l.gates {
		close(gate)
		delete(l.gates, tool)
	}
}

// check reports effects that are missing, too many, or repeated under another
// key. repeats allows more than one request for an effect.
func (l *ledger) check(t *testing.T, executions []string, tools []string, repeats func(effect) bool) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, id := range executions {
		for _, tool := range tools {
			e := effect{id, tool}
			keys := l.keys[e]
			switch {
			case len(keys) == 0:
				t.Errorf("%s of %s had no effect", tool, id)
			case len(keys) > 1 && !repeats(e):
				t.Errorf("%s of %s had its effect %d times", tool, id, len(keys))
			}
			for _, key := range keys {
				if key == "" || key != keys[0] {
					t.Errorf("%s of %s was repeated under another key: %q", tool, id, keys)
				}
			}
		}
	}
	seen := map[string]effect{}
	for e, keys := range l.keys {
		if other, ok := seen[keys[0]]; ok {
			t.Errorf("%v and %v share the idempotency key %s", e, other, keys[0])
		}
		seen[keys[0]] = e
	}
}
