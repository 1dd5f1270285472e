package tables

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/node"
	"github.com/reprise-engine/reprise/pkg/nodes/nodestest"
	"github.com/reprise-engine/reprise/pkg/table"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// people is one table, as coordinators have it, and what it was asked.
type people struct {
	data     *table.Data
	done     map[string][]byte
	requests []*table.Request
	lose     int // the answer to this request, counted from 1, is lost
}

func newPeople() *people {
	return &people{done: map[string][]byte{}, data: &table.Data{Table: &table.Table{ID: "p1", Name: "people", Columns: []table.Column{
		{Name: "name", Type: table.String}, {Name: "age", Type: table.Number},
	}}}}
}

var errLost = errors.New("the answer was lost")

func (p *people) apply(_ context.Context, r *table.Request) (*table.Answer, error) {
	p.requests = append(p.requests, r)
	if err := r.Check(); err != nil {
		return nil, err
	}
	if r.Table.Name != "people" && r.Table.ID != "p1" {
		return nil, table.Missing(r.Table)
	}
	o, err := p.data.Apply(r, p.done[r.Key], table.Limits{})
	if err != nil {
		return nil, err
	}
	p.data = o.Data
	if o.Done != nil {
		p.done[r.Key] = o.Done
	}
	if len(p.requests) == p.lose {
		return nil, errLost
	}
	return o.Answer, nil
}

func (p *people) names() (names []string) {
	for _, row := range p.data.Rows {
		names = append(names, fmt.Sprint(row.Values[0]))
	}
	return names
}

func (p *people) call(parameters string, items ...string) *node.Call {
	call := nodestest.Call(Types()[0], parameters, nodestest.Items(items...))
	call.IdempotencyKey = "x_1"
	call.Tables = p.apply
	return call
}

func outputs(t *testing.T, call *node.Call) workflow.Items {
	t.Helper()
	result, err := call.Type.Execute(t.Context(), call)
	require.NoError(t, err)
	return result.Outputs[0]
}

func texts(items workflow.Items, path string) (texts []string) {
	for _, item := range items {
		texts = append(texts, gjson.GetBytes(item.JSON, path).String())
	}
	return texts
}

const inPeople = `"dataTableId":{"__rl":true,"mode":"name","value":"people"}`

func manyItems(n int) (items []string) {
	for i := range n {
		items = append(items, fmt.Sprintf(`{"id":99,"createdAt":"x","name":"n%d"}`, i))
	}
	return items
}

// Items share requests, and come out as they came in.
func TestManyItems(t *testing.T) {
	p := newPeople()
	out := outputs(t, p.call(`{`+inPeople+`,"columns":{"mappingMode":"autoMapInputData"}}`, manyItems(250)...))
	require.Len(t, out, 250)
	require.Len(t, p.requests, 3)
	require.Equal(t, []string{"x_1/0", "x_1/100", "x_1/200"}, []string{p.requests[0].Key, p.requests[1].Key, p.requests[2].Key})
	require.Equal(t, "n249", texts(out, "name")[249])
	require.Equal(t, workflow.Paired(249), out[249].PairedItem)
	require.EqualValues(t, 250, gjson.GetBytes(out[249].JSON, "id").Int(), "the table's own, not the item's")
}

// A run that is repeated, since an answer was lost or a later item failed, writes nothing twice.
func TestRepeated(t *testing.T) {
	p := newPeople()
	p.lose = 2
	call := p.call(`{`+inPeople+`,"columns":{"mappingMode":"autoMapInputData"}}`, manyItems(250)...)
	_, err := call.Type.Execute(t.Context(), call)
	require.ErrorIs(t, err, errLost)
	require.Len(t, p.data.Rows, 200, "the second request was done")
	out := outputs(t, call)
	require.Len(t, out, 250)
	require.Len(t, p.data.Rows, 250)
	for i, row := range p.data.Rows {
		require.Equal(t, fmt.Sprint("n", i), row.Values[0])
		require.Equal(t, row.ID, gjson.GetBytes(out[i].JSON, "id").Int())
	}

	p = newPeople()
	bad := p.call(`{`+inPeople+`,"columns":{"mappingMode":"autoMapInputData"}}`, `{"name":"a"}`, `{"name":"b","age":"old"}`, `{"name":"c"}`)
	_, err = bad.Type.Execute(t.Context(), bad)
	var failure *engine.NodeError
	require.ErrorAs(t, err, &failure)
	require.Equal(t, 1, *failure.ItemIndex)
	require.Contains(t, failure.Message, `"age"`)
	require.Equal(t, []string{"a"}, p.names())
	bad.Inputs[0][1].JSON = json.RawMessage(`{"name":"b","age":7}`)
	require.Equal(t, []string{"a", "b", "c"}, texts(outputs(t, bad), "name"))
	require.Equal(t, []string{"a", "b", "c"}, p.names())
}

func TestOperations(t *testing.T) {
	p := newPeople()
	next := 0
	run := func(parameters string, items ...string) workflow.Items {
		t.Helper()
		if len(items) == 0 {
			items = []string{`{"ask":"ada","age":5}`}
		}
		call := p.call(`{`+inPeople+`,`+parameters+`}`, items...)
		next++
		call.IdempotencyKey = fmt.Sprint("run ", next)
		return outputs(t, call)
	}
	conditions := `"filters":{"conditions":[{"keyName":"name","keyValue":"={{ $json.ask }}"}]}`
	values := `"columns":{"mappingMode":"defineBelow","value":{"name":"={{ $json.ask }}","age":"={{ $json.age }}","gone":"x"},"schema":[{"id":"name"},{"id":"gone","removed":true}]}`
	require.Equal(t, []string{"ada"}, texts(run(values), "name"), "insert is the default")
	require.JSONEq(t, `{"success":true,"insertedRows":1}`, string(run(values + `,"operation":"insert","options":{"optimizeBulk":true}`)[0].JSON))
	require.Equal(t, []string{"5", "5"}, texts(run(`"operation":"get",`+conditions), "age"))
	require.Len(t, run(`"operation":"get","limit":1`), 1)
	require.Equal(t, []string{"2", "1"}, texts(run(`"operation":"get","orderBy":true,"orderByColumn":"id"`), "id"), "descending is the default")
	require.Equal(t, []string{"6", "6"}, texts(run(`"operation":"update",`+conditions+`,`+values, `{"ask":"ada","age":6}`), "age"))
	require.Equal(t, []string{"eve"}, texts(run(`"operation":"upsert",`+conditions+`,`+values, `{"ask":"eve","age":1}`), "name"))
	require.Equal(t, []string{"before", "after"}, texts(run(`"operation":"upsert",`+conditions+`,`+values+`,"options":{"dryRun":true}`, `{"ask":"eve","age":2}`), "dryRunState"))
	there := run(`"operation":"rowExists",`+conditions, `{"ask":"eve"}`, `{"ask":"bob"}`, `{"ask":"ada"}`)
	require.Equal(t, []string{"eve", "ada"}, texts(there, "ask"), "the items pass as they are")
	require.Equal(t, 2, there[1].PairedItem[0].Item)
	require.Equal(t, []string{"bob"}, texts(run(`"operation":"rowNotExists",`+conditions, `{"ask":"eve"}`, `{"ask":"bob"}`), "ask"))
	both := `"filters":{"conditions":[{"keyName":"name","keyValue":"ada"},{"keyName":"id","condition":"eq","keyValue":1}]}`
	require.Len(t, run(`"operation":"get","matchType":"allConditions",`+both), 1)
	require.Len(t, run(`"operation":"get",`+both), 2, "any is the default")
	require.Len(t, run(`"operation":"deleteRows",`+conditions), 2)
	require.Equal(t, []string{"eve"}, p.names())
	require.Empty(t, run(`"operation":"deleteRows",`+conditions))
}

// How a table may be named.
func TestReference(t *testing.T) {
	for locator, want := range map[string]table.Ref{
		`{"__rl":true,"mode":"name","value":"people"}`:                                {Name: "people"},
		`{"__rl":true,"mode":"list","value":"n8n1","cachedResultName":"people"}`:      {ID: "n8n1", Name: "people"},
		`{"__rl":true,"mode":"id","value":"p1"}`:                                      {ID: "p1", Name: "p1"},
		`{"__rl":true,"mode":"id","value":"={{ $json.t }}","cachedResultName":"old"}`: {ID: "people", Name: "people"},
		`"people"`: {ID: "people", Name: "people"},
	} {
		p := newPeople()
		outputs(t, p.call(`{"operation":"get","dataTableId":`+locator+`}`, `{"t":"people"}`))
		require.Equal(t, want, p.requests[0].Table, locator)
	}
	// Tables by item: each run of items of one table is a request.
	p := newPeople()
	call := p.call(`{"operation":"get","dataTableId":"={{ $json.t }}"}`, `{"t":"people"}`, `{"t":"people"}`, `{"t":"p1"}`, `{"t":"people"}`)
	outputs(t, call)
	require.Len(t, p.requests, 3)
}

func TestGoesOn(t *testing.T) {
	p := newPeople()
	call := p.call(`{"dataTableId":"={{ $json.t }}","columns":{"mappingMode":"={{ $json.mode }}","value":{"name":"={{ $json.name }}","age":"={{ $json.age }}"}}}`,
		`{"t":"people","name":"a"}`, `{"t":"people","name":"b","age":"x"}`, `{"t":"people","mode":"magic"}`, `{"t":"nowhere"}`, `{"t":"people","name":"c"}`)
	call.Node.OnError = workflow.OnErrorContinue
	out := outputs(t, call)
	require.Len(t, out, 5)
	errs := texts(out, "error")
	assert.Empty(t, errs[0])
	assert.Contains(t, errs[1], `"age"`)
	assert.Contains(t, errs[2], "magic")
	assert.Contains(t, errs[3], "nowhere")
	assert.Empty(t, errs[4])
	require.Equal(t, []string{"a", "c"}, p.names())
}

func TestBadParameters(t *testing.T) {
	for name, parameters := range map[string]string{
		"resource":  `{"resource":"planet"}`,
		"operation": `{` + inPeople + `,"operation":"sing"}`,
		"table":     `{"operation":"get"}`,
		"limit":     `{` + inPeople + `,"operation":"get","limit":0}`,
		"matchType": `{` + inPeople + `,"operation":"get","matchType":"some"}`,
		"condition": `{` + inPeople + `,"operation":"get","filters":{"conditions":[{"keyValue":1}]}}`,
		"filters":   `{` + inPeople + `,"operation":"get","filters":{"conditions":"all"}}`,
		"all rows":  `{` + inPeople + `,"operation":"deleteRows"}`,
		"sortField": `{"resource":"table","operation":"list","options":{"sortField":"weight"}}`,
		"tables":    `{"resource":"table","operation":"explode"}`,
	} {
		call := newPeople().call(parameters, `{}`)
		_, err := call.Type.Execute(t.Context(), call)
		var failure *engine.NodeError
		require.ErrorAs(t, err, &failure, name)
		require.NotEmpty(t, failure.Description, name)
	}
	call := newPeople().call(`{}`, `{}`)
	call.Tables = nil
	_, err := call.Type.Execute(t.Context(), call)
	require.ErrorContains(t, err, "no data tables here")
}
