package ai

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"github.com/reprise-engine/reprise/pkg/engine"
)

const rejected = "User rejected the tool call to "

func TestReport033ApprovedToolRuns(t *testing.T) {
	s := newScene(t, "Calculator ~> Gate ~> Agent")
	s.models.play("Agent", "", `Calculator {"toolParameters":{"input":"5*8"}}`+"\n"+`"{{results}}"`)
	s.start(`{"q":"go"}`)
	require.Equal(t, 1, s.asks("Agent"))
	s.decide("Gate", true, "")
	s.ended(engine.StatusSuccess)
	require.Equal(t, 2, s.asks("Agent"))
	require.Equal(t, []string{`[{"response":"40"}]`}, answersIn(s.request("Agent", 1)))
	require.Len(t, s.state.Run["Calculator"], 1)
}

func TestReport034AnswersGoToTheirOwnQuestion(t *testing.T) {
	s := newScene(t, "Ledger A ~> Gate ~> Agent\nLedger B ~> Gate")
	s.models.play("Agent", "", `Ledger_A {"toolParameters":{}} + Ledger_B {"toolParameters":{}}`+"\n"+`"{{results}}"`)
	s.start(`{"q":"go"}`)
	s.decide("Gate#1", true, "")
	s.decide("Gate#0", false, "")
	s.ended(engine.StatusSuccess)
	require.Equal(t, []string{"Ledger B {}"}, s.ledger.lines)
	answers := answersIn(s.request("Agent", 1))
	require.Contains(t, answers[0], rejected+"Ledger A (id: c0.0)")
	require.Equal(t, `[{"entry":1}]`, answers[1])
}

func TestReport035AllOfSeveralQuestionsCanBeAnswered(t *testing.T) {
	s := newScene(t, "Ledger A ~> Gate A ~> Agent\nLedger B ~> Gate B ~> Agent\nLedger C ~> Gate C ~> Agent")
	s.models.play("Agent", "", `Ledger_A {"toolParameters":{}} + Ledger_B {"toolParameters":{}} + Ledger_C {"toolParameters":{}}`+"\n"+`"{{results}}"`)
	s.start(`{"q":"go"}`)
	require.Len(t, s.state.Parked, 3)
	s.decide("Gate C", true, "")
	s.restart()
	s.decide("Gate A", false, "")
	require.Empty(t, s.ledger.lines, "nothing runs while a call of the turn is undecided")
	s.decide("Gate B", true, "")
	s.ended(engine.StatusSuccess)
	require.Equal(t, []string{"Ledger B {}", "Ledger C {}"}, s.ledger.lines)
	require.Contains(t, s.records("Gate A"), "denied")
	require.Contains(t, s.records("Gate B"), "approved")
	require.Contains(t, s.records("Gate C"), "approved")
	require.Equal(t, 2, s.asks("Agent"))
}

func TestReport036FreeToolBesideAGateRunsOnce(t *testing.T) {
	s := newScene(t, "Calculator ~> Gate ~> Agent\nLedger ~> Agent")
	s.models.play("Agent", "", `Ledger {} + Calculator {"toolParameters":{"input":"6*7"}}`+"\n"+`"{{results}}"`)
	s.start(`{"q":"go"}`)
	require.Len(t, s.ledger.lines, 1, "it does not wait for the decision")
	s.decide("Gate", true, "")
	s.ended(engine.StatusSuccess)
	require.Len(t, s.ledger.lines, 1)
}

func TestReport037FreeResultIsKeptAcrossTheApproval(t *testing.T) {
	s := newScene(t, "Calculator ~> Gate ~> Agent\nLedger ~> Agent")
	s.models.play("Agent", "", `Ledger {} + Calculator {"toolParameters":{"input":"6*7"}}`+"\n"+`"{{results}}"`)
	s.start(`{"q":"go"}`)
	s.decide("Gate", true, "")
	require.Equal(t, []string{`[{"entry":1}]`, `[{"response":"42"}]`}, answersIn(s.request("Agent", 1)))
	require.Len(t, s.state.Run["Gate"], 1, "one question in all")
}

func TestReport038RefusalLeavesNoCallWithoutAnswer(t *testing.T) {
	s := newScene(t, "Calculator ~> Gate ~> Agent\nLedger ~> Agent")
	s.models.play("Agent", "", `Calculator {"toolParameters":{"input":"6*7"}} + Ledger {}`+"\n"+`"{{results}}"`)
	s.start(`{"q":"go"}`)
	s.decide("Gate", false, "")
	s.ended(engine.StatusSuccess) // the model's server is strict
	require.Len(t, answersIn(s.request("Agent", 1)), 2)
}

func TestReport039RefusalDoesNotSkipTheFreeTool(t *testing.T) {
	s := newScene(t, "Calculator ~> Gate ~> Agent\nLedger ~> Agent")
	s.models.play("Agent", "", `Calculator {"toolParameters":{"input":"6*7"}} + Ledger {}`+"\n"+`"{{results}}"`)
	s.start(`{"q":"go"}`)
	s.decide("Gate", false, "")
	require.Equal(t, []string{"Ledger {}"}, s.ledger.lines)
	require.Equal(t, `[{"entry":1}]`, answersIn(s.request("Agent", 1))[1])
}

func TestReport040EachQuestionHasItsOwnAnswer(t *testing.T) {
	s := newScene(t, "Gate: gate {\"timeout\":5000}\nCalculator ~> Gate ~> Agent")
	s.models.play("Agent", "", `Calculator {"toolParameters":{"input":"1"}}`+"\n"+`Calculator {"toolParameters":{"input":"2"}}`+"\n"+`Calculator {"toolParameters":{"input":"3"}}`+"\n"+`"{{results}}"`)
	s.start(`{"q":"go"}`)
	s.decide("Gate", true, "")
	s.decide("Gate", false, "")
	s.expire("Gate")
	s.ended(engine.StatusSuccess)
	answers := answersIn(s.request("Agent", 3))
	require.Equal(t, `[{"response":"1"}]`, answers[0])
	require.Contains(t, answers[1], rejected+"Calculator (id: c1.0)")
	require.Contains(t, answers[2], "(id: c2.0) expired before anybody decided")
	require.Len(t, s.state.Run["Calculator"], 1)
}

func TestReport041QuestionsInSeveralBranches(t *testing.T) {
	s := newScene(t, "Calculator one ~> Gate one ~> Agent one\nCalculator two ~> Gate two ~> Agent two")
	s.models.play("Agent one", "", `Calculator_one {"toolParameters":{"input":"1"}}`+"\n"+`"{{results}}"`)
	s.models.play("Agent two", "", `Calculator_two {"toolParameters":{"input":"2"}}`+"\n"+`"{{results}}"`)
	s.start(`{"q":"go"}`)
	require.Len(t, s.state.Parked, 2, s.log.String())
	s.decide("Gate two", true, "")
	s.ended(engine.StatusWaiting)
	require.Equal(t, []string{`{"output":"[{\"response\":\"2\"}]"}`}, s.items("Agent two"))
	s.decide("Gate one", true, "")
	s.ended(engine.StatusSuccess)
	require.Equal(t, []string{`{"output":"[{\"response\":\"1\"}]"}`}, s.items("Agent one"))
}

// What stands behind a gate that is switched off is not offered: it must not run
// unasked, and a question that nobody is asked would wait for ever.
func TestReport042DisabledGate(t *testing.T) {
	s := newScene(t, "Gate: gate disabled=true\nCalculator ~> Gate ~> Agent\nThink ~> Agent")
	s.models.play("Agent", "", `Calculator {"toolParameters":{"input":"6*7"}}`+"\n"+`"{{results}}"`)
	s.start(`{"q":"go"}`)
	s.ended(engine.StatusSuccess)
	require.Equal(t, `["Think"]`, gjson.Get(s.request("Agent", 0), "tools.#.function.name").Raw)
	require.Contains(t, answersIn(s.request("Agent", 1))[0], `There is no tool \"Calculator\"`)
	require.Empty(t, s.state.Run["Calculator"])
}

func TestReport047CancelWhileWaitingLeavesTheChatUsable(t *testing.T) {
	s := newScene(t, "Calculator ~> Gate ~> Agent\nMemory ~> Agent")
	s.models.play("Agent", "pay", `Calculator {"toolParameters":{"input":"6*7"}}`+"\n"+`"paid"`)
	s.models.play("Agent", "hello", `"hello yourself"`)
	s.start(`{"q":"hello","sessionId":"s"}`)
	s.start(`{"q":"pay","sessionId":"s"}`)
	s.ended(engine.StatusWaiting)
	s.cancel()
	s.ended(engine.StatusCanceled)
	require.Contains(t, s.records("Gate"), "Gate#0 canceled canceled", "the call has its end in the run data")
	s.start(`{"q":"hello again","sessionId":"s"}`)
	s.ended(engine.StatusSuccess)
	require.NotContains(t, s.remembered("s"), "pay")
	s.start(`{"q":"pay","sessionId":"s"}`)
	s.decide("Gate", true, "")
	s.ended(engine.StatusSuccess)
	require.Equal(t, `user hello
assistant hello yourself
user hello again
assistant hello yourself
user pay
assistant calls c0.0 Calculator {"toolParameters":{"input":"6*7"}}
tool [{"response":"42"}]
assistant paid
`, s.remembered("s"))
}

func TestReport048ExpiryIsNoRefusal(t *testing.T) {
	s := newScene(t, "Gate: gate {\"timeout\":2000}\nCalculator ~> Gate ~> Agent")
	s.models.play("Agent", "", `Calculator {"toolParameters":{"input":"6*7"}}`+"\n"+`"{{results}}"`)
	s.start(`{"q":"go"}`)
	s.expire("Gate")
	s.ended(engine.StatusSuccess)
	answer := answersIn(s.request("Agent", 1))[0]
	require.Contains(t, answer, "expired")
	require.NotContains(t, strings.ToLower(answer), "reject")
	require.Equal(t, engine.OutcomeExpired, s.state.Run["Gate"][0].Metadata.Outcome)
}

func TestReport049QuestionInsideASubAgent(t *testing.T) {
	s := newScene(t, "Calculator ~> Gate ~> Sub ~> Agent")
	s.models.play("Agent", "", `Sub {"task":"6 times 7"}`+"\n"+`"{{results}}"`)
	s.models.play("Sub", "", `Calculator {"toolParameters":{"input":"6*7"}}`+"\n"+`"sub: {{results}}"`)
	s.start(`{"q":"go"}`)
	s.ended(engine.StatusWaiting)
	s.restart()
	s.decide("Gate", true, "")
	s.ended(engine.StatusSuccess)
	require.Equal(t, []string{`[{"output":"sub: [{\"response\":\"42\"}]"}]`}, answersIn(s.request("Agent", 1)))
}
