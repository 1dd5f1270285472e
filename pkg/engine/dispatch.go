package engine

import (
	"fmt"

	"github.com/reprise-engine/reprise/pkg/workflow"
)

// live: the execution has begun and is not over.
func (s *State) live() bool { return s.Meta.Status != "" && !s.Meta.Status.Finished() }

// stopping: the execution failed and waits for the jobs in flight.
func (s *State) stopping() bool { return s.live() && s.Meta.Error != nil }

// advance takes entries off the stack as long as one may run, and ends the
// execution when nothing is left to do.
func (t *tx) advance() {
	for t.s.live() && t.s.Meta.Status != StatusNew {
		if t.s.stopping() {
			if len(t.s.Jobs) == 0 {
				t.end(StatusError, t.s.Meta.Error)
			}
			return
		}
		if i := t.next(); i >= 0 {
			t.run(t.pop(i))
			continue
		}
		if len(t.s.Jobs) > 0 {
			return
		}
		if t.dispatchJoin() {
			continue
		}
		if len(t.s.Parked) > 0 {
			t.asleep()
			return
		}
		if len(t.s.Stack) > 0 {
			return // cannot happen: Check calls it an execution that waits for nothing
		}
		t.end(StatusSuccess, nil)
	}
}

// next finds the entry to run next, or -1. Tools of an open round run beside
// each other; everything else runs when nothing else does. Below a requester
// that waits nothing runs, unless that requester is a tool itself: its
// siblings need not wait for it. A requester whose answers are all parked is set
// aside: what is below it runs.
func (t *tx) next() int {
	sequential := t.sequential()
	for i := len(t.s.Stack) - 1; i >= 0; i-- {
		e := t.s.Stack[i]
		switch e.Kind {
		case EntryTool:
			if sequential && len(t.s.Jobs) > 0 {
				return -1
			}
			return i
		case EntryResume:
			if t.s.openRound(e.RunRef()) == nil {
				if !e.AsTool() && len(t.s.Jobs) > 0 {
					return -1
				}
				return i
			}
			if !t.s.setAside(e) && (sequential || !e.AsTool()) {
				return -1
			}
		default:
			if len(t.s.Jobs) > 0 {
				return -1
			}
			return i
		}
	}
	return -1
}

// run starts a popped entry: as a job, or settled on the spot where the engine
// knows the result itself.
func (t *tx) run(e *Entry) {
	if e.Again != nil {
		t.waitAgain(e)
		return
	}
	if e.Progress != nil { // a requester with its answers, or a run that waited
		job := &OpenJob{Job: Job{Entry: *e, Slice: len(t.s.Rounds[e.RunRef()]) + e.Waits, Attempt: 1}, Progress: *e.Progress}
		job.Entry.Progress = nil
		t.dispatch(job)
		return
	}
	node := t.workflow.Node(e.Node)
	if node == nil {
		// Cannot happen: entries are made for nodes of this workflow.
		t.fatal(&NodeError{Message: fmt.Sprintf("The workflow has no node %q", e.Node)})
		return
	}
	if !e.AsTool() && t.leftOut(e.Node) {
		return
	}
	if e.Run < 0 && len(t.s.Run[e.Node]) >= t.limits.RunsPerNode {
		t.push(e)
		t.fatal(t.tooManyRuns(e.Node))
		return
	}
	outputs, settled := t.settled(node, e)
	if settled && outputs == nil && !e.AsTool() {
		// Not run for lack of input: no record, as in n8n.
		if !node.AlwaysOutputData {
			return
		}
		outputs = []workflow.Items{nil}
	}
	if e.Run < 0 {
		e.Run = t.reserve(e.Node)
	}
	job := &OpenJob{Job: Job{Entry: *e, Attempt: 1}, Progress: t.announce(e)}
	if settled {
		t.succeed(job, node, Result{}, outputs)
		return
	}
	t.dispatch(job)
}

// announce begins a run: its index among all runs of the execution, and the
// notice. A resumed requester is not announced again (R10).
func (t *tx) announce(e *Entry) Progress {
	p := Progress{StartTime: t.at, ExecutionIndex: t.s.Meta.NextIndex}
	t.s.Meta.NextIndex++
	if e.AsTool() {
		// The reserved record shows that the tool has begun.
		r := *t.s.Record(e.RunRef())
		r.StartTime, r.ExecutionIndex = p.StartTime, p.ExecutionIndex
		t.record(e.Node, e.Run, &r)
	}
	t.tell(Live{Kind: LiveNodeStarted, Node: e.Node, Run: e.Run, Type: e.outputType()})
	return p
}

// settled gives the outputs of nodes that never become jobs. A nil list means
// that the node does not run because it has no input.
func (t *tx) settled(node *workflow.Node, e *Entry) ([]workflow.Items, bool) {
	given := len(e.Inputs) > 0 && e.Inputs[0].Given
	switch {
	case t.pinned(node) && !(given && t.trigger(node)):
		return []workflow.Items{t.workflow.PinData[node.Name]}, true
	case t.trigger(node) && !node.Disabled && (given || !t.polls(node)):
		return t.s.Inputs(e), true
	case node.Disabled:
		inputs := t.s.Inputs(e)
		if len(inputs) == 0 || inputs[0] == nil {
			return nil, true
		}
		return inputs[:1], true
	case !e.AsTool() && !t.fed(e):
		return nil, true
	}
	return nil, false
}

// pinned reports whether a node answers with its pinned data. n8n applies it
// to manual runs only: data pinned for a test must not reach production.
func (t *tx) pinned(node *workflow.Node) bool {
	switch t.s.Meta.Mode {
	case "", "manual", "evaluation":
		_, ok := t.workflow.PinData[node.Name]
		return ok && !node.Disabled
	}
	return false
}

// fed reports whether an entry of the main flow has the input that lets its
// node run: v1 takes the first that is not empty, v0 the first, or the one
// that a loop feeds back into when nothing is connected to the first.
func (t *tx) fed(e *Entry) bool {
	if t.workflow.V1() {
		for _, ref := range e.Inputs {
			if t.s.count(ref) > 0 {
				return true
			}
		}
		return false
	}
	chosen := 0
	if len(e.Source) > 1 && e.Source[0] == nil {
		for i, source := range e.Source {
			if source != nil && t.feeds(e.Node, source.PreviousNode) {
				chosen = i
				break
			}
		}
	}
	return chosen < len(e.Inputs) && t.s.count(e.Inputs[chosen]) > 0
}

// feeds reports whether data flows from one node to the other.
func (t *tx) feeds(from, to string) bool {
	for _, a := range t.workflow.Ancestors(to) {
		if a == from {
			return true
		}
	}
	return false
}

// dispatch hands a job out.
func (t *tx) dispatch(job *OpenJob) {
	if job.ID == "" {
		job.ID = t.jobID()
	}
	if job.IdempotencyKey == "" {
		job.IdempotencyKey = string(job.ID)
		if job.Entry.Key != "" {
			job.IdempotencyKey = job.Entry.Key
		}
	}
	job.DispatchedAt, job.RetryAt, job.Deadline = t.at, 0, 0
	if node := t.workflow.Node(job.Entry.Node); node != nil && node.Timeout > 0 {
		job.Deadline = t.at + int64(node.Timeout)
		t.setTimer(timeoutTimer(job.ID), job.Deadline)
	}
	t.putJob(job)
	t.step.Jobs = append(t.step.Jobs, job.Job)
}

func (t *tx) jobID() JobID {
	id := JobID(fmt.Sprintf("%s_%d", t.s.Meta.ID, t.s.Meta.NextJob))
	t.s.Meta.NextJob++
	return id
}

// end finishes the execution for good.
func (t *tx) end(status Status, cause *NodeError) {
	t.ending = true
	m := &t.s.Meta
	for _, job := range t.s.JobsInOrder() {
		if job.RetryAt == 0 {
			t.step.Dropped = append(t.step.Dropped, job.ID)
		}
		t.delJob(job.ID)
		if status == StatusCanceled {
			t.giveUp(job)
		}
	}
	for _, p := range t.s.ParkedInOrder() {
		t.forsake(p, status)
	}
	for _, id := range sortedKeys(t.s.Timers) {
		t.clearTimer(id)
	}
	m.TimeLeft = 0
	for i := len(t.s.Stack) - 1; i >= 0; i-- {
		e := t.s.Stack[i]
		if status == StatusError {
			// The stack stays and shows where the execution broke off.
			t.closeReserved(e)
			continue
		}
		t.pop(i)
		if e.Progress != nil {
			t.abandon(e, *e.Progress)
		} else {
			t.closeReserved(e)
		}
	}
	if status != StatusError {
		t.clearOpen()
	}
	m.Status, m.Error, m.StoppedAt = status, cause, t.at
	if status == StatusError && cause.Node != "" {
		m.LastNode = cause.Node // not what was awaited after the failure
	}
	t.tell(Live{Kind: LiveExecutionFinished, Status: status, Error: cause.text()})
	t.step.Done = true
}

// giveUp closes the record of a job that will not be answered.
func (t *tx) giveUp(job *OpenJob) {
	p := job.Progress
	if job.RetryAt == 0 {
		p = job.after(t.at, Result{}).Progress
	} else {
		p.Retries-- // the attempt that waited was never made
	}
	t.abandon(&job.Entry, p)
}

// abandon closes the record of a run that had begun and will not end.
func (t *tx) abandon(e *Entry, p Progress) {
	r := t.closing(e, p)
	r.Status = StatusCanceled
	t.recordOf(e, r)
}

// closeReserved closes the record of a tool call that will not be answered, or
// of a run that was resumed and not called any more.
func (t *tx) closeReserved(e *Entry) {
	if r := t.s.Record(e.RunRef()); r.open() {
		closed := *r
		closed.Status = StatusCanceled
		if e.AsTool() && r.StartTime == 0 && t.s.stopping() {
			closed.Status = "" // never begun; n8n gives it no status
		}
		t.recordOf(e, &closed)
	}
}

// clearOpen forgets what only a running execution needs.
func (t *tx) clearOpen() {
	t.setBegin(nil)
	for _, caller := range t.s.callers() {
		t.delRounds(caller)
	}
	for _, node := range sortedKeys(t.s.Joins) {
		for _, j := range t.s.Joins[node] {
			t.delJoin(j)
		}
	}
	for _, node := range sortedKeys(t.s.Context) {
		t.delContext(node)
	}
	for _, token := range sortedKeys(t.s.Children) {
		t.delChildren(token)
	}
}
