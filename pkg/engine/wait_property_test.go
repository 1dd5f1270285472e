package engine_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"sort"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// drawTree is drawWorld with a main flow in which every input has one feeder, so
// that each node runs once at most and what it gets does not depend on the order
// in which branches go on after their waits.
func drawTree(t *rapid.T) *world {
	w := &world{seed: rapid.IntRange(0, 1<<30).Draw(t, "seed"), tools: map[string][]string{}, outputs: map[string]int{}, waits: true}
	b := newBuilder()
	say := func(format string, args ...any) {
		if err := b.statement(fmt.Sprintf(format, args...)); err != nil {
			t.Fatal(err)
		}
	}
	say("Start: trigger")
	say("Model: model")
	for i := range rapid.IntRange(1, 7).Draw(t, "nodes") {
		kind := rapid.SampledFrom([]string{"node", "node", "agent"}).Draw(t, "kind")
		name := fmt.Sprintf("N%d", i)
		w.outputs[name] = rapid.IntRange(1, 2).Draw(t, "outputs")
		say("%s: %s outputs=%d %s", name, kind, w.outputs[name], drawSettings(t, false, "", "continueRegularOutput", "continueErrorOutput"))
		if kind == "agent" {
			w.drawTools(t, say, name, 0, false)
		}
		for input := range rapid.IntRange(1, 2).Draw(t, "inputs") {
			from := "Start"
			if k := rapid.IntRange(-1, i-1).Draw(t, "from"); k >= 0 {
				from = fmt.Sprintf("N%d/%d", k, rapid.IntRange(0, 1).Draw(t, "output"))
			}
			say("%s -> %s/%d", from, name, input)
		}
	}
	if rapid.IntRange(0, 3).Draw(t, "mode") == 0 {
		say("set toolExecution=sequential")
	}
	var err error
	if w.workflow, err = b.build(); err != nil {
		t.Fatal(err)
	}
	return w
}

// wait is what a node waits for, if it does.
func (w *world) wait(dice func(int, string) int) *engine.Wait {
	switch dice(10, "wait") {
	case 0:
		return &engine.Wait{Kind: engine.WaitTime, Until: 1 << 40}
	case 1:
		return &engine.Wait{Kind: engine.WaitWebhook}
	case 2:
		return &engine.Wait{Kind: engine.WaitApproval, Question: &engine.Question{Text: "?"}}
	case 3:
		c := &engine.Children{Sequential: dice(2, "sequential") == 0, StopOnError: dice(2, "stop") == 0}
		for range 1 + dice(3, "children") {
			c.Runs = append(c.Runs, engine.ChildRun{WorkflowID: "w"})
		}
		if c.StopOnError && !c.Sequential {
			c.StopOnError = false // which others had ended by then depends on the order
		}
		return &engine.Wait{Kind: engine.WaitChildren, Children: c}
	}
	return nil
}

// waitEvents lists how the waits of an execution can go on.
func (w *world) waitEvents(x *execution) []engine.Event {
	var list []engine.Event
	for _, p := range x.state.ParkedInOrder() {
		what := []any{p.Entry.Node, asJSON(x.state.Inputs(&p.Entry)), p.Entry.Waits}
		switch p.Wait.Kind {
		case engine.WaitTime:
			list = append(list, engine.TimerFired{At: x.now, Timer: "wait:" + p.Token})
		case engine.WaitWebhook:
			list = append(list, engine.Resumed{At: x.now, Token: p.Token, Data: json.RawMessage(fmt.Sprintf(`{"hook":%d}`, w.dice(9, what...)))})
		case engine.WaitApproval:
			list = append(list, engine.Resumed{At: x.now, Token: p.Token, Decision: &engine.Decision{Approved: w.dice(2, what...) == 0}})
		}
	}
	for _, c := range x.state.Outstanding() {
		p := x.state.Parked[c.Token]
		ev := engine.ChildFinished{At: x.now, Token: c.Token, Index: c.Index, Result: engine.ChildResult{Status: engine.StatusSuccess}}
		// A child's id depends on the number of its parent's job, which order changes.
		ev.Result.Execution = "child"
		if w.dice(4, "child", p.Entry.Node, asJSON(x.state.Inputs(&p.Entry)), c.Index) == 0 {
			ev.Result.Status, ev.Result.Error = engine.StatusError, &engine.NodeError{Message: "child failed"}
		}
		list = append(list, ev)
	}
	return list
}

// unordered is canonical without the order of the main flow, which waits change.
func unordered(s *engine.State) string {
	lines := strings.Split(canonical(s), "\n")
	for i := range lines[1:] {
		_, lines[i+1], _ = strings.Cut(lines[i+1], " ")
	}
	sort.Strings(lines[1:])
	return strings.Join(lines, "\n")
}

// TestWaitsInAnyOrderGiveTheSameRun: whatever ends first, a wait or a job, with
// repeated and late events and a save and restore anywhere, the run is the same.
// Nothing ever waits without a deadline or an outside party (Check).
func TestWaitsInAnyOrderGiveTheSameRun(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawTree(t)
		reference := w.begin(t)
		for n := 0; !reference.state.Meta.Status.Finished(); n++ {
			if n > maxSteps {
				t.Fatal("the execution does not end")
			}
			reference.now++
			step(t, reference, append(w.events(reference, false), w.waitEvents(reference)...)[0])
		}
		want := unordered(reference.state)

		x := w.begin(t)
		w.explore(t, x)
		if got := unordered(x.state); got != want {
			t.Fatalf("the run differs\ngot:\n%s\nwant:\n%s", got, want)
		}
		noneOpen(t, x)
	})
}

// TestRetryEndsLikeARunWithoutFailure: an execution that a failure ended, and that
// goes on from there once the cause is gone, has the run data of one that never
// failed; what had ended is not run again.
func TestRetryEndsLikeARunWithoutFailure(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawTree(t)
		drive := func(x *execution, seen func(engine.Event)) {
			for n := 0; !x.state.Meta.Status.Finished(); n++ {
				if n > maxSteps {
					t.Fatal("the execution does not end")
				}
				x.now++
				events := append(w.events(x, false), w.waitEvents(x)...)
				ev := events[rapid.IntRange(0, len(events)-1).Draw(t, "event")]
				seen(ev)
				step(t, x, ev)
				if rapid.IntRange(0, 3).Draw(t, "restore") == 0 {
					if err := x.restore(); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
		nothing := func(engine.Event) {}
		whole := w.begin(t)
		drive(whole, nothing)

		x := w.begin(t)
		// The cause: a step of the execution fails for good, whatever its node says of errors.
		broken := rapid.IntRange(1, 12).Draw(t, "broken")
		done := map[string]int{}
		for n := 1; !x.state.Meta.Status.Finished(); n++ {
			x.now++
			events := append(w.events(x, false), w.waitEvents(x)...)
			ev := events[rapid.IntRange(0, len(events)-1).Draw(t, "event")]
			if finished, ok := ev.(engine.NodeFinished); ok && n >= broken && stops(x, finished.Job) {
				finished.Result = engine.Result{Error: &engine.NodeError{Message: "broken", NotRetryable: true}}
				ev = finished
			}
			step(t, x, ev)
		}
		if x.state.Meta.Status != engine.StatusError {
			return // nothing that stops was met
		}
		for node, runs := range x.state.Run {
			for i, r := range runs {
				if r != nil && r.Status == engine.StatusSuccess {
					done[engine.RunRef{Node: node, Run: i}.String()]++
				}
			}
		}
		failed := x.state
		again := newExecutionInMode(w.workflow, failed.Meta.Mode)
		again.now, again.state.Meta.ID = x.now+1000, "y"
		step(t, again, engine.Retried{At: again.now, From: failed})
		drive(again, func(ev engine.Event) {
			if finished, ok := ev.(engine.NodeFinished); ok {
				if ref := again.state.Jobs[finished.Job].Entry.RunRef().String(); done[ref] > 0 {
					t.Fatalf("%s had ended and was run again", ref)
				}
			}
		})
		// Attempts that had not been made when it broke off are counted anew.
		attempts := regexp.MustCompile(` attempts=\d+`)
		got, want := attempts.ReplaceAllString(unordered(again.state), ""), attempts.ReplaceAllString(unordered(whole.state), "")
		if got != want {
			t.Fatalf("the retried run differs\ngot:\n%s\nwant:\n%s", got, want)
		}
		noneOpen(t, again)
	})
}

// stops reports whether a failure of the job ends the execution, and whether the
// slice leaves nothing that a repetition would leave twice.
func stops(x *execution, id engine.JobID) bool {
	job := x.state.Jobs[id]
	node := x.machine.Workflow().Node(job.Entry.Node)
	return !job.Entry.AsTool() && node.OnError == workflow.OnErrorUnset && job.Attempt == 1
}
