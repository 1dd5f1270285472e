package files

import (
	"archive/zip"
	"bytes"
	"encoding/base64"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reprise-engine/reprise/pkg/nodes/nodestest"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

func text(t *testing.T, file workflow.Binary) string {
	t.Helper()
	data, err := base64.StdEncoding.DecodeString(file.Data)
	require.NoError(t, err)
	return string(data)
}

// What one node writes the other reads, in every format, and Spreadsheet File does both.
func TestTablesComeBack(t *testing.T) {
	input := nodestest.Items(`{"n":1.5,"t":"a <b> & {c} \\ é 😀","b":true}`, `{"t":"x"}`)
	want := []string{`{"n":1.5,"t":"a <b> & {c} \\ é 😀","b":true}`, `{"t":"x"}`}
	for _, format := range []string{"html", "ods", "rtf", "xlsx"} {
		for _, make := range []string{"convertToFile", "spreadsheetFile"} {
			kind, parameters := Convert(), `{"operation":"`+format+`","options":{"sheetName":"Mine & yours"}}`
			if make == "spreadsheetFile" {
				kind, parameters = SpreadsheetFile(), `{"operation":"toFile","fileFormat":"`+format+`","options":{"sheetName":"Mine & yours"}}`
			}
			made := nodestest.Run(t, kind, parameters, input)[0]
			require.Len(t, made, 1)
			require.Len(t, made[0].PairedItem, 2)
			require.Equal(t, "spreadsheet."+format, made[0].Binary["data"].FileName)
			require.Equal(t, want, objects(nodestest.Run(t, Extract(), `{"operation":"`+format+`"}`, made)[0]), "%s by %s", format, make)
			require.Equal(t, want, objects(nodestest.Run(t, SpreadsheetFile(), `{}`, made)[0]), "%s is recognised", format)
			require.Equal(t, want, objects(nodestest.Run(t, Extract(), `{"operation":"xls"}`, made)[0]), "%s under another name", format)
			plain := nodestest.Run(t, Extract(), `{"operation":"`+format+`","options":{"headerRow":false,"range":"A2:B2"}}`, made)[0]
			require.Equal(t, []string{`{"row":[1.5,"a <b> & {c} \\ é 😀"]}`}, objects(plain), format)
			require.Len(t, nodestest.Run(t, Extract(), `{"operation":"`+format+`","options":{"range":"1"}}`, made)[0], 1, format)
			call := nodestest.Call(Extract(), `{"operation":"`+format+`","options":{"range":"A2:?"}}`, made)
			_, err := call.Type.Execute(t.Context(), call)
			require.ErrorContains(t, err, "write it like A1:C5")
		}
	}
	made := nodestest.Run(t, Convert(), `{"operation":"ods","options":{"sheetName":"Mine"}}`, input)[0]
	call := nodestest.Call(Extract(), `{"operation":"ods","options":{"sheetName":"Other"}}`, made)
	_, err := call.Type.Execute(t.Context(), call)
	require.ErrorContains(t, err, "does not contain sheet called 'Other'")
}

func TestSpreadsheetFile(t *testing.T) {
	const table = "id;on\n1;TRUE\n0x1f;b\n"
	call := nodestest.Call(SpreadsheetFile(), `{"options":{"delimiter":";"}}`, withFile(`{}`, table))
	call.Node.TypeVersion = 1
	result, err := call.Type.Execute(t.Context(), call)
	require.NoError(t, err)
	require.Equal(t, []string{`{"id":1,"on":true}`, `{"id":"0x1f","on":"b"}`}, objects(result.Outputs[0]), "version 1 has types")
	require.Equal(t, `{"id":"1","on":"TRUE"}`, objects(nodestest.Run(t, SpreadsheetFile(), `{"fileFormat":"csv","options":{"delimiter":";"}}`, withFile(`{}`, table))[0])[0])
	require.Equal(t, "a\n1\n", text(t, nodestest.Run(t, SpreadsheetFile(), `{"operation":"toFile","fileFormat":"csv"}`, nodestest.Items(`{"a":1}`))[0][0].Binary["data"]))
	require.Empty(t, nodestest.Run(t, SpreadsheetFile(), `{"operation":"toFile","fileFormat":"csv"}`, nodestest.Items())[0])
	for parameters, want := range map[string]string{
		`{}`: "save it as XLSX", `{"operation":"toFile"}`: "make XLSX", `{"operation":"toFile","fileFormat":"doc"}`: `"doc" cannot be made`, `{"operation":"x"}`: "choose fromFile or toFile",
		`{"binaryPropertyName":"no"}`: "binary file 'no'", `{"fileFormat":"doc"}`: `as "doc" here`, `{"fileFormat":"xlsx"}`: "save it as XLSX",
	} {
		call := nodestest.Call(SpreadsheetFile(), parameters, withFile(`{}`, "\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1...."))
		_, err := call.Type.Execute(t.Context(), call)
		require.ErrorContains(t, err, want, parameters)
	}
	call = nodestest.Call(SpreadsheetFile(), `{"operation":"toFile"}`, nodestest.Items(`{}`))
	call.Node.OnError = workflow.OnErrorContinue
	result, err = call.Type.Execute(t.Context(), call)
	require.NoError(t, err)
	require.Contains(t, string(result.Outputs[0][0].JSON), "make XLSX")
}

func odsOf(t *testing.T, table string) string {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	entry, err := z.Create("content.xml")
	require.NoError(t, err)
	_, err = entry.Write([]byte(strings.Replace(odsHead, `table:name="`, `table:name="S">`, 1) + table + odsTail))
	require.NoError(t, err)
	require.NoError(t, z.Close())
	return b.String()
}

// Sheets as LibreOffice writes them: what is repeated, covered, commented and empty up to the end of the sheet.
func TestODS(t *testing.T) {
	sheet := odsOf(t, `<table:table-column table:number-columns-repeated="1024"/>
<table:table-row><table:table-cell office:value-type="string"><office:annotation><text:p>note</text:p></office:annotation><text:p>a</text:p></table:table-cell><table:table-cell/><table:table-cell office:value-type="string"><text:p>b<text:s text:c="2"/>c</text:p></table:table-cell><table:table-cell table:number-columns-repeated="16000"/></table:table-row>
<table:table-row table:number-rows-repeated="2"><table:table-cell office:value-type="float" office:value="1" table:number-columns-repeated="3"><text:p>1,0</text:p></table:table-cell></table:table-row>
<table:table-row><table:table-cell office:value-type="date" office:date-value="2026-01-02"><text:p>02.01.26</text:p></table:table-cell><table:covered-table-cell/><table:table-cell office:value-type="boolean" office:boolean-value="true"><text:p>WAHR</text:p></table:table-cell></table:table-row>
<table:table-row table:number-rows-repeated="1048000"><table:table-cell table:number-columns-repeated="16384"/></table:table-row>`)
	require.Equal(t, []string{`{"a":1,"__EMPTY_1":1,"b  c":1}`, `{"a":1,"__EMPTY_1":1,"b  c":1}`, `{"a":"02.01.26","b  c":true}`},
		objects(nodestest.Run(t, Extract(), `{"operation":"ods"}`, withFile(`{}`, sheet))[0]))
	require.Equal(t, `{"a":"1,0","__EMPTY_1":"1,0","b  c":"1,0"}`, objects(nodestest.Run(t, Extract(), `{"operation":"ods","options":{"readAsString":true}}`, withFile(`{}`, sheet))[0])[0])
	for _, bomb := range []string{
		`<table:table-row table:number-rows-repeated="1000000"><table:table-cell office:value-type="float" office:value="1" table:number-columns-repeated="16000"/></table:table-row>`,
		`<table:table-row table:number-rows-repeated="9000000"/><table:table-row><table:table-cell office:value-type="float" office:value="1"/></table:table-row>`,
		`<table:table-row><table:table-cell table:number-columns-repeated="9000000"/><table:table-cell office:value-type="float" office:value="1"/></table:table-row>`,
	} {
		call := nodestest.Call(Extract(), `{"operation":"ods"}`, withFile(`{}`, odsOf(t, bomb)))
		_, err := call.Type.Execute(t.Context(), call)
		require.ErrorContains(t, err, "too many cells")
	}
	for _, broken := range []string{sheet[:len(sheet)/2], odsOf(t, "<table:table-row>"), "PK\x03\x04opendocument.spreadsheet"} {
		call := nodestest.Call(Extract(), `{"operation":"ods"}`, withFile(`{}`, broken))
		_, err := call.Type.Execute(t.Context(), call)
		require.Error(t, err)
	}
}

func TestHTMLTable(t *testing.T) {
	page := `<p>x</p><table><thead><tr><th> a
 b</th><th colspan=2>c</th></tr></thead><tbody><tr><td>1<table><tr><td>in</td></tr></table></td><td></td><td>TRUE</td></tr></tbody></table><table><tr><td>other</td></tr></table>`
	require.Equal(t, []string{`{"a b":"1in","__EMPTY_2":true}`}, objects(nodestest.Run(t, Extract(), `{"operation":"html"}`, withFile(`{}`, page))[0]))
}

// A table as word processors write it.
func TestRTF(t *testing.T) {
	document := `{\rtf1\ansi{\fonttbl{\f0 Arial;}}{\*\generator Writer;}{\info{\title T}}\pard before\par
\trowd\cellx100\cellx200\pard\intbl\b na\'efve\b0\cell {\i b}\cell\row
\trowd\cellx100\cellx200\pard\intbl 1\cell {\uc1\u8364?} \{x\}\cell\row\pard after}`
	require.Equal(t, []string{`{"naïve":1,"b":"€ {x}"}`}, objects(nodestest.Run(t, Extract(), `{"operation":"rtf"}`, withFile(`{}`, document))[0]))
	for n := range len(document) {
		call := nodestest.Call(Extract(), `{"operation":"rtf"}`, withFile(`{}`, document[:n]))
		_, _ = call.Type.Execute(t.Context(), call) // no crash
	}
}

func TestCalendar(t *testing.T) {
	call := nodestest.Call(Convert(), `{"operation":"iCal","title":"Lunch; with, me","start":"2026-03-01T12:00:00","end":"2026-03-01T13:00:00","additionalFields":{
		"description":"={{ $json.d }}","location":"Here","useWorkflowTimezone":true,"recurrenceRule":"FREQ=WEEKLY;COUNT=2","uid":"u1","sequence":3,
		"attendeesUi":{"attendeeValues":[{"name":"A \"B\"","email":"a@b.example","rsvp":true}]},"organizerUi":{"organizerValues":{"name":"O","email":"o@b.example"}}}}`, nodestest.Items(`{"d":"`+strings.Repeat("é", 60)+`\nline two\r\nATTENDEE:x"}`))
	call.Workflow.Timezone = "Europe/Berlin"
	call.Now = func() time.Time { return time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC) }
	result, err := call.Type.Execute(t.Context(), call)
	require.NoError(t, err)
	file := result.Outputs[0][0].Binary["data"]
	require.Equal(t, []string{"event.ics", "text/calendar"}, []string{file.FileName, file.MimeType})
	written := text(t, file)
	for line := range strings.SplitSeq(strings.TrimSuffix(written, "\r\n"), "\r\n") {
		require.LessOrEqual(t, len(line), 75)
	}
	require.Contains(t, written, "DTSTART:20260301T110000Z\r\nDTEND:20260301T120000Z\r\n")
	read := nodestest.Run(t, Extract(), `{"operation":"fromIcs","destinationKey":"c"}`, result.Outputs[0])[0]
	require.JSONEq(t, `{"c":{"version":"2.0","prodId":"-//reprise//EN","method":"PUBLISH","events":[{"uid":"u1","summary":"Lunch; with, me",
		"stamp":{"date":"2026-01-01T00:00:00.000Z","type":"DATE-TIME"},"start":{"date":"2026-03-01T11:00:00.000Z","type":"DATE-TIME"},"end":{"date":"2026-03-01T12:00:00.000Z","type":"DATE-TIME"},
		"description":"`+strings.Repeat("é", 60)+`\nline two\nATTENDEE:x","location":"Here","recurrenceRule":{"frequency":"WEEKLY","count":2},"sequence":3,
		"organizer":{"name":"O","email":"o@b.example"},"attendees":[{"name":"A 'B'","email":"a@b.example","rsvp":true}]}]}}`, string(read[0].JSON))

	whole := text(t, nodestest.Run(t, Convert(), `{"operation":"iCal","title":"Day","start":"2026-03-01","allDay":true}`, nodestest.Items(`{}`))[0][0].Binary["data"])
	require.Contains(t, whole, "DTSTART;VALUE=DATE:20260301\r\nDTEND;VALUE=DATE:20260302\r\n")
	zoned := "BEGIN:VCALENDAR\nBEGIN:VTIMEZONE\nTZID:x\nBEGIN:STANDARD\nDTSTART:19700101T000000\nEND:STANDARD\nEND:VTIMEZONE\nBEGIN:VEVENT\nDTSTART;TZID=Europe/Berlin:20260701T120000\nSUM\n MARY:Long\n  er\nBEGIN:VALARM\nSUMMARY:no\nEND:VALARM\nEND:VEVENT\nEND:VCALENDAR"
	require.Equal(t, []string{`{"data":{"events":[{"start":{"timezone":"Europe/Berlin","date":"2026-07-01T10:00:00.000Z","type":"DATE-TIME"},"summary":"Long er"}]}}`},
		objects(nodestest.Run(t, Extract(), `{"operation":"fromIcs"}`, withFile(`{}`, zoned))[0]))
}
