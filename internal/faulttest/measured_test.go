package faulttest

import (
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reprise-engine/reprise/internal/cluster"
)

var (
	recording = flag.Bool("record", false, "add this run's times to testdata/measured.json and to docs/failure-contract.md")
	updating  = flag.Bool("update", false, "write the tables of docs/failure-contract.md from testdata/measured.json")
)

const measuredFile = "testdata/measured.json"

var contractFile = filepath.Join("..", "..", "docs", "failure-contract.md")

// measurement is how long a recovery took, in all runs that were recorded.
type measurement struct {
	Fault string `json:"fault"`
	Until string `json:"until"` // what was waited for
	// Defaults: with the settings that nobody has changed; else with the short leases and
	// sweeps of internal/cluster.
	Defaults bool   `json:"defaults"`
	Test     string `json:"test"`
	File     string `json:"file"`
	// All in milliseconds. Limit is what the test fails at.
	Limit   int64 `json:"limit"`
	Runs    int   `json:"runs"`
	Fastest int64 `json:"fastest"`
	Slowest int64 `json:"slowest"`
}

func (m *measurement) key() string { return m.Fault + " | " + m.Until }

// measurements of this run.
var measurements struct {
	mu  sync.Mutex
	all []measurement
}

// known are the measurements of earlier runs, by key.
var known = sync.OnceValues(func() (map[string]measurement, error) {
	text, err := os.ReadFile(measuredFile)
	if err != nil && !(os.IsNotExist(err) && *recording) {
		return nil, err
	}
	var all []measurement
	if len(text) > 0 {
		if err := json.Unmarshal(text, &all); err != nil {
			return nil, fmt.Errorf("%s: %w", measuredFile, err)
		}
	}
	byKey := map[string]measurement{}
	for _, m := range all {
		byKey[m.key()] = m
	}
	return byKey, nil
})

// recovered notes how long a recovery took and fails the test when that is too long, or
// when the contract does not know of it, or promises another limit.
func recovered(t *testing.T, c *cluster.Cluster, fault, until string, took, limit time.Duration) {
	t.Helper()
	_, file, _, _ := runtime.Caller(1)
	test, _, _ := strings.Cut(t.Name(), "/")
	m := measurement{
		Fault: fault, Until: until, Defaults: c.Defaults, Test: test, File: filepath.Base(file),
		Limit: limit.Milliseconds(), Runs: 1, Fastest: took.Milliseconds(), Slowest: took.Milliseconds(),
	}
	measurements.mu.Lock()
	measurements.all = append(measurements.all, m)
	measurements.mu.Unlock()
	if took > limit {
		t.Errorf("%s: %s after %s, want at most %s", fault, until, took.Round(time.Millisecond), limit)
	}
	before, err := known()
	require.NoError(t, err)
	if was := before[m.key()]; !*recording && (was.Limit != m.Limit || was.Test != m.Test || was.Defaults != m.Defaults) {
		t.Errorf("%s says otherwise of %q than this test: make fault RECORD=1", measuredFile, m.key())
	}
}

// printMeasurements of this run.
func printMeasurements() {
	measurements.mu.Lock()
	defer measurements.mu.Unlock()
	if len(measurements.all) == 0 {
		return
	}
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, "\nfault\tuntil\ttook\tat most")
	for _, m := range measurements.all {
		_, _ = fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", m.Fault, m.Until, seconds(m.Slowest), seconds(m.Limit))
	}
	_ = w.Flush()
}

// recordAll adds this run's measurements to the file and writes the contract's tables. A run of
// everything forgets what is not measured any more.
func recordAll(everything bool) error {
	before, err := known()
	if err != nil {
		return err
	}
	kept := map[string]measurement{}
	if !everything {
		kept = before
	}
	for _, m := range measurements.all {
		if was, ok := before[m.key()]; ok {
			m.Runs += was.Runs
			m.Fastest, m.Slowest = min(m.Fastest, was.Fastest), max(m.Slowest, was.Slowest)
		}
		kept[m.key()] = m
	}
	all := make([]measurement, 0, len(kept))
	for _, m := range kept {
		all = append(all, m)
	}
	slices.SortFunc(all, func(a, b measurement) int {
		return cmp.Or(cmp.Compare(a.Fault, b.Fault), cmp.Compare(a.Until, b.Until))
	})
	text, err := json.MarshalIndent(all, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(measuredFile), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(measuredFile, append(text, '\n'), 0o644); err != nil {
		return err
	}
	contract, err := os.ReadFile(contractFile)
	if err != nil {
		return err
	}
	written, err := withTables(string(contract), all)
	if err != nil {
		return err
	}
	return os.WriteFile(contractFile, []byte(written), 0o644)
}

// withTables returns the contract with the tables of what was measured.
func withTables(contract string, all []measurement) (string, error) {
	for name, defaults := range map[string]bool{"defaults": true, "short": false} {
		begin, end := "<!-- measured: "+name+" -->\n", "<!-- end of measured -->"
		before, rest, found := strings.Cut(contract, begin)
		_, after, closed := strings.Cut(rest, end)
		if !found || !closed {
			return "", fmt.Errorf("%s has no place for a table: %q … %q", contractFile, begin, end)
		}
		var table strings.Builder
		table.WriteString("| fault | until | measured | at most | test |\n|---|---|---|---|---|\n")
		for _, m := range all {
			if m.Defaults == defaults {
				fmt.Fprintf(&table, "| %s | %s | %s | %s | [%s](../internal/faulttest/%s) |\n",
					m.Fault, m.Until, span(m.Fastest, m.Slowest), strings.Replace(seconds(m.Limit), ".0", "", 1), m.Test, m.File)
			}
		}
		contract = before + begin + table.String() + end + after
	}
	return contract, nil
}

// span of milliseconds, in seconds: "0.2 to 1.4 s".
func span(least, most int64) string {
	if from, to := seconds(least), seconds(most); from != to {
		return strings.TrimSuffix(from, " s") + " to " + to
	}
	return seconds(most)
}

func seconds(ms int64) string { return fmt.Sprintf("%.1f s", float64(ms)/1000) }

// What the contract says of times is what was measured, by tests that there are.
func TestContractShowsWhatWasMeasured(t *testing.T) {
	t.Parallel()
	if *recording {
		return // it is written when all tests are over
	}
	text, err := os.ReadFile(measuredFile)
	if os.IsNotExist(err) {
		return // nothing was recorded yet
	}
	require.NoError(t, err)
	var all []measurement
	require.NoError(t, json.Unmarshal(text, &all))
	require.NotEmpty(t, all)
	for _, m := range all {
		source, err := os.ReadFile(m.File)
		require.NoError(t, err)
		require.Contains(t, string(source), "func "+m.Test+"(t ", "%s: %q is measured by no test any more", measuredFile, m.key())
		require.LessOrEqual(t, m.Slowest, m.Limit, "%q", m.key())
	}
	contract, err := os.ReadFile(contractFile)
	require.NoError(t, err)
	want, err := withTables(string(contract), all)
	require.NoError(t, err)
	if *updating {
		require.NoError(t, os.WriteFile(contractFile, []byte(want), 0o644))
		return
	}
	require.Equal(t, want, string(contract), "go generate ./internal/faulttest")
}
