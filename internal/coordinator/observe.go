package coordinator

import (
	"errors"
	"time"

	"github.com/reprise-engine/reprise/internal/telemetry"
	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/queue"
	"github.com/reprise-engine/reprise/pkg/state"
)

// observeCommit tells what came of a group's commit.
func (c *Coordinator) observeCommit(took time.Duration, errs []error) {
	t := c.config.Telemetry
	if t == nil {
		return
	}
	t.CommitTook(took)
	for _, err := range errs {
		switch {
		case err == nil:
			t.Committed(telemetry.CommitOK)
		case errors.Is(err, state.ErrConflict):
			t.Committed(telemetry.CommitRefused)
		case errors.Is(err, state.ErrExists):
			t.Committed(telemetry.CommitExists)
		default:
			t.Committed(telemetry.CommitFailed)
		}
	}
}

// observePublished tells what came of publishing a job.
func (c *Coordinator) observePublished(job *queue.Job, err error) {
	switch {
	case err == nil:
		c.config.Telemetry.Published(job.Pool, telemetry.PublishOK)
	case errors.Is(err, queue.ErrQueued):
		c.config.Telemetry.Published(job.Pool, telemetry.PublishRefused)
	default:
		c.config.Telemetry.Published(job.Pool, telemetry.PublishFailed)
	}
}

// observeStart counts an execution that has begun.
func (c *Coordinator) observeStart() {
	c.started.Add(1)
	c.config.Telemetry.Started()
}

// observeEnd counts an execution that is over. ended is false when another commit ended it, maybe
// that of a process which did not live to tell.
func (c *Coordinator) observeEnd(x *execution, ended bool) {
	if !ended {
		c.config.Telemetry.FinishedAgain(&x.state.Meta)
		return
	}
	c.finished.Add(1)
	c.config.Telemetry.Finished(&x.state.Meta)
}

// observeLost tells that a job was given up, and that there is a dead letter of it.
func (c *Coordinator) observeLost(x *execution, job *engine.Job) {
	c.config.Telemetry.Dead(engine.ReasonWorkerLost)
	c.config.Telemetry.JobLost(&x.state.Meta, job, x.program.nodes[job.Entry.Node].node)
}

// Lanes tells how many events wait for a lane, and how long ago the event came that the
// slowest one handles now.
func (c *Coordinator) Lanes() (queued int, lag time.Duration) {
	now := c.now()
	for _, l := range c.lanes {
		queued += len(l.work)
		lag = max(lag, l.lag(now))
	}
	return queued, lag
}

// Pools are the jobs that this coordinator holds or has published, by pool.
func (c *Coordinator) Pools() map[string]queue.PoolNotice { return c.dispatch.figures() }

// observeSubmission counts how submissions are answered.
func (c *Coordinator) observeSubmission(answer func(engine.ExecutionID, *queue.Problem)) func(engine.ExecutionID, *queue.Problem) {
	if c.config.Telemetry == nil {
		return answer
	}
	return func(id engine.ExecutionID, problem *queue.Problem) {
		c.config.Telemetry.Submission(problem)
		answer(id, problem)
	}
}
