package bench

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
)

// mark is where a document wants the tables of a report: between
//
//	<!-- bench: FILE -->
//	<!-- bench: end -->
//
// FILE is a report in JSON.
var mark = regexp.MustCompile(`(?ms)^<!-- bench: (\S+) -->\n(.*?)^<!-- bench: end -->\n`)

// FillTables puts the tables of reports where a document wants them, and leaves the rest as it is.
// read gets the names in the marks, and returns nil for a report that was not made yet.
func FillTables(document []byte, read func(name string) (Result, error)) ([]byte, error) {
	var problem error
	filled := mark.ReplaceAllFunc(document, func(part []byte) []byte {
		name := string(mark.FindSubmatch(part)[1])
		var out bytes.Buffer
		fmt.Fprintf(&out, "<!-- bench: %s -->\n", name)
		r, err := read(name)
		switch {
		case err != nil:
			if problem == nil {
				problem = err
			}
			return part
		case r == nil:
			out.WriteString("Not measured yet.\n")
		default:
			writeTables(&out, r)
		}
		out.WriteString("<!-- bench: end -->\n")
		return out.Bytes()
	})
	return filled, problem
}

// writeTables writes a report's tables and where they were made.
func writeTables(out *bytes.Buffer, r Result) {
	for _, t := range r.Tables() {
		t.Markdown(out)
		out.WriteString("\n")
	}
	e := r.environment()
	made := e.String()
	if e.Revision != "" {
		made += ", revision " + strings.TrimSuffix(e.Revision, "+")
	}
	fmt.Fprintf(out, "(%s)\n", made)
}
