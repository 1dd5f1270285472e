package core

import (
	"context"

	"github.com/tidwall/gjson"

	"github.com/reprise-engine/reprise/pkg/node"
	"github.com/reprise-engine/reprise/pkg/nodes/jsonobject"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// MergeOld is the first version of Merge: two inputs, flat merging.
func MergeOld() *node.Type {
	return &node.Type{
		Spec: workflow.Spec{
			Type: base + "merge", Versions: []float64{1},
			// It always waited for both.
			RequiredInputs: func(*workflow.Node) []int { return []int{0, 1} },
		},
		Inline:  true,
		Execute: executeMergeOld,
	}
}

func executeMergeOld(ctx context.Context, call *node.Call) (*node.Result, error) {
	mode, err := choice(ctx, call, 0, "mode", "append")
	if err != nil {
		return nil, err
	}
	left, right := call.Input(0), call.Input(1)
	flat := mergeOptions{prefer: -1}
	switch mode {
	case "append":
		return appendInputs(call), nil
	case "multiplex":
		return combineAll(call, flat), nil
	case "mergeByIndex":
		return mergeByIndex(ctx, call, flat)
	case "wait":
		return node.Outputs(workflow.Items{{JSON: []byte(`{}`), PairedItem: allOf(left, 0)}}), nil
	case "passThrough":
		output, err := choice(ctx, call, 0, "output", "input1")
		if err != nil {
			return nil, err
		}
		if output == "input2" {
			return passInput(call, 1), nil
		}
		return passInput(call, 0), nil
	case "mergeByKey", "keepKeyMatches", "removeKeyMatches":
	default:
		return nil, node.OperationError(0, "Merge mode '"+mode+"' is unknown", "Choose another mode in the node.")
	}
	key1, err := choice(ctx, call, 0, "propertyName1", "")
	if err != nil {
		return nil, err
	}
	key2, err := choice(ctx, call, 0, "propertyName2", "")
	if err != nil {
		return nil, err
	}
	p := pair(left, right, []match{{key1, key2}}, flat)
	switch mode {
	case "keepKeyMatches":
		return node.Outputs(p.leftItems(true)), nil
	case "removeKeyMatches":
		return node.Outputs(p.leftItems(false)), nil
	}
	overwrite, err := choice(ctx, call, 0, "overwrite", "always")
	if err != nil {
		return nil, err
	}
	return node.Outputs(p.overlaid(overwrite)), nil
}

// overlaid gives every left item, with the fields of the last right item that
// matches it written over its own: all of them, those it lacks ("undefined"),
// or also those it has empty ("blank").
func (p pairing) overlaid(overwrite string) workflow.Items {
	var out workflow.Items
	for i, item := range p.left {
		if found := p.of[i]; len(found) > 0 {
			object := jsonobject.Parse(item.JSON)
			for _, m := range jsonobject.Parse(p.right[found[len(found)-1]].JSON).Members() {
				own := object.Get(m.Key)
				if overwrite == "always" || own == "" || overwrite == "blank" && emptyValue(own) {
					object.Set(m.Key, m.Value)
				}
			}
			item.JSON = object.JSON()
		}
		out = append(out, item)
	}
	return out
}

// mergeByIndex merges by position. An inner join ends with the shorter input, a
// left join with the first input, an outer join with the longer one.
func mergeByIndex(ctx context.Context, call *node.Call, o mergeOptions) (*node.Result, error) {
	join, err := resolve(ctx, call, 0, parameter(call, "join"), "join")
	if err != nil {
		return nil, err
	}
	left, right := call.Input(0), call.Input(1)
	count := len(left)
	switch {
	case join.Type == gjson.String && join.Str == "inner":
		count = min(len(left), len(right))
	case join.Type == gjson.String && join.Str == "outer":
		count = max(len(left), len(right))
	}
	var out workflow.Items
	for i := range count {
		var parts []part
		if i < len(left) {
			parts = append(parts, part{node.Passed(left[i], i, 0), 0})
		}
		if i < len(right) {
			parts = append(parts, part{node.Passed(right[i], i, 1), 1})
		}
		out = append(out, o.combine(parts))
	}
	return node.Outputs(out), nil
}
