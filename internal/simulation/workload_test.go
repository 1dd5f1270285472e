package simulation

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/reprise-engine/reprise/pkg/engine"
)

type object = map[string]any

// document is a workflow with what must come of it.
type document struct {
	id          string
	json        json.RawMessage
	rng         *rand.Rand
	nodes       []object
	connections map[string]map[string][][]object
	settings    object
	names       int
	last        string // the node at the end of the chain

	// status that an execution must have, "" for any; trail of its last item when that is
	// a success, with in for the trail of its input.
	status  engine.Status
	trail   string
	failed  string // node that fails
	handler bool   // an error workflow hears of it
	waits   bool   // for something that a client does
	session string // where its agents remember
	agents  []string
	outside bool // it may be cancelled

	workflow string // its id in the document, when that is not the execution's
	retried  string // "failed": it is retried after its failure, "start": it is begun anew, as <id>-r
	recovers bool   // retried after its failure it ends well
	partial  string // node up to which it runs, "" for all; rerun has it run again then, as <id>-p
	rerun    bool
}

const in = "<in>"

func newDocument(rng *rand.Rand, id, trigger string) *document {
	d := &document{id: id, rng: rng, connections: map[string]map[string][][]object{}, settings: object{"executionOrder": "v1"}, status: engine.StatusSuccess, trail: in}
	d.last = d.add("Start", trigger, nil, nil)
	return d
}

// add adds a node; extra are fields beside its parameters.
func (d *document) add(name, nodeType string, params *parameters, extra object) string {
	n := object{"name": name, "type": nodeType, "typeVersion": 1, "position": []int{100 * len(d.nodes), 0}, "parameters": object{}}
	if params != nil {
		n["parameters"] = params
	}
	for k, v := range extra {
		n[k] = v
	}
	d.nodes = append(d.nodes, n)
	return name
}

func (d *document) name(prefix string) string {
	d.names++
	return fmt.Sprintf("%s%d", prefix, d.names)
}

func (d *document) connect(from, to, kind string, index int) {
	if d.connections[from] == nil {
		d.connections[from] = map[string][][]object{}
	}
	if d.connections[from][kind] == nil {
		d.connections[from][kind] = [][]object{{}}
	}
	d.connections[from][kind][0] = append(d.connections[from][kind][0], object{"node": to, "type": kind, "index": index})
}

// then continues the chain with a node.
func (d *document) then(name, nodeType string, params *parameters, extra object) {
	d.add(name, nodeType, params, extra)
	d.connect(d.last, name, "main", 0)
	d.last = name
}

func (d *document) work() int {
	switch d.rng.IntN(6) {
	case 0:
		return 200 + d.rng.IntN(3000)
	case 1:
		return 12_000 + d.rng.IntN(10_000) // longer than a lease
	case 2, 3:
		return 1 + d.rng.IntN(50)
	}
	return 0
}

func (d *document) step() {
	name := d.name("Step")
	d.then(name, "sim.step", &parameters{Work: d.work()}, nil)
	d.trail += "." + name
}

func (d *document) inline() {
	name := d.name("Inline")
	d.then(name, "sim.inline", nil, nil)
	d.trail += "." + name
}

// once must not run twice: when it is not known whether it ran, it fails.
func (d *document) once() {
	name := d.name("Once")
	d.then(name, "sim.step", &parameters{Work: d.work()}, object{"onWorkerLost": "giveUp"})
	d.trail += "." + name
}

// row changes the data table.
func (d *document) row() {
	name := d.name("Row")
	d.then(name, "sim.row", &parameters{Work: d.work()}, nil)
	d.trail += "." + name
}

// limited is under a rate limit, with all executions of its workflow.
func (d *document) limited() {
	name := d.name("Limited")
	d.then(name, "sim.step", nil, object{"rateLimit": []string{"2/second", "5/10s", "1/500ms"}[d.rng.IntN(3)]})
	d.trail += "." + name
}

// flaky fails once or twice and is tried again.
func (d *document) flaky() {
	name := d.name("Flaky")
	d.then(name, "sim.step", &parameters{Fails: 1 + d.rng.IntN(2)}, object{"retryOnFail": true, "maxTries": 3, "waitBetweenTries": 100 + d.rng.IntN(2000)})
	d.trail += "." + name
}

// merge goes two ways that meet again.
func (d *document) merge() {
	a, b, m := d.name("Left"), d.name("Right"), d.name("Merge")
	d.add(a, "sim.step", &parameters{Work: d.work()}, nil)
	d.add(b, "sim.step", &parameters{Work: d.work()}, nil)
	d.add(m, "sim.merge", nil, nil)
	d.connect(d.last, a, "main", 0)
	d.connect(d.last, b, "main", 0)
	d.connect(a, m, "main", 0)
	d.connect(b, m, "main", 1)
	d.last = m
	d.trail = "(" + d.trail + "." + a + "+" + d.trail + "." + b + ")"
}

// agent asks for one to three rounds of tools: good ones, slow ones, one that
// fails, one that hangs until its time is up.
func (d *document) agent() {
	name := d.name("Agent")
	type tool struct{ name, answer string } // answer "" is its name and arguments
	var tools []tool
	for range 1 + d.rng.IntN(4) {
		t := tool{name: d.name("Tool")}
		p, extra := &parameters{Work: d.work()}, object{}
		switch d.rng.IntN(8) {
		case 0:
			p.Fails, t.answer = -1, t.name+"!failed on purpose"
		case 1:
			p = &parameters{Hang: true}
			extra["timeout"], t.answer = 500+d.rng.IntN(4000), t.name+"!Error: timed out"
		case 2:
			p.Fails = 1
			extra["retryOnFail"], extra["maxTries"], extra["waitBetweenTries"] = true, 2, 50
		}
		d.add(t.name, "sim.tool", p, extra)
		d.connect(t.name, name, "ai_tool", 0)
		tools = append(tools, t)
	}
	p := &parameters{Session: d.session}
	var answers []string
	for round := range 1 + d.rng.IntN(3) {
		var calls []string
		for i := range 1 + d.rng.IntN(4) {
			t := tools[d.rng.IntN(len(tools))]
			calls = append(calls, t.name)
			answer := t.answer
			if answer == "" {
				answer = fmt.Sprintf(`%s:{"n":%d}`, t.name, 10*round+i)
			}
			answers = append(answers, answer)
		}
		p.Rounds = append(p.Rounds, calls)
	}
	d.then(name, "sim.agent", p, nil)
	d.trail += "." + name + "[" + strings.Join(answers, ",") + "]"
	d.agents = append(d.agents, name)
}

func (d *document) wait() {
	name := d.name("Wait")
	d.then(name, "sim.wait", &parameters{Wait: 100 + d.rng.IntN(15_000)}, nil)
	d.trail += "." + name
}

func (d *document) webhook() {
	name := d.name("Webhook")
	d.then(name, "sim.webhook", nil, nil)
	d.trail += "." + name
	d.waits = true
}

func (d *document) ask() {
	name := d.name("Ask")
	p := &parameters{}
	if d.rng.IntN(3) == 0 {
		p.Wait = 1000 + d.rng.IntN(15_000)
	}
	d.then(name, "sim.ask", p, nil)
	d.trail += "." + name
	d.waits = true
}

// start starts one to three of the children.
func (d *document) start(children []*document) {
	name := d.name("Children")
	c := &engine.Children{Sequential: d.rng.IntN(3) == 0, Detached: d.rng.IntN(4) == 0}
	var ends []string
	for i := range 1 + d.rng.IntN(3) {
		child := children[d.rng.IntN(len(children))]
		run := engine.ChildRun{WorkflowID: child.id}
		if d.rng.IntN(3) == 0 {
			run = engine.ChildRun{Workflow: child.json}
		}
		c.Runs = append(c.Runs, run)
		end := string(child.status)
		if child.status == engine.StatusSuccess {
			end = strings.ReplaceAll(child.trail, in, fmt.Sprintf("%s/%d", name, i))
		}
		if c.Detached {
			end = string(engine.StatusRunning)
		}
		ends = append(ends, end)
	}
	d.then(name, "sim.children", &parameters{Children: c}, nil)
	d.trail += "." + name + "{" + strings.Join(ends, ",") + "}"
}

// fail ends the execution with an error.
func (d *document) fail() {
	name := d.name("Fail")
	switch d.rng.IntN(3) {
	case 0:
		d.then(name, "sim.step", &parameters{Hang: true}, object{"timeout": 500 + d.rng.IntN(4000)})
	case 1:
		d.then(name, "sim.step", &parameters{Fails: -1}, object{"retryOnFail": true, "maxTries": 2, "waitBetweenTries": 300})
	default:
		d.then(name, "sim.step", &parameters{Fails: -1}, nil)
	}
	d.status, d.failed = engine.StatusError, name
}

// failOnce ends the execution with an error, unless it is the retry of one that did.
func (d *document) failOnce() {
	name := d.name("Mend")
	d.then(name, "sim.step", &parameters{FailsFirst: true}, nil)
	d.status, d.failed, d.retried, d.recovers = engine.StatusError, name, "failed", true
	d.trail += "." + name
	d.step()
}

// hang ends the execution by its time limit. The node has one of its own, later, so
// that it ends although no worker was told that it does not count any more: a
// coordinator that dies after its commit tells nobody, and nothing repeats it.
func (d *document) hang() {
	d.then(d.name("Hang"), "sim.step", &parameters{Hang: true}, object{"timeout": 60_000})
	d.settings["executionTimeout"] = 1 + d.rng.IntN(20)
	d.status = engine.StatusCanceled
}

// upTo ends the chain with two nodes of which a run up to a node runs the first.
func (d *document) upTo() {
	d.step()
	d.partial = d.last
	d.rerun = d.rng.IntN(2) == 0
	d.then(d.name("Beyond"), "sim.step", nil, nil)
}

func (d *document) build() *document {
	if d.rng.IntN(4) == 0 {
		d.settings["toolExecution"] = "sequential"
	}
	id := d.id
	if d.workflow != "" {
		id = d.workflow
	}
	data, err := json.Marshal(object{"id": id, "name": d.id, "nodes": d.nodes, "connections": d.connections, "settings": d.settings})
	if err != nil {
		panic(err)
	}
	d.json = data
	return d
}

const (
	errorWorkflow = "on-error"
	sharedSession = "shared"
	dataTable     = "rows"
	gatePlaces    = 2 // of the workflows gated-N
)

// workload is what is run in one simulation.
type workload struct {
	stored     []*document // put under their ids first
	executions []*document
}

// newWorkload draws one.
func newWorkload(rng *rand.Rand, executions int) *workload {
	l := &workload{}
	handler := newDocument(rng, errorWorkflow, "n8n-nodes-base.errorTrigger")
	handler.step()
	l.stored = append(l.stored, handler.build())
	var children []*document
	for i := range 4 {
		d := newDocument(rng, fmt.Sprintf("child-%d", i), "n8n-nodes-base.executeWorkflowTrigger")
		switch i {
		case 0:
			d.step()
		case 1:
			d.wait()
			d.inline()
		case 2:
			d.agent()
		case 3:
			d.fail()
		}
		if i < 2 && rng.IntN(2) == 0 {
			d.settings["maxConcurrency"] = 1 + rng.IntN(3)
		}
		children = append(children, d.build())
	}
	parent := newDocument(rng, "child-4", "n8n-nodes-base.executeWorkflowTrigger")
	parent.start(children)
	l.stored = append(l.stored, children...)
	children = append(children, parent.build())
	l.stored = append(l.stored, parent)
	for i := range executions {
		d := newDocument(rng, fmt.Sprintf("e%d", i), "sim.start")
		switch rng.IntN(6) {
		case 0:
			d.workflow = fmt.Sprintf("gated-%d", rng.IntN(2))
			d.settings["maxConcurrency"] = gatePlaces
		case 1:
			d.workflow = "limited"
			d.settings["rateLimit"] = "3/second"
		}
		d.session = sharedSession
		if rng.IntN(2) == 0 {
			d.session = d.id
		}
		for range 1 + rng.IntN(3) {
			switch rng.IntN(16) {
			case 15:
				d.row()
			case 12, 13:
				d.limited()
			case 14:
				d.once()
			case 0:
				d.inline()
			case 1:
				d.flaky()
			case 2:
				d.merge()
			case 3, 4, 5:
				d.agent()
			case 6:
				d.wait()
			case 7:
				d.webhook()
			case 8:
				d.ask()
			case 9, 10:
				d.start(children)
			default:
				d.step()
			}
		}
		switch rng.IntN(14) {
		case 12:
			d.failOnce()
		case 13:
			d.upTo()
		case 0:
			d.fail()
			if d.handler = rng.IntN(3) > 0; d.handler {
				d.settings["errorWorkflow"] = errorWorkflow
			}
		case 1:
			d.hang()
		case 2:
			d.outside = true
			d.step()
		default:
			d.step()
		}
		if d.retried == "" && d.status != "" && !d.outside && rng.IntN(16) == 0 {
			d.retried = "start"
		}
		l.executions = append(l.executions, d.build())
	}
	return l
}
