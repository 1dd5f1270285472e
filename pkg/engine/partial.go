package engine

import (
	"errors"
	"fmt"
	"slices"

	"github.com/reprise-engine/reprise/pkg/workflow"
)

// What a run up to a node can be refused with; the first two texts are n8n's.
var (
	ErrNoTrigger   = errors.New("Connect a trigger and make sure it's enabled to run this node") //nolint:staticcheck // n8n's words
	ErrDisabled    = errors.New("Cannot execute a disabled node")                                //nolint:staticcheck // n8n's words
	ErrDestination = errors.New("the node cannot be run up to")
)

// PlanPartial plans a run up to a node that reuses the run data of an earlier
// one: what has data and did not fail is not run again. It begins with the first
// node on each way from the trigger that has none (or failed), or with the
// destination itself; what an earlier run has of these and below is dropped. A node
// in a loop begins with the loop.
//
// runData, which may be empty, is not changed. Errors: ErrNoTrigger, ErrDisabled,
// ErrDestination.
func (m *Machine) PlanPartial(destination Destination, runData map[string][]*Record) (*Partial, error) {
	p := &plan{Machine: m, destination: destination.Node, runData: map[string][]*Record{}}
	if err := p.check(); err != nil {
		return nil, err
	}
	for node, runs := range runData {
		if m.workflow.Node(node) != nil && !slices.ContainsFunc(runs, func(r *Record) bool { return r == nil }) {
			p.runData[node] = slices.Clone(runs)
		}
	}
	for node, items := range m.workflow.PinData {
		if n := m.workflow.Node(node); n != nil && !n.Disabled && !p.hasData(node) {
			p.runData[node] = []*Record{{Status: StatusSuccess, Source: []*workflow.Source{}, Data: map[string][]workflow.Items{workflow.Main: {items}}}}
		}
	}
	trigger, err := p.trigger()
	if err != nil {
		return nil, err
	}
	p.part = p.between(trigger)
	starts := p.outOfLoops(trigger, p.dirty(trigger))
	for _, s := range starts {
		for name := range p.below(s, nil) {
			delete(p.runData, name)
		}
		delete(p.runData, s)
	}
	return p.begin(starts), nil
}

// plan is a partial run in the making.
type plan struct {
	*Machine
	destination string
	runData     map[string][]*Record
	part        map[string]bool // nodes between the trigger and the destination
}

func (p *plan) check() error {
	n := p.workflow.Node(p.destination)
	switch {
	case n == nil:
		return fmt.Errorf("%w: the workflow has no node %q", ErrDestination, p.destination)
	case n.Disabled:
		return ErrDisabled
	case len(p.workflow.Origins(n.Name, workflow.Main)) == 0 && !p.Machine.trigger(n) && p.serves(n):
		return fmt.Errorf("%w: %q serves another node (as a tool, a model …) and has no place in the main flow; run up to that node", ErrDestination, p.destination)
	}
	return nil
}

// serves reports whether a node is attached to another.
func (p *plan) serves(n *workflow.Node) bool {
	for _, connType := range []string{workflow.Tool, workflow.LanguageModel, workflow.Memory, workflow.OutputParser} {
		if len(p.workflow.Targets(n.Name, connType)) > 0 {
			return true
		}
	}
	return false
}

func (p *plan) hasData(node string) bool {
	return slices.ContainsFunc(p.runData[node], func(r *Record) bool { return r.Data[workflow.Main] != nil })
}

// trigger is the node that the run begins from: a trigger above the
// destination, rather one with data, else the nearest node with data.
func (p *plan) trigger() (string, error) {
	var trigger, nearest string
	for _, name := range append([]string{p.destination}, p.workflow.Ancestors(p.destination)...) {
		n := p.workflow.Node(name)
		switch {
		case n == nil || n.Disabled:
		case p.Machine.trigger(n):
			if trigger == "" || p.hasData(name) && !p.hasData(trigger) {
				trigger = name
			}
		case nearest == "" && name != p.destination && p.hasData(name):
			nearest = name
		}
	}
	switch {
	case trigger != "":
		return trigger, nil
	case nearest != "":
		return nearest, nil
	}
	return "", ErrNoTrigger
}

// below are the nodes that a node leads to, within a set unless that is nil.
func (p *plan) below(node string, within map[string]bool) map[string]bool {
	found := map[string]bool{}
	for queue := []string{node}; len(queue) > 0; queue = queue[1:] {
		for _, targets := range p.workflow.Targets(queue[0], workflow.Main) {
			for _, t := range targets {
				if !found[t.Node] && (within == nil || within[t.Node]) {
					found[t.Node] = true
					queue = append(queue, t.Node)
				}
			}
		}
	}
	return found
}

// between are the nodes on the ways from one node to the destination.
func (p *plan) between(from string) map[string]bool {
	above := p.workflow.Ancestors(p.destination)
	part := map[string]bool{from: true, p.destination: true}
	for name := range p.below(from, nil) {
		if slices.Contains(above, name) {
			part[name] = true
		}
	}
	return part
}

// dirty lists where the run has to begin: the first node without (good) data on
// every way.
func (p *plan) dirty(from string) []string {
	var starts []string
	seen := map[string]bool{}
	var walk func(node string)
	walk = func(node string) {
		if seen[node] {
			return
		}
		seen[node] = true
		if node == p.destination || p.isDirty(node) {
			starts = append(starts, node)
			return
		}
		for o, targets := range p.workflow.Targets(node, workflow.Main) {
			if p.latest(node, o) < 0 {
				continue
			}
			for _, t := range targets {
				if p.part[t.Node] {
					walk(t.Node)
				}
			}
		}
	}
	walk(from)
	return starts
}

const loopType = "n8n-nodes-base.splitInBatches"

func (p *plan) isDirty(node string) bool {
	runs := p.runData[node]
	if !p.hasData(node) || slices.ContainsFunc(runs, func(r *Record) bool { return r.Error != nil }) {
		return true
	}
	// A loop that did not come to its end begins anew.
	if n := p.workflow.Node(node); n.Type == loopType {
		outputs := runs[len(runs)-1].Data[workflow.Main]
		return len(outputs) == 0 || len(outputs[0]) == 0
	}
	return false
}

// latest is the last run of a node with items on an output, -1 for none.
func (p *plan) latest(node string, output int) int {
	runs := p.runData[node]
	for i := len(runs) - 1; i >= 0; i-- {
		if outputs := runs[i].Data[workflow.Main]; output < len(outputs) && len(outputs[output]) > 0 {
			return i
		}
	}
	return -1
}

// outOfLoops replaces nodes within a loop by the node where the loop is entered.
func (p *plan) outOfLoops(from string, starts []string) []string {
	var out []string
	for _, s := range starts {
		if below := p.below(s, p.part); below[s] {
			s = p.entrance(from, s, below)
		}
		if !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}

// entrance is the first node of a loop that is met on the way from a node.
func (p *plan) entrance(from, in string, below map[string]bool) string {
	loop := func(name string) bool { return name == in || below[name] && p.below(name, p.part)[in] }
	seen := map[string]bool{from: true}
	for queue := []string{from}; len(queue) > 0; queue = queue[1:] {
		if loop(queue[0]) {
			return queue[0]
		}
		for _, targets := range p.workflow.Targets(queue[0], workflow.Main) {
			for _, t := range targets {
				if p.part[t.Node] && !seen[t.Node] {
					seen[t.Node] = true
					queue = append(queue, t.Node)
				}
			}
		}
	}
	return in
}

// begin makes the entries and waiting inputs of the start nodes.
func (p *plan) begin(starts []string) *Partial {
	out := &Partial{RunData: p.runData}
	for _, name := range starts {
		origins := p.workflow.Origins(name, workflow.Main)
		sources := make([][]*workflow.Source, len(origins))
		groups := 0
		for i, list := range origins {
			for _, o := range list {
				if run := p.latest(o.Node, o.Output); run >= 0 {
					sources[i] = append(sources[i], &workflow.Source{PreviousNode: o.Node, PreviousNodeOutput: o.Output, PreviousNodeRun: run})
				}
			}
			groups = max(groups, len(sources[i]))
		}
		if len(origins) == 0 {
			out.Entries = append(out.Entries, Entry{
				Node: name, Inputs: []Ref{{Literal: workflow.Items{{JSON: []byte("{}")}}}}, Source: []*workflow.Source{},
			})
		}
		for g := range groups {
			refs := make([]Ref, len(origins))
			from := make([]*workflow.Source, len(origins))
			complete := true
			for i := range origins {
				if g >= len(sources[i]) {
					refs[i].Null, complete = true, false
					continue
				}
				s := sources[i][g]
				refs[i], from[i] = Ref{Node: s.PreviousNode, Run: s.PreviousNodeRun, Output: s.PreviousNodeOutput}, s
			}
			if complete {
				out.Entries = append(out.Entries, Entry{Node: name, Inputs: refs, Source: from})
			} else {
				out.Joins = append(out.Joins, Join{Node: name, Inputs: refs, Source: from})
			}
		}
	}
	return out
}

// startPartial takes a plan over into a new execution.
func (t *tx) startPartial(p *Partial) {
	for _, node := range sortedKeys(p.RunData) {
		for _, r := range p.RunData[node] {
			t.s.Meta.NextIndex = max(t.s.Meta.NextIndex, r.ExecutionIndex+1)
			t.record(node, t.reserve(node), r)
		}
	}
	for _, j := range p.Joins {
		j.Seq = t.s.Meta.NextJoin
		t.s.Meta.NextJoin++
		t.putJoin(&j)
	}
	for _, e := range slices.Backward(p.Entries) {
		e.Run = -1
		if n := t.workflow.Node(e.Node); n != nil {
			e.Once = n.ExecuteOnce
		}
		t.push(&e)
	}
}

// startFor is the node that a run up to another begins from when no node is
// named and nothing is reused.
func (m *Machine) startFor(destination string) (*workflow.Node, error) {
	p := &plan{Machine: m, destination: destination}
	if err := p.check(); err != nil {
		return nil, err
	}
	name, err := p.trigger()
	if err != nil {
		return nil, err
	}
	return m.workflow.Node(name), nil
}
