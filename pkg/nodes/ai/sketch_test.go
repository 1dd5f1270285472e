package ai

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	"github.com/tidwall/gjson"

	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/node"
	"github.com/reprise-engine/reprise/pkg/nodes/core"
	"github.com/reprise-engine/reprise/pkg/nodes/fromai"
	"github.com/reprise-engine/reprise/pkg/nodes/jsonobject"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// sketch makes a workflow document of a short text, one statement a line:
//
//	Name: kind {parameters} key=value …   a node of one of the kinds below
//	A -> B                                main connection; A/1 -> B from output 1
//	T ~> Gate ~> Agent                    T serves Gate, which serves Agent
//	set key=value                         a setting of the workflow
//	pin Name [items]                      pinned data
//
// A node that is not declared gets its kind from the beginning of its name ("Calculator 2").
// Every agent gets a chat model of its own whose name is the agent's; one without a
// main input is fed by the trigger In. Agents take their prompt from $json.q, sub-agents
// from the argument task; parameters are laid over that.
func sketch(text string) []byte {
	b := &sketchBuilder{connections: map[string]map[string][][]workflow.Target{}, settings: map[string]any{"executionOrder": "v1"}, pinned: map[string]json.RawMessage{}}
	b.declare("In", "trigger", "{}", nil)
	var wires []string // after the nodes, so that these are declared once
	for _, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		switch {
		case line == "":
		case strings.Contains(line, " -> ") || strings.Contains(line, " ~> "):
			wires = append(wires, line)
		default:
			b.statement(line)
		}
	}
	for _, line := range wires {
		b.statement(line)
	}
	return b.document()
}

type sketchBuilder struct {
	nodes       []map[string]any
	kinds       map[string]string
	connections map[string]map[string][][]workflow.Target
	settings    map[string]any
	pinned      map[string]json.RawMessage
}

// sketchKinds are the words for node types, by the beginning of a node's name.
var sketchKinds = []struct {
	begins, kind, nodeType string
	version                float64
	parameters             string
}{
	{"In", "trigger", "test.trigger", 1, `{}`},
	{"Agent", "agent", family + "agent", 3.1, `{"promptType":"define","text":"={{ $json.q }}"}`},
	{"Sub", "agentTool", family + "agentTool", 3, `{"toolDescription":"an agent","text":"={{ $fromAI('task') }}"}`},
	{"Calculator", "calculator", family + "toolCalculator", 1, `{}`},
	{"Think", "think", family + "toolThink", 1.1, `{}`},
	{"Ledger", "ledger", "test.ledgerTool", 1, `{}`},
	{"Gate", "gate", "test.approvalHitlTool", 1, `{}`},
	{"Memory", "memory", family + "memoryBufferWindow", 1.3, `{"contextWindowLength":20}`},
	{"Parser", "parser", family + "outputParserStructured", 1.3, `{"jsonSchemaExample":"{\"answer\":1}"}`},
	{"Model", "model", family + "lmChatOpenAi", 1.3, `{"responsesApiEnabled":false,"options":{"maxRetries":0}}`},
	{"Loop", "loop", "n8n-nodes-base.splitInBatches", 3, `{}`},
	{"Pass", "pass", "test.pass", 1, `{}`},
}

func (b *sketchBuilder) statement(line string) {
	switch {
	case strings.HasPrefix(line, "set "):
		key, value, _ := strings.Cut(line[4:], "=")
		b.settings[key] = value
	case strings.HasPrefix(line, "pin "):
		at := strings.IndexByte(line, '[')
		b.pinned[strings.TrimSpace(line[4:at])] = json.RawMessage(line[at:])
	case strings.Contains(line, " -> "):
		names := strings.Split(line, " -> ")
		for i := range names[1:] {
			b.connect(names[i], names[i+1], workflow.Main)
		}
	case strings.Contains(line, " ~> "):
		names := strings.Split(line, " ~> ")
		for i := range names[1:] {
			b.connect(names[i], names[i+1], "")
		}
	default:
		name, rest, ok := strings.Cut(line, ": ")
		if !ok {
			panic("sketch: not understood: " + line)
		}
		kind, rest, _ := strings.Cut(rest, " ")
		parameters := "{}"
		if rest = strings.TrimSpace(rest); strings.HasPrefix(rest, "{") {
			d := json.NewDecoder(strings.NewReader(rest))
			var value json.RawMessage
			if err := d.Decode(&value); err != nil {
				panic("sketch: " + line + ": " + err.Error())
			}
			parameters, rest = string(value), rest[d.InputOffset():]
		}
		b.declare(name, kind, parameters, strings.Fields(rest))
	}
}

func (b *sketchBuilder) declare(name, kind, parameters string, settings []string) {
	for _, k := range sketchKinds {
		if k.kind != kind {
			continue
		}
		all := jsonobject.Parse(k.parameters)
		all.Overlay(jsonobject.Parse(parameters), true, nil)
		n := map[string]any{
			"name": name, "type": k.nodeType, "typeVersion": k.version, "parameters": all.JSON(),
			"position": []int{0, 100 * len(b.nodes)},
		}
		for _, s := range settings {
			key, value, _ := strings.Cut(s, "=")
			n[key] = value
			if parsed := gjson.Parse(value); gjson.Valid(value) {
				n[key] = parsed.Value()
			}
		}
		if kind == "model" {
			n["credentials"] = map[string]any{"openAiApi": map[string]string{"id": "1", "name": "x"}}
		}
		if b.kinds == nil {
			b.kinds = map[string]string{}
		}
		b.nodes, b.kinds[name] = append(b.nodes, n), kind
		return
	}
	panic("sketch: no kind of node " + kind)
}

// known declares a node by its name when it is not declared, and returns its kind.
func (b *sketchBuilder) known(name string) string {
	if b.kinds[name] == "" {
		for _, k := range sketchKinds {
			if strings.HasPrefix(name, k.begins) {
				b.declare(name, k.kind, "{}", nil)
				return k.kind
			}
		}
		panic("sketch: what is " + name + "?")
	}
	return b.kinds[name]
}

func (b *sketchBuilder) connect(from, to, connType string) {
	from, port, _ := strings.Cut(from, "/")
	kind := b.known(from)
	b.known(to)
	if connType == "" {
		switch connType = workflow.Tool; kind {
		case "memory":
			connType = workflow.Memory
		case "parser":
			connType = workflow.OutputParser
		case "model":
			connType = workflow.LanguageModel
		}
	}
	output := 0
	if port != "" {
		output = int(port[0] - '0')
	}
	types := b.connections[from]
	if types == nil {
		types = map[string][][]workflow.Target{}
		b.connections[from] = types
	}
	for len(types[connType]) <= output {
		types[connType] = append(types[connType], nil)
	}
	index := 0
	if connType == workflow.LanguageModel && from != to+"'s model" {
		index = 1 // a fallback
	}
	types[connType][output] = append(types[connType][output], workflow.Target{Node: to, Type: connType, Index: index})
}

func (b *sketchBuilder) document() []byte {
	fed := map[string]bool{}
	for _, types := range b.connections {
		for _, outputs := range types[workflow.Main] {
			for _, target := range outputs {
				fed[target.Node] = true
			}
		}
	}
	for _, n := range append([]map[string]any(nil), b.nodes...) {
		name := n["name"].(string)
		kind := b.kinds[name]
		if kind != "agent" && kind != "agentTool" {
			continue
		}
		model := name + "'s model"
		b.declare(model, "model", `{"model":`+jsonobject.Quote(name)+`}`, nil)
		b.connect(model, name, workflow.LanguageModel)
		if kind == "agent" && !fed[name] {
			b.connect("In", name, workflow.Main)
		}
	}
	doc, err := json.Marshal(map[string]any{"name": "sketch", "nodes": b.nodes, "connections": b.connections, "settings": b.settings, "pinData": b.pinned})
	if err != nil {
		panic(err)
	}
	return doc
}

// sketchTypes are the types of the package and a few for tests.
func sketchTypes(l *ledger) *node.Registry {
	registry := &node.Registry{}
	registry.Register(Types()...)
	registry.Register(
		core.Loop(),
		&node.Type{Spec: workflow.Spec{Type: "test.trigger", Versions: []float64{1}, Trigger: true}},
		&node.Type{
			Spec: workflow.Spec{Type: "test.pass", Versions: []float64{1}},
			Execute: func(_ context.Context, call *node.Call) (*node.Result, error) {
				return &node.Result{Result: engine.Result{Outputs: call.Inputs}}, nil
			},
		},
		&node.Type{
			Spec:    workflow.Spec{Type: "test.ledgerTool", Versions: []float64{1}, ToolNode: true},
			Execute: l.execute,
			Describe: func(_ context.Context, call *node.Call) (*node.ToolDescription, error) {
				schema, err := fromai.Schema(call.Node.Parameters)
				if own := gjson.GetBytes(call.Node.Parameters, "schema"); own.Exists() {
					schema = json.RawMessage(own.Raw)
				}
				return &node.ToolDescription{Name: call.Node.Name, Description: "writes into a ledger", Schema: schema}, err
			},
		},
		&node.Type{
			Spec:  workflow.Spec{Type: "test.approvalHitlTool", Versions: []float64{1}, ToolNode: true, Accepts: []string{workflow.Tool}},
			Waits: true, Execute: askPerson,
		},
	)
	return registry
}

// askPerson is a gate: it asks, with the deadline of its parameter timeout (ms),
// and answers with what was decided, as n8n's gates do.
func askPerson(_ context.Context, call *node.Call) (*node.Result, error) {
	if r := call.Resumption; r != nil {
		item := call.Inputs[0][0].JSON // n8n's gates pass their input on when their time is over
		if d := r.Decision; d != nil {
			data := jsonobject.Parse(fmt.Sprintf(`{"approved":%v}`, d.Approved))
			if d.Feedback != "" {
				data.Set("chatInput", jsonobject.Quote(d.Feedback))
			}
			item = json.RawMessage(`{"data":` + data.String() + `}`)
		}
		return &node.Result{Result: engine.Result{Outputs: []workflow.Items{{{JSON: item}}}}}, nil
	}
	if message := gjson.GetBytes(call.Node.Parameters, "broken"); message.Exists() {
		return nil, operationError(message.Str, "")
	}
	wait := &engine.Wait{Kind: engine.WaitApproval, Question: &engine.Question{
		ToolName:  gjson.GetBytes(call.ToolArguments, "tool").Str,
		Arguments: json.RawMessage(gjson.GetBytes(call.ToolArguments, "toolParameters").Raw),
	}}
	if timeout := gjson.GetBytes(call.Node.Parameters, "timeout"); timeout.Exists() {
		wait.Until = call.Now().UnixMilli() + timeout.Int()
	}
	return &node.Result{Result: engine.Result{Wait: wait}}, nil
}

// ledger is what a tool of kind ledger wrote: one line a call. Its parameters
// tell what it answers: items, or how often it fails first with which error.
type ledger struct {
	mu    sync.Mutex
	lines []string
	calls map[string]int
}

func (l *ledger) execute(_ context.Context, call *node.Call) (*node.Result, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, call.Node.Name+" "+string(plainJSON(call.ToolArguments)))
	l.calls[call.Node.Name]++
	parameters := gjson.ParseBytes(call.Node.Parameters)
	if fails := parameters.Get("fails"); fails.Exists() && int64(l.calls[call.Node.Name]) <= fails.Int() {
		return nil, &engine.NodeError{Name: "NodeApiError", Message: "the ledger is closed"}
	}
	if given := parameters.Get("items"); given.Exists() {
		items := workflow.Items{}
		for _, one := range given.Array() {
			items = append(items, workflow.Item{JSON: json.RawMessage(one.Raw)})
		}
		return &node.Result{Result: engine.Result{Outputs: []workflow.Items{items}}}, nil
	}
	return &node.Result{Result: engine.Result{Outputs: []workflow.Items{{{JSON: json.RawMessage(fmt.Sprintf(`{"entry":%d}`, len(l.lines)))}}}}}, nil
}
