package crashtest

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/queue"
	"github.com/reprise-engine/reprise/pkg/table"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// A worker has written rows and is killed before it could tell. The job that is repeated writes none,
// and puts out what the first one was answered.
func TestWorkerKilledAfterItWroteRows(t *testing.T) {
	t.Parallel()
	c := startCluster(t)
	for _, p := range c.coordinators {
		p.start("")
	}
	c.workers[0].start("after-run=1") // alone, so that it gets the job
	for _, p := range append([]*process{c.workers[0]}, c.coordinators...) {
		p.awaitReady()
	}
	c.connectOnly()
	_, err := c.conn.ApplyTable(t.Context(), &table.Request{
		Key: "create", Do: table.Create, Name: "log", Columns: []table.Column{{Name: "text", Type: table.String}},
	})
	require.NoError(t, err)
	document := document("rows", nil, []object{trigger(), node("Insert", "n8n-nodes-base.dataTable", 1.1, object{
		"operation":   "insert",
		"dataTableId": object{"__rl": true, "mode": "name", "value": "log"},
		"columns":     object{"mappingMode": "autoMapInputData", "value": object{}},
	})}, "Start -> Insert")
	ids := newIDs(1)
	c.begin(ids, queue.Submission{Workflow: document, Input: workflow.Items{
		{JSON: json.RawMessage(`{"text":"a"}`)}, {JSON: json.RawMessage(`{"text":"b"}`)}, {JSON: json.RawMessage(`{"text":"c"}`)},
	}})
	c.workers[0].awaitExit()
	written := c.rows(t, "log")
	require.Len(t, written, 3, "it was killed after it had written")
	c.workers[1].start("")
	x := c.finished(ids[0])
	require.Equal(t, engine.StatusSuccess, x.Status, "%s", x.Data)
	require.Equal(t, written, c.rows(t, "log"))
	items := x.records["Insert"][0].Data["main"][0]
	require.Len(t, items, 3)
	for i, row := range written {
		require.JSONEq(t, string(row), string(items[i].JSON))
	}
	c.nothingLeft()
}

// rows are the rows of a table.
func (c *cluster) rows(t *testing.T, name string) []json.RawMessage {
	t.Helper()
	answer, err := c.conn.ApplyTable(t.Context(), &table.Request{
		Do: table.Rows, Table: table.Ref{Name: name}, Operations: []table.Operation{{Do: table.Get, OrderBy: table.ColumnID}},
	})
	require.NoError(t, err)
	require.Nil(t, answer.Results[0].Error)
	for _, row := range answer.Results[0].Rows {
		require.True(t, gjson.ValidBytes(row))
	}
	return answer.Results[0].Rows
}
