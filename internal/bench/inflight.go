package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/reprise-engine/reprise/pkg/queue"
)

// InflightReport is what executions cost while their models think. Sizes for each are what
// was added between a tenth of them and all.
type InflightReport struct {
	Scenario string `json:"scenario"`
	// Executions that thought at the same time, and how many were asked for: a slow machine does not
	// get that far in the time that a scenario may take.
	Executions   int `json:"executions"`
	Asked        int `json:"executions_asked"`
	Coordinators int `json:"coordinators"`
	Workers      int `json:"workers"` // each with a pool of its own
	// Begun is the rate at which they were submitted and came to their models.
	Begun float64 `json:"begun_per_second"`
	// Live heap, and memory of the processes, for each execution.
	CoordinatorHeap float64  `json:"coordinator_heap_bytes_each"`
	WorkerHeap      float64  `json:"worker_heap_bytes_each"`
	CoordinatorRSS  float64  `json:"coordinator_memory_bytes_each"`
	WorkerRSS       float64  `json:"worker_memory_bytes_each"`
	Redis           *float64 `json:"redis_bytes_each"`
	// CPU while all think, in per cent of one core, of all processes: leases are prolonged.
	ThinkingCPU      float64 `json:"thinking_cpu_percent"`
	ThinkingRedisCPU float64 `json:"thinking_redis_cpu_percent"`
	ThinkingNATSCPU  float64 `json:"thinking_nats_cpu_percent"`
	// Ended is the rate at which they end once all models answer; Seconds is until the last.
	Ended   float64 `json:"ended_per_second"`
	Seconds float64 `json:"end_seconds"`
	Lost    int     `json:"lost"`
	Environment
}

const (
	// slotsPerWorker is how many of them one worker holds: below what a pool may have out.
	slotsPerWorker = 12_500
	// thinkingFor is how long is looked at what thinking costs.
	thinkingFor = 6 * time.Second
	// fillPatience is how long the last executions may take to come to their models.
	fillPatience = 60 * time.Second
	// stepsPatience is how long all steps of an execution may take, on average.
	stepsPatience = 5 * time.Millisecond
	// fillBudget is how long executions are submitted.
	fillBudget = timeBudget / 2
)

func runInflight(ctx context.Context, c *Config) (Result, error) {
	if c.Duration != 0 || c.Executions < 10 {
		return nil, errors.New("the scenario inflight needs a number of executions, at least 10")
	}
	workers := max(c.Workers, (c.Executions+slotsPerWorker-1)/slotsPerWorker)
	f, err := openFleet(ctx, c, fleetConfig{
		coordinators: c.Coordinators, workers: workers, slots: (c.Executions+workers-1)/workers + 1, pools: true, held: true,
		// Nothing waits for a worker here, but much may for a moment.
		coordinatorEnv: []string{fmt.Sprintf("REPRISE_MAX_BACKLOG=%d", maxExecutions), fmt.Sprintf("REPRISE_MAX_BACKLOG_BYTES=%d", 1<<30)},
	})
	if err != nil {
		return nil, err
	}
	defer f.close()
	r := &InflightReport{Scenario: c.Scenario, Asked: c.Executions, Coordinators: c.Coordinators, Workers: workers}
	f.describe(ctx, &r.Environment)
	t, stop, err := newTracker(f.conn)
	if err != nil {
		return nil, err
	}
	defer stop()
	fill := &inflight{config: c, fleet: f, tracker: t}
	for i := range workers {
		document, err := agentWith(agentKind{tools: agentTools, model: "bench", pool: poolName(i), patience: maxDuration})
		if err != nil {
			return nil, err
		}
		fill.documents = append(fill.documents, document)
	}
	if err := r.run(ctx, fill); err != nil {
		return nil, failed(ctx, err)
	}
	return r, nil
}

type inflight struct {
	config    *Config
	fleet     *fleet
	tracker   *tracker
	documents [][]byte
}

func (r *InflightReport) run(ctx context.Context, x *inflight) error {
	n := x.config.Executions
	started := time.Now()
	first, err := x.fill(ctx, 0, n/10, started.Add(fillBudget))
	if err != nil {
		return err
	}
	tenth, err := x.fleet.spent(ctx, askHeap)
	if err != nil {
		return err
	}
	redisTenth, known := redisMemory(ctx, x.fleet.rdb)
	if n, err = x.fill(ctx, first, n, started.Add(fillBudget)); err != nil {
		return err
	}
	if n == first {
		return fmt.Errorf("only %d executions were accepted within %s", n, fillBudget)
	}
	r.Executions = n
	r.Begun = round(float64(n)/time.Since(started).Seconds(), 1)
	all, err := x.fleet.spent(ctx, askHeap)
	if err != nil {
		return err
	}
	grown := float64(n - first)
	each := func(after, before int64) float64 { return round(float64(after-before)/grown, 0) }
	r.CoordinatorHeap, r.WorkerHeap = each(all.CoordinatorHeap, tenth.CoordinatorHeap), each(all.WorkerHeap, tenth.WorkerHeap)
	r.CoordinatorRSS, r.WorkerRSS = each(all.CoordinatorRSS, tenth.CoordinatorRSS), each(all.WorkerRSS, tenth.WorkerRSS)
	if redisAll, ok := redisMemory(ctx, x.fleet.rdb); ok && known {
		r.Redis = ptr(each(redisAll, redisTenth))
	}
	if err := r.thinking(ctx, x); err != nil {
		return err
	}
	return r.let(ctx, x)
}

// thinking measures what executions cost of which nothing is heard.
func (r *InflightReport) thinking(ctx context.Context, x *inflight) error {
	look := min(thinkingFor, x.config.idle)
	x.config.Progress("thinking", 0, 0)
	before, err := x.fleet.spent(ctx, askUsage)
	if err != nil {
		return err
	}
	started := time.Now()
	select {
	case <-time.After(look):
	case <-ctx.Done():
		return ctx.Err()
	}
	after, err := x.fleet.spent(ctx, askUsage)
	if err != nil {
		return err
	}
	used, took := after.minus(before), time.Since(started)
	percent := func(d time.Duration) float64 { return round(100*d.Seconds()/took.Seconds(), 1) }
	r.ThinkingCPU, r.ThinkingRedisCPU, r.ThinkingNATSCPU = percent(used.total()), percent(used.Redis), percent(used.NATS)
	return nil
}

// let has all models answer and waits for the ends.
func (r *InflightReport) let(ctx context.Context, x *inflight) error {
	stopProfile, err := x.fleet.profile(ctx)
	if err != nil {
		return err
	}
	defer stopProfile()
	// Each step of all is done before the next one of any: the first ends when nearly all work is done.
	x.tracker.patience = lostAfter + time.Duration(r.Executions)*stepsPatience
	started := time.Now()
	if err := x.fleet.open(ctx); err != nil {
		return err
	}
	r.Lost, err = x.tracker.wait(ctx, func(done, _ int) { x.config.Progress("ending", done, r.Executions) })
	if err != nil {
		return err
	}
	r.Seconds = round(time.Since(started).Seconds(), 2)
	if r.Lost > 0 {
		return fmt.Errorf("%d of %d executions did not end", r.Lost, r.Executions)
	}
	r.Ended = round(per(float64(r.Executions), r.Seconds), 1)
	return nil
}

// fill submits executions, until a moment, and waits until the models of all think. It returns
// how many there are then.
func (x *inflight) fill(ctx context.Context, from, to int, until time.Time) (int, error) {
	parent := ctx
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var next, done atomic.Int64
	next.Store(int64(from))
	stop := every(progressInterval, func() { x.config.Progress("submitting", from+int(done.Load()), x.config.Executions) })
	var group sync.WaitGroup
	for range x.config.Concurrency {
		group.Go(func() {
			for ctx.Err() == nil && time.Now().Before(until) {
				i := int(next.Add(1)) - 1
				if i >= to {
					return
				}
				id := x.tracker.id(i)
				x.tracker.begin(id, time.Now())
				s := &queue.Submission{Version: queue.Version, ID: id, Workflow: x.documents[i%len(x.documents)], Mode: "cli"}
				if _, err := x.fleet.conn.SubmitPatiently(ctx, s, executionTimeout, nil); err != nil {
					cancel(err)
					return
				}
				done.Add(1)
			}
		})
	}
	group.Wait()
	stop()
	if err := context.Cause(ctx); err != nil {
		return 0, err
	}
	n := from + int(done.Load())
	return n, x.think(parent, n)
}

// think waits until the models of n executions think.
func (x *inflight) think(ctx context.Context, n int) error {
	tick := time.NewTicker(progressInterval)
	defer tick.Stop()
	most, since := int64(-1), time.Now()
	for {
		now, err := x.fleet.spent(ctx, askUsage)
		if err != nil {
			return err
		}
		if now.Thinking >= int64(n) {
			return nil
		}
		x.tracker.mu.Lock()
		failure := x.tracker.failed
		x.tracker.mu.Unlock()
		if failure != nil {
			return failure
		}
		if now.Thinking > most {
			most, since = now.Thinking, time.Now()
		}
		if time.Since(since) > fillPatience {
			return fmt.Errorf("only %d of %d executions came to their models", most, n)
		}
		x.config.Progress("thinking", int(now.Thinking), x.config.Executions)
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Tables implements Result.
func (r *InflightReport) Tables() []Table {
	t := Table{Columns: []string{count(r.Executions) + " executions whose models think", ""}}
	t.add("begun", rate(r.Begun))
	t.add("live heap for each: coordinators / workers", size(r.CoordinatorHeap)+" / "+size(r.WorkerHeap))
	t.add("process memory for each: coordinators / workers", size(r.CoordinatorRSS)+" / "+size(r.WorkerRSS))
	t.add("Redis for each", optional(r.Redis, size))
	t.add("CPU while all think, of a core: all / NATS / Redis", fmt.Sprintf("%.0f %% / %.0f %% / %.0f %%", r.ThinkingCPU, r.ThinkingNATSCPU, r.ThinkingRedisCPU))
	t.add("ended once all models answer", fmt.Sprintf("%s (%.1f s)", rate(r.Ended), r.Seconds))
	t.add("lost", count(r.Lost))
	return []Table{t}
}

// Print implements Result.
func (r *InflightReport) Print(out io.Writer) {
	printTables(out, fmt.Sprintf("scenario inflight: %d agent executions think at the same time, in %d worker%s", r.Executions, r.Workers, plural(r.Workers)), r.Tables(), &r.Environment)
}
