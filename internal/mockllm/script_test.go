package mockllm

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestParseScriptErrors(t *testing.T) {
	tests := []struct{ name, script, want string }{
		{"no object", `[]`, "it must be an object of model name to scenario"},
		{"unknown field", `{"m":{"turn":[]}}`, `scenario "m": json: unknown field "turn"`},
		{"no turns", `{"m":{}}`, `scenario "m": no turns; give at least one, or a fail_status`},
		{"call without a name", `{"m":{"turns":[{"tool_calls":[{"args":{}}]}]}}`, `turn 0: a tool call has no name`},
		{"empty variant", `{"m":{"turns":[{"content":"x"}],"variants":[{"match":"y","turns":[]}]}}`, `variant "y": no turns`},
		{"status that is none", `{"m":{"fail_status":200}}`, `fail_status 200 is no error status`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := ParseScript([]byte(tt.script))
			require.ErrorContains(t, err, tt.want)
		})
	}
}

func TestTemplate(t *testing.T) {
	c := &conversation{prompt: `a "b"`, results: []toolResult{{"X", "1"}, {"Y", "2"}}}
	tests := map[string]string{
		"":                              "",
		"plain":                         "plain",
		"{{prompt}}":                    `a "b"`,
		"{{ results }}!":                "X returned 1; Y returned 2!",
		"{{other}} {{last}} {{":         "{{other}} 2 {{",
		"{{a{{prompt}}":                 `{{aa "b"`,
		"{{results}}{{prompt}}{{last}}": `X returned 1; Y returned 2a "b"2`,
	}
	for text, want := range tests {
		require.Equal(t, want, parseTemplate(text).render(c), "template %q", text)
	}
	require.Equal(t, `{"x":"a \"b\""}`, parseTemplate(`{"x":"{{prompt}}"}`).renderJSON(c))
}
