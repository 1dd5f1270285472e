package flow

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/tidwall/gjson"

	"github.com/reprise-engine/reprise/pkg/node"
	"github.com/reprise-engine/reprise/pkg/nodes/jsonobject"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// inputs is the parameter workflowInputs: which fields the child is given.
type inputs struct {
	call   *node.Call
	values gjson.Result // as in the file, expressions and all
	fields []field
	conversion
}

// field is an input that the child's trigger asks for, as it was when the node was
// set up.
type field struct {
	id, kind string
	removed  bool
}

// readInputs reads what does not depend on an item.
func readInputs(call *node.Call) *inputs {
	p := gjson.ParseBytes(call.Raw("workflowInputs"))
	in := &inputs{call: call, conversion: conversion{
		text:    p.Get("convertFieldsToString").Bool(),
		lenient: p.Get("attemptToConvertTypes").Bool(),
	}}
	if p.Get("mappingMode").Str != "autoMapInputData" {
		in.values = p.Get("value")
	}
	p.Get("schema").ForEach(func(_, f gjson.Result) bool {
		in.fields = append(in.fields, field{f.Get("id").String(), f.Get("type").String(), f.Get("removed").Bool()})
		return true
	})
	return in
}

// mapped reports whether fields are mapped at all.
func (in *inputs) mapped() bool { return in.values.IsObject() && len(in.values.Map()) > 0 }

// passes reports whether items go to the child as they are.
func (in *inputs) passes() bool {
	return !in.mapped() && !slices.ContainsFunc(in.fields, func(f field) bool { return f.removed })
}

// over returns the fields of an item with the mapped ones put over them and without
// those that were removed. It is what the node gives out when it does not wait.
func (in *inputs) over(ctx context.Context, item int, below jsonobject.Object) (jsonobject.Object, error) {
	o := below.Clone()
	if in.mapped() {
		values, err := in.evaluate(ctx, item)
		if err != nil {
			return o, err
		}
		for _, m := range values.Members() {
			o.Set(m.Key, m.Value)
		}
	}
	for _, f := range in.fields {
		if f.removed {
			o.Delete(f.id)
		}
	}
	return o, nil
}

// asked is what of over's fields the child asks for, null where there is nothing.
// Without a mapping or a list of what is asked for it is all of them.
func (in *inputs) asked(over jsonobject.Object) jsonobject.Object {
	if !in.mapped() || len(in.fields) == 0 {
		return over
	}
	var o jsonobject.Object
	for _, f := range in.fields {
		o.Set(f.id, orNull(over.Get(f.id)))
	}
	in.values.ForEach(func(key, _ gjson.Result) bool {
		o.Set(key.String(), over.Get(key.String())) // mapped although nobody asks
		return true
	})
	return o
}

// evaluate returns the mapped fields for an item, fitted to their types.
func (in *inputs) evaluate(ctx context.Context, item int) (jsonobject.Object, error) {
	var o jsonobject.Object
	raw, err := in.call.Param(ctx, item, "workflowInputs.value")
	if err != nil {
		return o, err
	}
	kinds := make(map[string]string, len(in.fields))
	for _, f := range in.fields {
		kinds[f.id] = f.kind
	}
	found := jsonobject.Parse(raw)
	in.values.ForEach(func(key, _ gjson.Result) bool {
		name := key.String()
		value := gjson.Parse(orNull(found.Get(name))) // undefined is left out of found
		fitted, ok := in.apply(value, kinds[name])
		if !ok {
			err = typeError(item, name, kinds[name], value)
		}
		o.Set(name, fitted)
		return ok
	})
	return o, err
}

func typeError(item int, name, kind string, value gjson.Result) error {
	got := "'" + value.String() + "'"
	switch {
	case value.IsArray():
		got = "array"
	case value.IsObject():
		got = "object"
	}
	return node.OperationError(item, fmt.Sprintf("'%s' expects a %s but we got %s [item %d]", name, kind, got, item),
		"Map a value of that type in the workflow inputs, or turn on “Attempt to convert types”.")
}

func orNull(value string) string {
	if value == "" {
		return "null"
	}
	return value
}

// childItem is an item as a child receives it: what links it to this execution
// stays behind.
func childItem(object json.RawMessage, binary map[string]workflow.Binary, index int) workflow.Item {
	return workflow.Item{JSON: object, Binary: binary, PairedItem: workflow.Paired(index)}
}
