package coordinator_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reprise-engine/reprise/internal/links"
	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/queue"
)

// agentFlow is an agent with one tool, through which it asks a person.
func agentFlow() []byte {
	data, _ := json.Marshal(object{
		"id": "agent", "name": "The agent",
		"nodes": []object{
			{"name": "Start", "type": "test.trigger", "typeVersion": 1, "position": []int{0, 0}, "parameters": object{}},
			{"name": "Agent", "type": "test.agent", "typeVersion": 1, "position": []int{100, 0}, "parameters": object{}},
			{"name": "Gate", "type": "test.wait", "typeVersion": 1, "position": []int{100, 100}, "parameters": object{}},
		},
		"connections": object{
			"Start": object{"main": [][]object{{{"node": "Agent", "type": "main", "index": 0}}}},
			"Gate":  object{"ai_tool": [][]object{{{"node": "Agent", "type": "ai_tool", "index": 0}}}},
		},
		"settings": object{"executionOrder": "v1"},
	})
	return data
}

// asking runs agents that ask about each of the given calls at once.
func (f *fixture) asking(until func() int64, arguments ...string) *ledger {
	return f.work(func(job *queue.Job, name string) (engine.Result, bool) {
		switch {
		case name == "Agent" && len(job.Rounds) == 0:
			request := &engine.Request{}
			for i, text := range arguments {
				request.Actions = append(request.Actions, engine.Action{
					ActionType: "ExecutionNodeAction", NodeName: "Gate", Type: "ai_tool",
					ID: fmt.Sprintf("call_%d", i), Input: json.RawMessage(text),
				})
			}
			return engine.Result{Request: request}, true
		case name == "Agent":
			return outputs(`{"done":true}`), true
		case job.Resumption == nil:
			return wait(engine.Wait{Kind: engine.WaitApproval, Until: until(), Question: &engine.Question{
				Title: "May I?", Text: "please", Tool: "Send", Approve: "Yes", Deny: "No",
			}}), true
		case job.Resumption.Expired:
			return outputs(`{"approved":"expired"}`), true
		}
		return outputs(fmt.Sprintf(`{"approved":%v}`, job.Resumption.Decision.Approved)), true
	})
}

func never() int64 { return 0 }

// Reports 34, 35 and 44: questions of one turn are all shown and decided one by one;
// a link made for one call, or for other arguments, decides no other.
func TestReport44ApprovalsAreBoundToTheirCall(t *testing.T) {
	t.Parallel()
	f := start(t, 2)
	ran := f.asking(never, `{"tool":"send",  "toolParameters": {"to": "Ada",  "n": 1.0}}`, `{"to":"Bob <b@x>"}`)
	f.begin(queue.Submission{ID: "gate", Workflow: agentFlow()})
	f.waiting("gate", 2)
	page, err := f.conn.Approvals(t.Context(), queue.ApprovalsRequest{})
	require.NoError(t, err)
	require.Len(t, page.Approvals, 2)
	a, b := page.Approvals[0], page.Approvals[1] // whoever asked first
	if a.CallID != "call_0" {
		a, b = b, a
	}
	require.Equal(t, `{"to":"Ada","n":1.0}`, string(a.Arguments))
	require.Equal(t, "call_0", a.CallID)
	require.Equal(t, "Gate", a.Node)
	require.Equal(t, "Send", a.Tool)
	require.Equal(t, "The agent", a.Workflow)
	require.Equal(t, []string{"May I?", "please", "Yes", "No"}, []string{a.Title, a.Text, a.Approve, a.Deny})
	require.NotEqual(t, a.Bind, b.Bind)

	// What the job was told, before anything was stored, is what the list says now.
	jobs := ran.of("gate", "Gate")
	require.ElementsMatch(t, []string{a.URL, b.URL}, []string{jobs[0].ApprovalURL, jobs[1].ApprovalURL})
	u, err := url.Parse(b.URL)
	require.NoError(t, err)
	bind, ok := links.New([]byte("0123456789abcdef0123456789abcdef"), "").CheckApproval(b.ID, u.Query().Get(links.Parameter))
	require.True(t, ok)
	require.Equal(t, b.Bind, bind)

	decide := func(id, bind string, approved bool) error {
		return f.conn.Decide(t.Context(), queue.DecideRequest{ID: id, Bind: bind, Decision: engine.Decision{Approved: approved, By: "Eve"}})
	}
	f.refused(decide(a.ID, b.Bind, true), queue.CodeForbidden)
	f.refused(decide("gate_99", "", true), queue.CodeNotFound)
	f.refused(decide("nobody_1", "", true), queue.CodeNotFound)
	f.refused(decide("no token", "", true), queue.CodeNotFound)
	require.NoError(t, decide(a.ID, a.Bind, true))
	f.refused(decide(a.ID, a.Bind, false), queue.CodeConflict, "decided before", "approved")
	f.refused(decide(a.ID, b.Bind, false), queue.CodeForbidden)
	only, err := f.conn.Approvals(t.Context(), queue.ApprovalsRequest{Execution: "gate"})
	require.NoError(t, err)
	require.Len(t, only.Approvals, 1)
	require.Equal(t, b.ID, only.Approvals[0].ID)
	require.NoError(t, decide(b.ID, "", false))
	_, run := f.finished("gate")
	require.JSONEq(t, `{"approved":true}`, string(run["Gate"][0].Data["ai_tool"][0][0].JSON))
	require.JSONEq(t, `{"approved":false}`, string(run["Gate"][1].Data["ai_tool"][0][0].JSON))
	require.Equal(t, engine.OutcomeDenied, run["Gate"][1].Metadata.Outcome)

	shown, err := f.conn.Approval(t.Context(), a.ID)
	require.NoError(t, err)
	require.Equal(t, engine.OutcomeApproved, shown.Outcome)
	require.Equal(t, "Eve", shown.Decision.By)
	require.Equal(t, a.Bind, shown.Bind, "a link that was used is still known")
	require.Equal(t, string(a.Arguments), string(shown.Arguments))
	_, err = f.conn.Approval(t.Context(), "gate_99")
	f.refused(err, queue.CodeNotFound)
}

// Of several decisions at once exactly one counts, and the others are told so.
func TestOfSeveralDecisionsOneCounts(t *testing.T) {
	t.Parallel()
	f := start(t, 2)
	f.asking(never, `{"to":"Ada"}`)
	for round := range 5 {
		id := engine.ExecutionID(fmt.Sprintf("race-%d", round))
		f.begin(queue.Submission{ID: id, Workflow: agentFlow()})
		token := f.waiting(id, 1).Waiting[0].Token
		winner, others := f.oneWins(8, func(i int) error {
			return f.conn.Decide(t.Context(), queue.DecideRequest{ID: token, Decision: engine.Decision{Approved: i%2 == 0, By: fmt.Sprint(i)}})
		})
		for _, err := range others {
			f.refused(err, queue.CodeConflict)
		}
		_, run := f.finished(string(id))
		require.Len(t, run["Gate"], 1)
		require.Equal(t, fmt.Sprint(winner), run["Gate"][0].Metadata.Decision.By)
		require.JSONEq(t, fmt.Sprintf(`{"approved":%v}`, winner%2 == 0), string(run["Gate"][0].Data["ai_tool"][0][0].JSON))
	}
}

// Report 48: what expired is told apart from what was refused.
func TestReport48ExpiredQuestions(t *testing.T) {
	t.Parallel()
	f := start(t, 1)
	f.asking(func() int64 { return inMillis(300 * time.Millisecond) }, `{}`)
	f.begin(queue.Submission{ID: "late", Workflow: agentFlow()})
	_, run := f.finished("late")
	require.Equal(t, engine.OutcomeExpired, run["Gate"][0].Metadata.Outcome)
	require.JSONEq(t, `{"approved":"expired"}`, string(run["Gate"][0].Data["ai_tool"][0][0].JSON))
	err := f.conn.Decide(t.Context(), queue.DecideRequest{ID: run["Gate"][0].Metadata.Wait, Decision: engine.Decision{Approved: true}})
	f.refused(err, queue.CodeGone, "expired")
}

// Report 46: a decision that comes before its question is stored is not taken for
// one that counts; it may be repeated, and then counts.
func TestReport46DecisionBeforeItsQuestion(t *testing.T) {
	t.Parallel()
	f := start(t, 2)
	f.begin(queue.Submission{ID: "early", Workflow: flow("w", nil, "Start: test.trigger", "Ask: test.wait")})
	d := f.next()
	token := d.Job().IdempotencyKey
	decide := func() error {
		return f.conn.Decide(t.Context(), queue.DecideRequest{ID: token, Decision: engine.Decision{Approved: true}})
	}
	f.refused(decide(), queue.CodeUnavailable, "try again")
	r := answer(d, "")
	r.Result.Result = wait(engine.Wait{Kind: engine.WaitApproval, Question: &engine.Question{Title: "?"}})
	f.send(d.Job().Coordinator, r)
	require.NoError(t, decide())
	d = f.next()
	require.True(t, d.Job().Resumption.Decision.Approved)
	require.Equal(t, 1, d.Job().Slice)
	f.send(d.Job().Coordinator, answer(d, "it"))
	f.finished("early")
}

// The list of questions is paged, oldest first.
func TestApprovalsArePaged(t *testing.T) {
	t.Parallel()
	f := start(t, 1)
	f.work(func(*queue.Job, string) (engine.Result, bool) {
		return wait(engine.Wait{Kind: engine.WaitApproval, Question: &engine.Question{Title: "?"}}), true
	})
	for i := range 5 {
		id := engine.ExecutionID(fmt.Sprintf("ask-%d", i))
		f.begin(queue.Submission{ID: id, Workflow: flow("w", nil, "Start: test.trigger", "Ask: test.wait")})
		f.waiting(id, 1)
	}
	var seen []string
	for cursor, pages := "", 0; ; pages++ {
		require.Less(t, pages, 4)
		page, err := f.conn.Approvals(t.Context(), queue.ApprovalsRequest{Limit: 2, Cursor: cursor})
		require.NoError(t, err)
		for _, a := range page.Approvals {
			seen = append(seen, string(a.Execution))
		}
		if cursor = page.Cursor; cursor == "" {
			break
		}
	}
	require.Equal(t, []string{"ask-0", "ask-1", "ask-2", "ask-3", "ask-4"}, seen)
}
