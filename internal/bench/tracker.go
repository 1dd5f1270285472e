package bench

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/queue"
)

// tracker learns the ends of any number of executions, without a goroutine for each. Those whose
// notice was lost are asked for.
type tracker struct {
	conn *queue.Conn
	run  string // the ids of this run begin so
	// patience is how long nothing may end before what is open counts as lost.
	patience time.Duration

	mu        sync.Mutex
	open      map[engine.ExecutionID]time.Time // since when
	latencies []time.Duration
	failed    error // of the first that did not end with success
	lastEnd   time.Time
	asked     int // ends that were asked for
	ended     chan struct{}
}

func newTracker(conn *queue.Conn) (*tracker, func(), error) {
	t := &tracker{conn: conn, run: "bench-" + uuid.NewString()[:8] + "-", patience: lostAfter, open: map[engine.ExecutionID]time.Time{}, ended: make(chan struct{}, 1)}
	stop, err := conn.WatchLive("", func(n queue.Live) {
		if n.Kind == engine.LiveExecutionFinished && n.Status.Finished() {
			t.end(n.Execution, n.Status, n.Error)
		}
	})
	return t, stop, err
}

// id of the i-th execution.
func (t *tracker) id(i int) engine.ExecutionID {
	return engine.ExecutionID(fmt.Sprintf("%s%d", t.run, i))
}

// begin expects the end of an execution; its latency is counted from since.
func (t *tracker) begin(id engine.ExecutionID, since time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.open[id] = since
}

func (t *tracker) end(id engine.ExecutionID, status engine.Status, problem string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	since, ok := t.open[id]
	if !ok {
		return
	}
	delete(t.open, id)
	t.lastEnd = time.Now()
	if status == engine.StatusSuccess {
		t.latencies = append(t.latencies, t.lastEnd.Sub(since))
	} else if t.failed == nil {
		t.failed = fmt.Errorf("execution %s ended with status %s: %s", id, status, problem)
	}
	select {
	case t.ended <- struct{}{}:
	default:
	}
}

// done is how many have ended with success, and how many are open.
func (t *tracker) done() (ended, open int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.latencies), len(t.open)
}

const (
	// silence is how long nothing may end before those that are open are asked for.
	silence = 3 * time.Second
	// lostAfter is the patience of scenarios in which executions end one after the other.
	lostAfter = 60 * time.Second
)

// wait waits until all have ended, or none of the rest seems to: they are lost, and their number
// is returned.
func (t *tracker) wait(ctx context.Context, progress func(done, open int)) (lost int, err error) {
	since := time.Now()
	looked := since
	tick := time.NewTicker(progressInterval)
	defer tick.Stop()
	for {
		t.mu.Lock()
		open, failed, last := len(t.open), t.failed, t.lastEnd
		ended := len(t.latencies)
		t.mu.Unlock()
		if failed != nil {
			return 0, failed
		}
		if open == 0 {
			return 0, nil
		}
		if last.Before(since) {
			last = since
		}
		switch quiet := time.Since(last); {
		case quiet > t.patience:
			return open, nil
		case quiet > silence && time.Since(looked) > silence:
			looked = time.Now()
			if err := t.look(ctx); err != nil {
				return open, err
			}
		}
		select {
		case <-t.ended:
		case <-tick.C:
			progress(ended, open)
		case <-ctx.Done():
			return open, ctx.Err()
		}
	}
}

// look asks for those that are open, a share at a time: most of them may just not have ended.
func (t *tracker) look(ctx context.Context) error {
	t.mu.Lock()
	var ids []engine.ExecutionID
	for id := range t.open {
		if ids = append(ids, id); len(ids) == 200 {
			break
		}
	}
	t.mu.Unlock()
	for _, id := range ids {
		x, err := t.conn.Get(ctx, id, false)
		var problem *queue.Problem
		switch {
		case errors.As(err, &problem) && problem.Code == queue.CodeNotFound:
			continue // lost, or not taken yet
		case err != nil && ctx.Err() != nil:
			return ctx.Err()
		case err != nil || !x.Status.Finished():
			continue
		}
		text := ""
		if x.Error != nil {
			text = x.Error.Message
		}
		t.end(id, x.Status, text)
		t.mu.Lock()
		t.asked++
		t.mu.Unlock()
	}
	return nil
}
