package ai

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"github.com/reprise-engine/reprise/pkg/engine"
)

// The tests of this file and of reports_approval_test.go each hold the Agent to one
// public report about a comparable engine; the number is that of our list of
// reports. Every request to a model is checked for a strict history (see modelScripts).

// asks counts the requests to an agent's model.
func (s *scene) asks(agent string) int { return len(s.models.asked[agent]) }

// request is the n-th request to an agent's model.
func (s *scene) request(agent string, n int) string {
	s.t.Helper()
	require.Greater(s.t, s.asks(agent), n, s.log.String())
	return s.models.asked[agent][n]
}

// answers are the tool messages of a request.
func answersIn(body string) (texts []string) {
	for _, m := range gjson.Get(body, `messages.#(role=="tool")#.content`).Array() {
		texts = append(texts, m.Str)
	}
	return texts
}

func (s *scene) ended(status engine.Status) {
	s.t.Helper()
	require.Equal(s.t, status, s.state.Meta.Status, s.log.String())
}

// Without an execution order the workflow is of the old kind; n8n resumed the agent
// before its tools had run.
func TestReport001ResultsReachTheAgentInTheOldOrder(t *testing.T) {
	s := newScene(t, "set executionOrder=v0\nCalculator ~> Agent")
	s.models.play("Agent", "", `Calculator {"input":"23*17"}`+"\n"+`"{{results}}"`)
	s.start(`{"q":"go"}`)
	s.ended(engine.StatusSuccess)
	require.Equal(t, []string{`[{"response":"391"}]`}, answersIn(s.request("Agent", 1)))
}

func TestReport002NoEmptyObservationWhileThereIsData(t *testing.T) {
	s := newScene(t, "Calculator ~> Agent\nLedger ~> Agent")
	s.models.play("Agent", "", `Calculator {"input":"6*7"} + Ledger {}`+"\n"+`"{{results}}"`)
	for n := range 50 {
		s.start(`{"q":"go"}`)
		require.Equal(t, []string{`[{"response":"42"}]`, fmt.Sprintf(`[{"entry":%d}]`, n+1)}, answersIn(s.request("Agent", 2*n+1)))
	}
}

func TestReport003OrderOfTheCallsIsKept(t *testing.T) {
	s := newScene(t, `
		Agent: agent {"options":{"returnIntermediateSteps":true}}
		Ledger log ~> Agent
		Ledger post ~> Agent
		Ledger react ~> Agent`)
	s.models.play("Agent", "", `Ledger_post {} + Ledger_react {} + Ledger_log {}`+"\n"+`"done"`)
	s.start(`{"q":"go"}`)
	require.Equal(t, []string{"Ledger post {}", "Ledger react {}", "Ledger log {}"}, s.ledger.lines)
	require.Equal(t, []string{`[{"entry":1}]`, `[{"entry":2}]`, `[{"entry":3}]`}, answersIn(s.request("Agent", 1)))
	require.Equal(t, `["Ledger_post","Ledger_react","Ledger_log"]`, gjson.Get(s.items("Agent")[0], "intermediateSteps.#.action.tool").Raw)
}

// The model repeats the call unless it is shown the answer.
func TestReport004EarlierRoundsAreInTheHistory(t *testing.T) {
	s := newScene(t, "Ledger ~> Agent")
	s.models.play("Agent", "", `Ledger {}`+"\n"+`"enough"`)
	s.start(`{"q":"go"}`)
	require.Equal(t, 2, s.asks("Agent"))
	require.Len(t, s.ledger.lines, 1)
}

func TestReport005TheSameCallForEverEndsAtTheLimit(t *testing.T) {
	s := newScene(t, "Ledger ~> Agent")
	s.models.play("Agent", "", `same:Ledger {}`)
	s.start(`{"q":"go"}`)
	s.ended(engine.StatusError)
	require.Contains(t, s.state.Meta.Error.Message, "Max iterations (10) reached")
	require.Equal(t, 10, s.asks("Agent"))
	require.Len(t, s.ledger.lines, 10)
}

func TestReport006UnknownToolIsAnswered(t *testing.T) {
	s := newScene(t, "Calculator ~> Agent")
	s.models.play("Agent", "", `No_Such_Tool {} + Calculator {"input":"6*7"}`+"\n"+`"{{results}}"`)
	s.start(`{"q":"go"}`)
	s.ended(engine.StatusSuccess)
	require.Equal(t, 2, s.asks("Agent"))
	answers := answersIn(s.request("Agent", 1))
	require.Contains(t, answers[0], `There is no tool \"No_Such_Tool\"`)
	require.Equal(t, `[{"response":"42"}]`, answers[1])
	require.Len(t, s.state.Run["Calculator"], 1)
}

func TestReport009OneStartAndOneEndOfTheAgent(t *testing.T) {
	s := newScene(t, "Calculator ~> Agent")
	s.models.play("Agent", "", `Calculator {"input":"1"}`+"\n"+`Calculator {"input":"2"}`+"\n"+`Calculator {"input":"3"}`+"\n"+`"done"`)
	s.until = "Calculator"
	s.start(`{"q":"go"}`)
	s.restart()
	s.until = ""
	s.work()
	s.ended(engine.StatusSuccess)
	told := strings.Join(s.told, "\n")
	require.Equal(t, 1, strings.Count(told, "nodeExecuteBefore Agent#0"), told)
	require.Equal(t, 1, strings.Count(told, "nodeExecuteAfter Agent#0"), told)
	require.Len(t, s.state.Run["Agent"], 1)
}

// Five rounds of three calls against a server that refuses a call without its one answer.
func TestReport010StrictHistoryOverManyRounds(t *testing.T) {
	s := newScene(t, "Calculator ~> Agent\nThink ~> Agent\nLedger broken: ledger {\"fails\":99}\nLedger broken ~> Agent")
	s.models.play("Agent", "", strings.Repeat(`Calculator {"input":"1"} + Ledger_broken {} + Think {"input":"x"}`+"\n", 5)+`"end"`)
	s.start(`{"q":"go"}`)
	s.ended(engine.StatusSuccess)
	require.Equal(t, 6, s.asks("Agent"))
	require.Len(t, answersIn(s.request("Agent", 5)), 15)
}

func TestReport011MemoryKeepsTheCalls(t *testing.T) {
	s := newScene(t, "Calculator ~> Agent\nMemory ~> Agent")
	s.models.play("Agent", "", `Calculator {"input":"6*7"}`+"\n"+`"It is 42."`)
	s.start(`{"q":"first","sessionId":"s"}`)
	s.models.play("Agent", "second", `"I know."`)
	s.start(`{"q":"second","sessionId":"s"}`)
	body := s.request("Agent", 2)
	require.Equal(t, []string{`[{"response":"42"}]`}, answersIn(body))
	require.Equal(t, int64(1), gjson.Get(body, "messages.#(tool_calls)#.tool_calls|#").Int())
	require.Equal(t, `[["Calculator"]]`, gjson.Get(body, "messages.#.tool_calls.#.function.name").Raw)
}

// What belongs to an item stays with it, whatever the batches.
func TestReport013HistoryOfABatchIsPerItem(t *testing.T) {
	s := newScene(t, `
		Agent: agent {"options":{"batching":{"batchSize":3}}}
		Ledger: ledger {"schema":{"type":"object","properties":{"who":{"type":"string"}}}}
		Ledger ~> Agent`)
	for _, who := range []string{"ann", "bob", "cid"} {
		s.models.play("Agent", who, `x:Ledger {"who":"`+who+`"}`+"\n"+`y:Ledger {"who":"`+who+`"}`+"\n"+`"bye `+who+`"`)
	}
	s.start(`{"q":"ann"}`, `{"q":"bob"}`, `{"q":"cid"}`)
	require.Equal(t, 9, s.asks("Agent"))
	for _, body := range s.models.asked["Agent"] {
		who := gjson.Get(body, "messages.0.content").Str
		for _, call := range gjson.Get(body, "messages.#.tool_calls.#.function.arguments").Array() {
			require.Equal(t, `["{\"who\":\"`+who+`\"}"]`, call.Raw)
		}
	}
	require.Equal(t, []string{`{"output":"bye ann"}`, `{"output":"bye bob"}`, `{"output":"bye cid"}`}, s.items("Agent"))
}

// The answers come in another order than the items; each item gets its own.
func TestReport014EveryItemGetsItsOwnResult(t *testing.T) {
	s := newScene(t, "Agent: agent {\"options\":{\"batching\":{\"batchSize\":3}}}\nCalculator ~> Agent")
	for i := range 3 {
		s.models.play("Agent", fmt.Sprintf("item %d", i), fmt.Sprintf(`same:Calculator {"input":"%d00"}`, i)+"\n"+`"{{results}}"`)
	}
	s.until = "Calculator"
	s.start(`{"q":"item 0"}`, `{"q":"item 1"}`, `{"q":"item 2"}`)
	s.until = ""
	for len(s.state.Jobs) > 0 && s.nextJob().Entry.Node == "Calculator" {
		last := s.nextJob()
		for _, j := range s.state.Jobs {
			if j.Entry.Run > last.Entry.Run {
				last = j
			}
		}
		s.job(last)
	}
	s.work()
	require.Equal(t, []string{`{"output":"[{\"response\":\"0\"}]"}`, `{"output":"[{\"response\":\"100\"}]"}`, `{"output":"[{\"response\":\"200\"}]"}`}, s.items("Agent"))
}

func TestReport015FinishedItemsStayFinished(t *testing.T) {
	s := newScene(t, "Calculator ~> Agent")
	s.models.play("Agent", "none", `"at once"`)
	s.models.play("Agent", "once", `Calculator {"input":"1"}`+"\n"+`"after one"`)
	s.models.play("Agent", "twice", `Calculator {"input":"1"}`+"\n"+`Calculator {"input":"2"}`+"\n"+`"after two"`)
	s.start(`{"q":"none"}`, `{"q":"once"}`, `{"q":"twice"}`)
	s.ended(engine.StatusSuccess)
	require.Equal(t, 6, s.asks("Agent"))
	require.Contains(t, s.records("Agent"), `main [{"output":"at once"},{"output":"after one"},{"output":"after two"}]<0<1<2`)
}

func TestReport016ToolsGetTheItemTheyAreCalledFor(t *testing.T) {
	s := newScene(t, "Ledger: ledger {\"schema\":{\"type\":\"object\"}}\nLedger ~> Agent")
	s.models.play("Agent", "warming", `Ledger {"topic":"Global warming"}`+"\n"+`"a"`)
	s.models.play("Agent", "food", `Ledger {"topic":"Dog food"}`+"\n"+`"b"`)
	s.until = "Ledger"
	s.start(`{"q":"warming","n":1}`, `{"q":"food","n":2}`)
	var inputs []string
	for _, run := range []int{0, 1} {
		for _, j := range s.state.Jobs {
			if j.Entry.Run == run {
				inputs = append(inputs, string(s.state.Inputs(&j.Entry)[0][0].JSON))
			}
		}
	}
	require.JSONEq(t, `{"q":"warming","n":1,"topic":"Global warming","toolCallId":"c0.0"}`, inputs[0])
	require.JSONEq(t, `{"q":"food","n":2,"topic":"Dog food","toolCallId":"c0.0"}`, inputs[1])
	s.until = ""
	s.work()
	require.Equal(t, []string{`Ledger {"topic":"Global warming"}`, `Ledger {"topic":"Dog food"}`}, s.ledger.lines)
}

func TestReport017EachCallOfOneToolHasItsOwnArguments(t *testing.T) {
	s := newScene(t, "Ledger: ledger {\"schema\":{\"type\":\"object\"}}\nLedger ~> Agent")
	var calls, want []string
	for i := range 5 {
		calls = append(calls, fmt.Sprintf(`Ledger {"title":"event %d"}`, i))
		want = append(want, fmt.Sprintf(`Ledger {"title":"event %d"}`, i))
	}
	s.models.play("Agent", "", strings.Join(calls, " + ")+"\n"+`"done"`)
	s.start(`{"q":"go"}`)
	require.Equal(t, want, s.ledger.lines)
}

func TestReport018RepeatedCallsGetNewResults(t *testing.T) {
	s := newScene(t, "Calculator ~> Agent")
	s.models.play("Agent", "", `Calculator {"input":"2*1"}`+"\n"+`Calculator {"input":"2*2"}`+"\n"+`Calculator {"input":"2*3"}`+"\n"+`"{{results}}"`)
	s.start(`{"q":"go"}`)
	require.Equal(t, []string{`[{"response":"2"}]`, `[{"response":"4"}]`, `[{"response":"6"}]`}, answersIn(s.request("Agent", 3)))
}

func TestReport019AgentInALoop(t *testing.T) {
	s := newScene(t, "Loop/1 -> Agent\nAgent -> Loop\nIn -> Loop\nCalculator ~> Agent")
	for i := range 3 {
		s.models.play("Agent", fmt.Sprintf("turn %d", i), fmt.Sprintf(`Calculator {"input":"%d00"}`, i)+"\n"+`"{{results}}"`)
	}
	s.start(`{"q":"turn 0"}`, `{"q":"turn 1"}`, `{"q":"turn 2"}`)
	s.ended(engine.StatusSuccess)
	require.Len(t, s.state.Run["Agent"], 3)
	require.Equal(t, `Calculator#0 success from Agent#0 asked [{"input":"000"}] for item 0 of Loop ai_tool [{"response":"0"}]
Calculator#1 success from Agent#1 asked [{"input":"100"}] for item 0 of Loop ai_tool [{"response":"100"}]
Calculator#2 success from Agent#2 asked [{"input":"200"}] for item 0 of Loop ai_tool [{"response":"200"}]
`, s.records("Calculator"))
}

func TestReport021ToolNames(t *testing.T) {
	long := strings.Repeat("x", 80)
	s := newScene(t, "Ledger Date & Time ~> Agent\nLedger Date - Time ~> Agent\nLedger Date ! Time ~> Agent\nLedger 📅 ~> Agent\nLedger "+long+"1 ~> Agent\nLedger "+long+"2 ~> Agent")
	s.models.play("Agent", "", `"?"`)
	s.start(`{"q":"go"}`)
	seen := map[string]bool{}
	for _, name := range gjson.Get(s.request("Agent", 0), "tools.#.function.name").Array() {
		require.Regexp(t, `^[a-zA-Z0-9_-]{1,64}$`, name.Str)
		require.False(t, seen[name.Str], name.Str)
		seen[name.Str] = true
	}
	require.Len(t, seen, 6)
	var calls []string
	for _, name := range []string{"Ledger_Date_Time", "Ledger_Date_-_Time", "Ledger_Date_Time_2", "Ledger_"} {
		require.True(t, seen[name], "%s in %v", name, seen)
		calls = append(calls, name+" {}")
	}
	s.models.play("Agent", "", strings.Join(calls, " + ")+"\n"+`"done"`)
	s.start(`{"q":"go"}`)
	// Of two tools with one name the last connected keeps it.
	require.Equal(t, []string{"Ledger Date & Time {}", "Ledger Date - Time {}", "Ledger Date ! Time {}", "Ledger 📅 {}"}, s.ledger.lines)
}

func TestReport022ToolErrorGoesToTheModel(t *testing.T) {
	s := newScene(t, "Ledger: ledger {\"fails\":9}\nLedger ~> Agent")
	s.models.play("Agent", "", `Ledger {}`+"\n"+`"{{results}}"`)
	s.start(`{"q":"go"}`)
	s.ended(engine.StatusSuccess)
	require.Equal(t, []string{`[{"error":"the ledger is closed"}]`}, answersIn(s.request("Agent", 1)))
	require.Equal(t, engine.StatusError, s.state.Run["Ledger"][0].Status)
}

func TestReport023ErrorOutputOfAToolIsNoEmptyAnswer(t *testing.T) {
	s := newScene(t, "Ledger: ledger {\"fails\":9} onError=continueErrorOutput\nLedger ~> Agent")
	s.models.play("Agent", "", `Ledger {}`+"\n"+`"{{results}}"`)
	s.start(`{"q":"go"}`)
	s.ended(engine.StatusSuccess)
	require.Contains(t, answersIn(s.request("Agent", 1))[0], "the ledger is closed")
}

// A tool that stops the workflow stops it whatever the agent says; every other tool
// error is the model's.
func TestReport024ErrorSettingsOfToolAndAgent(t *testing.T) {
	for _, tool := range []string{"stopWorkflow", "continueRegularOutput", "continueErrorOutput"} {
		for _, agent := range []string{"stopWorkflow", "continueRegularOutput", "continueErrorOutput"} {
			t.Run(tool+"/"+agent, func(t *testing.T) {
				s := newScene(t, "Ledger: ledger {\"fails\":9} onError="+tool+"\nAgent: agent onError="+agent+"\nLedger ~> Agent")
				s.models.play("Agent", "", `Ledger {}`+"\n"+`"{{results}}"`)
				s.start(`{"q":"go"}`)
				if tool == "stopWorkflow" {
					s.ended(engine.StatusError)
					require.Equal(t, 1, s.asks("Agent"))
					return
				}
				s.ended(engine.StatusSuccess)
				require.Equal(t, 2, s.asks("Agent"))
			})
		}
	}
}

func TestReport025EmptyArguments(t *testing.T) {
	s := newScene(t, `
		Ledger: ledger {"schema":{"type":"object","properties":{"query":{"type":"string"}},"required":["query"]}}
		Ledger ~> Agent`)
	s.models.play("Agent", "", `Ledger {}`+"\n"+`Ledger {"query":"x"}`+"\n"+`"{{results}}"`)
	s.start(`{"q":"go"}`)
	s.ended(engine.StatusSuccess)
	require.Equal(t, []string{`[{"error":"Bad arguments for Ledger: \"query\" is missing"}]`, `[{"entry":1}]`}, answersIn(s.request("Agent", 2)))
	require.Equal(t, []string{`Ledger {"query":"x"}`}, s.ledger.lines)
	require.Equal(t, engine.ReasonBadArguments, s.state.Run["Ledger"][0].Error.Reason)
}

func TestReport026RetryOfTheAgentKeepsItsRounds(t *testing.T) {
	s := newScene(t, `
		Agent: agent {"options":{"maxIterations":1}} onError=continueErrorOutput retryOnFail=true maxTries=3
		Ledger ~> Agent
		Agent/1 -> Pass`)
	s.models.play("Agent", "", `Ledger {}`)
	s.start(`{"q":"go"}`)
	s.ended(engine.StatusSuccess)
	require.Equal(t, 1, s.asks("Agent"))
	require.Len(t, s.ledger.lines, 1)
	require.Contains(t, s.records("Pass"), "Max iterations (1) reached")

	// An attempt that failed on the model goes on where it was.
	s = newScene(t, "Agent: agent retryOnFail=true maxTries=3\nLedger ~> Agent")
	s.models.play("Agent", "", `Ledger {}`+"\n"+`fail 500`)
	s.until = "Ledger"
	s.start(`{"q":"go"}`)
	s.until = ""
	s.job(s.nextJob()) // the tool
	s.job(s.nextJob()) // the agent: its model fails
	s.models.play("Agent", "", `Ledger {}`+"\n"+`"{{results}}"`)
	s.work()
	s.ended(engine.StatusSuccess)
	require.Len(t, s.ledger.lines, 1)
	require.Equal(t, []string{`{"output":"[{\"entry\":1}]"}`}, s.items("Agent"))
}

func TestReport027MaxIterationsLeavesByTheErrorOutput(t *testing.T) {
	s := newScene(t, `
		Agent: agent {"options":{"maxIterations":1}} onError=continueErrorOutput
		Ledger ~> Agent
		Agent -> Pass good
		Agent/1 -> Pass bad`)
	s.models.play("Agent", "", `Ledger {}`)
	s.models.play("Agent", "short", `"fine"`)
	s.start(`{"q":"long"}`, `{"q":"short"}`)
	require.Contains(t, s.records("Pass good"), `main [{"output":"fine"}]`)
	require.Contains(t, s.records("Pass bad"), "Max iterations (1) reached")
	require.NotContains(t, s.records("Pass bad"), "fine")
}

// Null and absent errors in an answer are no failure, and what succeeded is not repeated.
func TestReport029AnswerWithANullErrorIsNoFailure(t *testing.T) {
	s := newScene(t, "Ledger: ledger {\"items\":[{\"error\":null,\"id\":1}]} retryOnFail=true maxTries=3\nLedger ~> Agent")
	s.models.play("Agent", "", `Ledger {}`+"\n"+`"{{results}}"`)
	s.start(`{"q":"go"}`)
	require.Len(t, s.ledger.lines, 1)
	require.Equal(t, []string{`[{"error":null,"id":1}]`}, answersIn(s.request("Agent", 1)))
}

func TestReport030RetryOfATool(t *testing.T) {
	s := newScene(t, "Ledger: ledger {\"fails\":2} retryOnFail=true maxTries=3\nLedger ~> Agent")
	s.models.play("Agent", "", `Ledger {}`+"\n"+`"{{results}}"`)
	s.start(`{"q":"go"}`)
	require.Len(t, s.ledger.lines, 3)
	require.Equal(t, []string{`[{"entry":3}]`}, answersIn(s.request("Agent", 1)))
	require.Len(t, s.state.Run["Ledger"], 1)
}

func TestReport031FallbackIsAskedOnceARound(t *testing.T) {
	s := newScene(t, `
		Agent: agent {"needsFallback":true} retryOnFail=true maxTries=5
		Model two: model {"model":"second"}
		Model two ~> Agent
		Calculator ~> Agent`)
	s.models.play("Agent", "", `fail 500`)
	s.models.play("second", "", `Calculator {"input":"6*7"}`+"\n"+`"{{results}}"`)
	s.start(`{"q":"go"}`)
	s.ended(engine.StatusSuccess)
	require.Equal(t, 2, s.asks("Agent"))
	require.Equal(t, 2, s.asks("second"))
}

func TestReport050SubAgentsRunTheirTools(t *testing.T) {
	s := newScene(t, "Calculator ~> SubC ~> SubB ~> SubA ~> Agent")
	for _, level := range []struct{ agent, next string }{{"Agent", "SubA"}, {"SubA", "SubB"}, {"SubB", "SubC"}} {
		s.models.play(level.agent, "", level.next+` {"task":"6 times 7"}`+"\n"+`"{{results}}"`)
	}
	s.models.play("SubC", "", `Calculator {"input":"6*7"}`+"\n"+`"{{results}}"`)
	s.start(`{"q":"go"}`)
	s.ended(engine.StatusSuccess)
	require.Contains(t, s.items("Agent")[0], "42")
}

func TestReport051SharedMemory(t *testing.T) {
	s := newScene(t, "Calculator ~> Sub ~> Agent\nMemory ~> Agent\nMemory ~> Sub")
	s.models.play("Agent", "", `Sub {"task":"6 times 7"}`+"\n"+`"the answer is 42"`)
	s.models.play("Sub", "", `Calculator {"input":"6*7"}`+"\n"+`"sub says 42"`)
	s.start(`{"q":"question","sessionId":"s"}`)
	s.ended(engine.StatusSuccess)
	text := s.remembered("s")
	for _, once := range []string{"user question", "user 6 times 7", `Sub {"task"`, `Calculator {"input"`, "assistant sub says 42", "assistant the answer is 42"} {
		require.Equal(t, 1, strings.Count(text, once), "%s in\n%s", once, text)
	}
	// The next turn is given all of it, in a history that a strict server takes.
	s.models.play("Agent", "again", `"yes"`)
	s.start(`{"q":"again","sessionId":"s"}`)
	s.ended(engine.StatusSuccess)
}
