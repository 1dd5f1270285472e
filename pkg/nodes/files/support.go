package files

import "github.com/reprise-engine/reprise/pkg/node"

// alwaysSmall is why the option compression changes nothing.
const alwaysSmall = "XLSX and ODS are always compressed"

// support declares which settings are honoured.
var support = map[string]node.Support{
	base + "extractFromFile": {
		Options: []string{
			"delimiter", "encoding", "fromLine", "headerRow", "includeEmptyCells", "joinPages", "keepSource", "maxPages", "maxRowCount", "password", "range",
			"readAsString", "relaxQuotes", "sheetName", "stripBOM",
		},
		Ignored: map[string]string{"enableBOM": "a byte order mark is always left out", "rawData": "cells are read by their values, not as they are shown"},
		Limits:  []node.Limit{{Parameter: "operation", Values: []string{"xls"}, Advice: "convert the file to XLSX; files named .xls that hold XLSX or HTML are read"}},
	},
	base + "convertToFile": {
		Options: []string{"addBOM", "dataIsBase64", "delimiter", "encoding", "fileName", "format", "headerRow", "mimeType", "sheetName"},
		Ignored: map[string]string{"compression": alwaysSmall},
		Limits:  []node.Limit{{Parameter: "operation", Values: []string{"xls"}, Advice: "make XLSX or CSV"}},
	},
	base + "spreadsheetFile": {
		Options: []string{
			"delimiter", "encoding", "fileName", "fromLine", "headerRow", "includeEmptyCells", "maxRowCount", "range", "readAsString", "relaxQuotes", "sheetName",
		},
		Ignored: map[string]string{"compression": alwaysSmall, "rawData": "cells are read by their values, not as they are shown"},
		Limits:  []node.Limit{{Parameter: "fileFormat", Values: []string{"xls"}, Advice: "use XLSX or CSV; files named .xls that hold XLSX or HTML are read"}},
	},
	base + "compression": {Options: []string{}},
	base + "moveBinaryData": {Options: []string{
		"addBOM", "dataIsBase64", "encoding", "fileName", "jsonParse", "keepAsBase64", "keepSource", "mimeType", "stripBOM", "useRawData",
	}},
	base + "readPDF": {Options: []string{}},
}
