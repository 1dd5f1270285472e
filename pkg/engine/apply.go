package engine

import (
	"errors"
	"fmt"
	"time"

	"github.com/reprise-engine/reprise/pkg/workflow"
)

// ErrUnknownEvent is returned by Apply for an event type it does not know.
var ErrUnknownEvent = errors.New("engine: unknown event")

// executionTimer is the timer of settings.executionTimeout.
const executionTimer = "execution"

func timeoutTimer(id JobID) string { return "timeout:" + string(id) }
func retryTimer(id JobID) string   { return "retry:" + string(id) }

// Apply applies one event; see the package comment for the caller's duties.
//
// A Started event with a start node that does not exist, or without one in a
// workflow that has none, is an error; so is a result whose parts are not
// JSON, but that one fails the node instead. Errors change nothing.
func (m *Machine) Apply(s *State, ev Event) (Step, error) {
	step, err := m.apply(s, ev)
	var bad *encodeError
	if finished, ok := ev.(NodeFinished); ok && errors.As(err, &bad) {
		// Without this the job would stay open for ever: every delivery of its
		// result would fail in the same way.
		finished.Result = Result{
			Worker: finished.Result.Worker,
			Error:  &NodeError{Message: "The node returned data that is not JSON: " + bad.err.Error(), NotRetryable: true},
		}
		return m.apply(s, finished)
	}
	return step, err
}

func (m *Machine) apply(s *State, ev Event) (Step, error) {
	t := m.begin(s, 0)
	handled, err := t.handle(ev)
	if err == nil && !handled {
		return Step{Ignored: true}, nil
	}
	if err == nil {
		t.advance()
		var step Step
		if step, err = t.commit(); err == nil {
			return step, nil
		}
	}
	t.rollback()
	return Step{}, fmt.Errorf("apply %T to execution %s: %w", ev, s.Meta.ID, err)
}

// handle does what an event says. It reports false for an event that is late
// or repeated; then nothing has changed.
func (t *tx) handle(ev Event) (bool, error) {
	switch ev := ev.(type) {
	case Started:
		t.at = ev.At
		return t.start(ev)
	case NodeFinished:
		t.at = ev.At
		job, ok := t.inFlight(ev.Job)
		if ok {
			t.finished(job, ev.Result)
		}
		return ok, nil
	case GivenAgain:
		t.at = ev.At
		job, ok := t.inFlight(ev.Job)
		if ok {
			again := *job
			again.GivenAgain++
			t.putJob(&again)
		}
		return ok, nil
	case WorkerLost:
		t.at = ev.At
		job, ok := t.inFlight(ev.Job)
		if ok {
			t.lost(job, ev.Message)
		}
		return ok, nil
	case TimerFired:
		t.at = ev.At
		return t.fire(ev.Timer), nil
	case CancelRequested:
		t.at = ev.At
		return t.cancelRequested(ev.Reason), nil
	}
	return false, ErrUnknownEvent
}

// inFlight finds a job that was handed out and not answered.
func (t *tx) inFlight(id JobID) (*OpenJob, bool) {
	job, ok := t.s.Jobs[id]
	return job, ok && job.RetryAt == 0
}

func (t *tx) start(ev Started) (bool, error) {
	if t.s.Meta.Status != "" {
		return false, nil
	}
	node := t.workflow.Node(ev.Start)
	if ev.Start == "" {
		var err error
		if node, err = t.workflow.Start(t.catalog); err != nil {
			return false, err
		}
	}
	if node == nil {
		return false, fmt.Errorf("the workflow has no node %q to start from", ev.Start)
	}
	m := &t.s.Meta
	m.Status = StatusRunning
	m.StartedAt = t.at
	m.NextLast = -1
	t.put(TableMeta, fieldIdentity, identityOf(*m), true)
	if limit := t.workflow.Settings.ExecutionTimeout; limit > 0 {
		t.setTimer(executionTimer, t.at+int64(limit*float64(time.Second/time.Millisecond)))
	}
	t.tell(Live{Kind: LiveExecutionStarted})

	input := ev.Input
	if input == nil {
		input = workflow.Items{{JSON: []byte("{}")}}
	}
	t.push(&Entry{
		Node: node.Name, Inputs: []Ref{{Literal: input, Empty: len(input) == 0, Given: ev.Input != nil}}, Source: []*workflow.Source{},
		Run: -1, Once: node.ExecuteOnce,
	})
	return true, nil
}

func (t *tx) lost(job *OpenJob, message string) {
	if message == "" {
		message = "The worker that ran the node was lost"
	}
	t.finished(job, Result{Error: &NodeError{Message: message, Reason: ReasonWorkerLost}})
}

func (t *tx) fire(timer string) bool {
	if _, ok := t.s.Timers[timer]; !ok {
		return false
	}
	if timer == executionTimer {
		t.end(StatusCanceled, &NodeError{
			Message: "The execution was cancelled because it timed out",
			Name:    "TimeoutExecutionCancelledError", Reason: ReasonTimeout,
		})
		return true
	}
	for _, job := range t.s.jobsInOrder() {
		switch timer {
		case retryTimer(job.ID):
			t.retryNow(job)
			return true
		case timeoutTimer(job.ID):
			t.step.Dropped = append(t.step.Dropped, job.ID)
			t.finished(job, Result{Error: &NodeError{Message: "Error: timed out", Reason: ReasonTimeout}})
			return true
		}
	}
	return false
}

func (t *tx) cancelRequested(reason string) bool {
	if t.s.Meta.Status != StatusRunning {
		return false
	}
	if reason == "" {
		reason = "The execution was cancelled"
	}
	t.end(StatusCanceled, &NodeError{Message: reason, Name: "ManualExecutionCancelledError", Reason: ReasonCanceled})
	return true
}
