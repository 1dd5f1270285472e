package cli

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"

	"github.com/reprise-engine/reprise/internal/service"
	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/queue"
)

// pollInterval is how often a waiting client looks at an execution whose
// notices it may have missed.
const pollInterval = 2 * time.Second

// follower submits an execution and follows it.
type follower struct {
	conn    *queue.Conn
	show    *presenter
	timeout time.Duration // 0 is none
	// retryFor and refused are those of queue.SubmitPatiently.
	retryFor time.Duration
	refused  func(*queue.Problem, time.Duration)
	// everything makes the notices of other executions count too: they may be
	// what this one waits for.
	everything bool
	// waits is asked whenever the execution may have changed and is not over. It
	// reports whether there is no use in waiting any longer.
	waits func(ctx context.Context, x *queue.Execution) (enough bool, err error)
}

// run submits, follows the execution and returns it when it is over, or when it
// waits and there is no use in waiting with it. When ctx ends it is cancelled.
func (f *follower) run(ctx context.Context, sub *queue.Submission) (*queue.Execution, error) {
	changed := make(chan struct{}, 1)
	change := func() {
		select {
		case changed <- struct{}{}:
		default:
		}
	}
	if sub.ID == "" {
		sub.ID = engine.ExecutionID(uuid.NewString())
	} else {
		change() // it may be a repetition, and over since long
	}
	watched := sub.ID
	if f.everything {
		watched = ""
	}
	stop, err := f.conn.WatchLive(watched, func(l queue.Live) {
		if l.Execution == sub.ID {
			f.show.live(l.Live)
		}
		if l.Kind == engine.LiveExecutionFinished || l.Status == engine.StatusWaiting {
			change()
		}
	})
	if err != nil {
		return nil, err
	}
	defer stop()
	if _, err := f.conn.SubmitPatiently(ctx, sub, f.retryFor, f.refused); err != nil {
		return nil, err
	}
	if f.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, f.timeout)
		defer cancel()
	}
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	for {
		select {
		case <-changed:
		case <-ticker.C:
		case <-ctx.Done():
			return nil, abandon(f.conn, sub.ID, ctx.Err())
		}
		x, err := f.look(ctx, sub.ID)
		switch {
		case ctx.Err() != nil:
			return nil, abandon(f.conn, sub.ID, ctx.Err())
		case x != nil || err != nil:
			return x, err
		}
	}
}

// look returns the execution with its data when following it ends, nil when it
// goes on.
func (f *follower) look(ctx context.Context, id engine.ExecutionID) (*queue.Execution, error) {
	x, err := f.conn.Get(ctx, id, false)
	if err != nil {
		return nil, err
	}
	if !x.Status.Finished() {
		enough, err := f.waits(ctx, x)
		if err != nil || !enough {
			return nil, err
		}
	}
	if x, err = f.conn.Get(ctx, id, true); err != nil {
		return nil, err
	}
	if !x.Status.Finished() && x.Status != engine.StatusWaiting {
		return nil, nil //nolint:nilnil // it was resumed meanwhile
	}
	return x, nil
}

// abandon cancels an execution nobody waits for any more.
func abandon(conn *queue.Conn, id engine.ExecutionID, cause error) error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	text := "interrupted: the execution was cancelled"
	if errors.Is(cause, context.DeadlineExceeded) {
		text = "timed out: the execution was cancelled"
	}
	if err := conn.Cancel(ctx, id, text); err != nil {
		text += " (not confirmed: " + err.Error() + ")"
	}
	return &exitError{service.ExitFailed, errors.New(text)}
}
