package mockllm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/responses"
	"github.com/openai/openai-go/v3/shared"
	"github.com/stretchr/testify/require"
)

func start(t testing.TB, config Config) (*httptest.Server, openai.Client) {
	t.Helper()
	server := httptest.NewServer(New(config))
	t.Cleanup(server.Close)
	client := openai.NewClient(option.WithBaseURL(server.URL+"/v1"), option.WithAPIKey("sk-test"), option.WithMaxRetries(0))
	return server, client
}

func testScript(t testing.TB) *Script {
	t.Helper()
	data, err := os.ReadFile("testdata/script.json")
	require.NoError(t, err)
	script, err := ParseScript(data)
	require.NoError(t, err)
	return script
}

type object = map[string]any

func tool(name, description string, schema object) openai.ChatCompletionToolUnionParam {
	return openai.ChatCompletionFunctionTool(shared.FunctionDefinitionParam{
		Name: name, Description: openai.String(description), Parameters: schema,
	})
}

func textSchema() object {
	return object{"type": "object", "properties": object{"input": object{"type": "string"}}}
}

func demoTools() []openai.ChatCompletionToolUnionParam {
	return []openai.ChatCompletionToolUnionParam{
		tool("Shout", "Shouts the text back", textSchema()),
		tool("Calculator", "Useful for getting the result of a math expression.", textSchema()),
	}
}

// converse plays a conversation with the chat API, answering calls by answer,
// and returns the calls of each round ("Name args") and the final text.
func converse(t testing.TB, client openai.Client, params openai.ChatCompletionNewParams, stream bool, answer func(name, args string) string) (rounds [][]string, said string) {
	t.Helper()
	for range 10 {
		message := complete(t, client, params, stream)
		if len(message.ToolCalls) == 0 {
			return rounds, message.Content
		}
		var round []string
		params.Messages = append(params.Messages, message.ToParam())
		for _, c := range message.ToolCalls {
			round = append(round, c.Function.Name+" "+c.Function.Arguments)
			params.Messages = append(params.Messages, openai.ToolMessage(answer(c.Function.Name, c.Function.Arguments), c.ID))
		}
		rounds = append(rounds, round)
	}
	t.Fatal("the conversation does not end")
	return nil, ""
}

func complete(t testing.TB, client openai.Client, params openai.ChatCompletionNewParams, stream bool) openai.ChatCompletionMessage {
	t.Helper()
	if !stream {
		completion, err := client.Chat.Completions.New(context.Background(), params)
		require.NoError(t, err)
		require.Positive(t, completion.Usage.PromptTokens)
		require.Equal(t, completion.Usage.PromptTokens+completion.Usage.CompletionTokens, completion.Usage.TotalTokens)
		return completion.Choices[0].Message
	}
	params.StreamOptions = openai.ChatCompletionStreamOptionsParam{IncludeUsage: openai.Bool(true)}
	events := client.Chat.Completions.NewStreaming(context.Background(), params)
	defer events.Close()
	var sum openai.ChatCompletionAccumulator
	for events.Next() {
		require.True(t, sum.AddChunk(events.Current()), "chunks fit together")
	}
	require.NoError(t, events.Err())
	require.Positive(t, sum.Usage.TotalTokens)
	return sum.Choices[0].Message
}

// labTools answers like the tools that the scripts were written for.
func labTools(name, args string) string {
	var in struct{ Input string }
	_ = json.Unmarshal([]byte(args), &in)
	response := "42"
	switch {
	case name == "Shout":
		response = "SHOUT " + strings.ToUpper(in.Input)
	case in.Input == "42+1":
		response = "43"
	}
	out, _ := json.Marshal([]object{{"response": response}})
	return string(out)
}

func TestScriptedConversations(t *testing.T) {
	tests := []struct {
		name, model, prompt string
		rounds              [][]string
		said                string
	}{
		{
			name: "two tools in one turn", model: "two-tools", prompt: "shout hi and compute 6 * 7",
			rounds: [][]string{{`Calculator {"input":"6*7"}`, `Shout {"input":"hi and compute 6 * 7"}`}},
			said:   `Based on the tools: Calculator returned [{"response":"42"}]; Shout returned [{"response":"SHOUT HI AND COMPUTE 6 * 7"}].`,
		},
		{
			name: "two rounds, the second filled with the first's result", model: "two-rounds", prompt: "go",
			rounds: [][]string{{`Calculator {"input":"6*7"}`}, {`Shout {"input":"the answer is [{\"response\":\"42\"}]"}`, `Calculator {"input":"42+1"}`}},
			said:   `After two rounds: Calculator returned [{"response":"42"}]; Shout returned [{"response":"SHOUT THE ANSWER IS [{\"RESPONSE\":\"42\"}]"}]; Calculator returned [{"response":"43"}].`,
		},
		{
			name: "a prompt that needs escaping", model: "says-first", prompt: "say \"hi\"\n\\",
			rounds: [][]string{{`Shout {"input":"say \"hi\"\n\\"}`}},
			said:   "Done.",
		},
		{
			name: "a variant", model: "variants", prompt: "please no tools today",
			said: "I needed no tool for: please no tools today",
		},
		{
			name: "a call without arguments", model: "variants", prompt: "anything",
			rounds: [][]string{{`Calculator {}`}},
			said:   `It is [{"response":"42"}].`,
		},
	}
	_, client := start(t, Config{Script: testScript(t)})
	for _, stream := range []bool{false, true} {
		for _, tt := range tests {
			t.Run(fmt.Sprintf("%s, stream=%v", tt.name, stream), func(t *testing.T) {
				rounds, said := converse(t, client, openai.ChatCompletionNewParams{
					Model: tt.model, Tools: demoTools(), Messages: []openai.ChatCompletionMessageParamUnion{openai.SystemMessage("be brief"), openai.UserMessage(tt.prompt)},
				}, stream, labTools)
				require.Equal(t, tt.rounds, rounds)
				require.Equal(t, tt.said, said)
			})
		}
	}
}

func TestScriptedCallKeepsItsIDAndText(t *testing.T) {
	_, client := start(t, Config{Script: testScript(t)})
	message := complete(t, client, openai.ChatCompletionNewParams{Model: "says-first", Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("x")}}, false)
	require.Equal(t, "Let me use the tools.", message.Content)
	require.Equal(t, "call_fixed", message.ToolCalls[0].ID)
}

// n8n replays a round's calls as one assistant message each, ours as one with
// all of them; earlier turns of a remembered conversation do not count.
func TestTurnDoesNotDependOnHowCallsAreReplayed(t *testing.T) {
	server, _ := start(t, Config{Script: testScript(t)})
	call := func(id, name string) string {
		return `{"id":"` + id + `","type":"function","function":{"name":"` + name + `","arguments":"{}"}}`
	}
	tests := map[string]string{
		"one message": `{"role":"user","content":"q"},{"role":"assistant","content":null,"tool_calls":[` + call("a", "Calculator") + `,` + call("b", "Shout") + `]},
			{"role":"tool","tool_call_id":"b","content":"B"},{"role":"tool","tool_call_id":"a","content":"A"}`,
		"several messages": `{"role":"user","content":[{"type":"text","text":"q"}]},{"role":"assistant","content":[],"tool_calls":[` + call("b", "Shout") + `]},{"role":"tool","tool_call_id":"b","content":[{"type":"text","text":"B"}]},
			{"role":"assistant","content":[],"tool_calls":[` + call("a", "Calculator") + `]},{"role":"tool","tool_call_id":"a","content":"A"}`,
		"after an older turn": `{"role":"user","content":"old"},{"role":"assistant","content":null,"tool_calls":[` + call("a", "Old") + `]},{"role":"tool","tool_call_id":"a","content":"old"},{"role":"assistant","content":"old"},
			{"role":"user","content":"q"},{"role":"assistant","content":null,"tool_calls":[` + call("a", "Calculator") + `,` + call("b", "Shout") + `]},
			{"role":"tool","tool_call_id":"b","content":"B"},{"role":"tool","tool_call_id":"a","content":"A"}`,
	}
	for name, messages := range tests {
		t.Run(name, func(t *testing.T) {
			status, body := post(t, server.URL+"/v1/chat/completions", "", `{"model":"two-tools","messages":[`+messages+`]}`)
			require.Equal(t, 200, status)
			require.Contains(t, body, "Based on the tools: Shout returned B; Calculator returned A.")
		})
	}
}

func post(t testing.TB, url, key, body string) (int, string) {
	t.Helper()
	req, err := http.NewRequest(http.MethodPost, url, strings.NewReader(body))
	require.NoError(t, err)
	if key != "" {
		req.Header.Set("Authorization", "Bearer "+key)
	}
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.True(t, json.Valid(answer) || strings.HasPrefix(string(answer), "data:") || strings.HasPrefix(string(answer), "event:"), "valid JSON: %s", answer)
	return resp.StatusCode, string(answer)
}

func TestResponsesAPI(t *testing.T) {
	_, client := start(t, Config{Script: testScript(t)})
	params := responses.ResponseNewParams{
		Model: "two-tools",
		Input: responses.ResponseNewParamsInputUnion{OfString: openai.String("shout hi and compute 6 * 7")},
	}
	first, err := client.Responses.New(context.Background(), params)
	require.NoError(t, err)
	require.Equal(t, responses.ResponseStatusCompleted, first.Status)
	require.Positive(t, first.Usage.InputTokens)
	require.Len(t, first.Output, 2)
	input := responses.ResponseInputParam{responses.ResponseInputItemParamOfMessage("shout hi and compute 6 * 7", responses.EasyInputMessageRoleUser)}
	for i, want := range []string{"Calculator", "Shout"} {
		call := first.Output[i].AsFunctionCall()
		require.Equal(t, want, call.Name)
		output := responses.ResponseInputItemParamOfFunctionCallOutput(labTools(call.Name, call.Arguments))
		output.OfFunctionCallOutput.CallID = openai.String(call.CallID)
		input = append(input, responses.ResponseInputItemParamOfFunctionCall(call.Arguments, call.CallID, call.Name), output)
	}
	const said = `Based on the tools: Calculator returned [{"response":"42"}]; Shout returned [{"response":"SHOUT HI AND COMPUTE 6 * 7"}].`
	params.Input = responses.ResponseNewParamsInputUnion{OfInputItemList: input}
	second, err := client.Responses.New(context.Background(), params)
	require.NoError(t, err)
	require.Equal(t, said, second.OutputText())

	t.Run("streamed", func(t *testing.T) {
		events := client.Responses.NewStreaming(context.Background(), params)
		defer events.Close()
		var deltas strings.Builder
		var last responses.ResponseStreamEventUnion
		for n := int64(0); events.Next(); n++ {
			last = events.Current()
			require.Equal(t, n, last.SequenceNumber)
			if last.Type == "response.output_text.delta" {
				deltas.WriteString(last.Delta)
			}
		}
		require.NoError(t, events.Err())
		require.Equal(t, said, deltas.String())
		require.Equal(t, "response.completed", last.Type)
		require.Equal(t, said, last.Response.OutputText())
	})
	t.Run("calls streamed", func(t *testing.T) {
		params.Input = responses.ResponseNewParamsInputUnion{OfString: openai.String("shout")}
		events := client.Responses.NewStreaming(context.Background(), params)
		defer events.Close()
		var done []string
		for events.Next() {
			if e := events.Current(); e.Type == "response.output_item.done" {
				call := e.Item.AsFunctionCall()
				done = append(done, call.Name+" "+call.Arguments)
			}
		}
		require.NoError(t, events.Err())
		require.Equal(t, []string{`Calculator {"input":"6*7"}`, `Shout {"input":"hi and compute 6 * 7"}`}, done)
	})
}

func TestErrors(t *testing.T) {
	server, client := start(t, Config{Script: testScript(t)})
	chat := server.URL + "/v1/chat/completions"
	tests := []struct {
		name, url, body string
		status          int
		message         string
	}{
		{"scripted 500", chat, `{"model":"fails","messages":[]}`, 500, "scripted failure"},
		{"scripted 401", server.URL + "/v1/responses", `{"model":"denies","input":"x"}`, 401, "scripted failure"},
		{"no JSON", chat, `{"model":`, 400, "the request is not valid JSON"},
		{"no model", chat, `{"messages":[]}`, 400, "you must provide a model parameter"},
		{"unknown path", server.URL + "/v1/embeddings", `{}`, 404, "no POST /v1/embeddings here; the API is under /v1"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			status, body := post(t, tt.url, "", tt.body)
			require.Equal(t, tt.status, status)
			var e struct {
				Error struct{ Message, Type string }
			}
			require.NoError(t, json.Unmarshal([]byte(body), &e))
			require.Equal(t, tt.message, e.Error.Message)
			require.NotEmpty(t, e.Error.Type)
		})
	}
	_, err := client.Chat.Completions.New(context.Background(), openai.ChatCompletionNewParams{Model: "fails"})
	var apiError *openai.Error
	require.ErrorAs(t, err, &apiError)
	require.Equal(t, 500, apiError.StatusCode)
	require.Equal(t, "scripted failure", apiError.Message)
}

func TestToken(t *testing.T) {
	server, _ := start(t, Config{Token: "sk-right"})
	const body = `{"model":"demo","messages":[{"role":"user","content":"x"}]}`
	for key, want := range map[string]int{"": 401, "sk-wrong": 401, "sk-right": 200} {
		status, answer := post(t, server.URL+"/v1/chat/completions", key, body)
		require.Equal(t, want, status, "key %q", key)
		require.NotContains(t, answer, "sk-right")
	}
	resp, err := http.Get(server.URL + "/healthz")
	require.NoError(t, err)
	defer resp.Body.Close()
	require.Equal(t, 200, resp.StatusCode, "health needs no key")
}

func TestModels(t *testing.T) {
	_, client := start(t, Config{Script: testScript(t)})
	page, err := client.Models.List(context.Background())
	require.NoError(t, err)
	var names []string
	for _, m := range page.Data {
		names = append(names, m.ID)
	}
	require.Equal(t, []string{"demo", "denies", "fails", "says-first", "slow", "two-rounds", "two-tools", "variants"}, names)
}

func TestThinkTime(t *testing.T) {
	_, client := start(t, Config{Script: testScript(t), ThinkTime: 40 * time.Millisecond})
	for model, atLeast := range map[string]time.Duration{"two-tools": 40 * time.Millisecond, "slow": 120 * time.Millisecond, "demo": 40 * time.Millisecond} {
		began := time.Now()
		complete(t, client, openai.ChatCompletionNewParams{Model: model, Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("x")}}, false)
		require.GreaterOrEqual(t, time.Since(began), atLeast, model)
	}
}

func TestThinkingEndsWhenTheCallerGoes(t *testing.T) {
	s := New(Config{ThinkTime: time.Hour})
	ctx, cancel := context.WithCancel(context.Background())
	returned := make(chan struct{})
	go func() {
		defer close(returned)
		r := httptest.NewRequest(http.MethodPost, "/v1/chat/completions", strings.NewReader(`{"model":"demo","messages":[]}`)).WithContext(ctx)
		s.ServeHTTP(httptest.NewRecorder(), r)
	}()
	require.Eventually(t, func() bool { return s.Requests() == 1 }, 5*time.Second, time.Millisecond)
	cancel()
	select {
	case <-returned:
	case <-time.After(5 * time.Second):
		t.Fatal("the handler still thinks")
	}
}

func TestConcurrentConversations(t *testing.T) {
	server, client := start(t, Config{Script: testScript(t)})
	var group sync.WaitGroup
	var mu sync.Mutex
	ids := map[string]bool{}
	errs := make(chan error, 64)
	for n := range 32 {
		group.Go(func() {
			prompt := fmt.Sprintf("shout number %d and compute %d * 2", n, n)
			params := openai.ChatCompletionNewParams{Model: "demo", Tools: demoTools(), Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage(prompt)}}
			first, err := client.Chat.Completions.New(context.Background(), params)
			if err != nil {
				errs <- err
				return
			}
			params.Messages = append(params.Messages, first.Choices[0].Message.ToParam())
			for i, c := range first.Choices[0].Message.ToolCalls {
				mu.Lock()
				repeated := ids[c.ID]
				ids[c.ID] = true
				mu.Unlock()
				if repeated {
					errs <- errors.New("call id " + c.ID + " given twice")
				}
				params.Messages = append(params.Messages, openai.ToolMessage(fmt.Sprintf("%d.%d", n, i), c.ID))
			}
			second, err := client.Chat.Completions.New(context.Background(), params)
			if err != nil {
				errs <- err
				return
			}
			want := fmt.Sprintf("Based on the tools: Calculator returned %d.0; Shout returned %d.1.", n, n)
			if got := second.Choices[0].Message.Content; got != want {
				errs <- fmt.Errorf("got %q, want %q", got, want)
			}
		})
	}
	group.Wait()
	close(errs)
	for err := range errs {
		t.Error(err)
	}
	require.Len(t, ids, 64)
	require.EqualValues(t, 64, server.Config.Handler.(*Server).Requests())
}

func TestServe(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	s := New(Config{})
	go func() { served <- s.ServeListener(ctx, listener) }()
	status, _ := post(t, "http://"+listener.Addr().String()+"/v1/responses", "", `{"model":"demo","input":"hi"}`)
	require.Equal(t, 200, status)
	require.ErrorContains(t, s.Serve(context.Background(), listener.Addr().String()), "mock model: listen on")
	cancel()
	require.NoError(t, <-served)
}
