package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/queue"
)

// StepsLimit is what a late step may cost by what an early one costs.
const StepsLimit = 1.3

// StepsReport is what a step of one execution costs when it has many behind it.
type StepsReport struct {
	Scenario string    `json:"scenario"`
	Steps    int       `json:"steps"`
	Window   int       `json:"window_steps"`
	Repeats  int       `json:"repeats"`
	Rows     []StepRow `json:"rows"`
	// Of the last row to the first.
	LatencyRatio float64 `json:"latency_ratio"`
	CPURatio     float64 `json:"cpu_ratio"`
	BytesRatio   float64 `json:"redis_bytes_ratio"`
	MemoryRatio  float64 `json:"redis_memory_ratio"`
	Limit        float64 `json:"ratio_limit"`
	Met          bool    `json:"ratio_met"`
	Environment
}

// StepRow is the mean of a window of steps that begins at a step, and of that the median of
// the repeats. A step is a job for a worker, its result and an If that loops.
type StepRow struct {
	Name        string  `json:"name"`
	Step        int     `json:"step"`
	P50         float64 `json:"p50_ms"`
	CPU         float64 `json:"cpu_ms"`
	Coordinator float64 `json:"coordinator_cpu_ms"`
	Worker      float64 `json:"worker_cpu_ms"`
	RedisCPU    float64 `json:"redis_cpu_ms"`
	// RedisBytes are sent to Redis, RedisMemory is what its memory grew by.
	RedisBytes  float64 `json:"redis_bytes"`
	RedisMemory float64 `json:"redis_memory_bytes"`
}

const (
	loopNode = "Count"
	// stepsAfter go on after the last window, so that the end of the execution is in none.
	stepsAfter = 25
)

// loopWorkflow counts to n: a worker adds, the coordinator compares.
func loopWorkflow(n int) ([]byte, error) {
	type object = map[string]any
	to := func(names ...string) object {
		var outputs [][]object
		for _, name := range names {
			if name == "" {
				outputs = append(outputs, []object{})
				continue
			}
			outputs = append(outputs, []object{{"node": name, "type": "main", "index": 0}})
		}
		return object{"main": outputs}
	}
	set := func(value string) object {
		return object{"assignments": object{"assignments": []object{{"id": "n", "name": "n", "type": "number", "value": value}}}, "options": object{}}
	}
	node := func(name, kind string, version float64, parameters object) object {
		return object{"id": name, "name": name, "type": kind, "typeVersion": version, "position": []int{0, 0}, "parameters": parameters}
	}
	return json.Marshal(object{
		"name": "bench: a loop", "settings": object{"executionOrder": "v1", "maxRunsPerNode": n + 10},
		"nodes": []object{
			node("Start", "n8n-nodes-base.manualTrigger", 1, object{}),
			node("Zero", "n8n-nodes-base.set", 3.4, set("0")),
			node(loopNode, "n8n-nodes-base.set", 3.4, set("={{ $json.n + 1 }}")),
			node("More?", "n8n-nodes-base.if", 2.2, object{"conditions": object{
				"options":    object{"caseSensitive": true, "typeValidation": "strict", "version": 2},
				"combinator": "and",
				"conditions": []object{{"id": "c", "leftValue": "={{ $json.n }}", "rightValue": n, "operator": object{"type": "number", "operation": "lt"}}},
			}, "options": object{}}),
		},
		"connections": object{"Start": to("Zero"), "Zero": to(loopNode), loopNode: to("More?"), "More?": to(loopNode, "")},
	})
}

func runSteps(ctx context.Context, c *Config) (Result, error) {
	if c.Duration != 0 || c.Executions < 200 {
		return nil, errors.New("the scenario steps needs a number of steps (--executions), at least 200")
	}
	f, err := openFleet(ctx, c, fleetConfig{coordinators: c.Coordinators, workers: c.Workers, slots: c.WorkerConcurrency})
	if err != nil {
		return nil, err
	}
	defer f.close()
	n := c.Executions
	r := &StepsReport{Scenario: c.Scenario, Steps: n, Window: min(500, n/20), Repeats: c.Repeats, Limit: StepsLimit}
	f.describe(ctx, &r.Environment)
	starts := []int{10, n / 10, n - r.Window}
	// The first one warms up everything that later ones find warm.
	if _, err := (&loopRun{f: f, steps: min(300, n), say: func(int) {}}).run(ctx); err != nil {
		return nil, failed(ctx, err)
	}
	stopProfile, err := f.profile(ctx)
	if err != nil {
		return nil, err
	}
	defer stopProfile()
	rows := make([][]StepRow, len(starts))
	began := time.Now()
	for repeat := range c.Repeats {
		// On a slow machine fewer repeats have to do.
		if mean := time.Since(began) / time.Duration(max(repeat, 1)); repeat > 0 && time.Since(began)+mean > timeBudget {
			r.Repeats = repeat
			break
		}
		l := &loopRun{f: f, steps: n + stepsAfter, say: func(done int) {
			c.Progress(fmt.Sprintf("execution %d of %d, steps", repeat+1, c.Repeats), done, n+stepsAfter)
		}}
		for _, start := range starts {
			l.borders = append(l.borders, start, start+r.Window)
		}
		samples, err := l.run(ctx)
		if err != nil {
			return nil, failed(ctx, err)
		}
		for i := range starts {
			rows[i] = append(rows[i], l.row(starts[i], r.Window, samples[2*i], samples[2*i+1]))
		}
	}
	for i, start := range starts {
		r.Rows = append(r.Rows, medianRow(start, r.Window, rows[i]))
	}
	first, last := r.Rows[0], r.Rows[len(r.Rows)-1]
	r.LatencyRatio, r.CPURatio = round(per(last.P50, first.P50), 2), round(per(last.CPU, first.CPU), 2)
	r.BytesRatio, r.MemoryRatio = round(per(last.RedisBytes, first.RedisBytes), 2), round(per(last.RedisMemory, first.RedisMemory), 2)
	r.Met = max(r.LatencyRatio, r.CPURatio, r.BytesRatio) <= StepsLimit
	return r, nil
}

// loopRun is one execution of the loop.
type loopRun struct {
	f       *fleet
	steps   int
	borders []int // steps at which what was used is sampled, ascending
	say     func(done int)

	mu      sync.Mutex
	at      []time.Time // of each step's notice
	reached chan struct{}
}

// stepSample is what was used up to a step.
type stepSample struct {
	step   int
	spent  spent
	memory int64
}

func (l *loopRun) seen() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.at)
}

func (l *loopRun) run(ctx context.Context) ([]stepSample, error) {
	document, err := loopWorkflow(l.steps)
	if err != nil {
		return nil, err
	}
	id := engine.ExecutionID("bench-steps-" + uuid.NewString()[:8])
	l.reached = make(chan struct{}, 1)
	over := make(chan queue.Live, 1)
	stop, err := l.f.conn.WatchLive(id, func(n queue.Live) {
		switch {
		case n.Kind == engine.LiveNodeFinished && n.Node == loopNode:
			l.mu.Lock()
			l.at = append(l.at, time.Now())
			l.mu.Unlock()
			select {
			case l.reached <- struct{}{}:
			default:
			}
		case n.Kind == engine.LiveExecutionFinished && n.Status.Finished():
			over <- n
		}
	})
	if err != nil {
		return nil, err
	}
	defer stop()
	if err := l.f.conn.Flush(ctx); err != nil {
		return nil, err
	}
	if _, err := l.f.conn.Submit(ctx, &queue.Submission{Version: queue.Version, ID: id, Workflow: document, Mode: "cli"}); err != nil {
		return nil, err
	}
	var samples []stepSample
	said := time.Now()
	silence := time.NewTimer(executionTimeout)
	defer silence.Stop()
	for {
		for seen := l.seen(); len(samples) < len(l.borders) && seen >= l.borders[len(samples)]; seen = l.seen() {
			s, err := l.sample(ctx)
			if err != nil {
				return nil, err
			}
			samples = append(samples, s)
		}
		if time.Since(said) > progressInterval {
			said = time.Now()
			l.say(l.seen())
		}
		select {
		case <-l.reached:
			silence.Reset(executionTimeout)
		case end := <-over:
			switch {
			case end.Status != engine.StatusSuccess:
				return nil, fmt.Errorf("execution %s ended with status %s: %s", id, end.Status, end.Error)
			case l.seen() != l.steps || len(samples) != len(l.borders):
				return nil, fmt.Errorf("execution %s: notices tell of %d steps instead of %d: some were lost, try again", id, l.seen(), l.steps)
			}
			return samples, nil
		case <-silence.C:
			return nil, fmt.Errorf("execution %s made no step for %s", id, executionTimeout)
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// sample asks what was used, at the step that is current then.
func (l *loopRun) sample(ctx context.Context) (stepSample, error) {
	before := l.seen()
	used, err := l.f.spent(ctx, askUsage)
	if err != nil {
		return stepSample{}, err
	}
	memory, _ := redisMemory(ctx, l.f.rdb)
	return stepSample{step: (before + l.seen()) / 2, spent: used, memory: memory}, nil
}

func (l *loopRun) row(start, window int, from, to stepSample) StepRow {
	gaps := make([]time.Duration, 0, window)
	for i := start; i < start+window; i++ {
		gaps = append(gaps, l.at[i].Sub(l.at[i-1]))
	}
	used := to.spent.minus(from.spent)
	n := float64(max(to.step-from.step, 1))
	perStep := func(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) / n }
	p50, _ := percentiles(gaps)
	return StepRow{
		P50: p50, CPU: perStep(used.total()), Coordinator: perStep(used.Coordinators), Worker: perStep(used.Workers), RedisCPU: perStep(used.Redis),
		RedisBytes: float64(used.RedisBytes) / n, RedisMemory: float64(to.memory-from.memory) / n,
	}
}

// medianRow takes the median of each figure.
func medianRow(start, window int, rows []StepRow) StepRow {
	median := func(figure func(StepRow) float64, digits int) float64 {
		var all []float64
		for _, r := range rows {
			all = append(all, figure(r))
		}
		slices.Sort(all)
		return round(all[len(all)/2], digits)
	}
	return StepRow{
		Name: fmt.Sprintf("steps %d to %d", start, start+window), Step: start,
		P50:         median(func(r StepRow) float64 { return r.P50 }, 3),
		CPU:         median(func(r StepRow) float64 { return r.CPU }, 3),
		Coordinator: median(func(r StepRow) float64 { return r.Coordinator }, 3),
		Worker:      median(func(r StepRow) float64 { return r.Worker }, 3),
		RedisCPU:    median(func(r StepRow) float64 { return r.RedisCPU }, 3),
		RedisBytes:  median(func(r StepRow) float64 { return r.RedisBytes }, 0),
		RedisMemory: median(func(r StepRow) float64 { return r.RedisMemory }, 0),
	}
}

// Tables implements Result.
func (r *StepsReport) Tables() []Table {
	t := Table{Columns: []string{"steps of one execution", "latency, p50", "CPU", "coordinator", "worker", "Redis", "to Redis", "Redis memory"}}
	for _, row := range r.Rows {
		t.add(row.Name, fine(row.P50), fine(row.CPU), fine(row.Coordinator), fine(row.Worker), fine(row.RedisCPU), size(row.RedisBytes), size(row.RedisMemory))
	}
	t.add(fmt.Sprintf("last by first (limit %.1f)", r.Limit), times(r.LatencyRatio), times(r.CPURatio), "", "", "", times(r.BytesRatio), times(r.MemoryRatio))
	return []Table{t}
}

// Print implements Result.
func (r *StepsReport) Print(out io.Writer) {
	printTables(out, fmt.Sprintf("scenario steps: one execution that loops %d times, %d times; a step is a job, its result and an If", r.Steps, r.Repeats), r.Tables(), &r.Environment)
}
