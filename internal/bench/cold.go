package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/queue"
)

// ColdReport is how long a coordinator and a worker take from the start of their processes, on
// servers that run.
type ColdReport struct {
	Scenario string    `json:"scenario"`
	Rows     []ColdRow `json:"rows"`
	Environment
}

// ColdRow is one kind of execution, submitted again and again from the start on. Times are
// medians and the longest, in milliseconds from the start of the processes.
type ColdRow struct {
	Name      string  `json:"name"`
	Starts    int     `json:"starts"`
	Ready     float64 `json:"ready_p50_ms"`    // both say that they work
	Accepted  float64 `json:"accepted_p50_ms"` // the execution is stored
	Result    float64 `json:"first_result_p50_ms"`
	ResultMax float64 `json:"first_result_max_ms"`
	End       float64 `json:"end_p50_ms"`
}

// coldKind is what is run first.
type coldKind struct {
	name string
	job  string // whose notice tells of the first job's result
	make func() ([]byte, error)
}

func coldKinds() []coldKind {
	return []coldKind{
		{"an Agent with two tools", "Model", agentWorkflow},
		{"an expression in JavaScript", loopNode, func() ([]byte, error) { return loopWorkflow(1) }},
	}
}

func runCold(ctx context.Context, c *Config) (Result, error) {
	f, err := openServers(ctx, c)
	if err != nil {
		return nil, err
	}
	defer f.close()
	r := &ColdReport{Scenario: c.Scenario}
	f.describe(ctx, &r.Environment)
	for _, kind := range coldKinds() {
		document, err := kind.make()
		if err != nil {
			return nil, err
		}
		var starts []coldStart
		// The first start finds no streams: it is not counted.
		for i := range c.Repeats + 1 {
			c.Progress(kind.name+", starts", i, c.Repeats+1)
			one, err := f.cold(ctx, document, kind.job)
			if err != nil {
				return nil, failed(ctx, err)
			}
			if i > 0 {
				starts = append(starts, one)
			}
		}
		r.Rows = append(r.Rows, coldRow(kind.name, starts))
	}
	return r, nil
}

// coldStart are moments after the start of the processes.
type coldStart struct{ ready, accepted, result, end time.Duration }

// cold starts a coordinator and a worker, and submits an execution until it is accepted.
func (f *fleet) cold(ctx context.Context, document []byte, job string) (s coldStart, err error) {
	id := engine.ExecutionID("bench-cold-" + uuid.NewString()[:8])
	results, ends := make(chan time.Time, 1), make(chan queue.Live, 1)
	stop, err := f.conn.WatchLive(id, func(n queue.Live) {
		switch {
		case n.Kind == engine.LiveNodeFinished && n.Node == job:
			select {
			case results <- time.Now():
			default: // not the first
			}
		case n.Kind == engine.LiveExecutionFinished && n.Status.Finished():
			ends <- n
		}
	})
	if err != nil {
		return s, err
	}
	defer stop()
	if err := f.conn.Flush(ctx); err != nil {
		return s, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, executionTimeout, fmt.Errorf("execution %s did not end within %s of the start of its coordinator", id, executionTimeout))
	defer cancel()
	started := time.Now()
	begun := make(chan error, 1)
	go func() {
		err := f.start(ctx, fleetConfig{coordinators: 1, workers: 1, slots: 8})
		s.ready = time.Since(started)
		begun <- err
	}()
	accepted, problem := f.submitUntil(ctx, &queue.Submission{Version: queue.Version, ID: id, Workflow: document, Mode: "cli"})
	if err := <-begun; err != nil {
		return s, err
	}
	defer f.stopServices()
	if problem != nil {
		return s, problem
	}
	s.accepted = accepted.Sub(started)
	select {
	case n := <-ends:
		s.end = time.Since(started)
		if n.Status != engine.StatusSuccess {
			return s, fmt.Errorf("execution %s ended with status %s: %s", id, n.Status, n.Error)
		}
	case <-ctx.Done():
		return s, context.Cause(ctx)
	}
	select {
	case at := <-results: // told before the end
		s.result = at.Sub(started)
	default:
		return s, fmt.Errorf("execution %s ended without the result of node %q", id, job)
	}
	return s, nil
}

// submitUntil submits until a coordinator takes it.
func (f *fleet) submitUntil(ctx context.Context, s *queue.Submission) (time.Time, error) {
	for {
		// An answer may never come from a process that has just subscribed.
		try, cancel := context.WithTimeout(ctx, 250*time.Millisecond)
		_, err := f.conn.Submit(try, s)
		cancel()
		var problem *queue.Problem
		switch {
		case err == nil:
			return time.Now(), nil
		case ctx.Err() != nil:
			return time.Time{}, context.Cause(ctx)
		case errors.As(err, &problem):
			return time.Time{}, err
		}
		select {
		case <-time.After(2 * time.Millisecond):
		case <-ctx.Done():
			return time.Time{}, context.Cause(ctx)
		}
	}
}

func coldRow(name string, starts []coldStart) ColdRow {
	pick := func(moment func(coldStart) time.Duration, p float64) float64 {
		var all []time.Duration
		for _, s := range starts {
			all = append(all, moment(s))
		}
		slices.Sort(all)
		return percentile(all, p)
	}
	return ColdRow{
		Name: name, Starts: len(starts),
		Ready:     pick(func(s coldStart) time.Duration { return s.ready }, 0.5),
		Accepted:  pick(func(s coldStart) time.Duration { return s.accepted }, 0.5),
		Result:    pick(func(s coldStart) time.Duration { return s.result }, 0.5),
		ResultMax: pick(func(s coldStart) time.Duration { return s.result }, 1),
		End:       pick(func(s coldStart) time.Duration { return s.end }, 0.5),
	}
}

// Tables implements Result.
func (r *ColdReport) Tables() []Table {
	t := Table{Columns: []string{"from process start, medians", "both ready", "accepted", "first job's result", "longest", "end"}}
	for _, row := range r.Rows {
		t.add(row.Name, ms(row.Ready), ms(row.Accepted), ms(row.Result), ms(row.ResultMax), ms(row.End))
	}
	return []Table{t}
}

// Print implements Result.
func (r *ColdReport) Print(out io.Writer) {
	starts := 0
	if len(r.Rows) > 0 {
		starts = r.Rows[0].Starts
	}
	printTables(out, fmt.Sprintf("scenario cold: a coordinator and a worker are started %d times on running servers", starts), r.Tables(), &r.Environment)
}
