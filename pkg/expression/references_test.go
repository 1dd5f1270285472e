package expression

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFindReferences(t *testing.T) {
	for _, row := range []struct {
		name, text string
		code       bool
		want       References
	}{
		{"none", "={{ $json.a + $input.first().json.b }}", false, References{}},
		{"no expression", "$('X').item", false, References{}},
		{"outside of the braces", "=$('X').item {{ 1 }}", false, References{}},
		{"item", "={{ $('X').item.json.a }}", false, References{Nodes: []string{"X"}, Lineage: true}},
		{"several", "={{ $('B').first().json }} {{ $(\"A\").all() }} {{ $(`C`).last() }}", false, References{Nodes: []string{"A", "B", "C"}}},
		{"legacy", "={{ $node['X'].json.a + $node.Y.json }}", false, References{Nodes: []string{"X", "Y"}}},
		{"items", "={{ $items('X').length + $items().length }}", false, References{Nodes: []string{"X"}}},
		{"items of a run", "={{ $items('X', 0, $runIndex) }}", false, References{Nodes: []string{"X"}, AllRuns: true}},
		{"a run", "={{ $('X').all(0, $runIndex).length }}", false, References{Nodes: []string{"X"}, AllRuns: true}},
		{"a branch", "={{ $('X').all(fn(1, 2)).length }}", false, References{Nodes: []string{"X"}}},
		{"in a template", "={{ `a ${$('X').item.json.b} c` }}", false, References{Nodes: []string{"X"}, Lineage: true}},
		{"in a string", `={{ "$('X')" }}`, false, References{}},
		{"in a comment", "={{ 1 /* $('X').item */ }}", false, References{}},
		{"computed name", "={{ $(name).first().json }}", false, References{All: true, AllRuns: true}},
		{"computed member", "={{ $('X')[which].json }}", false, References{Nodes: []string{"X"}, AllRuns: true}},
		{"item by brackets", "={{ $('X')['item'].json }}", false, References{Nodes: []string{"X"}, Lineage: true}},
		{"pairedItem", "={{ $('X').pairedItem().json }}", false, References{Nodes: []string{"X"}, Lineage: true}},
		{"escaped name", `={{ $('It\'s').item }}`, false, References{Nodes: []string{"It's"}, Lineage: true}},
		{"code", "for (const i of $('X').all()) { a = i.json / 2 /* $('Y') */ }", true, References{Nodes: []string{"X"}}},
		{"code matching", "return $('X').itemMatching(0)", true, References{Nodes: []string{"X"}, Lineage: true}},
		{"code is not searched", "return $('X').all()", false, References{}},
		{"whole $node", "={{ Object.keys($node) }}", false, References{All: true}},
		{"syntax error", "={{ $('X').first( }}", false, References{Nodes: []string{"X"}}},
	} {
		t.Run(row.name, func(t *testing.T) {
			raw, err := json.Marshal(map[string]any{"a": []any{row.text}})
			require.NoError(t, err)
			require.Equal(t, row.want, FindReferences(raw, row.code))
		})
	}
}

func TestFindFromAI(t *testing.T) {
	raw := json.RawMessage(`{
		"to": "={{ /*n8n-auto-generated-fromAI-override*/ $fromAI('To', ` + "``" + `, 'string') }}",
		"list": [{"n": "={{ $fromAI(\"count\", 'how many', 'number', 3) }} and {{ $fromAI('To') }}"}],
		"more": "={{ $json.x + $fromAI('flag', \"it's\", 'boolean', false) }}",
		"text": "$fromAI('not an expression')", "bad": "={{ $fromAI(key) }}"
	}`)
	require.Equal(t, []FromAI{
		{Key: "To", Type: "string"},
		{Key: "count", Description: "how many", Type: "number", Default: json.RawMessage("3")},
		{Key: "flag", Description: "it's", Type: "boolean", Default: json.RawMessage("false")},
	}, FindFromAI(raw))
}

func TestFromAI(t *testing.T) {
	e, err := New()
	require.NoError(t, err)
	defer e.Close()
	for _, row := range []struct{ text, arguments, want string }{
		{"={{ $fromAI('city') }}", `{"city": "Rome"}`, `"Rome"`},
		{"={{ $fromAI('city').toUpperCase() }}", `{"city": "Rome"}`, `"ROME"`},
		{"={{ $fromAI('city') }}", `{"query": {"city": "Oslo"}}`, `"Oslo"`},
		{"={{ $fromAI('n', '', 'number', 5) }}", `{}`, `5`},
		{"={{ $fromAI('n', '', 'number', 2 + 3) }}", `{}`, `5`},
		{"={{ $fromAI('none') }}", `{}`, ``},
		{"=in {{ $fromAI('city', `the city`, 'string') }}!", `{"city": "Rome"}`, `"in Rome!"`},
		{"={{ $fromAI('data').a[1] + 1 }}", `{"data": {"a": [1, 2]}}`, `3`},
	} {
		s := &Scope{ToolArguments: json.RawMessage(row.arguments)}
		v, err := e.Evaluate(t.Context(), s, 0, row.text)
		require.NoError(t, err, row.text)
		require.Equal(t, row.want, string(v.JSON), row.text)
	}
	_, err = e.Evaluate(t.Context(), &Scope{}, 0, "={{ $fromAI('no spaces') }}")
	require.EqualError(t, err, "Invalid parameter key")
}

func TestFindReferencesOfPython(t *testing.T) {
	for _, row := range []struct {
		name, code string
		want       References
	}{
		{"none", "return [{'a': _x('y')} for _ in _items] # don't", References{}},
		{"call", `# it's about _
return _("It's").all()`, References{Nodes: []string{"It's"}}},
		{"item", "return _('X').item.json", References{Nodes: []string{"X"}, Lineage: true}},
		{"a run", "return _('X').all(0, 1)", References{Nodes: []string{"X"}, AllRuns: true}},
		{"computed", "return _(name).all()", References{All: true, AllRuns: true}},
		{"composed", "return _('X' + y).all()", References{All: true, AllRuns: true}},
		{"node", `a = _node["X"]["json"]; b = _node.Y.json`, References{Nodes: []string{"X", "Y"}}},
		{"all nodes", "for name in names: _node[name]", References{All: true}},
	} {
		t.Run(row.name, func(t *testing.T) {
			raw, err := json.Marshal(map[string]string{"language": "python", "pythonCode": row.code})
			require.NoError(t, err)
			require.Equal(t, row.want, FindReferences(raw, true))
		})
	}
}
