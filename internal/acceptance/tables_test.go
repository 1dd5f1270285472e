package acceptance

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"github.com/reprise-engine/reprise/internal/cluster"
	"github.com/reprise-engine/reprise/internal/labtest"
	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/queue"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// tableNode is a Data Table node; parameters without a table have the one of this name.
func tableNode(name, of, parameters string) cluster.Object {
	var p cluster.Object
	if err := json.Unmarshal([]byte(parameters), &p); err != nil {
		panic(err) // a constant
	}
	if _, ok := p["dataTableId"]; !ok {
		p["dataTableId"] = cluster.Object{"__rl": true, "mode": "name", "value": of}
	}
	return cluster.Node(name, "n8n-nodes-base.dataTable", 1.1, p)
}

// TestDataTables goes through the operations in one workflow, on real servers, two coordinators and
// two workers.
func TestDataTables(t *testing.T) {
	t.Parallel()
	l := sharedLab(t)
	document := cluster.Document("tables", nil, []cluster.Object{
		cluster.Trigger(),
		tableNode("Create", "", `{"resource":"table","operation":"create","tableName":"people","options":{"createIfNotExists":true},
			"columns":{"column":[{"name":"name","type":"string"},{"name":"age","type":"number"},{"name":"ok","type":"boolean"}]}}`),
		tableNode("Insert", "", `{"operation":"insert","dataTableId":{"__rl":true,"mode":"list","value":"ofAnother1nstance","cachedResultName":"people"},
			"columns":{"mappingMode":"defineBelow","value":{"name":"Ada","age":"={{ 6 * 6 }}","ok":true},"schema":[{"id":"name"},{"id":"age"},{"id":"ok"}]}}`),
		tableNode("Upsert", "people", `{"operation":"upsert","matchType":"allConditions","filters":{"conditions":[{"keyName":"name","keyValue":"Bob"}]},
			"columns":{"mappingMode":"defineBelow","value":{"name":"Bob","age":7}}}`),
		tableNode("Not there", "people", `{"operation":"rowNotExists","filters":{"conditions":[{"keyName":"name","condition":"eq","keyValue":"Eve"}]}}`),
		tableNode("There", "people", `{"operation":"rowExists","filters":{"conditions":[{"keyName":"age","condition":"gte","keyValue":36}]}}`),
		tableNode("Update", "people", `{"operation":"update","matchType":"allConditions","filters":{"conditions":[{"keyName":"id","condition":"eq","keyValue":"={{ $json.id }}"}]},
			"columns":{"mappingMode":"defineBelow","value":{"age":8}}}`),
		tableNode("Get", "people", `{"operation":"get","returnAll":true,"orderBy":true,"orderByColumn":"age","orderByDirection":"DESC"}`),
		tableNode("Delete", "people", `{"operation":"deleteRows","filters":{"conditions":[{"keyName":"name","condition":"ilike","keyValue":"a%"}]},"options":{"dryRun":true}}`),
		tableNode("List", "", `{"resource":"table","operation":"list","returnAll":true,"options":{"filterName":"PEOP"}}`),
	}, "Start -> Create", "Create -> Insert", "Insert -> Upsert", "Upsert -> Not there", "Not there -> There", "There -> Update", "Update -> Get", "Get -> Delete", "Delete -> List")
	run := l.run(t, document, nil)
	require.Equal(t, "success", run.Get("status").Str, run.Raw)
	out := func(node string) gjson.Result {
		return run.Get("data.resultData.runData." + node + ".0.data.main.0.#.json")
	}
	assert.EqualValues(t, 36, out("Insert").Get("0.age").Num)
	assert.Equal(t, "Bob", out("Upsert").Get("0.name").Str)
	assert.Equal(t, `[36,8]`, out("Get").Get("#.age").Raw)
	assert.Equal(t, `["Ada","Bob"]`, out("Get").Get("#.name").Raw)
	assert.Equal(t, "before", out("Delete").Get("0.dryRunState").Str)
	assert.Equal(t, "people", out("List").Get("0.name").Str)
	assert.Equal(t, "number", out("List").Get("0.columns.1.type").Str)
}

// TestDataTableWriters: executions that count in one row at the same time, on several workers and
// coordinators; and rows that each inserts once.
func TestDataTableWriters(t *testing.T) {
	t.Parallel()
	l := sharedLab(t)
	create := cluster.Document("tables-create", nil, []cluster.Object{cluster.Trigger(),
		tableNode("Create", "", `{"resource":"table","operation":"create","tableName":"writers","columns":{"column":[{"name":"who","type":"string"}]}}`)}, "Start -> Create")
	require.Equal(t, "success", l.run(t, create, nil).Get("status").Str)
	document := cluster.Document("tables-write", nil, []cluster.Object{cluster.Trigger(),
		tableNode("Insert", "writers", `{"columns":{"mappingMode":"autoMapInputData","value":{}}}`),
		tableNode("Once", "writers", `{"operation":"upsert","filters":{"conditions":[{"keyName":"who","keyValue":"shared"}]},"columns":{"value":{"who":"shared"}}}`),
	}, "Start -> Insert", "Insert -> Once")
	var group sync.WaitGroup
	const executions, items = 12, 130 // more than one request each
	for n := range executions {
		group.Go(func() {
			var input workflow.Items
			for i := range items {
				input = append(input, workflow.Item{JSON: fmt.Appendf(nil, `{"who":"%d/%d"}`, n, i)})
			}
			x, err := l.Conn.Submit(t.Context(), &queue.Submission{Workflow: document, Input: input})
			if assert.NoError(t, err) {
				e, err := l.Conn.WaitFinished(t.Context(), x, false, false)
				if assert.NoError(t, err) {
					assert.Equal(t, engine.StatusSuccess, e.Status)
				}
			}
		})
	}
	group.Wait()
	get := cluster.Document("tables-get", nil, []cluster.Object{cluster.Trigger(), tableNode("Get", "writers", `{"operation":"get","returnAll":true}`)}, "Start -> Get")
	seen := map[string]int{}
	for _, who := range l.run(t, get, nil).Get("data.resultData.runData.Get.0.data.main.0.#.json.who").Array() {
		seen[who.Str]++
	}
	require.Len(t, seen, executions*items+1)
	for who, n := range seen {
		require.Equal(t, 1, n, who)
	}
}

// TestDataTableMissing: what to do is said, and a node may go on.
func TestDataTableMissing(t *testing.T) {
	t.Parallel()
	l := sharedLab(t)
	node := tableNode("Get", "nowhere", `{"operation":"get"}`)
	run := l.run(t, cluster.Document("tables-missing", nil, []cluster.Object{cluster.Trigger(), node}, "Start -> Get"), nil)
	require.Equal(t, "error", run.Get("status").Str)
	failure := run.Get("error")
	assert.Contains(t, failure.Get("message").Str, `"nowhere"`)
	assert.Contains(t, failure.Get("description").Str, "reprise tables create")
	node["onError"] = "continueRegularOutput"
	run = l.run(t, cluster.Document("tables-missing-on", nil, []cluster.Object{cluster.Trigger(), node}, "Start -> Get"), nil)
	require.Equal(t, "success", run.Get("status").Str, run.Raw)
	assert.Contains(t, run.Get("data.resultData.runData.Get.0.data.main.0.0.json.error").Str, `"nowhere"`)
}

// TestDataTableTool: a model writes a row by the tool.
func TestDataTableTool(t *testing.T) {
	t.Parallel()
	l := sharedLab(t)
	site := l.Site()
	site.Script(t, `{"remember": {"turns": [{"tool_calls": [{"name": "Remember", "args": {"fact": "tea at five"}}]}, {"content": "I noted {{results}}."}]}}`)
	tool := tableNode("Remember", "facts", `{"columns":{"mappingMode":"defineBelow","value":{"fact":"={{ $fromAI('fact', 'what to remember') }}"}}}`)
	tool["type"] = "n8n-nodes-base.dataTableTool"
	create := cluster.Document("tables-facts", nil, []cluster.Object{cluster.Trigger(),
		tableNode("Create", "", `{"resource":"table","operation":"create","tableName":"facts","columns":{"column":[{"name":"fact"}]}}`)}, "Start -> Create")
	require.Equal(t, "success", l.run(t, create, nil).Get("status").Str)
	run := l.run(t, site.Agent("remember", labtest.Node(tool)), nil)
	require.Equal(t, "success", run.Get("status").Str, run.Raw)
	assert.True(t, strings.Contains(run.Raw, "tea at five"))
	get := cluster.Document("tables-facts-get", nil, []cluster.Object{cluster.Trigger(), tableNode("Get", "facts", `{"operation":"get"}`)}, "Start -> Get")
	assert.Equal(t, `["tea at five"]`, l.run(t, get, nil).Get("data.resultData.runData.Get.0.data.main.0.#.json.fact").Raw)
}
