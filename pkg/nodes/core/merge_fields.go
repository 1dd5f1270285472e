package core

import (
	"context"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/reprise-engine/reprise/pkg/node"
	"github.com/reprise-engine/reprise/pkg/nodes/jsonobject"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// match is a pair of fields that must have the same value.
type match struct{ left, right string }

// pairing is the outcome of comparing two inputs.
type pairing struct {
	left, right workflow.Items
	// of holds, by item of the left input, the matching items of the right one.
	of      [][]int
	matched []bool // by item of the right input
}

// combineByFields joins two inputs like tables.
func combineByFields(ctx context.Context, call *node.Call, o mergeOptions) (*node.Result, error) {
	matches, err := fieldsToMatch(ctx, call)
	if err != nil {
		return nil, err
	}
	join, err := choice(ctx, call, 0, "joinMode", "keepMatches")
	if err != nil {
		return nil, err
	}
	from, err := choice(ctx, call, 0, "outputDataFrom", "both")
	if err != nil {
		return nil, err
	}
	p := pair(call.Input(0), call.Input(1), matches, o)
	switch join {
	case "keepMatches":
		switch from {
		case "input1":
			return node.Outputs(p.leftItems(true)), nil
		case "input2":
			return node.Outputs(p.rightItems(true)), nil
		}
		return node.Outputs(p.merged(o)), nil
	case "keepNonMatches":
		switch from {
		case "input1":
			return node.Outputs(p.leftItems(false)), nil
		case "input2":
			return node.Outputs(p.rightItems(false)), nil
		}
		return node.Outputs(append(marked(p.leftItems(false), "input1"), marked(p.rightItems(false), "input2")...)), nil
	case "keepEverything":
		return node.Outputs(append(append(p.merged(o), p.leftItems(false)...), p.rightItems(false)...)), nil
	case "enrichInput1":
		return node.Outputs(append(p.merged(o), p.leftItems(false)...)), nil
	case "enrichInput2":
		return node.Outputs(append(p.merged(o), p.rightItems(false)...)), nil
	}
	return nil, node.OperationError(0, "The output type '"+join+"' is unknown", "Choose another output type in the node.")
}

// fieldsToMatch reads the pairs of fields: since 3 either a list of names that
// are the same on both sides, or pairs; before, pairs.
func fieldsToMatch(ctx context.Context, call *node.Call) ([]match, error) {
	var matches []match
	simple := call.Node.TypeVersion >= 3
	if simple {
		advanced, err := flag(ctx, call, 0, "advanced", false)
		if err != nil {
			return nil, err
		}
		simple = !advanced
	}
	if simple {
		fields, err := resolve(ctx, call, 0, parameter(call, "fieldsToMatchString"), "fieldsToMatchString")
		if err != nil {
			return nil, err
		}
		for _, field := range names(fields) {
			matches = append(matches, match{field, field})
		}
	} else {
		pairs, err := resolve(ctx, call, 0, parameter(call, "mergeByFields.values"), "mergeByFields")
		if err != nil {
			return nil, err
		}
		for _, one := range pairs.Array() {
			if m := (match{one.Get("field1").String(), one.Get("field2").String()}); m.left != "" && m.right != "" {
				matches = append(matches, m)
			}
		}
	}
	if len(matches) == 0 {
		return nil, node.OperationError(0, "You need to define at least one pair of fields in \"Fields to Match\" to match on", "")
	}
	return matches, nil
}

func pair(left, right workflow.Items, matches []match, o mergeOptions) pairing {
	p := pairing{of: make([][]int, len(left)), matched: make([]bool, len(right))}
	byKey := map[string][]int{}
	for j, item := range right {
		p.right = append(p.right, node.Passed(item, j, 1))
		key, ok := matchKey(item, matches, o, func(m match) string { return m.right })
		if ok && (!o.firstOnly || len(byKey[key]) == 0) {
			byKey[key] = append(byKey[key], j)
		}
	}
	for i, item := range left {
		p.left = append(p.left, node.Passed(item, i, 0))
		key, ok := matchKey(item, matches, o, func(m match) string { return m.left })
		if !ok {
			continue
		}
		p.of[i] = byKey[key]
		for _, j := range byKey[key] {
			p.matched[j] = true
		}
	}
	return p
}

// matchKey is the text under which items match. An item that lacks a field
// matches none, unless the comparison is fuzzy.
func matchKey(item workflow.Item, matches []match, o mergeOptions, side func(match) string) (string, bool) {
	object := jsonobject.Parse(item.JSON)
	var key strings.Builder
	for _, m := range matches {
		var raw string
		if o.literalKeys {
			raw = object.Get(side(m))
		} else {
			raw = object.GetPath(side(m))
		}
		if raw == "" && !o.fuzzy {
			return "", false
		}
		key.WriteString(valueKey(gjson.Parse(raw), o.fuzzy))
		key.WriteByte(0)
	}
	return key.String(), true
}

// valueKey is equal for equal values. Fuzzy ones are equal, too, when they are
// a number and its text, or both empty.
func valueKey(value gjson.Result, fuzzy bool) string {
	if fuzzy {
		switch {
		case value.Type == gjson.Null, value.Type == gjson.False, value.String() == "",
			value.IsArray() && len(value.Array()) == 0,
			value.IsObject() && jsonobject.Parse(value.Raw).Len() == 0:
			return ""
		case value.Type == gjson.String:
			if f, ok := jsNumber(value.Str); ok {
				value = numberResult(formatNumber(f))
			}
		}
		if value.Type == gjson.Number && value.Num == 0 {
			return ""
		}
	}
	switch value.Type {
	case gjson.Number:
		return "n" + formatNumber(value.Num)
	case gjson.String:
		return "s" + value.Str
	}
	return compact(value.Raw)
}

// merged gives an item for each match.
func (p pairing) merged(o mergeOptions) workflow.Items {
	var out workflow.Items
	for i, left := range p.left {
		for _, j := range p.of[i] {
			out = append(out, o.combine([]part{{left, 0}, {p.right[j], 1}}))
		}
	}
	return out
}

func (p pairing) leftItems(matched bool) workflow.Items {
	var out workflow.Items
	for i, item := range p.left {
		if (len(p.of[i]) > 0) == matched {
			out = append(out, item)
		}
	}
	return out
}

func (p pairing) rightItems(matched bool) workflow.Items {
	var out workflow.Items
	for j, item := range p.right {
		if p.matched[j] == matched {
			out = append(out, item)
		}
	}
	return out
}

// marked notes in each item which input it is from.
func marked(items workflow.Items, source string) workflow.Items {
	for i := range items {
		object := jsonobject.Parse(items[i].JSON)
		object.Set("_source", jsonobject.Quote(source))
		items[i].JSON = object.JSON()
	}
	return items
}
