package core

import (
	"context"
	"strconv"
	"strings"

	"github.com/reprise-engine/reprise/pkg/node"
	"github.com/reprise-engine/reprise/pkg/nodes/jsonobject"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// mergeOptions say how the fields of items become those of one.
type mergeOptions struct {
	prefer       int  // the input that wins a clash, from 0; -1 is the last
	suffix       bool // keep both of a clash, as a_1 and a_2
	deep         bool // merge objects that clash, too
	keepNonEmpty bool // null and "" do not win a clash
	unpaired     bool
	firstOnly    bool
	fuzzy        bool
	literalKeys  bool
}

func readMergeOptions(ctx context.Context, call *node.Call) (mergeOptions, error) {
	o := mergeOptions{prefer: -1}
	clash, err := choice(ctx, call, 0, "options.clashHandling.values.resolveClash", "")
	if err != nil {
		return o, err
	}
	o.suffix = clash == "addSuffix"
	if n, err := strconv.Atoi(strings.TrimPrefix(clash, "preferInput")); err == nil {
		o.prefer = n - 1
	} else if clash == "" && parameter(call, "joinMode").Str == "enrichInput2" {
		o.prefer = 0
	}
	mode, err := choice(ctx, call, 0, "options.clashHandling.values.mergeMode", "deepMerge")
	if err != nil {
		return o, err
	}
	o.deep = !strings.HasPrefix(mode, "shallow")
	matches, err := choice(ctx, call, 0, "options.multipleMatches", "all")
	if err != nil {
		return o, err
	}
	o.firstOnly = matches == "first"
	for path, target := range map[string]*bool{
		"options.clashHandling.values.overrideEmpty": &o.keepNonEmpty,
		"options.includeUnpaired":                    &o.unpaired,
		"options.fuzzyCompare":                       &o.fuzzy,
		"options.disableDotNotation":                 &o.literalKeys,
	} {
		if *target, err = flag(ctx, call, 0, path, false); err != nil {
			return o, err
		}
	}
	return o, nil
}

func emptyValue(value string) bool { return value == "null" || value == `""` }

// part is an item to be merged and where it came from.
type part struct {
	item  workflow.Item
	input int
}

// combine makes one item of several, given in the order of their inputs.
func (o mergeOptions) combine(parts []part) workflow.Item {
	var item workflow.Item
	var object jsonobject.Object
	if o.suffix {
		for _, p := range parts {
			for _, m := range jsonobject.Parse(p.item.JSON).Members() {
				object.Set(m.Key+"_"+strconv.Itoa(p.input+1), m.Value)
			}
			item.PairedItem = append(item.PairedItem, p.item.PairedItem...)
			for name, file := range p.item.Binary {
				addFile(&item, name+"_"+strconv.Itoa(p.input+1), file)
			}
		}
		item.JSON = object.JSON()
		return item
	}
	skip := emptyValue
	if !o.keepNonEmpty {
		skip = nil
	}
	for _, p := range o.order(parts) {
		object.Overlay(jsonobject.Parse(p.item.JSON), o.deep, skip)
		item.PairedItem = append(item.PairedItem, p.item.PairedItem...)
		for name, file := range p.item.Binary {
			addFile(&item, name, file)
		}
	}
	item.JSON = object.JSON()
	return item
}

// order puts the preferred input last, where it overwrites the others.
func (o mergeOptions) order(parts []part) []part {
	sorted := make([]part, 0, len(parts))
	for _, p := range parts {
		if p.input != o.prefer {
			sorted = append(sorted, p)
		}
	}
	for _, p := range parts {
		if p.input == o.prefer {
			sorted = append(sorted, p)
		}
	}
	return sorted
}

func addFile(item *workflow.Item, name string, file workflow.Binary) {
	if item.Binary == nil {
		item.Binary = map[string]workflow.Binary{}
	}
	item.Binary[name] = file
}

// combineByPosition merges the first items of all inputs, the second ones, and
// so on.
func combineByPosition(call *node.Call, o mergeOptions) *node.Result {
	shortest, longest := -1, 0
	for n := range inputCount(call) {
		length := len(call.Input(n))
		longest = max(longest, length)
		if shortest < 0 || length < shortest {
			shortest = length
		}
	}
	count := shortest
	if o.unpaired {
		count = longest
	}
	var out workflow.Items
	for i := range count {
		var parts []part
		for n := range inputCount(call) {
			if items := call.Input(n); i < len(items) {
				parts = append(parts, part{node.Passed(items[i], i, n), n})
			}
		}
		out = append(out, o.combine(parts))
	}
	return node.Outputs(out)
}

// combineAll merges each item of the first input with each of the second.
func combineAll(call *node.Call, o mergeOptions) *node.Result {
	var out workflow.Items
	for i, left := range call.Input(0) {
		for j, right := range call.Input(1) {
			out = append(out, o.combine([]part{{node.Passed(left, i, 0), 0}, {node.Passed(right, j, 1), 1}}))
		}
	}
	return node.Outputs(out)
}
