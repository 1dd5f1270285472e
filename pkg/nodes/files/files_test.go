package files

import (
	"encoding/base64"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-engine/reprise/pkg/node"
	"github.com/reprise-engine/reprise/pkg/nodes/nodestest"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

func withFile(object, content string) workflow.Items {
	items := nodestest.Items(object)
	items[0].Binary = map[string]workflow.Binary{"data": {FileName: "f", Data: base64.StdEncoding.EncodeToString([]byte(content))}}
	return items
}

func objects(items workflow.Items) []string {
	list := []string{}
	for _, item := range items {
		list = append(list, string(item.JSON))
	}
	return list
}

func TestExtract(t *testing.T) {
	for _, tt := range []struct {
		name, parameters, content string
		want                      []string
	}{
		{"csv", `{}`, "\ufeffid,name\n1,\"a, b\"\n2,\n", []string{`{"id":"1","name":"a, b"}`, `{"id":"2","name":""}`}},
		{"csv, semicolon, no header", `{"options":{"delimiter":";","headerRow":false}}`, "1;2\n3;4\n", []string{`{"row":["1","2"]}`, `{"row":["3","4"]}`}},
		{"csv, two rows of three", `{"options":{"maxRowCount":2}}`, "a\n1\n2\n3\n", []string{`{"a":"1"}`, `{"a":"2"}`}},
		{"csv, later line", `{"options":{"fromLine":2}}`, "title\na\n1\n", []string{`{"a":"1"}`}},
		{"csv, latin1", `{"options":{"encoding":"latin1"}}`, "a\ncaf\xe9\n", []string{`{"a":"café"}`}},
		{"json", `{"operation":"fromJson"}`, `{"b":1,"a":2}`, []string{`{"data":{"b":1,"a":2}}`}},
		{"json, elsewhere, beside the item", `{"operation":"fromJson","destinationKey":"x.y","options":{"keepSource":"json"}}`, `[1]`, []string{`{"k":1,"x":{"y":[1]}}`}},
		{"text", `{"operation":"text"}`, "\ufeffhi", []string{`{"data":"hi"}`}},
		{"xml", `{"operation":"xml","destinationKey":"doc"}`, "<a/>", []string{`{"doc":"<a/>"}`}},
		{"base64", `{"operation":"binaryToPropery"}`, "hi", []string{`{"data":"aGk="}`}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			require.Equal(t, tt.want, objects(nodestest.Run(t, Extract(), tt.parameters, withFile(`{"k":1}`, tt.content))[0]))
		})
	}
	kept := nodestest.Run(t, Extract(), `{"operation":"text","options":{"keepSource":"both"}}`, withFile(`{"k":1}`, "x"))[0]
	require.Equal(t, `{"k":1,"data":"x"}`, string(kept[0].JSON))
	require.Contains(t, kept[0].Binary, "data")
}

func TestBadFilesAreErrors(t *testing.T) {
	for parameters, want := range map[string]string{
		`{"binaryPropertyName":"other"}`:                     "binary file 'other', but none was found [item 0]",
		`{"operation":"fromJson"}`:                           "valid JSON",
		`{"operation":"xlsx"}`:                               "cannot be read as XLSX",
		`{"operation":"pdf"}`:                                "PDF cannot be read",
		`{"operation":"ods"}`:                                `cannot be read as ODS`,
		`{"operation":"rtf"}`:                                `cannot be read as RTF`,
		`{"operation":"xls"}`:                                `cannot be read as a spreadsheet`,
		`{"operation":"html"}`:                               `holds no table`,
		`{"operation":"fromIcs"}`:                            `does not hold a calendar`,
		`{"operation":"docx"}`:                               `cannot be read as "docx" here`,
		`{"operation":"text","options":{"encoding":"what"}}`: `encoding "what" is not known`,
		`{}`: "no valid CSV",
	} {
		call := nodestest.Call(Extract(), parameters, withFile(`{}`, "a\n\"b"))
		_, err := call.Type.Execute(t.Context(), call)
		require.ErrorContains(t, err, want, parameters)
		call.Node.OnError = workflow.OnErrorContinue
		result, err := call.Type.Execute(t.Context(), call)
		require.NoError(t, err)
		require.Contains(t, string(result.Outputs[0][0].JSON), `"error":`)
	}
}

func TestConvert(t *testing.T) {
	input := nodestest.Items(`{"a":1,"b":{"c":"x,y"}}`, `{"d":true,"a":2.5}`)
	for _, tt := range []struct {
		name, parameters, want string
		file                   workflow.Binary
	}{
		{"csv", `{}`, "a,b.c,d\n1,\"x,y\",\n2.5,,true\n", workflow.Binary{FileName: "spreadsheet.csv", FileExtension: "csv", MimeType: "text/csv", FileType: "text", FileSize: "27 B"}},
		{"csv, named", `{"options":{"fileName":"x.csv","headerRow":false}}`, "1,\"x,y\",\n2.5,,true\n", workflow.Binary{FileName: "x.csv", FileExtension: "csv", MimeType: "text/csv", FileType: "text", FileSize: "19 B"}},
		{"json", `{"operation":"toJson"}`, `[{"a":1,"b":{"c":"x,y"}},{"d":true,"a":2.5}]`, workflow.Binary{FileName: "file.json", FileExtension: "json", MimeType: "application/json", FileType: "json", FileSize: "44 B"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			items := nodestest.Run(t, Convert(), tt.parameters, input)[0]
			require.Len(t, items, 1)
			require.Len(t, items[0].PairedItem, 2)
			tt.file.Data = base64.StdEncoding.EncodeToString([]byte(tt.want))
			require.Equal(t, tt.file, items[0].Binary["data"])
		})
	}
	one := func(parameters, object string) string {
		items := nodestest.Run(t, Convert(), parameters, nodestest.Items(object))[0]
		data, err := base64.StdEncoding.DecodeString(items[0].Binary["data"].Data)
		require.NoError(t, err)
		return string(data)
	}
	require.Equal(t, "hi", one(`{"operation":"toText","sourceProperty":"a.b"}`, `{"a":{"b":"hi"}}`))
	require.Equal(t, "hi", one(`{"operation":"toBinary","sourceProperty":"x"}`, `{"x":"aGk="}`))
	require.Equal(t, "hi", one(`{"operation":"toBinary","sourceProperty":"x"}`, `{"x":"data:text/plain;base64,aGk="}`))
	require.Equal(t, "{\n  \"x\": 1\n}", one(`{"operation":"toJson","mode":"each","options":{"format":true}}`, `{"x":1}`))
	for parameters, want := range map[string]string{
		`{"operation":"toBinary","sourceProperty":"x"}`: "no valid base64", `{"operation":"toText","sourceProperty":"y"}`: `"y" is not set`, `{"operation":"docx"}`: `"docx" cannot be made here`, `{"operation":"xls"}`: "make XLSX",
		`{"operation":"iCal","start":"soon"}`: "is no date", `{"operation":"iCal","start":"2026-02-01","end":"2026-01-01"}`: "ends before it starts",
	} {
		call := nodestest.Call(Convert(), parameters, nodestest.Items(`{"x":"%"}`, `{"x":"%"}`))
		_, err := call.Type.Execute(t.Context(), call)
		require.ErrorContains(t, err, want)
		call.Node.OnError = workflow.OnErrorContinue
		result, err := call.Type.Execute(t.Context(), call)
		require.NoError(t, err)
		require.Contains(t, string(result.Outputs[0][0].JSON), `"error":`)
		lineage := len(result.Outputs[0]) + len(result.Outputs[0][0].PairedItem)
		require.Equal(t, 3, lineage, "two errors of one item each, or one of both")
	}
}

// A spreadsheet comes back as it was made, through a store.
func TestSpreadsheetsComeBack(t *testing.T) {
	files := &node.Files{Store: &node.MemoryFiles{}, Execution: "e", InlineBytes: 1}
	call := nodestest.Call(Convert(), `{"operation":"xlsx","options":{"sheetName":"Mine"}}`, nodestest.Items(`{"n":1.5,"t":"001","b":true}`, `{"t":"x"}`))
	call.Files = files
	made, err := call.Type.Execute(t.Context(), call)
	require.NoError(t, err)
	require.Equal(t, "memory:e/1", made.Outputs[0][0].Binary["data"].ID)
	read := nodestest.Call(Extract(), `{"operation":"xlsx","options":{"sheetName":"Mine"}}`, made.Outputs[0])
	read.Files = files
	got, err := read.Type.Execute(t.Context(), read)
	require.NoError(t, err)
	require.Equal(t, []string{`{"n":1.5,"t":"001","b":true}`, `{"t":"x"}`}, objects(got.Outputs[0]))
}
