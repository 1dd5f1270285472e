package state_test

import (
	"encoding/json"
	"fmt"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"github.com/reprise-engine/reprise/internal/redistest"
	"github.com/reprise-engine/reprise/pkg/state"
	"github.com/reprise-engine/reprise/pkg/table"
)

func createTable(t *testing.T, s *state.Store, name string) {
	t.Helper()
	_, err := s.ApplyTable(t.Context(), &table.Request{
		Key: "create", Do: table.Create, Name: name, Columns: []table.Column{{Name: "n", Type: table.Number}},
	})
	require.NoError(t, err)
}

func onRows(name, key string, o ...table.Operation) *table.Request {
	return &table.Request{Key: key, Do: table.Rows, Table: table.Ref{Name: name}, Operations: o}
}

func insertN(n int) table.Operation {
	return table.Operation{Do: table.Insert, Values: fmt.Appendf(nil, `{"n":%d}`, n)}
}

func numbers(t *testing.T, s *state.Store, name string) []int64 {
	t.Helper()
	answer, err := s.ApplyTable(t.Context(), onRows(name, "", table.Operation{Do: table.Get, OrderBy: "n"}))
	require.NoError(t, err)
	list := []int64{}
	for _, row := range answer.Results[0].Rows {
		list = append(list, gjson.GetBytes(row, "n").Int())
	}
	return list
}

// Two coordinators keep the same table in memory, and each sees what the other did.
func TestTablesOfTwoStores(t *testing.T) {
	t.Parallel()
	srv := redistest.Shared(t)
	same := func(c *state.Config) { c.Prefix = t.Name() + "." }
	one, two := open(t, srv.URL(), same), open(t, srv.URL(), same)
	createTable(t, one, "shared")
	require.Empty(t, numbers(t, two, "shared"))
	const each = 60
	var group sync.WaitGroup
	for w, s := range []*state.Store{one, two} {
		group.Go(func() {
			for i := range each {
				// The repeat of a request may reach the other store.
				n := w*each + i
				_, err := s.ApplyTable(t.Context(), onRows("shared", fmt.Sprint(n), insertN(n)))
				assert.NoError(t, err)
				other := []*state.Store{two, one}[w]
				_, err = other.ApplyTable(t.Context(), onRows("shared", fmt.Sprint(n), insertN(n)))
				assert.NoError(t, err)
			}
		})
	}
	group.Wait()
	want := []int64{}
	for i := range int64(2 * each) {
		want = append(want, i)
	}
	require.Equal(t, want, numbers(t, one, "shared"))
	require.Equal(t, want, numbers(t, two, "shared"))

	// One that was away for more changes than are listed, and for one of many rows.
	for i := range 300 {
		_, err := one.ApplyTable(t.Context(), onRows("shared", fmt.Sprint("away", i), table.Operation{
			Do: table.Update, Filter: table.Filter{Conditions: []table.Condition{{Column: "n", Operator: "eq", Value: json.RawMessage("0")}}}, Values: json.RawMessage(`{"n":0}`),
		}))
		require.NoError(t, err)
	}
	many := make([]table.Operation, 1500)
	for i := range many {
		many[i] = insertN(1000 + i)
	}
	_, err := one.ApplyTable(t.Context(), onRows("shared", "many", many...))
	require.NoError(t, err)
	require.Len(t, numbers(t, two, "shared"), 2*each+1500)
	for _, s := range []*state.Store{two, one} { // the second time it is known
		_, err = s.ApplyTable(t.Context(), onRows("shared", "delete many", table.Operation{
			Do: table.Delete, Filter: table.Filter{Conditions: []table.Condition{{Column: "n", Operator: "gt", Value: json.RawMessage("2")}}},
		}))
		require.NoError(t, err)
	}
	require.Equal(t, []int64{0, 1, 2}, numbers(t, one, "shared"))
}

// A Redis that comes back without its last writes has other versions of the same numbers: what was
// known of them does not count.
func TestTableOfRedisThatForgot(t *testing.T) {
	t.Parallel()
	srv := redistest.Shared(t)
	same := func(c *state.Config) { c.Prefix = t.Name() + "." }
	one, two := open(t, srv.URL(), same), open(t, srv.URL(), same)
	createTable(t, one, "t")
	write := func(s *state.Store, key string, n int) {
		t.Helper()
		_, err := s.ApplyTable(t.Context(), onRows("t", key, insertN(n)))
		require.NoError(t, err)
	}
	write(one, "1", 1)
	raw := redis.NewClient(&redis.Options{Addr: srv.Addr()})
	t.Cleanup(func() { _ = raw.Close() })
	saved := map[string]string{}
	keys, err := raw.Keys(t.Context(), t.Name()+".:*t-*").Result()
	require.NoError(t, err)
	for _, key := range keys {
		saved[key] = raw.Dump(t.Context(), key).Val()
	}
	write(one, "2", 2)
	require.Equal(t, []int64{1, 2}, numbers(t, two, "t"))
	for key, content := range saved {
		require.NoError(t, raw.RestoreReplace(t.Context(), key, 0, content).Err())
	}
	write(two, "3", 3) // it notices that the table is older
	require.Equal(t, []int64{1, 3}, numbers(t, two, "t"))
	require.Equal(t, []int64{1, 3}, numbers(t, one, "t"), "of the same number, but another version")
}
