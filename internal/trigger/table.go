package trigger

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// table finds the hook of a call.
type table struct {
	fixed   map[string][]*hook // by base and path
	dynamic map[string][]*hook // by base and number of segments
}

// newTable makes a table of hooks. Of two that would take the same calls the one that was
// activated first stays, the other is told in clashes.
func newTable(hooks []*hook) (t *table, clashes []string) {
	t = &table{fixed: map[string][]*hook{}, dynamic: map[string][]*hook{}}
	hooks = slices.Clone(hooks)
	slices.SortStableFunc(hooks, func(a, b *hook) int {
		return cmp.Or(cmp.Compare(a.activatedAt, b.activatedAt), strings.Compare(a.id, b.id))
	})
	taken := map[string]*hook{}
	for _, h := range hooks {
		clash := false
		for _, m := range h.methods {
			key := m + " " + h.base + h.shape()
			if other := taken[key]; other != nil {
				clashes = append(clashes, fmt.Sprintf("%s %s%s of node %q in workflow %q is taken by node %q in workflow %q",
					m, h.base, h.path, h.node.Name, h.id, other.node.Name, other.id))
				clash = true
			}
		}
		if clash {
			continue
		}
		for _, m := range h.methods {
			taken[m+" "+h.base+h.shape()] = h
		}
		if h.dynamic {
			key := fmt.Sprint(h.base, len(h.segments))
			t.dynamic[key] = append(t.dynamic[key], h)
		} else {
			t.fixed[h.base+h.path] = append(t.fixed[h.base+h.path], h)
		}
	}
	return t, clashes
}

// shape is the path without the names of its parameters: two of the same shape take the
// same calls.
func (h *hook) shape() string {
	if !h.dynamic {
		return h.path
	}
	shape := slices.Clone(h.segments)
	for i, s := range shape {
		if isParameter(s) {
			shape[i] = ":"
		}
	}
	return strings.Join(shape, "/")
}

// find returns the hook that a method and the decoded segments of a path reach, with the values of
// its parameters. Without one, methods lists those that the path does have.
func (t *table) find(method, base string, segments []string) (found *hook, params map[string]string, methods []string) {
	candidates := t.fixed[base+strings.Join(segments, "/")]
	if len(candidates) == 0 {
		for _, h := range t.dynamic[fmt.Sprint(base, len(segments))] {
			if h.matches(segments) {
				candidates = append(candidates, h)
			}
		}
		// The one with the most fixed segments goes first.
		slices.SortStableFunc(candidates, func(a, b *hook) int { return cmp.Compare(a.wild(), b.wild()) })
	}
	for _, h := range candidates {
		if slices.Contains(h.methods, method) {
			return h, h.values(segments), nil
		}
		methods = append(methods, h.methods...)
	}
	slices.Sort(methods)
	return nil, nil, slices.Compact(methods)
}

func (h *hook) matches(segments []string) bool {
	for i, s := range h.segments {
		if !isParameter(s) && s != segments[i] || isParameter(s) && segments[i] == "" {
			return false
		}
	}
	return true
}

func (h *hook) wild() int {
	n := 0
	for _, s := range h.segments {
		if isParameter(s) {
			n++
		}
	}
	return n
}

func (h *hook) values(segments []string) map[string]string {
	values := map[string]string{}
	for i, s := range h.segments {
		if isParameter(s) {
			values[s[1:]] = segments[i]
		}
	}
	return values
}
