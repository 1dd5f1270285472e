package bench

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"time"

	"github.com/reprise-engine/reprise/pkg/queue"
)

// LatencyTarget is what p99 at half load has to stay under.
const LatencyTarget = 50 * time.Millisecond

// LatencyReport is how long an Agent with one tool, that takes no time, takes to end.
type LatencyReport struct {
	Scenario string `json:"scenario"`
	// Capacity is what a closed loop reaches; half of it is offered at random moments, whatever
	// became of what was offered before.
	Capacity float64 `json:"capacity_per_second"`
	Offered  float64 `json:"offered_per_second"`
	// Executions that were offered, in Seconds.
	Executions int     `json:"executions"`
	Seconds    float64 `json:"seconds"`
	// Alone is one execution at a time.
	AloneP50 float64 `json:"alone_p50_ms"`
	AloneP99 float64 `json:"alone_p99_ms"`
	P50      float64 `json:"p50_ms"`
	P95      float64 `json:"p95_ms"`
	P99      float64 `json:"p99_ms"`
	Max      float64 `json:"max_ms"`
	// ClientLate is the p99 of how much later than planned the client submitted: when it is not
	// small, the machine was too busy for this measurement.
	ClientLate float64 `json:"client_late_p99_ms"`
	Target     float64 `json:"target_p99_ms"`
	Met        bool    `json:"target_met"`
	Environment
}

const (
	latencyCapacity = 6 * time.Second
	latencyOpen     = 20 * time.Second
	latencyAlone    = 200
)

func runLatency(ctx context.Context, c *Config) (Result, error) {
	f, err := openFleet(ctx, c, fleetConfig{coordinators: c.Coordinators, workers: c.Workers, slots: c.WorkerConcurrency})
	if err != nil {
		return nil, err
	}
	defer f.close()
	r := &LatencyReport{Scenario: c.Scenario, Target: float64(LatencyTarget.Milliseconds())}
	f.describe(ctx, &r.Environment)
	if err := r.run(ctx, c, f); err != nil {
		return nil, failed(ctx, err)
	}
	return r, nil
}

func (r *LatencyReport) run(ctx context.Context, c *Config, f *fleet) error {
	document, err := agentWith(agentKind{tools: agentTools[:1], model: "bench"})
	if err != nil {
		return err
	}
	cl, err := f.client(document)
	if err != nil {
		return err
	}
	open := c.Duration
	if open == 0 {
		open = latencyOpen
	}
	closed := min(latencyCapacity, max(open/3, time.Second/2))
	if _, err := cl.load(ctx, "warm-up", warmUp, 0, c.Concurrency, c.Progress); err != nil {
		return err
	}
	alone, err := cl.load(ctx, "one at a time", latencyAlone, 0, 1, c.Progress)
	if err != nil {
		return err
	}
	r.AloneP50, r.AloneP99 = percentiles(alone.latencies)
	most, err := cl.load(ctx, "capacity", 0, closed, c.Concurrency, c.Progress)
	if err != nil {
		return err
	}
	r.Capacity = round(float64(len(most.latencies))/most.seconds, 1)
	r.Offered = round(r.Capacity/2, 1)
	stopProfile, err := f.profile(ctx)
	if err != nil {
		return err
	}
	defer stopProfile()
	return r.half(ctx, c, f.conn, document, open)
}

// half offers executions at random moments, at half of the capacity.
func (r *LatencyReport) half(ctx context.Context, c *Config, conn *queue.Conn, document []byte, duration time.Duration) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	t, stop, err := newTracker(conn)
	if err != nil {
		return err
	}
	defer stop()
	var late []time.Duration
	random := rand.New(rand.NewPCG(1, 2)) // the same moments each time
	started := time.Now()
	at, n := time.Duration(0), 0
	limit := make(chan struct{}, maxConcurrency)
	for {
		at += time.Duration(random.ExpFloat64() / r.Offered * float64(time.Second))
		if at > duration {
			break
		}
		planned := started.Add(at)
		if wait := time.Until(planned); wait > 0 {
			select {
			case <-time.After(wait):
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
		late = append(late, time.Since(planned))
		id := t.id(n)
		n++
		t.begin(id, planned) // so that what a busy client delays counts
		select {
		case limit <- struct{}{}:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		go func() {
			defer func() { <-limit }()
			_, err := conn.SubmitPatiently(ctx, &queue.Submission{Version: queue.Version, ID: id, Workflow: document, Mode: "cli"}, executionTimeout, nil)
			if err != nil && ctx.Err() == nil {
				cancel(err)
			}
		}()
		if n%64 == 0 {
			ended, _ := t.done()
			c.Progress(fmt.Sprintf("half load, %.0f of %.0f s", at.Seconds(), duration.Seconds()), ended, 0)
		}
	}
	lost, err := t.wait(ctx, func(int, int) {})
	for range cap(limit) { // all submissions have returned
		limit <- struct{}{}
	}
	switch {
	case context.Cause(ctx) != nil:
		return context.Cause(ctx)
	case err != nil:
		return err
	case lost > 0:
		return fmt.Errorf("%d of %d executions did not end", lost, n)
	case n == 0:
		return fmt.Errorf("nothing was offered within %s: give a longer duration", duration)
	}
	r.Executions, r.Seconds = n, round(time.Since(started).Seconds(), 2)
	_, r.ClientLate = percentiles(late)
	r.P50, r.P99 = percentiles(t.latencies) // sorts them
	r.P95, r.Max = percentile(t.latencies, 0.95), percentile(t.latencies, 1)
	r.Met = r.P99 < r.Target
	return nil
}

// Tables implements Result.
func (r *LatencyReport) Tables() []Table {
	met := "met"
	if !r.Met {
		met = "missed"
	}
	t := Table{Columns: []string{"load", "executions/s", "p50", "p95", "p99", "longest"}}
	t.add("one at a time", "", ms(r.AloneP50), "", ms(r.AloneP99), "")
	t.add("half of the capacity", rate(r.Offered), ms(r.P50), ms(r.P95), fmt.Sprintf("%s (target %.0f ms: %s)", ms(r.P99), r.Target, met), ms(r.Max))
	return []Table{t}
}

// Print implements Result.
func (r *LatencyReport) Print(out io.Writer) {
	printTables(out, fmt.Sprintf("scenario latency: an Agent with one tool that takes no time; capacity %s, %d executions at half of it (the client was late by up to %.1f ms)",
		rate(r.Capacity), r.Executions, r.ClientLate), r.Tables(), &r.Environment)
}
