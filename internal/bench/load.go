package bench

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/queue"
)

const (
	// lookAfter is how long an execution may take before it is asked for: the
	// notice of its end may have been lost.
	lookAfter = 5 * time.Second
	// executionTimeout is when one counts as failed, think time aside.
	executionTimeout = 60 * time.Second
	progressInterval = 200 * time.Millisecond
)

// client submits executions and learns their ends.
type client struct {
	conn     *queue.Conn
	document []byte
	think    time.Duration
	run      string // makes the ids of this run its own

	next    atomic.Int64
	mu      sync.Mutex
	waiting map[engine.ExecutionID]chan engine.Live
}

func newClient(conn *queue.Conn, document []byte, think time.Duration) (c *client, stop func(), err error) {
	c = &client{conn: conn, document: document, think: think, run: "bench-" + uuid.NewString()[:8] + "-", waiting: map[engine.ExecutionID]chan engine.Live{}}
	stop, err = conn.WatchLive("", func(n queue.Live) {
		if n.Kind != engine.LiveExecutionFinished {
			return
		}
		c.mu.Lock()
		over := c.waiting[n.Execution]
		c.mu.Unlock()
		if over != nil {
			select {
			case over <- n.Live:
			default: // told before
			}
		}
	})
	return c, stop, err
}

// submission is what is sent for an execution.
func (c *client) submission(id engine.ExecutionID) *queue.Submission {
	return &queue.Submission{Version: queue.Version, ID: id, Workflow: c.document, Mode: "cli"}
}

// one submits an execution and waits for its end. It returns how long that took.
func (c *client) one(ctx context.Context) (engine.ExecutionID, time.Duration, error) {
	id := engine.ExecutionID(c.run + strconv.FormatInt(c.next.Add(1), 10))
	took, err := c.until(ctx, id, engine.StatusSuccess, func() error {
		_, err := c.conn.SubmitPatiently(ctx, c.submission(id), executionTimeout, nil)
		return err
	})
	return id, took, err
}

// until does something and waits until it has brought an execution to a status. It
// returns how long that took.
func (c *client) until(ctx context.Context, id engine.ExecutionID, want engine.Status, do func() error) (time.Duration, error) {
	over := make(chan engine.Live, 4) // it may tell that it waits before it tells its end
	c.mu.Lock()
	c.waiting[id] = over
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		delete(c.waiting, id)
		c.mu.Unlock()
	}()
	started := time.Now()
	if err := do(); err != nil {
		return 0, err
	}
	look := time.NewTicker(lookAfter)
	defer look.Stop()
	for {
		select {
		case end := <-over:
			took := time.Since(started)
			switch {
			case end.Status == want:
				return took, nil
			case end.Status.Finished(): // else it waits, which is not its end
				return took, c.failure(ctx, id, end.Status)
			}
		case <-look.C:
			x, err := c.conn.Get(ctx, id, false)
			took := time.Since(started)
			switch {
			case err == nil && x.Status == want:
				return took, nil
			case err == nil && (x.Status.Finished() || x.Status == engine.StatusWaiting):
				return took, c.failure(ctx, id, x.Status)
			case took > executionTimeout+4*c.think:
				return took, fmt.Errorf("execution %s did not finish within %s", id, took.Round(time.Second))
			}
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
}

// failure says why an execution ended otherwise than with success.
func (c *client) failure(ctx context.Context, id engine.ExecutionID, status engine.Status) error {
	x, err := c.conn.Get(ctx, id, false)
	if err != nil {
		return fmt.Errorf("execution %s ended with status %s, its error is not known: %w", id, status, err)
	}
	if x.Error == nil {
		return fmt.Errorf("execution %s ended with status %s", id, x.Status)
	}
	return fmt.Errorf("execution %s ended with status %s in node %q: %s", id, x.Status, x.Error.Node, x.Error.Message)
}

// outcome of a load.
type outcome struct {
	latencies []time.Duration
	seconds   float64
}

// load keeps a number of executions in flight until as many as asked have
// finished, or, with a duration, until that is over. The first failure ends it.
func (c *client) load(ctx context.Context, stage string, executions int, duration time.Duration, concurrency int, progress func(string, int, int)) (*outcome, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if duration > 0 {
		executions = maxExecutions
	} else {
		concurrency = min(concurrency, executions)
	}
	var (
		begun, done atomic.Int64
		parts       = make([][]time.Duration, concurrency)
		group       sync.WaitGroup
		started     = time.Now()
	)
	stopProgress := every(progressInterval, func() {
		of := executions
		if duration > 0 {
			of = 0
		}
		progress(stage, int(done.Load()), of)
	})
	for i := range parts {
		group.Go(func() {
			for ctx.Err() == nil && begun.Add(1) <= int64(executions) && (duration == 0 || time.Since(started) < duration) {
				_, took, err := c.one(ctx)
				if err != nil {
					cancel(err)
					return
				}
				parts[i] = append(parts[i], took)
				done.Add(1)
			}
		})
	}
	group.Wait()
	out := &outcome{seconds: time.Since(started).Seconds()}
	stopProgress()
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	for _, p := range parts {
		out.latencies = append(out.latencies, p...)
	}
	if len(out.latencies) == 0 {
		return nil, errors.New("no execution finished: give a longer duration")
	}
	return out, nil
}

// every calls f at an interval until stop, which waits for it.
func every(interval time.Duration, f func()) (stop func()) {
	quit := make(chan struct{})
	var loop sync.WaitGroup
	loop.Go(func() {
		ticker := time.NewTicker(interval)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				f()
			case <-quit:
				return
			}
		}
	})
	return func() { close(quit); loop.Wait() }
}
