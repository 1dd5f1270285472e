package simulation

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/reprise-engine/reprise/internal/simulation/memqueue"
	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/queue"
	"github.com/reprise-engine/reprise/pkg/state"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// effect is a change of the world outside that a node made.
type effect struct {
	execution    engine.ExecutionID
	node         string
	run, attempt int
	key          string // idempotency key
	what         string
	process      string
}

func (e effect) String() string {
	return fmt.Sprintf("%s %s/%d#%d %s (%s)", e.execution, e.node, e.run, e.attempt, e.what, e.key)
}

// effectKey is what must happen under one idempotency key only.
type effectKey struct {
	execution engine.ExecutionID
	node      string
	run       int
	what      string
}

// stored is what is known of an execution from its last commit.
type stored struct {
	version uint64
	status  engine.Status
	jobs    map[engine.JobID]string // open jobs and their attempt
}

// history is what has happened: effects, commits, results. It checks, event by event,
// what must hold at all times.
type history struct {
	w        *world
	machines map[string]*engine.Machine
	known    map[engine.ExecutionID]*stored
	keys     map[effectKey]string
	effects  map[string]int  // how often each was had, attempts apart
	doneBy   map[string]bool // "<execution> <node> <run>" that had an effect
	// results that were sent, by job; answered is the step in which one was committed, by
	// attempt.
	results  map[engine.JobID]bool
	answered map[string]int
	attempts map[engine.JobID]string
	letters  []queue.DeadLetter
	// executions that go on where another failed, and where those failed
	goesOn   map[engine.ExecutionID]bool
	failedIn map[engine.ExecutionID]string
	last     map[engine.ExecutionID]*engine.State   // as they are in the end
	begun    map[string]map[engine.ExecutionID]bool // unfinished executions, by the gate of which they hold a place
	// first tells of the message of a job that is or was in the stream last whether it was
	// its coordinator's first attempt to publish it; excused are the permits that rest on
	// such a message which came soon after the commit, by worker and attempt.
	first     map[engine.JobID]bool
	attempted map[string]bool
	excused   map[string]bool
	repeated  int // runs that were excused
	finished  int
	commits   int
	moved     time.Time // when something was committed last
}

func newHistory(w *world) *history {
	return &history{
		w: w, machines: map[string]*engine.Machine{}, known: map[engine.ExecutionID]*stored{},
		keys: map[effectKey]string{}, effects: map[string]int{}, doneBy: map[string]bool{},
		first: map[engine.JobID]bool{}, attempted: map[string]bool{}, excused: map[string]bool{},
		goesOn: map[engine.ExecutionID]bool{}, failedIn: map[engine.ExecutionID]string{}, last: map[engine.ExecutionID]*engine.State{}, begun: map[string]map[engine.ExecutionID]bool{},
		results: map[engine.JobID]bool{}, answered: map[string]int{}, attempts: map[engine.JobID]string{},
	}
}

// lateAfter is the worker's: a message that came sooner after its commit is believed to
// be the only one.
const lateAfter = 3 * time.Second

// delivered: the worker may run the job, unless it asks.
//
// One case in which it does not and should have is known and excused: a coordinator
// that is slow between its commit and its first message, by less than lateAfter, while
// another has published the job already and it was answered. A worker cannot tell
// this message from the ordinary one. Its run repeats the effect, under the same key.
func (h *history) delivered(p *process, job *queue.Job, d *memqueue.Delivery) {
	h.attempts[job.ID] = attemptOf(job.Execution, job.IdempotencyKey, job.Attempt)
	if name := nodeOf(job); strings.HasPrefix(name, "Limited") {
		if at, known := h.w.store.Moment(string(job.ID)); !known || h.w.now().UnixMilli() < at {
			h.w.fail("job %s of %s is given out, and its moment is %d ms away (known: %v)", job.ID, name, at-h.w.now().UnixMilli(), known)
		}
	}
	h.permit(p, job.ID)
	h.excused[p.name+" "+h.attempts[job.ID]] = d.Deliveries == 1 && !job.Confirm && h.first[job.ID] &&
		d.Published.Sub(time.UnixMilli(job.DispatchedAt)) <= lateAfter
}

// nodeOf is the node that a job runs.
func nodeOf(job *queue.Job) string {
	if !bytes.Contains(job.Plan, []byte(`"node":"Limited`)) {
		return ""
	}
	var plan queue.Plan
	if err := json.Unmarshal(job.Plan, &plan); err != nil {
		panic(err)
	}
	return plan.Node
}

// attempt reports whether a coordinator publishes a job for the first time.
func (h *history) attempt(p *process, job engine.JobID) bool {
	key := p.name + " " + string(job)
	before := h.attempted[key]
	h.attempted[key] = true
	return !before
}

// asked: the worker may run the job if it is not answered now.
func (h *history) asked(p *process, job engine.JobID) { h.permit(p, job) }

// permit notes that a worker may begin to run a job because of what is known now; one
// that it runs already it does not begin.
func (h *history) permit(p *process, job engine.JobID) {
	if !p.worker.Holds(job) {
		p.permits[h.attempts[job]] = h.w.step
	}
}

// sent: a result is on its way. A job that is handed back has none.
func (h *history) sent(r *queue.Result) {
	if r.Result.Error == nil && !r.HandedBack {
		h.results[r.Job] = true
	}
}

// confirmed: a worker was told that its result is stored, and forgets it.
func (h *history) confirmed(job engine.JobID) {
	if attempt := h.attempts[job]; h.answered[attempt] == 0 {
		h.answered[attempt] = h.w.step
	}
}

func (h *history) dead(letter queue.DeadLetter) { h.letters = append(h.letters, letter) }

// effect checks that nothing is done under two keys, and nothing by a worker that could
// know that it was done.
func (h *history) effect(p *process, e effect) {
	id := effectKey{e.execution, e.node, e.run, e.what}
	if key, ok := h.keys[id]; ok && key != e.key {
		h.w.fail("%s was done under another key before: %s", e, key)
	}
	h.keys[id] = e.key
	h.again(e)
	h.effects[e.String()]++
	if n := h.effects[e.String()]; n > 1 && (h.w.profile.faultless() || strings.HasPrefix(e.node, "Once")) {
		h.w.fail("%s happens %d times", e, n)
	}
	h.doneBy[fmt.Sprintf("%s %s %d", e.execution, e.node, e.run)] = true
	attempt := attemptOf(e.execution, e.key, e.attempt)
	if answered := h.answered[attempt]; answered != 0 && answered < p.permits[attempt] {
		if h.excused[p.name+" "+attempt] {
			h.repeated++
			return
		}
		h.w.fail("%s is done by %s, which was allowed to in step %d, and was answered in step %d", e, p.name, p.permits[attempt], answered)
	}
}

// again checks what an execution does that goes on where another one failed: what had ended is not done again, and
// what failed is done under the same key.
func (h *history) again(e effect) {
	from := engine.ExecutionID(strings.TrimSuffix(string(e.execution), "-r"))
	if from == e.execution || !h.goesOn[e.execution] {
		return
	}
	key, did := h.keys[effectKey{from, e.node, e.run, e.what}]
	switch failed := h.failedIn[from]; {
	case did && e.node == failed && key != e.key:
		h.w.fail("%s is done again under another key than %s", e, key)
	case did && e.node != failed:
		h.w.fail("%s was done before its execution was retried, which failed in %s", e, failed)
	}
}

// committed checks every execution that a group of commits was about.
func (h *history) committed(p *process, commits []state.Commit, errs []error) {
	for i := range commits {
		if errs[i] != nil {
			h.w.trace("  ", string(commits[i].Execution), errs[i].Error())
			continue
		}
		h.commits++
		h.moved = h.w.now()
		h.check(commits[i].Execution, p)
	}
}

func (h *history) check(id engine.ExecutionID, p *process) {
	now := h.w.store.View(id)
	if now == nil {
		h.w.fail("execution %s is not stored after its commit", id)
		return
	}
	before := h.known[id]
	if before == nil {
		before = &stored{}
		h.known[id] = before
	}
	s, err := engine.Restore(now.Tables)
	if err != nil {
		h.w.fail("execution %s: %v", id, err)
		return
	}
	switch {
	case now.Version < before.version:
		h.w.fail("execution %s went from version %d back to %d", id, before.version, now.Version)
	case before.status.Finished() && (now.Version != before.version || now.Status != before.status):
		h.w.fail("execution %s was finished (%s) and was changed", id, before.status)
	case s.Meta.Status != now.Status:
		h.w.fail("execution %s has the status %s and is indexed as %s", id, s.Meta.Status, now.Status)
	}
	m := h.machine(s.Meta.WorkflowHash)
	if m == nil {
		return
	}
	if err := m.Check(s); err != nil {
		h.w.fail("committed by %s: %v", p.name, err)
	}
	jobs := map[engine.JobID]string{}
	for jobID, job := range s.Jobs {
		if job.RetryAt == 0 {
			jobs[jobID] = attemptOf(id, job.IdempotencyKey, job.Attempt)
		}
	}
	for jobID, attempt := range before.jobs {
		if _, open := jobs[jobID]; !open && h.results[jobID] && h.answered[attempt] == 0 {
			h.answered[attempt] = h.w.step
		}
	}
	if now.Status.Finished() && !before.status.Finished() {
		h.finished++
	}
	if s.Meta.Status == engine.StatusError && s.Meta.Error != nil {
		h.failedIn[id] = s.Meta.Error.Node
	}
	h.gate(s)
	before.version, before.status, before.jobs = now.Version, now.Status, jobs
	h.w.trace("  ", string(id), fmt.Sprint(now.Version), string(now.Status))
}

// gate checks that no more executions have begun than a workflow has places. When something goes wrong more may: a
// place is taken from an execution of which nobody knew whether it was stored.
func (h *history) gate(s *engine.State) {
	name := s.Meta.WorkflowID
	if !strings.HasPrefix(name, "gated-") {
		return
	}
	if h.begun[name] == nil {
		h.begun[name] = map[engine.ExecutionID]bool{}
	}
	if s.Meta.Status == engine.StatusNew || s.Meta.Status.Finished() {
		delete(h.begun[name], s.Meta.ID)
		return
	}
	h.begun[name][s.Meta.ID] = true
	if n := len(h.begun[name]); n > gatePlaces && h.w.profile.faultless() {
		h.w.fail("%d executions of %s run, although it has %d places", n, name, gatePlaces)
	}
}

func (h *history) machine(hash string) *engine.Machine {
	if m := h.machines[hash]; m != nil {
		return m
	}
	document, err := h.w.store.Workflow(nil, hash) //nolint:staticcheck // it takes none
	if err != nil {
		h.w.fail("workflow of an execution: %v", err)
		return nil
	}
	w, err := workflow.Parse(document)
	if err != nil {
		h.w.fail("workflow of an execution: %v", err)
		return nil
	}
	m := engine.New(w, registry(nil))
	h.machines[hash] = m
	return m
}

// unfinished lists executions that are not over, with what they wait for.
func (h *history) unfinished() []string {
	var list []string
	for id, x := range h.known {
		if !x.status.Finished() {
			var jobs []string
			for job := range x.jobs {
				jobs = append(jobs, string(job))
			}
			slices.Sort(jobs)
			list = append(list, fmt.Sprintf("%s (%s, jobs %s)", id, x.status, strings.Join(jobs, " ")))
		}
	}
	sort.Strings(list)
	return list
}

// load reads an execution for the checks at the end, when nothing changes any more.
func (h *history) load(id engine.ExecutionID) *engine.State {
	if s := h.last[id]; s != nil {
		return s
	}
	now := h.w.store.View(id)
	if now == nil {
		return nil
	}
	s, err := engine.Restore(now.Tables)
	if err != nil {
		return nil
	}
	h.last[id] = s
	return s
}

// remembered checks that a conversation has each message once, and has all that
// it must have.
func (h *history) remembered(session string, must []string) {
	messages, _ := h.w.store.Memory(nil, session, 0) //nolint:staticcheck // it takes none
	seen := map[string]bool{}
	for _, m := range messages {
		var text string
		if err := json.Unmarshal(m, &text); err != nil || seen[text] {
			h.w.fail("the conversation %s has %s twice, or it cannot be read: %v", session, m, err)
		}
		seen[text] = true
	}
	for _, text := range must {
		if !seen[text] {
			h.w.fail("the conversation %s lacks %q", session, text)
		}
	}
}
