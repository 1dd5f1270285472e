package jsonobject

import "testing"

func TestSchema(t *testing.T) {
	var properties Object
	properties.Set(`a "b"`, `{"type":"string"}`)
	for _, test := range []struct {
		name     string
		required []string
		closed   bool
		want     string
	}{
		{"open", nil, false, `{"type":"object","properties":{"a \"b\"":{"type":"string"}}}`},
		{"closed", []string{`a "b"`, "c"}, true, `{"type":"object","properties":{"a \"b\"":{"type":"string"}},"required":["a \"b\"","c"],"additionalProperties":false}`},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := Schema(properties, test.required, test.closed).String(); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

func TestSchemaOfExample(t *testing.T) {
	const example = `{"s":"x","n":1.5,"b":false,"nothing":null,"list":[{"in":1},2],"none":[],"s":true}`
	for _, test := range []struct {
		name             string
		example          string
		required, closed bool
		want             string
	}{
		{"open", example, false, false, `{"type":"object","properties":{"s":{"type":"boolean"},"n":{"type":"number"},"b":{"type":"boolean"},"nothing":{},` +
			`"list":{"type":"array","items":{"type":"object","properties":{"in":{"type":"number"}}}},"none":{"type":"array"}}}`},
		{"required and closed", `{"a":{"b":1},"c":[{}]}`, true, true, `{"type":"object","properties":{` +
			`"a":{"type":"object","properties":{"b":{"type":"number"}},"required":["b"],"additionalProperties":false},` +
			`"c":{"type":"array","items":{"type":"object","properties":{},"additionalProperties":false}}},"required":["a","c"],"additionalProperties":false}`},
		{"one value", `"x"`, true, true, `{"type":"string"}`},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := SchemaOfExample(test.example, test.required, test.closed); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}
