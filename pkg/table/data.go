package table

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"github.com/tidwall/gjson"
)

// Row of a table. It never changes.
type Row struct {
	ID               int64
	Created, Updated int64 // ms
	Values           []any // by column
	size             int64 // as it is stored
}

// Data is a version of a table's rows.
type Data struct {
	Table *Table
	// Version counts the changes; a table without any has version 0.
	Version int64
	// Last is the id of the newest row that there ever was.
	Last int64
	// Rows by id, oldest first.
	Rows  []*Row
	Bytes int64
}

// DecodeRow reads a row as it is stored.
func DecodeRow(t *Table, id int64, text string) (*Row, error) {
	fields := gjson.Parse(text).Array()
	if len(fields) != 2+len(t.Columns) {
		return nil, fmt.Errorf("row %d of data table %s has %d fields, not %d", id, t.ID, len(fields), 2+len(t.Columns))
	}
	r := &Row{ID: id, Created: fields[0].Int(), Updated: fields[1].Int(), Values: make([]any, len(t.Columns)), size: int64(len(text))}
	for i, v := range fields[2:] {
		switch {
		case v.Type == gjson.Null:
		case t.Columns[i].Type == Date:
			r.Values[i] = v.Int()
		default:
			r.Values[i] = v.Value()
		}
	}
	return r, nil
}

// Encode writes a row as it is stored: [created, updated, values…].
func (r *Row) Encode() string {
	b := strconv.AppendInt([]byte{'['}, r.Created, 10)
	b = strconv.AppendInt(append(b, ','), r.Updated, 10)
	for _, v := range r.Values {
		b = appendValue(append(b, ','), v, false)
	}
	return string(append(b, ']'))
}

// object is the row as an item has it.
func (r *Row) object(t *Table, dryRun string) json.RawMessage {
	b := strconv.AppendInt([]byte(`{"id":`), r.ID, 10)
	for i, c := range t.Columns {
		b = append(appendText(append(b, ','), c.Name), ':')
		b = appendValue(b, r.Values[i], c.Type == Date)
	}
	b = appendValue(append(b, `,"createdAt":`...), r.Created, true)
	b = appendValue(append(b, `,"updatedAt":`...), r.Updated, true)
	if dryRun != "" {
		b = append(append(b, `,"dryRunState":`...), strconv.Quote(dryRun)...)
	}
	return append(b, '}')
}

// find returns where the row with an id is, or would be.
func (d *Data) find(id int64) (int, bool) {
	return slices.BinarySearchFunc(d.Rows, id, func(r *Row, id int64) int { return order(r.ID < id, r.ID > id) })
}

// With is the data after some rows were changed; nil is one that was deleted. Rows that are new
// have greater ids than all before them.
func (d *Data) With(changes map[int64]*Row, version, last int64) *Data {
	next := &Data{Table: d.Table, Version: version, Last: last, Bytes: d.Bytes, Rows: d.Rows}
	var added []*Row
	copied, deleted := false, false
	for id, r := range changes {
		if r != nil {
			next.Bytes += r.size
		}
		i, ok := d.find(id)
		if !ok {
			if r != nil {
				added = append(added, r)
			}
			continue
		}
		if !copied {
			next.Rows, copied = slices.Clone(d.Rows), true
		}
		next.Bytes -= d.Rows[i].size
		next.Rows[i] = r
		deleted = deleted || r == nil
	}
	if deleted {
		next.Rows = slices.DeleteFunc(next.Rows, func(r *Row) bool { return r == nil })
	}
	slices.SortFunc(added, func(a, b *Row) int { return order(a.ID < b.ID, a.ID > b.ID) })
	// Room behind d.Rows may be written to by several versions that follow it. One of them is
	// used; whoever reads d does not see that far.
	next.Rows = append(next.Rows, added...)
	return next
}
