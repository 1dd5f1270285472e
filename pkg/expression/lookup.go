package expression

import (
	"encoding/json"
	"fmt"

	"github.com/reprise-engine/reprise/pkg/workflow"
)

// exists fails for a node that the workflow does not have.
func (s *Scope) exists(name string) error {
	if _, ok := s.Nodes[name]; ok || s.Nodes == nil || s.runs(name) > 0 {
		return nil
	}
	return &Error{
		Message:     "Referenced node doesn't exist",
		Description: fmt.Sprintf("The node '%s' is used here, but the workflow has no node of that name", name),
	}
}

func (s *Scope) runs(name string) int {
	if s.RunData == nil {
		return 0
	}
	return s.RunData.Runs(name)
}

func notExecuted(name string) error {
	return &Error{
		Message:     fmt.Sprintf("Node '%s' hasn't been executed", name),
		Description: fmt.Sprintf("An expression references the node '%s', but it hasn't been executed yet", name),
		Type:        "no_execution_data",
	}
}

// nodeItems returns an output of a node. branch -1 is the output through which
// the node leads here, run -1 the last run that has data.
func (s *Scope) nodeItems(name string, branch, run int) (workflow.Items, error) {
	if err := s.exists(name); err != nil {
		return nil, err
	}
	runs := s.runs(name)
	if runs == 0 {
		return nil, notExecuted(name)
	}
	output := branch
	if branch < 0 {
		output = s.outputTowards(name)
	}
	if run >= runs {
		return nil, &Error{Message: fmt.Sprintf("Run %d of node %q not found", run, name)}
	}
	if run >= 0 {
		if items, ok := s.RunData.Items(name, run, output); ok {
			return items, nil
		}
		return s.missingBranch(name, branch, run)
	}
	for r := runs - 1; r >= 0; r-- {
		if items, ok := s.RunData.Items(name, r, output); ok {
			return items, nil
		}
	}
	return s.missingBranch(name, branch, runs-1)
}

// missingBranch: only an output that was asked for by number is an error.
func (s *Scope) missingBranch(name string, branch, run int) (workflow.Items, error) {
	if branch < 0 {
		items, _ := s.RunData.Items(name, run, 0)
		return items, nil
	}
	return nil, &Error{Message: fmt.Sprintf("Node %q has no branch with index %d.", name, branch)}
}

// outputTowards is the output of a node through which data came here, 0 when
// it did not come from there.
func (s *Scope) outputTowards(name string) int {
	for _, source := range s.Sources {
		if source != nil && source.PreviousNode == name {
			return source.PreviousNodeOutput
		}
	}
	seen := map[string]bool{}
	queue := append([]*workflow.Source(nil), s.Sources...)
	for len(queue) > 0 && s.RunData != nil {
		source := queue[0]
		queue = queue[1:]
		if source == nil || seen[source.PreviousNode] {
			continue
		}
		if source.PreviousNode == name {
			return source.PreviousNodeOutput
		}
		seen[source.PreviousNode] = true
		queue = append(queue, s.RunData.Sources(source.PreviousNode, source.PreviousNodeRun)...)
	}
	return 0
}

// input is the input of the node that expressions read: the first.
func (s *Scope) input() workflow.Items {
	if len(s.Inputs) == 0 {
		return nil
	}
	return s.Inputs[0]
}

func (s *Scope) inputItem(index int) (workflow.Item, bool) {
	items := s.input()
	if index < 0 || index >= len(items) {
		return workflow.Item{}, false
	}
	return items[index], true
}

// legacy is the item that $node["X"] reads: the one with the same index.
func (s *Scope) legacy(name string, index int) (workflow.Item, error) {
	items, err := s.nodeItems(name, -1, -1)
	if err != nil {
		return workflow.Item{}, err
	}
	if index < 0 || index >= len(items) {
		return workflow.Item{}, &Error{
			Message: fmt.Sprintf("No data found for item-index: %q", fmt.Sprint(index)),
			Type:    "no_execution_data",
		}
	}
	return items[index], nil
}

// pick returns the item that first() or last() means.
func pick(items workflow.Items, which string) (workflow.Item, bool) {
	if len(items) == 0 {
		return workflow.Item{}, false
	}
	if which == "last" {
		return items[len(items)-1], true
	}
	return items[0], true
}

// marshalItem writes an item as scripts see it.
func marshalItem(item workflow.Item) json.RawMessage {
	raw := append([]byte(`{"json":`), orEmpty(item.JSON)...)
	if len(item.Binary) > 0 {
		b, _ := json.Marshal(item.Binary)
		raw = append(append(raw, `,"binary":`...), b...)
	}
	if item.PairedItem != nil {
		b, _ := json.Marshal(item.PairedItem)
		raw = append(append(raw, `,"pairedItem":`...), b...)
	}
	if len(item.Error) > 0 {
		raw = append(append(raw, `,"error":`...), item.Error...)
	}
	return append(raw, '}')
}

func orEmpty(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 {
		return json.RawMessage("{}")
	}
	return raw
}

func marshalItems(items workflow.Items) json.RawMessage {
	size := 2
	for i := range items {
		size += len(items[i].JSON) + 48 // most have a lineage and no files
	}
	raw := append(make([]byte, 0, size), '[')
	for i, item := range items {
		if i > 0 {
			raw = append(raw, ',')
		}
		raw = append(raw, marshalItem(item)...)
	}
	return append(raw, ']')
}
