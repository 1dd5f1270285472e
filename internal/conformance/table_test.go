package conformance

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var rewrite = flag.Bool("rewrite", false, "write docs/conformance.md and docs/user-reports.md")

// assertions is how many there are.
const assertions = 130

// better are the assertions in which we differ from n8n on purpose, with the number of
// the quirk that we do not share, if it is one. All others are as in n8n.
var better = map[int]string{
	31: "7.34", 32: "7.36", 33: "7.35", 47: "7.38", 48: "7.39", 61: "", 64: "7.12",
	77: "7.17", 78: "7.16", 80: "7.25", 86: "7.21", 87: "7.20", 89: "7.4", 90: "7.27", 91: "7.18",
	95: "", 96: "", 97: "7.26", 106: "7.22", 107: "7.28", 109: "7.6", 110: "7.2",
	119: "7.3", 120: "7.1", 121: "7.10", 122: "7.7", 123: "7.5", 124: "7.13",
}

// withoutTest are the assertions that no test shows yet.
var withoutTest = []int{}

// TestTable checks that every assertion and every report has its test, and that the
// pages in docs say so.
func TestTable(t *testing.T) {
	all := scan(t)
	t.Run("conformance", func(t *testing.T) {
		missing := []int{}
		for n, list := range all.assertions {
			for _, s := range list {
				quirk, isBetter := better[n]
				kind := map[bool]string{false: "N", true: "I"}[isBetter]
				assert.Equalf(t, kind, s.kind, "%s: kind of assertion %03d", s.path, n)
				assert.Equalf(t, quirk, s.quirk, "%s: quirk of assertion %03d", s.path, n)
				assert.Truef(t, n >= 1 && n <= assertions, "%s: there is no assertion %03d", s.path, n)
			}
		}
		for n := 1; n <= assertions; n++ {
			if len(all.assertions[n]) == 0 {
				missing = append(missing, n)
			}
		}
		assert.Equal(t, withoutTest, missing, "assertions without a test")
		page(t, "conformance.md", conformancePage(all))
	})
	t.Run("user reports", func(t *testing.T) {
		reports, missing := readReports(t), []int{}
		for _, r := range reports {
			if len(all.reports[r.number]) == 0 {
				missing = append(missing, r.number)
			}
		}
		assert.Equal(t, reportsWithoutTest, missing, "reports without a test")
		page(t, "user-reports.md", reportsPage(reports, all))
	})
}

// page compares a page with what it should be, or writes it.
func page(t *testing.T, name, want string) {
	t.Helper()
	path := filepath.Join(root, "docs", name)
	if *rewrite {
		require.NoError(t, os.WriteFile(path, []byte(want), 0o644))
		return
	}
	got, err := os.ReadFile(path)
	require.NoError(t, err)
	if string(got) != want {
		t.Errorf("docs/%s is out of date: run go generate ./internal/conformance", name)
	}
}

var chapters = []struct {
	first int
	title string
}{
	{1, "Basics and data model"}, {12, "Order and scheduling"}, {21, "Nodes with several inputs"}, {34, "Settings of a node"},
	{51, "Limits and stops"}, {57, "Waits"}, {65, "Requests of agents"}, {99, "The agent"}, {114, "Approvals"}, {126, "Agents as tools"},
}

func conformancePage(all *found) string {
	var b strings.Builder
	b.WriteString(`# How reprise behaves, compared with n8n

<!-- Made from the tests by go generate ./internal/conformance; do not edit. -->

Workflows of n8n run here unchanged, so what they rely on has to be the same. Where n8n does something that nobody
wants, reprise does better on purpose. This page lists both, each with the test that shows it. *N* is as in n8n, or as
near to it as another construction can be ("similar"); *I* is better. The tests in
` + "`pkg/engine/testdata/conformance`" + ` are text files that show each event and what came of it.

`)
	same := assertions - len(better)
	fmt.Fprintf(&b, "Of %d assertions %d are as in n8n and %d are better.\n", assertions, same, len(better))
	for i, c := range chapters {
		last := assertions
		if i+1 < len(chapters) {
			last = chapters[i+1].first - 1
		}
		fmt.Fprintf(&b, "\n## %s\n\n| no. | | what | how reprise behaves | shown by |\n|---|---|---|---|---|\n", c.title)
		for n := c.first; n <= last; n++ {
			list := all.assertions[n]
			if len(list) == 0 {
				fmt.Fprintf(&b, "| %03d | | no test yet | | |\n", n)
				continue
			}
			how := "the same"
			if list[0].kind == "I" {
				how = "better"
			}
			var notes []string
			var proofs []proof
			for _, s := range list {
				proofs = append(proofs, s.proof)
				if s.note != "" && !slices.Contains(notes, s.note) {
					notes = append(notes, s.note)
				}
			}
			if len(notes) > 0 {
				if list[0].kind == "N" {
					how = "similar"
				}
				how += ": " + strings.Join(notes, "; ")
			}
			fmt.Fprintf(&b, "| %03d | %s | %s | %s | %s |\n", n, list[0].kind, cell(list[0].text), cell(how), links(proofs))
		}
	}
	return b.String()
}
