package cli

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/reprise-engine/reprise/internal/service"
)

func TestEvalPrintsTheValue(t *testing.T) {
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"text":          {[]string{"{{ $json.name.toUpperCase() }}", "--json", `{"name":"Ada"}`}, "ADA\n"},
		"with equals":   {[]string{"={{ $json.n + 1 }}", "--json", `{"n":41}`}, "42\n"},
		"template":      {[]string{"Dear {{ $json.name }},", "--json", `{"name":"Ada"}`}, "Dear Ada,\n"},
		"object":        {[]string{"{{ ({a: [1]}) }}"}, "{\n  \"a\": [\n    1\n  ]\n}\n"},
		"second item":   {[]string{"{{ $json.n }}{{ $itemIndex }}", "--json", `[{"n":"a"},{"n":"b"}]`, "--item", "1"}, "b1\n"},
		"null":          {[]string{"{{ null }}"}, "null\n"},
		"not a number":  {[]string{"{{ 0/0 }}"}, "NaN\n"},
		"time zone":     {[]string{"{{ $now.zoneName }}", "--timezone", "Europe/Berlin"}, "Europe/Berlin\n"},
		"json":          {[]string{"{{ $json.a }}", "--json", `{"a":"<x>"}`, "--output", "json"}, `{"type":"string","result":"<x>"}` + "\n"},
		"json, nothing": {[]string{"{{ undefined }}", "--output", "json"}, `{"type":"undefined"}` + "\n"},
	} {
		t.Run(name, func(t *testing.T) {
			o := reprise(t, append([]string{"eval"}, c.args...)...)
			assert.Equal(t, service.ExitOK, o.code, o.stderr)
			assert.Equal(t, c.want, o.stdout)
			assert.Empty(t, o.stderr)
		})
	}
}

func TestEvalHintsAtWhatIsMissing(t *testing.T) {
	for name, c := range map[string]struct{ expr, json, hint string }{
		"misspelt":  {"{{ $json.naem }}", `{"name":"Ada"}`, `$json has no "naem"; did you mean "name"?`},
		"keys":      {"{{ $json.zzz.x }}", `{"name":"Ada","age":3}`, `$json has no "zzz"; it has age, name`},
		"in a list": {"{{ $json.a[0].b }}", `{"a":[{"id":1}]}`, `$json.a[0] has no "b"`},
		"no object": {"{{ $json.name.first }}", `{"name":7}`, `$json.name is 7, which has no "first"`},
		"thrown":    {"{{ JSON.parse($json.t) }}", `{"t":"{oops"}`, "SyntaxError"},
		"in a text": {"a {{ $json.name }} b {{ $json.nmae }}", `{"name":"Ada"}`, `did you mean "name"?`},
		"not ended": {"{{ $json.name", `{"name":"Ada"}`, "not closed"},
		"no braces": {"$json.name", `{"name":"Ada"}`, "plain text"},
	} {
		t.Run(name, func(t *testing.T) {
			o := reprise(t, "eval", c.expr, "--json", c.json)
			assert.Equal(t, service.ExitOK, o.code, o.stderr)
			assert.Contains(t, o.stderr, c.hint)
		})
	}
}

func TestEvalFails(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "none.json")
	for name, c := range map[string]struct {
		args []string
		code int
		text string
	}{
		"syntax":        {[]string{"{{ 1 + }}"}, service.ExitFailed, "invalid syntax"},
		"braces in it":  {[]string{"{{ {a: {b: 1}} }}"}, service.ExitFailed, "}} ends an expression"},
		"other node":    {[]string{"{{ $('X').item.json.a }}"}, service.ExitFailed, "--workflow FILE --node NAME"},
		"no expression": {nil, service.ExitUsage, "give one expression"},
		"both":          {[]string{"{{ 1 }}", "--file", "x"}, service.ExitUsage, "not both"},
		"bad json":      {[]string{"{{ 1 }}", "--json", "nope"}, service.ExitUsage, "--json must be"},
		"no item":       {[]string{"{{ 1 }}", "--json", "[{}]", "--item", "1"}, service.ExitUsage, "item 1: the input has 1 items"},
		"zone":          {[]string{"{{ 1 }}", "--timezone", "Berlin"}, service.ExitUsage, "Europe/Berlin"},
		"node alone":    {[]string{"{{ 1 }}", "--node", "A"}, service.ExitUsage, "--workflow"},
		"no workflow":   {[]string{"{{ 1 }}", "--node", "A", "--workflow", missing}, service.ExitUsage, "read workflow"},
		"no node":       {[]string{"{{ 1 }}", "--workflow", "testdata/eval/orders.json"}, service.ExitUsage, "--node"},
		"unknown node":  {[]string{"{{ 1 }}", "--workflow", "testdata/eval/orders.json", "--node", "Q"}, service.ExitUsage, `"Mail"`},
		"not reached":   {[]string{"{{ 1 }}", "--workflow", "testdata/eval/orders.json", "--node", "Rejected"}, service.ExitUsage, "no items come"},
		"acts outside":  {[]string{"{{ 1 }}", "--workflow", "testdata/eval/orders.json", "--node", "After"}, service.ExitUsage, "--run-data"},
	} {
		t.Run(name, func(t *testing.T) {
			reprise(t, append([]string{"eval"}, c.args...)...).failed(t, c.code, c.text)
		})
	}
}

func TestEvalInAWorkflow(t *testing.T) {
	value := func(expr string, args ...string) string {
		t.Helper()
		o := reprise(t, append([]string{"eval", expr, "--workflow", "testdata/eval/orders.json"}, args...)...)
		require.Equal(t, service.ExitOK, o.code, o.stderr)
		return strings.TrimSpace(o.stdout)
	}
	// Code and If before it are run; what other nodes put out is there.
	assert.Equal(t, "20", value("{{ $json.n }}", "--node", "Mail", "--item", "0"))
	assert.Equal(t, "thirty", value("{{ $('Orders').item.json.label }}", "--node", "Mail", "--item", "1"))
	assert.Equal(t, "Large", value("{{ $prevNode.name }}", "--node", "Mail"))
	assert.Equal(t, "false", value("{{ $('After').isExecuted }}", "--node", "Mail"))
	// The trigger's input, pinned data, and a model that sees the input of its Agent.
	assert.Equal(t, "7", value("{{ $json.id }}", "--node", "Orders", "--input", `{"id":7}`))
	assert.Equal(t, "pinned", value("{{ $json.from }}", "--node", "Reads pinned"))
	assert.Equal(t, "pinned", value("{{ $json.from }}", "--node", "Model"))
	// Run data of an execution.
	assert.Equal(t, "accepted", value("{{ $json.state }}", "--node", "After", "--run-data", "testdata/eval/run.json"))
	assert.Equal(t, "99", value("{{ $('Orders').item.json.n }}", "--node", "After", "--run-data", "testdata/eval/run.json"))
}

// notHere are the recorded facts that a case without their context cannot give.
var notHere = map[string]string{
	"access-049": "the case names no workflow, so there is no node Input", "access-050": "as above",
	"helpers-069": "as above", "helpers-070": "as above", "helpers-071": "as above",
	"helpers-052": "the case names no workflow", "helpers-053": "as above",
	"access-052": "the case names no node", "helpers-040": "as above", "helpers-041": "as above",
	"helpers-076": "n8n adds default values of parameters", "nodes-046": "as above",
	"helpers-078": "an internal function of n8n",
}

func TestEvalAnswersAsRecorded(t *testing.T) {
	dir := t.TempDir()
	raw, err := os.ReadFile("../../pkg/expression/testdata/context.json")
	require.NoError(t, err)
	var given struct {
		DefaultJSON json.RawMessage            `json:"defaultJson"`
		Workflows   map[string]json.RawMessage `json:"workflows"`
	}
	require.NoError(t, json.Unmarshal(raw, &given))
	for name, document := range given.Workflows {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name+".json"), document, 0o600))
	}
	facts, err := os.Open("../../pkg/expression/testdata/expressions.jsonl")
	require.NoError(t, err)
	defer facts.Close()
	var cases bytes.Buffer
	count := 0
	lines := bufio.NewScanner(facts)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var c map[string]any
		require.NoError(t, json.Unmarshal(lines.Bytes(), &c))
		if name, ok := c["context"].(string); ok {
			c["workflow"], c["node"] = filepath.Join(dir, name+".json"), "Expr"
		} else {
			c["timezone"] = "Europe/Berlin"
			if c["json"] == nil {
				c["json"] = given.DefaultJSON
			}
		}
		if notHere[c["id"].(string)] != "" {
			continue
		}
		count++
		require.NoError(t, json.NewEncoder(&cases).Encode(c))
	}
	require.NoError(t, lines.Err())
	require.Greater(t, count, 540)
	o := repriseWith(t, cases.String(), "eval", "--file", "-", "--check")
	require.Equal(t, service.ExitOK, o.code, o.stdout+o.stderr)

	// The same as lines of JSON: one answer for each, in their order.
	o = repriseWith(t, cases.String(), "eval", "--file", "-")
	require.Equal(t, service.ExitFailed, o.code, "some of them fail on purpose: %s", o.stderr)
	require.Equal(t, count, strings.Count(o.stdout, "\n"))
	require.True(t, strings.HasPrefix(o.stdout, `{"id":"plain-001","type":"string","result":"plain text without expression"}`+"\n"))
}

func TestEvalCheckTellsWhatDiffers(t *testing.T) {
	cases := `{"id":"a","expr":"={{ 1 }}","type":"number","result":2}
{"expr":"={{ 1 + }}","error":{"message":"invalid syntax"}}
{"expr":"={{ 1 + }}","result":1}
{"expr":"={{ 1 }}","error":{"message":"invalid syntax"}}
`
	o := repriseWith(t, cases, "eval", "--file", "-", "--check")
	assert.Equal(t, service.ExitFailed, o.code)
	assert.Contains(t, o.stdout, "a  ={{ 1 }}\n    expected 2, got 1\n")
	assert.Contains(t, o.stdout, `expected the error "invalid syntax", got 1`)
	assert.Contains(t, o.stdout, "4 cases, 1 as expected, 3 not")

	repriseWith(t, "{}", "eval", "--file", "-").failed(t, service.ExitUsage, "line 1", "no expr")
	repriseWith(t, "\nnope", "eval", "--file", "-", "--check").failed(t, service.ExitUsage, "line 2")
}
