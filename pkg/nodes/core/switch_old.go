package core

import (
	"context"
	"strconv"

	"github.com/tidwall/gjson"

	"github.com/reprise-engine/reprise/pkg/node"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// SwitchOld is Switch with rules that all compare one value. In version 1 it
// has four outputs and a rule names its own; since 2 each rule is an output.
func SwitchOld() *node.Type {
	return &node.Type{
		Spec: workflow.Spec{
			Type: base + "switch", Versions: []float64{1, 2},
			Outputs: func(n *workflow.Node) int {
				if n.TypeVersion < 2 {
					return defaultSwitchOutputs
				}
				return switchOutputs(n)
			},
		},
		Inline: true,
		Execute: func(ctx context.Context, call *node.Call) (*node.Result, error) {
			if parameter(call, "mode").Str == "expression" {
				return switchByExpression(ctx, call)
			}
			return switchByOldRules(ctx, call)
		},
	}
}

func switchByOldRules(ctx context.Context, call *node.Call) (*node.Result, error) {
	rules, _ := switchRules(call)
	kind, err := choice(ctx, call, 0, "dataType", "number")
	if err != nil {
		return nil, err
	}
	standard := ""
	for _, one := range oldKinds {
		if one.kind == kind {
			standard = one.operation
		}
	}
	zone := zoneOf(call.Workflow.Timezone)
	value := parameter(call, "value1")
	return route(ctx, call, len(rules), func(i int) ([]int, error) {
		left, err := resolve(ctx, call, i, value, "value1")
		if err != nil {
			return nil, err
		}
		for r, rule := range rules {
			right, err := resolve(ctx, call, i, rule.Get("value2"), "rules")
			if err != nil {
				return nil, err
			}
			operation, err := resolve(ctx, call, i, rule.Get("operation"), "rules")
			if err != nil {
				return nil, err
			}
			name := operation.String()
			if name == "" {
				name = standard
			}
			met, err := compareOld(name, left, right, zone)
			if err != nil {
				return nil, node.OperationError(i, err.Error(), "rule "+strconv.Itoa(r))
			}
			if met {
				output, err := oldRuleOutput(ctx, call, rule, r, i)
				return []int{output}, err
			}
		}
		return nil, nil
	})
}

// oldRuleOutput is where a rule sends its items.
func oldRuleOutput(ctx context.Context, call *node.Call, rule gjson.Result, index, item int) (int, error) {
	if call.Node.TypeVersion >= 2 {
		return index, nil
	}
	value, err := resolve(ctx, call, item, rule.Get("output"), "rules")
	if err != nil {
		return 0, err
	}
	number, ok := jsNumber(value.String())
	if !ok || number < 0 || number >= defaultSwitchOutputs || number != float64(int(number)) {
		return 0, node.OperationError(item, notAllowed(value.String())+"It has to be between 0 and 3!", "")
	}
	return int(number), nil
}
