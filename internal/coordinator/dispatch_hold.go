package coordinator

import (
	"errors"
	"slices"

	"go.uber.org/zap"

	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/queue"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// A node's timeout counts from when its job is published. The engine, which knows nothing of
// what is held here, counts it from the commit. So the timer of a held job is moved ahead before
// it fires, far enough that another coordinator finds the job first should this one die, and
// is set right when the job goes. Both are commits, but only for jobs that have a timeout and
// were held for a while.

// shortHold is for how long a job may be held, in milliseconds, without its timer being set right.
const shortHold = 100

// heldJob is a held job whose timer is to be moved.
type heldJob struct {
	execution engine.ExecutionID
	job       engine.JobID
	until     int64
}

// hold notes that a job has to wait.
func (d *dispatcher) hold(e *entry, state entryState, now int64, r *release) {
	e.state = state
	e.bytes = jobBytes(e.job)
	d.heldBytes += e.bytes
	d.extend(e, now, &r.extend)
}

// extend moves the end of a held job's time limit when it is near.
func (d *dispatcher) extend(e *entry, now int64, extended *[]heldJob) {
	if e.timeout == 0 || e.deadline-now >= 2*d.sweepAfter+lookEvery.Milliseconds() {
		return
	}
	until := now + 2*d.sweepAfter + 2*lookEvery.Milliseconds()
	e.deadline, e.extended = until+e.timeout, true
	*extended = append(*extended, heldJob{e.execution.id, e.id, until})
}

// expiring lists the held jobs whose time limit would end soon, and takes it to be moved.
func (d *dispatcher) expiring() []heldJob {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := d.now()
	var list []heldJob
	for _, x := range d.executions {
		if x.held == 0 {
			continue
		}
		for _, e := range x.jobs {
			if e.state != statePublished {
				d.extend(e, now, &list)
			}
		}
	}
	slices.SortFunc(list, func(a, b heldJob) int {
		if a.job < b.job {
			return -1
		}
		return 1
	})
	return list
}

// unmoved notes that the end of a job's time limit was not moved after all.
func (d *dispatcher) unmoved(id engine.JobID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if e := d.jobs[id]; e != nil {
		e.deadline = 0
	}
}

// keepTime moves the timers of held jobs ahead.
func (c *Coordinator) keepTime(jobs []heldJob) {
	for _, h := range jobs {
		c.hand(&work{
			id: h.execution,
			handle: func(x *execution) error {
				job := x.state.Jobs[h.job]
				if job == nil || job.RetryAt != 0 || !c.dispatch.holds(h.job) {
					return nil // it has ended, or went meanwhile
				}
				return x.apply(c, engine.Held{At: c.now(), Job: h.job, Until: h.until})
			},
			finish: func(err error) {
				if err != nil && !errors.Is(err, errNotFound) && !errors.Is(err, errStopping) {
					c.log.Warn("time limit of a job that waits was not moved", zap.String("job", string(h.job)), zap.Error(err))
					c.dispatch.unmoved(h.job)
				}
			},
		})
	}
}

// publishTimed publishes jobs with a time limit that were held: from now on it counts.
func (c *Coordinator) publishTimed(jobs []*queue.Job) {
	for _, job := range jobs {
		gone := false
		c.hand(&work{
			id: job.Execution,
			handle: func(x *execution) error {
				open := x.state.Jobs[job.ID]
				if gone = open == nil || open.RetryAt != 0; gone {
					if !x.current {
						return errStale
					}
					return nil
				}
				now := c.now()
				if err := x.apply(c, engine.Held{At: now, Job: job.ID, Until: now}); err != nil {
					return err
				}
				job.Deadline, job.DispatchedAt = x.state.Jobs[job.ID].Deadline, now
				return nil
			},
			finish: func(err error) {
				switch {
				case err == nil && !gone:
					c.publishJobs([]*queue.Job{job})
				case err == nil || errors.Is(err, errNotFound):
					c.perform(c.dispatch.exchange([]settledJob{{id: job.ID}}, nil))
				case !errors.Is(err, errStopping):
					// It counts as published, so it is looked at soon, and published then.
					c.log.Warn("job that had to wait was not published; it is looked at again", zap.String("job", string(job.ID)), zap.Error(err))
				}
			},
		})
	}
}

// jobOverhead is about what a job takes without the data that it carries. The plan is shared by all
// jobs of a node.
const jobOverhead = 1024

// jobBytes is about how much memory a held job takes.
func jobBytes(job *queue.Job) int64 {
	n := int64(jobOverhead + len(job.ToolArguments) + len(job.Context))
	n += listBytes(job.Inputs)
	for _, runs := range job.RunData {
		for _, record := range runs {
			n += listBytes(record.Outputs)
		}
	}
	for i := range job.Rounds {
		round := &job.Rounds[i]
		n += int64(len(round.Metadata))
		for k := range round.Results {
			result := &round.Results[k]
			n += int64(len(result.Action.Input))
			if result.Record != nil {
				for _, outputs := range result.Record.Data {
					n += listBytes(outputs)
				}
			}
		}
	}
	if job.Resumption != nil {
		n += int64(len(job.Resumption.Data))
		for _, child := range job.Resumption.Children {
			if child != nil {
				n += listBytes(child.Outputs)
			}
		}
	}
	return n
}

// itemOverhead is about what an item takes besides its content.
const itemOverhead = 64

func listBytes(lists []workflow.Items) (n int64) {
	for _, items := range lists {
		for i := range items {
			item := &items[i]
			n += int64(itemOverhead + len(item.JSON) + len(item.Error) + len(item.Metadata))
			for _, file := range item.Binary {
				n += int64(itemOverhead + len(file.Data))
			}
		}
	}
	return n
}
