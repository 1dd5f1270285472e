package engine_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"sort"
	"strings"

	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/node"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// Expressions and node code read run data through this interface.
var _ node.RunData = (*engine.State)(nil)

// execution drives a machine and verifies after every event what must always
// hold.
type execution struct {
	machine *engine.Machine
	state   *engine.State
	stored  engine.Tables
	now     int64
	events  int
}

func newExecution(w *workflow.Workflow) *execution {
	return newExecutionInMode(w, "manual")
}

func newExecutionInMode(w *workflow.Workflow, mode string) *execution {
	return &execution{
		machine: engine.New(w, catalog{}),
		state:   engine.NewState(engine.Meta{ID: "x", WorkflowHash: w.Hash, Mode: mode}),
		stored:  engine.Tables{},
		now:     1000,
	}
}

// apply applies an event and then checks the invariants, that the changes add
// up to the state, and that the stored form gives the same state.
//
// In long executions most steps are not looked at: each look costs as much as
// the whole run so far.
func (x *execution) apply(ev engine.Event) (engine.Step, error) {
	x.events++
	if x.events > 25 && x.events%11 != 0 {
		step, err := x.machine.Apply(x.state, ev)
		x.stored.Add(step.Changes)
		return step, err
	}
	before := x.dump()
	step, err := x.machine.Apply(x.state, ev)
	if err != nil || step.Ignored {
		if after := x.dump(); after != before {
			return step, fmt.Errorf("an event without effect changed the state\nbefore:\n%s\nafter:\n%s", before, after)
		}
		return step, err
	}
	x.stored.Add(step.Changes)
	if err := x.machine.Check(x.state); err != nil {
		return step, fmt.Errorf("broken invariant: %w", err)
	}
	if stored, full := dumpTables(x.stored), x.dump(); stored != full {
		return step, fmt.Errorf("changes do not add up to the state\nchanges:\n%s\nstate:\n%s", stored, full)
	}
	restored, err := engine.Restore(x.stored)
	if err != nil {
		return step, fmt.Errorf("restore: %w", err)
	}
	if err := x.machine.Check(restored); err != nil {
		return step, fmt.Errorf("broken invariant after restore: %w", err)
	}
	return step, x.same(restored)
}

// same compares a restored state with the one in memory: what is stored, and
// what is derived.
func (x *execution) same(restored *engine.State) error {
	if a, b := mustTables(restored), x.dump(); a != b {
		return fmt.Errorf("restored state differs\nrestored:\n%s\nstate:\n%s", a, b)
	}
	for id, job := range x.state.Jobs {
		a, b := asJSON(restored.Inputs(&job.Entry)), asJSON(x.state.Inputs(&job.Entry))
		if a != b {
			return fmt.Errorf("inputs of job %s differ after restore: %s, were %s", id, a, b)
		}
		a, b = asJSON(restored.Answers(job.Entry.RunRef())), asJSON(x.state.Answers(job.Entry.RunRef()))
		if a != b {
			return fmt.Errorf("answers of job %s differ after restore: %s, were %s", id, a, b)
		}
	}
	for node, runs := range x.state.Run {
		if len(restored.Run[node]) != len(runs) {
			return fmt.Errorf("%s has %d runs after restore, had %d", node, len(restored.Run[node]), len(runs))
		}
	}
	if len(restored.Run) != len(x.state.Run) {
		return errors.New("nodes with runs differ after restore")
	}
	return nil
}

// restore continues from the stored form.
func (x *execution) restore() error {
	s, err := engine.Restore(x.stored)
	if err == nil {
		x.state = s
	}
	return err
}

func (x *execution) dump() string { return mustTables(x.state) }

func mustTables(s *engine.State) string {
	t, err := s.Tables()
	if err != nil {
		panic(err)
	}
	return dumpTables(t)
}

func dumpTables(t engine.Tables) string {
	var lines []string
	for table, fields := range t {
		for name, value := range fields {
			lines = append(lines, fmt.Sprintf("%s %s = %s", table, name, value))
		}
	}
	sort.Strings(lines)
	return strings.Join(lines, "\n")
}

// job finds the job in flight of a node; with several, that of the lowest run.
func (x *execution) job(name string, run int) (engine.JobID, error) {
	var found *engine.OpenJob
	for _, j := range x.state.Jobs {
		if j.Entry.Node == name && j.RetryAt == 0 && (run < 0 || run == j.Entry.Run) && (found == nil || j.Entry.Run < found.Entry.Run) {
			found = j
		}
	}
	if found == nil {
		return "", fmt.Errorf("no job of %s is in flight", name)
	}
	return found.ID, nil
}

func asJSON(v any) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return err.Error()
	}
	return strings.TrimSpace(b.String())
}

// showItems is items in short: {"a":1}<0 is an item made from item 0,
// <0/1 from item 0 of input 1, <0@A#2/1 from item 0 of output 1 of run 2 of A.
func showItems(items workflow.Items) string {
	if items == nil {
		return "null"
	}
	var list []string
	for _, item := range items {
		text := string(item.JSON)
		if len(item.Error) > 0 {
			text += "!" + string(item.Error)
		}
		if item.PairedItem != nil {
			var from []string
			for _, p := range item.PairedItem {
				f := fmt.Sprint(p.Item)
				if p.Input != 0 {
					f += fmt.Sprintf("/%d", p.Input)
				}
				if p.SourceOverwrite != nil {
					f += "@" + showSource(p.SourceOverwrite)
				}
				from = append(from, f)
			}
			text += "<" + strings.Join(from, ",")
		}
		list = append(list, text)
	}
	return "[" + strings.Join(list, " ") + "]"
}

func showOutputs(outputs []workflow.Items) string {
	var list []string
	for _, items := range outputs {
		list = append(list, showItems(items))
	}
	return strings.Join(list, " ")
}

func showSource(s *workflow.Source) string {
	if s == nil {
		return "-"
	}
	text := fmt.Sprintf("%s#%d", s.PreviousNode, s.PreviousNodeRun)
	if s.PreviousNodeOutput != 0 {
		text += fmt.Sprintf("/%d", s.PreviousNodeOutput)
	}
	return text
}

func showSources(sources []*workflow.Source) string {
	var list []string
	for _, s := range sources {
		list = append(list, showSource(s))
	}
	return "[" + strings.Join(list, " ") + "]"
}

// showRun prints the exported run, a record a line in execution order.
func showRun(s *engine.State) string {
	type line struct {
		index int
		text  string
	}
	var lines []line
	for name, runs := range s.RunExecutionData().Data.ResultData.RunData {
		for i, r := range runs {
			text := fmt.Sprintf("%d %s#%d %s from %s", r.ExecutionIndex, name, i, r.Status, showSources(r.Source))
			for _, kind := range sortedKinds(r.InputOverride) {
				text += fmt.Sprintf(" asked %s: %s", kind, showOutputs(r.InputOverride[kind]))
			}
			for _, kind := range sortedKinds(r.Data) {
				text += fmt.Sprintf(" %s: %s", kind, showOutputs(r.Data[kind]))
			}
			if r.Error != nil {
				text += fmt.Sprintf(" error: %q", r.Error.Message)
				if r.Error.Reason != "" {
					text += fmt.Sprintf(" (%s)", r.Error.Reason)
				}
			}
			if r.Attempts > 0 {
				text += fmt.Sprintf(" attempts: %d", r.Attempts)
			}
			if m := r.Metadata; m != nil {
				if m.Rounds > 0 {
					text += fmt.Sprintf(" rounds: %d", m.Rounds)
				}
				for _, sub := range m.SubRun {
					text += fmt.Sprintf(" used %s#%d", sub.Node, sub.RunIndex)
				}
			}
			if len(r.Logs) > 0 {
				text += fmt.Sprintf(" logs: %q", r.Logs)
			}
			lines = append(lines, line{r.ExecutionIndex, text})
		}
	}
	sort.Slice(lines, func(i, j int) bool { return lines[i].index < lines[j].index })
	var b strings.Builder
	for _, l := range lines {
		b.WriteString(l.text + "\n")
	}
	return b.String()
}

func sortedKinds(m map[string][]workflow.Items) []string {
	var list []string
	for k := range m {
		list = append(list, k)
	}
	sort.Strings(list)
	return list
}
