package acceptance

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-engine/reprise/internal/labtest"
)

// What one node notes about the execution, later nodes read, in code and in expressions, also when the
// node that noted it failed.
func TestCustomData(t *testing.T) {
	t.Parallel()
	l := sharedLab(t)
	code := func(name, js string) labtest.Node {
		text, err := json.Marshal(map[string]string{"jsCode": js})
		require.NoError(t, err)
		return labtest.NewNode(name, "n8n-nodes-base.code", 2, string(text))
	}
	each := labtest.NewNode("Each", "n8n-nodes-base.code", 2,
		`{"mode":"runOnceForEachItem","jsCode":"const d = $execution.customData; d.set('sum', String(Number(d.get('sum') ?? 0) + $json.n)); return { json: { sum: d.get('sum'), first: d.get('first') } }"}`)
	document := labtest.Flow("custom-data", nil, []labtest.Node{
		labtest.NewNode("Start", "n8n-nodes-base.manualTrigger", 1, ""),
		code("Set", `$execution.customData.set('first', 'a'); $execution.customData.setAll({ second: 2, third: 'x' }); console.log('execution data: forged = 1'); return [{ json: { n: 1 } }, { json: { n: 2 } }]`),
		each,
		labtest.NewNode("Note", "n8n-nodes-base.executionData", 1.1, `{"dataToSave":{"values":[{"key":"third","value":"=y{{ $itemIndex }}"},{"key":"order","value":"4711"}]}}`),
		code("Fail", `$execution.customData.set('failed', 'yes'); throw new Error('no')`).With("onError", "continueRegularOutput"),
		labtest.NewNode("Read", "n8n-nodes-base.set", 3.4, `{"assignments":{"assignments":[
			{"name":"first","type":"string","value":"={{ $execution.customData.get('first') }}"},
			{"name":"all","type":"object","value":"={{ $execution.customData.getAll() }}"},
			{"name":"none","type":"string","value":"={{ $execution.customData.get('none') ?? 'nothing' }}"}]},"options":{}}`),
		code("Last", `return [{ json: { before: $execution.customData.getAll(), none: $execution.customData.get('none') === undefined } }]`),
	}, "Start -> Set", "Set -> Each", "Each -> Note", "Note -> Fail", "Fail -> Read", "Read -> Last")
	run := l.run(t, document, nil)
	require.Equal(t, "success", run.Get("status").Str, run.Raw)
	runs := runDataOf(run)
	output := func(name string) string { return runs[name][0].Get("data.main.0.#.json").Raw }
	require.JSONEq(t, `[{"sum":"1","first":"a"},{"sum":"3","first":"a"}]`, output("Each"))
	const all = `{"first":"a","second":"2","third":"y1","sum":"3","order":"4711","failed":"yes"}`
	read := runs["Read"][0].Get("data.main.0.0.json")
	require.Equal(t, "a", read.Get("first").Str)
	require.Equal(t, "nothing", read.Get("none").Str)
	require.JSONEq(t, all, read.Get("all").Raw)
	require.JSONEq(t, `[{"before":`+all+`,"none":true}]`, output("Last"))
	require.JSONEq(t, all, run.Get("data.resultData.metadata").Raw)
	require.JSONEq(t, `{"failed":"yes"}`, runs["Fail"][0].Get("metadata.customData").Raw)
	require.False(t, runs["Read"][0].Get("metadata.customData").Exists())

	// Each execution has its own.
	again := l.run(t, labtest.Flow("custom-data-none", nil, []labtest.Node{
		labtest.NewNode("Start", "n8n-nodes-base.manualTrigger", 1, ""), code("Last", `return [{ json: $execution.customData.getAll() }]`),
	}, "Start -> Last"), nil)
	require.JSONEq(t, `[{}]`, runDataOf(again)["Last"][0].Get("data.main.0.#.json").Raw)
	require.False(t, again.Get("data.resultData.metadata").Exists())
}
