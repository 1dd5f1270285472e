package state

import (
	"fmt"
	"strconv"

	"github.com/reprise-engine/reprise/pkg/engine"
)

const metaTable = 0 // in tables

// fields are the arguments of a commit's HSET and HDEL, per table.
type fields struct {
	sets    [len(tables)][]any // field, value, field, value …
	deletes [len(tables)][]any
}

func (f *fields) set(table int, field, value string) {
	f.sets[table] = append(f.sets[table], field, value)
}

func (f *fields) len() (n int) {
	for i := range tables {
		n += len(f.sets[i]) + len(f.deletes[i])
	}
	return n
}

// fieldsOf keeps the last change of each field. An execution that is created
// has nothing to delete.
func fieldsOf(changes []engine.Change, creates bool) (*fields, error) {
	f := &fields{}
	last := lastOf(len(changes), func(i, j int) bool {
		return changes[i].Field == changes[j].Field && changes[i].Table == changes[j].Table
	}, func(i int) string { return string(changes[i].Table) + "/" + changes[i].Field })
	for i := range changes {
		c := &changes[i]
		t := tableIndex(c.Table)
		switch {
		case t < 0:
			return nil, fmt.Errorf("change of field %q: unknown table %q", c.Field, c.Table)
		case t == metaTable && c.Field != "" && c.Field[0] == reserved:
			return nil, fmt.Errorf("change of meta field %q: names that begin with %q are the store's own", c.Field, reserved)
		case !last(i):
		case c.Value != nil:
			f.sets[t] = append(f.sets[t], c.Field, c.Value)
		case !creates:
			f.deletes[t] = append(f.deletes[t], c.Field)
		}
	}
	return f, nil
}

func tableIndex(t engine.Table) int {
	for i, name := range tables {
		if name == t {
			return i
		}
	}
	return -1
}

// scoresOf are the arguments of a commit's ZADD and ZREM of a sorted set of times.
func scoresOf(changes []engine.TimerChange, member func(id string) string) (set, clear []any) {
	last := lastOf(len(changes), func(i, j int) bool { return changes[i].ID == changes[j].ID },
		func(i int) string { return changes[i].ID })
	for i, c := range changes {
		switch {
		case !last(i):
		case c.At != 0:
			set = append(set, strconv.FormatInt(c.At, 10), member(c.ID))
		default:
			clear = append(clear, member(c.ID))
		}
	}
	return set, clear
}

// lastOf returns a function that tells whether no later element is the same as
// the i-th. Few elements are compared with each other, which is cheaper than a map.
func lastOf(n int, same func(i, j int) bool, key func(i int) string) func(i int) bool {
	if n <= 16 {
		return func(i int) bool {
			for j := i + 1; j < n; j++ {
				if same(i, j) {
					return false
				}
			}
			return true
		}
	}
	index := make(map[string]int, n)
	for i := range n {
		index[key(i)] = i
	}
	return func(i int) bool { return index[key(i)] == i }
}
