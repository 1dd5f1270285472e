package expression

import (
	"fmt"

	"github.com/reprise-engine/reprise/pkg/workflow"
)

// place is where an item lies in run data.
type place struct {
	node              string
	run, output, item int
}

// paired returns the item of a node from which input item index was made, over
// however many nodes: $('X').item.
func (s *Scope) paired(target string, index int) (workflow.Item, error) {
	if err := s.exists(target); err != nil {
		return workflow.Item{}, err
	}
	item, ok := s.inputItem(index)
	if !ok && len(s.Inputs) > 0 {
		return workflow.Item{}, s.intermediate(target)
	}
	if s.runs(target) == 0 {
		if s.Ancestors == nil || contains(s.Ancestors, target) {
			return workflow.Item{}, notExecuted(target)
		}
		return workflow.Item{}, noConnection(target)
	}
	t := &tracer{scope: s, target: target, known: map[place]*traced{}}
	start := item.PairedItem
	if len(start) == 0 {
		start = workflow.Paired(index)
	}
	found := t.follow(start, s.Sources)
	if found.err != nil {
		return workflow.Item{}, found.err
	}
	if found.place == nil {
		return workflow.Item{}, noConnection(target)
	}
	items, _ := s.RunData.Items(found.place.node, found.place.run, found.place.output)
	return items[found.place.item], nil
}

// traced is what a trace leads to: a place, an error, or neither when it ends
// at a trigger without passing the target.
type traced struct {
	place *place
	err   error
}

type tracer struct {
	scope  *Scope
	target string
	// known keeps a trace from walking a branch twice; an entry in work is
	// empty, so a circle ends.
	known map[place]*traced
}

// follow walks every link of an item; they must lead to one place.
func (t *tracer) follow(links workflow.PairedItems, sources []*workflow.Source) traced {
	var result traced
	for _, link := range links {
		source := link.SourceOverwrite
		if source == nil {
			if link.Input < 0 || link.Input >= len(sources) {
				continue
			}
			source = sources[link.Input]
		}
		if source == nil {
			continue
		}
		found := t.at(place{source.PreviousNode, source.PreviousNodeRun, source.PreviousNodeOutput, link.Item})
		switch {
		case found.place == nil:
			if found.err != nil && result.err == nil {
				result.err = found.err
			}
		case result.place == nil:
			result.place = found.place
		case *result.place != *found.place:
			return traced{err: multipleMatches(t.target)}
		}
	}
	if result.place != nil {
		result.err = nil
	}
	return result
}

func (t *tracer) at(p place) traced {
	if known := t.known[p]; known != nil {
		return *known
	}
	t.known[p] = &traced{}
	found := t.look(p)
	t.known[p] = &found
	return found
}

func (t *tracer) look(p place) traced {
	items, ok := t.scope.RunData.Items(p.node, p.run, p.output)
	if !ok || p.item < 0 || p.item >= len(items) {
		return traced{err: invalidInfo(p.node)}
	}
	if p.node == t.target {
		return traced{place: &p}
	}
	sources := t.scope.RunData.Sources(p.node, p.run)
	links := items[p.item].PairedItem
	if len(links) == 0 {
		if !anySource(sources) {
			return traced{} // a trigger: the walk ends
		}
		return traced{err: noInfo(p.node)}
	}
	return t.follow(links, sources)
}

func anySource(sources []*workflow.Source) bool {
	for _, s := range sources {
		if s != nil {
			return true
		}
	}
	return false
}

func contains(list []string, name string) bool {
	for _, s := range list {
		if s == name {
			return true
		}
	}
	return false
}

const linkingDocs = `<a target="_blank" href="https://docs.n8n.io/data/data-mapping/data-item-linking/item-linking-errors/">More info</a>`

func noConnection(target string) error {
	return &Error{
		Message:     "Invalid expression",
		Description: fmt.Sprintf("The expression uses data of the node '%s', but there is no path from it to this node. %s", target, linkingDocs),
		Type:        "paired_item_no_connection",
	}
}

func (s *Scope) intermediate(target string) error {
	here := ""
	if s.Node != nil {
		here = s.Node.Name
	}
	return &Error{
		Message:     "Can’t get data for expression",
		Description: fmt.Sprintf("Some intermediate nodes between ‘<strong>%s</strong>‘ and  ‘<strong>%s</strong>‘ have not executed yet.", target, here),
		Type:        "paired_item_intermediate_nodes",
	}
}

func noInfo(node string) error {
	return &Error{
		Message:     fmt.Sprintf("Paired item data for item from node '%s' is unavailable. Ensure '%s' is providing the required output.", node, node),
		Description: "An item of that node does not say which of its input items it was made from (pairedItem). " + linkingDocs,
		Type:        "paired_item_no_info",
	}
}

func invalidInfo(node string) error {
	return &Error{
		Message:     fmt.Sprintf("Paired item data for item from node '%s' points to an item that doesn't exist", node),
		Description: "Check the pairedItem of the items that the nodes after it return. " + linkingDocs,
		Type:        "paired_item_invalid_info",
	}
}

func multipleMatches(target string) error {
	return &Error{
		Message:     fmt.Sprintf("Multiple matching items for expression: more than one item of node '%s' belongs to this one", target),
		Description: fmt.Sprintf("Use $('%s').first(), .last() or .all()[index] to say which one is meant. %s", target, linkingDocs),
		Type:        "paired_item_multiple_matches",
	}
}
