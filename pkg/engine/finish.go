package engine

import (
	"fmt"
	"slices"

	"github.com/reprise-engine/reprise/pkg/workflow"
)

// finished takes the result of a job that is in flight.
func (t *tx) finished(job *OpenJob, res Result) {
	node := t.workflow.Node(job.Entry.Node)
	t.delJob(job.ID)
	job = job.after(t.at, res)
	job.SubRuns = append(slices.Clip(job.SubRuns), t.subRuns(&job.Entry, res.SubRuns)...)

	if res.Error == nil && res.Request != nil {
		res.Error = t.validate(&job.Entry, res.Request)
	} else if res.Error == nil && res.Wait != nil {
		res.Error = t.badWait(&job.Entry, res.Wait)
	}
	switch {
	case res.Error != nil:
		if !t.retry(job, node, res.Error) {
			t.fail(job, node, res)
		}
	case res.Request != nil:
		t.keepContext(job.Entry.Node, res)
		t.request(job, res)
	case res.Wait != nil:
		t.keepContext(job.Entry.Node, res)
		t.park(job, res)
	case softFailure(res.Outputs) && t.retry(job, node, nil):
	default:
		t.keepContext(job.Entry.Node, res)
		t.complete(job, node, res)
	}
}

// after is the job with what its attempt took and left added.
func (j *OpenJob) after(at int64, res Result) *OpenJob {
	next := *j
	next.Spent += at - j.DispatchedAt
	next.Logs = append(slices.Clip(j.Logs), res.Logs...)
	return &next
}

func (t *tx) keepContext(node string, res Result) {
	if res.Context != nil {
		t.setContext(node, res.Context)
	}
}

// complete closes a run with what its node's code returned; no outputs are
// n8n's null output.
func (t *tx) complete(job *OpenJob, node *workflow.Node, res Result) {
	e := &job.Entry
	outputs := slices.Clone(res.Outputs)
	if len(outputs) > 0 && node.OnError == workflow.OnErrorOutput {
		if !e.AsTool() {
			outputs = t.routeErrors(e, node, outputs)
		} else if res.RecordError == nil {
			// A tool has one reader, the model, which must see the error.
			res.RecordError = toolItemError(outputs)
		}
	}
	t.succeed(job, node, res, outputs)
}

// succeed closes a run with outputs that are already on their branches.
func (t *tx) succeed(job *OpenJob, node *workflow.Node, res Result, outputs []workflow.Items) {
	e := &job.Entry
	r := t.closing(e, job.Progress)
	r.Status = StatusSuccess
	if res.RecordError != nil {
		r.Status, r.Error = StatusError, res.RecordError
	}
	r.Hints, r.Worker = append(r.Hints, res.Hints...), res.Worker
	t.addSlice(r, job)
	addSaid(r, res)

	if len(outputs) > 0 {
		t.pair(e, outputs)
		t.s.Meta.LastNode = e.Node
	} else {
		outputs = nil
	}
	if node.AlwaysOutputData && (len(outputs) == 0 || len(outputs[0]) == 0) {
		outputs = t.alwaysOutput(e, outputs)
		t.s.Meta.LastNode = e.Node
	}
	normaliseErrors(outputs)
	t.close(job, r, outputs)
}

// fail closes a run whose last attempt failed.
func (t *tx) fail(job *OpenJob, node *workflow.Node, res Result) {
	e := &job.Entry
	err := *res.Error
	if err.Node == "" {
		err.Node = e.Node
	}
	r := t.closing(e, job.Progress)
	r.Status, r.Error, r.Worker = StatusError, &err, res.Worker
	r.Hints = append(r.Hints, res.Hints...)
	t.addSlice(r, job)
	addSaid(r, Result{CustomData: res.CustomData})
	t.s.Meta.LastNode = e.Node

	var outputs []workflow.Items
	stop := false
	switch {
	case e.AsTool():
		outputs = answerError(&err)
		stop = node.OnError == workflow.OnErrorStop
	case node.OnError == workflow.OnErrorOutput:
		outputs = t.errorOutput(e, node, &err)
	case node.OnError == workflow.OnErrorContinue || node.ContinueOnFail:
		outputs = t.s.Inputs(e)[:1]
	default:
		stop = true
	}
	if stop {
		t.stop(job, r, outputs, &err)
		return
	}
	t.close(job, r, outputs)
}

// close stores a run's record and lets the execution go on from it.
func (t *tx) close(job *OpenJob, r *Record, outputs []workflow.Items) {
	e := &job.Entry
	if outputs == nil && !e.AsTool() && r.Status == StatusSuccess && r.Metadata == nil {
		// n8n's null output ends the branch without a record. The notice is
		// still sent, or watchers would see the node run for ever.
		t.unreserve(e.Node, e.Run)
		t.tellFinished(e, r)
		return
	}
	if outputs != nil {
		r.Data = map[string][]workflow.Items{e.outputType(): outputs}
	}
	t.recordOf(e, r)
	t.delRounds(e.RunRef())
	if e.Wait != "" {
		t.delChildren(e.Wait)
	}
	if !e.AsTool() && !t.destination(e.Node) { // a tool's answer is found by its requester (R7)
		if err := t.schedule(e, outputs); err != nil {
			t.fatal(err)
		}
	}
	t.tellFinished(e, r)
}

// recordOf stores the record of an entry's run, and counts it as an answer
// when it closes a call.
func (t *tx) recordOf(e *Entry, r *Record) {
	answers := e.AsTool() && t.s.Record(e.RunRef()).open() && !r.open()
	t.record(e.Node, e.Run, r)
	if answers {
		t.answered(t.s.Rounds[*e.Caller][e.Round])
	}
}

// open: the run is not over.
func (r *Record) open() bool {
	return r != nil && (r.Status == StatusRunning || r.Status == StatusWaiting)
}

// stop closes a run whose failure ends the execution. Its entry goes back on
// top of the stack, so that running the execution again starts there.
func (t *tx) stop(job *OpenJob, r *Record, outputs []workflow.Items, err *NodeError) {
	e := &job.Entry
	if outputs != nil {
		r.Data = map[string][]workflow.Items{e.outputType(): outputs}
	}
	t.recordOf(e, r)
	t.fatal(err)
	t.putBack(job)
	t.tellFinished(e, r)
}

// putBack puts the entry of a job that failed or was given up on the stack.
func (t *tx) putBack(job *OpenJob) {
	e := job.Entry
	e.Key = job.IdempotencyKey
	if e.Kind == EntryResume || e.Waits > 0 {
		p := job.Progress
		e.Progress = &p
	}
	t.push(&e)
}

// fatal marks the execution as failed; the first failure stays. Attempts that
// have not begun are given up, those in flight are awaited.
func (t *tx) fatal(err *NodeError) {
	if t.s.Meta.Error == nil {
		t.s.Meta.Error = err
	}
	for _, job := range t.s.JobsInOrder() {
		if job.RetryAt != 0 {
			t.delJob(job.ID)
			t.giveUp(job)
			t.putBack(job)
		}
	}
}

// closing is the record of a run that ends, without its outcome. A tool's
// reserved record keeps its arguments and source.
func (t *tx) closing(e *Entry, p Progress) *Record {
	r := &Record{Source: e.Source}
	if old := t.s.Record(e.RunRef()); old != nil {
		*r = *old
		r.Data, r.Error, r.Hints, r.Logs = nil, nil, nil, nil
	}
	r.StartTime, r.ExecutionIndex, r.ExecutionTime = p.StartTime, p.ExecutionIndex, p.Spent
	if p.Retries > 0 {
		r.Attempts = p.Retries + 1
	}
	var meta RecordMetadata
	if r.Metadata != nil {
		meta = *r.Metadata
	}
	meta.SubRun = nil
	rounds := t.s.Rounds[e.RunRef()]
	for _, round := range rounds {
		meta.SubRun = append(meta.SubRun, round.SubRuns...)
		r.Logs = append(r.Logs, round.Logs...)
		r.Hints = append(r.Hints, round.Hints...)
	}
	if p.Earlier != nil {
		meta.SubRun = append(meta.SubRun, p.Earlier.SubRuns...)
		r.Logs = append(r.Logs, p.Earlier.Logs...)
		r.Hints = append(r.Hints, p.Earlier.Hints...)
	}
	if parent := t.s.Meta.Parent; parent != nil && len(e.Source) == 0 && !e.AsTool() {
		meta.ParentExecution = &ExecutionRef{ExecutionID: parent.Execution, WorkflowID: parent.WorkflowID}
	}
	meta.NodeWasResumed, meta.Rounds = len(rounds) > 0, len(rounds)
	if meta.present() {
		r.Metadata = &meta
	}
	return r
}

// addSlice adds what the last slice did besides its outputs.
func (t *tx) addSlice(r *Record, job *OpenJob) {
	r.Logs = append(r.Logs, job.Logs...)
	if len(job.SubRuns) == 0 {
		return
	}
	meta := RecordMetadata{}
	if r.Metadata != nil {
		meta = *r.Metadata
	}
	meta.SubRun = append(slices.Clip(meta.SubRun), job.SubRuns...)
	r.Metadata = &meta
}

// addSaid adds what a run said besides its outputs, for the caller and about the execution.
func addSaid(r *Record, res Result) {
	if res.Response == nil && len(res.CustomData) == 0 {
		return
	}
	meta := RecordMetadata{}
	if r.Metadata != nil {
		meta = *r.Metadata
	}
	if res.Response != nil {
		meta.Response = res.Response
	}
	if len(res.CustomData) > 0 {
		meta.CustomData = res.CustomData
	}
	r.Metadata = &meta
}

func (m *RecordMetadata) present() bool {
	return m.NodeWasResumed || m.PreserveSourceOverwrite || m.PreservedSourceOverwrite != nil ||
		len(m.SubRun) > 0 || m.CallID != "" || m.Round != nil || m.Rounds > 0 || m.Wait != "" || m.ParentExecution != nil || m.Response != nil ||
		len(m.CustomData) > 0
}

// subRuns stores the records of the sub-nodes that a slice used.
func (t *tx) subRuns(user *Entry, runs []SubRun) []SubRunRef {
	var refs []SubRunRef
	for _, sub := range runs {
		run := t.reserve(sub.Node)
		ref := SubRunRef{Node: sub.Node, RunIndex: run}
		r := &Record{
			StartTime: sub.StartTime, ExecutionTime: sub.Duration, ExecutionIndex: t.s.Meta.NextIndex,
			Status: StatusSuccess, Error: sub.Error,
			Source:   []*workflow.Source{{PreviousNode: user.Node, PreviousNodeRun: user.Run}},
			Metadata: &RecordMetadata{SubRun: []SubRunRef{ref}},
		}
		t.s.Meta.NextIndex++
		if sub.Error != nil {
			r.Status = StatusError
		}
		if sub.Output != nil {
			r.Data = map[string][]workflow.Items{sub.Type: sub.Output}
		}
		if sub.Input != nil {
			r.InputOverride = map[string][]workflow.Items{sub.Type: sub.Input}
		}
		t.record(sub.Node, run, r)
		t.tell(Live{Kind: LiveNodeStarted, At: sub.StartTime, Node: sub.Node, Run: run, Type: sub.Type})
		t.tell(Live{
			Kind: LiveNodeFinished, At: sub.StartTime + sub.Duration, Node: sub.Node, Run: run, Type: sub.Type,
			Status: r.Status, Error: sub.Error.text(),
		})
		refs = append(refs, ref)
	}
	return refs
}

// text is the message of an error that may be nil.
func (e *NodeError) text() string {
	if e == nil {
		return ""
	}
	return e.Message
}

func (r RunRef) String() string { return fmt.Sprintf("%s#%d", r.Node, r.Run) }
