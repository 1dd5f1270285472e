package table_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"github.com/reprise-engine/reprise/pkg/table"
)

var things = &table.Table{ID: "t", Name: "things", Columns: []table.Column{
	{Name: "s", Type: table.String}, {Name: "n", Type: table.Number}, {Name: "b", Type: table.Boolean}, {Name: "d", Type: table.Date},
}}

// with is a table with rows.
func with(t *testing.T, rows ...string) *table.Data {
	t.Helper()
	r := &table.Request{Key: "rows", Do: table.Rows, At: 1_700_000_000_000}
	for _, row := range rows {
		r.Operations = append(r.Operations, table.Operation{Do: table.Insert, Values: json.RawMessage(row)})
	}
	o, err := (&table.Data{Table: things}).Apply(r, nil, table.Limits{})
	require.NoError(t, err)
	for _, result := range o.Answer.Results {
		require.Nil(t, result.Error)
	}
	return o.Data
}

func one(t *testing.T, d *table.Data, o table.Operation) table.Result {
	t.Helper()
	outcome, err := d.Apply(&table.Request{Key: "one", Do: table.Rows, Operations: []table.Operation{o}}, nil, table.Limits{})
	require.NoError(t, err)
	return outcome.Answer.Results[0]
}

func TestValues(t *testing.T) {
	for _, c := range []struct{ column, value, want string }{
		{"s", `"x"`, `"x"`}, {"s", `7`, `"7"`}, {"s", `true`, `"true"`}, {"s", `{"a": [1]}`, `"{\"a\":[1]}"`}, {"s", `""`, `""`}, {"s", `null`, `null`}, {"s", `"<&>"`, `"<&>"`},
		{"n", `7.5`, `7.5`}, {"n", `" 12 "`, `12`}, {"n", `""`, `null`}, {"n", `"x"`, ``}, {"n", `true`, ``}, {"n", `[1]`, ``}, {"n", `"Infinity"`, ``}, {"n", `1700000000000`, `1700000000000`},
		{"b", `true`, `true`}, {"b", `"False"`, `false`}, {"b", `0`, `false`}, {"b", `"yes"`, ``},
		{"d", `"2024-02-03"`, `"2024-02-03T00:00:00.000Z"`}, {"d", `"2024-02-03T04:05:06.789+02:00"`, `"2024-02-03T02:05:06.789Z"`},
		{"d", `"2024-02-03 04:05:06"`, `"2024-02-03T04:05:06.000Z"`}, {"d", `0`, `"1970-01-01T00:00:00.000Z"`}, {"d", `"soon"`, ``}, {"d", `1e300`, ``},
		{"id", `5`, ``}, {"createdAt", `0`, ``}, {"none", `1`, ``},
	} {
		result := one(t, &table.Data{Table: things}, table.Operation{Do: table.Insert, Values: fmt.Appendf(nil, `{%q:%s}`, c.column, c.value)})
		if c.want == "" {
			assert.NotNil(t, result.Error, "%s = %s", c.column, c.value)
			continue
		}
		require.Nil(t, result.Error, "%s = %s", c.column, c.value)
		assert.Equal(t, c.want, gjson.GetBytes(result.Rows[0], c.column).Raw, "%s = %s", c.column, c.value)
	}
	assert.NotNil(t, one(t, &table.Data{Table: things}, table.Operation{Do: table.Insert, Values: json.RawMessage(`[1]`)}).Error)
	assert.NotNil(t, one(t, &table.Data{Table: things}, table.Operation{Do: table.Insert, Values: json.RawMessage(`{"s":`)}).Error)
	assert.NotNil(t, one(t, &table.Data{Table: things}, table.Operation{Do: "sing"}).Error)
}

func TestConditions(t *testing.T) {
	d := with(t, `{"s":"Apple pie","n":1,"b":true,"d":"2024-01-01"}`, `{"s":"","n":2,"b":false,"d":"2024-01-02"}`, `{"n":10}`)
	for _, c := range []struct{ column, operator, value, want string }{
		{"s", "eq", `"Apple pie"`, "1"}, {"s", "neq", `"Apple pie"`, "2 3"}, {"s", "eq", `null`, "3"}, {"s", "eq", `""`, "2"},
		{"s", "isEmpty", ``, "2 3"}, {"s", "isNotEmpty", ``, "1"}, {"n", "isEmpty", ``, ""}, {"b", "isEmpty", ``, "3"},
		{"s", "like", `"App%"`, "1"}, {"s", "like", `"app%"`, ""}, {"s", "ilike", `"%PIE"`, "1"}, {"s", "like", `"A____ pie"`, "1"}, {"s", "like", `"%"`, "1 2"},
		{"n", "gt", `1`, "2 3"}, {"n", "gte", `"2"`, "2 3"}, {"n", "lt", `10`, "1 2"}, {"n", "lte", `1`, "1"}, {"n", "lt", `null`, ""},
		{"b", "isTrue", ``, "1"}, {"b", "isFalse", ``, "2"}, {"b", "eq", `true`, "1"}, {"b", "neq", `true`, "2 3"},
		{"d", "gt", `"2024-01-01"`, "2"}, {"d", "lte", `"2024-01-01T12:00:00Z"`, "1"}, {"d", "lt", `"2025-01-01"`, "1 2"},
		{"id", "gt", `1`, "2 3"}, {"id", "isNotEmpty", ``, "1 2 3"}, {"createdAt", "gte", `"2023-11-14T22:13:20Z"`, "1 2 3"}, {"updatedAt", "lt", `"2023-11-14T22:13:20Z"`, ""},
		{"none", "eq", `1`, "error"}, {"n", "like", `"1"`, "error"}, {"s", "isTrue", ``, "error"}, {"n", "eq", `"x"`, "error"}, {"n", "near", `1`, "error"}, {"d", "gt", `"soon"`, "error"},
	} {
		result := one(t, d, table.Operation{Do: table.Get, Filter: table.Filter{Conditions: []table.Condition{{Column: c.column, Operator: c.operator, Value: json.RawMessage(c.value)}}}})
		var got []string
		for _, row := range result.Rows {
			got = append(got, gjson.GetBytes(row, "id").Raw)
		}
		if result.Error != nil {
			got = []string{"error"}
			assert.Equal(t, table.BadRequest, result.Error.Kind)
		}
		assert.Equal(t, c.want, strings.Join(got, " "), "%s %s %s", c.column, c.operator, c.value)
	}
	both := []table.Condition{{Column: "n", Operator: "lt", Value: json.RawMessage("10")}, {Column: "b", Operator: "isFalse"}}
	assert.Equal(t, 1, one(t, d, table.Operation{Do: table.Get, Filter: table.Filter{Conditions: both}}).Count)
	assert.Equal(t, 2, one(t, d, table.Operation{Do: table.Get, Filter: table.Filter{Any: true, Conditions: both}}).Count)
	for _, do := range []string{table.Update, table.Upsert, table.Delete} {
		assert.NotNil(t, one(t, d, table.Operation{Do: do}).Error, "%s of all rows must be meant", do)
	}
	dry := one(t, d, table.Operation{Do: table.Update, DryRun: true, Values: json.RawMessage(`{"n":9}`), Filter: table.Filter{Conditions: both}})
	require.Len(t, dry.Rows, 2)
	assert.Equal(t, "before 2, after 9", fmt.Sprintf("%s %s, %s %s", gjson.GetBytes(dry.Rows[0], "dryRunState"), gjson.GetBytes(dry.Rows[0], "n"),
		gjson.GetBytes(dry.Rows[1], "dryRunState"), gjson.GetBytes(dry.Rows[1], "n")))
}

// like is what a regular expression of the same meaning says.
func TestLike(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	word := func(letters string) string {
		var b strings.Builder
		for range random.IntN(7) {
			b.WriteByte(letters[random.IntN(len(letters))])
		}
		return b.String()
	}
	for range 3000 {
		text, pattern := word("ab"), word("ab%_")
		want := regexp.MustCompile("^" + strings.NewReplacer("%", ".*", "_", ".").Replace(pattern) + "$").MatchString(text)
		d := with(t, `{"s":"`+text+`"}`)
		got := one(t, d, table.Operation{Do: table.Exists, Filter: table.Filter{Conditions: []table.Condition{{Column: "s", Operator: "like", Value: fmt.Appendf(nil, "%q", pattern)}}}})
		require.Equal(t, want, got.Count == 1, "%q like %q", text, pattern)
	}
}

// What is written is read as it was, and a version does not change by what follows it.
func TestVersions(t *testing.T) {
	d := with(t, `{"s":"ü \u0000 \" <","n":0.1,"b":false,"d":1}`, `{}`)
	for _, row := range d.Rows {
		again, err := table.DecodeRow(things, row.ID, row.Encode())
		require.NoError(t, err)
		require.Equal(t, row.Encode(), again.Encode())
		require.Equal(t, row.Values, again.Values)
	}
	_, err := table.DecodeRow(things, 1, `[1,2]`)
	require.Error(t, err)

	apply := func(base *table.Data, key string, o table.Operation) *table.Data {
		outcome, err := base.Apply(&table.Request{Key: key, Do: table.Rows, Operations: []table.Operation{o}}, nil, table.Limits{})
		require.NoError(t, err)
		return outcome.Data
	}
	left := apply(d, "left", table.Operation{Do: table.Insert, Values: json.RawMessage(`{"s":"left"}`)})
	right := apply(left, "right", table.Operation{Do: table.Delete, Filter: table.Filter{Conditions: []table.Condition{{Column: "id", Operator: "lt", Value: json.RawMessage("3")}}}})
	require.Len(t, d.Rows, 2)
	require.Len(t, left.Rows, 3)
	require.Len(t, right.Rows, 1)
	require.EqualValues(t, 3, right.Last)
	require.Equal(t, right.Bytes, int64(len(right.Rows[0].Encode())))
	require.Greater(t, right.Version, left.Version)
}

func TestRefused(t *testing.T) {
	columns := func(c ...table.Column) *table.Request {
		return &table.Request{Key: "k", Do: table.Create, Name: "n", Columns: c}
	}
	for name, r := range map[string]*table.Request{
		"nothing":          {},
		"no name":          {Key: "k", Do: table.Create},
		"no table":         {Key: "k", Do: table.Drop},
		"no key":           {Do: table.Drop, Table: table.Ref{Name: "n"}},
		"no key for rows":  {Do: table.Rows, Table: table.Ref{Name: "n"}, Operations: []table.Operation{{Do: table.Insert}}},
		"long key":         {Key: strings.Repeat("k", 600), Do: table.Drop, Table: table.Ref{Name: "n"}},
		"long name":        {Key: "k", Do: table.Rename, Table: table.Ref{Name: "n"}, Name: strings.Repeat("n", 200)},
		"system column":    columns(table.Column{Name: "id", Type: table.String}),
		"name of a column": columns(table.Column{Name: "a b", Type: table.String}),
		"type of a column": columns(table.Column{Name: "a", Type: "json"}),
		"column twice":     columns(table.Column{Name: "a", Type: table.String}, table.Column{Name: "a", Type: table.String}),
	} {
		refused := table.AsError(r.Check())
		if assert.NotNil(t, refused, name) {
			assert.Equal(t, table.BadRequest, refused.Kind, name)
		}
	}
	require.NoError(t, (&table.Request{Do: table.Rows, Table: table.Ref{Name: "n"}, Operations: []table.Operation{{Do: table.Get}, {Do: table.Delete, DryRun: true}}}).Check())
}
