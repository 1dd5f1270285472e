package coordinator

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"go.uber.org/zap"

	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/queue"
	"github.com/reprise-engine/reprise/pkg/state"
)

// onResult takes a worker's result: commit, acknowledge the job's message on
// the worker's behalf, answer the worker.
func (c *Coordinator) onResult(r *queue.Result, reply func(queue.Reply)) {
	if r.Version > queue.Version {
		reply(queue.Reply{Verdict: queue.VerdictError, Error: fmt.Sprintf("result has version %d, this coordinator knows %d", r.Version, queue.Version)})
		return
	}
	if r.HandedBack {
		c.onHandedBack(r, reply)
		return
	}
	c.hand(&work{
		id: r.Execution,
		handle: func(x *execution) error {
			if job := x.state.Jobs[r.Job]; job != nil {
				for i, m := range r.Result.Memory {
					x.memory = append(x.memory, memoryAppend{
						id:           fmt.Sprintf("%s:%s:%d:%d", x.id, job.Entry.Node, job.Entry.Run, i),
						MemoryAppend: m,
					})
				}
			}
			return x.apply(c, engine.NodeFinished{At: c.now(), Job: r.Job, Result: r.Result.Result})
		},
		finish: func(err error) {
			if err != nil && !errors.Is(err, errNotFound) {
				reply(queue.Reply{Verdict: queue.VerdictError, Error: err.Error()})
				return
			}
			c.ack(r.Ack, r.Job)
			reply(queue.Reply{Verdict: queue.VerdictOK})
		},
	})
}

// onHandedBack notes that a worker gave a job back unfinished because it stops. The
// message is not acknowledged: another worker gets it.
func (c *Coordinator) onHandedBack(r *queue.Result, reply func(queue.Reply)) {
	c.hand(&work{
		id: r.Execution,
		handle: func(x *execution) error {
			if job := x.state.Jobs[r.Job]; job == nil || job.RetryAt != 0 {
				return nil
			}
			return x.apply(c, engine.HandedBack{At: c.now(), Job: r.Job})
		},
		finish: func(err error) {
			if err != nil && !errors.Is(err, errNotFound) {
				reply(queue.Reply{Verdict: queue.VerdictError, Error: err.Error()})
				return
			}
			reply(queue.Reply{Verdict: queue.VerdictOK})
		},
	})
}

// ack acknowledges a job's message. When that is lost the job is delivered
// again, and dropped then.
func (c *Coordinator) ack(subject string, job engine.JobID) {
	if subject == "" {
		return
	}
	if err := c.config.Transport.Ack(subject); err != nil {
		c.log.Debug("job was not acknowledged", zap.String("job", string(job)), zap.Error(err))
	}
}

// onRedelivery decides about a job that was delivered before, or that must not run
// twice: run it, drop it because it was answered or cancelled, or give it up. That a
// job is given to a worker which asked is committed before the worker hears it.
func (c *Coordinator) onRedelivery(q *queue.Redelivery, reply func(queue.Reply)) {
	if store := c.heldStore(); q.Running && store != nil {
		c.wg.Go(func() { c.answerDoubt(store, q, reply) })
		return
	}
	verdict := queue.Reply{}
	var lost *queue.DeadLetter
	var observe func()
	c.hand(&work{
		id: q.Execution, fresh: true,
		handle: func(x *execution) error {
			lost = nil
			verdict.Verdict = queue.VerdictRun
			job := x.state.Jobs[q.Job]
			if job == nil || job.RetryAt != 0 {
				verdict.Verdict = queue.VerdictDrop
				return nil
			}
			once := x.program.nodes[job.Entry.Node].once
			message := ""
			switch {
			case q.Running:
				return nil
			case q.Asker != "" && job.GivenTo == q.Asker: // it asks again: the answer was lost
				return nil
			case once && job.GivenAgain > 0:
				message = outcomeUnknown
			case !once && q.Deliveries > 1 && job.GivenAgain+1 >= c.config.DeliveryLimit:
				message = fmt.Sprintf("the job was given to %d workers one after the other and none answered", job.GivenAgain+1)
			case once || q.Deliveries > 1:
				return x.apply(c, engine.GivenAgain{At: c.now(), Job: q.Job, To: q.Asker})
			default:
				return nil
			}
			verdict.Verdict = queue.VerdictDrop
			lost = &queue.DeadLetter{
				Execution: x.id, WorkflowID: x.state.Meta.WorkflowID, WorkflowName: x.state.Meta.WorkflowName,
				Reason: engine.ReasonWorkerLost, Node: job.Entry.Node, RunIndex: job.Entry.Run,
				Job: q.Job, Attempts: job.Attempt, Deliveries: max(q.Deliveries, job.GivenAgain+1), Error: message, At: c.now(),
			}
			gone := job.Job
			observe = func() { c.observeLost(x, &gone) }
			return x.apply(c, engine.WorkerLost{At: c.now(), Job: q.Job, Message: message})
		},
		finish: func(err error) {
			switch {
			case errors.Is(err, errNotFound):
				verdict = queue.Reply{Verdict: queue.VerdictDrop}
			case err != nil:
				verdict = queue.Reply{Verdict: queue.VerdictError, Error: err.Error()}
			case lost != nil:
				c.log.Warn("job given up", zap.String("execution_id", string(q.Execution)), zap.String("node", lost.Node),
					zap.Int("run_index", lost.RunIndex), zap.Int("deliveries", lost.Deliveries))
				observe()
				if err := c.config.Transport.PublishDead(c.ctx, lost); err != nil {
					c.log.Error("dead letter was not stored", zap.Error(err))
				}
			}
			reply(verdict)
		},
	})
}

// answerDoubt tells a worker whether a job that it runs still counts. It asks for every job
// that takes long, so the execution is not loaded for it.
func (c *Coordinator) answerDoubt(store HeldStore, q *queue.Redelivery, reply func(queue.Reply)) {
	ctx, cancel := context.WithTimeout(c.ctx, storeTimeout)
	defer cancel()
	open, err := store.OpenJobs(ctx, []state.JobRef{{Execution: q.Execution, Job: q.Job}})
	switch {
	case err != nil:
		reply(queue.Reply{Verdict: queue.VerdictError, Error: err.Error()})
	case open[0]:
		reply(queue.Reply{Verdict: queue.VerdictRun})
	default:
		reply(queue.Reply{Verdict: queue.VerdictDrop})
	}
}

// outcomeUnknown is the failure of a run that may have had its effect and must not
// be repeated.
const outcomeUnknown = "The outcome is unknown: the worker that ran the node was lost, and the node is not to be run twice (onWorkerLost: giveUp)"

// publishJobs hands jobs to NATS and returns when they are on their way. Those
// that the server did not take are tried again for a while; the sweeper
// finds those that still got lost.
func (c *Coordinator) publishJobs(jobs []*queue.Job) {
	if len(jobs) == 0 {
		return
	}
	wait := c.config.Transport.PublishJobs(c.ctx, jobs)
	c.wg.Go(func() {
		for pause := 50 * time.Millisecond; ; pause *= 2 {
			var failed []*queue.Job
			var queued []engine.JobID
			for i, err := range wait() {
				c.observePublished(jobs[i], err)
				if errors.Is(err, queue.ErrQueued) && jobs[i].Confirm {
					queued = append(queued, jobs[i].ID)
				}
				if err != nil && !errors.Is(err, queue.ErrQueued) {
					// It may have arrived all the same, and even be answered by now.
					again := *jobs[i]
					again.Confirm = true
					failed = append(failed, &again)
					c.log.Warn("job was not published", zap.String("job", string(jobs[i].ID)), zap.Error(err))
				}
			}
			if len(queued) > 0 {
				c.perform(c.dispatch.disown(queued))
			}
			if len(failed) == 0 || pause > 2*time.Second {
				return
			}
			select {
			case <-time.After(pause):
			case <-c.ctx.Done():
				return
			}
			jobs = failed
			wait = c.config.Transport.PublishJobs(c.ctx, jobs)
		}
	})
}

// drop stops jobs that no longer count: workers that run them are told, those
// that are still queued are removed. It does not wait.
func (c *Coordinator) drop(x *execution, jobs []engine.JobID) {
	if len(jobs) == 0 {
		return
	}
	if err := c.config.Transport.PublishControl(queue.Control{Drop: jobs}); err != nil {
		c.log.Warn("workers were not told to drop jobs", zap.String("execution_id", string(x.id)), zap.Error(err))
	}
	pools := x.program.pools
	c.wg.Go(func() {
		for _, pool := range pools {
			if err := c.config.Transport.Withdraw(c.ctx, pool, jobs...); err != nil {
				c.log.Warn("dropped jobs may still be queued", zap.String("execution_id", string(x.id)), zap.Error(err))
			}
		}
	})
}

// tell publishes notices of one execution.
func (c *Coordinator) tell(x *execution, live []engine.Live) {
	if len(live) == 0 {
		return
	}
	if c.config.OnLive != nil {
		c.config.OnLive(x.id, live)
	}
	if err := c.config.Transport.PublishLive(x.id, live); err != nil {
		c.log.Debug("notices were not published", zap.String("execution_id", string(x.id)), zap.Error(err))
	}
}

// logWaiting tells that all that is left of an execution waits.
func (c *Coordinator) logWaiting(x *execution, live []engine.Live) {
	for i := range live {
		if live[i].Kind != engine.LiveExecutionFinished || live[i].Status != engine.StatusWaiting {
			continue
		}
		parked := x.state.ParkedInOrder()
		if len(parked) == 0 {
			return
		}
		c.log.Info("execution waits", zap.String("execution_id", string(x.id)), zap.String("workflow", x.state.Meta.WorkflowName),
			zap.String("node", parked[0].Entry.Node), zap.String("for", string(parked[0].Wait.Kind)), zap.Int("waits", len(parked)))
		return
	}
}

func (c *Coordinator) logFinished(x *execution) {
	meta := &x.state.Meta
	fields := []zap.Field{
		zap.String("execution_id", string(x.id)), zap.String("workflow", meta.WorkflowName),
		zap.String("status", string(meta.Status)),
	}
	if meta.StartedAt > 0 { // else its turn did not come
		fields = append(fields, zap.Int64("duration_ms", meta.StoppedAt-meta.StartedAt))
	}
	if meta.Error != nil {
		fields = append(fields, zap.String("node", meta.Error.Node), zap.String("reason", string(meta.Error.Reason)))
	}
	c.log.Info("execution finished", fields...)
}

// How many timers are claimed together, and how many times in a row before the
// loop looks whether it shall stop. A claim outlasts the handling of its page.
const (
	timerPage  = 512
	timerPages = 1000
	timerClaim = 5 * time.Second
)

// timerLoop hands due timers to their executions. Any coordinator may take any
// timer: claiming one pushes it ahead, the commit that handles it removes it.
// The lanes take them when they can, and with them what else has come: handing in
// waits while a lane has enough to do.
func (c *Coordinator) timerLoop() {
	c.every(c.config.TimerInterval, func() {
		for range timerPages {
			now := c.now()
			due, err := c.config.Store.ClaimTimers(c.ctx, now, now+timerClaim.Milliseconds(), timerPage)
			if err != nil {
				c.log.Warn("timers cannot be read", zap.Error(err))
				return
			}
			for _, d := range due {
				c.config.Telemetry.TimerLate(time.Duration(now-d.At) * time.Millisecond)
				c.hand(c.timerWork(d))
			}
			// Every shard gives its share of a page, so one that is not full does
			// not mean that nothing is left.
			if len(due) < timerPage/4 {
				return
			}
			select {
			case <-c.stopping:
				return
			default:
			}
		}
	})
}

// timerWork fires one timer. One that is no longer set is removed from the store.
func (c *Coordinator) timerWork(d state.Due) *work {
	gone := false
	return &work{
		id: d.Execution,
		handle: func(x *execution) error {
			gone = x.state.Timers[d.Timer] == 0
			switch {
			case !gone:
				return x.apply(c, engine.TimerFired{At: c.now(), Timer: d.Timer})
			case !x.current:
				return errStale
			}
			return nil
		},
		finish: func(err error) {
			if err == nil && gone || errors.Is(err, errNotFound) {
				err = c.config.Store.DropTimers(c.ctx, []state.Due{d})
			}
			if err != nil {
				c.log.Warn("timer was not handled", zap.String("execution_id", string(d.Execution)), zap.String("timer", d.Timer), zap.Error(err))
			}
		},
	}
}

// sweepLoop does again for executions that gave no sign of life what may have
// been lost on the way: it publishes their open jobs, starts the children they wait
// for, and tells others of their end. So a lost message, stream or process loses nothing.
func (c *Coordinator) sweepLoop() {
	interval := max(c.config.SweepAfter/5, 50*time.Millisecond)
	c.every(interval, func() {
		now := c.now()
		// A claim is twice as long: most executions that are silent for so long wait for
		// a slow node and miss nothing, and their next event sets the next look anew.
		stale, err := c.config.Store.ClaimStale(c.ctx, now, now+2*c.config.SweepAfter.Milliseconds(), 1024)
		if err != nil {
			c.log.Warn("executions without sign of life cannot be read", zap.Error(err))
			return
		}
		c.config.Telemetry.Swept(len(stale))
		for _, id := range stale {
			c.hand(c.sweepWork(id))
		}
	})
}

func (c *Coordinator) sweepWork(id engine.ExecutionID) *work {
	return &work{
		id: id, fresh: true,
		handle: func(x *execution) error {
			x.republish, x.swept = true, true
			// Claiming it has put the next look off by a short time only. What the group has
			// done to the execution before is still to be committed.
			x.dirty = x.dirty || x.idle()
			return nil
		},
		finish: func(err error) {
			switch {
			case errors.Is(err, errNotFound):
				c.wg.Go(func() { c.settle([]engine.ExecutionID{id}) }) // it has expired
			case err != nil:
				c.log.Warn("execution was not swept", zap.String("execution_id", string(id)), zap.Error(err))
			}
		},
	}
}

// pruneInterval is how often index entries of expired executions are removed;
// pruneMargin keeps those whose keys may still be there by another clock. A short retention shortens both.
const pruneInterval, pruneMargin = time.Minute, time.Minute

func (c *Coordinator) pruneLoop() {
	retention := c.config.Store.Retention()
	margin := min(pruneMargin, retention)
	c.every(min(pruneInterval, max(retention/2, 50*time.Millisecond)), func() {
		before := c.config.Now().Add(-retention - margin).UnixMilli()
		for {
			removed, err := c.config.Store.Prune(c.ctx, before)
			if err != nil {
				c.log.Warn("index of expired executions was not pruned", zap.Error(err))
			}
			if err != nil || removed == 0 {
				return
			}
		}
	})
}

// every calls f at an interval until the coordinator stops.
func (c *Coordinator) every(interval time.Duration, f func()) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-c.stopping:
			return
		}
		// f may have taken longer than the interval: then both channels are ready, and
		// a coordinator that is to stop would begin anew by chance.
		select {
		case <-c.stopping:
			return
		default:
			f()
		}
	}
}

// ValidID reports whether an id can be used for an execution: letters, digits,
// "-" and "_", at most 128.
func ValidID(id engine.ExecutionID) error {
	if id == "" || len(id) > 128 {
		return fmt.Errorf("execution id %s: it must have 1 to 128 characters", strconv.Quote(string(id)))
	}
	for _, r := range id {
		if (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '-' && r != '_' {
			return fmt.Errorf("execution id %s: only letters, digits, - and _ are allowed", strconv.Quote(string(id)))
		}
	}
	return nil
}
