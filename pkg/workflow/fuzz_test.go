package workflow

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// use calls everything that reads a parsed workflow.
func use(w *Workflow) {
	Validate(w, known)
	_, _ = w.Start(known)
	for _, n := range append(w.Nodes, w.Notes...) {
		w.Ancestors(n.Name)
		w.SubNodes(n.Name, Tool)
		w.Origins(n.Name, Main)
		w.Targets(n.Name, Main)
	}
}

func FuzzParse(f *testing.F) {
	files, err := filepath.Glob("testdata/*.json")
	require.NoError(f, err)
	require.NotEmpty(f, files)
	for _, file := range files {
		data, err := os.ReadFile(file)
		require.NoError(f, err)
		f.Add(data)
		f.Add(data[:len(data)/2])
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		w, err := Parse(data)
		if err != nil {
			require.Nil(t, w)
			return
		}
		require.True(t, json.Valid(w.Raw))
		again, err := Parse(w.Raw)
		require.NoError(t, err)
		require.Equal(t, w, again)
		use(w)
	})
}

// anyJSON draws a value that is mostly of the shape n8n writes, with a wrong
// one now and then at every place.
func anyJSON(t *rapid.T, depth int) any {
	switch rapid.IntRange(0, 7).Draw(t, "kind") {
	case 0:
		return nil
	case 1:
		return rapid.Bool().Draw(t, "bool")
	case 2:
		return rapid.Float64Range(-1e12, 1e12).Draw(t, "number")
	case 3:
		return rapid.SampledFrom([]string{"", "A", "B", "1", "-1", "1e999", "NaN", "[]", `{"A":1}`, "main", "é\x00"}).Draw(t, "text")
	case 4, 5:
		if depth == 0 {
			return []any{}
		}
		return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) any { return anyJSON(t, depth-1) }), 0, 3).Draw(t, "list")
	default:
		object := map[string]any{}
		if depth > 0 {
			for _, key := range rapid.SliceOfN(rapid.SampledFrom([]string{"A", "B", "main", "ai_tool", "node", "type", "index", "json", "id", "name", "binary"}), 0, 3).Draw(t, "keys") {
				object[key] = anyJSON(t, depth-1)
			}
		}
		return object
	}
}

// perhaps replaces good by any value, one time in six.
func perhaps(t *rapid.T, good any) any {
	if rapid.IntRange(0, 5).Draw(t, "wrong") == 0 {
		return anyJSON(t, 3)
	}
	return good
}

func TestParseNeverPanics(t *testing.T) {
	parsed := 0
	rapid.Check(t, func(t *rapid.T) {
		types := rapid.SampledFrom([]string{manualTrigger, "set", "agent", "model", "calculator", StickyNote, "unknown"})
		names := rapid.SampledFrom([]string{"A", "B", "C", ""})
		node := func() any {
			n := map[string]any{"name": perhaps(t, names.Draw(t, "name")), "type": perhaps(t, types.Draw(t, "type"))}
			for _, field := range []string{"id", "typeVersion", "position", "parameters", "credentials", "disabled", "maxTries", "timeout", "onError"} {
				if rapid.IntRange(0, 3).Draw(t, field) == 0 {
					n[field] = anyJSON(t, 2)
				}
			}
			return perhaps(t, n)
		}
		link := func() any {
			return perhaps(t, map[string]any{
				"node": perhaps(t, names.Draw(t, "target")), "type": perhaps(t, Main), "index": perhaps(t, rapid.IntRange(-1, 9).Draw(t, "index")),
			})
		}
		var nodes []any
		connections := map[string]any{}
		for range rapid.IntRange(0, 4).Draw(t, "nodes") {
			nodes = append(nodes, node())
			connType := rapid.SampledFrom([]string{Main, Tool, LanguageModel}).Draw(t, "connType")
			connections[names.Draw(t, "source")] = perhaps(t, map[string]any{
				connType: perhaps(t, []any{perhaps(t, []any{link(), link()}), perhaps(t, []any{link()})}),
			})
		}
		doc := perhaps(t, map[string]any{
			"nodes": perhaps(t, nodes), "connections": perhaps(t, connections),
			"settings": anyJSON(t, 2), "pinData": perhaps(t, map[string]any{"A": anyJSON(t, 3)}),
		})
		data, err := json.Marshal(doc)
		require.NoError(t, err)
		w, err := Parse(data)
		if err != nil {
			require.Nil(t, w)
			return
		}
		parsed++
		use(w)
		for _, n := range w.Nodes {
			require.True(t, json.Valid(n.Parameters), "parameters of a parsed node are JSON")
		}
	})
	assert.NotZero(t, parsed, "the generator makes documents that can be read")
}

func BenchmarkParse(b *testing.B) {
	nodes, connections := []any{}, map[string]any{}
	names := make([]string, 2000)
	for i := range names {
		names[i] = "Node " + string(rune('A'+i%26)) + " " + string(rune(0x4e00+i))
	}
	for i, name := range names {
		nodes = append(nodes, map[string]any{
			"name": name, "type": "set", "typeVersion": 3.4, "position": []int{i, i},
			"parameters": map[string]any{"code": string(make([]byte, 200)), "options": map[string]any{"list": []int{1, 2, 3}}},
		})
		connections[name] = map[string]any{"main": []any{[]any{map[string]any{"node": names[(i+1)%len(names)], "type": "main", "index": 0}}}}
	}
	data, err := json.Marshal(map[string]any{"nodes": nodes, "connections": connections})
	require.NoError(b, err)
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Parse(data); err != nil {
			b.Fatal(err)
		}
	}
}
