package files

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"strings"

	"github.com/tidwall/gjson"
	"github.com/xuri/excelize/v2"

	"github.com/reprise-engine/reprise/pkg/node"
	"github.com/reprise-engine/reprise/pkg/nodes/jsonobject"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// Convert makes files of items.
func Convert() *node.Type {
	return &node.Type{
		Spec:    workflow.Spec{Type: base + "convertToFile", Versions: []float64{1, 1.1}},
		Execute: convert,
	}
}

func convert(ctx context.Context, call *node.Call) (*node.Result, error) {
	operation, err := call.String(ctx, 0, "operation", "csv")
	if err != nil {
		return nil, err
	}
	switch operation {
	case "toBinary", "toText":
		return each(ctx, call, func(j *job) (workflow.Items, error) { return j.fromProperty(operation) })
	case "iCal":
		return each(ctx, call, (*job).event)
	case "toJson":
		mode, err := call.String(ctx, 0, "mode", "once")
		if err != nil {
			return nil, err
		}
		if mode == "each" {
			return each(ctx, call, func(j *job) (workflow.Items, error) { return j.jsonFile(j.input().JSON) })
		}
		return together(ctx, call, (*job).allAsJSON)
	}
	return together(ctx, call, func(j *job) (workflow.Items, error) { return j.tableFile(operation) })
}

// output is an item with a file.
func (j *job) output(file workflow.Binary, write func(io.Writer) error) (workflow.Items, error) {
	property := j.text("binaryPropertyName", "data")
	if name := j.text("options.fileName", ""); name != "" {
		file.FileName = name
	}
	if j.err != nil {
		return nil, j.err
	}
	saved, err := j.save(file, write)
	if err != nil {
		if j.ctx.Err() != nil {
			return nil, j.ctx.Err()
		}
		return nil, failure(j.item, "%v", err)
	}
	return workflow.Items{{JSON: json.RawMessage("{}"), Binary: map[string]workflow.Binary{property: saved}}}, nil
}

// bytesFile is output for a file that is there already.
func (j *job) bytesFile(file workflow.Binary, data []byte) (workflow.Items, error) {
	return j.output(file, func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	})
}

// fromProperty makes a file of a property of the item.
func (j *job) fromProperty(operation string) (workflow.Items, error) {
	source := j.text("sourceProperty", "")
	value := gjson.Parse(jsonobject.Parse(j.input().JSON).Get(source))
	if !value.Exists() { // a path
		value = gjson.GetBytes(j.input().JSON, source)
	}
	if !value.Exists() || value.Type == gjson.Null {
		return nil, failure(j.item, "The value in \"%s\" is not set", source)
	}
	text, file := value.String(), workflow.Binary{}
	encoding := j.text("options.encoding", "utf8")
	if operation == "toText" {
		file.MimeType, file.FileName = "text/plain", "file.txt"
		if j.flag("options.addBOM", false) {
			text = "\ufeff" + text
		}
	} else {
		file.MimeType = j.text("options.mimeType", "")
		if j.flag("options.dataIsBase64", true) {
			if strings.HasPrefix(text, "data:") { // a data URL, as models and browsers give them
				head, rest, _ := strings.Cut(text, ",")
				text = rest
				if kind, _, ok := strings.Cut(strings.TrimPrefix(head, "data:"), ";"); ok && file.MimeType == "" {
					file.MimeType = kind
				}
			}
			text = strings.NewReplacer("-", "+", "_", "/").Replace(strings.TrimRight(text, "=\r\n "))
			data, err := base64.RawStdEncoding.DecodeString(text)
			if err != nil {
				return nil, failure(j.item, "The value in \"%s\" is no valid base64", source)
			}
			return j.bytesFile(file, data)
		}
	}
	data, err := encode(text, encoding)
	if err != nil {
		return nil, failure(j.item, "%v", err)
	}
	return j.bytesFile(file, data)
}

// allAsJSON makes one file of the list of all items.
func (j *job) allAsJSON() (workflow.Items, error) {
	list := make([]json.RawMessage, len(j.call.Inputs[0]))
	for i, item := range j.call.Inputs[0] {
		list[i] = item.JSON
	}
	whole, err := json.Marshal(list)
	if err != nil {
		return nil, failure(0, "%v", err)
	}
	return j.jsonFile(whole)
}

func (j *job) jsonFile(value []byte) (workflow.Items, error) {
	if j.flag("options.format", false) {
		var b bytes.Buffer
		if json.Indent(&b, value, "", "  ") == nil {
			value = b.Bytes()
		}
	}
	data, err := encode(string(value), j.text("options.encoding", "utf8"))
	if err != nil {
		return nil, failure(j.item, "%v", err)
	}
	return j.bytesFile(workflow.Binary{MimeType: "application/json", FileName: "file.json"}, data)
}

// table is the items as rows: the columns in the order in which they first appear, nested objects
// as columns "outer.inner".
func (j *job) table() (columns []string, rows []map[string]gjson.Result) {
	seen := map[string]bool{}
	for _, item := range j.call.Inputs[0] {
		row := map[string]gjson.Result{}
		var flatten func(prefix string, object gjson.Result)
		flatten = func(prefix string, object gjson.Result) {
			object.ForEach(func(key, value gjson.Result) bool {
				name := prefix + key.String()
				if value.IsObject() {
					flatten(name+".", value)
					return true
				}
				if !seen[name] {
					seen[name] = true
					columns = append(columns, name)
				}
				row[name] = value
				return true
			})
		}
		flatten("", gjson.ParseBytes(item.JSON))
		rows = append(rows, row)
	}
	return columns, rows
}

// tableFile makes one spreadsheet of all items.
func (j *job) tableFile(format string) (workflow.Items, error) {
	columns, rows := j.table()
	header := j.flag("options.headerRow", true)
	switch format {
	case "csv":
		delimiter := j.text("options.delimiter", ",")
		return j.output(workflow.Binary{MimeType: "text/csv", FileName: "spreadsheet.csv"}, func(w io.Writer) error {
			c := csv.NewWriter(w)
			c.Comma, _ = rune0(delimiter)
			record := make([]string, len(columns))
			if header {
				if err := c.Write(columns); err != nil {
					return err
				}
			}
			for _, row := range rows {
				for i, name := range columns {
					record[i] = row[name].String()
				}
				if err := c.Write(record); err != nil {
					return err
				}
			}
			c.Flush()
			return c.Error()
		})
	case "ods":
		sheet := j.text("options.sheetName", "Sheet")
		return j.output(workflow.Binary{MimeType: "application/vnd.oasis.opendocument.spreadsheet", FileName: "spreadsheet.ods"}, func(w io.Writer) error {
			return writeODS(w, sheet, header, columns, rows)
		})
	case "rtf":
		return j.output(workflow.Binary{MimeType: "application/rtf", FileName: "spreadsheet.rtf"}, func(w io.Writer) error {
			return writeRTF(w, header, columns, rows)
		})
	case "html":
		return j.output(workflow.Binary{MimeType: "text/html", FileName: "spreadsheet.html"}, func(w io.Writer) error {
			return writeHTML(w, header, columns, rows)
		})
	case "xlsx":
		sheet := j.text("options.sheetName", "Sheet")
		return j.output(workflow.Binary{
			MimeType: "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet", FileName: "spreadsheet.xlsx",
		}, func(w io.Writer) error { return writeXLSX(w, sheet, header, columns, rows) })
	case "xls":
		return nil, failure(0, "Files of the format XLS, of Excel before 2007, cannot be made here: make XLSX, or CSV")
	}
	return nil, failure(0, "Files of the kind %q cannot be made here", format)
}

func writeHTML(w io.Writer, header bool, columns []string, rows []map[string]gjson.Result) error {
	var b strings.Builder
	line := func(cells func(int) string) {
		b.WriteString("<tr>")
		for i := range columns {
			b.WriteString("<td>" + html.EscapeString(cells(i)) + "</td>")
		}
		b.WriteString("</tr>")
	}
	b.WriteString("<html><head><meta charset=\"utf-8\"/></head><body><table>")
	if header {
		line(func(i int) string { return columns[i] })
	}
	for _, row := range rows {
		line(func(i int) string { return row[columns[i]].String() })
	}
	b.WriteString("</table></body></html>")
	_, err := io.WriteString(w, b.String())
	return err
}

func writeXLSX(w io.Writer, sheet string, header bool, columns []string, rows []map[string]gjson.Result) error {
	f := excelize.NewFile()
	defer f.Close()
	if err := f.SetSheetName("Sheet1", sheet); err != nil {
		return fmt.Errorf("sheet %q: %w", sheet, err)
	}
	s, err := f.NewStreamWriter(sheet)
	if err != nil {
		return err
	}
	line := 0
	write := func(cells []any) error {
		line++
		return s.SetRow(fmt.Sprintf("A%d", line), cells)
	}
	cells := make([]any, len(columns))
	if header {
		for i, name := range columns {
			cells[i] = name
		}
		if err := write(cells); err != nil {
			return err
		}
	}
	for _, row := range rows {
		for i, name := range columns {
			switch value := row[name]; value.Type {
			case gjson.Number, gjson.True, gjson.False:
				cells[i] = value.Value()
			case gjson.Null:
				cells[i] = nil
			default:
				cells[i] = value.String()
			}
		}
		if err := write(cells); err != nil {
			return err
		}
	}
	if err := s.Flush(); err != nil {
		return err
	}
	return f.Write(w)
}
