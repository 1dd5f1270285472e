package cli

import (
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"github.com/reprise-engine/reprise/internal/labtest"
)

// unique is an execution id of this test alone.
func unique(t *testing.T) string {
	t.Helper()
	return "test-" + uuid.NewString()
}

// hanging is a workflow whose tool hangs: begun is closed when it is called, gone
// when its connection ends.
func hanging(t *testing.T, site *labtest.Site) (document string, begun, gone chan struct{}) {
	t.Helper()
	site.Script(t, `{"m": {"turns": [{"tool_calls": [{"name": "Hang", "args": {"text": "x"}}]}, {"content": "never"}]}}`)
	begun, gone = make(chan struct{}), make(chan struct{})
	site.Handle("/hang", func(_ http.ResponseWriter, r *http.Request) {
		_, _ = r.Body.Read(make([]byte, 1<<10)) // the server sees the client go only when the body was read
		close(begun)
		<-r.Context().Done()
		close(gone)
	})
	return string(site.Agent("m", labtest.HTTPTool("Hang", site.URL+"/hang"))), begun, gone
}

func TestSubmitAndWait(t *testing.T) {
	t.Parallel()
	l := sharedLab(t)
	nats := []string{"--nats", l.stack.NATSURL}
	got := reprise(t, append(nats, "submit", "--wait", example("agent-parallel-tools.json"))...)
	assert.Zero(t, got.code, got.stderr)
	for _, text := range []string{
		"Agent with two tools at the same time  success", "✓ AI Agent", "✓ Calculator", `asked    {"input":"6 * 7"}`, `answered {"response":"42"}`,
		"Based on the tools: Calculator returned 42; Shout returned SHOUT HI AND COMPUTE 6 * 7.",
	} {
		assert.Contains(t, got.stdout, text)
	}
	got = reprise(t, append(nats, "submit", "--wait", "--output", "json", example("agent-parallel-tools.json"))...)
	assert.Zero(t, got.code)
	assert.Equal(t, "success", gjson.Get(got.stdout, "status").Str)
	assert.Equal(t, "SHOUT HI AND COMPUTE 6 * 7", gjson.Get(got.stdout, "data.resultData.runData.Shout.0.data.ai_tool.0.0.json.response").Str)
	got = reprise(t, append(nats, "submit", "--wait", "--output", "trace", example("agent-stack-trace.json"))...)
	assert.Equal(t, stackTrace, got.stdout)
	data := readAll(t, example("agent-parallel-tools.json"))
	got = repriseWith(t, data, append(nats, "submit", "--wait", "-")...)
	assert.Zero(t, got.code, got.stderr)
}

// TestSubmitWithID: an id is a submission's name; the second time it starts nothing.
func TestSubmitWithID(t *testing.T) {
	t.Parallel()
	l := sharedLab(t)
	site, id := l.Site(), unique(t)
	flow := file(t, string(site.Agent("m")))
	for _, more := range [][]string{nil, nil, {"--wait"}, {"--durable"}, {"--wait"}} {
		got := reprise(t, append([]string{"submit", flow, "--id", id, "--input", `{"chatInput":"hello"}`, "--nats", l.stack.NATSURL}, more...)...)
		assert.Zero(t, got.code, got.stderr)
		assert.Contains(t, got.stdout, id)
		if len(more) > 0 && more[0] == "--wait" {
			assert.Contains(t, got.stdout, "You said: hello")
		}
	}
	assert.EqualValues(t, 1, site.ModelRequests())
}

func TestExecutions(t *testing.T) {
	t.Parallel()
	l := sharedLab(t)
	site, id := l.Site(), unique(t)
	executions := func(args ...string) outcome {
		t.Helper()
		return reprise(t, append(append([]string{"executions"}, args...), "--nats", l.stack.NATSURL)...)
	}
	document, begun, gone := hanging(t, site)
	got := reprise(t, "submit", file(t, document), "--id", id, "--nats", l.stack.NATSURL)
	require.Zero(t, got.code, got.stderr)
	assert.Equal(t, id+"\n", got.stdout)
	await(t, begun, "the tool was not called")

	got = executions("list", "--status", "running", "--limit", "1000")
	assert.Zero(t, got.code, got.stderr)
	assert.Regexp(t, id+" +running .* Lab", got.stdout)
	got = executions("list", "--output", "json", "--limit", "1000")
	var list struct {
		Executions []struct{ ID, Status, WorkflowName string }
	}
	require.NoError(t, json.Unmarshal([]byte(got.stdout), &list))
	assert.Contains(t, list.Executions, struct{ ID, Status, WorkflowName string }{id, "running", "Lab"})
	got = executions("show", id)
	assert.Zero(t, got.code, got.stderr)
	assert.Contains(t, got.stdout, "Lab  running")
	assert.Contains(t, got.stdout, `asked    {"text":"x"}`)
	got = executions("show", id, "--output", "json")
	assert.Equal(t, "running", gjson.Get(got.stdout, "status").Str)
	assert.Equal(t, "AI Agent(resume: 1 results)", gjson.Get(got.stdout, "stack.0").Str)

	watched := startProgram(t, "executions", "watch", id, "--nats", l.stack.NATSURL)
	before := time.Now()
	got = executions("cancel", id)
	assert.Zero(t, got.code, got.stderr)
	assert.Contains(t, got.stdout, "canceled "+id)
	await(t, gone, "the tool still runs")
	assert.Less(t, time.Since(before), 3*time.Second)
	assert.Zero(t, watched.exitCode(t), watched.stderr.String())
	assert.Contains(t, watched.stdout.String()+watched.stderr.String(), "canceled")
	for range 2 {
		got = executions("cancel", id) // it is cancelled for good, and may be asked again
		assert.Zero(t, got.code, got.stderr)
	}
	got = executions("show", id)
	assert.Contains(t, got.stdout, "Lab  canceled")
	assert.EqualValues(t, 1, site.ModelRequests())

	got = executions("watch", id) // over already
	assert.Zero(t, got.code)
	assert.Contains(t, got.stderr, "is over: canceled")
	got = reprise(t, "submit", "--wait", "--id", id, file(t, document), "--nats", l.stack.NATSURL)
	assert.Equal(t, 1, got.code, "a cancelled execution has not succeeded")

	done := unique(t)
	got = reprise(t, "submit", "--wait", "--id", done, file(t, string(l.Site().Agent("m"))), "--nats", l.stack.NATSURL)
	require.Zero(t, got.code, got.stderr)
	executions("cancel", done).failed(t, 2, done, "finished")
}

// TestTimeout: --timeout cancels what takes too long.
func TestTimeout(t *testing.T) {
	t.Parallel()
	l := sharedLab(t)
	document, _, gone := hanging(t, l.Site())
	got := reprise(t, "submit", "--wait", "--timeout", "1s", file(t, document), "--nats", l.stack.NATSURL)
	got.failed(t, 1, "timed out", "cancelled")
	await(t, gone, "the tool still runs")
}

// TestFailedWorkflow: exit code 1, and the failure for people.
func TestFailedWorkflow(t *testing.T) {
	t.Parallel()
	l := sharedLab(t)
	site := l.Site()
	site.Script(t, `{"m": {"turns": [{"tool_calls": [{"name": "Fail", "args": {"text": "x"}}]}, {"content": "never"}]}}`)
	flow := file(t, string(site.Agent("m", labtest.HTTPTool("Fail", site.URL+"/fail").With("onError", "stopWorkflow"))))
	got := reprise(t, "submit", "--wait", flow, "--nats", l.stack.NATSURL)
	assert.Equal(t, 1, got.code)
	assert.Contains(t, got.stdout, "Lab  error")
	assert.Contains(t, got.stdout, "failed in Fail: ")
	assert.Empty(t, got.stderr)
}
