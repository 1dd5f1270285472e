package expression

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reprise-engine/reprise/pkg/workflow"
)

func aheadScope(items int) *Scope {
	list := make(workflow.Items, items)
	for i := range list {
		list[i] = workflow.Item{JSON: json.RawMessage(fmt.Sprintf(`{"n":%d,"name":"item %d","tags":["c","a","b%d"],"o":{"x":{"y":%d}},"maybe":%s}`,
			i, i, i, i, map[bool]string{true: "null", false: `"text"`}[i%7 == 3])), PairedItem: workflow.Paired(i)}
	}
	return &Scope{Inputs: []workflow.Items{list}, Now: time.UnixMilli(1_700_000_000_000), Sources: []*workflow.Source{{PreviousNode: "X"}}}
}

// Item after item gives what each item gives by itself: the items in reverse are never evaluated ahead.
func TestAheadIsAsAlone(t *testing.T) {
	texts := []string{
		"={{ $json.n * 2 }}",
		"={{ $json.tags.sort() }} {{ $json.tags[0] }} of {{ $json.name }}",
		"={{ $json.tags.push('x') }}",
		"={{ $input.item.json.tags.reverse().join() + $json.tags.length }}",
		"={{ $input.item.json.n + $json.n }}",
		"={{ JSON.stringify($json) }}",
		"={{ Object.keys($json).length + $itemIndex }}",
		"={{ $json.maybe.toUpperCase() }}",
		"={{ $json.n % 5 === 2 ? $('Nowhere').item.json.x : $json.n + 1 }}",
		"={{ $json.o.x.y = 5 }} {{ $json.o.x.y + 1 }}",
		"={{ (() => { let sum = 0; for (const t of $json.tags) sum += t.length; return sum })() }}",
		"={{ counter = (typeof counter === 'undefined' ? 0 : counter) + 1 }}",
		"={{ $input.all().length + $input.first().json.n }}",
		"={{ $input.all().pop().json.n + $input.all().length }}",
		"={{ $now.plus({ days: $json.n }).toISODate() }}",
		"={{ $json.n / 0 }}",
		"={{ 'a\\nb' + $json.n }}",
		"={{ Object.assign({}, $json, { n: 1 }).n + $json.n }}",
		"={{ Object.assign($json, { n: 1 }).n }}",
		"={{ Math.round = 1 }} {{ Math.max($json.n, 3) }}",
		"={{ $thisItem.json.name + $binary.length }}",
	}
	e, err := New()
	require.NoError(t, err)
	t.Cleanup(func() { _ = e.Close() })
	const items = 60
	evaluate := func(s *Scope, i int, text string) string {
		v, err := e.Evaluate(t.Context(), s, i, text)
		return fmt.Sprintf("%s %s %v", v.JSON, v.Kind, err)
	}
	want := map[string][]string{}
	alone := aheadScope(items)
	for _, text := range texts {
		want[text] = make([]string, items)
		for i := items - 1; i >= 0; i-- {
			want[text][i] = evaluate(alone, i, text)
		}
	}
	mixed := aheadScope(items) // several expressions for each item, as nodes ask
	for i := range items {
		for _, text := range texts {
			require.Equal(t, want[text][i], evaluate(mixed, i, text), "%s for item %d", text, i)
		}
	}
	for _, text := range texts { // and one alone
		s := aheadScope(items)
		for i := range items {
			require.Equal(t, want[text][i], evaluate(s, i, text), "%s for item %d", text, i)
		}
	}
}

// An item that reaches a limit does not take those before it along.
func TestAheadOfALimit(t *testing.T) {
	e, err := NewWithConfig(Config{ExpressionTimeout: 200 * time.Millisecond})
	require.NoError(t, err)
	t.Cleanup(func() { _ = e.Close() })
	s := aheadScope(12)
	for i := range 12 {
		v, err := e.Evaluate(t.Context(), s, i, "={{ (() => { while ($json.n === 6) {} return $json.n })() }}")
		if i == 6 {
			require.ErrorContains(t, err, "took longer than")
			continue
		}
		require.NoError(t, err, "item %d", i)
		require.Equal(t, fmt.Sprint(i), string(v.JSON))
	}
}

func TestMutation(t *testing.T) {
	for _, row := range []struct {
		code          string
		data, globals bool
	}{
		{"$json.a === 1 && $json.b >= 2 ? x => x : 3", false, false},
		{"$json.a.sort()", true, false},
		{"$json.a.setZone('x')", true, false},
		{"Object.assign({}, $json)", false, false},
		{"Object.assign($json, {})", false, true},
		{"(() => { const a = 1, {b} = $json, [c] = d; let e = 2; e += a; e++; return e })()", false, false},
		{"const [a, b] = $json.c", false, false},
		{"$json.a = 1", false, true},
		{"$json.a++", false, true},
		{"++$json.a", false, true},
		{"Math = 1", false, true},
		{"parseInt = 1", false, true},
		{"$json['a'] = 1", false, true},
		{"a?.b[0] = 1", false, true},
		{"$json.a['sort']()", false, true},
		{"delete $json.a", false, true},
		{"[].push.apply($json.a, [])", true, true},
	} {
		tokens, ok := lex(row.code)
		require.True(t, ok)
		data, globals := mutation(tokens)
		require.Equal(t, []bool{row.data, row.globals}, []bool{data, globals}, row.code)
	}
}
