package files

import (
	"bytes"
	"context"
	"encoding/json"
	"math"
	"strconv"
	"strings"

	"github.com/PuerkitoBio/goquery"
	"github.com/tidwall/gjson"
	"github.com/xuri/excelize/v2"

	"github.com/reprise-engine/reprise/pkg/node"
	"github.com/reprise-engine/reprise/pkg/nodes/jsonobject"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// SpreadsheetFile reads and makes spreadsheets. Extract from File and Convert to File came after it.
func SpreadsheetFile() *node.Type {
	return &node.Type{
		Spec:    workflow.Spec{Type: base + "spreadsheetFile", Versions: []float64{1, 2}},
		Execute: spreadsheetFile,
	}
}

func spreadsheetFile(ctx context.Context, call *node.Call) (*node.Result, error) {
	operation, err := call.String(ctx, 0, "operation", "fromFile")
	if err != nil {
		return nil, err
	}
	switch operation {
	case "fromFile":
		return each(ctx, call, (*job).fromFile)
	case "toFile":
		return together(ctx, call, func(j *job) (workflow.Items, error) {
			format := j.text("fileFormat", "xls")
			if j.err != nil {
				return nil, j.err
			}
			return j.tableFile(format)
		})
	}
	return nil, failure(0, "The operation %q is not known: choose fromFile or toFile", operation)
}

func (j *job) fromFile() (workflow.Items, error) {
	property := j.text("binaryPropertyName", "data")
	format := j.text("fileFormat", "autodetect")
	data, err := j.read(property)
	if err != nil {
		return nil, err
	}
	if format == "autodetect" {
		if format = sniff(data); format == "" {
			format = "csv"
		}
	}
	var rows [][]string
	switch format {
	case "csv":
		if rows, err = j.csv(data); err == nil && j.call.Node.TypeVersion < 2 {
			j.typed(rows)
		}
	case "html", "ods", "rtf", "xls", "xlsx":
		rows, err = j.sheet(format, data)
	default:
		err = failure(j.item, "Files cannot be read as %q here", format)
	}
	if err != nil {
		return nil, err
	}
	return j.rows(rows)
}

// sniff tells a spreadsheet's format from its first bytes; "" is any text.
func sniff(data []byte) string {
	head := bytes.TrimLeft(bytes.TrimPrefix(data[:min(len(data), 2048)], []byte("\ufeff")), " \t\r\n")
	switch {
	case bytes.HasPrefix(head, []byte("PK\x03\x04")):
		if bytes.Contains(head, []byte("opendocument.spreadsheet")) {
			return "ods"
		}
		return "xlsx"
	case bytes.HasPrefix(head, []byte("\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1")):
		return "xls"
	case bytes.HasPrefix(head, []byte(`{\rtf`)):
		return "rtf"
	case bytes.HasPrefix(head, []byte("<")):
		return "html"
	}
	return ""
}

// sheet reads the rows of a spreadsheet, cells as JSON. A file whose content is of another kind than was said, as files named .xls
// often are, is read as what it is.
func (j *job) sheet(format string, data []byte) (rows [][]string, err error) {
	if found := sniff(data); found != "" && !(found == "xlsx" && format == "ods") { // both are ZIP archives
		format = found
	}
	switch format {
	case "xls":
		if sniff(data) == "xls" {
			return nil, failure(j.item, "The file has the format XLS, of Excel before 2007, which cannot be read here: save it as XLSX, or CSV")
		}
		return nil, failure(j.item, "The file cannot be read as a spreadsheet")
	case "ods":
		rows, err = j.ods(data)
	case "rtf":
		rows, err = j.rtf(data)
	case "html":
		rows, err = j.htmlTable(data)
	default:
		rows, err = j.xlsx(data)
	}
	if err != nil {
		return nil, err
	}
	return j.within(rows)
}

// within cuts the rows to the option range, "A2:C5" or the number of the first row.
func (j *job) within(rows [][]string) ([][]string, error) {
	span := strings.ToUpper(strings.TrimSpace(j.text("options.range", "")))
	if span == "" || j.err != nil {
		return rows, j.err
	}
	if first, err := strconv.Atoi(span); err == nil {
		return rows[min(max(first, 0), len(rows)):], nil
	}
	from, to, _ := strings.Cut(span, ":")
	if to == "" {
		to = from
	}
	left, top, err := excelize.CellNameToCoordinates(from)
	if err != nil {
		return nil, failure(j.item, "The range %q is not valid: write it like A1:C5", span)
	}
	right, bottom, err := excelize.CellNameToCoordinates(to)
	if err != nil || right < left || bottom < top {
		return nil, failure(j.item, "The range %q is not valid: write it like A1:C5", span)
	}
	rows = rows[min(top-1, len(rows)):min(bottom, len(rows))]
	cut := make([][]string, len(rows))
	for i, row := range rows {
		cut[i] = row[min(left-1, len(row)):min(right, len(row))]
	}
	return cut, nil
}

// typed makes numbers and booleans of the texts that look like them, unless the node wants texts.
func (j *job) typed(rows [][]string) {
	if j.flag("options.readAsString", false) || j.flag("options.rawData", false) {
		return
	}
	for _, row := range rows {
		for i, cell := range row {
			if cell != "" {
				row[i] = typedCell(gjson.Parse(cell).String())
			}
		}
	}
}

func typedCell(text string) string {
	switch strings.ToUpper(text) {
	case "TRUE":
		return "true"
	case "FALSE":
		return "false"
	}
	if n, err := strconv.ParseFloat(text, 64); err == nil && !math.IsInf(n, 0) && !math.IsNaN(n) && !strings.ContainsAny(text, "xX_pP") {
		if number, err := json.Marshal(n); err == nil {
			return string(number)
		}
	}
	return jsonobject.Quote(text)
}

// htmlTable reads the first table of a page.
func (j *job) htmlTable(data []byte) ([][]string, error) {
	text, err := decode(data, j.text("options.encoding", "utf8"))
	if err != nil {
		return nil, failure(j.item, "%v", err)
	}
	page, err := goquery.NewDocumentFromReader(strings.NewReader(text))
	if err != nil {
		return nil, failure(j.item, "The file cannot be read as HTML: %v", err)
	}
	table := page.Find("table").First()
	if table.Length() == 0 {
		return nil, failure(j.item, "The file holds no table")
	}
	var rows [][]string
	table.Find("tr").Each(func(_ int, tr *goquery.Selection) {
		if tr.Closest("table").Get(0) != table.Get(0) {
			return // of a table within
		}
		row := []string{}
		tr.ChildrenFiltered("td, th").Each(func(_ int, cell *goquery.Selection) {
			value := ""
			if shown := strings.Join(strings.Fields(cell.Text()), " "); shown != "" {
				value = jsonobject.Quote(shown)
			}
			row = append(row, value)
			if span, err := strconv.Atoi(cell.AttrOr("colspan", "1")); err == nil {
				for range min(span, 1000) - 1 {
					row = append(row, "")
				}
			}
		})
		rows = append(rows, row)
	})
	j.typed(rows)
	return rows, j.err
}
