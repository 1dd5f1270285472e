package engine

import (
	"encoding/json"
	"slices"

	"github.com/reprise-engine/reprise/pkg/workflow"
)

// Inputs resolves what an entry refers to: its items per main input, stamped
// with their own index as pairedItem. A tool entry has one item, the
// requester's item overlaid by the arguments, plus toolCallId (R5). The list
// is the caller's; the JSON in it is shared and must not be changed.
func (s *State) Inputs(e *Entry) []workflow.Items {
	if e.AsTool() {
		if item, ok := s.toolItem(e); ok {
			return []workflow.Items{{item}}
		}
		return []workflow.Items{{}}
	}
	inputs := make([]workflow.Items, len(e.Inputs))
	for i, ref := range e.Inputs {
		items := s.resolve(ref)
		if items == nil {
			continue
		}
		if e.Once && len(items) > 1 {
			items = items[:1]
		}
		stamped := make(workflow.Items, len(items))
		for k, item := range items {
			item.PairedItem = workflow.PairedItems{{Item: k, Input: i}}
			stamped[k] = item
		}
		inputs[i] = stamped
	}
	return inputs
}

// resolve returns the items of a reference as they were stored; nil is "no
// data".
func (s *State) resolve(ref Ref) workflow.Items {
	switch {
	case ref.Null:
		return nil
	case ref.Empty:
		return workflow.Items{}
	case ref.Literal != nil:
		return ref.Literal
	}
	items, _ := s.Items(ref.Node, ref.Run, ref.Output)
	return items
}

// count is the number of items a reference leads to.
func (s *State) count(ref Ref) int { return len(s.resolve(ref)) }

// lineage is what a requester's tools inherit: the source that their items
// came from, and the index among its items.
type lineage struct {
	source *workflow.Source
	// item of a requester that is a tool itself: the item of the topmost
	// requester that all this is about. -1 for the topmost one.
	item int
}

// lineage of a requester (R6): the source of its own first input with data or,
// for a tool, what it inherited itself, so that $('Node').item leads to the
// same item at every depth.
func (s *State) lineage(requester *Entry) lineage {
	if requester.AsTool() {
		l := lineage{source: requester.Preserved}
		if item, ok := s.toolItem(requester); ok && len(item.PairedItem) > 0 {
			l.item = item.PairedItem[0].Item
		}
		return l
	}
	l := lineage{item: -1}
	if i := s.mainInput(requester); i < len(requester.Source) {
		l.source = requester.Source[i]
	}
	return l
}

// pair is the pairedItem of a tool's item made from the requester's item of
// that index.
func (l lineage) pair(itemIndex int) workflow.PairedItem {
	if l.item >= 0 {
		itemIndex = l.item
	}
	return workflow.PairedItem{Item: itemIndex, SourceOverwrite: l.source}
}

// mainInput is the index of the input a requester's items are taken from: the
// first with items.
func (s *State) mainInput(e *Entry) int {
	for i, ref := range e.Inputs {
		if s.count(ref) > 0 {
			return i
		}
	}
	return 0
}

// toolItem builds the input item of a tool entry whose round is open.
func (s *State) toolItem(e *Entry) (workflow.Item, bool) {
	a := s.Action(e)
	requester := s.resumes[*e.Caller]
	if a == nil || requester == nil {
		return workflow.Item{}, false
	}
	var base json.RawMessage
	index := a.Metadata.ItemIndex
	inputs := s.Inputs(requester)
	from := 0
	if !requester.AsTool() {
		from = s.mainInput(requester)
	}
	if from < len(inputs) && index >= 0 && index < len(inputs[from]) {
		base = inputs[from][index].JSON
	}
	id, _ := encode(map[string]string{"toolCallId": a.ID}) // cannot fail
	return workflow.Item{
		JSON:       overlay(overlay(base, a.Input), id),
		PairedItem: workflow.PairedItems{s.lineage(requester).pair(index)},
	}, true
}

// pair gives items without pairedItem one where it is certain, as n8n does. It
// stops at the first item it cannot tell.
func (t *tx) pair(e *Entry, outputs []workflow.Items) {
	counts := t.s.inputCounts(e)
	for o, items := range outputs {
		var own workflow.Items
		for i := range items {
			if items[i].PairedItem != nil {
				continue
			}
			var paired workflow.PairedItems
			switch {
			case len(counts) == 1 && counts[0] == 1:
				paired = workflow.Paired(0)
			case len(counts) == 1 && len(outputs) == 1 && len(items) == counts[0]:
				paired = workflow.Paired(i)
			case len(counts) == 1 && counts[0] > 1 && len(outputs) == 1 && len(items) == 1:
				paired = workflow.Paired(0)
			default:
				return
			}
			if own == nil {
				own = slices.Clone(items)
				outputs[o] = own
			}
			own[i].PairedItem = paired
		}
	}
}

// inputCounts is the number of items per main input of an entry.
func (s *State) inputCounts(e *Entry) []int {
	if e.AsTool() {
		return []int{1}
	}
	counts := make([]int, len(e.Inputs))
	for i, ref := range e.Inputs {
		counts[i] = s.count(ref)
		if e.Once {
			counts[i] = min(counts[i], 1)
		}
	}
	return counts
}

// alwaysOutput puts one empty item, made from all input items, on output 0.
func (t *tx) alwaysOutput(e *Entry, outputs []workflow.Items) []workflow.Items {
	paired := workflow.PairedItems{}
	if e.AsTool() {
		paired = workflow.Paired(0)
	} else {
		for input, n := range t.s.inputCounts(e) {
			for i := range n {
				paired = append(paired, workflow.PairedItem{Item: i, Input: input})
			}
		}
	}
	out := slices.Clone(outputs)
	if len(out) == 0 {
		out = []workflow.Items{nil}
	}
	out[0] = workflow.Items{{JSON: json.RawMessage("{}"), PairedItem: paired}}
	return out
}

// Runs is the number of runs of a node that have ended.
func (s *State) Runs(node string) int {
	runs := s.Run[node]
	for i := len(runs) - 1; i >= 0; i-- {
		if r := runs[i]; r != nil && r.Status != StatusRunning {
			return i + 1
		}
	}
	return 0
}

// Items of one main output of one run; ok is false when there is no such run.
func (s *State) Items(node string, run, output int) (items workflow.Items, ok bool) {
	r := s.Record(RunRef{node, run})
	if r == nil {
		return nil, false
	}
	if outputs := r.Data[workflow.Main]; output >= 0 && output < len(outputs) {
		items = outputs[output]
	}
	return items, true
}

// Sources of one run, per main input.
func (s *State) Sources(node string, run int) []*workflow.Source {
	if r := s.Record(RunRef{node, run}); r != nil {
		return r.Source
	}
	return nil
}
