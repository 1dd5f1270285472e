package ai

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"
	"pgregory.net/rapid"

	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/nodes/jsonobject"
	"github.com/reprise-engine/reprise/pkg/nodes/nodestest"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// document is a workflow with an Agent, a model and two tools. agent and extra
// are JSON: the Agent's parameters, and members for its node.
func document(agent, model, extraNodes, extraConnections string) []byte {
	return []byte(`{"name":"w","nodes":[
	 {"name":"Agent","type":"@n8n/n8n-nodes-langchain.agent","typeVersion":3.1,"position":[0,0],"parameters":` + agent + `},
	 {"name":"Model","type":"@n8n/n8n-nodes-langchain.lmChatOpenAi","typeVersion":1.3,"position":[0,0],"parameters":` + model + `,"credentials":{"openAiApi":{"id":"1","name":"x"}}},
	 {"name":"Calculator","type":"@n8n/n8n-nodes-langchain.toolCalculator","typeVersion":1,"position":[0,0],"parameters":{}},
	 {"name":"Think","type":"@n8n/n8n-nodes-langchain.toolThink","typeVersion":1,"position":[0,0],"parameters":{}}` + extraNodes + `],
	 "connections":{
	  "Model":{"ai_languageModel":[[{"node":"Agent","type":"ai_languageModel","index":0}]]},
	  "Calculator":{"ai_tool":[[{"node":"Agent","type":"ai_tool","index":0}]]},
	  "Think":{"ai_tool":[[{"node":"Agent","type":"ai_tool","index":0}]]}` + extraConnections + `}}`)
}

const (
	fromPrompt = `{"promptType":"define","text":"={{ $json.q }}"}`
	chatModelA = `{"model":"m","responsesApiEnabled":false,"options":{"maxRetries":0}}`
	memoryNode = `,{"name":"Memory","type":"@n8n/n8n-nodes-langchain.memoryBufferWindow","typeVersion":1.3,"position":[0,0],"parameters":{}}`
	memoryWire = `,"Memory":{"ai_memory":[[{"node":"Agent","type":"ai_memory","index":0}]]}`
)

// chat is a model that answers with the message that say returns for a request.
func chat(t testing.TB, say func(body string) string) *modelServer {
	return serveModel(t, func(w http.ResponseWriter, _ string, body []byte) {
		checkHistory(t, string(body))
		fmt.Fprintf(w, `{"choices":[{"message":%s,"finish_reason":"stop"}],"usage":{"prompt_tokens":3,"completion_tokens":4}}`, say(string(body)))
	})
}

// turnsOf counts the model's own messages after the last prompt.
func turnsOf(body string) int {
	n := 0
	for _, m := range gjson.Get(body, "messages").Array() {
		switch m.Get("role").Str {
		case "user":
			n = 0
		case "assistant":
			n++
		}
	}
	return n
}

func calling(calls ...string) string {
	return `{"role":"assistant","content":null,"tool_calls":[` + strings.Join(calls, ",") + `]}`
}

func oneCall(id, name, arguments string) string {
	return `{"id":` + jsonobject.Quote(id) + `,"type":"function","function":{"name":` + jsonobject.Quote(name) + `,"arguments":` + jsonobject.Quote(arguments) + `}}`
}

func saying(text string) string {
	return `{"role":"assistant","content":` + jsonobject.Quote(text) + `}`
}

func TestParallelCallsAreReplayedAsOneMessageWithItsText(t *testing.T) {
	server := chat(t, func(body string) string {
		if turnsOf(body) > 0 {
			return saying("done")
		}
		return `{"content":"let me","tool_calls":[` + oneCall("a", "Calculator", `{ "input" : "1<2" }`) + "," + oneCall("b", "Think", `{"input":"x"}`) + `]}`
	})
	p := newPlay(t, document(fromPrompt, chatModelA, "", ""), server.URL)
	result, err := p.run("Agent", nodestest.Items(`{"q":"go"}`), nil)
	require.NoError(t, err)
	require.JSONEq(t, `{"output":"done"}`, outputs(result)[0])
	second := gjson.Get(server.bodies[1], "messages").Array()
	require.Len(t, second, 4)
	require.Equal(t, "let me", second[1].Get("content").Str)
	require.Len(t, second[1].Get("tool_calls").Array(), 2)
	require.Equal(t, `{"input":"1<2"}`, second[1].Get("tool_calls.0.function.arguments").Str)
	require.Equal(t, `[{"response":"true"}]`, second[2].Get("content").Str)
	// Tools are offered last connected first; the arguments are not stored twice.
	require.Equal(t, "Think", gjson.Get(server.bodies[0], "tools.0.function.name").Str)
	require.NotContains(t, string(p.rounds[0].Metadata), "input")
	require.Equal(t, "key_0_0", server.headers[0].Get("Idempotency-Key"))
	require.Equal(t, "key_0_1", server.headers[1].Get("Idempotency-Key"))
}

// Some servers number the calls of each answer anew, or give no id at all.
func TestRepeatedCallIDs(t *testing.T) {
	server := chat(t, func(body string) string {
		switch turnsOf(body) {
		case 0:
			return calling(oneCall("0", "Calculator", `{"input":"1"}`), oneCall("0", "Calculator", `{"input":"2"}`))
		case 1:
			return calling(oneCall("0", "Calculator", `{"input":"3"}`), oneCall("", "Calculator", `{"input":"4"}`))
		}
		var answers []string
		for _, m := range gjson.Get(body, `messages.#(role=="tool")#.content`).Array() {
			answers = append(answers, gjson.Get(m.Str, "0.response").Str)
		}
		return saying(strings.Join(answers, ","))
	})
	p := newPlay(t, document(fromPrompt, chatModelA, "", ""), server.URL)
	result, err := p.run("Agent", nodestest.Items(`{"q":"go"}`), nil)
	require.NoError(t, err)
	require.JSONEq(t, `{"output":"1,2,3,4"}`, outputs(result)[0])
}

func TestMemoryKeepsAllRoundsOnce(t *testing.T) {
	server := chat(t, func(body string) string {
		switch n := turnsOf(body); {
		case n < 2 && strings.Contains(body, "first"):
			return calling(oneCall(fmt.Sprintf("c%d", n), "Calculator", fmt.Sprintf(`{"input":"%d"}`, n)))
		}
		return saying("answer")
	})
	p := newPlay(t, document(fromPrompt, chatModelA, memoryNode, memoryWire), server.URL)
	_, err := p.run("Agent", nodestest.Items(`{"q":"first","sessionId":"s"}`), nil)
	require.NoError(t, err)
	var roles []string
	for _, m := range p.memory["wf__s"] {
		roles = append(roles, gjson.GetBytes(m, "role").Str)
	}
	require.Equal(t, []string{"user", "assistant", "tool", "assistant", "tool", "assistant"}, roles)
	require.JSONEq(t, `{"role":"assistant","toolCalls":[{"id":"c1","name":"Calculator","arguments":"{\"input\":\"1\"}"}]}`, string(p.memory["wf__s"][3]))
	require.Len(t, p.subRuns["Memory"], 3, "loaded before each model call")

	server.bodies = nil
	_, err = p.run("Agent", nodestest.Items(`{"q":"second","sessionId":"s"}`, `{"q":"other","sessionId":"other"}`), nil)
	require.NoError(t, err)
	require.Len(t, gjson.Get(server.bodies[0], "messages").Array(), 7)
	require.Len(t, gjson.Get(server.bodies[1], "messages").Array(), 1, "another item's session is another conversation")
	require.Len(t, p.memory["wf__other"], 2)

	_, err = p.run("Agent", nodestest.Items(`{"q":"no session"}`), nil)
	require.NoError(t, err, "the failure is data")
	require.Len(t, p.memory, 2)
}

func TestEmptyAnswerIsNotRemembered(t *testing.T) {
	server := chat(t, func(string) string { return `{"content":null}` })
	p := newPlay(t, document(fromPrompt, chatModelA, memoryNode, memoryWire), server.URL)
	result, err := p.run("Agent", nodestest.Items(`{"q":"x","sessionId":"s"}`), nil)
	require.NoError(t, err)
	require.JSONEq(t, `{"output":""}`, outputs(result)[0])
	require.Empty(t, p.memory)
}

// A window may begin inside a turn; what a server would refuse is left out.
func TestStrictHistory(t *testing.T) {
	call := func(ids ...string) message {
		m := message{Role: roleAssistant}
		for _, id := range ids {
			m.ToolCalls = append(m.ToolCalls, toolCall{ID: id})
		}
		return m
	}
	answer := func(id string) message { return message{Role: roleTool, ToolCallID: id} }
	user, said := message{Role: roleUser}, message{Role: roleAssistant, Content: "x"}
	require.Equal(t, []message{said, user, call("b", "c"), answer("b"), answer("c")},
		strict([]message{answer("a"), said, user, call("b", "c"), answer("c"), answer("b"), call("d", "e"), answer("d")}))
}

func TestBadModelAnswers(t *testing.T) {
	for name, tt := range map[string]struct{ answer, message, description string }{
		"no JSON":    {"<html>sk-secret busy</html>", "The model's server sent an answer that cannot be used", "it is not JSON: <html>*** busy</html>"},
		"no choices": {`{"choices":[]}`, "The model's server sent an answer that cannot be used", `it has no choices: {"choices":[]}`},
		"nothing":    {``, "The model's server sent an answer that cannot be used", `it is not JSON: `},
	} {
		t.Run(name, func(t *testing.T) {
			server := serveModel(t, func(w http.ResponseWriter, _ string, _ []byte) { _, _ = w.Write([]byte(tt.answer)) })
			p := newPlay(t, document(fromPrompt, chatModelA, "", ""), server.URL)
			result, err := p.run("Agent", nodestest.Items(`{"q":"x"}`), nil)
			require.NoError(t, err)
			require.Equal(t, tt.message, result.Error.Message)
			require.Equal(t, tt.description, result.Error.Description)
			require.Equal(t, engine.ReasonModel, result.Error.Reason)
			require.Equal(t, tt.message, p.subRuns["Model"][0].Error.Message)
		})
	}
}

func TestArgumentsThatAreNoJSONAreAnswered(t *testing.T) {
	server := chat(t, func(body string) string {
		if turnsOf(body) == 0 {
			return calling(oneCall("a", "Calculator", `{"input":`), oneCall("b", "Calculator", `[1]`))
		}
		return saying(gjson.Get(body, `messages.#(role=="tool")#.content`).Raw)
	})
	p := newPlay(t, document(fromPrompt, chatModelA, "", ""), server.URL)
	result, err := p.run("Agent", nodestest.Items(`{"q":"x"}`), nil)
	require.NoError(t, err)
	require.Contains(t, outputs(result)[0], "are not a JSON object")
	require.Empty(t, p.rounds)
}

func TestSecretsStayOutOfErrors(t *testing.T) {
	server := serveModel(t, func(w http.ResponseWriter, _ string, _ []byte) {
		w.WriteHeader(401)
		_, _ = w.Write([]byte(`{"error":{"message":"Incorrect API key provided: sk-secret."}}`))
	})
	p := newPlay(t, document(fromPrompt, chatModelA, "", ""), server.URL)
	result, err := p.run("Agent", nodestest.Items(`{"q":"x"}`), nil)
	require.NoError(t, err)
	require.Equal(t, "Authorization failed - please check your credentials", result.Error.Message)
	require.Equal(t, "Incorrect API key provided: ***.", result.Error.Description)
	require.Equal(t, "401", result.Error.HTTPCode)
	raw, _ := json.Marshal(result)
	require.NotContains(t, string(raw), "sk-secret")
	require.Equal(t, "Bearer sk-secret", server.headers[0].Get("Authorization"))
}

func TestModelOutOfReach(t *testing.T) {
	p := newPlay(t, document(fromPrompt, chatModelA, "", ""), "http://127.0.0.1:1")
	result, err := p.run("Agent", nodestest.Items(`{"q":"x"}`), nil)
	require.NoError(t, err)
	require.Equal(t, "The service refused the connection - perhaps it is offline", result.Error.Message)
}

func TestModelTimeout(t *testing.T) {
	release := make(chan struct{})
	server := serveModel(t, func(http.ResponseWriter, string, []byte) { <-release })
	defer close(release)
	p := newPlay(t, document(fromPrompt, `{"model":"m","responsesApiEnabled":false,"options":{"maxRetries":0,"timeout":20}}`, "", ""), server.URL)
	result, err := p.run("Agent", nodestest.Items(`{"q":"x"}`), nil)
	require.NoError(t, err)
	require.Equal(t, "Request timed out.", result.Error.Message)

	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Millisecond)
	defer cancel()
	call := p.call("Agent", nodestest.Items(`{"q":"x"}`), nil)
	_, err = call.Type.Execute(ctx, call)
	require.Equal(t, context.DeadlineExceeded, err, "the attempt's own end is no error of the model")
}

func TestFallbackModel(t *testing.T) {
	server := serveModel(t, func(w http.ResponseWriter, _ string, body []byte) {
		if gjson.GetBytes(body, "model").Str == "m" {
			w.WriteHeader(503)
			return
		}
		_, _ = w.Write([]byte(`{"choices":[{"message":{"content":"second"}}]}`))
	})
	agent := `{"promptType":"define","text":"x","needsFallback":true}`
	second := `,{"name":"Second","type":"@n8n/n8n-nodes-langchain.lmChatOpenAi","typeVersion":1.2,"position":[0,0],"parameters":{"model":{"__rl":true,"value":"n"}},"credentials":{"openAiApi":{"id":"1","name":"x"}}}`
	wire := `,"Second":{"ai_languageModel":[[{"node":"Agent","type":"ai_languageModel","index":1}]]}`
	p := newPlay(t, document(agent, chatModelA, second, wire), server.URL)
	result, err := p.run("Agent", nodestest.Items(`{}`), nil)
	require.NoError(t, err)
	require.JSONEq(t, `{"output":"second"}`, outputs(result)[0])
	require.NotNil(t, p.subRuns["Model"][0].Error)
	require.Nil(t, p.subRuns["Second"][0].Error)

	p = newPlay(t, document(agent, chatModelA, "", ""), server.URL)
	_, err = p.run("Agent", nodestest.Items(`{}`), nil)
	require.EqualError(t, err, "Please connect a model to the Fallback Model input or disable the fallback option")
}

func TestWithoutModelOrPrompt(t *testing.T) {
	p := newPlay(t, document(`{}`, chatModelA, "", ""), "http://127.0.0.1:1")
	call := p.call("Agent", nodestest.Items(`{"chatInput":"x"}`), nil)
	call.SubNodes[workflow.LanguageModel] = nil
	_, err := call.Type.Execute(context.Background(), call)
	require.EqualError(t, err, "Please connect a model to the Chat Model input")

	result, err := p.run("Agent", nodestest.Items(`{"other":"x"}`), nil)
	require.NoError(t, err)
	require.Equal(t, "No prompt specified", result.Error.Message)

	p = newPlay(t, document(fromPrompt, chatModelA, "", ""), "http://127.0.0.1:1")
	result, err = p.run("Agent", nodestest.Items(`{}`), nil)
	require.NoError(t, err)
	require.Equal(t, `The "text" parameter is empty.`, result.Error.Message)

	result, err = p.run("Agent", nil, nil)
	require.NoError(t, err)
	require.Equal(t, []workflow.Items{{}}, result.Outputs)
}

func TestPromptFromChatAndSystemMessage(t *testing.T) {
	server := chat(t, func(body string) string { return saying(gjson.Get(body, "messages").Raw) })
	p := newPlay(t, document(`{"options":{"systemMessage":"=You serve {{ $json.who }}"}}`, chatModelA, "", ""), server.URL)
	result, err := p.run("Agent", nodestest.Items(`{"chatInput":"hi","who":"Ann"}`), nil)
	require.NoError(t, err)
	require.JSONEq(t, `[{"role":"system","content":"You serve Ann"},{"role":"user","content":"hi"}]`, gjson.Get(outputs(result)[0], "output").Str)
}

func TestItemsOfABatchRunAtTheSameTime(t *testing.T) {
	var arrived atomic.Int32
	all := make(chan struct{})
	server := chat(t, func(body string) string {
		if arrived.Add(1) == 3 {
			close(all)
		}
		<-all
		return saying(gjson.Get(body, "messages.0.content").Str)
	})
	p := newPlay(t, document(`{"promptType":"define","text":"={{ $json.q }}","options":{"batching":{"batchSize":3}}}`, chatModelA, "", ""), server.URL)
	result, err := p.run("Agent", nodestest.Items(`{"q":"a"}`, `{"q":"b"}`, `{"q":"c"}`), nil)
	require.NoError(t, err)
	require.Equal(t, []string{`{"output":"a"}`, `{"output":"b"}`, `{"output":"c"}`}, outputs(result))
	require.Len(t, p.subRuns["Model"], 3)
	require.Contains(t, string(p.subRuns["Model"][1].Input[0][0].JSON), "Human: b")
}

// Ten rounds pass, the eleventh model call is refused; with continue on fail
// that is the item's output.
func TestDefaultIterations(t *testing.T) {
	server := chat(t, func(body string) string {
		if strings.Contains(body, "short") {
			return saying("ok")
		}
		return calling(oneCall(fmt.Sprint(turnsOf(body)), "Calculator", `{"input":"1"}`))
	})
	doc := strings.Replace(string(document(fromPrompt, chatModelA, "", "")), `"position"`, `"onError":"continueRegularOutput","position"`, 1)
	p := newPlay(t, []byte(doc), server.URL)
	result, err := p.run("Agent", nodestest.Items(`{"q":"long"}`, `{"q":"short"}`), nil)
	require.NoError(t, err)
	require.Len(t, server.bodies, 11)
	require.Equal(t, []string{
		`{"error":"Max iterations (10) reached. The agent could not complete the task within the allowed number of iterations."}`,
		`{"output":"ok"}`,
	}, outputs(result))
}

// A run's stored bytes must not grow with the square of its rounds.
func TestRoundsCostTheSame(t *testing.T) {
	server := chat(t, func(body string) string {
		if n := turnsOf(body); n < 40 {
			return calling(oneCall(fmt.Sprintf("c%02d", n), "Think", `{"input":"`+strings.Repeat("x", 200)+`"}`))
		}
		return saying("end")
	})
	p := newPlay(t, document(`{"promptType":"define","text":"x","options":{"maxIterations":50}}`, chatModelA, "", ""), server.URL)
	_, err := p.run("Agent", nodestest.Items(`{}`), nil)
	require.NoError(t, err)
	require.Len(t, p.rounds, 40)
	require.Equal(t, len(p.rounds[1].Metadata), len(p.rounds[39].Metadata))
	logged := func(i int) int { return len(p.subRuns["Model"][i].Input[0][0].JSON) }
	require.InDelta(t, logged(2), logged(39), 20)
	require.Contains(t, string(p.subRuns["Model"][39].Input[0][0].JSON), `"earlierMessages":`)
}

// TestAnyModel lets a model answer at random: with known and unknown tools,
// bad arguments, equal ids, several items. Whatever it does, the history it gets is strict (see
// chat), each item ends with an answer and is not asked again afterwards.
func TestAnyModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		items := rapid.IntRange(1, 3).Draw(rt, "items")
		scripts := map[string][]string{}
		want := map[string]int{}
		var inputs []string
		for i := range items {
			q := fmt.Sprintf("item-%d", i)
			inputs = append(inputs, `{"q":"`+q+`"}`)
			for n := range rapid.IntRange(0, 5).Draw(rt, "turns") {
				var calls []string
				for range rapid.IntRange(1, 4).Draw(rt, "calls") {
					calls = append(calls, oneCall(
						rapid.SampledFrom([]string{"", "a", "b", fmt.Sprint(n)}).Draw(rt, "id"),
						rapid.SampledFrom([]string{"Calculator", "Think", "Nope", ""}).Draw(rt, "tool"),
						rapid.SampledFrom([]string{`{"input":"1"}`, `{}`, ``, `{"input":2}`, `nonsense`, `null`, `{"input":"<&>","id":"x"}`}).Draw(rt, "arguments")))
				}
				scripts[q] = append(scripts[q], calling(calls...))
			}
			want[q] = len(scripts[q]) + 1
		}
		asked := map[string]int{}
		server := chat(t, func(body string) string {
			q := gjson.Get(body, "messages.0.content").Str
			asked[q]++
			if n := turnsOf(body); n < len(scripts[q]) {
				return scripts[q][n]
			}
			return saying("end of " + q)
		})
		defer server.Close()
		p := newPlay(t, document(fromPrompt, chatModelA, "", ""), server.URL)
		result, err := p.run("Agent", nodestest.Items(inputs...), nil)
		if err != nil || result.Error != nil {
			rt.Fatalf("failed: %v %v", err, result)
		}
		if fmt.Sprint(asked) != fmt.Sprint(want) {
			rt.Fatalf("model calls: got %v, want %v", asked, want)
		}
		for i, out := range outputs(result) {
			if out != fmt.Sprintf(`{"output":"end of item-%d"}`, i) {
				rt.Fatalf("item %d: %s", i, out)
			}
		}
	})
}
