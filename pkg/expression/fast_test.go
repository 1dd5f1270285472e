package expression

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/reprise-engine/reprise/pkg/workflow"
)

// both evaluates a text on the fast path and in JavaScript.
func both(tb rapid.TB, e *Evaluator, s *Scope, item int, text string) (fast, script string, simple bool) {
	p := compile(strings.TrimPrefix(text, "="))
	require.Nil(tb, p.err, text)
	require.True(tb, p.fast, text)
	v, simple, err := s.evaluateFast(p, item)
	w, scriptErr := e.evaluateScript(context.Background(), s, item, p)
	return outcome(v, err), outcome(w, scriptErr), simple || err != nil
}

func outcome(v Value, err error) string {
	if err != nil {
		e, ok := err.(*Error)
		if !ok {
			return "failed: " + err.Error()
		}
		return fmt.Sprintf("error %s (%s) %s", e.Message, e.Type, e.Description)
	}
	if v.Kind != "" {
		return v.Kind
	}
	var x any
	if err := json.Unmarshal(v.JSON, &x); err != nil {
		return "no JSON: " + string(v.JSON)
	}
	raw, _ := json.Marshal(positiveZeros(x))
	return string(raw)
}

// positiveZeros takes the sign from zeros: the fast path passes the text "-0" on as it came,
// JSON.stringify writes 0.
func positiveZeros(x any) any {
	switch x := x.(type) {
	case float64:
		return x + 0
	case []any:
		for i := range x {
			x[i] = positiveZeros(x[i])
		}
	case map[string]any:
		for k := range x {
			x[k] = positiveZeros(x[k])
		}
	}
	return x
}

// TestFastPathIsJavaScript compares the two ways over random data and paths.
func TestFastPathIsJavaScript(t *testing.T) {
	e, err := New()
	require.NoError(t, err)
	defer e.Close()
	key := rapid.SampledFrom([]string{"a", "b", "c d", "0", "1", "length", "ü", "toString", "x-y", "json", "-1", "name", "trim"})
	var value func(depth int) *rapid.Generator[any]
	value = func(depth int) *rapid.Generator[any] {
		scalars := []*rapid.Generator[any]{
			rapid.Just[any](nil), rapid.Bool().AsAny(), rapid.IntRange(-5, 5).AsAny(), rapid.Float64().AsAny(),
			rapid.SampledFrom([]string{"", "text", "über👋", "a\"b\\\n", "<&>\u2028"}).AsAny(), rapid.Int64().AsAny(),
		}
		if depth == 0 {
			return rapid.OneOf(scalars...)
		}
		inner := value(depth - 1)
		return rapid.OneOf(append(scalars, rapid.SliceOfN(inner, 0, 3).AsAny(), rapid.MapOfN(key, inner, 0, 4).AsAny(), rapid.MapOfN(key, inner, 0, 4).AsAny())...)
	}
	step := rapid.Custom(func(t *rapid.T) string {
		k := key.Draw(t, "key")
		optional := rapid.SampledFrom([]string{"", "", "?."}).Draw(t, "optional")
		_, isIndex := arrayIndex(k)
		if isIndex || isNegative(k) {
			return optional + "[" + k + "]"
		}
		if strings.ContainsAny(k, " -") || rapid.Bool().Draw(t, "brackets") {
			return optional + "[" + string(quote(k)) + "]"
		}
		if optional == "" {
			optional = "."
		}
		return optional + k
	})
	root := rapid.SampledFrom([]string{
		"$json", "$binary", "$input.item", "$input.first()", "$input.last()", "$input.all()", "$('A').item", `$("A").first()`, "$(`A`).last()",
		"$('A').all()", "$('A').all()[0].json", "$('A').first(0, 0).json", "$('A').first(1)", "$('A').last(0, 7)", "$node.A.json", `$node["A"].json`, "$('B').item", "$('B').first()", "$('Gone').item.json", "$('Never').first().json",
		"$('Never').item.json", "$node['Never'].json", "$itemIndex", "$runIndex", "$workflow.id", "$execution.mode", "$fromAI('city')", "$fromAI('none', 'd', 'number', 4)", "'lit'", "-1.50", "true", "null", "undefined", "1e21", "$execution.id",
	})
	rapid.Check(t, func(t *rapid.T) {
		item := func() workflow.Item {
			raw, err := json.Marshal(rapid.MapOfN(key, value(3), 0, 6).Draw(t, "json"))
			require.NoError(t, err)
			return workflow.Item{JSON: raw}
		}
		a := workflow.Items{item(), item()}
		a[0].PairedItem, a[1].PairedItem = workflow.Paired(0), workflow.Paired(0)
		b := workflow.Items{item()}
		b[0].PairedItem = rapid.SampledFrom([]workflow.PairedItems{workflow.Paired(0), workflow.Paired(1), workflow.Paired(4), nil, {{Item: 0}, {Item: 1}}}).Draw(t, "paired")
		s := &Scope{
			Inputs: []workflow.Items{{b[0]}}, Sources: from("B"), Nodes: map[string]*workflow.Node{"A": {}, "B": {}, "Never": {}},
			RunData:       runData{"A": {{[]workflow.Items{a}, from("T")}}, "B": {{[]workflow.Items{b}, from("A")}}, "T": {{outputs: []workflow.Items{{{JSON: json.RawMessage("{}")}}}}}},
			ToolArguments: json.RawMessage(`{"city": "Rome"}`),
		}
		s.Inputs[0][0].PairedItem = workflow.Paired(0)
		if rapid.Bool().Draw(t, "with binary") {
			s.Inputs[0][0].Binary = map[string]workflow.Binary{"a": {MimeType: "text/plain", FileName: "ä.txt"}}
		}
		s.Execution.ID, s.Workflow.ID = "17", "w"
		text := "={{ " + root.Draw(t, "root") + strings.Join(rapid.SliceOfN(step, 0, 4).Draw(t, "steps"), "") + " }}"
		if compile(text[1:]).fast == false {
			return // toString and the like
		}
		if rapid.Bool().Draw(t, "in text") {
			text += " and " + text[1:]
		}
		fast, script, simple := both(t, e, s, 0, text)
		if simple && fast != script {
			t.Fatalf("%s: Go %s, JavaScript %s", text, fast, script)
		}
	})
}

func TestCompileFast(t *testing.T) {
	for text, want := range map[string]bool{
		"$json.a": true, "$json": true, "$json['a b'][0]?.c;": true, "$('X').item.json.y": true, "$('It\\'s').first().json": true,
		"$node[\"X\"].json.y": true, "$input.all()": true, "'text'": true, "-1.5": true, "`t`": true, "/* c */ $json.a // d": true,
		"$fromAI('k', `d`, 'string', 'x')": true, "/*n8n-auto-generated-fromAI-override*/ $fromAI('k', ``, 'string')": true,
		"$json.a + 1": false, "$json[x]": false, "$json.a()": false, "$json.constructor": false, "$now": false, "$json.toString": false,
		"`a${1}`": false, "$('X')": false, "$(name).item": false, "$json.a ?? 1": false, "[1]": false, "08": false, "0x10": false,
		"$fromAI(key)": false, "$fromAI('k', 'd', 'json', {})": false, "$input.first(1)": false, "$node.X": false, "$('X').item()": false,
	} {
		tokens, _ := lex(text)
		require.Equal(t, want, compileFast(tokens) != nil, text)
	}
	require.True(t, Simple(json.RawMessage(`{"a": "={{ $json.b }} x {{ $('X').item.json.c }}", "b": [1, "{{ x + 1 }}"]}`)))
	require.False(t, Simple(json.RawMessage(`{"a": {"b": ["={{ $json.b + 1 }}"]}}`)))
}
