package engine_test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// TestTraces runs the text files of testdata. Each prints the steps of
// executions; see the verbs below. Lines with # tell what is shown and which
// statement of the specification it holds to: R1-R19 are the requirements of
// engine requests, N and I with a number the conformance list (as n8n, or
// better on purpose).
func TestTraces(t *testing.T) {
	paths, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no traces found: %v", err)
	}
	for _, path := range paths {
		var x *execution
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			if d.Cmd == "load" {
				// load [mode=manual]: a workflow in the syntax of sketch.
				w, err := sketch(d.Input)
				if err != nil {
					return "error: " + err.Error() + "\n"
				}
				mode := "manual"
				d.MaybeScanArgs(t, "mode", &mode)
				x = newExecutionInMode(w, mode)
				return "ok\n"
			}
			if x == nil {
				return "error: nothing is loaded\n"
			}
			return x.command(t, d)
		})
	}
}

func (x *execution) command(t *testing.T, d *datadriven.TestData) string {
	x.now += 10
	d.MaybeScanArgs(t, "at", &x.now)
	target := ""
	if len(d.CmdArgs) > 0 && len(d.CmdArgs[0].Vals) == 0 {
		target = d.CmdArgs[0].Key
	}
	switch d.Cmd {
	case "start":
		// start [NODE] [to=NODE [exclusive]]: the input's first line is the trigger's items.
		if target == "exclusive" {
			target = ""
		}
		ev := engine.Started{At: x.now, Start: spaced(target), Destination: destination(t, d)}
		if d.Input != "" {
			if err := json.Unmarshal([]byte(d.Input), (*plainItems)(&ev.Input)); err != nil {
				return "error: " + err.Error() + "\n"
			}
		}
		return x.print(ev)
	case "finish", "fail":
		// finish NODE[:run] or finish job=ID: the result is in the input, see parseResult.
		// fail NODE[:run] with the error's text in the input; final makes it not retryable.
		id, err := x.target(t, d, target)
		if err != nil {
			return "error: " + err.Error() + "\n"
		}
		if d.Cmd == "fail" {
			return x.print(engine.NodeFinished{At: x.now, Job: id, Result: engine.Result{
				Error: &engine.NodeError{Message: d.Input, NotRetryable: d.HasArg("final")},
			}})
		}
		res, err := parseResult(d.Input)
		if err != nil {
			return "error: " + err.Error() + "\n"
		}
		return x.print(engine.NodeFinished{At: x.now, Job: id, Result: res})
	case "lost":
		// lost NODE[:run]: its worker vanished.
		id, err := x.target(t, d, target)
		if err != nil {
			return "error: " + err.Error() + "\n"
		}
		return x.print(engine.WorkerLost{At: x.now, Job: id})
	case "hold":
		// hold NODE[:run] for=MS: no worker can have its job before that.
		id, err := x.target(t, d, target)
		if err != nil {
			return "error: " + err.Error() + "\n"
		}
		var ms int64
		d.ScanArgs(t, "for", &ms)
		return x.print(engine.Held{At: x.now, Job: id, Until: x.now + ms})
	case "fire":
		// fire TIMER: the clock stands at the timer's time when it is set.
		if due := x.state.Timers[target]; due > x.now {
			x.now = due
		}
		return x.print(engine.TimerFired{At: x.now, Timer: target})
	case "resume", "approve", "deny", "child":
		// resume NODE[:run]: its webhook is called, the input is the JSON it brought.
		// approve NODE[:run], deny NODE[:run]: its question is decided, the input is the feedback.
		// child NODE[:run] INDEX: a child ended with the items of the input, or with an error: fail TEXT.
		// With token=TOKEN in place of NODE the wait may be over.
		token, err := x.waitOf(t, d, target)
		if err != nil {
			return "error: " + err.Error() + "\n"
		}
		ev, err := x.waitEvent(d, token)
		if err != nil {
			return "error: " + err.Error() + "\n"
		}
		return x.print(ev)
	case "enqueue":
		// enqueue: the execution is stored and waits for its turn; admit: it begins.
		return x.print(engine.Enqueued{At: x.now, Begin: engine.Started{At: x.now, Start: spaced(target)}})
	case "admit":
		return x.print(engine.Admitted{At: x.now})
	case "reuse":
		// reuse to=NODE [exclusive] [without=NODE]…: a new execution, p, runs up to a node with the run data so far.
		data := x.state.RunExecutionData().Data.ResultData.RunData
		for _, arg := range d.CmdArgs {
			if arg.Key == "without" {
				for _, name := range arg.Vals {
					delete(data, spaced(name))
				}
			}
		}
		to := destination(t, d)
		partial, err := x.machine.PlanPartial(*to, data)
		if err != nil {
			return "error: " + err.Error() + "\n"
		}
		now := x.now
		*x = *newExecutionInMode(x.machine.Workflow(), x.state.Meta.Mode)
		x.now, x.state.Meta.ID = now, "p"
		return x.print(engine.Started{At: x.now, Destination: to, Partial: partial})
	case "retry":
		// retry: a new execution, y, goes on where this one failed.
		failed := x.state
		*x = *newExecutionInMode(x.machine.Workflow(), failed.Meta.Mode)
		x.now = failed.Meta.StoppedAt + 1000
		x.state.Meta.ID, x.state.Meta.RetryOf = "y", failed.Meta.ID
		return x.print(engine.Retried{At: x.now, From: failed})
	case "cancel":
		return x.print(engine.CancelRequested{At: x.now, Reason: d.Input})
	case "save-and-restore":
		if err := x.restore(); err != nil {
			return "error: " + err.Error() + "\n"
		}
		return "ok\n"
	case "run-data":
		// run-data: status, error, last node and all records.
		text := fmt.Sprintf("%s, last node %s", x.state.Meta.Status, x.state.Meta.LastNode)
		if e := x.state.Meta.Error; e != nil {
			text += fmt.Sprintf(", error %q", e.Message)
		}
		return text + "\n" + showRun(x.state)
	case "stack":
		// stack: the stack, top first, and what waits for inputs.
		return x.showStack()
	case "answers":
		// answers NODE: the rounds that its job receives.
		id, err := x.target(t, d, target)
		if err != nil {
			return "error: " + err.Error() + "\n"
		}
		return x.showAnswers(x.state.Jobs[id].Entry.RunRef())
	}
	return "error: unknown verb " + d.Cmd + "\n"
}

func destination(t *testing.T, d *datadriven.TestData) *engine.Destination {
	var name string
	if d.MaybeScanArgs(t, "to", &name); name == "" {
		return nil
	}
	return &engine.Destination{Node: spaced(name), Exclusive: d.HasArg("exclusive")}
}

func (x *execution) target(t *testing.T, d *datadriven.TestData, target string) (engine.JobID, error) {
	if d.HasArg("job") {
		var id string
		d.ScanArgs(t, "job", &id)
		return engine.JobID(id), nil
	}
	name, run := spaced(target), -1
	if n, r, ok := strings.Cut(target, ":"); ok {
		name = spaced(n)
		var err error
		if run, err = strconv.Atoi(r); err != nil {
			return "", err
		}
	}
	return x.job(name, run)
}

// print applies an event and tells its step.
func (x *execution) print(ev engine.Event) string {
	step, err := x.apply(ev)
	if err != nil {
		return "error: " + err.Error() + "\n"
	}
	if step.Ignored {
		return "ignored\n"
	}
	width := 0
	for _, n := range x.machine.Workflow().Nodes {
		width = max(width, len(n.Name))
	}
	var b strings.Builder
	for _, l := range step.Live {
		if line := engine.FormatTrace(l, width); line != "" {
			b.WriteString(line + "\n")
		} else {
			fmt.Fprintf(&b, "%s %s\n", l.Kind, l.Status)
		}
	}
	for _, id := range step.Dropped {
		fmt.Fprintf(&b, "drop %s\n", id)
	}
	for _, j := range step.Jobs {
		text := fmt.Sprintf("job %s: %s#%d", j.ID, j.Entry.Node, j.Entry.Run)
		if j.Slice > 0 {
			text += fmt.Sprintf(" slice %d", j.Slice)
		}
		if r := x.state.Resumption(&j.Entry); r != nil {
			text += " resumed by " + showResumption(r)
		}
		if j.Attempt > 1 {
			text += fmt.Sprintf(" attempt %d of %s", j.Attempt, j.IdempotencyKey)
		} else if j.IdempotencyKey != string(j.ID) {
			text += " key " + j.IdempotencyKey
		}
		fmt.Fprintf(&b, "%s in: %s\n", text, showOutputs(x.state.Inputs(&j.Entry)))
	}
	for _, c := range step.Children {
		fmt.Fprintf(&b, "child %d of %s: %s in: %s\n", c.Index, c.Token, c.WorkflowID, showOutputs([]workflow.Items{c.Input}))
	}
	for range step.Orphans {
		b.WriteString("cancel a child\n")
	}
	for _, q := range step.Questions {
		if q.At == 0 {
			fmt.Fprintf(&b, "question %s is over\n", q.ID)
		} else {
			fmt.Fprintf(&b, "question %s\n", q.ID)
		}
	}
	for _, timer := range step.Timers {
		if timer.At == 0 {
			fmt.Fprintf(&b, "clear %s\n", timer.ID)
		} else {
			fmt.Fprintf(&b, "timer %s in %d ms\n", timer.ID, timer.At-x.now)
		}
	}
	if step.Done {
		text := fmt.Sprintf("done: %s", x.state.Meta.Status)
		if e := x.state.Meta.Error; e != nil {
			text += fmt.Sprintf(" %q", e.Message)
		}
		b.WriteString(text + "\n")
	}
	return b.String()
}

func (x *execution) showStack() string {
	var b strings.Builder
	for i := len(x.state.Stack) - 1; i >= 0; i-- {
		e := x.state.Stack[i]
		kind := string(e.Kind)
		if kind == "" {
			kind = "main"
		}
		fmt.Fprintf(&b, "%s %s run %d from %s\n", kind, e.Node, e.Run, showSources(e.Source))
	}
	for _, n := range x.machine.Workflow().Nodes {
		for _, j := range x.state.Joins[n.Name] {
			entry := engine.Entry{Inputs: j.Inputs}
			fmt.Fprintf(&b, "waits %s %s from %s\n", n.Name, showOutputs(x.state.Inputs(&entry)), showSources(j.Source))
		}
	}
	for _, p := range x.state.ParkedInOrder() {
		fmt.Fprintf(&b, "parked %s run %d %s %s\n", p.Entry.Node, p.Entry.Run, p.Wait.Kind, p.Token)
	}
	if b.Len() == 0 {
		return "empty\n"
	}
	return b.String()
}

func (x *execution) showAnswers(caller engine.RunRef) string {
	var b strings.Builder
	for i, round := range x.state.Answers(caller) {
		fmt.Fprintf(&b, "round %d %s\n", i, round.Metadata)
		for _, r := range round.Results {
			fmt.Fprintf(&b, "  %s %s#%d %s %s: %s", r.Action.ID, r.Action.NodeName, r.RunIndex, r.Action.Input, r.Record.Status, showOutputs(r.Record.Data[workflow.Tool]))
			if r.Action.Metadata.ItemIndex != 0 || r.Action.Metadata.Extra != nil {
				fmt.Fprintf(&b, " item %d %s", r.Action.Metadata.ItemIndex, r.Action.Metadata.Extra)
			}
			b.WriteString("\n")
		}
	}
	if b.Len() == 0 {
		return "none\n"
	}
	return b.String()
}

// plainItems reads a list of items; an object without "json" is the json of
// an item.
type plainItems workflow.Items

func (p *plainItems) UnmarshalJSON(data []byte) error {
	var list []json.RawMessage
	if err := json.Unmarshal(data, &list); err != nil {
		return err
	}
	*p = plainItems{}
	for _, raw := range list {
		var item workflow.Item
		if err := json.Unmarshal(raw, &item); err != nil {
			return err
		}
		if item.JSON == nil {
			item = workflow.Item{JSON: raw}
		}
		*p = append(*p, item)
	}
	return nil
}

// parseResult reads what a slice of a node's run produced, one thing a line:
//
//	[…]                             items of the next output; null for no data
//	nothing                         the null output
//	ask ID NODE {arguments} [item=N] [extra=JSON] [error=TEXT]
//	      [approval=GATE:run]
//	metadata JSON                   of the request
//	wait time MS                    until the clock says so
//	wait webhook [until=MS] [suffix=S]
//	wait approval TOOL {arguments} [until=MS]
//	wait children N [sequential] [stop] [detached]
//	empty-request
//	uses NODE [TEXT]                a model call, TEXT is its error
//	context JSON | log TEXT | record-error TEXT
func parseResult(text string) (engine.Result, error) {
	var res engine.Result
	for _, line := range strings.Split(strings.TrimSpace(text), "\n") {
		word, rest, _ := strings.Cut(line, " ")
		switch {
		case word == "null":
			res.Outputs = append(res.Outputs, nil)
		case strings.HasPrefix(word, "["):
			var items plainItems
			if err := json.Unmarshal([]byte(line), &items); err != nil {
				return res, err
			}
			res.Outputs = append(res.Outputs, workflow.Items(items))
		case word == "nothing":
		case word == "wait":
			w, err := parseWait(rest)
			if err != nil {
				return res, err
			}
			res.Wait = w
		case word == "empty-request":
			res.Request = &engine.Request{}
		case word == "ask":
			if res.Request == nil {
				res.Request = &engine.Request{}
			}
			a, err := parseAction(rest)
			if err != nil {
				return res, err
			}
			res.Request.Actions = append(res.Request.Actions, a)
		case word == "metadata":
			if res.Request == nil {
				res.Request = &engine.Request{}
			}
			res.Request.Metadata = json.RawMessage(rest)
		case word == "uses":
			name, failure, _ := strings.Cut(rest, " ")
			sub := engine.SubRun{Node: spaced(name), Type: workflow.LanguageModel, StartTime: 1, Duration: 1}
			sub.Input = []workflow.Items{{{JSON: json.RawMessage(`{"messages":[]}`)}}}
			if failure != "" {
				sub.Error = &engine.NodeError{Message: failure}
			} else {
				sub.Output = []workflow.Items{{{JSON: json.RawMessage(`{"text":""}`)}}}
			}
			res.SubRuns = append(res.SubRuns, sub)
		case word == "context":
			res.Context = json.RawMessage(rest)
		case word == "log":
			res.Logs = append(res.Logs, rest)
		case word == "record-error":
			res.RecordError = &engine.NodeError{Message: rest}
		default:
			return res, fmt.Errorf("result line %q is not understood", line)
		}
	}
	return res, nil
}

func parseAction(text string) (engine.Action, error) {
	fields := strings.Fields(text)
	if len(fields) < 3 {
		return engine.Action{}, fmt.Errorf("ask needs an id, a node and arguments: %q", text)
	}
	a := engine.Action{ActionType: "ExecutionNodeAction", Type: workflow.Tool, ID: fields[0], NodeName: spaced(fields[1]), Input: json.RawMessage(fields[2])}
	for _, option := range fields[3:] {
		key, value, _ := strings.Cut(option, "=")
		switch key {
		case "item":
			n, err := strconv.Atoi(value)
			if err != nil {
				return a, err
			}
			a.Metadata.ItemIndex = n
		case "approval":
			gate, run, _ := strings.Cut(value, ":")
			n, err := strconv.Atoi(run)
			if err != nil {
				return a, err
			}
			a.Metadata.Approval = &engine.RunRef{Node: spaced(gate), Run: n}
		case "extra":
			a.Metadata.Extra = json.RawMessage(value)
		case "error":
			a.Error = &engine.NodeError{Message: spaced(value), Reason: engine.ReasonBadArguments}
		default:
			return a, fmt.Errorf("unknown option %q", option)
		}
	}
	return a, nil
}
