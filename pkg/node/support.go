package node

import (
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/reprise-engine/reprise/pkg/workflow"
)

// Support says which settings of a type are honoured, for the documentation and for
// whoever asks whether a workflow can run. It is read by no node code. The zero value
// says nothing.
type Support struct {
	// Options are the members of the parameter "options" that are honoured; nil is not
	// declared, empty is none.
	Options []string
	// Ignored are members of "options" that change nothing here, by name, with the reason.
	Ignored map[string]string
	// Limits are settings with which a node of the type fails, or cannot do what it should.
	Limits []Limit
	// Credentials are the types of credentials that can be used; nil is not declared.
	Credentials []string
	// Note is a sentence for the documentation.
	Note string
}

// Limit is a setting that is not supported.
type Limit struct {
	// Parameter is its dotted path, as in "options.ipWhitelist".
	Parameter string
	// Values that are not supported; nil is any but none, "", false and [].
	Values []string
	// When are parameters that must have these values for the limit to count; nil is always.
	When map[string]string
	// Advice says what to do, as a sentence without a full stop.
	Advice string
}

// Hit returns the value with which a node is beyond the limit. A value that is an
// expression is only known when the node runs, and is within it.
func (l Limit) Hit(n *workflow.Node) (value string, ok bool) {
	for path, value := range l.When {
		if gjson.GetBytes(n.Parameters, path).String() != value {
			return "", false
		}
	}
	found := gjson.GetBytes(n.Parameters, l.Parameter)
	if !found.Exists() || found.Type == gjson.Null || strings.HasPrefix(found.Str, "=") {
		return "", false
	}
	value = found.String()
	if l.Values != nil {
		return value, slices.Contains(l.Values, value)
	}
	switch value {
	case "", "false", "none", "[]", "{}":
		return "", false
	}
	return value, true
}

// UnknownOptions are the members of a node's "options" that its type does not honour,
// in the order of the file; none when that is not declared.
func (s *Support) UnknownOptions(n *workflow.Node) []string {
	if s.Options == nil {
		return nil
	}
	var unknown []string
	gjson.GetBytes(n.Parameters, "options").ForEach(func(key, _ gjson.Result) bool {
		if !slices.Contains(s.Options, key.Str) {
			unknown = append(unknown, key.Str)
		}
		return true
	})
	return unknown
}

// Supporting sets the Support of types by their names, and returns them. It panics for a name
// that none of them has, which is a mistake of the program.
func Supporting(types []*Type, by map[string]Support) []*Type {
	used := map[string]bool{}
	for _, t := range types {
		if s, ok := by[t.Type]; ok {
			t.Support, used[t.Type] = s, true
		}
	}
	for name := range by {
		if !used[name] {
			panic("node: Support of " + name + ", which is not among the types")
		}
	}
	return types
}
