package cli

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/queue"
)

// question is an open question about a refund.
func question(id string, expires int64) queue.Approval {
	return queue.Approval{
		ID: id, Execution: "x", Workflow: "Refunds", Node: "Ask a person", RunIndex: 1, CallID: "call_" + id, Tool: "Send refund",
		Arguments: json.RawMessage(`{"amount":40,"to":"Ada"}`), Text: "Send it?", URL: "http://here/approval/" + id,
		Asked: time.Now().Add(-90 * time.Second).UnixMilli(), Expires: expires, Approve: "Approve", Deny: "Deny",
	}
}

func TestApprovals(t *testing.T) {
	t.Parallel()
	f := startFakeAPI(t)
	got := f.run(t, "executions", "approvals")
	assert.Zero(t, got.code)
	assert.Empty(t, got.stdout)
	assert.Contains(t, got.stderr, "no question")
	assert.JSONEq(t, "[]", f.run(t, "executions", "approvals", "--output", "json").stdout)

	f.approvals = []queue.Approval{question("x_1", 0), question("x_2", time.Now().Add(20*time.Minute).UnixMilli()), question("x_3", 0)}
	f.approvals = append(f.approvals, question("y_1", 0))
	f.approvals[3].Execution = "y"
	got = f.run(t, "executions", "approvals", "--execution", "x")
	assert.Zero(t, got.code, got.stderr)
	assert.NotContains(t, got.stdout, "\x1b")
	for _, text := range []string{
		"x_1\n", "x_2\n", "x_3\n", "Ask a person #2", "Send it?", "tool       Send refund", "{\n               \"amount\": 40,\n               \"to\": \"Ada\"\n             }",
		"1m ago", "never", "in 19m", "http://here/approval/x_2", "reprise executions approve x_2", "reprise executions deny x_2 --feedback TEXT",
	} {
		assert.Contains(t, got.stdout, text)
	}
	assert.NotContains(t, got.stdout, "y_1")
	got = f.run(t, "executions", "approvals", "--output", "json")
	var list []map[string]any
	require.NoError(t, json.Unmarshal([]byte(got.stdout), &list), got.stdout)
	require.Len(t, list, 4)
	assert.Equal(t, "x_2", list[1]["id"])
	assert.Equal(t, "x", list[1]["execution"])
	assert.Equal(t, "Ask a person", list[1]["node"])
	assert.EqualValues(t, 1, list[1]["runIndex"])
	assert.Equal(t, "call_x_2", list[1]["callId"])
	assert.Equal(t, "Send refund", list[1]["tool"])
	assert.Equal(t, map[string]any{"amount": 40.0, "to": "Ada"}, list[1]["arguments"])
	assert.Equal(t, "http://here/approval/x_2", list[1]["url"])
	assert.EqualValues(t, f.approvals[1].Expires, list[1]["expires"])
}

// TestDecide: each question is decided once; what is refused says why, and does not
// stop the others.
func TestDecide(t *testing.T) {
	t.Parallel()
	f := startFakeAPI(t)
	f.approvals = []queue.Approval{question("x_1", 0), question("x_2", 0), question("x_3", time.Now().UnixMilli()), question("x_4", 0), question("x_5", 0)}
	f.approvals[2].Outcome, f.approvals[3].Outcome = engine.OutcomeExpired, engine.OutcomeCanceled

	got := f.run(t, "executions", "approve", "x_1", "--by", "ada", "--feedback", "but quickly")
	assert.Zero(t, got.code, got.stderr)
	assert.Equal(t, "approved x_1\n", got.stdout)
	require.Len(t, f.decisions, 1)
	d := f.decisions[0].Decision
	assert.True(t, d.Approved)
	assert.Equal(t, "ada", d.By)
	assert.Equal(t, "but quickly", d.Feedback)
	assert.WithinDuration(t, time.Now(), time.UnixMilli(d.At), within)

	f.run(t, "executions", "deny", "x_1").failed(t, 2, `"x_1" is decided already: approved by ada at `, `"but quickly"`)
	f.run(t, "executions", "approve", "x_3").failed(t, 2, `"x_3" cannot be answered any more: it expired at`)
	f.run(t, "executions", "approve", "x_4").failed(t, 2, `"x_4"`, "its execution is over")
	f.run(t, "executions", "approve", "x_9").failed(t, 2, `there is no question "x_9"`, "reprise executions approvals")
	f.run(t, "executions", "approval", "x_9").failed(t, 2, `there is no question "x_9"`)
	require.Len(t, f.decisions, 1)

	got = f.run(t, "executions", "deny", "x_9", "x_2", "x_3", "x_5", "--output", "json")
	assert.Equal(t, 2, got.code)
	var done []struct{ ID, Outcome, Error string }
	require.NoError(t, json.Unmarshal([]byte(got.stdout), &done), got.stdout)
	require.Len(t, done, 4)
	assert.Contains(t, done[0].Error, "there is no question")
	assert.Equal(t, struct{ ID, Outcome, Error string }{"x_2", "denied", ""}, done[1])
	assert.Equal(t, "denied", done[3].Outcome)
	assert.NotEmpty(t, f.decisions[1].Decision.By, "the login name")

	got = f.run(t, "executions", "approval", "x_1")
	assert.Zero(t, got.code)
	assert.Contains(t, got.stdout, `decided    approved by ada at `)
	assert.NotContains(t, got.stdout, "reprise executions approve")
	got = f.run(t, "executions", "approval", "x_1", "--output", "json")
	var one queue.Approval
	require.NoError(t, json.Unmarshal([]byte(got.stdout), &one))
	assert.Equal(t, engine.OutcomeApproved, one.Outcome)
}

func TestResume(t *testing.T) {
	t.Parallel()
	f := startFakeAPI(t)
	f.executions = []queue.Execution{
		{ID: "hook", Status: engine.StatusWaiting, Waiting: []queue.Waiting{{Token: "hook_1", Node: "Wait", Kind: engine.WaitWebhook}}},
		{ID: "asks", Status: engine.StatusWaiting, Waiting: []queue.Waiting{{Token: "asks_1", Node: "Gate", Kind: engine.WaitApproval}}},
	}
	got := f.run(t, "executions", "resume", "hook")
	assert.Zero(t, got.code, got.stderr)
	assert.Equal(t, "resumed hook\nthank you\n", got.stdout)
	got = f.run(t, "executions", "resume", "hook", "--data", "@"+file(t, `[1, "a"]`), "--suffix", "paid", "--output", "json")
	assert.Zero(t, got.code, got.stderr)
	assert.JSONEq(t, `{"execution": "hook", "response": {"body": "thank you"}}`, got.stdout)
	require.Len(t, f.resumes, 2)
	assert.JSONEq(t, `{"headers": {}, "params": {}, "query": {}, "body": {}}`, string(f.resumes[0].Data))
	assert.JSONEq(t, `{"headers": {}, "params": {}, "query": {}, "body": [1, "a"]}`, string(f.resumes[1].Data))
	assert.Equal(t, "paid", f.resumes[1].Suffix)
	assert.Nil(t, f.resumes[1].Link)

	f.run(t, "executions", "resume", "asks").failed(t, 2, "no wait for a webhook fits", "it is waiting", "Gate waits for a decision")
	f.run(t, "executions", "resume", "nobody").failed(t, 2, "nobody")
	f.run(t, "executions", "resume", "hook", "--data", "hello").failed(t, 2, "--data must be JSON")
	f.run(t, "executions", "resume", "hook", "--data", "@nothing.json").failed(t, 2, "--data", "nothing.json")
}
