package files

import (
	"archive/zip"
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/reprise-engine/reprise/pkg/nodes/jsonobject"
)

// maxCells bounds the cells of a sheet: a file of a few bytes can say that it repeats one a million times.
const maxCells = 5_000_000

// ods reads a sheet of an OpenDocument spreadsheet.
func (j *job) ods(data []byte) ([][]string, error) {
	archive, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return nil, failure(j.item, "The file cannot be read as ODS: %v", err)
	}
	content, err := archive.Open("content.xml")
	if err != nil {
		return nil, failure(j.item, "The file cannot be read as ODS: it has no content.xml")
	}
	defer content.Close()
	name, asText := j.text("options.sheetName", ""), j.flag("options.readAsString", false)
	if j.err != nil {
		return nil, j.err
	}
	limited := &io.LimitedReader{R: content, N: 4 * maxParsedBytes}
	s := &odsSheet{xml: xml.NewDecoder(limited), asText: asText}
	found, err := s.find(name)
	switch {
	case limited.N <= 0:
		return nil, failure(j.item, "The file is too large when it is unpacked")
	case err != nil:
		return nil, failure(j.item, "The file cannot be read as ODS: %v", err)
	case !found:
		return nil, failure(j.item, "Spreadsheet does not contain sheet called '%s'!", name)
	}
	return s.rows, nil
}

// odsSheet collects the cells of a sheet from content.xml.
type odsSheet struct {
	xml    *xml.Decoder
	asText bool
	rows   [][]string
	cells  int
}

var errTooManyCells = errors.New("the sheet has too many cells")

// find reads the sheet of a name, "" for the first.
func (s *odsSheet) find(name string) (bool, error) {
	for {
		token, err := s.xml.Token()
		if errors.Is(err, io.EOF) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		start, ok := token.(xml.StartElement)
		if !ok || start.Name.Local != "table" {
			continue
		}
		if name != "" && attribute(start, "name") != name {
			if err := s.xml.Skip(); err != nil {
				return false, err
			}
			continue
		}
		return true, s.table()
	}
}

func attribute(e xml.StartElement, name string) string {
	for _, a := range e.Attr {
		if a.Name.Local == name {
			return a.Value
		}
	}
	return ""
}

func repeated(e xml.StartElement, name string) int {
	n, err := strconv.Atoi(attribute(e, name))
	if err != nil || n < 1 {
		return 1
	}
	return n
}

// table reads rows up to the end of the table. Empty ones count only when others follow.
func (s *odsSheet) table() error {
	empty, depth := 0, 0
	for {
		token, err := s.xml.Token()
		if err != nil {
			return err
		}
		switch t := token.(type) {
		case xml.EndElement:
			if t.Name.Local == "table" {
				if depth == 0 {
					return nil
				}
				depth--
			}
		case xml.StartElement:
			switch t.Name.Local {
			case "table":
				depth++ // within a cell's drawing
			case "table-row":
				times := repeated(t, "number-rows-repeated")
				row, err := s.row()
				if err != nil {
					return err
				}
				if len(row) == 0 {
					empty += times
					continue
				}
				if s.cells += empty + times*len(row); s.cells > maxCells {
					return errTooManyCells
				}
				for range empty {
					s.rows = append(s.rows, nil)
				}
				for empty = 0; times > 0; times-- {
					s.rows = append(s.rows, append([]string(nil), row...))
				}
			}
		}
	}
}

func (s *odsSheet) row() (row []string, err error) {
	empty := 0
	for {
		token, err := s.xml.Token()
		if err != nil {
			return nil, err
		}
		switch t := token.(type) {
		case xml.EndElement:
			if t.Name.Local == "table-row" {
				return row, nil
			}
		case xml.StartElement:
			if t.Name.Local != "table-cell" && t.Name.Local != "covered-table-cell" {
				continue
			}
			times := repeated(t, "number-columns-repeated")
			cell, err := s.cell(t)
			if err != nil {
				return nil, err
			}
			if cell == "" {
				empty += times
				continue
			}
			if len(row)+empty+times > maxCells {
				return nil, errTooManyCells
			}
			for range empty {
				row = append(row, "")
			}
			for empty = 0; times > 0; times-- {
				row = append(row, cell)
			}
		}
	}
}

// cell is the value of a cell as JSON, "" for an empty one.
func (s *odsSheet) cell(start xml.StartElement) (string, error) {
	var text strings.Builder
	paragraphs, depth, skipped := 0, 1, 0
	for depth > 0 {
		token, err := s.xml.Token()
		if err != nil {
			return "", err
		}
		switch t := token.(type) {
		case xml.StartElement:
			depth++
			switch {
			case skipped > 0 || t.Name.Local == "annotation":
				skipped++
			case t.Name.Local == "p":
				if paragraphs++; paragraphs > 1 {
					text.WriteByte('\n')
				}
			case t.Name.Local == "s":
				text.WriteString(strings.Repeat(" ", min(repeated(t, "c"), 1000)))
			case t.Name.Local == "tab":
				text.WriteByte('\t')
			case t.Name.Local == "line-break":
				text.WriteByte('\n')
			}
		case xml.EndElement:
			depth--
			skipped = max(skipped-1, 0)
		case xml.CharData:
			if skipped == 0 && paragraphs > 0 {
				text.Write(t)
			}
		}
	}
	shown := strings.TrimRight(text.String(), "\n")
	kind := attribute(start, "value-type")
	if s.asText && shown != "" {
		return jsonobject.Quote(shown), nil
	}
	switch kind {
	case "float", "percentage", "currency":
		if value := attribute(start, "value"); gjson.Valid(value) {
			return typedCell(value), nil
		}
	case "boolean":
		return strconv.FormatBool(attribute(start, "boolean-value") == "true"), nil
	}
	if shown == "" {
		shown = attribute(start, "string-value") + attribute(start, "date-value") + attribute(start, "time-value")
	}
	if shown == "" {
		return "", nil
	}
	return jsonobject.Quote(shown), nil
}

const (
	odsType     = "application/vnd.oasis.opendocument.spreadsheet"
	odsManifest = `<?xml version="1.0" encoding="UTF-8"?>
<manifest:manifest xmlns:manifest="urn:oasis:names:tc:opendocument:xmlns:manifest:1.0" manifest:version="1.2"><manifest:file-entry manifest:full-path="/" manifest:media-type="` + odsType + `"/><manifest:file-entry manifest:full-path="content.xml" manifest:media-type="text/xml"/></manifest:manifest>`
	odsHead = `<?xml version="1.0" encoding="UTF-8"?>
<office:document-content xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0" xmlns:table="urn:oasis:names:tc:opendocument:xmlns:table:1.0" xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0" office:version="1.2"><office:body><office:spreadsheet><table:table table:name="`
	odsTail = `</table:table></office:spreadsheet></office:body></office:document-content>`
)

// writeODS writes rows as an OpenDocument spreadsheet.
func writeODS(w io.Writer, sheet string, header bool, columns []string, rows []map[string]gjson.Result) error {
	z := zip.NewWriter(w)
	// The type comes first and is not compressed, so that programs can tell the file by its first bytes.
	for _, part := range [][2]string{{"mimetype", odsType}, {"META-INF/manifest.xml", odsManifest}} {
		entry, err := z.CreateHeader(&zip.FileHeader{Name: part[0], Method: zip.Store})
		if err != nil {
			return err
		}
		if _, err := io.WriteString(entry, part[1]); err != nil {
			return err
		}
	}
	entry, err := z.Create("content.xml")
	if err != nil {
		return err
	}
	var b bytes.Buffer
	escape := func(text string) { _ = xml.EscapeText(&b, []byte(text)) }
	b.WriteString(odsHead)
	escape(sheet)
	b.WriteString(`">`)
	line := func(cell func(i int)) error {
		b.WriteString("<table:table-row>")
		for i := range columns {
			cell(i)
		}
		b.WriteString("</table:table-row>")
		_, err := b.WriteTo(entry)
		return err
	}
	text := func(value string) {
		b.WriteString(`<table:table-cell office:value-type="string">`)
		for paragraph := range strings.SplitSeq(value, "\n") {
			b.WriteString("<text:p>")
			escape(paragraph)
			b.WriteString("</text:p>")
		}
		b.WriteString("</table:table-cell>")
	}
	if header {
		if err := line(func(i int) { text(columns[i]) }); err != nil {
			return err
		}
	}
	for _, row := range rows {
		err := line(func(i int) {
			switch value := row[columns[i]]; value.Type {
			case gjson.Null:
				b.WriteString("<table:table-cell/>")
			case gjson.Number:
				b.WriteString(`<table:table-cell office:value-type="float" office:value="` + value.Raw + `"><text:p>` + value.Raw + "</text:p></table:table-cell>")
			case gjson.True, gjson.False:
				b.WriteString(`<table:table-cell office:value-type="boolean" office:boolean-value="` + value.Raw + `"><text:p>` + strings.ToUpper(value.Raw) + "</text:p></table:table-cell>")
			default:
				text(value.String())
			}
		})
		if err != nil {
			return err
		}
	}
	b.WriteString(odsTail)
	if _, err := b.WriteTo(entry); err != nil {
		return err
	}
	return z.Close()
}
