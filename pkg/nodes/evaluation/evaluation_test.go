package evaluation

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/node"
	"github.com/reprise-engine/reprise/pkg/nodes/nodestest"
	"github.com/reprise-engine/reprise/pkg/table"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// cases is the table of a dataset, as coordinators have it.
type cases struct {
	data *table.Data
	done map[string][]byte
}

func newCases(t *testing.T, rows ...string) *cases {
	t.Helper()
	c := &cases{done: map[string][]byte{}, data: &table.Data{Table: &table.Table{ID: "c1", Name: "cases", Columns: []table.Column{
		{Name: "text", Type: table.String}, {Name: "score", Type: table.Number},
	}}}}
	for _, row := range rows {
		_, err := c.apply(t.Context(), &table.Request{
			Key: row, Do: table.Rows, Table: table.Ref{Name: "cases"}, Operations: []table.Operation{{Do: table.Insert, Values: json.RawMessage(row)}},
		})
		require.NoError(t, err)
	}
	return c
}

func (c *cases) apply(_ context.Context, r *table.Request) (*table.Answer, error) {
	if err := r.Check(); err != nil {
		return nil, err
	}
	if r.Table.Name != "cases" {
		return nil, table.Missing(r.Table)
	}
	o, err := c.data.Apply(r, c.done[r.Key], table.Limits{})
	if err != nil {
		return nil, err
	}
	c.data = o.Data
	if o.Done != nil {
		c.done[r.Key] = o.Done
	}
	return o.Answer, nil
}

func (c *cases) call(t *node.Type, parameters string, items ...string) *node.Call {
	call := nodestest.Call(t, parameters, nodestest.Items(items...))
	call.Execution.Mode, call.IdempotencyKey, call.Tables = Mode, "run", c.apply
	return call
}

// the two types.
var trigger, evaluating = Types()[0], Types()[1]

func outputsOf(t *testing.T, call *node.Call) []workflow.Items {
	t.Helper()
	result, err := call.Type.Execute(t.Context(), call)
	require.NoError(t, err)
	return result.Outputs
}

// refused runs a call that fails, and says so to people.
func refused(t *testing.T, call *node.Call, text string) {
	t.Helper()
	_, err := call.Type.Execute(t.Context(), call)
	var failure *engine.NodeError
	require.ErrorAs(t, err, &failure)
	require.Contains(t, failure.Message+"\n"+failure.Description, text)
}

const inCases = `"dataTableId":{"__rl":true,"mode":"name","value":"cases"}`

func TestTriggerWithoutRow(t *testing.T) {
	c := newCases(t, `{"text":"first"}`, `{"text":"second"}`)
	for _, items := range [][]string{nil, {`{}`}} {
		out := outputsOf(t, c.call(trigger, `{`+inCases+`}`, items...))
		require.Len(t, out[0], 1)
		require.Contains(t, string(out[0][0].JSON), `"first"`)
	}
	out := outputsOf(t, c.call(trigger, `{`+inCases+`}`, `{"text":"given"}`))
	require.JSONEq(t, `{"text":"given"}`, string(out[0][0].JSON))

	sheets := c.call(trigger, `{`+inCases+`}`)
	sheets.Node.TypeVersion = 4.6 // where no source is a sheet
	refused(t, sheets, "--rows")
	refused(t, sheets, "--input")
	refused(t, newCases(t).call(trigger, `{`+inCases+`}`), "no rows")
	refused(t, c.call(trigger, `{"dataTableId":{"mode":"name","value":"nowhere"}}`), "nowhere")
	refused(t, c.call(trigger, `{"source":"stone"}`), "stone")
	none := c.call(trigger, `{`+inCases+`}`)
	none.Tables = nil
	refused(t, none, "no data tables here")
}

func TestCheckIfEvaluating(t *testing.T) {
	for mode, output := range map[string]int{Mode: 0, "manual": 1, "trigger": 1, "cli": 1, "": 1} {
		call := newCases(t).call(evaluating, `{"operation":"checkIfEvaluating"}`, `{"a":1}`, `{"a":2}`)
		call.Execution.Mode = mode
		out := outputsOf(t, call)
		require.Len(t, out, 2)
		require.Len(t, out[output], 2, mode)
		require.Empty(t, out[1-output], mode)
		require.Equal(t, 2, evaluating.OutputCount(call.Node))
	}
	require.Equal(t, 1, evaluating.OutputCount(&workflow.Node{Parameters: json.RawMessage(`{"operation":"setMetrics"}`)}))
}

func TestSetOutputs(t *testing.T) {
	const parameters = `{` + inCases + `,"rowId":"={{ $json.row }}","outputs":{"values":[{"outputName":"score","outputValue":"={{ $json.s }}"}]}}`
	c := newCases(t, `{"text":"first","score":1}`, `{"text":"second","score":2}`)
	score := func(row int) float64 { return c.data.Rows[row].Values[1].(float64) }

	call := c.call(evaluating, parameters, `{"s":0.5,"row":2}`)
	for range 2 { // the second time as after the loss of its worker
		out := outputsOf(t, call)
		require.JSONEq(t, `{"s":0.5,"row":2,"score":0.5}`, string(out[0][0].JSON))
		require.Equal(t, workflow.Paired(0), out[0][0].PairedItem)
		require.InDelta(t, 1, score(0), 0)
		require.InDelta(t, 0.5, score(1), 0)
	}
	normal := c.call(evaluating, parameters, `{"s":9,"row":1}`)
	normal.Execution.Mode = "manual"
	for name, call := range map[string]*node.Call{
		"no evaluation": normal,
		"no row":        c.call(evaluating, parameters, `{"s":9}`),
		"a sheet":       c.call(evaluating, `{"source":"googleSheets",`+parameters[1:], `{"s":9,"row":1}`),
	} {
		require.Contains(t, string(outputsOf(t, call)[0][0].JSON), `"score":9`, name)
		require.InDelta(t, 1, score(0), 0, name)
	}
	// An id of the item is not one of the row.
	outputsOf(t, c.call(evaluating, strings.Replace(parameters, `"rowId":"={{ $json.row }}",`, "", 1), `{"s":9,"id":1}`))
	require.InDelta(t, 1, score(0), 0)

	other := c.call(evaluating, strings.Replace(parameters, `"outputName":"score"`, `"outputName":"mood"`, 1), `{"s":9,"row":1}`)
	other.IdempotencyKey = "other"
	refused(t, other, `"mood"`)
	gone := c.call(evaluating, parameters, `{"s":9,"row":7}`)
	gone.IdempotencyKey = "gone"
	refused(t, gone, "no row 7")
	refused(t, c.call(evaluating, `{"outputs":{"values":[{"outputValue":1}]}}`, `{}`), "no name")
	refused(t, c.call(evaluating, `{"operation":"sing"}`, `{}`), "sing")

	require.JSONEq(t, `{"a":1}`, string(outputsOf(t, c.call(evaluating, `{"operation":"setInputs"}`, `{"a":1}`))[0][0].JSON))
}

func TestMetrics(t *testing.T) {
	c := newCases(t)
	const steps = `[{"action":{"tool":"Web_Search"}},{"action":{"tool":"calculator"}}]`
	for name, test := range map[string]struct{ parameters, item, want string }{
		"custom": {
			`"metric":"customMetrics","metrics":{"assignments":[{"name":"a","value":"={{ $json.n }}"},{"name":"b c","value":2},{"name":"t","value":"0.25"}]}`,
			`{"n":1.5}`, `{"a":1.5,"b c":2,"t":0.25}`,
		},
		"custom, unsaved": {`"metrics":{"assignments":[{"name":"a","value":1}]}`, `{}`, `{"a":1}`},
		"same category":   {`"metric":"categorization","expectedAnswer":"x","actualAnswer":"={{ $json.a }}"`, `{"a":"x"}`, `{"Categorization":1}`},
		"a number as category": {
			`"metric":"categorization","expectedAnswer":"7","actualAnswer":"={{ $json.a }}"`, `{"a":7}`, `{"Categorization":1}`,
		},
		"other category": {`"metric":"categorization","expectedAnswer":"x","actualAnswer":"X","options":{"metricName":"m"}`, `{}`, `{"m":0}`},
		"similar":        {`"metric":"stringSimilarity","expectedAnswer":"kitten","actualAnswer":"sitting!"`, `{}`, `{"String Similarity":0.5}`},
		"characters":     {`"metric":"stringSimilarity","expectedAnswer":"äöü","actualAnswer":"äo"`, `{}`, `{"String Similarity":0.33333333333333337}`},
		"both empty":     {`"metric":"stringSimilarity","expectedAnswer":"","actualAnswer":""`, `{}`, `{"String Similarity":1}`},
		"one empty":      {`"metric":"stringSimilarity","expectedAnswer":"abc","actualAnswer":""`, `{}`, `{"String Similarity":0}`},
		"tools": {
			`"metric":"toolsUsed","expectedTools":"Web Search, Calculator,Mail , Map","intermediateSteps":"={{ $json.s }}"`,
			`{"s":` + steps + `}`, `{"Tools Used":0.5}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			for _, mode := range []string{Mode, "manual"} {
				call := c.call(evaluating, `{"operation":"setMetrics",`+test.parameters+`}`, test.item)
				call.Execution.Mode = mode
				out := outputsOf(t, call)
				require.Len(t, out[0], 1)
				require.JSONEq(t, test.want, string(out[0][0].JSON))
			}
		})
	}
	for parameters, text := range map[string]string{
		`"metric":"customMetrics","metrics":{"assignments":[{"name":"a","value":"high"}]}`:                 `the metric "a" must be a number, and is "high"`,
		`"metric":"customMetrics","metrics":{"assignments":[{"name":"a","value":true}]}`:                   "is true",
		`"metric":"customMetrics","metrics":{"assignments":[{"name":"a","value":"NaN"}]}`:                  "must be a number",
		`"metric":"customMetrics","metrics":{"assignments":[{"name":"a","value":"={{ $json.nothing }}"}]}`: "undefined",
		`"metric":"customMetrics","metrics":{"assignments":[{"value":1}]}`:                                 "no name",
		`"metric":"customMetrics"`:                          "no metric",
		`"metric":"correctness"`:                            `"correctness"`,
		`"metric":"helpfulness"`:                            `"helpfulness"`,
		`"metric":"beauty"`:                                 `"beauty"`,
		`"metric":"categorization","expectedAnswer":"x"`:    "actualAnswer",
		`"metric":"toolsUsed","expectedTools":"a"`:          "intermediateSteps",
		`"metric":"toolsUsed","intermediateSteps":` + steps: "expectedTools",
	} {
		refused(t, c.call(evaluating, `{"operation":"setMetrics",`+parameters+`}`, `{}`), text)
	}
	// A node that goes on says it in the item, and the next item counts.
	call := c.call(evaluating, `{"operation":"setMetrics","metrics":{"assignments":[{"name":"a","value":"={{ $json.n }}"}]}}`, `{"n":"x"}`, `{"n":2}`)
	call.Node.OnError = workflow.OnErrorContinue
	out := outputsOf(t, call)[0]
	require.Contains(t, string(out[0].JSON), "must be a number")
	require.JSONEq(t, `{"a":2}`, string(out[1].JSON))
}

func TestDatasetOf(t *testing.T) {
	for parameters, want := range map[string]Dataset{
		`{` + inCases + `}`: {Table: table.Ref{Name: "cases"}},
		`{"dataTableId":{"mode":"list","value":"x1","cachedResultName":"cases"},"limitRows":true}`: {Table: table.Ref{ID: "x1", Name: "cases"}, Max: 10},
		`{` + inCases + `,"limitRows":true,"maxRows":3,"filterRows":true}`:                         {Table: table.Ref{Name: "cases"}, Max: 3, Filter: true},
		`{` + inCases + `,"maxRows":3}`:                                                            {Table: table.Ref{Name: "cases"}},
		`{"source":"googleSheets","limitRows":true,"maxRows":2}`:                                   {Max: 2},
		`{"dataTableId":{"mode":"id","value":"={{ $json.t }}"}}`:                                   {},
		`{}`: {},
	} {
		require.Equal(t, want, DatasetOf(&workflow.Node{Type: TypeTrigger, TypeVersion: 4.7, Parameters: json.RawMessage(parameters)}), parameters)
	}
	require.Zero(t, DatasetOf(&workflow.Node{TypeVersion: 4.6, Parameters: json.RawMessage(`{` + inCases + `}`)}))
}
