package files

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/ledongthuc/pdf"
	"github.com/tidwall/gjson"
	"github.com/xuri/excelize/v2"

	"github.com/reprise-engine/reprise/pkg/node"
	"github.com/reprise-engine/reprise/pkg/nodes/jsonobject"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// Extract reads files of items into their JSON.
func Extract() *node.Type {
	return &node.Type{
		Spec: workflow.Spec{Type: base + "extractFromFile", Versions: []float64{1, 1.1}},
		Execute: func(ctx context.Context, call *node.Call) (*node.Result, error) {
			return each(ctx, call, extract)
		},
	}
}

func extract(j *job) (workflow.Items, error) {
	operation := j.text("operation", "csv")
	data, err := j.read(j.text("binaryPropertyName", "data"))
	if err != nil {
		return nil, err
	}
	switch operation {
	case "csv":
		rows, err := j.csv(data)
		if err != nil {
			return nil, err
		}
		return j.rows(rows)
	case "xlsx", "xls", "ods", "rtf", "html":
		rows, err := j.sheet(operation, data)
		if err != nil {
			return nil, err
		}
		return j.rows(rows)
	case "fromIcs":
		return j.calendar(data)
	case "pdf":
		return j.pdf(data, j.text("options.password", ""))
	case "text", "xml", "fromJson", "binaryToPropery":
	default:
		return nil, failure(j.item, "Files cannot be read as %q here", operation)
	}
	value, err := j.property(operation, data)
	if err != nil {
		return nil, err
	}
	return j.extracted(value)
}

// extracted is the item with what was read of its file, as JSON.
func (j *job) extracted(value string) (workflow.Items, error) {
	key, keep := j.text("destinationKey", "data"), j.text("options.keepSource", "")
	var o jsonobject.Object
	if keep == "json" || keep == "both" {
		o = jsonobject.Parse(j.input().JSON)
	}
	o.SetPath(key, value)
	item := workflow.Item{JSON: o.JSON()}
	if keep == "binary" || keep == "both" {
		item.Binary = j.input().Binary
	}
	return workflow.Items{item}, j.err
}

// property is a file as one JSON value.
func (j *job) property(operation string, data []byte) (string, error) {
	if operation == "binaryToPropery" {
		return jsonobject.Quote(base64.StdEncoding.EncodeToString(data)), nil
	}
	text, err := decode(data, j.text("options.encoding", "utf8"))
	if err != nil {
		return "", failure(j.item, "%v", err)
	}
	if j.flag("options.stripBOM", true) {
		text = strings.TrimPrefix(text, "\ufeff")
	}
	if operation != "fromJson" {
		return jsonobject.Quote(text), nil
	}
	if strings.TrimSpace(text) == "" {
		return "{}", nil
	}
	if !gjson.Valid(text) {
		return "", failure(j.item, "The file does not hold valid JSON")
	}
	return text, nil
}

// rows makes items of the rows of a table. Cells are JSON; "" is an empty one.
func (j *job) rows(rows [][]string) (workflow.Items, error) {
	header, empty := j.flag("options.headerRow", true), j.flag("options.includeEmptyCells", false)
	most := j.number("options.maxRowCount", -1)
	if j.err != nil {
		return nil, j.err
	}
	items := workflow.Items{}
	var names []string
	for n, row := range rows {
		if header && n == 0 {
			for i, cell := range row {
				name := gjson.Parse(cell).String()
				if name == "" {
					name = "__EMPTY"
					if i > 0 {
						name += "_" + strconv.Itoa(i)
					}
				}
				names = append(names, name)
			}
			continue
		}
		if most >= 0 && len(items) >= most {
			break
		}
		var o jsonobject.Object
		if !header {
			cells := make([]string, len(row))
			for i, cell := range row {
				if cells[i] = cell; cell == "" {
					cells[i] = `""`
				}
			}
			o.Set("row", "["+strings.Join(cells, ",")+"]")
		}
		for i, name := range names {
			switch {
			case i < len(row) && row[i] != "":
				o.Set(name, row[i])
			case empty:
				o.Set(name, `""`)
			}
		}
		if o.Len() > 0 {
			items = append(items, workflow.Item{JSON: o.JSON()})
		}
	}
	return items, nil
}

func (j *job) csv(data []byte) ([][]string, error) {
	text, err := decode(data, j.text("options.encoding", "utf8"))
	if err != nil {
		return nil, failure(j.item, "%v", err)
	}
	r := csv.NewReader(strings.NewReader(strings.TrimPrefix(text, "\ufeff")))
	delimiter := j.text("options.delimiter", ",")
	if delimiter == `\t` {
		delimiter = "\t"
	}
	r.Comma, _ = rune0(delimiter)
	r.FieldsPerRecord, r.LazyQuotes = -1, j.flag("options.relaxQuotes", false)
	from := j.number("options.fromLine", 0)
	if j.err != nil {
		return nil, j.err
	}
	var rows [][]string
	for {
		record, err := r.Read()
		if err == io.EOF { //nolint:errorlint // Read returns it as it is
			break
		}
		if err != nil {
			return nil, failure(j.item, "The file is no valid CSV: %v", err)
		}
		if line, _ := r.FieldPos(0); line < from {
			continue
		}
		// A CSV file has no other empty cell than an empty text.
		for i := range record {
			record[i] = jsonobject.Quote(record[i])
		}
		rows = append(rows, record)
	}
	return rows, nil
}

func rune0(text string) (rune, bool) {
	for _, r := range text {
		return r, true
	}
	return ',', false
}

func (j *job) xlsx(data []byte) (_ [][]string, err error) {
	f, err := excelize.OpenReader(bytes.NewReader(data), excelize.Options{RawCellValue: true, UnzipSizeLimit: 4 * maxParsedBytes, UnzipXMLSizeLimit: maxParsedBytes})
	if err != nil {
		return nil, failure(j.item, "The file cannot be read as XLSX: %v", err)
	}
	defer f.Close()
	sheet := j.text("options.sheetName", "")
	if sheet == "" && f.SheetCount > 0 {
		sheet = f.GetSheetName(0)
	}
	asText := j.flag("options.readAsString", false)
	if j.err != nil {
		return nil, j.err
	}
	raw, err := f.GetRows(sheet)
	if err != nil {
		return nil, failure(j.item, "Spreadsheet does not contain sheet called '%s'!", sheet)
	}
	for n, row := range raw {
		for i, cell := range row {
			if cell == "" {
				continue
			}
			name, err := excelize.CoordinatesToCellName(i+1, n+1)
			if err != nil {
				return nil, failure(j.item, "%v", err)
			}
			kind, err := f.GetCellType(sheet, name)
			if err != nil {
				return nil, failure(j.item, "%v", err)
			}
			row[i] = cellJSON(cell, kind, asText)
		}
	}
	return raw, nil
}

func cellJSON(cell string, kind excelize.CellType, asText bool) string {
	switch {
	case asText:
	case kind == excelize.CellTypeBool:
		return strconv.FormatBool(cell == "1" || strings.EqualFold(cell, "true"))
	case kind == excelize.CellTypeNumber || kind == excelize.CellTypeUnset || kind == excelize.CellTypeFormula:
		if n, err := strconv.ParseFloat(cell, 64); err == nil {
			if number, err := json.Marshal(n); err == nil {
				return string(number)
			}
		}
	}
	return jsonobject.Quote(cell)
}

// pdf reads the text of a PDF, with a password when it is encrypted. The reader panics on some damaged files, which is the file's fault.
func (j *job) pdf(data []byte, password string) (_ workflow.Items, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = failure(j.item, "The PDF cannot be read: %v", p)
		}
	}()
	tries := []string{password, ""} // the reader asks until it is given nothing
	r, err := pdf.NewReaderEncrypted(bytes.NewReader(data), int64(len(data)), func() string {
		next := tries[0]
		tries = tries[len(tries)-1:]
		return next
	})
	if errors.Is(err, pdf.ErrInvalidPassword) {
		return nil, failure(j.item, "The PDF is encrypted: %s", map[bool]string{true: "give its password", false: "the password is wrong"}[password == ""])
	}
	if err != nil {
		return nil, failure(j.item, "The PDF cannot be read: %v", err)
	}
	pages, most, join := r.NumPage(), j.number("options.maxPages", 0), j.flag("options.joinPages", true)
	if j.err != nil {
		return nil, j.err
	}
	read := pages
	if most > 0 {
		read = min(read, most)
	}
	texts := make([]string, 0, read)
	for n := 1; n <= read; n++ {
		if j.ctx.Err() != nil {
			return nil, j.ctx.Err()
		}
		text, err := r.Page(n).GetPlainText(nil)
		if err != nil {
			return nil, failure(j.item, "Page %d of the PDF cannot be read: %v", n, err)
		}
		texts = append(texts, jsonobject.Quote(strings.TrimSpace(text)))
	}
	var o jsonobject.Object
	o.Set("numpages", strconv.Itoa(pages))
	o.Set("numrender", strconv.Itoa(read))
	if join {
		plain := make([]string, len(texts))
		for i, text := range texts {
			plain[i] = gjson.Parse(text).Str
		}
		o.Set("text", jsonobject.Quote(strings.Join(plain, "\n\n")))
	} else {
		o.Set("text", fmt.Sprintf("[%s]", strings.Join(texts, ",")))
	}
	return workflow.Items{{JSON: o.JSON()}}, nil
}
