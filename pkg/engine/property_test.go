package engine_test

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"sort"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// A world is a random workflow with nodes that behave at random, but always in
// the same way when they are given the same: what a node returns depends on
// its name, its input, its attempt and the answers it got, and not on when it
// was called.
type world struct {
	workflow *workflow.Workflow
	seed     int
	tools    map[string][]string // by requester
	outputs  map[string]int
	waits    bool // nodes may wait, and none ends the execution by failing
}

const maxSteps = 20000

// drawWorld makes a graph of main-flow nodes (some with two inputs, some of
// them agents), tools, and agents that are tools. With rough set, tools may
// stop the workflow and nodes have timeouts.
func drawWorld(t *rapid.T, rough bool) *world {
	w := &world{seed: rapid.IntRange(0, 1<<30).Draw(t, "seed"), tools: map[string][]string{}, outputs: map[string]int{}}
	b := newBuilder()
	say := func(format string, args ...any) {
		if err := b.statement(fmt.Sprintf(format, args...)); err != nil {
			t.Fatal(err)
		}
	}
	say("Start: trigger")
	say("Model: model")
	n := rapid.IntRange(1, 6).Draw(t, "nodes")
	for i := range n {
		kind := rapid.SampledFrom([]string{"node", "node", "agent"}).Draw(t, "kind")
		outputs := rapid.IntRange(1, 2).Draw(t, "outputs")
		name := fmt.Sprintf("N%d", i)
		w.outputs[name] = outputs
		say("%s: %s outputs=%d %s", name, kind, outputs, drawSettings(t, rough, "", "continueRegularOutput", "continueErrorOutput"))
		if kind == "agent" {
			w.drawTools(t, say, name, 0, rough)
		}
		// Fed by up to three earlier nodes, at up to three inputs.
		inputs := rapid.IntRange(0, 2).Draw(t, "inputs")
		for range rapid.IntRange(1, 3).Draw(t, "feeds") {
			from := "Start"
			if k := rapid.IntRange(-1, i-1).Draw(t, "from"); k >= 0 {
				from = fmt.Sprintf("N%d/%d", k, rapid.IntRange(0, 2).Draw(t, "output"))
			}
			say("%s -> %s/%d", from, name, rapid.IntRange(0, inputs).Draw(t, "input"))
		}
	}
	say("set executionOrder=%s", rapid.SampledFrom([]string{"v0", "v1", "v1"}).Draw(t, "order"))
	if rapid.IntRange(0, 3).Draw(t, "mode") == 0 {
		say("set toolExecution=sequential")
	}
	if rough {
		say("set executionTimeout=1000")
	}
	var err error
	if w.workflow, err = b.build(); err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *world) drawTools(t *rapid.T, say func(string, ...any), requester string, depth int, rough bool) {
	for i := range rapid.IntRange(1, 3).Draw(t, "tools") {
		name := fmt.Sprintf("%sT%d", requester, i)
		w.tools[requester] = append(w.tools[requester], name)
		errors := []string{"", "continueRegularOutput", "continueErrorOutput"}
		if rough {
			errors = append(errors, "stopWorkflow")
		}
		say("%s: tool %s", name, drawSettings(t, rough, errors...))
		say("%s ~> %s", name, requester)
		if depth < 2 && rapid.IntRange(0, 3).Draw(t, "nested") == 0 {
			w.drawTools(t, say, name, depth+1, rough)
		}
	}
}

func drawSettings(t *rapid.T, rough bool, onError ...string) string {
	var words []string
	if e := rapid.SampledFrom(onError).Draw(t, "onError"); e != "" {
		words = append(words, "onError="+e)
	}
	flag := func(word string, oneIn int) {
		if rapid.IntRange(1, oneIn).Draw(t, word) == oneIn {
			words = append(words, word)
		}
	}
	flag("retry", 3)
	flag("always", 6)
	flag("once", 8)
	flag("disabled", 10)
	if rough {
		flag("timeout=500", 3)
	}
	return strings.Join(words, " ")
}

// dice gives a number in [0, n) that depends on the world and the words only.
func (w *world) dice(n int, words ...any) int {
	h := fnv.New32a()
	fmt.Fprintln(h, w.seed)
	fmt.Fprintln(h, words...)
	return int(h.Sum32() % uint32(n))
}

// run is what a node returns for a job.
func (w *world) run(s *engine.State, job *engine.OpenJob) engine.Result {
	e := &job.Entry
	var answers []string
	for _, round := range s.Answers(e.RunRef()) {
		for _, r := range round.Results {
			answers = append(answers, asJSON(r.Record.Data), r.Action.ID)
		}
	}
	if r := s.Resumption(e); r != nil {
		answers = append(answers, asJSON(r))
	}
	what := []any{e.Node, asJSON(s.Inputs(e)), job.Slice, job.Attempt, answers}
	dice := func(n int, about string) int { return w.dice(n, append(what, about)...) }

	var res engine.Result
	tools := w.tools[e.Node]
	if len(tools) > 0 {
		res.SubRuns = []engine.SubRun{{
			Node: "Model", Type: workflow.LanguageModel, StartTime: job.DispatchedAt,
			Output: []workflow.Items{{{JSON: json.RawMessage(fmt.Sprintf(`{"n":%d}`, dice(100, "model")))}}},
		}}
	}
	stops := !e.AsTool() && w.workflow.Node(e.Node).OnError == workflow.OnErrorUnset
	if dice(8, "fails") == 0 && !(w.waits && stops) {
		res.Error = &engine.NodeError{Message: fmt.Sprintf("%s failed", e.Node), NotRetryable: dice(4, "final") == 0}
		if w.waits {
			res.SubRuns = nil // attempts before a wait are made again when a retry asks for it anew
		}
		return res
	}
	if w.waits && e.Waits < 2 {
		if res.Wait = w.wait(dice); res.Wait != nil {
			res.SubRuns = nil // a retry calls a node again that waited, which would repeat them
			return res
		}
	}
	if len(tools) > 0 && job.Slice < 3+e.Waits && dice(4, "asks") > 0 {
		res.Request = &engine.Request{Metadata: json.RawMessage(fmt.Sprintf(`{"slice":%d}`, job.Slice))}
		for i := range 1 + dice(3, "calls") {
			about := fmt.Sprint("call", i)
			a := engine.Action{
				NodeName: tools[dice(len(tools), about)], ID: fmt.Sprintf("%d-%d", job.Slice, i),
				Input: json.RawMessage(fmt.Sprintf(`{"arg":%d}`, dice(10, about))),
			}
			a.Metadata.ItemIndex = dice(2, about+"item")
			if dice(8, about+"bad") == 0 {
				a.Error = &engine.NodeError{Message: "bad arguments", Reason: engine.ReasonBadArguments}
			}
			res.Request.Actions = append(res.Request.Actions, a)
		}
		return res
	}
	if dice(10, "null") == 0 {
		return res
	}
	for o := range max(1, w.outputs[e.Node]) {
		items := workflow.Items{}
		for i := range dice(3, fmt.Sprint("items", o)) {
			about := fmt.Sprint("item", o, i)
			text := fmt.Sprintf(`{"v":%d}`, dice(1000, about))
			if dice(10, about+"error") == 0 {
				text = `{"error":"soft"}`
			}
			items = append(items, workflow.Item{JSON: json.RawMessage(text)})
		}
		res.Outputs = append(res.Outputs, items)
	}
	return res
}

// events lists what can happen next: an answer of each job, each retry that
// is due; with rough also timeouts, lost workers and cancel.
func (w *world) events(x *execution, rough bool) []engine.Event {
	var list []engine.Event
	var ids []string
	for id := range x.state.Jobs {
		ids = append(ids, string(id))
	}
	sort.Slice(ids, func(i, j int) bool {
		if len(ids[i]) != len(ids[j]) {
			return len(ids[i]) < len(ids[j])
		}
		return ids[i] < ids[j]
	})
	for _, id := range ids {
		job := x.state.Jobs[engine.JobID(id)]
		if job.RetryAt != 0 {
			list = append(list, engine.TimerFired{At: x.now, Timer: "retry:" + id})
			continue
		}
		list = append(list, engine.NodeFinished{At: x.now, Job: job.ID, Result: w.run(x.state, job)})
		if rough && job.Deadline != 0 {
			list = append(list, engine.TimerFired{At: x.now, Timer: "timeout:" + id})
		}
		if rough && w.dice(4, id, "lost") == 0 {
			list = append(list, engine.WorkerLost{At: x.now, Job: job.ID})
		}
	}
	return list
}

func (w *world) begin(t *rapid.T) *execution {
	x := newExecution(w.workflow)
	step(t, x, engine.Started{At: x.now, Input: workflow.Items{{JSON: json.RawMessage(`{"i":0}`)}, {JSON: json.RawMessage(`{"i":1}`)}}})
	return x
}

func step(t *rapid.T, x *execution, ev engine.Event) engine.Step {
	s, err := x.apply(ev)
	if err != nil {
		t.Fatalf("%#v: %v", ev, err)
	}
	return s
}

// plain runs the world with the oldest job answered first.
func (w *world) plain(t *rapid.T) *execution {
	x := w.begin(t)
	for n := 0; x.state.Meta.Status == engine.StatusRunning; n++ {
		if n > maxSteps {
			t.Fatal("the execution does not end")
		}
		x.now++
		step(t, x, w.events(x, false)[0])
	}
	return x
}

// explore runs an execution to its end, in an order that is drawn, with repeated and
// late events, and a save and restore between any two steps.
func (w *world) explore(t *rapid.T, x *execution) {
	var past []engine.Event
	for n := 0; !x.state.Meta.Status.Finished(); n++ {
		if n > maxSteps {
			t.Fatal("the execution does not end")
		}
		x.now++
		events := append(w.events(x, false), w.waitEvents(x)...)
		if len(events) == 0 {
			t.Fatalf("the execution is %s and nothing can happen", x.state.Meta.Status)
		}
		ev := events[rapid.IntRange(0, len(events)-1).Draw(t, "event")]
		if s := step(t, x, ev); s.Ignored {
			t.Fatalf("%#v was ignored", ev)
		}
		past = append(past, ev)
		if rapid.IntRange(0, 3).Draw(t, "again") == 0 {
			late := past[rapid.IntRange(0, len(past)-1).Draw(t, "late")]
			if s := step(t, x, late); !s.Ignored {
				t.Fatalf("the late %#v was not ignored", late)
			}
		}
		if rapid.IntRange(0, 2).Draw(t, "restore") == 0 {
			if err := x.restore(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestAnyOrderGivesTheSameRun: results in any order, repeated and late ones,
// and a save and restore between any two steps change nothing about a run.
func TestAnyOrderGivesTheSameRun(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t, false)
		want := canonical(w.plain(t).state)

		x := w.begin(t)
		w.explore(t, x)
		if got := canonical(x.state); got != want {
			t.Fatalf("the run differs\ngot:\n%s\nwant:\n%s", got, want)
		}
		noneOpen(t, x)
	})
}

// TestEveryExecutionEnds: whatever fails, times out, is lost or is cancelled,
// in any order: the invariants hold after every step (see execution.apply),
// the execution ends, and late events change nothing.
func TestEveryExecutionEnds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t, true)
		x := w.begin(t)
		var past []engine.Event
		for n := 0; x.state.Meta.Status == engine.StatusRunning; n++ {
			if n > maxSteps {
				t.Fatal("the execution does not end")
			}
			x.now++
			events := w.events(x, true)
			ev := events[rapid.IntRange(0, len(events)-1).Draw(t, "event")]
			switch rapid.IntRange(0, 150).Draw(t, "end") {
			case 150:
				ev = engine.CancelRequested{At: x.now}
			case 149:
				ev = engine.TimerFired{At: x.now, Timer: "execution"}
			}
			if s := step(t, x, ev); s.Done != x.state.Meta.Status.Finished() {
				t.Fatalf("Done is %v and the status %s", s.Done, x.state.Meta.Status)
			}
			past = append(past, ev)
			if rapid.IntRange(0, 3).Draw(t, "restore") == 0 {
				if err := x.restore(); err != nil {
					t.Fatal(err)
				}
			}
		}
		for _, ev := range past {
			if s := step(t, x, ev); !s.Ignored {
				t.Fatalf("%#v after the end was not ignored", ev)
			}
		}
		noneOpen(t, x)
	})
}

// TestSameEventsSameBytes: replaying events gives the same steps.
func TestSameEventsSameBytes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t, true)
		a, b := w.begin(t), w.begin(t)
		for n := 0; a.state.Meta.Status == engine.StatusRunning && n < 100; n++ {
			a.now++
			events := w.events(a, true)
			ev := events[rapid.IntRange(0, len(events)-1).Draw(t, "event")]
			if x, y := asJSON(step(t, a, ev)), asJSON(step(t, b, ev)); x != y {
				t.Fatalf("steps differ:\n%s\n%s", x, y)
			}
		}
	})
}

func noneOpen(t *rapid.T, x *execution) {
	if x.state.Meta.Status == engine.StatusError {
		return // its stack shows where it broke off
	}
	if n := len(x.stored[engine.TableOpen]) + len(x.stored[engine.TableStack]); n > 0 {
		t.Fatalf("%d keys are left open:\n%s", n, dumpTables(x.stored))
	}
}

// canonical is the run with runs named by what they were made for instead of
// by their index, which depends on the order in which parallel agents asked.
func canonical(s *engine.State) string {
	data := s.RunExecutionData().Data.ResultData.RunData
	var name func(ref engine.RunRef) string
	name = func(ref engine.RunRef) string {
		r := data[ref.Node][ref.Run]
		if r.Metadata == nil || len(r.Source) == 0 || r.Source[0] == nil {
			return fmt.Sprintf("%s#%d", ref.Node, ref.Run)
		}
		user := engine.RunRef{Node: r.Source[0].PreviousNode, Run: r.Source[0].PreviousNodeRun}
		if r.Metadata.Round != nil {
			return fmt.Sprintf("%s/%d.%s=%s", name(user), *r.Metadata.Round, r.Metadata.CallID, ref.Node)
		}
		for _, sub := range r.Metadata.SubRun {
			if sub.Node == ref.Node && sub.RunIndex == ref.Run {
				owner := data[user.Node]
				if user.Run < len(owner) && owner[user.Run].Metadata != nil {
					for i, other := range owner[user.Run].Metadata.SubRun {
						if other == sub {
							return fmt.Sprintf("%s/sub%d=%s", name(user), i, ref.Node)
						}
					}
				}
				return fmt.Sprintf("orphan %s", ref.Node)
			}
		}
		return fmt.Sprintf("%s#%d", ref.Node, ref.Run)
	}
	var lines []string
	for node, runs := range data {
		for i, r := range runs {
			ref := engine.RunRef{Node: node, Run: i}
			var attempts, rounds int
			if attempts = r.Attempts; r.Metadata != nil {
				rounds = r.Metadata.Rounds
			}
			lines = append(lines, fmt.Sprintf("%04d %s %s %s %s error=%s attempts=%d rounds=%d", r.ExecutionIndex,
				name(ref), r.Status, asJSON(r.Data), asJSON(r.InputOverride), asJSON(r.Error), attempts, rounds))
		}
	}
	sort.Strings(lines)
	return fmt.Sprintf("%s %s\n%s", s.Meta.Status, asJSON(s.Meta.Error), strings.Join(lines, "\n"))
}
