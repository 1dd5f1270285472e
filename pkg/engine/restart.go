package engine

import (
	"fmt"
	"maps"
	"slices"
)

// restart begins an execution where a failed one broke off. What has ended is
// taken over as it is; the runs on the failed stack are to be run (again), with the
// idempotency keys of the attempts that failed.
func (t *tx) restart(from *State) (bool, error) {
	if t.s.Meta.Status != "" {
		return false, nil
	}
	if from == nil || from.Meta.Status != StatusError {
		return false, fmt.Errorf("only an execution that failed can go on where it broke off")
	}
	if err := t.namesNodes(from); err != nil {
		return false, err
	}
	m, old := &t.s.Meta, &from.Meta
	m.NextIndex, m.NextJob, m.NextTop, m.NextLast, m.NextJoin = old.NextIndex, old.NextJob, old.NextTop, old.NextLast, old.NextJoin
	m.LastNode, m.Destination = old.LastNode, old.Destination
	t.begun()
	m.LastWebhook = old.LastWebhook

	again := map[RunRef]*Entry{}
	for _, e := range from.Stack {
		if e.Run >= 0 {
			again[e.RunRef()] = e
		}
	}
	for _, node := range sortedKeys(from.Run) {
		for run, r := range from.Run[node] {
			t.reserve(node)
			e := again[RunRef{node, run}]
			switch {
			case r == nil || e != nil && !e.AsTool() && e.Progress == nil:
				// Its record is written when it runs.
			case e != nil:
				open := *r
				open.Status, open.Error, open.Data, open.Hints, open.Logs = StatusRunning, nil, nil, nil, nil
				if e.Progress == nil {
					open.StartTime, open.ExecutionTime, open.Attempts = 0, 0, 0
				}
				t.record(node, run, &open)
			default:
				t.record(node, run, r)
			}
		}
	}
	for _, caller := range from.callers() {
		for _, r := range from.Rounds[caller] {
			round := *r
			round.Open = t.s.openCalls(&round)
			t.putRound(&round)
		}
	}
	for _, node := range sortedKeys(from.Joins) {
		for _, j := range from.Joins[node] {
			t.putJoin(j)
		}
	}
	for _, node := range sortedKeys(from.Context) {
		t.setContext(node, slices.Clone(from.Context[node]))
	}
	for _, e := range from.Stack {
		entry := *e
		t.push(&entry)
		for _, i := range slices.Sorted(maps.Keys(from.Children[e.Wait])) {
			t.putChild(e.Wait, i, from.Children[e.Wait][i])
		}
	}
	return true, nil
}

// namesNodes checks that a workflow, which may be a newer one, has all the nodes
// that the stack needs.
func (t *tx) namesNodes(from *State) error {
	missing := func(node string) error {
		return fmt.Errorf("the workflow has no node %q any more, where the execution broke off", node)
	}
	for _, e := range from.Stack {
		if t.workflow.Node(e.Node) == nil {
			return missing(e.Node)
		}
	}
	for _, node := range sortedKeys(from.Joins) {
		if t.workflow.Node(node) == nil {
			return missing(node)
		}
	}
	for _, caller := range from.callers() {
		for _, r := range from.Rounds[caller] {
			for _, c := range r.Calls {
				if t.workflow.Node(c.Action.NodeName) == nil {
					return missing(c.Action.NodeName)
				}
			}
		}
	}
	return nil
}
