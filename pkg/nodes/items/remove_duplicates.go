package items

import (
	"context"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/reprise-engine/reprise/pkg/node"
	"github.com/reprise-engine/reprise/pkg/nodes/jsonobject"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// seenBefore is the operation of Remove Duplicates that has a second output.
const seenBefore = "removeItemsSeenInPreviousExecutions"

// RemoveDuplicates drops items that are repeated in the input or, since version
// 2, that were seen in an earlier execution of the workflow.
func RemoveDuplicates() *node.Type {
	return &node.Type{
		Spec: workflow.Spec{
			Type: base + "removeDuplicates", Versions: []float64{1, 1.1, 2},
			Outputs: func(n *workflow.Node) int {
				if n.TypeVersion >= 2 && operationOf(n) == seenBefore {
					return 2 // kept, discarded
				}
				return 1
			},
		},
		Execute: func(ctx context.Context, call *node.Call) (*node.Result, error) {
			result, err := removeDuplicates(ctx, call)
			if err != nil && call.Survives(ctx, err) {
				return node.Outputs(workflow.Items{node.ErrorItem(err.Error(), workflow.Paired(0))}), nil
			}
			return result, err
		},
	}
}

func removeDuplicates(ctx context.Context, call *node.Call) (*node.Result, error) {
	if call.Node.TypeVersion < 2 {
		return repeatedInInput(ctx, call)
	}
	switch operation := operationOf(call.Node); operation {
	case "removeDuplicateInputItems":
		return repeatedInInput(ctx, call)
	case seenBefore:
		return seenInEarlierExecutions(ctx, call)
	case "clearDeduplicationHistory":
		return clearHistory(ctx, call)
	default:
		return nil, node.OperationError(-1, "The operation '"+operation+"' is unknown",
			"Choose removeDuplicateInputItems, "+seenBefore+" or clearDeduplicationHistory.")
	}
}

// repeatedInInput keeps the first of items that are equal in what is compared.
func repeatedInInput(ctx context.Context, call *node.Call) (*node.Result, error) {
	compare, err := choice(ctx, call, 0, "compare", "allFields")
	if err != nil {
		return nil, err
	}
	dots, err := dotted(ctx, call)
	if err != nil {
		return nil, err
	}
	var fields []string
	switch compare {
	case "allFields":
	case "allFieldsExcept":
		if fields, err = fieldNames(ctx, call, 0, "fieldsToExclude"); err == nil && len(fields) == 0 {
			err = node.OperationError(-1, "No fields specified. Please add a field to exclude from comparison", "")
		}
	case "selectedFields":
		if fields, err = fieldNames(ctx, call, 0, "fieldsToCompare"); err == nil && len(fields) == 0 {
			err = node.OperationError(-1, "No fields specified. Please add a field to compare on", "")
		}
	default:
		err = node.OperationError(-1, "The value '"+compare+"' of 'Compare' is unknown", "Choose allFields, allFieldsExcept or selectedFields.")
	}
	if err != nil {
		return nil, err
	}
	strip, err := toggle(ctx, call, "options.removeOtherFields")
	if err != nil {
		return nil, err
	}
	seen := map[string]bool{}
	var out workflow.Items
	for i, item := range passAll(call) {
		compared, err := comparedFields(item, compare, fields, dots)
		if err != nil {
			return nil, err
		}
		key := canonical(compared.String())
		if seen[key] {
			continue
		}
		seen[key] = true
		if strip && compare != "allFields" {
			// n8n links what is left of an item to the input item at its new
			// place, not to the one it was.
			item = workflow.Item{JSON: compared.JSON(), PairedItem: workflow.Paired(len(out))}
		} else {
			item.PairedItem = workflow.Paired(i)
		}
		out = append(out, item)
	}
	return node.Outputs(out), nil
}

// comparedFields is what is left of an item for the comparison.
func comparedFields(item workflow.Item, compare string, fields []string, dots bool) (jsonobject.Object, error) {
	object := jsonobject.Parse(item.JSON)
	if compare != "selectedFields" {
		for _, field := range fields {
			remove(&object, field, dots)
		}
		return object, nil
	}
	var picked jsonobject.Object
	for _, field := range fields {
		content := get(object, field, dots)
		if content == "" {
			if !dots && strings.Contains(field, ".") {
				return picked, node.OperationError(-1, "'"+field+"' field is missing from some input items", nestedAdvice(field, dots))
			}
			return picked, node.OperationError(-1, "'"+field+"' field is missing from some input items", "Choose fields that every item has.")
		}
		put(&picked, field, content, dots)
	}
	return picked, nil
}

// operationOf is what the node does. The number of its outputs depends on it, so
// it is never computed.
func operationOf(n *workflow.Node) string {
	if operation := gjson.GetBytes(n.Parameters, "operation"); operation.Exists() {
		return operation.String()
	}
	return "removeDuplicateInputItems"
}
