package cli

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"
)

// TestRunWaits: without anybody to ask, a run ends as waiting and says how to keep
// what waits.
func TestRunWaits(t *testing.T) {
	t.Parallel()
	got := reprise(t, "run", example("approval.json"))
	assert.Equal(t, 3, got.code)
	for _, text := range []string{
		"A refund that a person approves  waiting", "✓ Calculator", "… Ask a person", "asked    Send_refund {", "waits    for a decision",
		"Ask a person waits for a decision  reprise executions approve ",
	} {
		assert.Contains(t, got.stdout, text)
	}
	assert.NotContains(t, got.stdout, "Send refund  ", "the tool has not run")
	assert.Contains(t, got.stderr, "it waits for a decision and is lost")
	assert.Contains(t, got.stderr, "reprise dev")
	got = reprise(t, "run", "--output", "json", example("wait-webhook.json"))
	assert.Equal(t, 3, got.code)
	assert.Equal(t, "waiting", gjson.Get(got.stdout, "status").Str)
	assert.Equal(t, "webhook", gjson.Get(got.stdout, "waiting.0.kind").Str)
	assert.Equal(t, "waiting", gjson.Get(got.stdout, "data.resultData.runData.Wait for payment.0.executionStatus").Str)
	got = reprise(t, "run", "--trace", example("wait-webhook.json"))
	assert.Equal(t, 3, got.code)
	assert.Contains(t, got.stdout, "… Wait for payment waits                      stack: []\n\nwaits : Wait for payment waits for a webhook\nruns  : Start=1 Order=1\n")
}

// TestRunWaitsForTime: a moment is waited for.
func TestRunWaitsForTime(t *testing.T) {
	t.Parallel()
	flow := changed(t, "wait-webhook.json", "nodes.2.parameters", `{}`)
	document, err := sjson.SetRaw(readAll(t, flow), "nodes.2.parameters", `{"amount": 1, "unit": "seconds"}`)
	require.NoError(t, err)
	before := time.Now()
	got := reprise(t, "run", file(t, document), "--to", "Wait for payment")
	assert.Zero(t, got.code, got.stderr)
	assert.GreaterOrEqual(t, time.Since(before), time.Second)
	assert.Contains(t, got.stdout, "Wait for a payment  success")
	assert.Empty(t, got.stderr)
}

// TestRunHTTP: with an address, the links are printed and the run goes on when they are used.
func TestRunHTTP(t *testing.T) {
	t.Parallel()
	p := startProgram(t, "run", "--http", "127.0.0.1:0", example("wait-webhook.json"))
	link := regexp.MustCompile(`Wait for payment waits for a webhook: (http://127\.0\.0\.1:\d+/\S+)`)
	require.Eventually(t, func() bool { return link.MatchString(p.stderr.String()) }, within, 20*time.Millisecond, "%s", p.stderr)
	url := link.FindStringSubmatch(p.stderr.String())[1]
	answer, err := http.Post(url, "application/json", strings.NewReader(`{"amount": 40}`))
	require.NoError(t, err)
	body, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	assert.Equal(t, http.StatusOK, answer.StatusCode, "%s", body)
	assert.Zero(t, p.exitCode(t), p.stderr.String())
	assert.Contains(t, p.stdout.String(), "order 4711: paid 40")
	assert.Equal(t, 1, strings.Count(p.stderr.String(), "waits for a webhook"), p.stderr.String())

	p = startProgram(t, "run", "--http", "127.0.0.1:0", "--output", "json", example("approval.json"))
	link = regexp.MustCompile(`Ask a person waits for a decision: (http://127\.0\.0\.1:\d+/\S+)`)
	require.Eventually(t, func() bool { return link.MatchString(p.stderr.String()) }, within, 20*time.Millisecond, "%s", p.stderr)
	url = link.FindStringSubmatch(p.stderr.String())[1]
	answer, err = http.Post(url, "application/x-www-form-urlencoded", strings.NewReader("decision=approve"))
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	assert.Zero(t, p.exitCode(t), p.stderr.String())
	assert.Equal(t, "success", gjson.Get(p.stdout.String(), "status").Str)
}

// TestAnswerFromElsewhere: one person submits, others see and answer.
func TestAnswerFromElsewhere(t *testing.T) {
	t.Parallel()
	l := sharedLab(t)
	nats := []string{"--nats", l.stack.NATSURL}
	run := func(args ...string) outcome { return reprise(t, append(args, nats...)...) }
	id := unique(t)
	got := run("submit", "--until-waiting", "--id", id, example("approval.json"))
	assert.Equal(t, 3, got.code, got.stderr)
	assert.Contains(t, got.stdout, "waits    for a decision")

	got = run("executions", "list", "--status", "waiting", "--workflow-id", "approval")
	assert.Contains(t, got.stdout, id)
	got = run("executions", "approvals", "--execution", id, "--output", "json")
	assert.Zero(t, got.code, got.stderr)
	open := gjson.Parse(got.stdout)
	require.EqualValues(t, 1, open.Get("#").Int(), got.stdout)
	question := open.Get("0")
	token := question.Get("id").Str
	assert.Equal(t, id, question.Get("execution").Str)
	assert.Equal(t, "Ask a person", question.Get("node").Str)
	assert.Equal(t, "Send refund", question.Get("tool").Str)
	assert.NotEmpty(t, question.Get("callId").Str)
	assert.JSONEq(t, `{"input": "Send refund to Ada: compute 8 * 5 euros"}`, question.Get("arguments").Raw)
	assert.True(t, strings.HasPrefix(question.Get("url").Str, l.stack.PublicURL+"/"), question.Get("url").Str)

	watched := startProgram(t, append([]string{"executions", "watch", id}, nats...)...)
	followed := startProgram(t, append([]string{"submit", "--wait", "--id", id, example("approval.json")}, nats...)...)
	require.Eventually(t, func() bool {
		return strings.Contains(followed.stderr.String(), "Ask a person waits for a decision: http")
	}, within, 10*time.Millisecond)
	got = run("executions", "approve", token, "--by", "ada", "--feedback", "be quick")
	assert.Zero(t, got.code, got.stderr)
	assert.Equal(t, "approved "+token+"\n", got.stdout)
	assert.Zero(t, followed.exitCode(t), followed.stderr.String())
	assert.Contains(t, followed.stdout.String(), `decided  approved by ada: "be quick"`)
	assert.Contains(t, followed.stdout.String(), "✓ Send refund")
	assert.Zero(t, watched.exitCode(t), watched.stderr.String())
	run("executions", "deny", token).failed(t, 2, "is decided already: approved by ada")
	got = run("executions", "approval", token)
	assert.Contains(t, got.stdout, `approved by ada at `)

	id = unique(t)
	got = run("submit", "--until-waiting", "--id", id, example("wait-webhook.json"))
	assert.Equal(t, 3, got.code, got.stderr)
	watched = startProgram(t, append([]string{"executions", "watch", id}, nats...)...)
	run("executions", "approve", id+"_1").failed(t, 2, "there is no question")
	run("executions", "resume", id, "--suffix", "elsewhere").failed(t, 2, "Wait for payment waits for a webhook")
	got = run("executions", "resume", id, "--data", `{"amount": 7}`)
	assert.Zero(t, got.code, got.stderr)
	got = run("submit", "--wait", "--id", id, example("wait-webhook.json"))
	assert.Zero(t, got.code, got.stderr)
	assert.Contains(t, got.stdout, "order 4711: paid 7")
	assert.Zero(t, watched.exitCode(t), watched.stderr.String())
}

// TestWatch: an execution that waits is not over.
func TestWatch(t *testing.T) {
	t.Parallel()
	l := sharedLab(t)
	all := startProgram(t, "executions", "watch", "--nats", l.stack.NATSURL)
	id := unique(t)
	seen := func(text string) func() bool {
		return func() bool { return regexp.MustCompile(id + " +" + text).MatchString(all.stdout.String()) }
	}
	require.Eventually(t, func() bool { // until the program has subscribed
		probe := reprise(t, "submit", "--wait", file(t, string(l.Site().Agent("m"))), "--nats", l.stack.NATSURL)
		return probe.code == 0 && all.stdout.String() != ""
	}, within, 50*time.Millisecond)
	got := reprise(t, "submit", "--until-waiting", "--id", id, example("wait-webhook.json"), "--nats", l.stack.NATSURL)
	require.Equal(t, 3, got.code, got.stderr)
	require.Eventually(t, seen("waits"), within, 10*time.Millisecond)
	got = reprise(t, "executions", "resume", id, "--nats", l.stack.NATSURL)
	require.Zero(t, got.code, got.stderr)
	require.Eventually(t, seen("finished: success"), within, 10*time.Millisecond)
	assert.True(t, seen("resumed")())
	assert.Equal(t, 1, strings.Count(all.stdout.String(), id+"  finished: "))
	require.NoError(t, all.Process.Signal(syscall.SIGINT))
	assert.Zero(t, all.exitCode(t))
}

// TestRunWorkflows: workflows of a directory are called by their ids.
func TestRunWorkflows(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "child.json"), []byte(readAll(t, example("subworkflow-child.json"))), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "other.json"), []byte(`{"hello": 1}`), 0o600))
	got := reprise(t, "run", "--workflows", dir, example("subworkflow-parent.json"))
	assert.Zero(t, got.code, got.stderr)
	assert.Contains(t, got.stdout, `{"orders":"A, B","total":84}`)
	assert.Regexp(t, `started  execution \S+, \S+\n`, got.stdout)
	assert.Empty(t, got.stderr)
	got = reprise(t, "run", example("subworkflow-parent.json"))
	assert.Equal(t, 1, got.code)
	assert.Contains(t, got.stdout, "failed in Price each: ")

	// One that is not awaited is run to its end all the same, and named.
	detached := readAll(t, changed(t, "subworkflow-parent.json", "nodes.2.parameters.mode", "once"))
	detached, err := sjson.Set(detached, "nodes.2.parameters.options.waitForSubWorkflow", false)
	require.NoError(t, err)
	child := readAll(t, example("subworkflow-child.json"))
	child, err = sjson.SetRaw(child, "nodes.1", `{"id": "hold", "name": "Price", "type": "n8n-nodes-base.wait", "typeVersion": 1.1, "position": [0, 0], "parameters": {"amount": 1, "unit": "seconds"}}`)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "child.json"), []byte(child), 0o600))
	got = reprise(t, "run", "--workflows", dir, "--to", "Price each", file(t, detached))
	assert.Zero(t, got.code, got.stderr)
	assert.Regexp(t, `also ran: Price of an order  success`, got.stderr)

	got = reprise(t, "run", "--workflows", filepath.Join(dir, "nowhere"), example("approval.json"))
	got.failed(t, 2, "--workflows", "nowhere")
}

// TestRunErrorWorkflow: what hears of a failure is run to its end.
func TestRunErrorWorkflow(t *testing.T) {
	t.Parallel()
	got := reprise(t, "run", example("error-workflow.json"))
	assert.Equal(t, 1, got.code)
	assert.Contains(t, got.stdout, "failed in Break: the shop is closed")
	assert.Contains(t, got.stderr, "also ran: Tell of its own failure  success")

	dir := t.TempDir()
	hears := readAll(t, changed(t, "error-workflow.json", "id", "hears"))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "hears.json"), []byte(hears), 0o600))
	breaks := readAll(t, changed(t, "error-workflow.json", "settings.errorWorkflow", "hears"))
	breaks, err := sjson.Delete(breaks, "nodes.2")
	require.NoError(t, err)
	got = reprise(t, "run", "--workflows", dir, file(t, breaks))
	assert.Equal(t, 1, got.code)
	assert.Contains(t, got.stderr, "also ran: Tell of its own failure  success")
}

// TestRunTo runs up to a node, and again without running what is known already.
func TestRunTo(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "child.json"), []byte(readAll(t, example("subworkflow-child.json"))), 0o600))
	parent := example("subworkflow-parent.json")
	got := reprise(t, "run", "--workflows", dir, "--to", "Price each", "--output", "json", parent)
	require.Zero(t, got.code, got.stderr)
	runData := gjson.Get(got.stdout, "data.resultData.runData")
	assert.True(t, runData.Get("Price each").Exists())
	assert.False(t, runData.Get("Sum").Exists())

	// The pieces are changed in the earlier run: what is reused is not run again.
	earlier := strings.ReplaceAll(got.stdout, `"price": 24`, `"price": 1000`)
	require.NotEqual(t, got.stdout, earlier)
	for _, form := range []string{earlier, gjson.Get(earlier, "data").Raw, gjson.Get(earlier, "data.resultData").Raw} {
		got = reprise(t, "run", "--to", "Sum", "--reuse", file(t, form), parent)
		assert.Zero(t, got.code, got.stderr)
		assert.Contains(t, got.stdout, `{"orders":"A, B","total":1060}`)
	}
	got = reprise(t, "run", "--workflows", dir, "--to", "Price each", "--exclusive", "--output", "json", parent)
	assert.Zero(t, got.code, got.stderr)
	assert.False(t, gjson.Get(got.stdout, "data.resultData.runData.Price each").Exists())
	assert.True(t, gjson.Get(got.stdout, "data.resultData.runData.Orders").Exists())

	pinned, err := sjson.SetRaw(readAll(t, parent), "pinData", `{"Price each": [{"json": {"order": "P", "price": 3}}]}`)
	require.NoError(t, err)
	got = reprise(t, "run", "--to", "Sum", file(t, pinned))
	assert.Zero(t, got.code, got.stderr)
	assert.Contains(t, got.stdout, `{"orders":"P","total":3}`)

	reprise(t, "run", "--to", "Nowhere", parent).failed(t, 2, "--to", "Nowhere")
	reprise(t, "run", "--reuse", "x.json", parent).failed(t, 2, "--reuse", "--to")
	reprise(t, "run", "--exclusive", parent).failed(t, 2, "--exclusive", "--to")
	reprise(t, "run", "--to", "Sum", "--reuse", filepath.Join(dir, "none.json"), parent).failed(t, 2, "--reuse", "none.json")
	reprise(t, "run", "--to", "Sum", "--reuse", file(t, `{}`), parent).failed(t, 2, "--reuse", "no run data")
	reprise(t, "run", "--to", "Sum", "--reuse", file(t, `[`), parent).failed(t, 2, "--reuse", "--output json")
	reprise(t, "run", "--http", "nonsense", parent).failed(t, 2, "nonsense", "host:port")
}

// TestStoredWorkflows: what is put can be called and submitted by its id.
func TestStoredWorkflows(t *testing.T) {
	t.Parallel()
	l := sharedLab(t)
	run := func(args ...string) outcome { return reprise(t, append(args, "--nats", l.stack.NATSURL)...) }
	got := run("workflows", "put", example("subworkflow-child.json"), example("subworkflow-parent.json"))
	require.Zero(t, got.code, got.stderr)
	got = run("workflows", "list")
	assert.Regexp(t, `subworkflow-parent .* Orders, each priced by another workflow`, got.stdout)
	got = run("workflows", "get", "subworkflow-child")
	assert.JSONEq(t, readAll(t, example("subworkflow-child.json")), got.stdout)
	id := unique(t)
	got = run("submit", "--wait", "--workflow-id", "subworkflow-parent", "--output", "trace", "--id", id)
	assert.Zero(t, got.code, got.stderr)
	assert.Contains(t, got.stdout, "✓ Start      output as main             stack: [Orders]")
	assert.Contains(t, got.stdout, `answer: {"orders":"A, B","total":84}`)

	got = run("executions", "show", id)
	child := regexp.MustCompile(`started  execution (\S+), \S+\n`).FindStringSubmatch(got.stdout)
	require.NotNil(t, child, got.stdout)
	got = run("executions", "show", child[1])
	assert.Zero(t, got.code, got.stderr)
	assert.Contains(t, got.stdout, "started by execution "+id)

	run("submit", "--workflow-id", "nothing-of-this-id").failed(t, 2, "nothing-of-this-id")
	run("submit", "--workflow-id", "x", example("approval.json")).failed(t, 2, "not both")
	run("submit").failed(t, 2, "one workflow file")
}

// TestRetryForReal: a failed execution goes on where it broke off.
func TestRetryForReal(t *testing.T) {
	t.Parallel()
	l := sharedLab(t)
	site := l.Site()
	run := func(args ...string) outcome { return reprise(t, append(args, "--nats", l.stack.NATSURL)...) }
	calls, mended := 0, false
	site.Handle("/shop", func(w http.ResponseWriter, _ *http.Request) {
		calls++ // one request at a time
		if !mended {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"open": true}`)
	})
	document, err := json.Marshal(map[string]any{
		"id": unique(t), "name": "Shop", "settings": map[string]any{"executionOrder": "v1"},
		"nodes": []map[string]any{
			{"id": "1", "name": "Start", "type": "n8n-nodes-base.manualTrigger", "typeVersion": 1, "position": []int{0, 0}, "parameters": map[string]any{}},
			{"id": "2", "name": "Ask", "type": "n8n-nodes-base.httpRequest", "typeVersion": 4.2, "position": []int{0, 0}, "parameters": map[string]any{"url": site.URL + "/shop"}},
		},
		"connections": map[string]any{"Start": map[string]any{"main": [][]map[string]any{{{"node": "Ask", "type": "main", "index": 0}}}}},
	})
	require.NoError(t, err)
	flow, first := file(t, string(document)), unique(t)
	got := run("submit", "--wait", "--id", first, flow)
	require.Equal(t, 1, got.code, got.stdout)
	got = run("executions", "retry", "--wait", first)
	assert.Equal(t, 1, got.code)
	mended = true
	workflowID := gjson.GetBytes(document, "id").Str
	got = run("executions", "retry", "--all", "--yes", "--workflow-id", workflowID, "--wait", "--output", "json")
	assert.Zero(t, got.code, got.stderr)
	require.EqualValues(t, 1, gjson.Get(got.stdout, "#").Int(), "the first was retried already: %s%s", got.stdout, got.stderr)
	assert.NotEqual(t, first, gjson.Get(got.stdout, "0.id").Str)
	assert.Equal(t, "success", gjson.Get(got.stdout, "0.status").Str)
	assert.Equal(t, 3, calls)
	got = run("executions", "show", gjson.Get(got.stdout, "0.newId").Str)
	assert.Contains(t, got.stdout, "Shop  success")
	assert.Contains(t, got.stdout, "retry of execution ")
	got = run("executions", "retry", gjson.Get(got.stdout, "x").Str+"nobody")
	assert.Equal(t, 1, got.code)
	assert.Contains(t, got.stderr, "nobody")
}
