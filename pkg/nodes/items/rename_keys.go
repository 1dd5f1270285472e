package items

import (
	"context"
	"fmt"
	"regexp"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/reprise-engine/reprise/pkg/node"
	"github.com/reprise-engine/reprise/pkg/nodes/jsonobject"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// RenameKeys gives fields other names, one by one or by a pattern.
func RenameKeys() *node.Type {
	return &node.Type{
		Spec:    workflow.Spec{Type: base + "renameKeys", Versions: []float64{1}},
		Inline:  true,
		Execute: renameKeys,
	}
}

// replacement renames the keys that a pattern matches.
type replacement struct {
	pattern *regexp.Regexp
	with    string // as Go writes it
	depth   int    // of the objects to rename in: 0 the top level only, below it all
}

func renameKeys(ctx context.Context, call *node.Call) (*node.Result, error) {
	var out workflow.Items
	for i, item := range call.Input(0) {
		renamed, err := renamed(ctx, call, i, item)
		if err != nil {
			if !call.Survives(ctx, err) {
				return nil, err
			}
			renamed = node.ErrorItem(err.Error(), workflow.Paired(i))
		}
		out = append(out, renamed)
	}
	return node.Outputs(out), nil
}

func renamed(ctx context.Context, call *node.Call, i int, item workflow.Item) (workflow.Item, error) {
	object := jsonobject.Parse(item.JSON)
	keys, err := value(ctx, call, i, "keys.key")
	if err != nil {
		return item, err
	}
	for _, row := range keys.Array() {
		from, to := row.Get("currentKey").String(), row.Get("newKey").String()
		if from == "" || to == "" || from == to {
			continue
		}
		content := object.GetPath(from)
		if content == "" {
			continue
		}
		object.DeletePath(from)
		object.SetPath(to, content)
	}
	replacements, err := readReplacements(ctx, call, i)
	if err != nil {
		return item, err
	}
	text := object.String()
	for _, r := range replacements {
		text = r.rename(text, r.depth)
	}
	return workflow.Item{JSON: []byte(text), Binary: item.Binary, PairedItem: workflow.Paired(i)}, nil
}

func readReplacements(ctx context.Context, call *node.Call, i int) ([]replacement, error) {
	rows, err := value(ctx, call, i, "additionalOptions.regexReplacement.replacements")
	if err != nil {
		return nil, err
	}
	var list []replacement
	for _, row := range rows.Array() {
		search := row.Get("searchRegex").String()
		if search == "" {
			continue
		}
		r := replacement{with: goTemplate(row.Get("replaceRegex").String()), depth: -1}
		prefix := ""
		if row.Get("options.caseInsensitive").Bool() {
			prefix = "(?i)"
		}
		if r.pattern, err = regexp.Compile(prefix + search); err != nil {
			return nil, node.OperationError(i, fmt.Sprintf("The regular expression '%s' cannot be used: %v", search, err),
				"Look-around and back references are not supported here; use a Code node for them.")
		}
		if depth := row.Get("options.depth"); depth.Exists() {
			if depth.Type != gjson.Number {
				return nil, node.OperationError(i, "The max depth '"+depth.String()+"' is not a number", "Enter -1 for all levels, 0 for the top level only.")
			}
			r.depth = int(depth.Num)
		}
		list = append(list, r)
	}
	return list, nil
}

// rename renames the keys in a JSON text. Lists count as a level.
func (r replacement) rename(raw string, depth int) string {
	switch {
	case strings.HasPrefix(raw, "["):
		var elements []string
		for _, element := range gjson.Parse(raw).Array() {
			if depth != 0 {
				elements = append(elements, r.rename(element.Raw, depth-1))
			} else {
				elements = append(elements, element.Raw)
			}
		}
		return list(elements)
	case strings.HasPrefix(raw, "{"):
		var object jsonobject.Object
		for _, m := range jsonobject.Parse(raw).Members() {
			content := m.Value
			if depth != 0 {
				content = r.rename(content, depth-1)
			}
			object.Set(r.newKey(m.Key), content)
		}
		return object.String()
	}
	return raw
}

// newKey replaces the first match in a key.
func (r replacement) newKey(key string) string {
	at := r.pattern.FindStringSubmatchIndex(key)
	if at == nil {
		return key
	}
	return key[:at[0]] + string(r.pattern.ExpandString(nil, r.with, key, at)) + key[at[1]:]
}

var scriptReference = regexp.MustCompile(`\$(\$|&|\d{1,2}|<\w+>)`)

// goTemplate writes the references of a JavaScript replacement ($1, $&, $<name>)
// as Go has them. Any other $ is a $.
func goTemplate(with string) string {
	var b strings.Builder
	rest := 0
	for _, at := range scriptReference.FindAllStringSubmatchIndex(with, -1) {
		b.WriteString(strings.ReplaceAll(with[rest:at[0]], "$", "$$"))
		switch name := with[at[2]:at[3]]; name {
		case "$":
			b.WriteString("$$")
		case "&":
			b.WriteString("${0}")
		default:
			b.WriteString("${" + strings.Trim(name, "<>") + "}")
		}
		rest = at[1]
	}
	b.WriteString(strings.ReplaceAll(with[rest:], "$", "$$"))
	return b.String()
}
