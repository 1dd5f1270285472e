package core

import (
	"context"
	"strconv"
	"strings"

	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/node"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// Merge joins the items of several inputs.
func Merge() *node.Type {
	return &node.Type{
		Spec: workflow.Spec{
			Type: base + "merge", Versions: []float64{2, 2.1, 3, 3.1, 3.2},
			RequiredInputs: mergeNeeds,
		},
		Inline:  true,
		Apart:   mergesBySQL,
		Execute: executeMerge,
	}
}

// mergeNeeds says that only choosing a branch waits for every input; the other
// modes make do with what came.
func mergeNeeds(n *workflow.Node) []int {
	call := node.Call{Node: n}
	if parameter(&call, "mode").Str != "chooseBranch" {
		return nil
	}
	all := make([]int, inputCount(&call))
	for i := range all {
		all[i] = i
	}
	return all
}

func inputCount(call *node.Call) int {
	if n := parameter(call, "numberInputs").Int(); n >= 2 && n <= 100 && call.Node.TypeVersion >= 3 {
		return int(n)
	}
	return 2
}

func executeMerge(ctx context.Context, call *node.Call) (*node.Result, error) {
	mode, err := choice(ctx, call, 0, "mode", "append")
	if err != nil {
		return nil, err
	}
	switch mode {
	case "append":
		return appendInputs(call), nil
	case "chooseBranch":
		return chooseBranch(ctx, call)
	case "combineBySql":
		return combineBySQL(ctx, call)
	case "combine":
	default:
		return nil, &engine.NodeError{
			Name: "NodeOperationError", Message: "Merge mode '" + mode + "' is not supported",
			Description: "Choose another mode, or merge the items in a Code node.", NotRetryable: true,
		}
	}
	options, err := readMergeOptions(ctx, call)
	if err != nil {
		return nil, err
	}
	by := "combineByFields"
	if call.Node.TypeVersion >= 3 {
		by, err = choice(ctx, call, 0, "combineBy", by)
	} else {
		by, err = choice(ctx, call, 0, "combinationMode", by)
	}
	if err != nil {
		return nil, err
	}
	switch by {
	case "combineByPosition", "mergeByPosition":
		return combineByPosition(call, options), nil
	case "combineAll", "multiplex":
		return combineAll(call, options), nil
	}
	return combineByFields(ctx, call, options)
}

func appendInputs(call *node.Call) *node.Result {
	var out workflow.Items
	for n := range call.Inputs {
		for i, item := range call.Inputs[n] {
			out = append(out, node.Passed(item, i, n))
		}
	}
	return node.Outputs(out)
}

func chooseBranch(ctx context.Context, call *node.Call) (*node.Result, error) {
	output, err := choice(ctx, call, 0, "output", "input1")
	if err != nil {
		return nil, err
	}
	if call.Node.TypeVersion >= 3 && output != "empty" {
		if output, err = choice(ctx, call, 0, "useDataOfInput", "1"); err != nil {
			return nil, err
		}
	}
	if output == "empty" {
		var paired workflow.PairedItems
		for n := range call.Inputs {
			paired = append(paired, allOf(call.Inputs[n], n)...)
		}
		return node.Outputs(workflow.Items{{JSON: []byte(`{}`), PairedItem: paired}}), nil
	}
	n, err := strconv.Atoi(strings.TrimPrefix(output, "input"))
	if err != nil || n < 1 || n > inputCount(call) {
		return nil, node.OperationError(0, "The input '"+output+"' does not exist", "Choose one of the inputs that the node has.")
	}
	return passInput(call, n-1), nil
}

func passInput(call *node.Call, n int) *node.Result {
	var out workflow.Items
	for i, item := range call.Input(n) {
		out = append(out, node.Passed(item, i, n))
	}
	return node.Outputs(out)
}

// allOf links to all items of an input.
func allOf(items workflow.Items, input int) workflow.PairedItems {
	var paired workflow.PairedItems
	for i, item := range items {
		paired = append(paired, node.Passed(item, i, input).PairedItem...)
	}
	return paired
}
