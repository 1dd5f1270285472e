package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"
)

// written writes a file of the test under a name, whose ending says what it is.
func written(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	return path
}

// The example, as the README shows it.
func TestEvaluateExample(t *testing.T) {
	t.Parallel()
	args := []string{"evaluate", example("evaluation.json"), "--rows", example("evaluation-rows.jsonl")}
	got := reprise(t, append(args, "--min", "topic=0.8", "--min", "reply=0.9")...)
	require.Zero(t, got.code, got.stderr)
	require.Regexp(t, `(?m)^   4  success   reply=0\.8444  topic=0$`, got.stdout)
	require.Contains(t, got.stdout, "5 rows, 0 failed\nmean reply=0.9341\nmean topic=0.8\n")

	got = reprise(t, append(args, "--min", "topic=0.81", "--min", "speed=1", "--output", "json", "--parallel", "3")...)
	require.Equal(t, 1, got.code)
	require.Contains(t, got.stderr, `the mean of topic is 0.8, below 0.81; no row has the metric "speed"`)
	require.Equal(t, `[1,2,3,4,5]`, gjson.Get(got.stdout, "rows.#.row").Raw, "in the order of the file, also in parallel")
	require.Equal(t, `["billing","access","billing","other","other"]`, gjson.Get(got.stdout, "rows.#.outputs.topic").Raw)
	require.Equal(t, `[1,1,1,0,1]`, gjson.Get(got.stdout, "rows.#.metrics.topic").Raw)
	require.InDelta(t, 0.8, gjson.Get(got.stdout, "means.topic").Num, 1e-9)
	ids := map[string]bool{}
	for _, id := range gjson.Get(got.stdout, "rows.#.executionId").Array() {
		ids[id.Str] = true
	}
	require.Len(t, ids, 5)
}

// Rows come from the table that the trigger names, and outputs go back into it, beside what they belong to.
func TestEvaluateTable(t *testing.T) {
	t.Parallel()
	l := sharedLab(t)
	on := func(args ...string) outcome { return reprise(t, append(args, "--nats", l.stack.NATSURL)...) }
	data, err := os.ReadFile(example("evaluation.json"))
	require.NoError(t, err)
	document := strings.ReplaceAll(string(data), `"value": "tickets"`, `"value": "cli tickets"`)
	document = strings.Replace(document, `"source": "dataTable", "dataTableId"`, `"source": "dataTable", "limitRows": true, "maxRows": 4, "dataTableId"`, 1)
	flow := written(t, "flow.json", `[`+document+`]`) // wrapped, as some exports are
	evaluate := func(args ...string) outcome {
		return reprise(t, append([]string{"evaluate", flow, "--nats", l.stack.NATSURL, "--redis", l.stack.RedisURL, "--output", "json"}, args...)...)
	}
	evaluate().failed(t, 2, `"cli tickets"`, "reprise tables import")

	require.Zero(t, on("tables", "create", "cli tickets", "--column", "text", "--column", "expected", "--column", "reply", "--column", "topic").code)
	evaluate().failed(t, 2, "no rows")
	got := on("tables", "import", "cli tickets", example("evaluation-rows.jsonl"))
	require.Zero(t, got.code, got.stderr)

	got = evaluate("--limit", "2", "--min", "topic=1")
	require.Zero(t, got.code, got.stderr)
	require.Equal(t, int64(2), gjson.Get(got.stdout, "count").Int())
	exported := func() string { return on("tables", "export", "cli tickets", "--format", "json").stdout }
	require.Equal(t, `["billing","access",null,null,null]`, gjson.Get(exported(), "#.topic").Raw)

	got = evaluate()
	require.Zero(t, got.code, got.stderr)
	require.Equal(t, int64(4), gjson.Get(got.stdout, "count").Int(), "as many as the trigger takes")
	require.Equal(t, `["billing","access","billing","other",null]`, gjson.Get(exported(), "#.topic").Raw)

	// The mode of the executions is what nodes and people see.
	shown := on("executions", "show", gjson.Get(got.stdout, "rows.0.executionId").Str, "--output", "json")
	require.Equal(t, "evaluation", gjson.Get(shown.stdout, "mode").Str)

	// Rows of a file are nobody's: nothing is written, although they have ids.
	got = evaluate("--rows", written(t, "rows.json", `[{"id": 5, "text": "refund", "expected": "billing", "reply": ""}]`))
	require.Zero(t, got.code, got.stderr)
	require.Equal(t, "billing", gjson.Get(got.stdout, "rows.0.outputs.topic").Str)
	require.Equal(t, `["billing","access","billing","other",null]`, gjson.Get(exported(), "#.topic").Raw)

	// Another table than the trigger's has other rows under the ids.
	flow = written(t, "flow.json", replaceLast(document, `"value": "cli tickets"`, `"value": "cli others"`))
	got = evaluate("--limit", "1")
	require.Zero(t, got.code, got.stderr)
	require.Contains(t, got.stderr, `"Set outputs" writes nothing`)

	require.Zero(t, on("tables", "drop", "cli tickets").code)
}

func replaceLast(text, old, with string) string {
	at := strings.LastIndex(text, old)
	return text[:at] + with + text[at+len(old):]
}

// A row that fails, or waits for somebody, does not keep the others from being run, and counts for no mean.
func TestEvaluateFailures(t *testing.T) {
	t.Parallel()
	flow := file(t, `{"nodes": [
		{"name": "Row", "type": "n8n-nodes-base.evaluationTrigger", "typeVersion": 4.6, "parameters": {}},
		{"name": "Doubt", "type": "n8n-nodes-base.if", "typeVersion": 2, "parameters": {"conditions": {"conditions": [
			{"leftValue": "={{ $json.wait }}", "operator": {"type": "boolean", "operation": "true", "singleValue": true}}]}}},
		{"name": "Call", "type": "n8n-nodes-base.wait", "typeVersion": 1.1, "parameters": {"resume": "webhook"}},
		{"name": "Score", "type": "n8n-nodes-base.evaluation", "typeVersion": 4.6, "parameters": {"operation": "setMetrics",
			"metrics": {"assignments": [{"name": "score", "value": "={{ $json.score }}"}]}}}],
		"connections": {
			"Row": {"main": [[{"node": "Doubt", "type": "main", "index": 0}]]},
			"Doubt": {"main": [[{"node": "Call", "type": "main", "index": 0}], [{"node": "Score", "type": "main", "index": 0}]]},
			"Call": {"main": [[{"node": "Score", "type": "main", "index": 0}]]}}}`)
	rows := written(t, "rows.csv", "score,wait\n0.5,false\n,false\n9,true\n1,false\n")
	got := reprise(t, "evaluate", flow, "--rows", rows, "--output", "json", "--min", "score=0.75")
	require.Equal(t, 1, got.code, got.stderr)
	require.Contains(t, got.stderr, "2 of 4 rows failed")
	require.NotContains(t, got.stderr, "below")
	require.Equal(t, `["success","error","canceled","success"]`, gjson.Get(got.stdout, "rows.#.status").Raw)
	require.Contains(t, gjson.Get(got.stdout, "rows.1.error").Str, `Score: the metric "score" must be a number`)
	require.Contains(t, gjson.Get(got.stdout, "rows.2.error").Str, "webhook")
	require.JSONEq(t, `{"score":0.75}`, gjson.Get(got.stdout, "means").Raw)

	got = reprise(t, "evaluate", flow, "--rows", rows)
	assert.Equal(t, 1, got.code)
	assert.Regexp(t, `(?m)^   1  success   score=0\.5\n   2  error     Score: .*\n   3  canceled  .*\n   4  success   score=1\n\n4 rows, 2 failed\nmean score=0\.75$`, got.stdout)
}

func TestEvaluateUsage(t *testing.T) {
	t.Parallel()
	flow, rows := example("evaluation.json"), example("evaluation-rows.jsonl")
	for _, test := range []struct {
		args []string
		text string
	}{
		{[]string{flow}, "--rows"},
		{[]string{flow, "--rows", "nowhere.json"}, "nowhere.json"},
		{[]string{flow, "--rows", written(t, "rows.xlsx", "")}, "xlsx"},
		{[]string{flow, "--rows", written(t, "rows.jsonl", "{\"a\":1}\n{\"a\":")}, "row 2"},
		{[]string{flow, "--rows", written(t, "rows.jsonl", "{\"a\":1}\n7\n")}, "row 2 is no object"},
		{[]string{flow, "--rows", written(t, "rows.json", "[]")}, "no rows"},
		{[]string{flow, "--rows", rows, "--min", "topic"}, "NAME=VALUE"},
		{[]string{flow, "--rows", rows, "--min", "topic=high"}, `"high"`},
		{[]string{flow, "--rows", rows, "--parallel", "0"}, "--parallel"},
		{[]string{flow, "--rows", rows, "--output", "trace"}, "trace"},
		{[]string{example("approval.json"), "--rows", rows}, "no Evaluation Trigger"},
		{[]string{}, "one workflow file"},
	} {
		reprise(t, append([]string{"evaluate"}, test.args...)...).failed(t, 2, test.text)
	}
	// Begun otherwise, it is no evaluation.
	got := reprise(t, "run", flow, "--start", "When fetching a dataset row", "--input", `{"text":"refund"}`, "--output", "json")
	require.Zero(t, got.code, got.stderr)
	require.True(t, gjson.Get(got.stdout, "data.resultData.runData.Answer").Exists())
	require.False(t, gjson.Get(got.stdout, "data.resultData.runData.Right topic").Exists())
}

// A row that takes too long is given up.
func TestEvaluateTimeout(t *testing.T) {
	t.Parallel()
	flow := file(t, `{"nodes": [
		{"name": "Row", "type": "n8n-nodes-base.evaluationTrigger", "typeVersion": 4.7, "parameters": {}},
		{"name": "Pause", "type": "n8n-nodes-base.wait", "typeVersion": 1.1, "parameters": {"amount": "={{ $json.hours }}", "unit": "hours"}}],
		"connections": {"Row": {"main": [[{"node": "Pause", "type": "main", "index": 0}]]}}}`)
	got := reprise(t, "evaluate", flow, "--rows", written(t, "rows.json", `[{"hours": 1}, {"hours": 0}]`), "--timeout", "3s", "--output", "json")
	require.Equal(t, 1, got.code, got.stderr)
	require.Equal(t, `["canceled","success"]`, gjson.Get(got.stdout, "rows.#.status").Raw)
	require.Contains(t, gjson.Get(got.stdout, "rows.0.error").Str, "timed out")
}

// JSON lines are a format of tables too.
func TestTablesJSONLines(t *testing.T) {
	t.Parallel()
	l := sharedLab(t)
	on := func(args ...string) outcome { return reprise(t, append(args, "--nats", l.stack.NATSURL)...) }
	got := on("tables", "import", "cli lines", written(t, "rows.jsonl", "{\"id\":9,\"a\":1}\n{\"a\":2,\"b\":\"x\"}"))
	require.Zero(t, got.code, got.stderr)
	lines := strings.Split(strings.TrimSpace(on("tables", "export", "cli lines", "--format", "jsonl").stdout), "\n")
	require.Len(t, lines, 2)
	require.Equal(t, "1", gjson.Get(lines[0], "id").Raw, "the table's own")
	require.Equal(t, "x", gjson.Get(lines[1], "b").Str)
	require.Zero(t, on("tables", "drop", "cli lines").code)
}
