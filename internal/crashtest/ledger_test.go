package crashtest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
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
}

func startLedger(t *testing.T) *ledger {
	l := &ledger{keys: map[effect][]string{}, arrived: map[string]chan string{}, gates: map[string]chan struct{}{}}
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
	arrived, gate := l.arrived[e.tool], l.gates[e.tool]
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

// workflowFile is an Agent with three tools that call the ledger.
func workflowFile(ledgerURL string, tools []string) []byte {
	type object = map[string]any
	node := func(name, kind string, version float64, x, y int, parameters object) object {
		return object{"id": name, "name": name, "type": kind, "typeVersion": version, "position": []int{x, y}, "parameters": parameters}
	}
	nodes := []object{
		node("Start", "n8n-nodes-base.manualTrigger", 1, 0, 0, object{}),
		node("AI Agent", "@n8n/n8n-nodes-langchain.agent", 3.1, 200, 0, object{"promptType": "define", "text": "use your tools", "options": object{}}),
		node("Model", "@n8n/n8n-nodes-langchain.lmChatOpenAi", 1.3, 100, 200, object{
			"model": object{"__rl": true, "mode": "id", "value": "crash"}, "responsesApiEnabled": false, "options": object{},
		}),
	}
	nodes[2]["credentials"] = object{"openAiApi": object{"id": "mock-llm", "name": "Mock LLM"}}
	link := func(to, kind string) object {
		return object{kind: [][]object{{{"node": to, "type": kind, "index": 0}}}}
	}
	connections := object{"Start": link("AI Agent", "main"), "Model": link("AI Agent", "ai_languageModel")}
	for i, tool := range tools {
		nodes = append(nodes, node(tool, "n8n-nodes-base.httpRequestTool", 4.2, 300+100*i, 200, object{
			"toolDescription": "Does " + tool, "method": "POST", "url": fmt.Sprintf("%s/?tool=%s", ledgerURL, tool),
			"sendHeaders": true, "headerParameters": object{"parameters": []object{{"name": "X-Execution", "value": "={{ $execution.id }}"}}},
			"sendBody": true, "bodyParameters": object{"parameters": []object{{"name": "text", "value": "={{ $fromAI('text', 'what to do', 'string') }}"}}},
			"options": object{},
		}))
		connections[tool] = link("AI Agent", "ai_tool")
	}
	data, err := json.Marshal(object{
		"name": "crash test", "nodes": nodes, "connections": connections, "settings": object{"executionOrder": "v1"},
	})
	if err != nil {
		panic(err) // maps and slices of plain values
	}
	return data
}
