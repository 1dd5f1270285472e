package mockllm

import (
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"
)

func TestBuiltInRule(t *testing.T) {
	alert := tool("send_alert", "Sends an alert", object{"type": "object", "required": []string{"level", "message", "count", "urgent"}, "properties": object{
		"count": object{"type": "integer"}, "level": object{"type": "string", "enum": []string{"low", "high"}},
		"message": object{"type": "string"}, "note": object{"type": "string"}, "urgent": object{"type": "boolean"},
	}})
	gated := tool("Shout", "", object{"type": "object", "properties": object{
		"toolParameters": object{"type": "object", "properties": object{"input": object{"type": "string"}}},
	}})
	final := tool(finalTool, "", object{"type": "object", "required": []string{"output"}, "properties": object{
		"output": object{"type": "object", "required": []string{"answer"}, "properties": object{"answer": object{"type": "number"}}},
	}})
	tests := []struct {
		name   string
		prompt string
		tools  []openai.ChatCompletionToolUnionParam
		rounds [][]string
		said   string
	}{
		{
			name: "the two tools of the example, the calculator first", prompt: "shout hi and compute 6 * 7", tools: demoTools(),
			rounds: [][]string{{`Calculator {"input":"6 * 7"}`, `Shout {"input":"shout hi and compute 6 * 7"}`}},
			said:   "Based on the tools: Calculator returned 42; Shout returned SHOUT SHOUT HI AND COMPUTE 6 * 7.",
		},
		{name: "no tools offered", prompt: "shout hi", said: "You said: shout hi"},
		{name: "no tool fits", prompt: "hello there", tools: demoTools(), said: "You said: hello there"},
		{
			name: "arguments by type", prompt: "send an alert about 3 disks", tools: append(demoTools(), alert),
			rounds: [][]string{{`send_alert {"count":3,"level":"low","message":"send an alert about 3 disks","urgent":true}`}},
			said:   "Based on the tools: send_alert returned 42.",
		},
		{
			name: "arguments inside an object", prompt: "shout", tools: []openai.ChatCompletionToolUnionParam{gated},
			rounds: [][]string{{`Shout {"toolParameters":{"input":"shout"}}`}},
			said:   "Based on the tools: Shout returned SHOUT .",
		},
	}
	_, client := start(t, Config{Script: testScript(t)})
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for range 2 { // the second time the tool list comes from the cache
				rounds, said := converse(t, client, openai.ChatCompletionNewParams{
					Model: "any-other-model", Tools: tt.tools, Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage(tt.prompt)},
				}, false, labTools)
				require.Equal(t, tt.rounds, rounds)
				require.Equal(t, tt.said, said)
			}
		})
	}
	t.Run("an answer in a given shape", func(t *testing.T) {
		message := complete(t, client, openai.ChatCompletionNewParams{
			Model: "demo", Tools: append(demoTools(), final), Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("I am 42 years old")},
		}, false)
		require.Len(t, message.ToolCalls, 1)
		require.Equal(t, finalTool, message.ToolCalls[0].Function.Name)
		require.JSONEq(t, `{"output":{"answer":42}}`, message.ToolCalls[0].Function.Arguments)
	})
}

func TestFindArithmetic(t *testing.T) {
	tests := map[string]string{
		"shout hi and compute 6 * 7": "6 * 7",
		"6*7":                        "6*7",
		"what is (1 + 2) ^ 3?":       "(1 + 2) ^ 3",
		"-4.5 / 2 please":            "-4.5 / 2",
		"2**10":                      "2**10",
		"half of 84, then 3 - -3":    "3 - -3",
		"add 1 + 2 + then":           "1 + 2",
		"I have 42 apples":           "",
		"on 2024-05-17 at 10":        "",
		"call 555-123-4567":          "",
		"version v2-3 of x1*2":       "",
		"open ( and 3 *":             "",
		"1/2/2024 then 5 % 3":        "5 % 3",
		"3-4x":                       "",
		"":                           "",
	}
	for prompt, want := range tests {
		require.Equal(t, want, findArithmetic(prompt), "prompt %q", prompt)
	}
}

func TestPlain(t *testing.T) {
	tests := map[string]string{
		`[{"response":"42"}]`:                 "42",
		`{"response":"a \"b\""}`:              `a "b"`,
		`[{"response":{"a":1}}]`:              `{"a":1}`,
		`[{"response":"1"},{"response":"2"}]`: `[{"response":"1"},{"response":"2"}]`,
		`[{"error":"no"}]`:                    `[{"error":"no"}]`,
		`[{"response":"1","more":2}]`:         `[{"response":"1","more":2}]`,
		`plain`:                               `plain`,
		`[not json`:                           `[not json`,
		`["response"]`:                        `["response"]`,
	}
	for observation, want := range tests {
		require.Equal(t, want, plain(observation))
	}
}

func TestFillArguments(t *testing.T) {
	tests := []struct{ name, schema, want string }{
		{"first string when nothing is required", `{"properties":{"n":{"type":"number"},"a":{"type":"string"},"b":{"type":"string"}}}`, `{"a":"text 7"}`},
		{"nullable type", `{"required":["a"],"properties":{"a":{"type":["null","string"]}}}`, `{"a":"text 7"}`},
		{"list of texts", `{"required":["a"],"properties":{"a":{"type":"array","items":{"type":"string"}}}}`, `{"a":["text 7"]}`},
		{"defaults and constants", `{"required":["a","b"],"properties":{"a":{"const":1},"b":{"type":"string","default":"d"}}}`, `{"a":1,"b":"d"}`},
		{"the text goes to the first required string only", `{"required":["a","b"],"properties":{"a":{"type":"string"},"b":{"type":"string"}}}`, `{"a":"text 7","b":"text"}`},
		{"no properties", `{"type":"object"}`, `{}`},
		{"no schema", ``, `{}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			require.JSONEq(t, tt.want, fillArguments(gjson.Parse(tt.schema), "text 7"))
		})
	}
}
