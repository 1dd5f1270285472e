package fromai

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSchema(t *testing.T) {
	tests := []struct{ name, value, properties, required string }{
		{"all arguments", `={{ $fromAI('to', 'who gets it', 'string') }}`, `{"to":{"type":"string","description":"who gets it"}}`, `["to"]`},
		{"the key alone", "={{ $fromAI(`n`) }}", `{"n":{"type":"string"}}`, `["n"]`},
		{"a default", `={{ $fromAI("n", "", "number", 5) }}`, `{"n":{"type":"number","default":5}}`, ``},
		{"a default in quotes", `={{ $fromAI("n", "", "boolean", "true") }}`, `{"n":{"type":"boolean","default":true}}`, ``},
		{"two in one text, with brackets and commas inside", `=a {{ $fromAI('x', 'one, (two) \'three\'') }} b {{ $fromAI('y', ` + "``" + `, 'json') }}`,
			`{"x":{"type":"string","description":"one, (two) 'three'"},"y":{"type":"object","additionalProperties":true}}`, `["x","y"]`},
		{"the same one twice", `={{ $fromAI('x') + $fromai('x') }}`, `{"x":{"type":"string"}}`, `["x"]`},
		{"the comment that n8n writes", `={{ /*n8n-auto-generated-fromAI-override*/ $fromAI('q', ` + "``" + `, 'string') }}`, `{"q":{"type":"string"}}`, `["q"]`},
		{"no expression", `$fromAI('x')`, `{}`, ``},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			parameters, err := json.Marshal(object{"url": "http://x", "options": []any{object{"deep": tt.value}}})
			require.NoError(t, err)
			schema, err := Schema(parameters)
			require.NoError(t, err)
			want := `{"type":"object","properties":` + tt.properties + `,"additionalProperties":false`
			if tt.required != "" {
				want += `,"required":` + tt.required
			}
			require.JSONEq(t, want+"}", string(schema))
		})
	}
	for value, want := range map[string]string{
		`={{ $fromAI('a b') }}`:                       `key "a b" is not valid`,
		`={{ $fromAI() }}`:                            `key "" is not valid`,
		`={{ $fromAI('x', '', 'date') }}`:             `unknown type "date"`,
		`={{ $fromAI('x', 'a') + $fromAI('x','b') }}`: `asked for twice`,
	} {
		parameters, err := json.Marshal(object{"v": value})
		require.NoError(t, err)
		_, err = Schema(parameters)
		require.ErrorContains(t, err, want)
	}
}

type object = map[string]any
