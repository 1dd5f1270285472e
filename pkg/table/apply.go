package table

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/tidwall/gjson"
)

// Outcome of a request on the rows of a table.
type Outcome struct {
	Answer *Answer
	// Data after it: what Apply was given when nothing changed.
	Data *Data
	// Changes by row, nil for one that was deleted. They are stored with Done, or nothing is.
	Changes map[int64]*Row
	// Done is what to keep under the request's key; nil when there is nothing to be stored.
	Done []byte
}

// done is what was made of the first operations of a request.
type done struct {
	Results []Result `json:"results,omitempty"`
	// Rows and their number, in place of Results that are large.
	Rows []doneRows `json:"rows,omitempty"`
}

type doneRows struct {
	IDs   []int64 `json:"ids,omitempty"`
	Count int     `json:"count"`
	Error *Error  `json:"error,omitempty"`
}

// Apply does the operations of a request. kept is what Done was, if it was done before. Its only
// error is that kept cannot be read; an operation that fails is in the answer.
func (d *Data) Apply(r *Request, kept []byte, l Limits) (*Outcome, error) {
	l = l.WithDefaults()
	results, err := d.kept(kept)
	if err != nil {
		return nil, err
	}
	o := &Outcome{Answer: &Answer{Table: d.Table}, Data: d}
	room, successes := maxAnswer, len(results)
	for i := len(results); i < len(r.Operations); i++ {
		result, changes, err := o.Data.do(&r.Operations[i], r.At, l)
		for _, row := range result.Rows {
			room -= len(row)
		}
		if err == nil && room < 0 {
			err = &Error{Kind: TooLarge, Message: fmt.Sprintf("the answer would have more than %d bytes", maxAnswer),
				Hint: "Ask for less: more conditions, a limit, or fewer items at once."}
		}
		if err != nil {
			results = append(results, Result{Error: err})
			if r.GoOn {
				successes = len(results)
				continue
			}
			break
		}
		results = append(results, result)
		successes = len(results)
		if len(changes) > 0 {
			o.Data = o.Data.With(changes, d.Version+1, max(o.Data.Last, slices.Max(slices.Collect(maps.Keys(changes)))))
			if o.Changes == nil {
				o.Changes = map[int64]*Row{}
			}
			maps.Copy(o.Changes, changes)
		}
	}
	o.Answer.Results = results
	if r.Writes() && len(kept) == 0 && successes > 0 || len(o.Changes) > 0 {
		// What failed is not kept: it may be tried again.
		if o.Done, err = keep(results[:successes]); err != nil {
			return nil, err
		}
		if o.Data == d {
			o.Data = d.With(nil, d.Version+1, d.Last)
		}
	}
	return o, nil
}

// keep writes down results, large ones without their rows.
func keep(results []Result) ([]byte, error) {
	size := 0
	for _, r := range results {
		for _, row := range r.Rows {
			size += len(row)
		}
	}
	if size <= maxDone {
		return json.Marshal(done{Results: results})
	}
	var short done
	for _, r := range results {
		rows := doneRows{Count: r.Count, Error: r.Error}
		for _, row := range r.Rows {
			rows.IDs = append(rows.IDs, gjson.GetBytes(row, ColumnID).Int())
		}
		short.Rows = append(short.Rows, rows)
	}
	return json.Marshal(short)
}

// kept are the results that were written down. Of large ones the rows are as they are now, and only
// ids when they are gone.
func (d *Data) kept(text []byte) ([]Result, error) {
	if len(text) == 0 {
		return nil, nil
	}
	var was done
	if err := json.Unmarshal(text, &was); err != nil {
		return nil, fmt.Errorf("what was done to data table %s before: %w", d.Table.ID, err)
	}
	results := was.Results
	for _, rows := range was.Rows {
		r := Result{Count: rows.Count, Error: rows.Error}
		for _, id := range rows.IDs {
			if i, ok := d.find(id); ok {
				r.Rows = append(r.Rows, d.Rows[i].object(d.Table, ""))
			} else {
				r.Rows = append(r.Rows, fmt.Appendf(nil, `{"id":%d}`, id))
			}
		}
		results = append(results, r)
	}
	return results, nil
}

// do does one operation. It changes nothing itself.
func (d *Data) do(o *Operation, at int64, l Limits) (Result, map[int64]*Row, *Error) {
	matches, err := d.Table.matcher(o.Filter)
	if err != nil {
		return Result{}, nil, err
	}
	switch o.Do {
	case Get:
		result, err := d.get(o, matches)
		return result, nil, err
	case Exists:
		count := 0
		if slices.ContainsFunc(d.Rows, matches) {
			count = 1
		}
		return Result{Count: count}, nil, nil
	case Insert, Update, Upsert, Delete:
	default:
		return Result{}, nil, bad("%.40q is nothing that can be done with rows", o.Do)
	}
	changes, err := d.changes(o, matches, at)
	if err != nil {
		return Result{}, nil, err
	}
	if err := d.fits(changes, l); err != nil {
		return Result{}, nil, err
	}
	result := Result{Count: len(changes)}
	for _, id := range slices.Sorted(maps.Keys(changes)) {
		row, before := changes[id], (*Row)(nil)
		if i, ok := d.find(id); ok {
			before = d.Rows[i]
		}
		switch {
		case o.Quiet:
		case o.DryRun:
			if before != nil {
				result.Rows = append(result.Rows, before.object(d.Table, "before"))
			}
			if row != nil {
				result.Rows = append(result.Rows, row.object(d.Table, "after"))
			}
		case row == nil:
			result.Rows = append(result.Rows, before.object(d.Table, ""))
		default:
			result.Rows = append(result.Rows, row.object(d.Table, ""))
		}
	}
	if o.DryRun {
		changes = nil
	}
	return result, changes, nil
}

func (d *Data) get(o *Operation, matches func(*Row) bool) (Result, *Error) {
	found := []*Row(nil)
	if o.OrderBy == "" {
		for _, r := range d.Rows {
			if o.Limit > 0 && len(found) == o.Limit {
				break
			}
			if matches(r) {
				found = append(found, r)
			}
		}
	} else {
		_, of, err := d.Table.column(o.OrderBy)
		if err != nil {
			return Result{}, err
		}
		for _, r := range d.Rows {
			if matches(r) {
				found = append(found, r)
			}
		}
		slices.SortStableFunc(found, func(a, b *Row) int {
			if o.Descending {
				a, b = b, a
			}
			return compare(of(a), of(b))
		})
		if o.Limit > 0 && len(found) > o.Limit {
			found = found[:o.Limit]
		}
	}
	result, size := Result{Count: len(found)}, 0
	for _, r := range found {
		row := r.object(d.Table, "")
		result.Rows = append(result.Rows, row)
		if size += len(row); size > maxAnswer {
			break // Apply refuses it
		}
	}
	return result, nil
}

// changes are what an operation makes of the rows.
func (d *Data) changes(o *Operation, matches func(*Row) bool, at int64) (map[int64]*Row, *Error) {
	var values map[int]any
	if o.Do != Delete {
		var err *Error
		if values, err = d.Table.values(o.Values); err != nil {
			return nil, err
		}
	}
	changes := map[int64]*Row{}
	if o.Do != Insert {
		if len(o.Filter.Conditions) == 0 {
			return nil, &Error{Kind: BadRequest, Message: "at least one condition is required",
				Hint: "To reach all rows, ask for those whose id is not empty."}
		}
		for _, r := range d.Rows {
			if !matches(r) {
				continue
			}
			if o.Do == Delete {
				changes[r.ID] = nil
			} else {
				changes[r.ID] = r.with(values, at)
			}
		}
	}
	if o.Do == Insert || o.Do == Upsert && len(changes) == 0 {
		empty := &Row{ID: d.Last + 1, Created: at, Values: make([]any, len(d.Table.Columns))}
		changes[empty.ID] = empty.with(values, at)
	}
	return changes, nil
}

// with is the row with other values.
func (r *Row) with(values map[int]any, at int64) *Row {
	next := *r
	next.Updated = at
	next.Values = slices.Clone(r.Values)
	for i, v := range values {
		next.Values[i] = v
	}
	next.size = int64(len(next.Encode()))
	return &next
}

// values reads what is to be written, by the index of its column.
func (t *Table) values(object json.RawMessage) (map[int]any, *Error) {
	values := map[int]any{}
	if len(object) == 0 {
		return values, nil
	}
	root := gjson.ParseBytes(object)
	if !root.IsObject() || !gjson.ValidBytes(object) {
		return nil, bad("the values of a row are no object")
	}
	var failure *Error
	root.ForEach(func(key, value gjson.Result) bool {
		if System(key.Str) {
			failure = bad("the column %q is written by the table itself", key.Str)
			return false
		}
		i := t.index(key.Str)
		if i < 0 {
			failure = t.unknown(key.Str)
			return false
		}
		values[i], failure = convert(value, t.Columns[i])
		return failure == nil
	})
	return values, failure
}

// fits refuses changes after which the table were larger than it may be. What makes it no larger
// is always allowed.
func (d *Data) fits(changes map[int64]*Row, l Limits) *Error {
	rows, bytes := len(d.Rows), d.Bytes
	for id, r := range changes {
		if i, ok := d.find(id); ok {
			rows, bytes = rows-1, bytes-d.Rows[i].size
		}
		if r != nil {
			rows, bytes = rows+1, bytes+r.size
		}
	}
	hint := "Delete rows that are needed no longer, or raise "
	switch {
	case rows > l.Rows && rows > len(d.Rows):
		return &Error{Kind: TooLarge, Message: fmt.Sprintf("the data table %q is full: it may have %d rows", d.Table.Name, l.Rows),
			Hint: hint + "REPRISE_TABLE_MAX_ROWS of the coordinators."}
	case bytes > l.Bytes && bytes > d.Bytes:
		return &Error{Kind: TooLarge, Message: fmt.Sprintf("the data table %q is full: its rows may have %d bytes", d.Table.Name, l.Bytes),
			Hint: hint + "REPRISE_TABLE_MAX_BYTES of the coordinators."}
	}
	return nil
}

// AsError finds an Error in err; nil is none.
func AsError(err error) *Error {
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	return nil
}
