package acceptance

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"github.com/reprise-engine/reprise/internal/labtest"
	"github.com/reprise-engine/reprise/internal/mockllm"
)

// recording is the built-in model, which keeps what it is asked.
func recording(mu *sync.Mutex, bodies *[]string) http.Handler {
	model := mockllm.New(mockllm.Config{})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		*bodies = append(*bodies, string(body))
		mu.Unlock()
		r.Body = io.NopCloser(bytes.NewReader(body))
		model.ServeHTTP(w, r)
	})
}

// conversation is a scripted model that keeps what it is asked. It is as strict as
// providers are: a history in which a call has not exactly one result is refused
// with status 400, and fails the test.
type conversation struct {
	mu     sync.Mutex
	bodies []gjson.Result
}

// converse gives a site a model that plays a script, see script.
func converse(t *testing.T, site *labtest.Site, scripts ...string) *conversation {
	t.Helper()
	parsed, err := mockllm.ParseScript([]byte("{" + strings.Join(scripts, ",") + "}"))
	require.NoError(t, err)
	model := mockllm.New(mockllm.Config{Script: parsed})
	c := &conversation{}
	site.Model(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		c.mu.Lock()
		c.bodies = append(c.bodies, gjson.ParseBytes(body))
		c.mu.Unlock()
		if problem := broken(gjson.GetBytes(body, "messages")); problem != "" {
			assert.Fail(t, "the model is sent a history that providers refuse", "%s: %s", problem, body)
			http.Error(w, `{"error":{"message":"`+problem+`"}}`, http.StatusBadRequest)
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		model.ServeHTTP(w, r)
	}))
	return c
}

// broken says what is wrong with the calls and results of a history, "" for nothing.
func broken(messages gjson.Result) string {
	var open []string
	for _, m := range messages.Array() {
		role := m.Get("role").Str
		if role == "tool" {
			id := m.Get("tool_call_id").Str
			at := slices.Index(open, id)
			if at < 0 {
				return "a result without a call, or the second of one: " + id
			}
			open = slices.Delete(open, at, at+1)
			continue
		}
		if len(open) > 0 {
			return fmt.Sprintf("no result of %v before a message of the %s", open, role)
		}
		for _, call := range m.Get("tool_calls").Array() {
			open = append(open, call.Get("id").Str)
		}
	}
	if len(open) > 0 {
		return fmt.Sprintf("no result of %v", open)
	}
	return ""
}

// request is the n-th that the model got, from 0.
func (c *conversation) request(t *testing.T, n int) gjson.Result {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	require.Greater(t, len(c.bodies), n, "model requests")
	return c.bodies[n]
}

// results are the texts of the tool results in a request, in order.
func results(request gjson.Result) []string {
	var texts []string
	for _, m := range request.Get(`messages.#(role=="tool")#`).Array() {
		texts = append(texts, m.Get("content").String())
	}
	return texts
}

// script is a model's part of a script; its turns are made by asks and says.
func script(model string, turns ...string) string {
	return fmt.Sprintf(`%q: {"turns": [%s]}`, model, strings.Join(turns, ","))
}

// asks is a turn with tool calls, made by free and gated.
func asks(calls ...string) string {
	return `{"tool_calls": [` + strings.Join(calls, ",") + `]}`
}

// says is a turn that answers; {{results}} and {{last}} are filled in.
func says(text string) string { return fmt.Sprintf(`{"content": %q}`, text) }

// free is a call of a tool with its arguments.
func free(tool, arguments string) string {
	return fmt.Sprintf(`{"name": %q, "args": %s}`, tool, arguments)
}

// gated is the call of an HTTP tool that is behind a gate.
func gated(tool, text string) string {
	return fmt.Sprintf(`{"name": %q, "args": {"toolParameters": {"text": %q}, "hitlParameters": {}}}`, tool, text)
}

// TestStrictModel makes sure that the model refuses what providers refuse.
func TestStrictModel(t *testing.T) {
	t.Parallel()
	call := `{"role":"assistant","tool_calls":[{"id":"a"},{"id":"b"}]}`
	result := func(id string) string { return `{"role":"tool","tool_call_id":"` + id + `"}` }
	user := `{"role":"user","content":"x"}`
	for name, c := range map[string]struct {
		messages []string
		fine     bool
	}{
		"no calls":              {[]string{user}, true},
		"all answered":          {[]string{user, call, result("b"), result("a")}, true},
		"one open at the end":   {[]string{user, call, result("a")}, false},
		"one open in the midst": {[]string{user, call, result("a"), user}, false},
		"two results":           {[]string{user, call, result("a"), result("b"), result("a")}, false},
		"result of nothing":     {[]string{user, result("a")}, false},
	} {
		problem := broken(gjson.Parse("[" + strings.Join(c.messages, ",") + "]"))
		assert.Equal(t, c.fine, problem == "", "%s: %s", name, problem)
	}
}
