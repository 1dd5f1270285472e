package memstore

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/reprise-engine/reprise/pkg/table"
)

// dataTables are the data tables by id, and what requests have done, by key.
type dataTables struct {
	data map[string]*table.Data
	rows map[string][]byte // Outcome.Done by table and key
	done map[string]*table.Table
}

// ApplyTable implements the contract of state.Store. What was done is kept for good.
func (s *Store) ApplyTable(_ context.Context, r *table.Request) (*table.Answer, error) {
	if err := r.Check(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	t := &s.tables
	switch r.Do {
	case table.List:
		list := []table.Table{}
		for _, d := range t.data {
			list = append(list, *d.Table)
		}
		slices.SortFunc(list, func(a, b table.Table) int { return strings.Compare(a.Name, b.Name) })
		return &table.Answer{Tables: list}, nil
	case table.Create, table.Rename, table.Drop:
		if was := t.done[r.Key]; was != nil {
			return &table.Answer{Table: was}, nil
		}
		return t.change(r)
	}
	d := t.find(r.Table)
	if d == nil {
		return nil, table.Missing(r.Table)
	}
	key := d.Table.ID + " " + r.Key
	outcome, err := d.Apply(r, t.rows[key], s.config.TableLimits)
	if err != nil {
		return nil, err
	}
	if outcome.Done != nil {
		t.data[d.Table.ID], t.rows[key] = outcome.Data, outcome.Done
	}
	return outcome.Answer, nil
}

func (t *dataTables) find(r table.Ref) *table.Data {
	if d := t.data[r.ID]; d != nil || r.Name == "" {
		return d
	}
	for _, d := range t.data {
		if d.Table.Name == r.Name {
			return d
		}
	}
	return nil
}

func (t *dataTables) change(r *table.Request) (*table.Answer, error) {
	other := t.find(table.Ref{Name: r.Name})
	var of table.Table
	switch d := t.find(r.Table); {
	case r.Do == table.Create:
		if other != nil && r.Reuse {
			return &table.Answer{Table: other.Table}, nil
		}
		if other == nil && len(t.data) >= table.MaxTables {
			return nil, table.TooMany()
		}
		of = table.Table{ID: fmt.Sprintf("t%d", len(t.done)+1), Name: r.Name, Columns: slices.Clone(r.Columns), CreatedAt: r.At, UpdatedAt: r.At}
	case d == nil:
		return nil, table.Missing(r.Table)
	default:
		of = *d.Table
	}
	if r.Do != table.Drop && other != nil && other.Table.ID != of.ID {
		return nil, table.Taken(r.Name)
	}
	switch r.Do {
	case table.Create:
		t.data[of.ID] = &table.Data{Table: &of}
	case table.Rename:
		of.Name, of.UpdatedAt = r.Name, r.At
		renamed := *t.data[of.ID]
		renamed.Table = &of
		t.data[of.ID] = &renamed
	case table.Drop:
		delete(t.data, of.ID)
		maps.DeleteFunc(t.rows, func(key string, _ []byte) bool { return strings.HasPrefix(key, of.ID+" ") })
	}
	t.done[r.Key] = &of
	return &table.Answer{Table: &of}, nil
}
