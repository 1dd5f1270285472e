package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/reprise-engine/reprise/pkg/queue"
)

// BurstReport is what becomes of many submissions that are made at once.
type BurstReport struct {
	Scenario    string `json:"scenario"`
	Submissions int    `json:"submissions"`
	// Tries of all submissions; those Refused as overloaded or full, and those that got no
	// answer in time, were made again with the same id.
	Tries     int `json:"tries"`
	Refused   int `json:"refused"`
	NoAnswer  int `json:"no_answer"`
	Succeeded int `json:"succeeded"`
	Lost      int `json:"lost"`
	// AcceptSeconds is until the last was accepted, Seconds until the last was done.
	AcceptSeconds     float64 `json:"accept_seconds"`
	Seconds           float64 `json:"seconds"`
	AcceptedPerSecond float64 `json:"accepted_per_second"`
	DonePerSecond     float64 `json:"done_per_second"`
	// From the burst to the acceptance, and to the end, of an execution, in milliseconds.
	AcceptP50 float64 `json:"accept_p50_ms"`
	AcceptP99 float64 `json:"accept_p99_ms"`
	P50       float64 `json:"p50_ms"`
	P99       float64 `json:"p99_ms"`
	// Backlog is the bound of jobs that a coordinator holds back; 0 is its default.
	Backlog int `json:"max_backlog"`
	Environment
}

// burstPatience is how long a submission is tried again.
const burstPatience = 150 * time.Second

func runBurst(ctx context.Context, c *Config) (Result, error) {
	if c.Duration != 0 {
		return nil, errors.New("the scenario burst needs a number of executions")
	}
	fc := fleetConfig{coordinators: c.Coordinators, workers: c.Workers, slots: c.WorkerConcurrency}
	if c.Backlog > 0 {
		fc.coordinatorEnv = append(fc.coordinatorEnv, "REPRISE_MAX_BACKLOG="+strconv.Itoa(c.Backlog))
	}
	f, err := openFleet(ctx, c, fc)
	if err != nil {
		return nil, err
	}
	defer f.close()
	r := &BurstReport{Scenario: c.Scenario, Submissions: c.Executions, Backlog: c.Backlog}
	f.describe(ctx, &r.Environment)
	document, err := agentWorkflow()
	if err != nil {
		return nil, err
	}
	cl, err := f.client(document)
	if err != nil {
		return nil, err
	}
	if _, err := cl.load(ctx, "warm-up", min(warmUp, c.Executions), 0, c.Concurrency, c.Progress); err != nil {
		return nil, failed(ctx, err)
	}
	t, stop, err := newTracker(f.conn)
	if err != nil {
		return nil, err
	}
	defer stop()
	if err := r.run(ctx, c, f.conn, t, document); err != nil {
		return nil, failed(ctx, err)
	}
	return r, nil
}

func (r *BurstReport) run(ctx context.Context, c *Config, conn *queue.Conn, t *tracker, document []byte) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var (
		tries, refused, silent, accepted atomic.Int64
		group                            sync.WaitGroup
		accepts                          = make([]time.Duration, r.Submissions)
		started                          = time.Now()
	)
	stopProgress := every(progressInterval, func() {
		ended, _ := t.done()
		c.Progress(fmt.Sprintf("burst (%d accepted, %d refused), done", accepted.Load(), refused.Load()), ended, r.Submissions)
	})
	defer stopProgress()
	for i := range r.Submissions {
		id := t.id(i)
		t.begin(id, started)
		s := &queue.Submission{Version: queue.Version, ID: id, Workflow: document, Mode: "cli"}
		group.Go(func() {
			for {
				tries.Add(1)
				_, err := conn.Submit(ctx, s)
				var problem *queue.Problem
				pause := time.Duration(0)
				switch {
				case err == nil:
					accepts[i] = time.Since(started)
					accepted.Add(1)
					return
				case errors.As(err, &problem) && (problem.Code == queue.CodeOverloaded || problem.Code == queue.CodeFull):
					refused.Add(1)
					pause = time.Duration(problem.RetryAfter) * time.Millisecond
				case errors.Is(err, queue.ErrUnavailable) || errors.Is(err, queue.ErrNoCoordinator):
					silent.Add(1)
				default:
					cancel(fmt.Errorf("submit %s: %w", id, err))
					return
				}
				if time.Since(started) > burstPatience {
					cancel(fmt.Errorf("submit %s: gave up: %w", id, err))
					return
				}
				pause = max(pause, 100*time.Millisecond)
				select {
				case <-time.After(pause + rand.N(pause/2)):
				case <-ctx.Done():
					return
				}
			}
		})
	}
	group.Wait()
	if err := context.Cause(ctx); err != nil {
		return err
	}
	r.AcceptSeconds = time.Since(started).Seconds()
	lost, err := t.wait(ctx, func(int, int) {})
	if err != nil {
		return err
	}
	r.Tries, r.Refused, r.NoAnswer, r.Lost = int(tries.Load()), int(refused.Load()), int(silent.Load()), lost
	t.mu.Lock()
	defer t.mu.Unlock()
	r.Succeeded, r.Seconds = len(t.latencies), t.lastEnd.Sub(started).Seconds()
	r.AcceptP50, r.AcceptP99 = percentiles(accepts)
	r.P50, r.P99 = percentiles(t.latencies)
	r.AcceptedPerSecond = round(per(float64(r.Submissions), r.AcceptSeconds), 1)
	r.DonePerSecond = round(per(float64(r.Succeeded), r.Seconds), 1)
	r.AcceptSeconds, r.Seconds = round(r.AcceptSeconds, 3), round(r.Seconds, 3)
	if lost > 0 {
		return fmt.Errorf("%d of %d accepted executions did not end: they are lost", lost, r.Submissions)
	}
	return nil
}

// Tables implements Result.
func (r *BurstReport) Tables() []Table {
	t := Table{Columns: []string{"burst of " + count(r.Submissions) + " submissions", ""}}
	t.add("accepted", rate(r.AcceptedPerSecond))
	t.add("refused as overloaded, tried again", count(r.Refused))
	t.add("without an answer in time, tried again", count(r.NoAnswer))
	t.add("until all were accepted", fmt.Sprintf("%.1f s", r.AcceptSeconds))
	t.add("until all were done", fmt.Sprintf("%.1f s (%s)", r.Seconds, rate(r.DonePerSecond)))
	t.add("from the burst to acceptance, p50 / p99", fmt.Sprintf("%s / %s", ms(r.AcceptP50), ms(r.AcceptP99)))
	t.add("from the burst to the end, p50 / p99", fmt.Sprintf("%s / %s", ms(r.P50), ms(r.P99)))
	t.add("lost", count(r.Lost))
	return []Table{t}
}

// Print implements Result.
func (r *BurstReport) Print(out io.Writer) {
	printTables(out, fmt.Sprintf("scenario burst: %d agent executions are submitted at once", r.Submissions), r.Tables(), &r.Environment)
}
