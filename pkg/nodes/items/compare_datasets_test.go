package items

import (
	"testing"

	"github.com/reprise-engine/reprise/pkg/nodes/nodestest"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

func TestCompareDatasets(t *testing.T) {
	inputs := []workflow.Items{
		nodestest.Items(`{"id":1,"p":{"n":"x","l":"de"}}`, `{"id":2,"v":"5"}`, `{"q":0}`),
		nodestest.Items(`{"id":1,"p":{"n":"y","l":"de"}}`, `{"id":"2","v":5}`, `{"id":1,"w":1}`),
	}
	named := []workflow.Items{nodestest.Items(`{"id":1,"v":2}`), nodestest.Items(`{"uid":1,"v":3}`)}
	of := func(more string) string {
		return `{"mergeByFields":{"values":[{"field1":"id","field2":"id"}]},` + more + `}`
	}
	out := func(lists ...[]string) string {
		text := ""
		for i, lines := range lists {
			text += "\n  output " + string(rune('0'+i))
			for _, line := range lines {
				text += "\n    " + line
			}
		}
		return text
	}
	a1, a2, a3 := `{"id":1,"p":{"l":"de","n":"x"}} {"item":0}`, `{"id":2,"v":"5"} {"item":1}`, `{"q":0} {"item":2}`
	b1, b2, b3 := `{"id":1,"p":{"l":"de","n":"y"}} {"item":0,"input":1}`, `{"id":"2","v":5} {"item":1,"input":1}`, `{"id":1,"w":1} {"item":2,"input":1}`
	try(t, CompareDatasets(), nil, []trial{
		{name: "the version of A", inputs: inputs, parameters: of(`"resolve":"preferInput1"`), want: out([]string{a2, a3}, nil, []string{a1}, []string{b2, b3})},
		{name: "the version of B, all matches", inputs: inputs, parameters: of(`"resolve":"preferInput2","options":{"multipleMatches":"all"}`), want: out([]string{a2, a3}, nil, []string{b1, b3}, []string{b2})},
		{name: "a nested field is skipped", inputs: inputs, parameters: of(`"options":{"skipFields":"p.n"}`), want: out([]string{a2, a3}, []string{a1}, nil, []string{b2, b3})},
		{name: "fuzzy", inputs: inputs, parameters: of(`"fuzzyCompare":true,"resolve":"preferInput1"`), want: out([]string{a3}, []string{a2}, []string{a1}, []string{b3})},
		{name: "fuzzy in version 1", version: 1, inputs: inputs, parameters: of(`"resolve":"preferInput1","options":{"fuzzyCompare":true}`), want: out([]string{a3}, []string{a2}, []string{a1}, []string{b3})},
		{name: "version 1 prefers B", version: 1, inputs: named, parameters: `{"mergeByFields":{"values":[{"field1":"id","field2":"uid"}]}}`, want: out(nil, nil, []string{`{"uid":1,"v":3} {"item":0,"input":1}`})},
		{name: "fields of different names, both versions", inputs: named, parameters: `{"mergeByFields":{"values":[{"field1":"id","field2":"uid"}]}}`,
			want: out(nil, nil, []string{`{"different":{"v":{"inputA":2,"inputB":3}},"keys":{"id":1,"uid":1},"same":{}} [{"item":0},{"item":0,"input":1}]`})},
		{name: "what was skipped is told", inputs: inputs, parameters: of(`"options":{"skipFields":"w","multipleMatches":"all"}`), want: out([]string{a2, a3}, nil, []string{
			`{"different":{"p":{"inputA":{"l":"de","n":"x"},"inputB":{"l":"de","n":"y"}}},"keys":{"id":1},"same":{"id":1}} [{"item":0},{"item":0,"input":1}]`,
			`{"different":{"p":{"inputA":{"l":"de","n":"x"},"inputB":null}},"keys":{"id":1},"same":{"id":1},"skipped":{"w":{"inputA":null,"inputB":1}}} [{"item":0},{"item":2,"input":1}]`}, []string{b2})},
		{name: "a mix", inputs: inputs, parameters: of(`"resolve":"mix","preferWhenMix":"input2","exceptWhenMix":"p.n"`), want: out([]string{a2, a3}, nil, []string{`{"id":1,"p":{"l":"de","n":"x"}} {"item":0,"input":1}`}, []string{b2, b3})},
		{name: "nothing in B", inputs: []workflow.Items{inputs[0], nil}, parameters: of(`"resolve":"preferInput1"`), want: out([]string{a1, a2, a3})},
		{name: "a field that A has not", inputs: inputs, parameters: `{"mergeByFields":{"values":[{"field1":"key","field2":"id"}]}}`, err: "Field 'key' is not present in any of items in 'Input A'"},
		{name: "a field that B has not", version: 1, inputs: inputs, parameters: `{"mergeByFields":{"values":[{"field1":"id","field2":"key"}]}}`, err: "Field 'key' is not present in any of items in 'Input 2'"},
		{name: "no fields", inputs: inputs, parameters: `{"mergeByFields":{"values":[{"field1":"id","field2":""}]}}`, err: `You need to define at least one pair of fields in "Fields to Match" to match on`},
		{name: "an unknown resolution", inputs: inputs, parameters: of(`"resolve":"newest"`), err: "The value 'newest' of 'When There Are Differences' is unknown"},
	})
}
