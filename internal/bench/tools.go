package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"
)

// ToolsReport is what parallel tools of one turn cost.
type ToolsReport struct {
	Scenario string    `json:"scenario"`
	Rows     []ToolRow `json:"rows"`
	Environment
}

// ToolRow is one number of tools, one execution at a time.
type ToolRow struct {
	Name       string  `json:"name"`
	Tools      int     `json:"tools"`
	Executions int     `json:"executions"`
	P50        float64 `json:"p50_ms"`
	Max        float64 `json:"max_ms"`
	// PerTool is p50 by the number of tools, CPU of all processes by that of all tools.
	PerTool    float64 `json:"p50_ms_per_tool"`
	CPU        float64 `json:"cpu_ms_per_tool"`
	RedisBytes float64 `json:"redis_bytes_per_tool"`
	Commits    float64 `json:"redis_commits_per_execution"`
	// CPURatio is CPU by that of the first row.
	CPURatio float64 `json:"cpu_ratio"`
}

// toolRunsPerRow bounds a row by the tools it runs.
const toolRunsPerRow = 5000

func runTools(ctx context.Context, c *Config) (Result, error) {
	r := &ToolsReport{Scenario: c.Scenario}
	script := map[string]any{}
	for _, n := range c.ToolCounts {
		maps.Copy(script, toolScript(toolModel(n), toolNames(n)))
	}
	text, err := json.Marshal(script)
	if err != nil {
		return nil, err
	}
	f, err := openFleet(ctx, c, fleetConfig{coordinators: c.Coordinators, workers: c.Workers, slots: c.WorkerConcurrency, script: text})
	if err != nil {
		return nil, err
	}
	defer f.close()
	f.describe(ctx, &r.Environment)
	stopProfile, err := f.profile(ctx)
	if err != nil {
		return nil, err
	}
	defer stopProfile()
	for _, n := range c.ToolCounts {
		row, err := measureTools(ctx, c, f, n)
		if err != nil {
			return nil, failed(ctx, err)
		}
		r.Rows = append(r.Rows, *row)
		row = &r.Rows[len(r.Rows)-1]
		row.CPURatio = round(per(row.CPU, r.Rows[0].CPU), 2)
	}
	return r, nil
}

func toolModel(n int) string { return fmt.Sprintf("bench-%d-tools", n) }

func measureTools(ctx context.Context, c *Config, f *fleet, n int) (*ToolRow, error) {
	row := &ToolRow{Name: fmt.Sprintf("%d tools", n), Tools: n, Executions: c.Executions}
	if row.Executions == 0 {
		row.Executions = min(200, max(3, toolRunsPerRow/n))
	}
	document, err := agentWith(agentKind{tools: toolNames(n), model: toolModel(n)})
	if err != nil {
		return nil, err
	}
	cl, err := f.client(document)
	if err != nil {
		return nil, err
	}
	for range 2 { // warms up, and looks whether all tools run
		id, _, err := cl.one(ctx)
		if err != nil {
			return nil, err
		}
		x, err := f.conn.Get(ctx, id, true)
		if err != nil {
			return nil, err
		}
		if err := checkAgentWith(x, toolNames(n)); err != nil {
			return nil, err
		}
	}
	before, err := f.spent(ctx, askUsage)
	if err != nil {
		return nil, err
	}
	out, err := cl.load(ctx, row.Name, row.Executions, 0, 1, c.Progress)
	if err != nil {
		return nil, err
	}
	after, err := f.spent(ctx, askUsage)
	if err != nil {
		return nil, err
	}
	used := after.minus(before)
	slices.Sort(out.latencies)
	row.P50, row.Max = percentile(out.latencies, 0.5), percentile(out.latencies, 1)
	all := float64(n * row.Executions)
	row.PerTool = round(row.P50/float64(n), 3)
	row.CPU = round(float64(used.total())/float64(time.Millisecond)/all, 3)
	row.RedisBytes = round(float64(used.RedisBytes)/all, 0)
	row.Commits = round(float64(used.Commits)/float64(row.Executions), 1)
	return row, nil
}

// Tables implements Result.
func (r *ToolsReport) Tables() []Table {
	t := Table{Columns: []string{"parallel tools of one turn", "execution, p50", "longest", "p50 by tools", "CPU of a tool", "ratio", "to Redis for a tool", "commits"}}
	for _, row := range r.Rows {
		t.add(count(row.Tools), ms(row.P50), ms(row.Max), fine(row.PerTool), fine(row.CPU), times(row.CPURatio), size(row.RedisBytes), fmt.Sprintf("%.1f", row.Commits))
	}
	return []Table{t}
}

// Print implements Result.
func (r *ToolsReport) Print(out io.Writer) {
	printTables(out, "scenario tools: an Agent whose model calls all its tools in one turn, one execution at a time", r.Tables(), &r.Environment)
}
