package bench

import (
	"fmt"
	"io"
	"math"
	"slices"
	"time"
)

// Report is what was measured. A nil field could not be known: what runs
// elsewhere, or the floor when it was left out.
type Report struct {
	Scenario            string  `json:"scenario"`
	Executions          int     `json:"executions"`
	Concurrency         int     `json:"concurrency"`
	Coordinators        int     `json:"coordinators"` // in this process
	Workers             int     `json:"workers"`      // in this process
	Seconds             float64 `json:"seconds"`
	ExecutionsPerSecond float64 `json:"executions_per_second"`
	// From submitting to the notice of the end, in milliseconds.
	P50 float64 `json:"p50_ms"`
	P95 float64 `json:"p95_ms"`
	P99 float64 `json:"p99_ms"`
	// CPU of this process (with the mock LLM, the submitting client and an embedded
	// NATS server) and of Redis.
	CPUSeconds         float64   `json:"cpu_seconds"`
	CPUPerExecution    float64   `json:"cpu_ms_per_execution"`
	ProcessCPU         float64   `json:"process_cpu_ms_per_execution"`
	RedisCPU           *float64  `json:"redis_cpu_ms_per_execution"`
	RedisRoundTrips    *float64  `json:"redis_round_trips_per_execution"`
	RedisCommits       *float64  `json:"redis_commits_per_execution"`
	RedisBytes         *float64  `json:"redis_bytes_per_execution"`
	NATSMessages       *float64  `json:"nats_messages_per_execution"`
	NATSBytes          *float64  `json:"nats_bytes_per_execution"`
	Jobs               *float64  `json:"jobs_per_execution"`
	FloorPerSecond     *float64  `json:"floor_executions_per_second"`
	FloorRatio         *float64  `json:"floor_ratio"`
	FloorCPU           *float64  `json:"floor_cpu_ms_per_execution"`
	FloorNATSMessages  *float64  `json:"floor_nats_messages_per_execution"`
	CPURatio           *float64  `json:"cpu_ratio"`
	FloorRunsPerSecond []float64 `json:"floor_runs_per_second,omitempty"`
	Environment
}

// percentile returns the p-th part of sorted latencies in milliseconds, by the
// nearest rank.
func percentile(sorted []time.Duration, p float64) float64 {
	rank := int(math.Ceil(p*float64(len(sorted)))) - 1
	return round(float64(sorted[max(0, rank)])/float64(time.Millisecond), 3)
}

// percentiles sorts latencies and returns their middle and p99 in milliseconds, 0 without any.
func percentiles(latencies []time.Duration) (p50, p99 float64) {
	if len(latencies) == 0 {
		return 0, 0
	}
	slices.Sort(latencies)
	return percentile(latencies, 0.5), percentile(latencies, 0.99)
}

func round(v float64, digits int) float64 {
	scale := math.Pow10(digits)
	return math.Round(v*scale) / scale
}

func known(v float64, digits int) *float64 {
	v = round(v, digits)
	return &v
}

func (r *Report) setLatencies(latencies []time.Duration) {
	slices.Sort(latencies)
	r.P50, r.P95, r.P99 = percentile(latencies, 0.50), percentile(latencies, 0.95), percentile(latencies, 0.99)
}

// Print writes the report for people.
func (r *Report) Print(out io.Writer) {
	where := fmt.Sprintf("%d coordinator(s) and %d worker(s) in this process", r.Coordinators, r.Workers)
	if r.Coordinators == 0 {
		where = "coordinators and workers elsewhere"
	}
	fmt.Fprintf(out, "scenario %s: %d executions in %.2f s, %d in flight, %s\n\n", r.Scenario, r.Executions, r.Seconds, r.Concurrency, where)
	line := func(name, format string, args ...any) {
		fmt.Fprintf(out, "  %-14s %s\n", name, fmt.Sprintf(format, args...))
	}
	line("executions/s", "%.0f", r.ExecutionsPerSecond)
	line("latency", "p50 %.1f ms, p95 %.1f ms, p99 %.1f ms", r.P50, r.P95, r.P99)
	cpu := fmt.Sprintf("%.2f ms an execution: this process %.2f", r.CPUPerExecution, r.ProcessCPU)
	if r.RedisCPU != nil {
		cpu += fmt.Sprintf(", redis %.2f", *r.RedisCPU)
	}
	line("CPU", "%s", cpu)
	if r.RedisCommits != nil {
		line("redis", "%.2f commits, %.2f round trips, %.1f KB an execution (%s)", *r.RedisCommits, *r.RedisRoundTrips, *r.RedisBytes/1024, r.Redis)
	}
	if r.NATSMessages != nil {
		line("nats", "%.1f jobs, %.1f client messages, %.1f KB an execution", *r.Jobs, *r.NATSMessages, *r.NATSBytes/1024)
	}
	if r.FloorPerSecond != nil {
		line("floor", "%.0f executions/s, %.2f ms CPU, %.1f client messages: the same traffic without an engine", *r.FloorPerSecond, *r.FloorCPU, *r.FloorNATSMessages)
		line("floor ratio", "%.2f of its rate, %.1f times its CPU", *r.FloorRatio, *r.CPURatio)
	}
	r.print(out)
}

// Tables implements Result.
func (r *Report) Tables() []Table {
	t := Table{Columns: []string{"agent with two tools", ""}}
	t.add("executions/s, "+count(r.Concurrency)+" in flight", rate(r.ExecutionsPerSecond))
	t.add("latency p50 / p95 / p99", fmt.Sprintf("%s / %s / %s", ms(r.P50), ms(r.P95), ms(r.P99)))
	t.add("CPU an execution, Redis of it", fine(r.CPUPerExecution)+" / "+optional(r.RedisCPU, fine))
	t.add("commits / round trips / bytes to Redis", fmt.Sprintf("%s / %s / %s", optional(r.RedisCommits, times), optional(r.RedisRoundTrips, times), optional(r.RedisBytes, size)))
	t.add("jobs / client messages / bytes over NATS", fmt.Sprintf("%s / %s / %s", optional(r.Jobs, times), optional(r.NATSMessages, times), optional(r.NATSBytes, size)))
	t.add("the floor: executions/s / CPU / client messages", fmt.Sprintf("%s / %s / %s", optional(r.FloorPerSecond, rate), optional(r.FloorCPU, fine), optional(r.FloorNATSMessages, times)))
	t.add("**rate by that of the floor / CPU by that of the floor**", fmt.Sprintf("**%s / %s**", optional(r.FloorRatio, times), optional(r.CPURatio, times)))
	return []Table{t}
}
