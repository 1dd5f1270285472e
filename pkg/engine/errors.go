package engine

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/tidwall/gjson"

	"github.com/reprise-engine/reprise/pkg/workflow"
)

// errorIndex is the error output of a node with onError continueErrorOutput:
// the one after its own outputs.
func (m *Machine) errorIndex(n *workflow.Node) int { return m.spec(n).OutputCount(n) }

// routeErrors moves items that report an error to the error output. Such an
// item gets the input item it was made from merged under it.
func (t *tx) routeErrors(e *Entry, node *workflow.Node, outputs []workflow.Items) []workflow.Items {
	last := t.errorIndex(node)
	routed := make([]workflow.Items, max(last+1, len(outputs)))
	copy(routed, outputs)
	failed := slices.Clone(routed[last])
	var inputs []workflow.Items
	for o := range routed {
		if o == last || !slices.ContainsFunc(routed[o], isErrorItem) {
			continue
		}
		if inputs == nil {
			inputs = t.s.Inputs(e)
		}
		kept := workflow.Items{}
		for _, item := range routed[o] {
			if isErrorItem(item) {
				failed = append(failed, withInput(item, inputs))
			} else {
				kept = append(kept, item)
			}
		}
		routed[o] = kept
	}
	if failed == nil {
		failed = workflow.Items{}
	}
	routed[last] = failed
	return routed
}

// isErrorItem: the item has an error, or its json is nothing but one.
func isErrorItem(item workflow.Item) bool {
	if len(item.Error) > 0 && string(item.Error) != "null" {
		return true
	}
	if !bytes.Contains(item.JSON, []byte(`"error"`)) {
		return false
	}
	reports := false
	only := true
	gjson.ParseBytes(item.JSON).ForEach(func(key, value gjson.Result) bool {
		switch key.Str {
		case "error":
			reports = truthy(value)
		case "message", "details":
		default:
			only = false
		}
		return only
	})
	return reports && only
}

func truthy(v gjson.Result) bool {
	switch v.Type {
	case gjson.Null, gjson.False:
		return false
	case gjson.String:
		return v.Str != ""
	case gjson.Number:
		return v.Num != 0
	}
	return v.Exists()
}

func withInput(item workflow.Item, inputs []workflow.Items) workflow.Item {
	if len(item.PairedItem) == 0 {
		return item
	}
	p := item.PairedItem[0]
	if p.Input < 0 || p.Input >= len(inputs) || p.Item < 0 || p.Item >= len(inputs[p.Input]) {
		return item
	}
	item.JSON = overlay(inputs[p.Input][p.Item].JSON, item.JSON)
	return item
}

// errorOutput is the outputs of a node that failed as a whole and has an error
// output: every input item leaves there with the error, nothing leaves
// elsewhere. (n8n sends the input to output 0, which hides the failure.)
func (t *tx) errorOutput(e *Entry, node *workflow.Node, err *NodeError) []workflow.Items {
	outputs := make([]workflow.Items, t.errorIndex(node)+1)
	for i := range outputs {
		outputs[i] = workflow.Items{}
	}
	failed := workflow.Items{}
	inputs := t.s.Inputs(e)
	if from := t.s.mainInput(e); from < len(inputs) {
		for _, item := range inputs[from] {
			item.JSON = overlay(item.JSON, errorJSON(err.Message))
			failed = append(failed, item)
		}
	}
	if len(failed) == 0 {
		failed = workflow.Items{{JSON: errorJSON(err.Message)}}
	}
	outputs[len(outputs)-1] = failed
	return outputs
}

// toolItemError is the error that a tool with an error output reported in an
// item, nil when it reported none.
func toolItemError(outputs []workflow.Items) *NodeError {
	for _, items := range outputs {
		for _, item := range items {
			if isErrorItem(item) {
				if len(item.Error) > 0 {
					return &NodeError{Message: errorMessage(item.Error)}
				}
				return &NodeError{Message: errorMessage([]byte(gjson.GetBytes(item.JSON, "error").Raw))}
			}
		}
	}
	return nil
}

// normaliseErrors gives items that carry an error the form {"error": message}.
// Outputs with such items are copied.
func normaliseErrors(outputs []workflow.Items) {
	for o, items := range outputs {
		var own workflow.Items
		for i, item := range items {
			message, ok := itemError(item)
			if !ok {
				continue
			}
			if own == nil {
				own = slices.Clone(items)
				outputs[o] = own
			}
			own[i].JSON = errorJSON(message)
			if inner := gjson.GetBytes(item.JSON, "$error"); inner.Exists() {
				own[i].Error = json.RawMessage(inner.Raw)
			}
		}
	}
}

func itemError(item workflow.Item) (message string, ok bool) {
	if bytes.Contains(item.JSON, []byte(`"$error"`)) {
		doc := gjson.ParseBytes(item.JSON)
		if inner := doc.Get(`$error`); inner.Exists() && doc.Get(`$json`).Exists() {
			return errorMessage([]byte(inner.Raw)), true
		}
	}
	if len(item.Error) > 0 && string(item.Error) != "null" {
		return errorMessage(item.Error), true
	}
	return "", false
}

// errorMessage is the text of an error in an item: its message, or itself.
func errorMessage(raw []byte) string {
	v := gjson.ParseBytes(raw)
	if m := v.Get("message"); m.Exists() {
		return m.String()
	}
	return v.String()
}
