package cli

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"github.com/reprise-engine/reprise/internal/bench"
)

func TestBenchList(t *testing.T) {
	t.Parallel()
	got := reprise(t, "bench", "list")
	assert.Zero(t, got.code, got.stderr)
	for _, s := range bench.Catalog() {
		assert.Regexp(t, `(?m)^`+s.Name+` .*`+s.Takes+`.* `+s.About+`$`, got.stdout)
	}
	assert.Len(t, bench.Catalog(), 10)
}

// TestBenchReports: what bench prints as JSON can be compared, and put into a document.
func TestBenchReports(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first, second := filepath.Join(dir, "first.json"), filepath.Join(dir, "second.json")
	for _, path := range []string{first, second} {
		got := reprise(t, "bench", "--executions", "20", "--concurrency", "4", "--no-floor", "--output", "json")
		require.Zero(t, got.code, got.stderr)
		require.Equal(t, int64(20), gjson.Get(got.stdout, "executions").Int())
		require.Equal(t, "agent", gjson.Get(got.stdout, "scenario").Str)
		require.NoError(t, os.WriteFile(path, []byte(got.stdout), 0o600))
	}
	got := reprise(t, "bench", "compare", first, second)
	assert.Zero(t, got.code, got.stderr)
	assert.Contains(t, got.stdout, "second by first")
	assert.Regexp(t, `(?m)^  executions +20 +20 +1\.00$`, got.stdout)
	assert.Equal(t, got.stdout, reprise(t, "bench", "--compare", first, second).stdout)
	got = reprise(t, "bench", "compare", first, second, "--output", "json")
	assert.Zero(t, got.code, got.stderr)
	assert.Equal(t, 1.0, gjson.Get(got.stdout, `figures.#(name=="executions").ratio`).Float())

	document := filepath.Join(dir, "page.md")
	require.NoError(t, os.WriteFile(document, []byte("<!-- bench: first.json -->\n<!-- bench: end -->\n"), 0o600))
	reprise(t, "bench", "tables", "--check", document).failed(t, 2, "not up to date")
	assert.Zero(t, reprise(t, "bench", "tables", document).code)
	assert.Zero(t, reprise(t, "bench", "tables", "--check", document).code)
	assert.Contains(t, readAll(t, document), "| agent with two tools |")
}

// TestBenchProcesses: a scenario that starts processes starts this program.
func TestBenchProcesses(t *testing.T) {
	t.Setenv(asProgram, "1")
	got := reprise(t, "bench", "--scenario", "tools", "--executions", "1", "--tools", "2,4", "--output", "json")
	require.Zero(t, got.code, got.stderr)
	assert.Equal(t, "[2,4]", gjson.Get(got.stdout, "rows.#.tools").Raw)
}

func TestBenchBadInput(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--scenario", "chat"}, `scenario "chat" is not known: use agent, scale`},
		{[]string{"--executions", "5", "--duration", "5s"}, "exclude each other"},
		{[]string{"--executions", "-1"}, "use 1 or more"},
		{[]string{"--workers", "1,2"}, "--workers takes a list in the scenario scale only"},
		{[]string{"--coordinators", "0"}, "--coordinators 0"},
		{[]string{"--scenario", "scale", "--workers", "0"}, "workers 0"},
		{[]string{"--scenario", "burst", "--external", "--nats", "nats://127.0.0.1:1"}, "leave --external out"},
		{[]string{"--scenario", "burst", "--duration", "5s"}, "needs a number of executions"},
		{[]string{"--scenario", "steps", "--executions", "10"}, "at least 200"},
		{[]string{"--scenario", "tools", "--tools", "2000"}, "tools 2000"},
		{[]string{"--scenario", "burst", "--redis", "redis://user:sk-secret@10.0.0.1/0"}, "Redis server at 10.0.0.1"},
		{[]string{"--output", "yaml"}, "yaml"},
		{[]string{"--compare", "one.json"}, "accepts 2 arg(s)"},
		{[]string{"compare", "none.json", "none.json"}, "no such file"},
		{[]string{"child", "cook"}, `role "cook"`},
	} {
		reprise(t, append([]string{"bench"}, c.args...)...).failed(t, 2, c.want)
	}
}
