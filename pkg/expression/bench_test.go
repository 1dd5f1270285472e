package expression

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-engine/reprise/pkg/workflow"
)

func benchScope(items int) *Scope {
	raw, _ := json.Marshal(map[string]any{
		"id": 1, "name": "Ada", "price": 12.5, "tags": []string{"a", "b"}, "nested": map[string]any{"a": map[string]any{"b": "deep"}},
		"text": fmt.Sprintf("%01700d", 7),
	})
	s := &Scope{}
	list := make(workflow.Items, items)
	for i := range list {
		list[i] = workflow.Item{JSON: raw, PairedItem: workflow.Paired(i)}
	}
	s.Inputs = []workflow.Items{list}
	s.Sources = []*workflow.Source{{PreviousNode: "X"}}
	return s
}

func benchEvaluate(b *testing.B, text string) {
	e, err := New()
	require.NoError(b, err)
	defer e.Close()
	s := benchScope(100)
	_, err = e.Evaluate(context.Background(), s, 0, text) // starts what is started once
	require.NoError(b, err)
	i := 0
	for b.Loop() {
		if _, err := e.Evaluate(context.Background(), s, i%100, text); err != nil {
			b.Fatal(err)
		}
		i++
	}
}

func BenchmarkFastPath(b *testing.B) { benchEvaluate(b, "={{ $json.nested.a.b }}") }
func BenchmarkFastText(b *testing.B) { benchEvaluate(b, "=Hello {{ $json.name }}, {{ $json.price }}") }

// The costs of what people write, per expression and item.
func BenchmarkExpressions(b *testing.B) {
	for _, text := range []string{
		"={{ $json.price * 2 }}",
		"={{ $json.name.toUpperCase() }}",
		"={{ $json.price > 10 ? 'high' : 'low' }}",
		"={{ $json.tags.map(t => t + '!').join(', ') }}",
		"={{ $json.tags.sort()[0] }}",
		"={{ $json.text.replace(/7/g, '8') }}",
		"={{ JSON.stringify($json) }}",
		"={{ Object.keys($json).length }}",
		"={{ $json.name.split('').reverse().join('') }}",
		"={{ $input.item.json.price * 2 }}",
		"={{ $item.json.price * 2 }}",
		"={{ $now.toISO() }}",
		"={{ $input.all().length * 2 }}",
		"={{ DateTime.fromISO('2026-01-02').plus({days: 1}).toISODate() }}",
	} {
		b.Run(text, func(b *testing.B) { benchEvaluate(b, text) })
	}
}

func BenchmarkCode10000Items(b *testing.B) {
	e, err := New()
	require.NoError(b, err)
	defer e.Close()
	s := benchScope(10_000)
	for b.Loop() {
		_, err := e.RunCode(context.Background(), s, Code{Source: "for (const item of $input.all()) item.json.x = item.json.price * 2; return $input.all()", Item: -1})
		if err != nil {
			b.Fatal(err)
		}
	}
}
