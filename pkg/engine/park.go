package engine

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/reprise-engine/reprise/pkg/workflow"
)

// To add a kind of wait: name it in wait.go, say in badWait what it must have, and
// apply an event that calls resume with what happened. The rest (parking, the
// deadline, what may go on beside it, the end of the execution) is the same for all.

const waitPrefix = "wait:"

func waitTimer(token string) string { return waitPrefix + token }

// SplitToken returns the execution and the number in a token of a wait (or a
// job's id or idempotency key), "<execution>_<n>".
func SplitToken(token string) (id ExecutionID, n int, ok bool) {
	i := strings.LastIndexByte(token, '_')
	if i <= 0 {
		return "", 0, false
	}
	n, err := strconv.Atoi(token[i+1:])
	return ExecutionID(token[:i]), n, err == nil && n >= 0
}

// Token names the wait that this job's slice may ask for: its idempotency key, or its
// id when the key is that of an attempt in another execution, which this one retries.
func (j *Job) Token() string {
	own, _, _ := SplitToken(string(j.ID))
	if of, _, ok := SplitToken(j.IdempotencyKey); ok && of == own {
		return j.IdempotencyKey
	}
	return string(j.ID)
}

// badWait says what is wrong with a wait; then it is the node's failure.
func (t *tx) badWait(e *Entry, w *Wait) *NodeError {
	bad := func(what string) *NodeError {
		return &NodeError{Message: fmt.Sprintf("Node %q %s", e.Node, what), Reason: ReasonBadRequest, Node: e.Node, NotRetryable: true}
	}
	switch w.Kind {
	case WaitTime:
		if w.Until <= 0 {
			return bad("asked to wait without saying until when")
		}
	case WaitWebhook:
	case WaitApproval:
		if w.Question == nil {
			return bad("asked to wait for a decision without a question")
		}
	case WaitChildren:
		if w.Children == nil || len(w.Children.Runs) == 0 {
			return bad("asked to wait for executions and named none")
		}
		if t.s.Meta.Depth >= t.limits.Depth {
			return &NodeError{
				Message:     fmt.Sprintf("Node %q cannot start another workflow: this one is already %d levels below the first, which is the limit", e.Node, t.s.Meta.Depth),
				Description: "Workflows that start one another without end are stopped here. Mend the recursion, or raise the coordinators' limit on depth.",
				Reason:      ReasonTooDeep, Node: e.Node, NotRetryable: true,
			}
		}
	default:
		return bad(fmt.Sprintf("asked for a wait of the unknown kind %q", w.Kind))
	}
	return nil
}

// park sets a run aside until what it waits for has happened. Its record shows
// its input and the status waiting.
func (t *tx) park(job *OpenJob, res Result) {
	e, progress := job.Entry, job.Progress
	before := t.s.Resumption(&e)
	progress.Earlier = progress.Earlier.with(job.SubRuns, job.Logs, res.Hints)
	e.Progress, e.Resumption, e.Key = &progress, nil, ""
	e.Waits++
	t.delChildren(e.Wait) // the node has had their results
	e.Wait = job.Token()
	p := &Parked{Token: e.Wait, Entry: e, Wait: *res.Wait, Since: t.at, After: t.s.Meta.LastWebhook, Before: before}
	if p.Wait.Kind == WaitWebhook {
		_, t.s.Meta.LastWebhook, _ = SplitToken(p.Token)
	}
	if p.Wait.Kind == WaitChildren {
		p.Deadline = job.Deadline
	}
	t.s.Meta.LastNode = e.Node
	t.setWaiting(p, res.Worker)
}

// setWaiting stores a wait, starts what it is for, and shows it in the record.
func (t *tx) setWaiting(p *Parked, worker string) {
	e := p.Entry
	due := p.Wait.Until
	if p.Deadline != 0 && (due == 0 || p.Deadline < due) {
		due = p.Deadline
	}
	t.putParked(p)
	if due != 0 {
		t.setTimer(waitTimer(p.Token), due)
	}
	r := t.closing(&e, *e.Progress)
	r.Status, r.Worker = StatusWaiting, worker
	r.Data = map[string][]workflow.Items{e.outputType(): t.s.Inputs(&e)}
	meta := metadataOf(r)
	meta.Wait, meta.Outcome, meta.Decision = p.Token, "", nil
	switch p.Wait.Kind {
	case WaitApproval:
		t.step.Questions = append(t.step.Questions, TimerChange{ID: p.Token, At: t.at})
	case WaitChildren:
		starts := t.s.outstanding(p)
		t.step.Children = append(t.step.Children, starts...)
		meta.SubExecution, meta.SubExecutionsCount = nil, len(p.Wait.Children.Runs)
		if runs := p.Wait.Children.Runs; len(runs) == 1 {
			meta.SubExecution = &ExecutionRef{ExecutionID: t.s.childID(p.Token, 0), WorkflowID: runs[0].WorkflowID}
		}
	}
	r.Metadata = meta
	t.record(e.Node, e.Run, r)
	t.tellFinished(&e, r)
}

// waitAgain goes on with a wait for children in an execution that retries the
// one in which it broke off: those that had ended are not started again.
func (t *tx) waitAgain(e *Entry) {
	p := &Parked{Token: e.Wait, Entry: *e, Wait: *e.Again, Since: t.at, After: t.s.Meta.LastWebhook}
	p.Entry.Again = nil
	t.setWaiting(p, "")
}

// metadataOf is a copy of a record's metadata.
func metadataOf(r *Record) *RecordMetadata {
	meta := RecordMetadata{}
	if r.Metadata != nil {
		meta = *r.Metadata
	}
	return &meta
}

// resume puts a parked run back on the stack, to be called again.
func (t *tx) resume(p *Parked, what Resumption) {
	t.awake()
	t.unpark(p)
	what.Kind = p.Wait.Kind
	e := p.Entry
	e.Resumption = &what

	r := *t.s.Record(e.RunRef())
	r.Status, r.Data = StatusRunning, nil
	meta := metadataOf(&r)
	switch only := t.s.Children[p.Token][0]; {
	case p.Wait.Kind == WaitApproval:
		meta.Outcome, meta.Decision = outcome(what), what.Decision
	case only != nil && only.Execution == "": // it could not be started
		meta.SubExecution = nil
	}
	r.Metadata = meta
	t.record(e.Node, e.Run, &r)
	t.push(&e)
}

func outcome(what Resumption) Outcome {
	switch {
	case what.Expired:
		return OutcomeExpired
	case what.Decision != nil && what.Decision.Approved:
		return OutcomeApproved
	}
	return OutcomeDenied
}

// awake makes an execution that waited run again.
func (t *tx) awake() {
	m := &t.s.Meta
	if m.Status != StatusWaiting {
		return
	}
	m.Status = StatusRunning
	if m.TimeLeft > 0 {
		t.setTimer(executionTimer, t.at+m.TimeLeft)
		m.TimeLeft = 0
	}
	t.tell(Live{Kind: LiveExecutionResumed})
}

// asleep makes an execution wait when all that is left of it is parked.
func (t *tx) asleep() {
	m := &t.s.Meta
	if m.Status == StatusWaiting {
		return
	}
	m.Status = StatusWaiting
	if due := t.s.Timers[executionTimer]; due != 0 && t.s.patient() {
		t.clearTimer(executionTimer)
		m.TimeLeft = max(due-t.at, 1)
	}
	t.tell(Live{Kind: LiveExecutionFinished, Status: StatusWaiting})
}

// longWait is from when on a wait for a moment does not count against the
// execution's time limit: longer ones were always stored by n8n, where they do not.
const longWait = 65_000

// patient reports whether all that is waited for are people, webhooks and far
// moments: the execution's time limit does not count that time.
func (s *State) patient() bool {
	for _, p := range s.Parked {
		switch p.Wait.Kind {
		case WaitApproval, WaitWebhook:
		case WaitTime:
			if p.Wait.Until-p.Since <= longWait {
				return false
			}
		default:
			return false
		}
	}
	return true
}

// resumed takes what a parked run waits for from outside.
func (t *tx) resumed(ev Resumed) bool {
	p := t.s.Parked[ev.Token]
	if p == nil || t.s.stopping() {
		return false
	}
	switch {
	case p.Wait.Kind == WaitWebhook && ev.Decision == nil:
		t.resume(p, Resumption{Data: ev.Data})
	case p.Wait.Kind == WaitApproval && ev.Decision != nil:
		t.resume(p, Resumption{Decision: ev.Decision})
	default:
		return false
	}
	return true
}

// waitOver ends a wait at its deadline, or at that of its node.
func (t *tx) waitOver(p *Parked) {
	if p.Deadline == 0 || t.s.Timers[waitTimer(p.Token)] != p.Deadline || p.Wait.Until == p.Deadline {
		t.orphan(p)
		t.resume(p, Resumption{Expired: true})
		return
	}
	t.awake()
	t.orphan(p)
	t.unpark(p)
	t.delChildren(p.Token)
	job := &OpenJob{Job: Job{Entry: p.Entry}, Progress: *p.Entry.Progress}
	job.Entry.Progress = nil
	t.fail(job, t.workflow.Node(p.Entry.Node), Result{Error: timedOut()})
}

// Children.

// childFinished takes the end of a child (or that a detached one is stored).
func (t *tx) childFinished(ev ChildFinished) bool {
	p := t.s.Parked[ev.Token]
	if p == nil || p.Wait.Kind != WaitChildren || t.s.stopping() ||
		ev.Index < 0 || ev.Index >= len(p.Wait.Children.Runs) || t.s.Children[ev.Token][ev.Index] != nil {
		return false
	}
	result := ev.Result
	t.putChild(ev.Token, ev.Index, &result)
	c := p.Wait.Children
	left := len(c.Runs) - len(t.s.Children[ev.Token])
	if c.StopOnError && !c.Detached && result.Status != StatusSuccess {
		if !c.Sequential {
			t.orphan(p)
		}
		left = 0
	}
	if left == 0 {
		t.resume(p, Resumption{})
	} else if c.Sequential {
		t.step.Children = append(t.step.Children, t.s.outstanding(p)...)
	}
	return true
}

// orphan has the children cancelled that a wait will not see end.
func (t *tx) orphan(p *Parked) {
	if p.Wait.Kind != WaitChildren || p.Wait.Children.Detached {
		return
	}
	for _, c := range t.s.outstanding(p) {
		t.s.Meta.Orphans = append(slices.Clip(t.s.Meta.Orphans), c.Execution)
		t.step.Orphans = append(t.step.Orphans, c.Execution)
	}
}

// outstanding lists the children of a wait that should be there and have not
// ended.
func (s *State) outstanding(p *Parked) []ChildStart {
	if p.Wait.Kind != WaitChildren {
		return nil
	}
	var list []ChildStart
	for i, run := range p.Wait.Children.Runs {
		if s.Children[p.Token][i] != nil {
			continue
		}
		list = append(list, ChildStart{
			Execution: s.childID(p.Token, i), Token: p.Token, Index: i,
			Depth: s.Meta.Depth + 1, Root: s.root(), Detached: p.Wait.Children.Detached, ChildRun: run,
		})
		if p.Wait.Children.Sequential {
			break
		}
	}
	return list
}

// Outstanding lists the children that should be there and have not ended.
// Starting one again is harmless.
func (s *State) Outstanding() []ChildStart {
	var list []ChildStart
	for _, p := range s.ParkedInOrder() {
		list = append(list, s.outstanding(p)...)
	}
	return list
}

func (s *State) root() ExecutionID {
	if s.Meta.Root != "" {
		return s.Meta.Root
	}
	return s.Meta.ID
}

// maxRootInID keeps a child's id within the length of an id (128).
const maxRootInID = 100

// childID is the id of a child: the same whenever it is asked for, and begins
// with that of the first execution of the line.
func (s *State) childID(token string, index int) ExecutionID {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s/%d", token, index))
	root := string(s.root())
	return ExecutionID(root[:min(len(root), maxRootInID)] + "-" + hex.EncodeToString(sum[:8]))
}

// Outcome is what an execution gives to the one that started it: the outputs of
// its last node, or why it failed.
func (s *State) Outcome() ([]workflow.Items, *NodeError) {
	if s.Meta.Status != StatusSuccess {
		if s.Meta.Error != nil {
			return nil, s.Meta.Error
		}
		return nil, &NodeError{Message: "The execution did not end well: " + string(s.Meta.Status)}
	}
	runs := s.Run[s.Meta.LastNode]
	for i := len(runs) - 1; i >= 0; i-- {
		if runs[i] != nil && runs[i].Data[workflow.Main] != nil {
			return runs[i].Data[workflow.Main], nil
		}
	}
	return nil, nil
}

// Resumption is what ended the last wait of an entry's run; nil when it did not
// wait.
func (s *State) Resumption(e *Entry) *Resumption {
	if e.Resumption == nil || e.Resumption.Kind != WaitChildren || e.Resumption.Children != nil {
		return e.Resumption
	}
	full := *e.Resumption
	results := s.Children[e.Wait]
	count := 0
	if r := s.Record(e.RunRef()); r != nil && r.Metadata != nil {
		count = r.Metadata.SubExecutionsCount // also those that were not started
	}
	for i := range results {
		count = max(count, i+1)
	}
	full.Children = make([]*ChildResult, count)
	for i, r := range results {
		full.Children[i] = r
	}
	return &full
}

// ParkedInOrder lists the parked runs, the oldest first.
func (s *State) ParkedInOrder() []*Parked {
	list := make([]*Parked, 0, len(s.Parked))
	for _, p := range s.Parked {
		list = append(list, p)
	}
	sort.Slice(list, func(i, j int) bool {
		_, a, _ := SplitToken(list[i].Token)
		_, b, _ := SplitToken(list[j].Token)
		return a < b
	})
	return list
}

// setAside reports whether a requester waits for nothing but parked runs, at
// any depth. What is below it on the stack may then run.
func (s *State) setAside(e *Entry) bool {
	if len(s.Parked) == 0 {
		return false
	}
	round := s.openRound(e.RunRef())
	if round == nil {
		return false
	}
	for _, c := range round.Calls {
		ref := RunRef{Node: c.Action.NodeName, Run: c.Run}
		if !s.Record(ref).open() || s.parked[ref] != nil {
			continue
		}
		if inner := s.resumes[ref]; inner == nil || !s.setAside(inner) {
			return false
		}
	}
	return true
}

// forsake ends the wait of a run whose execution is over. A failed execution
// keeps the run on its stack: a retry calls the node again as before this wait, so that it asks its
// question or makes its link anew, and goes on with a wait for children.
func (t *tx) forsake(p *Parked, status Status) {
	t.orphan(p)
	t.unpark(p)
	e := p.Entry
	if status == StatusError && p.Wait.Kind == WaitChildren && !p.Wait.Children.Detached {
		e.Again = &p.Wait
	} else {
		t.delChildren(p.Token)
		e.Waits, e.Wait, e.Resumption = e.Waits-1, "", p.Before
	}
	r := *t.s.Record(e.RunRef())
	r.Status, r.Data = StatusCanceled, nil
	if p.Wait.Kind == WaitApproval {
		meta := metadataOf(&r)
		meta.Outcome = OutcomeCanceled
		r.Metadata = meta
	}
	t.recordOf(&e, &r)
	if status == StatusError {
		t.push(&e)
	}
}

// Earlier is what the slices of a run before its last wait left for its record.
type Earlier struct {
	SubRuns []SubRunRef `json:"subRuns,omitempty"`
	Logs    []string    `json:"logs,omitempty"`
	Hints   []Hint      `json:"hints,omitempty"`
}

// with is e and what one more slice left; nil when there is nothing.
func (e *Earlier) with(subRuns []SubRunRef, logs []string, hints []Hint) *Earlier {
	next := Earlier{}
	if e != nil {
		next = *e
	}
	next.SubRuns = append(slices.Clip(next.SubRuns), subRuns...)
	next.Logs = append(slices.Clip(next.Logs), logs...)
	next.Hints = append(slices.Clip(next.Hints), hints...)
	if len(next.SubRuns)+len(next.Logs)+len(next.Hints) == 0 {
		return nil
	}
	return &next
}
