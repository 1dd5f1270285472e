package queue

import (
	"bytes"
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"regexp"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-engine/reprise/pkg/table"
)

// The protocol document is what authors in other languages have: its examples
// must be what the Go types read and write, and it must name everything.

func protocol(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../docs/protocol.md")
	require.NoError(t, err)
	return string(text)
}

func TestProtocolExamples(t *testing.T) {
	types := map[string]func() any{
		"queue.Job": func() any { return &Job{} }, "queue.Result": func() any { return &Result{} },
		"queue.Reply": func() any { return &Reply{} }, "queue.Redelivery": func() any { return &Redelivery{} },
		"queue.MemoryQuery": func() any { return &MemoryQuery{} }, "queue.MemoryAnswer": func() any { return &MemoryAnswer{} },
		"queue.Control": func() any { return &Control{} }, "queue.LiveNotices": func() any { return &LiveNotices{} },
		"queue.Submission": func() any { return &Submission{} }, "queue.DeadLetter": func() any { return &DeadLetter{} },
		"queue.WorkerNotice": func() any { return &WorkerNotice{} }, "queue.CoordinatorNotice": func() any { return &CoordinatorNotice{} },
		"queue.TableRequest": func() any { return &table.Request{} }, "queue.TableAnswer": func() any { return &table.Answer{} },
		"queue.Execution": func() any { return &Execution{} }, "queue.Problem": func() any { return &Problem{} },
	}
	seen := map[string]bool{}
	for _, match := range regexp.MustCompile("(?s)<!-- (queue\\.\\w+) -->\n```json\n(.*?)```").FindAllStringSubmatch(protocol(t), -1) {
		name, example := match[1], match[2]
		require.Contains(t, types, name)
		seen[name] = true
		value := types[name]()
		var compact bytes.Buffer
		require.NoError(t, json.Compact(&compact, []byte(example)), "%s: %s", name, example)
		decoder := json.NewDecoder(&compact)
		decoder.DisallowUnknownFields()
		require.NoError(t, decoder.Decode(value), "%s: %s", name, example)
		if job, ok := value.(*Job); ok {
			plan := json.NewDecoder(bytes.NewReader(job.Plan))
			plan.DisallowUnknownFields()
			require.NoError(t, plan.Decode(&Plan{}))
		}
		written, err := encode(value)
		require.NoError(t, err)
		again := types[name]()
		require.NoError(t, json.Unmarshal(written, again))
		require.Equal(t, value, again)
	}
	for name := range types {
		require.True(t, seen[name], "docs/protocol.md has no example of %s", name)
	}
}

func TestProtocolNamesEverything(t *testing.T) {
	text := protocol(t)
	for _, file := range []string{"subjects.go", "problem.go", "api.go", "holder.go", "announce.go", "overview.go", "table.go"} {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		require.NoError(t, err)
		ast.Inspect(parsed, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok || len(spec.Values) != 1 {
				return true
			}
			literal, ok := spec.Values[0].(*ast.BasicLit)
			if !ok || literal.Kind != token.STRING {
				return true
			}
			value, err := strconv.Unquote(literal.Value)
			require.NoError(t, err)
			require.Contains(t, text, value, "docs/protocol.md does not name %s", spec.Names[0].Name)
			return true
		})
	}
	for code, status := range problemStatus {
		require.Regexp(t, "`"+code+"` \\| "+strconv.Itoa(status)+" \\|", text)
	}
}
