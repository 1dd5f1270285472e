package acceptance

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/reprise-engine/reprise/internal/labtest"
	"github.com/reprise-engine/reprise/internal/stack"
	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/queue"
)

// TestParallelTools: the tools of a round run at the same time (R19).
func TestParallelTools(t *testing.T) {
	// Not parallel to other tests: it measures time.
	l := sharedLab(t)
	site := l.Site()
	var running, most atomic.Int64
	site.Handle("/slow", func(w http.ResponseWriter, r *http.Request) {
		n := running.Add(1)
		defer running.Add(-1)
		for seen := most.Load(); n > seen && !most.CompareAndSwap(seen, n); seen = most.Load() {
		}
		select {
		case <-time.After(time.Second):
		case <-r.Context().Done():
		}
		fmt.Fprint(w, `{"done":true}`)
	})
	var calls []string
	var tools []labtest.Node
	for i := range 5 {
		name := fmt.Sprintf("Slow%d", i)
		calls = append(calls, fmt.Sprintf(`{"name":%q,"args":{"text":"x"}}`, name))
		tools = append(tools, labtest.HTTPTool(name, site.URL+"/slow"))
	}
	site.Script(t, fmt.Sprintf(`{"five": {"turns": [{"tool_calls": [%s]}, {"content": "done"}]}}`, strings.Join(calls, ",")))
	document := site.Agent("five", tools...)
	// The first run of a process also starts the JavaScript engine.
	for _, which := range []string{"first", "second"} {
		before := time.Now()
		run := l.run(t, document, nil)
		took := time.Since(before)
		require.Equal(t, "success", run.Get("status").Str, run.Raw)
		t.Logf("five tools of one second each took %s in the %s run", took.Round(time.Millisecond), which)
		// About 1.02 s on a machine with nothing else to do; one after the other takes 5 s.
		assert.Less(t, took, 4500*time.Millisecond)
	}
	assert.EqualValues(t, 5, most.Load(), "tools at the same time")
}

// TestGrowth: what an Agent's round costs in Redis does not grow with the
// rounds before it.
func TestGrowth(t *testing.T) {
	t.Parallel()
	l := startLab(t, func(c *stack.Config) { c.SweepAfter = time.Minute })
	site := l.Site()
	written := func() float64 { return float64(l.Coordinators[0].Store.Stats().Bytes) }
	// What the coordinator writes when it has nothing to do, per second: it looks
	// for due timers.
	before, began := written(), time.Now()
	<-time.After(time.Second)
	idle := (written() - before) / time.Since(began).Seconds()

	const rounds = 100
	turns := make([]string, 0, rounds+1)
	for range rounds {
		turns = append(turns, `{"tool_calls":[{"name":"Fetch","args":{"text":"more"}}]}`)
	}
	turns = append(turns, `{"content":"enough"}`)
	site.Script(t, fmt.Sprintf(`{"rounds": {"turns": [%s]}}`, strings.Join(turns, ",")))
	// The tool is called once a round: what was written until then is known here.
	var mu sync.Mutex
	var at []float64
	began = time.Now()
	answer := fmt.Sprintf(`{"text":%q}`, strings.Repeat("0123456789", 500))
	site.Handle("/fetch", func(w http.ResponseWriter, _ *http.Request) {
		mu.Lock()
		at = append(at, written()-idle*time.Since(began).Seconds())
		mu.Unlock()
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, answer)
	})
	run := l.run(t, site.Agent("rounds", labtest.HTTPTool("Fetch", site.URL+"/fetch")), nil)
	require.Equal(t, "success", run.Get("status").Str, run.Get("data.resultData.error").Raw)
	require.Len(t, at, rounds)
	early, late := at[30]-at[10], at[99]-at[79]
	t.Logf("twenty rounds write %.0f bytes early, %.0f late; all 100 rounds %.0f; idle %.0f a second", early, late, at[99]-at[0], idle)
	assert.Less(t, late, 1.3*early)
	assert.Greater(t, early, 100_000.0, "twenty results of 5 KB must have been written")
}

// TestRetryOfTool: a tool is tried again as its node says (R16), with one key.
func TestRetryOfTool(t *testing.T) {
	t.Parallel()
	l := sharedLab(t)
	site := l.Site()
	site.Script(t, `{"m": {"turns": [{"tool_calls": [{"name": "Flaky", "args": {"text": "x"}}]}, {"content": "got {{results}}"}]}}`)
	var mu sync.Mutex
	var keys []string
	site.Handle("/flaky", func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		keys = append(keys, r.Header.Get("Idempotency-Key"))
		if len(keys) < 3 {
			http.Error(w, `{"message":"try again"}`, http.StatusServiceUnavailable)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"ok":true}`)
	})
	tool := labtest.HTTPTool("Flaky", site.URL+"/flaky").With("retryOnFail", true).With("maxTries", 3).With("waitBetweenTries", 50)
	run := l.run(t, site.Agent("m", tool), nil)
	require.Equal(t, "success", run.Get("status").Str, run.Raw)
	assert.Contains(t, answersOf(run)[0], `[{"ok":true}]`)
	require.Len(t, keys, 3)
	assert.NotEmpty(t, keys[0])
	assert.Equal(t, keys[0], keys[1])
	assert.Equal(t, keys[0], keys[2])
	records := runDataOf(run)["Flaky"]
	require.Len(t, records, 1, "one record for all attempts")
	assert.Equal(t, "success", records[0].Get("executionStatus").Str)
	assert.EqualValues(t, 3, records[0].Get("attempts").Int())
}

// TestToolTimeout: a tool that takes longer than its node allows is stopped and
// answered (R15).
func TestToolTimeout(t *testing.T) {
	t.Parallel()
	l := sharedLab(t)
	site := l.Site()
	site.Script(t, `{"m": {"turns": [{"tool_calls": [{"name": "Hang", "args": {"text": "x"}}, {"name": "Calculator", "args": {"input": "6*7"}}]}, {"content": "got {{results}}"}]}}`)
	gone := make(chan struct{})
	site.Handle("/hang", func(_ http.ResponseWriter, r *http.Request) { hang(r, gone) })
	tool := labtest.HTTPTool("Hang", site.URL+"/hang").With("timeout", 1000) // enough to be called on a busy machine
	run := l.run(t, site.Agent("m", tool, labtest.Calculator()), nil)
	require.Equal(t, "success", run.Get("status").Str, run.Raw)
	assert.Contains(t, answersOf(run)[0], "Error: timed out")
	assert.Contains(t, answersOf(run)[0], "42")
	assert.Equal(t, "timeout", runDataOf(run)["Hang"][0].Get("error.reason").Str)
	await(t, gone, "the tool's connection is still open")
}

// hang keeps a request open until its client goes, and tells that.
func hang(r *http.Request, gone chan<- struct{}) {
	_, _ = r.Body.Read(make([]byte, 1<<10)) // the server sees the client go only when the body was read
	<-r.Context().Done()
	close(gone)
}

func await(t *testing.T, c <-chan struct{}, what string) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(within):
		t.Fatal(what)
	}
}

// TestCancel: a cancelled execution stops its running tools and stays cancelled.
func TestCancel(t *testing.T) {
	t.Parallel()
	l := sharedLab(t)
	site := l.Site()
	site.Script(t, `{"m": {"turns": [{"tool_calls": [{"name": "Hang", "args": {"text": "x"}}]}, {"content": "never"}]}}`)
	begun, gone := make(chan struct{}), make(chan struct{})
	site.Handle("/hang", func(_ http.ResponseWriter, r *http.Request) {
		close(begun)
		hang(r, gone)
	})
	id, err := l.Conn.Submit(t.Context(), &queue.Submission{Workflow: site.Agent("m", labtest.HTTPTool("Hang", site.URL+"/hang"))})
	require.NoError(t, err)
	await(t, begun, "the tool was not called")
	before := time.Now()
	require.NoError(t, l.Conn.Cancel(t.Context(), id, "the test"))
	await(t, gone, "the tool still runs")
	assert.Less(t, time.Since(before), 3*time.Second)
	run := l.await(t, id)
	assert.Equal(t, "canceled", run.Get("status").Str)
	assert.NoError(t, l.Conn.Cancel(t.Context(), id, "again"), "a repeated cancel is harmless")
	assert.EqualValues(t, 1, site.ModelRequests(), "the Agent must not go on")
	x, err := l.Conn.Get(t.Context(), id, false)
	require.NoError(t, err)
	assert.Equal(t, engine.StatusCanceled, x.Status)
}

// TestLargePayloads: arguments and results beyond the server's max_payload pass.
func TestLargePayloads(t *testing.T) {
	t.Parallel()
	l := sharedLab(t)
	site := l.Site()
	const size = 3 << 20
	site.Script(t, fmt.Sprintf(`{"m": {"turns": [{"tool_calls": [{"name": "Large", "args": {"text": %q}}]}, {"content": "fine"}]}}`, strings.Repeat("a", size)))
	var got atomic.Int64
	site.Handle("/large", func(w http.ResponseWriter, r *http.Request) {
		got.Store(r.ContentLength)
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"text":%q}`, strings.Repeat("b", size))
	})
	run := l.run(t, site.Agent("m", labtest.HTTPTool("Large", site.URL+"/large")), nil)
	require.Equal(t, "success", run.Get("status").Str, "%.2000s", run.Get("data.resultData.error").Raw)
	assert.GreaterOrEqual(t, got.Load(), int64(size), "bytes of the argument")
	record := runDataOf(run)["Large"][0]
	assert.Len(t, record.Get("data.ai_tool.0.0.json.text").Str, size)
	assert.Len(t, record.Get("inputOverride.ai_tool.0.0.json.text").Str, size)
}

// TestMemory: a session's conversation goes on in the next execution, and only there.
func TestMemory(t *testing.T) {
	t.Parallel()
	l := sharedLab(t)
	site := l.Site()
	var mu sync.Mutex
	var bodies []string
	site.Model(recording(&mu, &bodies))
	document := labtest.Document(append(site.AgentNodes("rule"), labtest.Memory("={{ $json.session }}")), nil)
	for _, input := range []string{
		`{"session":"one","chatInput":"my name is Ann"}`, `{"session":"one","chatInput":"and who am I"}`, `{"session":"two","chatInput":"do you know me"}`,
	} {
		run := l.run(t, document, inputOf(input))
		require.Equal(t, "success", run.Get("status").Str, run.Raw)
	}
	require.Len(t, bodies, 3)
	assert.Contains(t, bodies[1], "my name is Ann")
	assert.Contains(t, bodies[1], "You said: my name is Ann")
	assert.NotContains(t, bodies[2], "Ann")
}
