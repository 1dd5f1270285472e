package ai

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/node"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// scene runs workflows with agents on the real engine, in one process, one job
// after the other, and writes down what happens. Models are played from scripts
// (see modelScript); decisions, deadlines, cancels and restarts come from the test.
// What passes between slices passes through JSON and the engine's stored form.
type scene struct {
	t        testing.TB
	workflow *workflow.Workflow
	registry *node.Registry
	machine  *engine.Machine
	state    *engine.State
	stored   engine.Tables
	now      int64
	runs     int // executions so far

	models *modelScripts
	ledger *ledger
	memory map[string][]json.RawMessage
	// log is what happened, a line each.
	log strings.Builder
	// until is the node before whose run work stops; "" is none.
	until string
	// told are the notices, "nodeExecuteBefore Agent#0".
	told []string
}

func newScene(t testing.TB, text string) *scene {
	t.Helper()
	w, err := workflow.Parse(sketch(text))
	require.NoError(t, err)
	s := &scene{t: t, workflow: w, now: 1000, memory: map[string][]json.RawMessage{}, ledger: &ledger{calls: map[string]int{}}}
	s.registry = sketchTypes(s.ledger)
	s.machine = engine.New(w, s.registry)
	s.models = serveScripts(t, &s.log)
	return s
}

// start begins an execution with the items as the trigger's output and goes on until
// nothing can run. Memories are kept from one execution to the next.
func (s *scene) start(items ...string) {
	s.t.Helper()
	s.runs++
	clear(s.models.seen)
	s.state = engine.NewState(engine.Meta{ID: engine.ExecutionID(fmt.Sprintf("x%d", s.runs)), WorkflowHash: s.workflow.Hash, Mode: "manual"})
	s.stored = engine.Tables{}
	input := workflow.Items{}
	for _, one := range items {
		input = append(input, workflow.Item{JSON: json.RawMessage(one)})
	}
	s.apply(engine.Started{At: s.now, Input: input})
	s.work()
}

// apply hands an event to the engine and holds the state to its invariants.
func (s *scene) apply(ev engine.Event) engine.Step {
	s.t.Helper()
	step, err := s.machine.Apply(s.state, ev)
	require.NoError(s.t, err)
	if step.Ignored {
		s.logf("ignored\n")
		return step
	}
	s.stored.Add(step.Changes)
	require.NoError(s.t, s.machine.Check(s.state))
	for _, l := range step.Live {
		s.told = append(s.told, fmt.Sprintf("%s %s#%d", l.Kind, l.Node, l.Run))
	}
	for _, q := range step.Questions {
		if p := s.state.Parked[q.ID]; q.At != 0 && p != nil {
			s.logf("question %s %s: %s %s\n", s.token(q.ID), run(p.Entry.RunRef()), p.Wait.Question.ToolName, p.Wait.Question.Arguments)
		}
	}
	if step.Done {
		s.logf("%s%s\n", s.state.Meta.Status, failure(s.state.Meta.Error))
	}
	return step
}

func (s *scene) logf(format string, args ...any) { fmt.Fprintf(&s.log, format, args...) }

// token of a wait without its execution's id.
func (s *scene) token(token string) string {
	return strings.TrimPrefix(token, string(s.state.Meta.ID))
}

func run(ref engine.RunRef) string { return fmt.Sprintf("%s#%d", ref.Node, ref.Run) }

func failure(err *engine.NodeError) string {
	if err == nil {
		return ""
	}
	return fmt.Sprintf(" %q", err.Message)
}

// work runs jobs, and retries when they are due, until there are none.
func (s *scene) work() {
	s.t.Helper()
	for !s.state.Meta.Status.Finished() {
		next := s.nextJob()
		if next == nil || s.until != "" && next.Entry.Node == s.until {
			break
		}
		if next.RetryAt != 0 {
			s.now = max(s.now, next.RetryAt)
			s.apply(engine.TimerFired{At: s.now, Timer: "retry:" + string(next.ID)})
			continue
		}
		s.job(next)
	}
	if s.state.Meta.Status == engine.StatusWaiting {
		s.logf("waiting\n")
	}
}

// nextJob is the oldest job that may run, else the one whose retry is due first.
func (s *scene) nextJob() *engine.OpenJob {
	var found *engine.OpenJob
	number := func(j *engine.OpenJob) int { _, n, _ := engine.SplitToken(string(j.ID)); return n }
	for _, j := range s.state.Jobs {
		if found == nil || j.RetryAt < found.RetryAt || j.RetryAt == found.RetryAt && number(j) < number(found) {
			found = j
		}
	}
	return found
}

func (s *scene) job(job *engine.OpenJob) {
	s.t.Helper()
	s.now += 10
	call := s.call(&job.Job)
	result := &node.Result{}
	done, err := call.Type.Execute(context.Background(), call)
	var broken *engine.NodeError
	switch {
	case errors.As(err, &broken):
		result.Error = broken
	case err != nil:
		result.Error = &engine.NodeError{Message: err.Error()}
	default:
		result = done
	}
	s.note(&job.Job, call, result)
	taken := throughJSON(s.t, result.Result)
	if step := s.apply(engine.NodeFinished{At: s.now, Job: job.ID, Result: taken}); !step.Ignored {
		for _, m := range result.Memory {
			s.memory[m.Session] = append(s.memory[m.Session], m.Messages...)
		}
	}
}

// note writes down what a run of a tool gave. What agents do is seen in their
// models' requests, what gates do in their questions.
func (s *scene) note(job *engine.Job, call *node.Call, result *node.Result) {
	agent := strings.HasPrefix(call.Node.Type, family+"agent")
	switch {
	case result.Error != nil:
		s.logf("%s fails%s\n", run(job.Entry.RunRef()), failure(result.Error))
	case !agent && call.ToolArguments != nil && result.Wait == nil:
		s.logf("%s %s -> %s\n", run(job.Entry.RunRef()), plainJSON(call.ToolArguments), jsonOf(result.Outputs[0]))
	}
}

// call is what a worker would give to the node.
func (s *scene) call(job *engine.Job) *node.Call {
	e := &job.Entry
	base := node.Call{
		Execution: node.ExecutionInfo{ID: s.state.Meta.ID, Mode: s.state.Meta.Mode}, Workflow: node.WorkflowInfo{ID: "wf"},
		RunIndex: e.Run, Attempt: job.Attempt, IdempotencyKey: job.IdempotencyKey,
		Inputs: s.state.Inputs(e), Source: e.Source, RunData: s.state,
		Services: node.Services{
			Now: func() time.Time { return time.UnixMilli(s.now) }, HTTP: http.DefaultClient, Parameters: agentResolver{},
			Credentials: func(context.Context, string, workflow.CredentialRef) (map[string]any, error) {
				return map[string]any{"apiKey": "sk-secret", "url": s.models.URL + "/v1"}, nil
			},
			LoadMemory: func(_ context.Context, session string, n int) ([]json.RawMessage, error) {
				all := s.memory[session]
				return all[max(0, len(all)-n):], nil
			},
			RunScript: fakeScript,
		},
	}
	if a := s.state.Action(e); a != nil {
		base.ToolArguments, base.ToolCallID = a.Input, a.ID
	}
	call := s.node(&base, e.Node)
	call.Rounds = throughJSON(s.t, s.state.Answers(e.RunRef()))
	call.Resumption, call.Context = s.state.Resumption(e), s.state.Context[e.Node]
	return call
}

func (s *scene) node(base *node.Call, name string) *node.Call {
	call := *base
	call.Node = s.workflow.Node(name)
	require.NotNil(s.t, call.Node, name)
	typ, ok := s.registry.Find(call.Node.Type, call.Node.TypeVersion)
	require.True(s.t, ok, call.Node.Type)
	call.Type, call.SubNodes = typ, map[string][]*node.Call{}
	for _, kind := range []string{workflow.LanguageModel, workflow.Memory, workflow.Tool, workflow.OutputParser} {
		for _, sub := range s.workflow.SubNodes(name, kind) {
			call.SubNodes[kind] = append(call.SubNodes[kind], s.node(base, sub.Name))
		}
	}
	return &call
}

// decide answers the question of a gate's run ("Gate", "Gate#1") and goes on.
func (s *scene) decide(gate string, approved bool, feedback string) {
	s.t.Helper()
	s.decideToken(s.waits(gate).Token, approved, feedback)
}

func (s *scene) decideToken(token string, approved bool, feedback string) {
	s.t.Helper()
	s.now += 10
	s.apply(engine.Resumed{At: s.now, Token: token, Decision: &engine.Decision{Approved: approved, Feedback: feedback, At: s.now}})
	s.work()
}

// expire lets the deadline of a gate's question pass.
func (s *scene) expire(gate string) {
	s.t.Helper()
	p := s.waits(gate)
	require.NotZero(s.t, p.Wait.Until, "%s has no deadline", gate)
	s.now = p.Wait.Until
	s.apply(engine.TimerFired{At: s.now, Timer: "wait:" + p.Token})
	s.work()
}

// waits finds the parked run of a gate; without a number the oldest.
func (s *scene) waits(gate string) *engine.Parked {
	s.t.Helper()
	for _, p := range s.state.ParkedInOrder() {
		if p.Entry.Node == gate || run(p.Entry.RunRef()) == gate {
			return p
		}
	}
	require.Fail(s.t, "nothing waits", "%s\n%s", gate, s.log.String())
	return nil
}

func (s *scene) cancel() {
	s.t.Helper()
	s.now += 10
	s.apply(engine.CancelRequested{At: s.now})
}

// restart goes on from the stored form, as another coordinator would.
func (s *scene) restart() {
	s.t.Helper()
	restored, err := engine.Restore(s.stored)
	require.NoError(s.t, err)
	s.state = restored
}

// records lists the runs of the named nodes (all but models and memories when none is
// named) in the order they were begun, or of their run index where that says nothing.
func (s *scene) records(names ...string) string {
	if len(names) == 0 {
		for name, runs := range s.state.Run {
			if len(runs) > 0 && runs[0] != nil && runs[0].Data[workflow.LanguageModel] == nil && runs[0].Data[workflow.Memory] == nil {
				names = append(names, name)
			}
		}
	}
	type line struct {
		index int
		text  string
	}
	var lines []line
	for _, name := range names {
		for i, r := range s.state.Run[name] {
			if r != nil {
				lines = append(lines, line{r.ExecutionIndex, describeRecord(fmt.Sprintf("%s#%d", name, i), r)})
			}
		}
	}
	sort.SliceStable(lines, func(i, j int) bool { return lines[i].index < lines[j].index })
	var b strings.Builder
	for _, l := range lines {
		b.WriteString(l.text + "\n")
	}
	if b.Len() == 0 {
		return "none\n"
	}
	return b.String()
}

func describeRecord(name string, r *engine.Record) string {
	text := name + " " + string(r.Status)
	if m := r.Metadata; m != nil && m.Outcome != "" {
		text += " " + string(m.Outcome)
	}
	for _, source := range r.Source {
		if source != nil {
			text += fmt.Sprintf(" from %s#%d", source.PreviousNode, source.PreviousNodeRun)
			if source.PreviousNodeOutput > 0 {
				text += fmt.Sprintf("/%d", source.PreviousNodeOutput)
			}
		}
	}
	if asked := r.InputOverride[workflow.Tool]; asked != nil {
		text += " asked " + jsonOf(asked[0])
		for _, p := range asked[0][0].PairedItem {
			text += fmt.Sprintf(" for item %d", p.Item)
			if p.SourceOverwrite != nil {
				text += " of " + p.SourceOverwrite.PreviousNode
			}
		}
	}
	for _, kind := range []string{workflow.Main, workflow.Tool} {
		for i, output := range r.Data[kind] {
			if output == nil {
				continue
			}
			text += fmt.Sprintf(" %s", kind)
			if i > 0 {
				text += fmt.Sprintf("/%d", i)
			}
			text += " " + jsonOf(output)
			if kind == workflow.Main {
				for _, item := range output {
					for _, p := range item.PairedItem {
						text += fmt.Sprintf("<%d", p.Item)
					}
				}
			}
		}
	}
	return text + failure(r.Error)
}

// items are those of a finished agent, first output.
func (s *scene) items(agent string) []string {
	s.t.Helper()
	runs := s.state.Run[agent]
	require.NotEmpty(s.t, runs, s.log.String())
	var list []string
	for _, output := range runs[len(runs)-1].Data[workflow.Main] {
		for _, item := range output {
			list = append(list, string(item.JSON))
		}
	}
	return list
}

// stack lists the job in flight, the entries, top first, and the parked runs.
func (s *scene) stack() string {
	var list []string
	for i := len(s.state.Stack) - 1; i >= 0; i-- {
		list = append(list, s.state.Stack[i].Node)
	}
	text := ""
	if next := s.nextJob(); next != nil {
		text = "running " + run(next.Entry.RunRef()) + "\n"
	}
	text += "stack " + strings.Join(list, ", ")
	for _, p := range s.state.ParkedInOrder() {
		text += "\nparked " + run(p.Entry.RunRef())
	}
	return text + "\n"
}

// remembered prints a memory's session.
func (s *scene) remembered(session string) string {
	var b strings.Builder
	for _, raw := range s.memory["wf__"+session] {
		m := gjson.ParseBytes(raw)
		b.WriteString(m.Get("role").Str)
		if content := m.Get("content").Str; content != "" {
			b.WriteString(" " + content)
		}
		for _, c := range m.Get("toolCalls").Array() {
			b.WriteString(" calls " + c.Get("id").Str + " " + c.Get("name").Str + " " + c.Get("arguments").Str)
		}
		b.WriteString("\n")
	}
	if b.Len() == 0 {
		return "empty\n"
	}
	return b.String()
}
