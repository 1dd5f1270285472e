package bench

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func toolsReport(speed, p50 float64) *ToolsReport {
	return &ToolsReport{
		Scenario: ScenarioTools,
		Rows: []ToolRow{
			{Name: "5 tools", Tools: 5, P50: p50, CPU: 2},
			{Name: "50 tools", Tools: 50, P50: 10 * p50, CPU: 1},
		},
		Environment: Environment{GoVersion: "go1", CPUs: 2, SpeedBefore: speed, SpeedAfter: speed},
	}
}

func TestCompare(t *testing.T) {
	c, err := Compare(toolsReport(100, 4), toolsReport(102, 6))
	require.NoError(t, err)
	require.Equal(t, ScenarioTools, c.Scenario)
	require.Empty(t, c.Notes)
	ratios := map[string]float64{}
	for _, f := range c.Figures {
		if f.Ratio != nil {
			ratios[f.Name] = *f.Ratio
		}
		require.NotContains(t, f.Name, "machine_")
	}
	require.Equal(t, 1.5, ratios["5 tools: p50_ms"])
	require.Equal(t, 1.5, ratios["50 tools: p50_ms"])
	require.Equal(t, 1.0, ratios["5 tools: cpu_ms_per_tool"])
	require.NotContains(t, ratios, "5 tools: max_ms", "there is no ratio to 0")
	var out bytes.Buffer
	c.Print(&out)
	require.Contains(t, out.String(), "second by first")
	require.Contains(t, out.String(), "1.50")
	require.Contains(t, out.String(), "differ by some per cent")
}

func TestCompareSaysWhatSpeaksAgainstIt(t *testing.T) {
	a, b := toolsReport(100, 4), toolsReport(50, 6)
	b.CPUs, b.GoVersion, b.SpeedAfter = 4, "go2", 40
	b.Rows = b.Rows[:1]
	b.Rows = append(b.Rows, ToolRow{Name: "500 tools", P50: 3})
	c, err := Compare(a, b)
	require.NoError(t, err)
	require.Len(t, c.Notes, 4)
	require.Contains(t, c.Notes[0], "CPUs differs: 2 and 4")
	require.Contains(t, c.Notes[1], "Go differs")
	require.Contains(t, c.Notes[2], "0.45 times as much")
	require.Contains(t, c.Notes[3], "changed during the second report")
	for _, f := range c.Figures {
		switch f.Name {
		case "50 tools: p50_ms":
			require.Nil(t, f.B)
			require.Nil(t, f.Ratio)
		case "500 tools: p50_ms":
			require.Nil(t, f.A)
		}
	}
	_, err = Compare(a, &ColdReport{Scenario: ScenarioCold})
	require.ErrorContains(t, err, "scenario tools cannot be compared with one of cold")
}

func TestRead(t *testing.T) {
	write := func(text string) string {
		path := filepath.Join(t.TempDir(), "report.json")
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	for name, c := range map[string]struct{ text, want string }{
		"no JSON":          {"scenario: tools", "not a report in JSON"},
		"no report":        {`{"a":1}`, `it has no "scenario"`},
		"unknown scenario": {`{"scenario":"chat"}`, `scenario "chat" is not known`},
		"another version":  {`{"scenario":"cold","warmth":3}`, `unknown field "warmth"`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Read(write(c.text))
			require.ErrorContains(t, err, c.want)
		})
	}
	_, err := Read(filepath.Join(t.TempDir(), "none.json"))
	require.ErrorIs(t, err, os.ErrNotExist)
}

// TestFieldNamesStay: programs read reports, so a field that has another name is another
// version of all of them.
func TestFieldNamesStay(t *testing.T) {
	for _, s := range Catalog() {
		r := s.empty()
		data, err := os.ReadFile(filepath.Join("testdata", s.Name+".json"))
		require.NoError(t, err)
		d := json.NewDecoder(bytes.NewReader(data))
		d.DisallowUnknownFields()
		require.NoError(t, d.Decode(r), s.Name)
		again, err := json.MarshalIndent(r, "", "  ")
		require.NoError(t, err)
		require.Equal(t, string(bytes.TrimSpace(data)), string(again), "scenario %s", s.Name)
		var out bytes.Buffer
		r.Print(&out)
		require.NotEmpty(t, out.String())
	}
}

func TestFillTables(t *testing.T) {
	document := "# Title\n\n<!-- bench: a.json -->\nold\n| old |\n<!-- bench: end -->\n\ntext\n\n<!-- bench: b.json -->\n<!-- bench: end -->\n"
	read := func(name string) (Result, error) {
		if name == "b.json" {
			return nil, nil
		}
		return toolsReport(100, 4), nil
	}
	filled, err := FillTables([]byte(document), read)
	require.NoError(t, err)
	text := string(filled)
	require.Contains(t, text, "# Title\n\n<!-- bench: a.json -->\n| parallel tools of one turn | execution, p50 |")
	require.Contains(t, text, "\n| 50 | 40.0 ms |")
	require.Contains(t, text, "(go1, 2 CPUs)\n<!-- bench: end -->\n\ntext\n")
	require.Contains(t, text, "<!-- bench: b.json -->\nNot measured yet.\n<!-- bench: end -->\n")
	require.NotContains(t, text, "old")
	again, err := FillTables(filled, read)
	require.NoError(t, err)
	require.Equal(t, text, string(again))

	_, err = FillTables([]byte(document), func(string) (Result, error) { return nil, errors.New("broken") })
	require.ErrorContains(t, err, "broken")
}

// TestDocumentIsUpToDate: the tables of the document are those of the reports beside it.
func TestDocumentIsUpToDate(t *testing.T) {
	const dir = "../../docs"
	document, err := os.ReadFile(filepath.Join(dir, "performance.md"))
	require.NoError(t, err)
	filled, err := FillTables(document, func(name string) (Result, error) {
		r, err := Read(filepath.Join(dir, name))
		if errors.Is(err, os.ErrNotExist) {
			return nil, nil
		}
		return r, err
	})
	require.NoError(t, err)
	require.Equal(t, string(filled), string(document), "run: reprise bench tables docs/performance.md")
	for _, s := range Catalog() {
		require.Contains(t, string(document), "<!-- bench: performance/"+s.Name+".json -->")
	}
}
