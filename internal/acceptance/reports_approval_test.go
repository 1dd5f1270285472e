package acceptance

import (
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/reprise-engine/reprise/internal/labtest"
	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/queue"
)

// The tests of reports are about faults that users met in other systems, see
// docs/user-reports.md.

// TestReport033ApprovedToolRuns: after the yes the tool runs, once, before the model is
// asked again.
func TestReport033ApprovedToolRuns(t *testing.T) {
	t.Parallel()
	l := sharedLab(t)
	site := l.Site()
	model := converse(t, site, script("m", asks(gated("Pay", "40 euros")), says("Done: {{results}}")))
	var before atomic.Int64
	ledger := site.Ledger("/pay", func(labtest.Entry) { before.Store(site.ModelRequests()) })
	id := l.submit(t, &queue.Submission{Workflow: gatedFlow(site, labtest.Gate("Ask", ""), ledger.URL, "Pay")})
	x := l.waiting(t, id)
	assert.Empty(t, runDataOf(asRun(t, x))["Pay"], "the tool must not have a record yet")
	a := l.question(t, id)
	assert.JSONEq(t, `{"text":"40 euros"}`, string(a.Arguments))
	assert.Empty(t, ledger.Texts())
	approve(t, a)
	run := l.succeeded(t, id)
	assert.Equal(t, []string{"40 euros"}, ledger.Texts())
	assert.EqualValues(t, 1, before.Load(), "model requests before the tool ran")
	assert.EqualValues(t, 2, site.ModelRequests())
	assert.Contains(t, answersOf(run)[0], `Pay returned [{"ok":true,"entry":1,"text":"40 euros"}]`)
	assert.Len(t, results(model.request(t, 1)), 1)
	assert.Equal(t, []string{"approved"}, outcomes(run, "Ask"))
}

// TestReport034AnswersGoToTheirOwnQuestion: two questions of a turn, at one gate.
func TestReport034AnswersGoToTheirOwnQuestion(t *testing.T) {
	t.Parallel()
	l := sharedLab(t)
	site := l.Site()
	converse(t, site, script("m", asks(gated("A", "for A"), gated("B", "for B")), says("{{results}}")))
	ledger := site.Ledger("/do", nil)
	id := l.submit(t, &queue.Submission{Workflow: gatedFlow(site, labtest.Gate("Ask", ""), ledger.URL, "A", "B")})
	open := l.questions(t, id, 2)
	a, b := about(t, open, "for A"), about(t, open, "for B")
	assert.NotEqual(t, a.ID, b.ID)
	assert.NotEqual(t, a.URL, b.URL)
	approve(t, b)
	deny(t, a)
	run := l.succeeded(t, id)
	assert.Equal(t, []string{"for B"}, ledger.Texts())
	assert.Empty(t, runDataOf(run)["A"])
	require.Len(t, runDataOf(run)["B"], 1)
	answers := strings.Split(answersOf(run)[0], "; ")
	require.Len(t, answers, 2)
	assert.Contains(t, answers[0], "A returned")
	assert.Contains(t, answers[0], "User rejected the tool call to A")
	assert.Contains(t, answers[1], `B returned [{"ok":true`)
	assert.Equal(t, []string{"denied", "approved"}, outcomes(run, "Ask"))
}

// TestReport035AllOfSeveralQuestionsCanBeAnswered: three at once, answered at once or
// one after the other.
func TestReport035AllOfSeveralQuestionsCanBeAnswered(t *testing.T) {
	t.Parallel()
	l := sharedLab(t)
	for name, answerAll := range map[string]func(t *testing.T, open []queue.Approval){
		"one after the other": func(t *testing.T, open []queue.Approval) {
			for i := len(open) - 1; i >= 0; i-- { // not in the order they were asked in
				approve(t, open[i])
				l.questions(t, open[i].Execution, i)
			}
		},
		"at once": func(t *testing.T, open []queue.Approval) {
			errs := make(chan error, len(open))
			for _, a := range open {
				go func() {
					errs <- l.Conn.Decide(t.Context(), queue.DecideRequest{ID: a.ID, Decision: engine.Decision{Approved: true}})
				}()
			}
			for range open {
				require.NoError(t, <-errs)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			site := l.Site()
			model := converse(t, site, script("m", asks(gated("Do", "one"), gated("Do", "two"), gated("Do", "three")), says("{{results}}")))
			ledger := site.Ledger("/do", nil)
			id := l.submit(t, &queue.Submission{Workflow: gatedFlow(site, labtest.Gate("Ask", ""), ledger.URL, "Do")})
			open := l.questions(t, id, 3)
			answerAll(t, open)
			run := l.succeeded(t, id)
			assert.ElementsMatch(t, []string{"one", "two", "three"}, ledger.Texts())
			assert.Equal(t, []string{"approved", "approved", "approved"}, outcomes(run, "Ask"))
			for _, r := range runDataOf(run)["Ask"] {
				assert.True(t, r.Get("metadata.decision.approved").Bool())
				assert.Positive(t, r.Get("metadata.decision.at").Int())
			}
			got := results(model.request(t, 1))
			require.Len(t, got, 3)
			for i, text := range []string{"one", "two", "three"} {
				assert.Contains(t, got[i], `"text":"`+text+`"`, "results are in the order asked")
			}
			assert.EqualValues(t, 2, site.ModelRequests())
		})
	}
}

// freeBesideGated runs a turn with a free and a gated tool, whose question is answered.
func freeBesideGated(t *testing.T, answer func(*testing.T, queue.Approval)) (answers []string, freeCalls, gatedCalls []string) {
	l := sharedLab(t)
	site := l.Site()
	model := converse(t, site, script("m", asks(free("Look", `{"text":"around"}`), gated("Pay", "40")), says("{{results}}")))
	look, pay := site.Ledger("/look", nil), site.Ledger("/pay", nil)
	id := l.submit(t, &queue.Submission{Workflow: agentFlow(site, []labtest.Node{
		labtest.HTTPTool("Look", look.URL), labtest.HTTPTool("Pay", pay.URL), labtest.Gate("Ask", ""),
	}, "Look ~ai_tool~> AI Agent", "Pay ~ai_tool~> Ask", "Ask ~ai_tool~> AI Agent")})
	l.waiting(t, id)
	assert.Equal(t, []string{"around"}, look.Texts(), "the free tool does not wait for the question")
	assert.EqualValues(t, 1, site.ModelRequests())
	answer(t, l.question(t, id))
	run := l.succeeded(t, id)
	assert.EqualValues(t, 2, site.ModelRequests())
	assert.Len(t, runDataOf(run)["Ask"], 1, "one question in all")
	assert.Len(t, runDataOf(run)["Look"], 1)
	return results(model.request(t, 1)), look.Texts(), pay.Texts()
}

// TestReports036And037FreeToolBesideAGate: both ran once, and both results reach the model.
func TestReports036And037FreeToolBesideAGate(t *testing.T) {
	t.Parallel()
	answers, looked, paid := freeBesideGated(t, approve)
	assert.Equal(t, []string{"around"}, looked)
	assert.Equal(t, []string{"40"}, paid)
	assert.Equal(t, []string{`[{"ok":true,"entry":1,"text":"around"}]`, `[{"ok":true,"entry":1,"text":"40"}]`}, answers)
}

// TestReports038And039RefusalBesideAFreeTool: the free tool ran, the refused call has a
// result, and a strict provider takes the history (see converse).
func TestReports038And039RefusalBesideAFreeTool(t *testing.T) {
	t.Parallel()
	answers, looked, paid := freeBesideGated(t, deny)
	assert.Equal(t, []string{"around"}, looked)
	assert.Empty(t, paid)
	require.Len(t, answers, 2)
	assert.Equal(t, `[{"ok":true,"entry":1,"text":"around"}]`, answers[0])
	assert.Contains(t, answers[1], "User rejected the tool call to Pay")
}

// TestReport040EachRoundHasItsOwnAnswer: approve, deny, expire, at the same gate, of
// the same tool.
func TestReport040EachRoundHasItsOwnAnswer(t *testing.T) {
	t.Parallel()
	l := sharedLab(t)
	site := l.Site()
	round := func(text, limit string) string {
		return asks(free("Do", `{"toolParameters":{"text":"`+text+`"},"hitlParameters":{"limit":"`+limit+`"}}`))
	}
	model := converse(t, site, script("m", round("one", ""), round("two", ""), round("three", "0.3s"), says("{{results}}")))
	ledger := site.Ledger("/do", nil)
	gate := labtest.Gate("Ask", "={{ $fromAI('limit', 'how long to wait', 'string') }}")
	id := l.submit(t, &queue.Submission{Workflow: gatedFlow(site, gate, ledger.URL, "Do")})
	approve(t, about(t, l.questions(t, id, 1), "one"))
	var second queue.Approval
	require.Eventually(t, func() bool {
		page, err := l.Conn.Approvals(t.Context(), queue.ApprovalsRequest{Execution: id})
		if err != nil || len(page.Approvals) != 1 || !strings.Contains(string(page.Approvals[0].Arguments), "two") {
			return false
		}
		second = page.Approvals[0]
		return true
	}, within, tick)
	deny(t, second)
	run := l.succeeded(t, id)
	assert.Equal(t, []string{"approved", "denied", "expired"}, outcomes(run, "Ask"))
	assert.Equal(t, []string{"one"}, ledger.Texts())
	answers := results(model.request(t, 3))
	require.Len(t, answers, 3)
	assert.Contains(t, answers[0], `"text":"one"`)
	assert.Contains(t, answers[1], "User rejected the tool call")
	assert.Contains(t, answers[2], "expired before anybody decided")
}

// TestReport041QuestionsInTwoBranches: the execution waits until both are answered.
func TestReport041QuestionsInTwoBranches(t *testing.T) {
	t.Parallel()
	l := sharedLab(t)
	site := l.Site()
	converse(t, site, script("left", asks(gated("Left_Tool", "left")), says("left done")), script("right", asks(gated("Right_Tool", "right")), says("right done")))
	ledger := site.Ledger("/do", nil)
	nodes := []labtest.Node{labtest.NewNode("Start", "n8n-nodes-base.manualTrigger", 1, "")}
	var connections []string
	for _, side := range []string{"Left", "Right"} {
		nodes = append(nodes, labtest.Agent(side, "go"), site.ModelNode(side+" Model", strings.ToLower(side)),
			labtest.Gate(side+" Gate", ""), labtest.HTTPTool(side+"_Tool", ledger.URL))
		connections = append(connections, "Start -> "+side, side+" Model ~ai_languageModel~> "+side,
			side+" Gate ~ai_tool~> "+side, side+"_Tool ~ai_tool~> "+side+" Gate")
	}
	id := l.submit(t, &queue.Submission{Workflow: labtest.Flow("two-branches", nil, nodes, connections...)})
	l.waiting(t, id)
	open := l.questions(t, id, 2)
	approve(t, about(t, open, "right"))
	require.Eventually(t, func() bool { return len(ledger.Texts()) == 1 }, within, tick)
	l.waiting(t, id)
	assert.Equal(t, []string{"right"}, ledger.Texts())
	approve(t, l.question(t, id))
	run := l.succeeded(t, id)
	assert.Equal(t, []string{"right", "left"}, ledger.Texts())
	assert.Equal(t, "left done", runDataOf(run)["Left"][0].Get("data.main.0.0.json.output").Str)
	assert.Equal(t, "right done", runDataOf(run)["Right"][0].Get("data.main.0.0.json.output").Str)
}

// TestReport048ExpiryIsNoRefusal: nobody answers.
func TestReport048ExpiryIsNoRefusal(t *testing.T) {
	t.Parallel()
	l := sharedLab(t)
	site := l.Site()
	converse(t, site, script("m", asks(gated("Pay", "40")), says("{{results}}")))
	ledger := site.Ledger("/pay", nil)
	id := l.submit(t, &queue.Submission{Workflow: gatedFlow(site, labtest.Gate("Ask", "0.3s"), ledger.URL, "Pay")})
	run := l.succeeded(t, id)
	assert.Empty(t, ledger.Texts())
	assert.Equal(t, []string{"expired"}, outcomes(run, "Ask"))
	record := runDataOf(run)["Ask"][0]
	assert.JSONEq(t, `{"data":{"approved":false,"expired":true}}`, record.Get("data.ai_tool.0.0.json").Raw)
	assert.False(t, record.Get("metadata.decision").Exists(), "nobody has decided")
	assert.Contains(t, answersOf(run)[0], "expired before anybody decided")
	assert.NotContains(t, answersOf(run)[0], "reject")
	asked, err := l.Conn.Approval(t.Context(), record.Get("metadata.wait").Str)
	require.NoError(t, err)
	assert.Equal(t, engine.OutcomeExpired, asked.Outcome)
	refused(t, l.Conn.Decide(t.Context(), queue.DecideRequest{ID: asked.ID, Decision: engine.Decision{Approved: true}}), queue.CodeGone)
}

// TestReport049QuestionInsideASubAgent: the sub-agent goes on, and its parent gets the
// sub-agent's answer, not the approval.
func TestReport049QuestionInsideASubAgent(t *testing.T) {
	t.Parallel()
	l := sharedLab(t)
	site := l.Site()
	converse(t, site,
		script("m", asks(free("Clerk", `{"task":"pay 40"}`)), says("The clerk says {{last}}")),
		script("clerk", asks(gated("Pay", "40")), says("I have paid")))
	ledger := site.Ledger("/pay", nil)
	id := l.submit(t, &queue.Submission{Workflow: agentFlow(site, []labtest.Node{
		labtest.AgentTool("Clerk"), site.ModelNode("Clerk Model", "clerk"), labtest.Gate("Ask", ""), labtest.HTTPTool("Pay", ledger.URL),
	}, "Clerk ~ai_tool~> AI Agent", "Clerk Model ~ai_languageModel~> Clerk", "Ask ~ai_tool~> Clerk", "Pay ~ai_tool~> Ask")})
	x := l.waiting(t, id)
	assert.Equal(t, "Ask", x.Waiting[0].Node)
	approve(t, l.question(t, id))
	run := l.succeeded(t, id)
	assert.Equal(t, []string{"40"}, ledger.Texts())
	assert.Equal(t, `The clerk says [{"output":"I have paid"}]`, answersOf(run)[0])
	assert.Len(t, runDataOf(run)["Clerk"], 1)
	assert.EqualValues(t, 4, site.ModelRequests())
}
