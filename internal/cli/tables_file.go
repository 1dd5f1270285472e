package cli

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/reprise-engine/reprise/pkg/nodes/jsonobject"
	"github.com/reprise-engine/reprise/pkg/queue"
	"github.com/reprise-engine/reprise/pkg/table"
)

// tableFile is what a file has of a table.
type tableFile struct {
	columns []table.Column
	rows    []json.RawMessage
}

// tableFormat is csv, json or jsonl, by the flag or else by the name of a file.
func tableFormat(format, file string) (string, error) {
	if format == "" {
		format = strings.TrimPrefix(strings.ToLower(filepath.Ext(file)), ".")
	}
	switch format {
	case "", "csv":
		return "csv", nil
	case "json", "jsonl":
		return format, nil
	}
	return "", fmt.Errorf("the format %q is not known: choose csv, json or jsonl", format)
}

// readRows reads a file for a table, which has the columns of the system of its own; typed says what columns are
// that shall not be guessed.
func readRows(data []byte, format string, typed []table.Column) (*tableFile, error) {
	f := &tableFile{}
	names, rows, err := parseRows(data, format)
	if err != nil {
		return nil, err
	}
	for _, row := range rows {
		object := jsonobject.Parse(row)
		for _, name := range []string{table.ColumnID, table.ColumnCreated, table.ColumnUpdated} {
			object.Delete(name)
		}
		f.rows = append(f.rows, object.JSON())
	}
	names = slices.DeleteFunc(names, table.System)
	for _, name := range names {
		c := table.Column{Name: name, Type: guess(f.rows, name)}
		if i := slices.IndexFunc(typed, func(c table.Column) bool { return c.Name == name }); i >= 0 {
			c = typed[i]
		}
		f.columns = append(f.columns, c)
	}
	for _, c := range typed { // one that no row has
		if !slices.Contains(names, c.Name) {
			f.columns = append(f.columns, c)
		}
	}
	return f, nil
}

// guess is the type that all values of a column have.
func guess(rows []json.RawMessage, name string) string {
	kind := ""
	for _, row := range rows {
		value, one := gjson.GetBytes(row, gjson.Escape(name)), table.String
		switch {
		case value.Type == gjson.Null:
			continue
		case value.IsBool(), value.Str == "true", value.Str == "false":
			one = table.Boolean
		case value.Type == gjson.Number, isNumber(value.Str):
			one = table.Number
		}
		if kind != "" && kind != one {
			return table.String
		}
		kind = one
	}
	if kind == "" {
		return table.String
	}
	return kind
}

// isNumber reports whether a text is a number and nothing else: 007 and +49 are the names of something.
func isNumber(text string) bool {
	f, err := strconv.ParseFloat(text, 64)
	return err == nil && strconv.FormatFloat(f, 'f', -1, 64) == text
}

// parseRows reads the rows of a file as they are, and the names of their columns. Values of CSV are texts.
func parseRows(data []byte, format string) (names []string, rows []json.RawMessage, err error) {
	switch format {
	case "csv":
		return readCSVRows(data)
	case "jsonl":
		for decoder := json.NewDecoder(bytes.NewReader(data)); ; {
			var row json.RawMessage
			err := decoder.Decode(&row)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return nil, nil, fmt.Errorf("row %d: %w", len(rows)+1, err)
			}
			rows = append(rows, row)
		}
	default:
		if err := json.Unmarshal(data, &rows); err != nil {
			return nil, nil, fmt.Errorf("it is no JSON list of rows: %w", err)
		}
	}
	seen := map[string]bool{}
	for i, row := range rows {
		object := gjson.ParseBytes(row)
		if !object.IsObject() {
			return nil, nil, fmt.Errorf("row %d is no object", i+1)
		}
		object.ForEach(func(key, _ gjson.Result) bool {
			if !seen[key.Str] {
				seen[key.Str] = true
				names = append(names, key.Str)
			}
			return true
		})
	}
	return names, rows, nil
}

// readCSVRows reads a CSV file with a header. What is empty is no value.
func readCSVRows(data []byte) (names []string, rows []json.RawMessage, err error) {
	r := csv.NewReader(bytes.NewReader(bytes.TrimPrefix(data, []byte("\ufeff"))))
	header, err := r.Read()
	if errors.Is(err, io.EOF) {
		return nil, nil, errors.New("it is empty: a CSV file begins with the names of its columns")
	}
	if err != nil {
		return nil, nil, err
	}
	for i, name := range header {
		header[i] = strings.TrimSpace(name)
		names = append(names, header[i])
	}
	for {
		record, err := r.Read()
		if errors.Is(err, io.EOF) {
			return names, rows, nil
		}
		if err != nil {
			return nil, nil, err
		}
		values := map[string]string{}
		for i, value := range record {
			if value != "" {
				values[header[i]] = value
			}
		}
		row, err := json.Marshal(values)
		if err != nil {
			return nil, nil, err
		}
		rows = append(rows, row)
	}
}

// allRows reads a table, page by page.
func allRows(ctx context.Context, conn *queue.Conn, of table.Ref) (t *table.Table, rows []json.RawMessage, err error) {
	for after := int64(0); ; {
		answer, err := askTables(ctx, conn, &table.Request{Do: table.Rows, Table: of, Operations: []table.Operation{{
			Do: table.Get, OrderBy: table.ColumnID, Limit: exportPage,
			Filter: table.Filter{Conditions: []table.Condition{{Column: table.ColumnID, Operator: "gt", Value: strconv.AppendInt(nil, after, 10)}}},
		}}})
		if err != nil {
			return nil, nil, err
		}
		t = answer.Table
		page := answer.Results[0].Rows
		rows = append(rows, page...)
		if len(page) < exportPage {
			return t, rows, nil
		}
		after = gjson.GetBytes(page[len(page)-1], table.ColumnID).Int()
	}
}

func writeRows(out io.Writer, format string, t *table.Table, rows []json.RawMessage) error {
	switch format {
	case "json":
		if rows == nil {
			rows = []json.RawMessage{}
		}
		return printJSON(out, rows)
	case "jsonl":
		for _, row := range rows {
			if _, err := fmt.Fprintf(out, "%s\n", row); err != nil {
				return err
			}
		}
		return nil
	}
	names := []string{table.ColumnID}
	for _, c := range t.Columns {
		names = append(names, c.Name)
	}
	names = append(names, table.ColumnCreated, table.ColumnUpdated)
	w := csv.NewWriter(out)
	if err := w.Write(names); err != nil {
		return err
	}
	record := make([]string, len(names))
	for _, row := range rows {
		for i, name := range names {
			record[i] = gjson.GetBytes(row, name).String() // names have no characters of paths
		}
		if err := w.Write(record); err != nil {
			return err
		}
	}
	w.Flush()
	return w.Error()
}
