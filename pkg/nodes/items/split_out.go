package items

import (
	"context"
	"sort"
	"strconv"

	"github.com/tidwall/gjson"

	"github.com/reprise-engine/reprise/pkg/node"
	"github.com/reprise-engine/reprise/pkg/nodes/jsonobject"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// SplitOut makes an item of each element of a list.
func SplitOut() *node.Type {
	return &node.Type{
		Spec:   workflow.Spec{Type: base + "splitOut", Versions: []float64{1}},
		Inline: true,
		Execute: func(ctx context.Context, call *node.Call) (*node.Result, error) {
			return splitOut(ctx, call, splitRules{})
		},
	}
}

// splitRules are the differences of Item Lists' splitting.
type splitRules struct {
	fieldRequired bool // every item must have the field
	listRequired  bool // and it must be a list
}

// splitPlan is how one item is split.
type splitPlan struct {
	splitRules
	fields, destinations []string
	include              string
	others               []string // with include selectedOtherFields
	dots, files          bool
}

func splitOut(ctx context.Context, call *node.Call, rules splitRules) (*node.Result, error) {
	var out workflow.Items
	found := map[string]bool{} // by field: some item has it
	var order []string
	for i, item := range call.Input(0) {
		made, err := splitItem(ctx, call, rules, i, item, func(field string, has bool) {
			if _, known := found[field]; !known {
				order = append(order, field)
			}
			found[field] = found[field] || has
		})
		if err != nil {
			if !call.Survives(ctx, err) {
				return nil, err
			}
			made = workflow.Items{node.ErrorItem(err.Error(), workflow.Paired(i))}
		}
		out = append(out, made...)
	}
	result := node.Outputs(out)
	for _, field := range order {
		if !found[field] {
			hint(result, "The field '"+field+"' wasn't found in any input item")
		}
	}
	return result, nil
}

func splitItem(ctx context.Context, call *node.Call, rules splitRules, i int, item workflow.Item, seen func(field string, has bool)) (workflow.Items, error) {
	plan, err := readSplitPlan(ctx, call, rules, i)
	if err != nil {
		return nil, err
	}
	source := jsonobject.Parse(item.JSON)
	var parts []splitPart
	part := func(n int) *splitPart {
		for len(parts) <= n {
			parts = append(parts, splitPart{})
		}
		return &parts[n]
	}
	for f, field := range plan.fields {
		if field == "$binary" {
			for n, name := range fileNames(item) {
				part(n).file = name
			}
			continue
		}
		content := get(source, field, plan.dots)
		seen(field, content != "")
		elements, err := plan.elements(i, field, content)
		if err != nil {
			return nil, err
		}
		destination := field
		if f < len(plan.destinations) {
			destination = plan.destinations[f]
		}
		for n, element := range elements {
			if spread := plan.spreads(element); spread {
				part(n).object.Overlay(members(element), false, nil)
			} else {
				part(n).object.Set(destination, element)
			}
		}
	}
	return plan.items(i, item, source, parts), nil
}

// splitPart is what one new item gets of the fields that are split.
type splitPart struct {
	object jsonobject.Object
	file   string // the file that is split off, "" for none
}

func readSplitPlan(ctx context.Context, call *node.Call, rules splitRules, i int) (plan splitPlan, err error) {
	plan.splitRules = rules
	if plan.fields, err = fieldNames(ctx, call, i, "fieldToSplitOut"); err != nil {
		return plan, err
	}
	if len(plan.fields) == 0 {
		return plan, node.OperationError(i, "No field to split out is given", "Enter the name of a field that holds a list in 'Fields To Split Out'.")
	}
	if plan.include, err = choice(ctx, call, i, "include", "noOtherFields"); err != nil {
		return plan, err
	}
	switch plan.include {
	case "noOtherFields", "allOtherFields":
	case "selectedOtherFields":
		if plan.others, err = fieldNames(ctx, call, i, "fieldsToInclude"); err != nil {
			return plan, err
		}
		if len(plan.others) == 0 {
			return plan, node.OperationError(i, "No fields specified", "Please add a field to include")
		}
	default:
		return plan, node.OperationError(i, "The value '"+plan.include+"' of 'Include' is unknown",
			"Choose noOtherFields, allOtherFields or selectedOtherFields.")
	}
	if plan.destinations, err = fieldNames(ctx, call, i, "options.destinationFieldName"); err != nil {
		return plan, err
	}
	if len(plan.destinations) > 0 && len(plan.destinations) != len(plan.fields) {
		return plan, node.OperationError(i, "There are "+strconv.Itoa(len(plan.fields))+" fields to split out, but "+
			strconv.Itoa(len(plan.destinations))+" destination fields", "Name as many destination fields as fields to split out, or none.")
	}
	if plan.dots, err = dotted(ctx, call); err != nil {
		return plan, err
	}
	plan.files, err = toggle(ctx, call, "options.includeBinary")
	return plan, err
}

// elements are what a field is split into: the elements of a list, the values
// of an object, or what it is.
func (p splitPlan) elements(item int, field, content string) ([]string, error) {
	parsed := gjson.Parse(content)
	switch {
	case content == "" && p.fieldRequired:
		return nil, node.OperationError(item, "Couldn't find the field '"+field+"' in the input data", nestedAdvice(field, p.dots))
	case content == "":
		return nil, nil
	case !parsed.IsArray() && p.listRequired:
		return nil, node.OperationError(item, "The provided field '"+field+"' is not an array", "Name a field that holds a list.")
	case parsed.IsArray(), parsed.IsObject():
		var elements []string
		parsed.ForEach(func(_, element gjson.Result) bool {
			elements = append(elements, element.Raw)
			return true
		})
		return elements, nil
	}
	return []string{parsed.Raw}, nil
}

// spreads reports whether an element becomes the item's fields, instead of the
// content of one.
func (p splitPlan) spreads(element string) bool {
	return len(p.fields) == 1 && len(p.destinations) == 0 && p.include == "noOtherFields" && (element[0] == '{' || element[0] == '[')
}

// members are the fields of an element that is spread; those of a list are its
// indices.
func members(element string) jsonobject.Object {
	if element[0] == '{' {
		return jsonobject.Parse(element)
	}
	var object jsonobject.Object
	for i, one := range gjson.Parse(element).Array() {
		object.Set(strconv.Itoa(i), one.Raw)
	}
	return object
}

// items puts the parts together with the other fields that are wanted.
func (p splitPlan) items(i int, item workflow.Item, source jsonobject.Object, parts []splitPart) workflow.Items {
	out := make(workflow.Items, 0, len(parts))
	rest := source
	if p.include == "allOtherFields" {
		rest = source.Clone()
		for _, field := range p.fields {
			remove(&rest, field, p.dots)
		}
	}
	for _, part := range parts {
		object := part.object
		switch p.include {
		case "allOtherFields":
			object = rest.Clone()
			object.Overlay(part.object, false, nil)
		case "selectedOtherFields":
			for _, field := range p.others {
				object.Set(field, get(source, field, p.dots))
			}
		}
		made := workflow.Item{JSON: object.JSON(), PairedItem: workflow.Paired(i)}
		if p.files {
			made.Binary = item.Binary
		}
		if part.file != "" {
			made.Binary = map[string]workflow.Binary{part.file: item.Binary[part.file]}
		}
		out = append(out, made)
	}
	return out
}

func fileNames(item workflow.Item) []string {
	names := make([]string, 0, len(item.Binary))
	for name := range item.Binary {
		names = append(names, name)
	}
	sort.Strings(names)
	return names
}
