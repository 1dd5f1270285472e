package engine

import (
	"slices"
	"sort"

	"github.com/reprise-engine/reprise/pkg/workflow"
)

// dispatchJoin queues one node that waits for inputs which will not come any
// more: nothing can run, and nothing that waits leads to it. It reports whether
// it did.
//
// Inputs that stay empty count as no items. Sets of inputs without a single
// item are dropped.
func (t *tx) dispatchJoin() bool {
	for {
		join, dropped := t.ripe()
		if dropped {
			continue
		}
		if join == nil {
			return false
		}
		inputs := slices.Clone(join.Inputs)
		for i := range inputs {
			if inputs[i].Null {
				inputs[i] = Ref{Empty: true}
			}
		}
		t.delJoin(join)
		t.queue(join.Node, inputs, join.Source)
		return true
	}
}

// ripe finds the join to dispatch. A node above which another one waits has
// its turn after that one. In a loop each may be above the other; then the one
// nearest to the start goes first, so that it can still feed the others.
func (t *tx) ripe() (join *Join, dropped bool) {
	var blocked []*Join
	for _, j := range t.oldestJoins() {
		if t.mayBeFed(j.Node) || !t.requiredPresent(j) {
			continue
		}
		if t.waitsAbove(j.Node) {
			blocked = append(blocked, j)
			continue
		}
		if !t.hasItems(j) {
			t.delJoin(j)
			return nil, true
		}
		return j, false
	}
	blocked = slices.DeleteFunc(blocked, func(j *Join) bool { return !t.hasItems(j) })
	if len(blocked) == 0 {
		return nil, false
	}
	return t.nearestToStart(blocked), false
}

// oldestJoins is the oldest set of inputs of each waiting node, oldest first.
func (t *tx) oldestJoins() []*Join {
	var list []*Join
	for _, joins := range t.s.Joins {
		list = append(list, joins[0])
	}
	sort.Slice(list, func(i, k int) bool { return list[i].Seq < list[k].Seq })
	return list
}

// requiredPresent: v1 runs a node without all its inputs only when those are
// there that it requires, and never when it requires all.
func (t *tx) requiredPresent(j *Join) bool {
	node := t.workflow.Node(j.Node)
	if node == nil {
		return false
	}
	spec := t.spec(node)
	if spec == nil || spec.RequiredInputs == nil || !t.workflow.V1() {
		return true
	}
	required := spec.RequiredInputs(node)
	if len(required) > 0 && len(required) >= len(j.Inputs) {
		return false
	}
	for _, i := range required {
		if i >= len(j.Inputs) || j.Inputs[i].Null {
			return false
		}
	}
	return true
}

// mayBeFed: a run that waits, or a requester that is set aside, leads to the
// node, so its inputs may still come.
func (t *tx) mayBeFed(node string) bool {
	for _, p := range t.s.Parked {
		if !p.Entry.AsTool() && (p.Entry.Node == node || t.feeds(p.Entry.Node, node)) {
			return true
		}
	}
	for _, e := range t.s.Stack {
		if !e.AsTool() && (e.Node == node || t.feeds(e.Node, node)) {
			return true
		}
	}
	return false
}

func (t *tx) hasItems(j *Join) bool {
	return slices.ContainsFunc(j.Inputs, func(r Ref) bool { return t.s.count(r) > 0 })
}

func (t *tx) waitsAbove(node string) bool {
	for _, a := range t.workflow.Ancestors(node) {
		if a != node && len(t.s.Joins[a]) > 0 {
			return true
		}
	}
	return false
}

func (t *tx) nearestToStart(joins []*Join) *Join {
	distance := t.distances()
	best := joins[0]
	for _, j := range joins[1:] {
		if distance[j.Node] < distance[best.Node] {
			best = j
		}
	}
	return best
}

// distances is how many connections lead from a node without inputs to each
// node.
func (m *Machine) distances() map[string]int {
	distance := map[string]int{}
	var queue []string
	for _, n := range m.workflow.Nodes {
		if m.inputCount(n.Name) == 0 {
			distance[n.Name] = 0
			queue = append(queue, n.Name)
		}
	}
	for ; len(queue) > 0; queue = queue[1:] {
		for _, targets := range m.workflow.Targets(queue[0], workflow.Main) {
			for _, target := range targets {
				if _, seen := distance[target.Node]; !seen {
					distance[target.Node] = distance[queue[0]] + 1
					queue = append(queue, target.Node)
				}
			}
		}
	}
	return distance
}
