package simulation

import (
	"context"

	"github.com/tidwall/gjson"

	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/table"
)

// table asks the data tables at the store itself.
func (w *world) table(r *table.Request) *table.Answer {
	answer, err := w.store.ApplyTable(context.Background(), r)
	if err != nil {
		w.fail("data tables: %v", err)
		return &table.Answer{}
	}
	return answer
}

// createTable makes the table that nodes insert rows into.
func (w *world) createTable() {
	w.table(&table.Request{Key: dataTable, Do: table.Create, Name: dataTable, Columns: []table.Column{{Name: "key", Type: table.String}}})
}

// checkRows expects the row of each run that ended well, once, and none that no run inserted.
func (w *world) checkRows() {
	answer := w.table(&table.Request{Do: table.Rows, Table: table.Ref{Name: dataTable}, Operations: []table.Operation{{Do: table.Get}}})
	rows, inserted := map[string]int{}, map[string]bool{}
	for _, result := range answer.Results {
		for _, row := range result.Rows {
			rows[gjson.GetBytes(row, "key").String()]++
		}
	}
	for of, key := range w.history.keys {
		if of.what != insertion {
			continue
		}
		inserted[key] = true
		record := w.history.load(of.execution).Record(engine.RunRef{Node: of.node, Run: of.run})
		if record != nil && record.Status == engine.StatusSuccess && rows[key] == 0 {
			w.fail("the row of %s of execution %s is not in the data table", of.node, of.execution)
		}
	}
	for key, n := range rows {
		if n > 1 || !inserted[key] {
			w.fail("the data table has %d rows of key %s (inserted: %v)", n, key, inserted[key])
		}
	}
}
