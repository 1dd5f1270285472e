package simulation

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reprise-engine/reprise/internal/simulation/memqueue"
	"github.com/reprise-engine/reprise/internal/simulation/memstore"
	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/queue"
)

// profile is how much of what goes wrong in one simulation. Not every kind of fault
// is in every one: some mistakes show only when others do not cover them.
type profile struct {
	lost, unclear, late, twice, slow, verySlow float64 // probability for each operation
	kills, pauses, wipes, restarts, drains     int

	executions, coordinators, workers, slots, lanes, group, deliveryLimit, cacheBytes int
	// span is how long faults go on.
	span time.Duration
}

// After the last fault something has to be committed within so long, until all is over. That
// is not bounded further than by an hour: a few seeds draw work that takes a while by itself,
// such as agents whose slow tools wait for one rate limit.
const (
	within    = 10 * time.Minute
	withinAll = time.Hour
)

func newProfile(rng *rand.Rand, executions int) profile {
	p := profile{
		executions: executions, coordinators: 1 + rng.IntN(3), workers: 1 + rng.IntN(3), slots: 4 + rng.IntN(5),
		lanes: 1 + rng.IntN(3), group: 1 + rng.IntN(16), deliveryLimit: 1_000_000,
		span: time.Duration(20+rng.IntN(40)) * time.Second,
	}
	if rng.IntN(4) == 0 {
		p.deliveryLimit = 2 + rng.IntN(2)
	}
	if rng.IntN(8) == 0 {
		p.cacheBytes = 1 + rng.IntN(20_000)
	}
	if rng.IntN(8) == 0 {
		return p // nothing goes wrong
	}
	rate := func(most float64) float64 {
		if rng.IntN(2) == 0 {
			return 0
		}
		return most * rng.Float64()
	}
	p.lost, p.unclear, p.late, p.twice = rate(0.04), rate(0.05), rate(0.03), rate(0.08)
	p.slow, p.verySlow = rate(0.2), rate(0.02)
	count := func(most int) int {
		if rng.IntN(2) == 0 {
			return 0
		}
		return 1 + rng.IntN(most)
	}
	p.kills, p.pauses, p.drains = count(8), count(5), count(3)
	if rng.IntN(4) == 0 {
		p.wipes = 1
	}
	if rng.IntN(4) == 0 {
		p.restarts = 1
	}
	return p
}

// faultless reports whether nothing goes wrong.
func (p *profile) faultless() bool {
	return p.lost+p.unclear+p.late+p.twice+p.slow+p.verySlow == 0 && p.kills+p.pauses+p.wipes+p.restarts+p.drains == 0
}

// outcomeOf is what came of one seed.
type outcomeOf struct {
	seed       uint64
	hash       uint64
	failure    error
	executions int // that ended, with children and error workflows
	steps      int
	commits    int
	repeated   int           // runs repeated in the known window, see history.delivered
	took       time.Duration // simulated
	profile    profile
}

// simulate runs one seed in a bubble of its own. lines is told every event; may be nil.
func simulate(t *testing.T, seed uint64, executions int, lines func(string)) (out outcomeOf) {
	// A collection in the middle could change the order in which goroutines run.
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	defer runtime.GC()
	// A bubble that stands still for ever panics here. What is left of it is left.
	defer func() {
		if r := recover(); r != nil {
			out = outcomeOf{seed: seed, failure: fmt.Errorf("it stands still: %v", r)}
		}
	}()
	synctest.Test(t, func(*testing.T) {
		rng := rand.New(rand.NewPCG(seed, 0x5eed)) //nolint:gosec // it must be repeatable
		w := newWorld(seed, newProfile(rng, executions), rng, lines)
		l := newWorkload(rng, executions)
		w.play(l)
		out = outcomeOf{
			seed: seed, hash: w.hash.sum, failure: w.failure, executions: w.history.finished, steps: w.step,
			commits: w.history.commits, repeated: w.history.repeated, took: time.Since(w.started), profile: w.profile,
		}
	})
	return out
}

func newWorld(seed uint64, p profile, rng *rand.Rand, lines func(string)) *world {
	w := &world{seed: seed, profile: p, rng: rng, started: time.Now(), wake: make(chan struct{}, 1), lives: map[string]int{}, looks: map[*memqueue.Stream]time.Time{}, hash: &traceHash{lines: lines}}
	w.calm = w.started.Add(p.span)
	w.store = memstore.New(memstore.Config{})
	w.jobs = memqueue.NewStream(queue.StreamJobs, lease)
	w.submissions = memqueue.NewStream(queue.StreamSubmit, submitWait)
	w.history = newHistory(w)
	w.createTable()
	return w
}

// play starts everything, lets it run until all is over, checks, and stops everything.
func (w *world) play(l *workload) {
	w.note("%+v", w.profile)
	for _, d := range l.executions {
		w.history.goesOn[engine.ExecutionID(d.id+"-r")] = d.retried == "failed"
	}
	for i := range w.profile.coordinators {
		w.startCoordinator(fmt.Sprintf("c%d", i+1))
	}
	for i := range w.profile.workers {
		w.startWorker(fmt.Sprintf("w%d", i+1))
	}
	w.plan()
	w.startClients(l)
	quiet := time.Time{}
	w.run(func() bool {
		switch now := w.now(); {
		case now.Sub(w.calm) > within && now.Sub(w.history.moved) > within:
			w.fail("nothing was committed for %s after the last fault: %s", within, w.left())
		case now.Sub(w.calm) > withinAll:
			w.fail("not over %s after the last fault: %s", withinAll, w.left())
		case now.Before(w.calm) || !w.over():
			quiet = time.Time{}
		case quiet.IsZero():
			quiet = now
		default:
			return now.Sub(quiet) > 12*time.Second // nothing comes back
		}
		return false
	})
	if w.failure == nil {
		w.checkEnd(l)
	}
	w.end()
}

// startClients starts one client that stores workflows, then one for each execution.
func (w *world) startClients(l *workload) {
	w.clients = 1
	setup := client{w.newProcess("setup"), rand.New(rand.NewPCG(w.seed, 1))} //nolint:gosec // it must be repeatable
	clients := make([]client, len(l.executions))
	for i := range l.executions {
		clients[i] = client{w.newProcess(fmt.Sprintf("u%d", i)), rand.New(rand.NewPCG(w.seed, uint64(2+i)))} //nolint:gosec // as above
	}
	go func() {
		defer w.clientDone()
		setup.store(l.stored)
		for i, d := range l.executions {
			w.mu.Lock()
			w.clients++
			w.mu.Unlock()
			go func() {
				defer w.clientDone()
				clients[i].run(d)
			}()
		}
	}()
}

// plan draws when processes are killed and paused, and streams lost.
func (w *world) plan() {
	p := &w.profile
	at := func() time.Duration { return w.between(time.Second, p.span) }
	victim := func(can func(*process) bool) *process {
		return w.any(func(v *process) bool { return can(v) && !v.draining })
	}
	either := func(v *process) bool { return v.coordinator != nil || v.worker != nil }
	for range p.kills {
		w.after(at(), &event{name: "kill", run: func() {
			if v := victim(either); v != nil {
				w.kill(v)
				w.after(w.between(100*time.Millisecond, 12*time.Second), &event{name: "start " + v.role, run: func() { w.startRole(v.role) }})
			}
		}})
	}
	for range p.drains {
		w.after(at(), &event{name: "stop", run: func() {
			if v := victim(either); v != nil {
				w.note("stop %s in order", v.name)
				v.draining = true
				w.stop(v, false)
				w.after(w.between(100*time.Millisecond, 12*time.Second), &event{name: "start " + v.role, run: func() { w.startRole(v.role) }})
			}
		}})
	}
	for range p.pauses {
		w.after(at(), &event{name: "pause", run: func() {
			if v := victim(either); v != nil {
				long := w.between(time.Second, 3*lease)
				w.note("pause %s for %s", v.name, long)
				v.paused = w.now().Add(long)
			}
		}})
	}
	for range p.wipes {
		w.after(at(), &event{name: "the job stream is lost", run: func() {
			w.jobs.Wipe()
			w.forgotten(func(v *process) bool { return v.worker != nil }) // the consumer is a new one
		}})
	}
	for range p.restarts {
		w.after(at(), &event{name: "NATS is killed and started", run: func() {
			w.jobs.Restart(w.now())
			w.submissions.Restart(w.now())
			w.forgotten(func(*process) bool { return true })
		}})
	}
}

// forgotten: what was delivered before is not known to the server any more.
func (w *world) forgotten(to func(*process) bool) {
	for _, v := range w.processes {
		if to(v) {
			v.mu.Lock()
			v.connected, v.again = w.now(), true
			v.mu.Unlock()
		}
	}
}

// over reports whether nothing is left.
func (w *world) over() bool {
	if w.history.finished < len(w.history.known) || w.jobs.Len()+w.submissions.Len() > 0 {
		return false
	}
	return w.left() == ""
}

// left says what is not over; "" when everything is.
func (w *world) left() string {
	w.mu.Lock()
	clients, stopping := w.clients, w.stopping
	w.mu.Unlock()
	switch {
	case clients > 0:
		return fmt.Sprintf("%d clients are not done; executions: %s", clients, strings.Join(w.history.unfinished(), ", "))
	case stopping > 0:
		return fmt.Sprintf("%d processes have not stopped", stopping)
	case w.history.finished < len(w.history.known):
		return "executions: " + strings.Join(w.history.unfinished(), ", ")
	case w.jobs.Len() > 0:
		return "jobs in the queue: " + strings.Join(w.jobs.Subjects(), ", ")
	case w.submissions.Len() > 0:
		return "submissions: " + strings.Join(w.submissions.Subjects(), ", ")
	}
	if l := w.store.Left(); len(l.Active)+len(l.Timers)+len(l.Questions)+len(l.Gates) > 0 {
		return fmt.Sprintf("in the store: %+v", l)
	}
	return ""
}

// end stops what still runs, so that the bubble can be left.
func (w *world) end() {
	for _, p := range w.processes {
		if !p.dead.Load() && !p.draining {
			w.kill(p)
		}
	}
	for range 100 {
		synctest.Wait()
		w.mu.Lock()
		busy := w.clients + w.stopping
		w.arrivals = nil
		w.mu.Unlock()
		if busy == 0 {
			return
		}
		time.Sleep(10 * time.Second) // of the bubble's time: what waits for a moment goes on
	}
}

// checkEnd compares what came of all executions with what had to.
func (w *world) checkEnd(l *workload) {
	lost := w.lost()
	var remembered []string
	check := func(d *document, id string, again bool) {
		s := w.history.load(engine.ExecutionID(id))
		if s == nil {
			w.fail("execution %s is not there", id)
			return
		}
		w.checkExecution(d, s, lost[s.Meta.ID], again)
		if s.Meta.Status == engine.StatusSuccess {
			for _, agent := range d.agents {
				if runs := s.Run[agent]; len(runs) > 0 && (!again || d.retried == "start" && id == d.id+"-r") {
					remembered = append(remembered, fmt.Sprintf("%s %s 0", id, agent))
				}
			}
		}
	}
	for _, d := range l.executions {
		check(d, d.id, false)
		for _, suffix := range []string{"-r", "-p"} {
			if id := engine.ExecutionID(d.id + suffix); w.history.known[id] != nil {
				check(d, string(id), true)
			}
		}
	}
	for _, session := range append([]string{sharedSession}, sessions(l)...) {
		var must []string
		for _, text := range remembered {
			id, _, _ := strings.Cut(text, " ")
			if id, _, _ = strings.Cut(id, "-"); l.session(id) == session {
				must = append(must, text)
			}
		}
		w.history.remembered(session, must)
	}
	for _, id := range w.store.Executions() {
		w.checkEffects(id)
	}
	w.checkDecisions()
	w.checkRows()
	for _, letter := range w.history.letters {
		if !lost[letter.Execution] || letter.Reason != engine.ReasonWorkerLost {
			w.fail("a dead letter of an execution that lost no job: %+v", letter)
		}
	}
}

// lost finds the executions that have a job which was given up, and those that started them. Their
// outcome is not certain: what such a job does is not known, and that is what its node fails with.
func (w *world) lost() map[engine.ExecutionID]bool {
	lost := map[engine.ExecutionID]bool{}
	for _, id := range w.store.Executions() {
		s := w.history.load(id)
		if !gaveUp(s) {
			continue
		}
		if w.profile.faultless() {
			w.fail("execution %s lost a worker although nothing goes wrong", id)
		}
		line, err := w.store.Line(nil, id) //nolint:staticcheck // it takes none
		if err != nil {
			w.fail("line of %s: %v", id, err)
		}
		for _, id := range line {
			lost[id] = true
		}
	}
	for _, id := range w.store.Executions() { // what goes on from there
		if s := w.history.load(id); s.Meta.RetryOf != "" && lost[s.Meta.RetryOf] {
			lost[id] = true
		}
	}
	return lost
}

func gaveUp(s *engine.State) bool {
	if s.Meta.Error != nil && s.Meta.Error.Reason == engine.ReasonWorkerLost {
		return true
	}
	for _, runs := range s.Run {
		for _, r := range runs {
			if r != nil && r.Error != nil && r.Error.Reason == engine.ReasonWorkerLost {
				return true
			}
		}
	}
	return false
}

func sessions(l *workload) (names []string) {
	for _, d := range l.executions {
		names = append(names, d.id)
	}
	return names
}

func (l *workload) session(id string) string {
	for _, d := range l.executions {
		if d.id == id {
			return d.session
		}
	}
	return ""
}

// checkExecution compares what came of an execution, or of one that runs it again, with what had to.
func (w *world) checkExecution(d *document, s *engine.State, lost, again bool) {
	id, status, must := s.Meta.ID, s.Meta.Status, d.status
	if d.recovers && again && d.retried == "failed" {
		must = engine.StatusSuccess
	}
	switch {
	case d.outside && status == engine.StatusCanceled:
		return
	case lost && (status == engine.StatusError || status == must):
		return
	case status != must:
		w.fail("execution %s ended as %s, not as %s: %+v", id, status, must, s.Meta.Error)
		return
	}
	outputs, _ := s.Outcome()
	if want := strings.ReplaceAll(d.trail, in, "S"); status == engine.StatusSuccess {
		got := "?"
		if len(outputs) > 0 {
			got = trailOf(outputs[0])
		}
		if got != want {
			w.fail("execution %s gives\n%s, not\n%s", id, got, want)
		}
	}
	if status == engine.StatusError && (s.Meta.Error == nil || s.Meta.Error.Node != d.failed) {
		w.fail("execution %s failed with %+v and not in %s", id, s.Meta.Error, d.failed)
	}
	handler := w.history.load(id + "-error")
	if d.handler != (handler != nil) {
		w.fail("execution %s: an error workflow was to be started: %v, and was: %v", id, d.handler, handler != nil)
	}
}

// checkEffects checks that what an execution has a good record of was done.
func (w *world) checkEffects(id engine.ExecutionID) {
	s := w.history.load(id)
	if strings.HasSuffix(string(id), "-r") || strings.HasSuffix(string(id), "-p") {
		return // some of its records are another execution's
	}
	for name, runs := range s.Run {
		if !acts(name) {
			continue
		}
		for run, r := range runs {
			if r != nil && r.Status == engine.StatusSuccess && !w.history.doneBy[fmt.Sprintf("%s %s %d", id, name, run)] {
				w.fail("run %d of %s in execution %s is recorded and had no effect", run, name, id)
			}
		}
	}
}

// acts reports whether a node has effects, by its name.
func acts(name string) bool {
	for _, prefix := range []string{"Start", "Inline"} {
		if strings.HasPrefix(name, prefix) {
			return false
		}
	}
	return true
}

// checkDecisions checks that of two who decide one has won, and that the execution
// went on with that one's decision.
func (w *world) checkDecisions() {
	won := map[string]decision{}
	for _, d := range w.decisions {
		if !d.won {
			continue
		}
		if other, twice := won[d.token]; twice {
			w.fail("the question %s was decided by %s and by %s", d.token, other.by, d.by)
		}
		won[d.token] = d
	}
	for _, d := range w.decisions {
		id, _, _ := engine.SplitToken(d.token)
		s := w.history.load(id)
		for _, runs := range s.Run {
			for _, r := range runs {
				if r == nil || r.Metadata == nil || r.Metadata.Wait != d.token {
					continue
				}
				by := ""
				if r.Metadata.Decision != nil {
					by = r.Metadata.Decision.By
				}
				if d.won && (by != d.by || r.Metadata.Decision.Approved != d.approved) {
					w.fail("%s was told that it had decided %s, which is recorded as decided by %q", d.by, d.token, by)
				}
				if !d.won && d.sure && by == d.by {
					w.fail("%s decided %s and was told at once that it had not", d.by, d.token)
				}
			}
		}
	}
}
