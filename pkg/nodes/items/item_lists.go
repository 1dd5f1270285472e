package items

import (
	"context"

	"github.com/tidwall/gjson"

	"github.com/reprise-engine/reprise/pkg/node"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// ItemLists is what Split Out, Aggregate, Limit, Remove Duplicates, Sort and
// Summarize were before they became nodes of their own. It is stricter about
// fields that are missing.
func ItemLists() *node.Type {
	return &node.Type{
		Spec:    workflow.Spec{Type: base + "itemLists", Versions: []float64{1, 2, 2.1, 2.2, 3, 3.1}},
		Execute: executeItemLists,
	}
}

func executeItemLists(ctx context.Context, call *node.Call) (*node.Result, error) {
	version := call.Node.TypeVersion
	operation := gjson.GetBytes(call.Node.Parameters, "operation").String()
	switch operation {
	case "", "splitOutItems":
		return splitOut(ctx, call, splitRules{fieldRequired: version < 3.1, listRequired: version < 3})
	case "aggregateItems", "concatenateItems":
		kind, err := choice(ctx, call, 0, "aggregate", "aggregateIndividualFields")
		if err != nil {
			return nil, err
		}
		if kind == "aggregateIndividualFields" {
			return aggregateFields(ctx, call, version < 3.1)
		}
		return aggregate(ctx, call)
	case "removeDuplicates":
		return repeatedInInput(ctx, call)
	case "sort":
		return sortItems(ctx, call)
	case "limit":
		return limit(ctx, call)
	case "summarize":
		return summarize(ctx, call, true)
	}
	return nil, node.OperationError(-1, "The operation '"+operation+"' is unknown",
		"Choose splitOutItems, concatenateItems, removeDuplicates, sort, limit or summarize.")
}

// limit keeps the first or the last items.
func limit(ctx context.Context, call *node.Call) (*node.Result, error) {
	count, err := call.Int(ctx, 0, "maxItems", 1)
	if err != nil {
		return nil, err
	}
	keep, err := choice(ctx, call, 0, "keep", "firstItems")
	if err != nil {
		return nil, err
	}
	items := passAll(call)
	count = min(max(count, 0), len(items))
	switch keep {
	case "firstItems":
		return node.Outputs(items[:count]), nil
	case "lastItems":
		return node.Outputs(items[len(items)-count:]), nil
	}
	return nil, node.OperationError(-1, "The value '"+keep+"' of 'Keep' is unknown", "Choose firstItems or lastItems.")
}
