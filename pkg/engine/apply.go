package engine

import (
	"errors"
	"fmt"
	"strings"
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
		err = t.measure()
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
			again.GivenTo = ev.To
			t.putJob(&again)
		}
		return ok, nil
	case HandedBack:
		t.at = ev.At
		job, ok := t.inFlight(ev.Job)
		if ok {
			again := *job
			again.GivenAgain-- // its next delivery will be counted again
			again.GivenTo = ""
			t.putJob(&again)
		}
		return ok, nil
	case Held:
		t.at = ev.At
		return t.held(ev), nil
	case WorkerLost:
		t.at = ev.At
		job, ok := t.inFlight(ev.Job)
		if ok {
			t.lost(job, ev.Message)
		}
		return ok, nil
	case Enqueued:
		t.at = ev.At
		return t.enqueue(ev.Begin), nil
	case Admitted:
		t.at = ev.At
		return t.admit(ev.From)
	case Retried:
		t.at = ev.At
		return t.restart(ev.From)
	case Resumed:
		t.at = ev.At
		return t.resumed(ev), nil
	case ChildFinished:
		t.at = ev.At
		return t.childFinished(ev), nil
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

// held moves the end of a job's time limit. A job without one needs nothing.
func (t *tx) held(ev Held) bool {
	job, ok := t.inFlight(ev.Job)
	if !ok || job.Deadline == 0 {
		return false
	}
	node := t.workflow.Node(job.Entry.Node)
	if node == nil || node.Timeout <= 0 {
		return false
	}
	held := *job
	held.Deadline = ev.Until + int64(node.Timeout)
	t.setTimer(timeoutTimer(job.ID), held.Deadline)
	t.putJob(&held)
	return true
}

func (t *tx) start(ev Started) (bool, error) {
	if t.s.Meta.Status != "" {
		return false, nil
	}
	node := t.workflow.Node(ev.Start)
	if ev.Start == "" && ev.Partial == nil {
		var err error
		if ev.Destination != nil {
			node, err = t.startFor(ev.Destination.Node)
		} else {
			node, err = t.workflow.Start(t.catalog)
		}
		if err != nil {
			return false, err
		}
	}
	if node == nil && ev.Partial == nil {
		return false, fmt.Errorf("the workflow has no node %q to start from", ev.Start)
	}
	if d := ev.Destination; d != nil {
		if t.workflow.Node(d.Node) == nil {
			return false, fmt.Errorf("the workflow has no node %q to run up to", d.Node)
		}
		t.s.Meta.Destination = d
	}
	t.s.Meta.NextLast = -1
	t.begun()
	if ev.Partial != nil {
		t.startPartial(ev.Partial)
		return true, nil
	}
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

// enqueue stores an execution that is to begin later.
func (t *tx) enqueue(begin Started) bool {
	if t.s.Meta.Status != "" {
		return false
	}
	t.s.Meta.Status = StatusNew
	t.put(TableMeta, fieldIdentity, identityOf(t.s.Meta), true)
	t.setBegin(&begin)
	return true
}

func (t *tx) admit(from *State) (bool, error) {
	if t.s.Meta.Status != StatusNew || t.s.Begin == nil {
		return false, nil
	}
	begin := *t.s.Begin
	t.setBegin(nil)
	t.s.Meta.Status = ""
	if from != nil {
		return t.restart(from)
	}
	return t.start(begin)
}

// begun sets an execution going.
func (t *tx) begun() {
	m := &t.s.Meta
	m.Status, m.StartedAt, m.LastWebhook = StatusRunning, t.at, -1
	t.put(TableMeta, fieldIdentity, identityOf(*m), true)
	if limit := t.workflow.Settings.ExecutionTimeout; limit > 0 {
		t.setTimer(executionTimer, t.at+int64(limit*float64(time.Second/time.Millisecond)))
	}
	t.tell(Live{Kind: LiveExecutionStarted})
}

// lost fails a run whose worker vanished. The node's own retries are for failures of
// the node: how often a job is given to another worker is decided elsewhere.
func (t *tx) lost(job *OpenJob, message string) {
	if message == "" {
		message = "The worker that ran the node was lost"
	}
	t.finished(job, Result{Error: &NodeError{Message: message, Reason: ReasonWorkerLost, NotRetryable: true}})
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
	if token, ok := strings.CutPrefix(timer, waitPrefix); ok {
		if t.s.stopping() {
			return false
		}
		t.waitOver(t.s.Parked[token])
		return true
	}
	for _, job := range t.s.JobsInOrder() {
		switch timer {
		case retryTimer(job.ID):
			t.retryNow(job)
			return true
		case timeoutTimer(job.ID):
			t.step.Dropped = append(t.step.Dropped, job.ID)
			t.finished(job, Result{Error: timedOut()})
			return true
		}
	}
	return false
}

func timedOut() *NodeError { return &NodeError{Message: "Error: timed out", Reason: ReasonTimeout} }

func (t *tx) cancelRequested(reason string) bool {
	if !t.s.live() {
		return false
	}
	if reason == "" {
		reason = "The execution was cancelled"
	}
	t.end(StatusCanceled, &NodeError{Message: reason, Name: "ManualExecutionCancelledError", Reason: ReasonCanceled})
	return true
}
