package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/queue"
)

// WaitingReport is what executions cost that wait for a person, and what others
// notice of them. Sizes are in bytes, times in milliseconds.
type WaitingReport struct {
	Scenario string `json:"scenario"`
	Waiting  int    `json:"waiting"` // executions that waited at the end
	// From submitting until all of them waited.
	Seconds float64 `json:"seconds"`
	// Heap of this process (coordinators, workers and, unless it was given, NATS) after a
	// collection: when a tenth of them waited, and when all did.
	HeapTenth int64 `json:"heap_tenth_bytes"`
	HeapAll   int64 `json:"heap_all_bytes"`
	// HeapPerWaiting is what the heap grew by for each between the two.
	HeapPerWaiting  float64  `json:"heap_bytes_per_waiting"`
	RedisPerWaiting *float64 `json:"redis_bytes_per_waiting"`
	// CPU of this process and of Redis while nothing happened, in per cent of one core.
	IdleCPU      float64  `json:"idle_cpu_percent"`
	IdleRedisCPU *float64 `json:"idle_redis_cpu_percent"`
	// Plain are executions of the agent scenario beside those that wait, one by one; Answer
	// is from a decision to the end of the execution, of those picked at random.
	PlainP50  float64 `json:"plain_p50_ms"`
	PlainMax  float64 `json:"plain_max_ms"`
	AnswerP50 float64 `json:"answer_p50_ms"`
	AnswerMax float64 `json:"answer_max_ms"`
	FirstPage float64 `json:"first_page_of_questions_ms"`
	Environment
}

// DefaultWaiting is the number of executions of RunWaiting when none is given.
const DefaultWaiting = 100_000

const (
	plainRuns = 20
	answered  = 100
)

// waitingWorkflow asks a person once and then ends.
const waitingWorkflow = `{"name":"bench: wait for a person","settings":{"executionOrder":"v1"},"nodes":[
 {"id":"s","name":"Start","type":"n8n-nodes-base.manualTrigger","typeVersion":1,"position":[0,0],"parameters":{}},
 {"id":"a","name":"Ask","type":"reprise.approval","typeVersion":1,"position":[220,0],"parameters":{"message":"Go on?"}}
],"connections":{"Start":{"main":[[{"node":"Ask","type":"main","index":0}]]}}}`

// RunWaiting has Config.Executions executions wait for a person, and measures what
// they take and what happens beside them.
func RunWaiting(ctx context.Context, c Config) (*WaitingReport, error) {
	c.Scenario = ScenarioWaiting
	if c.Executions == 0 {
		c.Executions = DefaultWaiting
	}
	c, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	if c.External || c.Duration != 0 {
		return nil, errors.New("the scenario waiting needs a number of executions, and coordinators in this process")
	}
	b := &bench{config: c}
	defer b.close()
	if err := b.open(ctx); err != nil {
		return nil, err
	}
	w := &waitingBench{bench: b, report: &WaitingReport{Scenario: c.Scenario, Waiting: c.Executions}}
	w.report.describe(ctx, b)
	if err := w.run(ctx); err != nil {
		return nil, failed(ctx, err)
	}
	return w.report, nil
}

type waitingBench struct {
	*bench
	report *WaitingReport
	ids    []engine.ExecutionID
}

func (w *waitingBench) run(ctx context.Context) error {
	r := w.report
	n := w.config.Executions
	if err := w.plain(ctx); err != nil { // warms up what a plain execution needs
		return err
	}
	started := time.Now()
	if err := w.fill(ctx, n/10); err != nil {
		return err
	}
	r.HeapTenth = heap()
	redisBefore, known := w.redisMemory(ctx)
	if err := w.fill(ctx, n-n/10); err != nil {
		return err
	}
	r.Seconds = round(time.Since(started).Seconds(), 1)
	r.HeapAll = heap()
	grown := float64(max(n-n/10, 1))
	r.HeapPerWaiting = round(float64(r.HeapAll-r.HeapTenth)/grown, 1)
	if redisAfter, ok := w.redisMemory(ctx); ok && known {
		r.RedisPerWaiting = ptr(round(float64(redisAfter-redisBefore)/grown, 0))
	}
	if err := w.idle(ctx); err != nil {
		return err
	}
	if err := w.plain(ctx); err != nil {
		return err
	}
	return w.answer(ctx)
}

func ptr(v float64) *float64 { return &v }

func (b *bench) redisMemory(ctx context.Context) (int64, bool) { return redisMemory(ctx, b.redis) }

// redisMemory is what Redis holds; not every server tells.
func redisMemory(ctx context.Context, rdb redis.UniversalClient) (int64, bool) {
	client, ok := rdb.(*redis.Client)
	if !ok {
		return 0, false
	}
	info, err := client.Info(ctx, "memory").Result()
	if err != nil {
		return 0, false
	}
	text, ok := infoValue(info, "used_memory")
	used, err := strconv.ParseInt(text, 10, 64)
	return used, ok && err == nil
}

// fill brings n more executions to their question.
func (w *waitingBench) fill(ctx context.Context, n int) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	first := len(w.ids)
	for i := range n {
		w.ids = append(w.ids, engine.ExecutionID(fmt.Sprintf("%swait-%d", w.client.run, first+i)))
	}
	var next, done atomic.Int64
	next.Store(int64(first))
	stop := every(progressInterval, func() { w.config.Progress("asking", int(done.Load())+first, w.config.Executions) })
	defer stop()
	var group sync.WaitGroup
	for range w.config.Concurrency {
		group.Go(func() {
			for {
				i := int(next.Add(1)) - 1
				if i >= len(w.ids) || ctx.Err() != nil {
					return
				}
				id := w.ids[i]
				_, err := w.client.until(ctx, id, engine.StatusWaiting, func() error {
					s := &queue.Submission{Version: queue.Version, ID: id, Workflow: []byte(waitingWorkflow), Mode: "cli"}
					_, err := w.conn.SubmitPatiently(ctx, s, executionTimeout, nil)
					return err
				})
				if err != nil {
					cancel(err)
					return
				}
				done.Add(1)
			}
		})
	}
	group.Wait()
	return context.Cause(ctx)
}

// idle measures what waiting costs while nothing happens.
func (w *waitingBench) idle(ctx context.Context) error {
	w.config.Progress("idle", 0, 0)
	before := w.usage(ctx)
	select {
	case <-time.After(w.config.idle):
	case <-ctx.Done():
		return ctx.Err()
	}
	used := w.usage(ctx).minus(before)
	w.report.IdleCPU = round(100*used.process.Seconds()/w.config.idle.Seconds(), 2)
	if used.redisKnown {
		w.report.IdleRedisCPU = ptr(round(100*used.redis.Seconds()/w.config.idle.Seconds(), 2))
	}
	return nil
}

func (w *waitingBench) plain(ctx context.Context) error {
	var took []time.Duration
	for i := range plainRuns {
		w.config.Progress("plain executions", i, plainRuns)
		_, t, err := w.client.one(ctx)
		if err != nil {
			return err
		}
		took = append(took, t)
	}
	slices.Sort(took)
	w.report.PlainP50, w.report.PlainMax = percentile(took, 0.5), percentile(took, 1)
	return nil
}

// answer decides questions at random and waits for the ends of their executions.
func (w *waitingBench) answer(ctx context.Context) error {
	started := time.Now()
	if _, err := w.conn.Approvals(ctx, queue.ApprovalsRequest{Limit: 50}); err != nil {
		return err
	}
	w.report.FirstPage = round(float64(time.Since(started))/float64(time.Millisecond), 1)
	var took []time.Duration
	for i, k := range rand.Perm(len(w.ids))[:min(answered, len(w.ids))] {
		w.config.Progress("answers", i, answered)
		id := w.ids[k]
		page, err := w.conn.Approvals(ctx, queue.ApprovalsRequest{Execution: id})
		if err != nil {
			return err
		}
		if len(page.Approvals) != 1 {
			return fmt.Errorf("execution %s has %d open questions instead of one", id, len(page.Approvals))
		}
		t, err := w.client.until(ctx, id, engine.StatusSuccess, func() error {
			return w.conn.Decide(ctx, queue.DecideRequest{ID: page.Approvals[0].ID, Decision: engine.Decision{Approved: true, By: "bench"}})
		})
		if err != nil {
			return err
		}
		took = append(took, t)
	}
	slices.Sort(took)
	w.report.AnswerP50, w.report.AnswerMax = percentile(took, 0.5), percentile(took, 1)
	return nil
}

// Print writes the report for people.
func (r *WaitingReport) Print(out io.Writer) {
	mb := func(bytes int64) string { return fmt.Sprintf("%.1f MB", float64(bytes)/(1<<20)) }
	orUnknown := func(v *float64, unit string) string {
		if v == nil {
			return "not known"
		}
		return fmt.Sprintf("%.4g%s", *v, unit)
	}
	fmt.Fprintf(out, "%d executions wait for a person (all asked after %.1f s)\n", r.Waiting, r.Seconds)
	fmt.Fprintf(out, "  heap of this process       %s with a tenth of them, %s with all: %.1f bytes for each\n", mb(r.HeapTenth), mb(r.HeapAll), r.HeapPerWaiting)
	fmt.Fprintf(out, "  Redis                      %s for each\n", orUnknown(r.RedisPerWaiting, " bytes"))
	fmt.Fprintf(out, "  CPU while nothing happens  %.2f %% of a core, Redis %s\n", r.IdleCPU, orUnknown(r.IdleRedisCPU, " %"))
	fmt.Fprintf(out, "  a plain execution beside   p50 %.1f ms, longest %.1f ms\n", r.PlainP50, r.PlainMax)
	fmt.Fprintf(out, "  from an answer to the end  p50 %.1f ms, longest %.1f ms\n", r.AnswerP50, r.AnswerMax)
	fmt.Fprintf(out, "  first page of questions    %.1f ms\n", r.FirstPage)
}

// Tables implements Result.
func (r *WaitingReport) Tables() []Table {
	t := Table{Columns: []string{count(r.Waiting) + " executions that wait for a person", ""}}
	t.add("heap of coordinators and workers for each", size(r.HeapPerWaiting))
	t.add("Redis for each", optional(r.RedisPerWaiting, size))
	t.add("CPU while nothing happens, Redis", fmt.Sprintf("%.1f %% of a core, %s", r.IdleCPU, optional(r.IdleRedisCPU, func(v float64) string { return fmt.Sprintf("%.1f %%", v) })))
	t.add("a plain execution beside them, p50 / longest", ms(r.PlainP50)+" / "+ms(r.PlainMax))
	t.add("from an answer to the end, p50 / longest", ms(r.AnswerP50)+" / "+ms(r.AnswerMax))
	t.add("first page of questions", ms(r.FirstPage))
	return []Table{t}
}
