package items

import (
	"context"
	"fmt"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/reprise-engine/reprise/pkg/node"
	"github.com/reprise-engine/reprise/pkg/nodes/jsonobject"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// Summarize counts, adds up and collects values, for all items or for each
// group of them, as a pivot table does.
func Summarize() *node.Type {
	return &node.Type{
		Spec:   workflow.Spec{Type: base + "summarize", Versions: []float64{1, 1.1}},
		Inline: true,
		Execute: func(ctx context.Context, call *node.Call) (*node.Result, error) {
			return summarize(ctx, call, call.Node.TypeVersion < 1.1)
		},
	}
}

// summary is how items are summarized.
type summary struct {
	fields       []summarized
	by           []string
	dots         bool
	skipEmpty    bool // items that lack a field to group by are left out
	single       bool // all groups in one item
	continueOnly bool // a field that no item has is no error
}

// group is the items that share the values of the fields to group by.
type group struct {
	values []string // of the fields to group by, "" for none
	items  []int
}

func summarize(ctx context.Context, call *node.Call, fieldRequired bool) (*node.Result, error) {
	s, err := readSummary(ctx, call)
	if err != nil {
		return nil, err
	}
	items := call.Input(0)
	sources := make([]jsonobject.Object, len(items))
	for i, item := range items {
		sources[i] = jsonobject.Parse(item.JSON)
	}
	var missing []string
	for _, f := range s.fields {
		if !s.inSome(sources, f.field) {
			missing = append(missing, f.field)
		}
	}
	if len(missing) > 0 && fieldRequired {
		if s.continueOnly {
			return node.Outputs(workflow.Items{{JSON: []byte(`{}`), PairedItem: workflow.PairedWithAll(len(items))}}), nil
		}
		return nil, node.OperationError(-1, "The field '"+missing[0]+"' does not exist in any items", nestedAdvice(missing[0], s.dots))
	}
	groups := s.groups(sources)
	var result *node.Result
	if s.single {
		result = node.Outputs(workflow.Items{s.singleItem(sources, groups)})
	} else {
		out := make(workflow.Items, 0, len(groups))
		for _, g := range groups {
			object := s.summaryOf(sources, g)
			for n, field := range s.by {
				object.Set(normalized(field), g.values[n])
			}
			made := workflow.Item{JSON: object.JSON()}
			for _, i := range g.items {
				made.PairedItem = append(made.PairedItem, workflow.PairedItem{Item: i})
			}
			out = append(out, made)
		}
		result = node.Outputs(out)
	}
	for _, field := range missing {
		hint(result, "The field '"+field+"' does not exist in any items")
	}
	s.hintTexts(result, sources)
	return result, nil
}

func readSummary(ctx context.Context, call *node.Call) (s summary, err error) {
	rows, err := value(ctx, call, 0, "fieldsToSummarize.values")
	if err != nil {
		return s, err
	}
	for _, row := range rows.Array() {
		f, err := readSummarized(row)
		if err != nil {
			return s, err
		}
		if f.field != "" {
			s.fields = append(s.fields, f)
		}
	}
	if len(s.fields) == 0 {
		return s, node.OperationError(-1, "You need to add at least one aggregation to 'Fields to Summarize' with non empty 'Field'", "")
	}
	if s.by, err = fieldNames(ctx, call, 0, "fieldsToSplitBy"); err != nil {
		return s, err
	}
	format, err := choice(ctx, call, 0, "options.outputFormat", "separateItems")
	if err != nil {
		return s, err
	}
	if format != "separateItems" && format != "singleItem" {
		return s, node.OperationError(-1, "The output format '"+format+"' is unknown", "Choose separateItems or singleItem.")
	}
	s.single = format == "singleItem"
	for path, target := range map[string]*bool{
		"options.skipEmptySplitFields": &s.skipEmpty, "options.continueIfFieldNotFound": &s.continueOnly,
	} {
		if *target, err = toggle(ctx, call, path); err != nil {
			return s, err
		}
	}
	s.dots, err = dotted(ctx, call)
	return s, err
}

func (s summary) inSome(sources []jsonobject.Object, field string) bool {
	for _, source := range sources {
		if get(source, field, s.dots) != "" {
			return true
		}
	}
	return false
}

// groups parts the items by the values of the fields to group by, in the order
// in which the values come, the first field first. Without such fields all
// items are one group.
func (s summary) groups(sources []jsonobject.Object) []*group {
	if len(s.by) == 0 {
		all := &group{}
		for i := range sources {
			all.items = append(all.items, i)
		}
		return []*group{all}
	}
	root := &groupNode{}
	for i, source := range sources {
		values := make([]string, len(s.by))
		skip := false
		for n, field := range s.by {
			values[n] = get(source, field, s.dots)
			skip = skip || s.skipEmpty && (isNothing(values[n]) || values[n] == `""`)
		}
		if !skip {
			root.add(values, 0, i)
		}
	}
	return root.leaves(nil)
}

// groupNode is a level of the grouping; a leaf has a group.
type groupNode struct {
	byValue  map[string]*groupNode
	children []*groupNode
	group    *group
}

func (n *groupNode) add(values []string, depth, item int) {
	if depth == len(values) {
		if n.group == nil {
			n.group = &group{values: values}
		}
		n.group.items = append(n.group.items, item)
		return
	}
	key := canonical(values[depth])
	next := n.byValue[key]
	if next == nil {
		if n.byValue == nil {
			n.byValue = map[string]*groupNode{}
		}
		next = &groupNode{}
		n.byValue[key] = next
		n.children = append(n.children, next)
	}
	next.add(values, depth+1, item)
}

func (n *groupNode) leaves(found []*group) []*group {
	if n.group != nil {
		return append(found, n.group)
	}
	for _, child := range n.children {
		found = child.leaves(found)
	}
	return found
}

// summaryOf has a field for each aggregation.
func (s summary) summaryOf(sources []jsonobject.Object, g *group) jsonobject.Object {
	var object jsonobject.Object
	for _, f := range s.fields {
		values := make([]string, len(g.items))
		for n, i := range g.items {
			values[n] = get(sources[i], f.field, s.dots)
		}
		object.Set(aggregations[f.kind]+"_"+normalized(f.field), f.of(values))
	}
	return object
}

// singleItem nests the summaries under the values of the fields to group by.
func (s summary) singleItem(sources []jsonobject.Object, groups []*group) workflow.Item {
	root := &nestedSummary{}
	for _, g := range groups {
		at := root
		for _, v := range g.values {
			at = at.under(groupName(v))
		}
		at.json = s.summaryOf(sources, g).String()
	}
	return workflow.Item{JSON: []byte(root.String()), PairedItem: workflow.PairedWithAll(len(sources))}
}

// nestedSummary is a summary, or summaries by a name.
type nestedSummary struct {
	json   string
	names  []string // in the order they came
	byName map[string]*nestedSummary
}

func (n *nestedSummary) under(name string) *nestedSummary {
	next := n.byName[name]
	if next == nil {
		if n.byName == nil {
			n.byName = map[string]*nestedSummary{}
		}
		next = &nestedSummary{}
		n.byName[name] = next
		n.names = append(n.names, name)
	}
	return next
}

func (n *nestedSummary) String() string {
	if n.json != "" {
		return n.json
	}
	var b strings.Builder
	b.WriteByte('{')
	for i, name := range n.names {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(quote(name))
		b.WriteByte(':')
		b.WriteString(n.byName[name].String())
	}
	b.WriteByte('}')
	return b.String()
}

// groupName is a value as a key.
func groupName(raw string) string {
	switch raw {
	case "":
		return "undefined"
	case "null":
		return raw
	}
	return text(raw)
}

// normalized is a field's path as a part of a key: a.b[0] becomes a_b0.
func normalized(field string) string {
	return strings.NewReplacer("[", "", "]", "", `"`, "", ".", "_", " ", "_").Replace(field)
}

// hintTexts remarks on numbers that were not counted because they are texts.
func (s summary) hintTexts(result *node.Result, sources []jsonobject.Object) {
	for _, f := range s.fields {
		if f.kind != "sum" && f.kind != "average" {
			continue
		}
		count := 0
		for _, source := range sources {
			raw := get(source, f.field, s.dots)
			if raw == "" {
				continue
			}
			found := gjson.Parse(raw)
			if _, ok := toNumber(found); ok && found.Type == gjson.String && strings.TrimSpace(found.Str) != "" {
				count++
			}
		}
		if count > 0 {
			hint(result, fmt.Sprintf("The field '%s' holds numbers as text in %d items, which do not count for '%s'. Convert them first.", f.field, count, f.kind))
		}
	}
}
