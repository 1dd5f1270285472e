package statetest

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"github.com/reprise-engine/reprise/pkg/table"
)

// people is a table of the suite.
func people(t *testing.T, s Store, name string) *table.Table {
	t.Helper()
	return applied(t, s, &table.Request{Key: "create " + name, Do: table.Create, Name: name, At: 1_000_000_000_000, Columns: []table.Column{
		{Name: "name", Type: table.String}, {Name: "age", Type: table.Number},
		{Name: "ok", Type: table.Boolean}, {Name: "born", Type: table.Date},
	}}).Table
}

func applied(t *testing.T, s Store, r *table.Request) *table.Answer {
	t.Helper()
	answer, err := s.ApplyTable(t.Context(), r)
	require.NoError(t, err)
	for _, result := range answer.Results {
		require.Nil(t, result.Error)
	}
	return answer
}

// refusal is the error of a request as a whole.
func refusal(t *testing.T, s Store, r *table.Request) *table.Error {
	t.Helper()
	_, err := s.ApplyTable(t.Context(), r)
	refused := table.AsError(err)
	require.NotNil(t, refused, "%v", err)
	return refused
}

func rowsOf(name, key string, operations ...table.Operation) *table.Request {
	return &table.Request{Key: key, Do: table.Rows, Table: table.Ref{Name: name}, Operations: operations, At: 1_700_000_000_000}
}

func where(column, operator, value string) table.Filter {
	return table.Filter{Conditions: []table.Condition{{Column: column, Operator: operator, Value: json.RawMessage(value)}}}
}

func insert(values string) table.Operation {
	return table.Operation{Do: table.Insert, Values: json.RawMessage(values)}
}

// names are the values of name of all rows of a table.
func names(t *testing.T, s Store, name string) []string {
	t.Helper()
	list := []string{}
	for _, row := range applied(t, s, rowsOf(name, "", table.Operation{Do: table.Get})).Results[0].Rows {
		list = append(list, gjson.GetBytes(row, "name").String())
	}
	return list
}

func tablesNamed(t *testing.T, s Store) {
	list := func() (names []string) {
		for _, one := range applied(t, s, &table.Request{Do: table.List}).Tables {
			names = append(names, one.Name)
		}
		return names
	}
	require.Empty(t, list())
	b := people(t, s, "b {x}")
	require.Equal(t, b, people(t, s, "b {x}"), "a repeat")
	applied(t, s, &table.Request{Key: "a", Do: table.Create, Name: "a"})
	require.Equal(t, []string{"a", "b {x}"}, list())
	require.Equal(t, table.Conflict, refusal(t, s, &table.Request{Key: "again", Do: table.Create, Name: "a"}).Kind)
	require.Equal(t, "b {x}", applied(t, s, &table.Request{Key: "reuse", Do: table.Create, Name: "b {x}", Reuse: true}).Table.Name)

	applied(t, s, rowsOf("b {x}", "1", insert(`{"name":"Ada"}`)))
	rename := &table.Request{Key: "rename", Do: table.Rename, Table: table.Ref{Name: "b {x}"}, Name: "c", At: 1_700_000_000_000}
	renamed := applied(t, s, rename).Table
	require.Equal(t, renamed, applied(t, s, rename).Table, "a repeat, though nothing has the name now")
	require.Equal(t, "c", renamed.Name)
	require.Equal(t, b.ID, renamed.ID)
	require.Equal(t, b.Columns, renamed.Columns)
	require.EqualValues(t, 1_700_000_000_000, renamed.UpdatedAt)
	require.Equal(t, table.Conflict, refusal(t, s, &table.Request{Key: "taken", Do: table.Rename, Table: table.Ref{Name: "c"}, Name: "a"}).Kind)
	require.Equal(t, []string{"a", "c"}, list())
	require.Equal(t, []string{"Ada"}, names(t, s, "c"))
	either := &table.Request{Do: table.Rows, Table: table.Ref{ID: "elsewhere", Name: "c"}, Operations: []table.Operation{{Do: table.Get}}}
	require.Len(t, applied(t, s, either).Results[0].Rows, 1, "the name counts when nothing has the id")
	either.Table = table.Ref{ID: b.ID, Name: "a"}
	require.Len(t, applied(t, s, either).Results[0].Rows, 1, "the id counts first")
	require.Equal(t, table.NotFound, refusal(t, s, rowsOf("b {x}", "2", insert(`{}`))).Kind)

	drop := &table.Request{Key: "drop", Do: table.Drop, Table: table.Ref{ID: b.ID}}
	applied(t, s, drop)
	applied(t, s, drop)
	require.Equal(t, []string{"a"}, list())
	missing := refusal(t, s, rowsOf("c", "3", insert(`{}`)))
	require.Equal(t, table.NotFound, missing.Kind)
	require.Contains(t, missing.Hint, "reprise tables create")
	require.Equal(t, table.NotFound, refusal(t, s, &table.Request{Key: "4", Do: table.Rows, Table: table.Ref{ID: b.ID}, Operations: []table.Operation{insert(`{}`)}}).Kind)
	require.Equal(t, table.NotFound, refusal(t, s, &table.Request{Key: "drop 2", Do: table.Drop, Table: table.Ref{ID: b.ID}}).Kind)

	applied(t, s, &table.Request{Key: "create again", Do: table.Create, Name: "c", Columns: []table.Column{{Name: "name", Type: table.String}}})
	require.Empty(t, names(t, s, "c"))
	require.Equal(t, table.BadRequest, refusal(t, s, &table.Request{Do: table.Create, Name: "d"}).Kind, "no key")
}

func tableRows(t *testing.T, s Store) {
	people(t, s, "people")
	answer := applied(t, s, rowsOf("people", "1", insert(`{"name":"Ada","age":36,"ok":true,"born":"1815-12-10"}`), insert(`{"name":"Bob"}`)))
	require.JSONEq(t, `{"id":1,"name":"Ada","age":36,"ok":true,"born":"1815-12-10T00:00:00.000Z",
		"createdAt":"2023-11-14T22:13:20.000Z","updatedAt":"2023-11-14T22:13:20.000Z"}`, string(answer.Results[0].Rows[0]))
	require.EqualValues(t, 2, gjson.GetBytes(answer.Results[1].Rows[0], "id").Int())

	later := rowsOf("people", "2",
		table.Operation{Do: table.Update, Filter: where("name", "eq", `"Bob"`), Values: json.RawMessage(`{"age":"41.5"}`)},
		table.Operation{Do: table.Upsert, Filter: where("name", "eq", `"Eve"`), Values: json.RawMessage(`{"name":"Eve"}`)},
		table.Operation{Do: table.Exists, Filter: where("age", "gt", `41`)},
		table.Operation{Do: table.Delete, Filter: where("name", "like", `"A%"`)},
		table.Operation{Do: table.Get, OrderBy: "name", Descending: true, Limit: 1})
	later.At += 1000
	answer = applied(t, s, later)
	updated := answer.Results[0].Rows[0]
	require.Equal(t, "41.5", gjson.GetBytes(updated, "age").Raw)
	require.Equal(t, "2023-11-14T22:13:20.000Z", gjson.GetBytes(updated, "createdAt").Str)
	require.Equal(t, "2023-11-14T22:13:21.000Z", gjson.GetBytes(updated, "updatedAt").Str)
	require.EqualValues(t, 3, gjson.GetBytes(answer.Results[1].Rows[0], "id").Int())
	require.Equal(t, 1, answer.Results[2].Count)
	require.Equal(t, "Ada", gjson.GetBytes(answer.Results[3].Rows[0], "name").Str)
	require.Equal(t, "Eve", gjson.GetBytes(answer.Results[4].Rows[0], "name").Str)
	require.Equal(t, []string{"Bob", "Eve"}, names(t, s, "people"))

	dry := applied(t, s, rowsOf("people", "3", table.Operation{Do: table.Delete, Filter: where("id", "isNotEmpty", ``), DryRun: true}))
	require.Len(t, dry.Results[0].Rows, 2)
	require.Equal(t, []string{"Bob", "Eve"}, names(t, s, "people"))
	applied(t, s, rowsOf("people", "4", table.Operation{Do: table.Delete, Filter: where("id", "isNotEmpty", ``)}, insert(`{"name":"Zoe"}`)))
	require.EqualValues(t, 4, gjson.GetBytes(applied(t, s, rowsOf("people", "", table.Operation{Do: table.Get})).Results[0].Rows[0], "id").Int(), "ids are not used again")
}

func tableRepeats(t *testing.T, s Store) {
	people(t, s, "log")
	one := rowsOf("log", "execution/node/0", insert(`{"name":"once"}`))
	var group sync.WaitGroup
	answers := make([]*table.Answer, 5)
	for i := range answers { // repeats at the same time
		group.Go(func() {
			var err error
			same := *one
			answers[i], err = s.ApplyTable(t.Context(), &same)
			assert.NoError(t, err)
		})
	}
	group.Wait()
	for _, answer := range answers {
		require.Equal(t, answers[0], answer)
	}
	require.Equal(t, []string{"once"}, names(t, s, "log"))

	// What had failed is tried again, what had not is not.
	half := rowsOf("log", "half", insert(`{"name":"first"}`), insert(`{"age":"none"}`), insert(`{"name":"third"}`))
	answer, err := s.ApplyTable(t.Context(), half)
	require.NoError(t, err)
	require.Len(t, answer.Results, 2)
	require.Equal(t, table.BadRequest, answer.Results[1].Error.Kind)
	half.Operations[1] = insert(`{"name":"second"}`)
	half.Operations[0] = insert(`{"name":"not again"}`)
	again := applied(t, s, half)
	require.Equal(t, answer.Results[0], again.Results[0])
	require.Equal(t, []string{"once", "first", "second", "third"}, names(t, s, "log"))

	// One that goes on has its failures, too.
	on := rowsOf("log", "on", insert(`{"none":1}`), insert(`{"name":"last"}`))
	on.GoOn = true
	for range 2 {
		answer, err := s.ApplyTable(t.Context(), on)
		require.NoError(t, err)
		require.NotNil(t, answer.Results[0].Error)
		require.Nil(t, answer.Results[1].Error)
	}
	require.Equal(t, []string{"once", "first", "second", "third", "last"}, names(t, s, "log"))

	// An answer that is large is put together again.
	people(t, s, "large")
	var many []table.Operation
	for range 300 {
		many = append(many, insert(`{"name":"`+strings.Repeat("x", 300)+`"}`))
	}
	first := applied(t, s, rowsOf("large", "many", many...))
	require.Equal(t, first, applied(t, s, rowsOf("large", "many", many...)))
	drop := rowsOf("large", "drop", table.Operation{Do: table.Delete, Filter: where("id", "lte", "200")})
	applied(t, s, drop)
	gone := applied(t, s, drop).Results[0]
	require.Equal(t, 200, gone.Count)
	require.JSONEq(t, `{"id":1}`, string(gone.Rows[0]))
}

// Writers of one table at the same time: each upsert counts once.
func tableWriters(t *testing.T, s Store) {
	people(t, s, "counters")
	const writers, each = 8, 20
	var group sync.WaitGroup
	for w := range writers {
		group.Go(func() {
			for i := range each {
				r := rowsOf("counters", fmt.Sprint(w, "/", i), insert(fmt.Sprintf(`{"name":"w%d","age":%d}`, w, i)),
					table.Operation{Do: table.Upsert, Filter: where("name", "eq", `"shared"`), Values: json.RawMessage(`{"name":"shared"}`)})
				_, err := s.ApplyTable(t.Context(), r)
				assert.NoError(t, err)
			}
		})
	}
	group.Wait()
	rows := applied(t, s, rowsOf("counters", "", table.Operation{Do: table.Get})).Results[0].Rows
	require.Len(t, rows, writers*each+1)
	seen := map[string]bool{}
	for _, row := range rows {
		seen[gjson.GetBytes(row, "name").Str+gjson.GetBytes(row, "age").Raw] = true
	}
	require.Len(t, seen, writers*each+1)
}

func tableBounded(t *testing.T, s Store) {
	people(t, s, "full")
	many := make([]table.Operation, TableLimits.Rows)
	for i := range many {
		many[i] = table.Operation{Do: table.Insert, Quiet: true, Values: json.RawMessage(`{"name":"x"}`)}
	}
	applied(t, s, rowsOf("full", "1", many...))
	answer, err := s.ApplyTable(t.Context(), rowsOf("full", "2", insert(`{}`)))
	require.NoError(t, err)
	require.Equal(t, table.TooLarge, answer.Results[0].Error.Kind)
	require.Contains(t, answer.Results[0].Error.Hint, "REPRISE_TABLE_MAX_ROWS")
	applied(t, s, rowsOf("full", "3", table.Operation{Do: table.Delete, Filter: where("id", "gt", "10")}))
	require.Len(t, names(t, s, "full"), 10)

	big, err := s.ApplyTable(t.Context(), rowsOf("full", "4", insert(`{"name":"`+strings.Repeat("x", int(TableLimits.Bytes))+`"}`)))
	require.NoError(t, err)
	require.Contains(t, big.Results[0].Error.Hint, "REPRISE_TABLE_MAX_BYTES")
	require.Equal(t, table.NotFound, refusal(t, s, rowsOf("none", "5", insert(`{}`))).Kind)
}
