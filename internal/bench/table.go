package bench

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// Table is a part of a report as people read it.
type Table struct {
	Title   string
	Columns []string
	Rows    [][]string
}

func (t *Table) add(cells ...string) { t.Rows = append(t.Rows, cells) }

// print writes it for a terminal: names to the left, figures to the right.
func (t *Table) print(out io.Writer) {
	width := make([]int, len(t.Columns))
	for _, row := range append([][]string{t.Columns}, t.Rows...) {
		for i, cell := range row {
			width[i] = max(width[i], utf8.RuneCountInString(cell))
		}
	}
	if t.Title != "" {
		fmt.Fprintf(out, "\n%s\n", t.Title)
	}
	for _, row := range append([][]string{t.Columns}, t.Rows...) {
		var line strings.Builder
		for i, cell := range row {
			pad := strings.Repeat(" ", width[i]-utf8.RuneCountInString(cell))
			if i == 0 {
				line.WriteString("  " + cell + pad)
			} else {
				line.WriteString("  " + pad + cell)
			}
		}
		fmt.Fprintln(out, strings.TrimRight(line.String(), " "))
	}
}

// Markdown writes it for a document.
func (t *Table) Markdown(out io.Writer) {
	if t.Title != "" {
		fmt.Fprintf(out, "%s\n\n", t.Title)
	}
	row := func(cells []string) {
		fmt.Fprintf(out, "| %s |\n", strings.ReplaceAll(strings.Join(cells, "\x00"), "\x00", " | "))
	}
	row(t.Columns)
	rule := make([]string, len(t.Columns))
	for i := range rule {
		rule[i] = "---:"
	}
	rule[0] = "---"
	row(rule)
	for _, cells := range t.Rows {
		row(cells)
	}
}

// printTables writes a report for people.
func printTables(out io.Writer, heading string, tables []Table, e *Environment) {
	fmt.Fprintln(out, heading)
	for i := range tables {
		if tables[i].Title == "" {
			fmt.Fprintln(out)
		}
		tables[i].print(out)
	}
	e.print(out)
}

// The units of a table's cells.
func ms(v float64) string                      { return fmt.Sprintf("%.1f ms", v) }
func fine(v float64) string                    { return fmt.Sprintf("%.2f ms", v) }
func rate(v float64) string                    { return fmt.Sprintf("%.0f/s", v) }
func times(v float64) string                   { return fmt.Sprintf("%.2f", v) }
func count[N int | int64 | uint64](n N) string { return fmt.Sprintf("%d", n) }

// size of bytes.
func size(bytes float64) string {
	switch {
	case bytes >= 10<<20 || bytes <= -10<<20:
		return fmt.Sprintf("%.0f MB", bytes/(1<<20))
	case bytes >= 10<<10 || bytes <= -10<<10:
		return fmt.Sprintf("%.1f KB", bytes/(1<<10))
	}
	return fmt.Sprintf("%.0f bytes", bytes)
}

// optional is a figure that could not be known everywhere.
func optional(v *float64, unit func(float64) string) string {
	if v == nil {
		return "not known"
	}
	return unit(*v)
}

// per divides, and is 0 when there is nothing to divide by.
func per(v, by float64) float64 {
	if by == 0 {
		return 0
	}
	return v / by
}
