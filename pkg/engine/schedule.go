package engine

import (
	"slices"
	"sort"

	"github.com/reprise-engine/reprise/pkg/workflow"
)

// feed is data on its way along one connection.
type feed struct {
	parent  RunRef
	output  int
	empty   bool
	target  workflow.Target
	outputs []workflow.Items // all of the parent's
}

func (f feed) ref() Ref {
	return Ref{Node: f.parent.Node, Run: f.parent.Run, Output: f.output}
}

func (f feed) source() *workflow.Source {
	return &workflow.Source{PreviousNode: f.parent.Node, PreviousNodeOutput: f.output, PreviousNodeRun: f.parent.Run}
}

// schedule queues the nodes that a run of the main flow feeds.
func (t *tx) schedule(e *Entry, outputs []workflow.Items) *NodeError {
	var feeds []feed
	v1 := t.workflow.V1()
	for o, targets := range t.workflow.Targets(e.Node, workflow.Main) {
		for _, target := range targets {
			if t.workflow.Node(target.Node) == nil {
				return &NodeError{Message: "Destination node not found", Node: e.Node}
			}
			if o >= len(outputs) || outputs[o] == nil {
				continue
			}
			f := feed{parent: e.RunRef(), output: o, empty: len(outputs[o]) == 0, target: target, outputs: outputs}
			// Nothing follows an empty output, but v0 lets it fill a further input.
			if !f.empty || !v1 && target.Index > 0 {
				feeds = append(feeds, f)
			}
		}
	}
	if v1 {
		t.topLeftFirst(feeds)
	}
	for _, f := range feeds {
		t.deliver(f)
	}
	return nil
}

// topLeftFirst sorts feeds so that, each put on top of the stack, the node
// highest on the canvas runs first, and the leftmost of equally high ones. Of
// two at the same place the one that is connected later runs first.
func (t *tx) topLeftFirst(feeds []feed) {
	sort.SliceStable(feeds, func(i, j int) bool {
		a, b := t.workflow.Node(feeds[i].target.Node).Position, t.workflow.Node(feeds[j].target.Node).Position
		if a[1] != b[1] {
			return a[1] > b[1]
		}
		return a[0] > b[0]
	})
}

// deliver brings data to an input: a node with one input is queued, one with
// several when its last input has come.
func (t *tx) deliver(f feed) {
	dest := f.target.Node
	n := t.inputCount(dest)
	if n <= 1 {
		t.queue(dest, []Ref{f.ref()}, []*workflow.Source{f.source()})
		return
	}
	waited := len(t.s.Joins[dest]) > 0
	join := t.joinFor(dest, f.target.Index, n)
	join.Inputs[f.target.Index] = f.ref()
	join.Source[f.target.Index] = f.source()
	if !slices.ContainsFunc(join.Inputs, func(r Ref) bool { return r.Null }) {
		t.delJoin(join)
		t.queue(dest, join.Inputs, join.Source)
		return
	}
	t.putJoin(join)
	if !waited && !t.workflow.V1() {
		t.force(f)
	}
}

// joinFor is a copy of the oldest set of inputs that still lacks this one, or a
// new set.
func (t *tx) joinFor(dest string, index, inputs int) *Join {
	for _, j := range t.s.Joins[dest] {
		if index < len(j.Inputs) && j.Inputs[index].Null {
			return &Join{Seq: j.Seq, Node: dest, Inputs: slices.Clone(j.Inputs), Source: slices.Clone(j.Source)}
		}
	}
	j := &Join{Seq: t.s.Meta.NextJoin, Node: dest, Inputs: make([]Ref, inputs), Source: make([]*workflow.Source, inputs)}
	t.s.Meta.NextJoin++
	for i := range j.Inputs {
		j.Inputs[i].Null = true
	}
	return j
}

// queue adds an entry of the main flow: on top in v1, which makes the order
// depth first, at the bottom in v0, which makes it breadth first.
func (t *tx) queue(name string, inputs []Ref, source []*workflow.Source) {
	e := &Entry{Node: name, Inputs: inputs, Source: source, Run: -1}
	if n := t.workflow.Node(name); n != nil {
		e.Once = n.ExecuteOnce
	}
	if t.workflow.V1() {
		t.push(e)
	} else {
		t.pushBelow(e)
	}
}

// force lets v0 start the branches that feed the other inputs of a node which
// begins to wait, when nothing else will: it queues the farthest node of such
// a branch with one empty item.
func (t *tx) force(f feed) {
	for i, origins := range t.workflow.Origins(f.target.Node, workflow.Main) {
		if i == f.target.Index {
			continue
		}
		for _, o := range origins {
			if o.Node == f.parent.Node || t.coming(f, o.Node) {
				continue
			}
			if first := t.farthest(f, o.Node); first != "" {
				t.queue(first, []Ref{{Literal: workflow.Items{{JSON: []byte("{}")}}}}, []*workflow.Source{f.source()})
			}
		}
	}
}

// coming reports whether a node has run, is queued, or is about to be fed by
// the run that is being scheduled.
func (t *tx) coming(f feed, node string) bool {
	if len(t.s.Run[node]) > 0 || slices.ContainsFunc(t.s.Stack, func(e *Entry) bool { return e.Node == node }) {
		return true
	}
	for o, targets := range t.workflow.Targets(f.parent.Node, workflow.Main) {
		if o >= len(f.outputs) || len(f.outputs[o]) == 0 {
			continue
		}
		for _, target := range targets {
			if target.Node == node {
				return true
			}
		}
	}
	return false
}

// farthest is the node to start so that a branch reaches node, "" when the
// branch has begun or cannot begin.
func (t *tx) farthest(f feed, node string) string {
	first := node
	for _, a := range t.workflow.Ancestors(node) {
		if a == f.parent.Node && f.empty || t.coming(f, a) {
			return ""
		}
		first = a
	}
	if f.empty && t.feeds(f.parent.Node, first) {
		return ""
	}
	if inputs := t.workflow.Origins(first, workflow.Main); len(inputs) > 0 {
		for _, o := range inputs[0] {
			if items, ok := t.s.Items(o.Node, f.parent.Run, o.Output); ok && len(items) > 0 {
				return ""
			}
		}
	}
	return first
}
