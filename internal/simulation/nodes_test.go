package simulation

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/node"
	"github.com/reprise-engine/reprise/pkg/table"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// The node types of the simulation. Each is deterministic: it adds to the trail that
// its items carry what it did, so that the last item of an execution tells
// whether all ran that should have, in order. What they do to the world outside goes
// through process.effect.

// parameters of the simulation's nodes, all of them in one.
type parameters struct {
	// Work is how long the node takes, in milliseconds; Hang that it never ends by itself.
	Work int  `json:"work,omitempty"`
	Hang bool `json:"hang,omitempty"`
	// Fails is how many attempts fail; -1 is all.
	Fails int `json:"fails,omitempty"`
	// FailsFirst: it fails unless its execution is a retry.
	FailsFirst bool `json:"failsFirst,omitempty"`
	// Rounds of tools that an agent asks for, Session where it remembers.
	Rounds  [][]string `json:"rounds,omitempty"`
	Session string     `json:"session,omitempty"`
	// Wait in milliseconds: of a wait for a moment, and the deadline of a question, 0 for none.
	Wait int `json:"wait,omitempty"`
	// Children to start.
	Children *engine.Children `json:"children,omitempty"`
}

// trail is the JSON of the items.
type trail struct {
	Trail string `json:"trail"`
}

func item(text string) workflow.Items {
	data, _ := json.Marshal(trail{text}) // a string always encodes
	return workflow.Items{{JSON: data}}
}

func trailOf(items workflow.Items) string {
	if len(items) == 0 {
		return "?"
	}
	var t trail
	if json.Unmarshal(items[0].JSON, &t) != nil {
		return "?"
	}
	return t.Trail
}

func input(call *node.Call, i int) string {
	if i >= len(call.Inputs) {
		return "?"
	}
	return trailOf(call.Inputs[i])
}

func output(text string) (*node.Result, error) {
	return &node.Result{Result: engine.Result{Outputs: []workflow.Items{item(text)}}}, nil
}

func wait(w engine.Wait) (*node.Result, error) {
	return &node.Result{Result: engine.Result{Wait: &w}}, nil
}

// execute is the code of a node type of the simulation.
type execute func(ctx context.Context, call *node.Call, p parameters, did func(what string) error) (*node.Result, error)

// registry has the node types as one process runs them.
func registry(p *process) *node.Registry {
	one := []float64{1}
	r := &node.Registry{}
	code := func(f execute) func(context.Context, *node.Call) (*node.Result, error) {
		return func(ctx context.Context, call *node.Call) (*node.Result, error) {
			var params parameters
			if err := json.Unmarshal(call.Node.Parameters, &params); err != nil {
				return nil, err
			}
			did := func(what string) error {
				return p.effect(ctx, effect{
					execution: call.Execution.ID, node: call.Node.Name, run: call.RunIndex, attempt: call.Attempt,
					key: call.IdempotencyKey, what: what,
				})
			}
			if params.Work > 0 {
				if err := sleep(ctx, time.Duration(params.Work)*time.Millisecond); err != nil {
					return nil, err
				}
			}
			return f(ctx, call, params, did)
		}
	}
	spec := func(name string) workflow.Spec { return workflow.Spec{Type: name, Versions: one} }
	trigger := func(name string) *node.Type {
		s := spec(name)
		s.Trigger = true
		return &node.Type{Spec: s, Inline: true, Execute: code(runInline)}
	}
	tool := spec("sim.tool")
	tool.ToolNode = true
	agent := spec("sim.agent")
	agent.Accepts = []string{workflow.Tool}
	merge := spec("sim.merge")
	merge.RequiredInputs = func(*workflow.Node) []int { return []int{0, 1} }
	r.Register(
		trigger("sim.start"), trigger("n8n-nodes-base.executeWorkflowTrigger"), trigger("n8n-nodes-base.errorTrigger"),
		&node.Type{Spec: spec("sim.inline"), Inline: true, Execute: code(runInline)},
		&node.Type{Spec: spec("sim.step"), Execute: code(runStep)},
		&node.Type{Spec: spec("sim.row"), Execute: code(runRow)},
		&node.Type{Spec: merge, Execute: code(runMerge)},
		&node.Type{Spec: tool, Execute: code(runTool)},
		&node.Type{Spec: agent, Execute: code(runAgent)},
		&node.Type{Spec: spec("sim.wait"), Waits: true, Execute: code(runWait)},
		&node.Type{Spec: spec("sim.webhook"), Waits: true, Execute: code(runWebhook)},
		&node.Type{Spec: spec("sim.ask"), Waits: true, Execute: code(runAsk)},
		&node.Type{Spec: spec("sim.children"), Waits: true, Execute: code(runChildren)},
	)
	return r
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func runInline(_ context.Context, call *node.Call, _ parameters, _ func(string) error) (*node.Result, error) {
	return output(input(call, 0) + "." + call.Node.Name)
}

// outside does a node's work on the world outside, as often as an attempt is asked for.
func outside(ctx context.Context, call *node.Call, p parameters, did func(string) error, what string) error {
	if err := did(what); err != nil {
		return err
	}
	if p.Hang {
		<-ctx.Done()
		return ctx.Err()
	}
	if p.Fails < 0 || call.Attempt <= p.Fails || p.FailsFirst && call.Execution.Mode != "retry" {
		return &engine.NodeError{Message: "failed on purpose", Name: "NodeApiError"}
	}
	return nil
}

func runStep(ctx context.Context, call *node.Call, p parameters, did func(string) error) (*node.Result, error) {
	if err := outside(ctx, call, p, did, "step"); err != nil {
		return nil, err
	}
	return output(input(call, 0) + "." + call.Node.Name)
}

// insertion is the effect of runRow.
const insertion = "insert"

// runRow inserts a row that holds its key into the data table.
func runRow(ctx context.Context, call *node.Call, _ parameters, did func(string) error) (*node.Result, error) {
	if err := did(insertion); err != nil {
		return nil, err
	}
	values, _ := json.Marshal(map[string]string{"key": call.IdempotencyKey}) // strings always encode
	_, err := call.Tables(ctx, &table.Request{
		Key: call.IdempotencyKey, Do: table.Rows, Table: table.Ref{Name: dataTable}, Operations: []table.Operation{{Do: table.Insert, Values: values}},
	})
	if err != nil {
		return nil, err
	}
	return output(input(call, 0) + "." + call.Node.Name)
}

func runMerge(_ context.Context, call *node.Call, _ parameters, did func(string) error) (*node.Result, error) {
	if err := did("merge"); err != nil {
		return nil, err
	}
	return output("(" + input(call, 0) + "+" + input(call, 1) + ")")
}

func runTool(ctx context.Context, call *node.Call, p parameters, did func(string) error) (*node.Result, error) {
	if err := outside(ctx, call, p, did, "tool "+call.ToolCallID); err != nil {
		return nil, err
	}
	return output(call.Node.Name + ":" + string(call.ToolArguments))
}

// runAgent asks for its rounds of tools, one after the other, and then tells what was
// answered, in the order asked.
func runAgent(ctx context.Context, call *node.Call, p parameters, did func(string) error) (*node.Result, error) {
	if err := did(fmt.Sprintf("model %d", len(call.Rounds))); err != nil {
		return nil, err
	}
	if n := len(call.Rounds); n < len(p.Rounds) {
		q := &engine.Request{}
		for i, name := range p.Rounds[n] {
			q.Actions = append(q.Actions, engine.Action{
				ActionType: "ExecutionNodeAction", NodeName: name, Type: workflow.Tool, ID: fmt.Sprintf("call-%d-%d", n, i),
				Input: json.RawMessage(fmt.Sprintf(`{"n":%d}`, 10*n+i)),
			})
		}
		return &node.Result{Result: engine.Result{Request: q}}, nil
	}
	var answers []string
	for _, round := range call.Rounds {
		for _, result := range round.Results {
			answers = append(answers, answerOf(&result))
		}
	}
	done, _ := output(input(call, 0) + "." + call.Node.Name + "[" + strings.Join(answers, ",") + "]")
	if p.Session != "" {
		message, _ := json.Marshal(fmt.Sprintf("%s %s %d", call.Execution.ID, call.Node.Name, call.RunIndex))
		done.Memory = []node.MemoryAppend{{Session: p.Session, Messages: []json.RawMessage{message}}}
	}
	return done, nil
}

// answerOf is a tool's answer as its agent sees it.
func answerOf(r *engine.ActionResult) string {
	switch {
	case r.Record == nil:
		return "nothing"
	case r.Record.Error != nil:
		return r.Action.NodeName + "!" + r.Record.Error.Message
	}
	data := r.Record.Data[workflow.Tool]
	if len(data) == 0 {
		return "nothing"
	}
	return trailOf(data[0])
}

func runWait(_ context.Context, call *node.Call, p parameters, did func(string) error) (*node.Result, error) {
	if call.Resumption == nil {
		return wait(engine.Wait{Kind: engine.WaitTime, Until: call.Now().Add(time.Duration(p.Wait) * time.Millisecond).UnixMilli()})
	}
	if err := did("awake"); err != nil {
		return nil, err
	}
	return output(input(call, 0) + "." + call.Node.Name)
}

func runWebhook(_ context.Context, call *node.Call, _ parameters, did func(string) error) (*node.Result, error) {
	if call.Resumption == nil {
		return wait(engine.Wait{Kind: engine.WaitWebhook, Webhook: &engine.WebhookWait{}})
	}
	if err := did("called " + string(call.Resumption.Data)); err != nil {
		return nil, err
	}
	return output(input(call, 0) + "." + call.Node.Name)
}

func runAsk(_ context.Context, call *node.Call, p parameters, did func(string) error) (*node.Result, error) {
	if call.Resumption == nil {
		w := engine.Wait{Kind: engine.WaitApproval, Question: &engine.Question{Title: "May I?"}}
		if p.Wait > 0 {
			w.Until = call.Now().Add(time.Duration(p.Wait) * time.Millisecond).UnixMilli()
		}
		return wait(w)
	}
	what := "expired"
	if d := call.Resumption.Decision; d != nil {
		what = fmt.Sprintf("decided %s %v", d.By, d.Approved)
	}
	if err := did(what); err != nil {
		return nil, err
	}
	return output(input(call, 0) + "." + call.Node.Name)
}

func runChildren(_ context.Context, call *node.Call, p parameters, did func(string) error) (*node.Result, error) {
	if call.Resumption == nil {
		c := *p.Children
		c.Runs = nil
		for i, run := range p.Children.Runs {
			run.Input = item(fmt.Sprintf("%s/%d", call.Node.Name, i))
			c.Runs = append(c.Runs, run)
		}
		return wait(engine.Wait{Kind: engine.WaitChildren, Children: &c})
	}
	var ends []string
	for _, child := range call.Resumption.Children {
		ends = append(ends, childEnd(child))
	}
	what := strings.Join(ends, ",")
	if err := did("children " + what); err != nil {
		return nil, err
	}
	return output(input(call, 0) + "." + call.Node.Name + "{" + what + "}")
}

func childEnd(child *engine.ChildResult) string {
	switch {
	case child == nil:
		return "none"
	case child.Status != engine.StatusSuccess:
		return string(child.Status)
	case len(child.Outputs) == 0:
		return "nothing"
	}
	return trailOf(child.Outputs[0])
}
