package bench

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"time"
)

// ScaleReport is what coordinators, workers and cores add. Each row is a fleet of its own.
type ScaleReport struct {
	Scenario    string     `json:"scenario"`
	Concurrency int        `json:"concurrency"`
	Rounds      int        `json:"rounds"`
	Rows        []ScaleRow `json:"rows"`
	Environment
}

// ScaleRow is one fleet. CPU is that of all its processes and both servers, in ms an
// execution; the client's is not in it.
type ScaleRow struct {
	Name         string `json:"name"`
	Coordinators int    `json:"coordinators"`
	Workers      int    `json:"workers"`
	// Procs is the GOMAXPROCS of each coordinator and worker, 0 as Go chooses.
	Procs      int     `json:"gomaxprocs"`
	Executions int     `json:"executions"`
	PerSecond  float64 `json:"executions_per_second"`
	// PerCPUSecond is how many executions a second of processor time does.
	PerCPUSecond float64 `json:"executions_per_cpu_second"`
	P50          float64 `json:"p50_ms"`
	P99          float64 `json:"p99_ms"`
	Coordinator  float64 `json:"coordinator_cpu_ms_per_execution"`
	Worker       float64 `json:"worker_cpu_ms_per_execution"`
	NATS         float64 `json:"nats_cpu_ms_per_execution"`
	RedisCPU     float64 `json:"redis_cpu_ms_per_execution"`
	// Ratio of PerSecond, and of PerCPUSecond, to those of the first row.
	Ratio    float64 `json:"rate_ratio"`
	CPURatio float64 `json:"per_cpu_second_ratio"`

	spent   time.Duration
	seconds float64
}

const (
	scaleRounds   = 2
	scaleDuration = 4 * time.Second
	scaleWarmUp   = 150
)

// scaleFleets lists the fleets: workers with one coordinator, coordinators with the most
// workers, and the cores of one of each.
func scaleFleets(c *Config) []ScaleRow {
	var rows []ScaleRow
	add := func(coordinators, workers, procs int) {
		name := fmt.Sprintf("%d coordinator%s, %d worker%s", coordinators, plural(coordinators), workers, plural(workers))
		if procs > 0 {
			name += ", GOMAXPROCS " + strconv.Itoa(procs)
		}
		for _, have := range rows {
			if have.Name == name {
				return
			}
		}
		rows = append(rows, ScaleRow{Name: name, Coordinators: coordinators, Workers: workers, Procs: procs})
	}
	most := 0
	for _, n := range c.WorkerCounts {
		add(1, n, 0)
		most = max(most, n)
	}
	for _, n := range c.CoordinatorCounts {
		add(n, most, 0)
	}
	for _, n := range c.Procs {
		add(1, 1, n)
	}
	return rows
}

func plural(n int) string {
	if n == 1 {
		return ""
	}
	return "s"
}

func runScale(ctx context.Context, c *Config) (Result, error) {
	r := &ScaleReport{Scenario: c.Scenario, Concurrency: c.Concurrency, Rounds: scaleRounds, Rows: scaleFleets(c)}
	took := make([][]time.Duration, len(r.Rows))
	duration := c.Duration
	if duration == 0 {
		duration = scaleDuration
	}
	for round := range scaleRounds {
		for k := range r.Rows {
			i := k
			if round%2 == 1 { // what the machine does meanwhile meets the first as well as the last
				i = len(r.Rows) - 1 - k
			}
			latencies, err := r.Rows[i].measure(ctx, c, duration, &r.Environment)
			if err != nil {
				return nil, failed(ctx, err)
			}
			took[i] = append(took[i], latencies...)
		}
	}
	for i := range r.Rows {
		r.Rows[i].finish(took[i], &r.Rows[0])
	}
	return r, nil
}

func (row *ScaleRow) measure(ctx context.Context, c *Config, duration time.Duration, e *Environment) ([]time.Duration, error) {
	var env []string
	if row.Procs > 0 {
		env = append(env, "GOMAXPROCS="+strconv.Itoa(row.Procs))
	}
	c.Progress(row.Name, 0, 0)
	f, err := openFleet(ctx, c, fleetConfig{coordinators: row.Coordinators, workers: row.Workers, slots: c.WorkerConcurrency, env: env})
	if err != nil {
		return nil, err
	}
	defer f.close()
	f.describe(ctx, e)
	document, err := agentWorkflow()
	if err != nil {
		return nil, err
	}
	cl, err := f.client(document)
	if err != nil {
		return nil, err
	}
	if _, err := cl.load(ctx, row.Name+" (warm-up)", min(scaleWarmUp, max(c.Executions, 1)), 0, c.Concurrency, c.Progress); err != nil {
		return nil, err
	}
	before, err := f.spent(ctx, askUsage)
	if err != nil {
		return nil, err
	}
	if c.Executions > 0 {
		duration = 0
	}
	out, err := cl.load(ctx, row.Name, c.Executions, duration, c.Concurrency, c.Progress)
	if err != nil {
		return nil, err
	}
	after, err := f.spent(ctx, askUsage)
	if err != nil {
		return nil, err
	}
	used := after.minus(before)
	n := len(out.latencies)
	row.Executions += n
	row.spent += used.total()
	row.seconds += out.seconds
	row.PerSecond = max(row.PerSecond, float64(n)/out.seconds) // the better round had less company
	row.Coordinator += used.Coordinators.Seconds()
	row.Worker += used.Workers.Seconds()
	row.NATS += used.NATS.Seconds()
	row.RedisCPU += used.Redis.Seconds()
	return out.latencies, nil
}

func (row *ScaleRow) finish(took []time.Duration, first *ScaleRow) {
	n := float64(row.Executions)
	row.P50, row.P99 = percentiles(took)
	row.PerSecond = round(row.PerSecond, 1)
	row.PerCPUSecond = round(per(n, row.spent.Seconds()), 1)
	for _, v := range []*float64{&row.Coordinator, &row.Worker, &row.NATS, &row.RedisCPU} {
		*v = round(*v*1000/n, 3)
	}
	row.Ratio = round(per(row.PerSecond, first.PerSecond), 2)
	row.CPURatio = round(per(row.PerCPUSecond, first.PerCPUSecond), 2)
}

// Tables implements Result.
func (r *ScaleReport) Tables() []Table {
	t := Table{Columns: []string{"fleet", "executions/s", "ratio", "per CPU second", "ratio", "p50", "p99", "coordinators", "workers", "NATS", "Redis"}}
	for _, row := range r.Rows {
		t.add(row.Name, rate(row.PerSecond), times(row.Ratio), rate(row.PerCPUSecond), times(row.CPURatio), ms(row.P50), ms(row.P99),
			fine(row.Coordinator), fine(row.Worker), fine(row.NATS), fine(row.RedisCPU))
	}
	return []Table{t}
}

// Print implements Result.
func (r *ScaleReport) Print(out io.Writer) {
	printTables(out, fmt.Sprintf("scenario scale: agent executions, %d in flight; the last four columns are CPU an execution", r.Concurrency), r.Tables(), &r.Environment)
}
