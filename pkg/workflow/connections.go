package workflow

import (
	"fmt"

	"github.com/tidwall/gjson"
)

// maxIndex bounds the outputs and inputs of a node, so that a link to input
// 2,000,000,000 costs no memory. A Switch has some dozens.
const maxIndex = 4096

// decodeConnections fills out and in, in file order: the order in which an
// Agent shows its tools, and v0 runs the children of a node, is that of the
// connections object.
func (w *Workflow) decodeConnections(v gjson.Result) {
	v = unquoted(v)
	if !v.IsObject() {
		if v.Type != gjson.Null && v.Raw != "[]" {
			w.problem(SeverityError, "", "connections", "is %s, want an object by node name", describe(v))
		}
		return
	}
	notes := map[string]bool{}
	for _, n := range w.Notes {
		notes[n.Name] = true
	}
	v.ForEach(func(key, byType gjson.Result) bool {
		source := key.Str
		switch {
		case w.byName[source] == nil:
			if !notes[source] && linked(byType) {
				w.problem(SeverityWarning, source, "connections", "there is no node of this name; its connections are ignored%s", w.hint(source))
			}
		case byType.IsObject():
			byType.ForEach(func(connType, outputs gjson.Result) bool {
				w.decodeOutputs(source, connType.Str, outputs, notes)
				return true
			})
		case byType.Type != gjson.Null && byType.Raw != "[]":
			w.problem(SeverityError, source, "connections", "is %s, want an object by connection type", describe(byType))
		}
		return true
	})
}

func (w *Workflow) decodeOutputs(source, connType string, outputs gjson.Result, notes map[string]bool) {
	field := "connections." + connType
	if !outputs.IsArray() {
		if outputs.Type != gjson.Null {
			w.problem(SeverityError, source, field, "is %s, want a list by output", describe(outputs))
		}
		return
	}
	output := 0
	outputs.ForEach(func(_, slot gjson.Result) bool {
		at := fmt.Sprintf("%s[%d]", field, output)
		switch {
		case output >= maxIndex:
			w.problem(SeverityError, source, field, "has more than %d outputs", maxIndex)
			return false
		case slot.IsArray():
			slot.ForEach(func(_, link gjson.Result) bool {
				w.decodeLink(source, connType, output, at, link, notes)
				return true
			})
		case slot.Type != gjson.Null:
			w.problem(SeverityError, source, at, "is %s, want a list of links", describe(slot))
		}
		output++
		return true
	})
}

func (w *Workflow) decodeLink(source, connType string, output int, at string, link gjson.Result, notes map[string]bool) {
	if link.Type == gjson.Null {
		return
	}
	target := Target{Node: text(link.Get("node")), Type: text(link.Get("type"))}
	if !link.IsObject() || target.Node == "" {
		w.problem(SeverityError, source, at, "has a link that names no node: %s", clip(link.Raw, 60))
		return
	}
	if target.Type == "" {
		target.Type = connType
	}
	index, ok := integer(link.Get("index"))
	if !ok || index < 0 || index >= maxIndex {
		w.problem(SeverityError, source, at, "links to input %s of %q, want a number from 0", clip(link.Get("index").Raw, 40), target.Node)
		return
	}
	target.Index = index
	w.out[source] = put(w.out[source], connType, output, target)
	switch {
	case w.byName[target.Node] != nil:
		w.in[target.Node] = put(w.in[target.Node], target.Type, index, Origin{Node: source, Output: output})
	case !notes[target.Node]:
		w.problem(SeverityWarning, source, at, "links to %q, which is not in the workflow; it fails if the run comes there%s", target.Node, w.hint(target.Node))
	}
}

// put appends v at m[connType][index] and makes room for it.
func put[T any](m map[string][][]T, connType string, index int, v T) map[string][][]T {
	if m == nil {
		m = map[string][][]T{}
	}
	slots := m[connType]
	for len(slots) <= index {
		slots = append(slots, nil)
	}
	slots[index] = append(slots[index], v)
	m[connType] = slots
	return m
}

// linked reports whether there is any link in a node's connections.
func linked(byType gjson.Result) bool {
	found := false
	byType.ForEach(func(_, outputs gjson.Result) bool {
		outputs.ForEach(func(_, slot gjson.Result) bool {
			slot.ForEach(func(_, link gjson.Result) bool {
				found = found || link.IsObject()
				return !found
			})
			return !found
		})
		return !found
	})
	return found
}

// hint explains a name that is no node but the id of one.
func (w *Workflow) hint(name string) string {
	for _, n := range w.Nodes {
		if n.ID == name {
			return fmt.Sprintf(" (it is the id of %q; connections go by name)", n.Name)
		}
	}
	return ""
}
