package ai

import (
	"context"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"github.com/reprise-engine/reprise/pkg/nodes/nodestest"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

func openModel(t *testing.T, version float64, parameters string, secret map[string]any) *openAI {
	call := nodestest.Call(typeOf(t, "lmChatOpenAi"), parameters, nodestest.Items(`{"model":"from-item"}`))
	call.Node.TypeVersion = version
	call.Node.Credentials = map[string]workflow.CredentialRef{"openAiApi": {ID: "1"}}
	call.Credentials = func(context.Context, string, workflow.CredentialRef) (map[string]any, error) { return secret, nil }
	model, err := openOpenAI(context.Background(), call, 0)
	require.NoError(t, err)
	return model.(*openAI)
}

func TestModelNamesAndAPI(t *testing.T) {
	for _, tt := range []struct {
		version          float64
		parameters, name string
		responses        bool
	}{
		{1, `{"model":"gpt-4"}`, "gpt-4", false},
		{1.2, `{"model":{"__rl":true,"mode":"list","value":"gpt-4.1"}}`, "gpt-4.1", false},
		{1.3, `{"model":{"__rl":true,"mode":"id","value":"={{ $json.model }}"}}`, "from-item", true},
		{1.3, `{"model":"x","responsesApiEnabled":false}`, "x", false},
		{1.1, `{}`, "gpt-4o-mini", false},
	} {
		m := openModel(t, tt.version, tt.parameters, map[string]any{"apiKey": "k"})
		require.Equal(t, tt.name, m.model)
		require.Equal(t, tt.responses, m.responses)
	}
}

func TestOptionsReachTheRequest(t *testing.T) {
	const options = `{"model":"gpt-4","options":{"temperature":0,"topP":0.5,"frequencyPenalty":0.1,"presencePenalty":-1,"maxTokens":77,"responseFormat":"json_object","reasoningEffort":"low"}}`
	q := question{Messages: []message{{Role: roleUser, Content: "a \"<&>\"\n"}}}
	body := string(openModel(t, 1.2, options, nil).chatRequest(q))
	require.JSONEq(t, `{"model":"gpt-4","temperature":0,"top_p":0.5,"frequency_penalty":0.1,"presence_penalty":-1,"max_tokens":77,
		"response_format":{"type":"json_object"},"reasoning_effort":"low","messages":[{"role":"user","content":"a \"<&>\"\n"}]}`, body)
	body = string(openModel(t, 1.3, options, nil).responsesRequest(q))
	require.JSONEq(t, `{"model":"gpt-4","temperature":0,"top_p":0.5,"max_output_tokens":77,"text":{"format":{"type":"json_object"}},
		"reasoning":{"effort":"low"},"input":[{"type":"message","role":"user","content":"a \"<&>\"\n"}]}`, body)
	body = string(openModel(t, 1.2, `{"model":"gpt-5-nano","options":{"maxTokens":5}}`, nil).chatRequest(q))
	require.Equal(t, int64(5), gjson.Get(body, "max_completion_tokens").Int())
	require.False(t, gjson.Get(openModelBody(t, `{"model":"x","options":{"maxTokens":-1}}`, q), "max_tokens").Exists())
}

func openModelBody(t *testing.T, parameters string, q question) string {
	return string(openModel(t, 1.2, parameters, nil).chatRequest(q))
}

func TestResponsesHistory(t *testing.T) {
	m := openModel(t, 1.3, `{"model":"x"}`, nil)
	body := string(m.responsesRequest(question{Messages: []message{
		{Role: roleUser, Content: "hi"},
		{Role: roleAssistant, Content: "wait", ToolCalls: []toolCall{{ID: "1", Name: "T", Arguments: `{"a":1}`}, {ID: "2", Name: "T", Arguments: "bad"}}},
		{Role: roleTool, ToolCallID: "1", Content: "one"}, {Role: roleTool, ToolCallID: "2", Content: ""},
	}}))
	require.JSONEq(t, `[{"type":"message","role":"user","content":"hi"},{"type":"message","role":"assistant","content":"wait"},
		{"type":"function_call","call_id":"1","name":"T","arguments":"{\"a\":1}"},{"type":"function_call","call_id":"2","name":"T","arguments":"{}"},
		{"type":"function_call_output","call_id":"1","output":"one"},{"type":"function_call_output","call_id":"2","output":""}]`, gjson.Get(body, "input").Raw)
}

func TestReadAnswers(t *testing.T) {
	r, err := readChat([]byte(`{"choices":[{"message":{"content":[{"type":"text","text":"a"},{"type":"text","text":"b"}],"tool_calls":[
		{"id":"1","function":{"name":"T","arguments":{"x":1}}},{"id":"2","function":{"name":"T","arguments":""}},{"id":"3","function":{"name":"T"}}]},"finish_reason":"tool_calls"}],
		"usage":{"prompt_tokens":1,"completion_tokens":2,"total_tokens":3}}`))
	require.NoError(t, err)
	require.Equal(t, &reply{Text: "a\nb", Finish: "tool_calls", Usage: usage{1, 2, 3}, Calls: []toolCall{
		{"1", "T", `{"x":1}`}, {"2", "T", "{}"}, {"3", "T", "{}"}}}, r)
	r, err = readResponse([]byte(`{"status":"completed","error":null,"output":[{"type":"reasoning"},{"type":"message","content":[{"type":"output_text","text":"x"}]},
		{"type":"function_call","call_id":"c","name":"T","arguments":"{}"}],"usage":{"input_tokens":1,"output_tokens":2}}`))
	require.NoError(t, err)
	require.Equal(t, &reply{Text: "x", Usage: usage{1, 2, 3}, Calls: []toolCall{{"c", "T", "{}"}}}, r)
	_, err = readResponse([]byte(`{"status":"failed","error":{"message":"overloaded"}}`))
	require.ErrorContains(t, err, "overloaded")
	_, err = readResponse([]byte(`{}`))
	require.ErrorContains(t, err, "no output")
}

// Keys of the process's environment must not go to the servers of a workflow.
func TestCredentialDecidesWhatIsSent(t *testing.T) {
	t.Setenv("OPENAI_API_KEY", "sk-environment")
	t.Setenv("OPENAI_ORG_ID", "org-environment")
	server := serveModel(t, func(w http.ResponseWriter, path string, _ []byte) {
		require.Equal(t, "/base/chat/completions", path)
		_, _ = w.Write([]byte(`{"choices":[{"message":{"content":"x"}}]}`))
	})
	m := openModel(t, 1.2, `{"model":"x","options":{"baseURL":"`+server.URL+`/base"}}`, map[string]any{
		"apiKey": "sk-own", "url": "http://127.0.0.1:1", "organizationId": "org-own", "header": true, "headerName": "X-Extra", "headerValue": "extra"})
	_, err := m.ask(context.Background(), question{Messages: []message{{Role: roleUser}}})
	require.NoError(t, err)
	h := server.headers[0]
	require.Equal(t, "Bearer sk-own", h.Get("Authorization"))
	require.Equal(t, "org-own", h.Get("OpenAI-Organization"))
	require.Equal(t, "extra", h.Get("X-Extra"))
	for name, values := range h {
		for _, value := range values {
			require.NotContains(t, value, "environment", name)
		}
	}
}

func TestRetriesOnServerErrors(t *testing.T) {
	tries := 0
	server := serveModel(t, func(w http.ResponseWriter, _ string, _ []byte) {
		if tries++; tries == 1 {
			w.Header().Set("Retry-After-Ms", "1")
			w.WriteHeader(500)
			return
		}
		_, _ = w.Write([]byte(`{"choices":[{"message":{"content":"x"}}]}`))
	})
	m := openModel(t, 1.2, `{"model":"x"}`, map[string]any{"apiKey": "k", "url": server.URL})
	r, err := m.ask(context.Background(), question{Messages: []message{{Role: roleUser}}, IdempotencyKey: "same"})
	require.NoError(t, err)
	require.Equal(t, "x", r.Text)
	require.Len(t, server.bodies, 2)
	require.Equal(t, "same", server.headers[1].Get("Idempotency-Key"))
}
