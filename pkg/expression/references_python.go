package expression

import (
	"encoding/json"
	"regexp"
	"strings"
)

// What Python reads of other nodes: _("X"), _node["X"], _node.X. Comments and texts are searched too:
// a node more is carried along.
var (
	pythonCall    = regexp.MustCompile(`(?:^|[^\w.])_\s*\(\s*(?:"((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)')?\s*(\)?)`)
	pythonNode    = regexp.MustCompile(`(?:^|[^\w.])_node\b\s*(?:\[\s*(?:"((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)')\s*\]|\.\s*(\w+))?`)
	pythonLineage = regexp.MustCompile(`\.\s*(?:item|itemMatching)\b`)
	pythonRun     = regexp.MustCompile(`\.\s*(?:first|last|all)\s*\(\s*[^)\s]`)
)

// isPython reports whether parameters are those of a Code node in Python.
func isPython(parameters json.RawMessage) bool {
	var language string
	members(parameters, func(key, value []byte) bool {
		if decodeString(key) == "language" && len(value) > 0 && value[0] == '"' {
			language = decodeString(value)
		}
		return true
	})
	return strings.HasPrefix(strings.ToLower(language), "python")
}

func (f *finder) scanPython(source string) {
	found := false
	for _, m := range pythonCall.FindAllStringSubmatch(source, -1) {
		found = true
		if m[1]+m[2] == "" || m[3] == "" { // computed
			f.found.All, f.found.AllRuns = true, true
			continue
		}
		f.nodes[unescapePython(m[1]+m[2])] = true
	}
	for _, m := range pythonNode.FindAllStringSubmatch(source, -1) {
		found = true
		if name := m[1] + m[2] + m[3]; name != "" {
			f.nodes[unescapePython(name)] = true
		} else {
			f.found.All = true
		}
	}
	if found {
		f.found.Lineage = f.found.Lineage || pythonLineage.MatchString(source)
		f.found.AllRuns = f.found.AllRuns || pythonRun.MatchString(source)
	}
}

var pythonEscape = regexp.MustCompile(`\\(.)`)

// unescapePython is the text of a Python literal, as far as names of nodes need it.
func unescapePython(literal string) string { return pythonEscape.ReplaceAllString(literal, "$1") }
