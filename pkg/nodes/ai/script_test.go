package ai

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/reprise-engine/reprise/pkg/nodes/jsonobject"
)

// modelScripts plays chat models. A model's script is a text with a turn a line:
//
//	Calculator {"input":"6*7"} + x:Think {"input":"hm"}   calls; x is an id, else c<turn>.<n>
//	"Let me see." + Calculator {"input":"1"}              calls with a text
//	"The answer: {{results}}"                              a text; the answers to its calls filled in
//	fail 500                                               an HTTP error
//	raw {"content":null}                                   a message as it is
//
// The turn is chosen by what the request shows: how many messages of the model
// follow the last prompt (after the last line, the last is repeated). A script may be
// for prompts that hold a text. Requests with a history that a strict server refuses (each
// call id has exactly one answer, in order) get HTTP 400 and fail the test.
type modelScripts struct {
	*modelServer
	mu      sync.Mutex
	scripts map[string][]modelScript
	// seen counts the messages of a model's last request for a prompt, for the log.
	seen map[string]int
	// asked are the bodies of all requests by model.
	asked map[string][]string
	log   *strings.Builder
}

type modelScript struct {
	prompt string
	turns  []string
}

func serveScripts(t testing.TB, log *strings.Builder) *modelScripts {
	m := &modelScripts{scripts: map[string][]modelScript{}, seen: map[string]int{}, asked: map[string][]string{}, log: log}
	m.modelServer = serveModel(t, func(w http.ResponseWriter, _ string, body []byte) {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.answer(t, w, string(body))
	})
	return m
}

// play gives a model the script for prompts that hold a text ("" for all others).
func (m *modelScripts) play(model, prompt, script string) {
	var turns []string
	for _, line := range strings.Split(strings.TrimSpace(script), "\n") {
		turns = append(turns, strings.TrimSpace(line))
	}
	played := modelScript{prompt, turns}
	for i, s := range m.scripts[model] {
		if s.prompt == prompt {
			m.scripts[model][i] = played
			return
		}
	}
	m.scripts[model] = append(m.scripts[model], played)
}

func (m *modelScripts) answer(t testing.TB, w http.ResponseWriter, body string) {
	model, prompt, turn, results := gjson.Get(body, "model").Str, "", 0, []string(nil)
	messages := gjson.Get(body, "messages").Array()
	for _, one := range messages {
		switch one.Get("role").Str {
		case "user":
			prompt, turn, results = one.Get("content").Str, 0, nil
		case "assistant":
			turn++
		case "tool":
			results = append(results, one.Get("content").Str)
		}
	}
	m.asked[model] = append(m.asked[model], body)
	first := fmt.Sprintf("%s %s %d", model, prompt, strings.Count(body, `"role":"user"`))
	known := min(m.seen[first], len(messages))
	m.seen[first] = len(messages)
	fmt.Fprintf(m.log, "ask %s: %s\n", model, showMessages(messages[known:], known))
	if problem := historyProblem(messages); problem != "" {
		t.Errorf("%s in a request to %s: %s", problem, model, body)
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprintf(w, `{"error":{"message":%s}}`, jsonobject.Quote(problem))
		return
	}
	line := m.line(model, prompt, turn)
	fmt.Fprintf(m.log, "  %s\n", line)
	if status, ok := strings.CutPrefix(line, "fail "); ok {
		code, _ := strconv.Atoi(status)
		w.WriteHeader(code)
		return
	}
	fmt.Fprintf(w, `{"choices":[{"message":%s,"finish_reason":"stop"}],"usage":{"prompt_tokens":3,"completion_tokens":4}}`,
		scriptedMessage(line, turn, results))
}

func (m *modelScripts) line(model, prompt string, turn int) string {
	var chosen []string
	for _, s := range m.scripts[model] {
		if strings.Contains(prompt, s.prompt) && (chosen == nil || s.prompt != "") {
			chosen = s.turns
		}
	}
	if len(chosen) == 0 {
		return `"no script"`
	}
	return chosen[min(turn, len(chosen)-1)]
}

func scriptedMessage(line string, turn int, results []string) string {
	if raw, ok := strings.CutPrefix(line, "raw "); ok {
		return raw
	}
	content, calls := "null", []string(nil)
	for i, part := range strings.Split(line, " + ") {
		if strings.HasPrefix(part, `"`) {
			said := gjson.Parse(part).Str
			said = strings.ReplaceAll(said, "{{results}}", strings.Join(results, " "))
			said = strings.ReplaceAll(said, "{{last}}", lastOf(results))
			content = jsonobject.Quote(said)
			continue
		}
		name, arguments, _ := strings.Cut(part, " ")
		id, plain, ok := strings.Cut(name, ":")
		if ok {
			name = plain
		} else {
			id = fmt.Sprintf("c%d.%d", turn, i)
		}
		calls = append(calls, oneCall(id, name, arguments))
	}
	if len(calls) == 0 {
		return `{"role":"assistant","content":` + content + `}`
	}
	return `{"role":"assistant","content":` + content + `,"tool_calls":[` + strings.Join(calls, ",") + `]}`
}

func lastOf(list []string) string {
	if len(list) == 0 {
		return ""
	}
	return list[len(list)-1]
}

// showMessages prints messages of a request; those of an earlier one are left out.
func showMessages(messages []gjson.Result, known int) string {
	var parts []string
	if known > 0 {
		parts = append(parts, "…")
	}
	for _, m := range messages {
		text := m.Get("role").Str
		if text == "tool" {
			text = m.Get("tool_call_id").Str + " ="
		}
		if content := m.Get("content"); content.Str != "" {
			text += " " + content.Str
		}
		for _, c := range m.Get("tool_calls").Array() {
			text += " " + c.Get("id").Str + ":" + c.Get("function.name").Str + " " + c.Get("function.arguments").Str
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, " | ")
}

// historyProblem says what a strict server would refuse.
func historyProblem(messages []gjson.Result) string {
	var open []string
	for _, m := range messages {
		if m.Get("role").Str == "tool" {
			id := m.Get("tool_call_id").Str
			if len(open) == 0 || open[0] != id {
				return "an answer out of place: " + id
			}
			open = open[1:]
			continue
		}
		if len(open) > 0 {
			return "calls without an answer: " + strings.Join(open, ", ")
		}
		seen := map[string]bool{}
		for _, c := range m.Get("tool_calls").Array() {
			id := c.Get("id").Str
			if seen[id] || id == "" {
				return "a call id twice: " + id
			}
			seen[id] = true
			open = append(open, id)
			if !gjson.Valid(c.Get("function.arguments").Str) {
				return "arguments that are no JSON"
			}
		}
	}
	if len(open) > 0 {
		return "calls without an answer: " + strings.Join(open, ", ")
	}
	return ""
}

// offered lists the tools of a model's last request.
func (m *modelScripts) offered(model string) string {
	bodies := m.asked[model]
	if len(bodies) == 0 {
		return "not asked\n"
	}
	var b strings.Builder
	for _, t := range gjson.Get(bodies[len(bodies)-1], "tools").Array() {
		f := t.Get("function")
		b.WriteString(f.Get("name").Str + " " + f.Get("parameters").Raw + "\n")
	}
	if b.Len() == 0 {
		return "none\n"
	}
	return b.String()
}
