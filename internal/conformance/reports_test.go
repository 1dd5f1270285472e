package conformance

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// reportsWithoutTest are the reports that no test is about yet.
var reportsWithoutTest = []int{}

// report is a fault that users met in another system.
type report struct {
	chapter string // set on the first of one
	number  int
	where   string // the public thread
	fault   string
	ours    string // what we do
}

// readReports reads testdata/reports.md: the page without its last column.
func readReports(t *testing.T) []report {
	t.Helper()
	text, err := os.ReadFile("testdata/reports.md")
	require.NoError(t, err)
	var list []report
	chapter := ""
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if title, ok := strings.CutPrefix(line, "## "); ok {
			chapter = title
			continue
		}
		cells := strings.Split(strings.Trim(line, "|"), "|")
		n, err := strconv.Atoi(strings.TrimSpace(cells[0]))
		if err != nil {
			continue // prose, or a table's head
		}
		require.Lenf(t, cells, 4, "report %d: want number, thread, fault and what we do", n)
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
			require.NotEmptyf(t, cells[i], "report %d", n)
		}
		if len(list) > 0 {
			require.Greater(t, n, list[len(list)-1].number, "reports are in order")
		}
		list = append(list, report{chapter: chapter, number: n, where: cells[1], fault: cells[2], ours: cells[3]})
		chapter = ""
	}
	wanted := 0
	for n := 1; n <= 118; n++ {
		if n > 57 && n < 88 || n > 92 && n < 117 {
			continue // they are about processes and servers, see the tests of internal/crashtest
		}
		wanted++
	}
	require.Len(t, list, wanted)
	return list
}

func reportsPage(reports []report, all *found) string {
	var b strings.Builder
	b.WriteString(`# Faults that users met elsewhere

<!-- Made from internal/conformance/testdata/reports.md and the tests by go generate ./internal/conformance; do not edit. -->

Users of systems that run agents and workflows report their faults in public. This page lists such reports about
agents, tools, approvals, sub-workflows, waits and retries: what people met, what reprise does in that place, and the
tests that show it. A thread is named by its tracker and number; "n8n" is n8n-io/n8n, "langgraph" is
langchain-ai/langgraph, and "PR" a pull request.
`)
	for _, r := range reports {
		if r.chapter != "" {
			fmt.Fprintf(&b, "\n## %s\n\n| no. | reported | what people met | what reprise does | shown by |\n|---|---|---|---|---|\n", r.chapter)
		}
		shownBy := links(all.reports[r.number])
		if shownBy == "" {
			shownBy = "no test yet"
		}
		fmt.Fprintf(&b, "| %d | %s | %s | %s | %s |\n", r.number, cell(r.where), cell(r.fault), cell(r.ours), shownBy)
	}
	return b.String()
}
