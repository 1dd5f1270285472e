package preview

import (
	"fmt"
	"slices"
	"strings"

	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// FromRunData is what a node was given in its run-th run (-1 is the last) by the records of an
// execution; for a node that did not run, what the nodes before it put out last.
func FromRunData(w *workflow.Workflow, name string, run int, records map[string][]*engine.Record) (*Data, error) {
	n := w.Node(name)
	if n == nil {
		return nil, unknown(w, name)
	}
	fed := fedNode(w, name)
	runs := recorded(records)
	switch {
	case run >= 0 && run >= runs.Runs(fed):
		return nil, fmt.Errorf("--run %d: the run data has %d runs of %q", run, runs.Runs(fed), fed)
	case run < 0:
		run = max(runs.Runs(fed)-1, 0)
	}
	d := &Data{Workflow: w, Node: n, RunIndex: run, RunData: runs}
	if run < runs.Runs(fed) {
		d.Sources = runs.Sources(fed, run)
	}
	if !slices.ContainsFunc(d.Sources, func(s *workflow.Source) bool { return s != nil }) {
		d.Sources = lastSources(w, fed, runs)
	}
	found := false
	for _, s := range d.Sources {
		var items workflow.Items
		if s != nil {
			items, _ = runs.Items(s.PreviousNode, s.PreviousNodeRun, s.PreviousNodeOutput)
			found = true
		}
		d.Inputs = append(d.Inputs, items)
	}
	if !found && len(w.Origins(fed, workflow.Main)) > 0 {
		return nil, fmt.Errorf("the run data has nothing that came to %q: none of %s ran", fed, strings.Join(w.Ancestors(fed), ", "))
	}
	return d, nil
}

// lastSources are the last runs of what is connected to a node, for each input the first
// that put something out.
func lastSources(w *workflow.Workflow, name string, runs recorded) []*workflow.Source {
	var sources []*workflow.Source
	for _, origins := range w.Origins(name, workflow.Main) {
		var source *workflow.Source
		for _, o := range origins {
			last := runs.Runs(o.Node) - 1
			if items, ok := runs.Items(o.Node, last, o.Output); ok && (source == nil && items != nil) {
				source = &workflow.Source{PreviousNode: o.Node, PreviousNodeOutput: o.Output, PreviousNodeRun: last}
			}
		}
		sources = append(sources, source)
	}
	return sources
}

// recorded is run data in n8n's shape as expressions read it.
type recorded map[string][]*engine.Record

func (r recorded) Runs(name string) int { return len(r[name]) }

func (r recorded) record(name string, run int) *engine.Record {
	if run < 0 || run >= len(r[name]) {
		return nil
	}
	return r[name][run]
}

// Items of one main output of one run; ok is false when there is no such run or output.
func (r recorded) Items(name string, run, output int) (workflow.Items, bool) {
	record := r.record(name, run)
	if record == nil || output < 0 || output >= len(record.Data[workflow.Main]) {
		return nil, false
	}
	return record.Data[workflow.Main][output], true
}

// Sources of one run, per main input.
func (r recorded) Sources(name string, run int) []*workflow.Source {
	if record := r.record(name, run); record != nil {
		return record.Source
	}
	return nil
}
