package telemetry_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/VictoriaMetrics/metricsql"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/reprise-engine/reprise/internal/telemetry"
)

var rewrite = flag.Bool("rewrite", false, "write the table of metrics into docs/operations.md")

const page = "../../docs/operations.md"

const tableBegin, tableEnd = "<!-- metrics: go generate ./internal/telemetry -->\n", "<!-- end of metrics -->\n"

func table() string {
	var b strings.Builder
	b.WriteString(tableBegin)
	for _, service := range []struct {
		title   string
		metrics []telemetry.Metric
	}{{"Coordinators", telemetry.CoordinatorMetrics()}, {"Workers", telemetry.WorkerMetrics()}} {
		fmt.Fprintf(&b, "### %s\n\n| metric | type | labels | |\n|---|---|---|---|\n", service.title)
		for _, m := range service.metrics {
			labels := ""
			if len(m.Labels) > 0 {
				labels = "`" + strings.Join(m.Labels, "`, `") + "`"
			}
			fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", m.Name, m.Type, labels, m.Help)
		}
		b.WriteString("\n")
	}
	return b.String() + tableEnd
}

func TestOperationsPageListsAllMetrics(t *testing.T) {
	data, err := os.ReadFile(page)
	require.NoError(t, err)
	before, rest, ok := strings.Cut(string(data), tableBegin)
	require.True(t, ok)
	_, after, ok := strings.Cut(rest, tableEnd)
	require.True(t, ok)
	want := before + table() + after
	if *rewrite {
		require.NoError(t, os.WriteFile(page, []byte(want), 0o644)) //nolint:gosec // a page
		return
	}
	require.Equal(t, want, string(data), "run go generate ./internal/telemetry")
}

// Prometheus' naming: base units, _total for counters and for nothing else.
func TestNamesFollowTheConventions(t *testing.T) {
	for _, m := range append(telemetry.CoordinatorMetrics(), telemetry.WorkerMetrics()...) {
		require.Regexp(t, `^reprise_[a-z_]+$`, m.Name)
		require.Equal(t, m.Type == "counter", strings.HasSuffix(m.Name, "_total"), m.Name)
		require.NotRegexp(t, `(_ms|_millis|_milliseconds|_kb|_mb|_minutes)(_|$)`, m.Name)
		if m.Type == "histogram" {
			require.Regexp(t, `(_seconds|_bytes|_size)$`, m.Name)
		}
		require.Regexp(t, `\.$`, m.Help, m.Name)
		for _, label := range m.Labels {
			require.Contains(t, []string{"status", "reason", "result", "pool", "outcome", "code", "cause", "direction", "node_type", "provider", "model", "version"},
				label, "%s: is %q bounded? see the package comment", m.Name, label)
		}
	}
}

// series are the names and labels that can be asked for.
func series() map[string]map[string]bool {
	known := map[string]map[string]bool{"process_resident_memory_bytes": {}, "process_cpu_seconds_total": {}}
	for _, m := range append(telemetry.CoordinatorMetrics(), telemetry.WorkerMetrics()...) {
		names := []string{m.Name}
		if m.Type == "histogram" {
			names = []string{m.Name + "_bucket", m.Name + "_sum", m.Name + "_count"}
		}
		for _, name := range names {
			known[name] = map[string]bool{}
			for _, label := range m.Labels {
				known[name][label] = true
			}
		}
		if m.Type == "histogram" {
			known[m.Name+"_bucket"]["le"] = true
		}
	}
	for _, labels := range known {
		labels["job"], labels["instance"] = true, true // Prometheus adds them
	}
	return known
}

// check parses a query, requires that it asks for what exists only, and notes the names.
func check(t *testing.T, query string, used map[string]bool) {
	t.Helper()
	query = strings.ReplaceAll(query, "$__rate_interval", "5m")
	parsed, err := metricsql.Parse(query)
	require.NoError(t, err, query)
	require.False(t, metricsql.IsLikelyInvalid(parsed), query)
	known, labels := series(), map[string]bool{}
	metricsql.VisitAll(parsed, func(e metricsql.Expr) {
		m, ok := e.(*metricsql.MetricExpr)
		if !ok {
			return
		}
		for _, filters := range m.LabelFilterss {
			name := filters[0].Value
			require.Equal(t, "__name__", filters[0].Label, query)
			require.Contains(t, known, name, query)
			used[name] = true
			for label := range known[name] {
				labels[label] = true
			}
			for _, f := range filters[1:] {
				require.True(t, known[name][f.Label], "%s has no label %s: %s", name, f.Label, query)
			}
		}
	})
	metricsql.VisitAll(parsed, func(e metricsql.Expr) {
		var args []string
		switch e := e.(type) {
		case *metricsql.AggrFuncExpr:
			args = e.Modifier.Args
		case *metricsql.BinaryOpExpr:
			args = e.GroupModifier.Args
		}
		for _, label := range args {
			require.True(t, labels[label], "nothing has the label %s: %s", label, query)
		}
	})
}

// base is a metric's name without what a histogram adds.
func base(name string) string {
	return regexp.MustCompile(`_(bucket|sum|count)$`).ReplaceAllString(name, "")
}

// The dashboard shows every metric, and nothing that does not exist.
func TestDashboard(t *testing.T) {
	data, err := os.ReadFile("../../deploy/grafana/reprise.json")
	require.NoError(t, err)
	var dashboard struct {
		Panels []struct {
			ID      int
			Title   string
			Targets []struct{ Expr string }
		}
	}
	require.NoError(t, json.Unmarshal(data, &dashboard))
	used, ids := map[string]bool{}, map[int]bool{}
	for _, p := range dashboard.Panels {
		require.False(t, ids[p.ID], "two panels have the id %d", p.ID)
		ids[p.ID] = true
		for _, target := range p.Targets {
			check(t, target.Expr, used)
		}
	}
	shown := map[string]bool{}
	for name := range used {
		shown[base(name)] = true
	}
	for _, m := range append(telemetry.CoordinatorMetrics(), telemetry.WorkerMetrics()...) {
		require.True(t, shown[m.Name], "the dashboard does not show %s", m.Name)
	}
}

// The alerts ask for what exists, and the page says what to do about each.
func TestAlerts(t *testing.T) {
	data, err := os.ReadFile("../../deploy/prometheus/alerts.yml")
	require.NoError(t, err)
	var alerts struct {
		Groups []struct {
			Name  string
			Rules []struct {
				Alert, Expr, For    string
				Labels, Annotations map[string]string
			}
		}
	}
	decoder := yaml.NewDecoder(strings.NewReader(string(data)))
	decoder.KnownFields(true)
	require.NoError(t, decoder.Decode(&alerts))
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	documented := regexp.MustCompile("(?m)^\\| `(Reprise\\w+)`").FindAllStringSubmatch(string(text), -1)
	names := []string{}
	for _, rule := range alerts.Groups[0].Rules {
		check(t, rule.Expr, map[string]bool{})
		require.Contains(t, []string{"warning", "critical"}, rule.Labels["severity"], rule.Alert)
		require.NotEmpty(t, rule.Annotations["summary"], rule.Alert)
		names = append(names, rule.Alert)
	}
	listed := []string{}
	for _, m := range documented {
		listed = append(listed, m[1])
	}
	require.Equal(t, names, listed)

	data, err = os.ReadFile("../../deploy/prometheus/prometheus.yml")
	require.NoError(t, err)
	var config map[string]any
	require.NoError(t, yaml.Unmarshal(data, &config))
	require.Contains(t, config, "scrape_configs")
}
