package core

import (
	"context"
	"math"
	"strconv"

	"github.com/tidwall/gjson"

	"github.com/reprise-engine/reprise/pkg/node"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// defaultSwitchOutputs is how many outputs a Switch has unless it says
// otherwise: always in its first version, in expression mode since.
const defaultSwitchOutputs = 4

// Switch sends each item to the output of the first rule that it meets, or of
// all of them, or to the output that an expression names.
func Switch() *node.Type {
	return &node.Type{
		Spec: workflow.Spec{
			Type: base + "switch", Versions: []float64{3, 3.1, 3.2, 3.3, 3.4},
			Outputs: switchOutputs,
		},
		Inline: true,
		Execute: func(ctx context.Context, call *node.Call) (*node.Result, error) {
			if parameter(call, "mode").Str == "expression" {
				return switchByExpression(ctx, call)
			}
			return switchByRules(ctx, call)
		},
	}
}

// switchOutputs is one for each rule and one more for a fallback of its own.
func switchOutputs(n *workflow.Node) int {
	call := node.Call{Node: n}
	if parameter(&call, "mode").Str == "expression" {
		path := "numberOutputs"
		if n.TypeVersion < 3 {
			path = "outputsAmount"
		}
		return switchCount(parameter(&call, path))
	}
	rules, fallback := switchRules(&call)
	count := len(rules)
	if fallback.Str == "extra" {
		count++
	}
	return count
}

// switchRules are the rules and what becomes of items that meet none.
func switchRules(call *node.Call) (rules []gjson.Result, fallback gjson.Result) {
	if call.Node.TypeVersion < 3 {
		return parameter(call, "rules.rules").Array(), parameter(call, "fallbackOutput")
	}
	return parameter(call, "rules.values").Array(), parameter(call, "options.fallbackOutput")
}

// switchCount bounds a number of outputs, so that a mistyped one cannot fill
// the memory.
func switchCount(value gjson.Result) int {
	if n := value.Int(); n >= 1 && n <= 1000 {
		return int(n)
	}
	return defaultSwitchOutputs
}

func switchByRules(ctx context.Context, call *node.Call) (*node.Result, error) {
	rules, _ := switchRules(call)
	met := make([]conditions, len(rules))
	for r := range rules {
		var err error
		if met[r], err = readConditions(ctx, call, "rules.values."+strconv.Itoa(r)+".conditions"); err != nil {
			return nil, err
		}
	}
	all, err := flag(ctx, call, 0, "options.allMatchingOutputs", false)
	if err != nil {
		return nil, err
	}
	return route(ctx, call, len(rules), func(i int) ([]int, error) {
		var to []int
		for r := range met {
			ok, err := met[r].evaluate(ctx, call, i)
			if err != nil {
				return nil, err
			}
			if !ok {
				continue
			}
			to = append(to, r)
			if !all {
				break
			}
		}
		return to, nil
	})
}

// route sends each item where to says, and to the fallback when that is
// nowhere. rules is the number of the outputs that belong to rules. Items that
// fail are put on the first output when the node continues.
func route(ctx context.Context, call *node.Call, rules int, to func(item int) ([]int, error)) (*node.Result, error) {
	_, fallback := switchRules(call)
	out := make([]workflow.Items, call.Type.OutputCount(call.Node))
	otherwise := -1
	if call.Input(0) != nil {
		value, err := resolve(ctx, call, 0, fallback, "fallbackOutput")
		if err != nil {
			return nil, err
		}
		if value.Str == "extra" {
			otherwise = rules
		} else if number, ok := jsNumber(value.String()); ok && value.String() != "" {
			otherwise = int(number)
		}
		if otherwise >= len(out) {
			return nil, node.OperationError(-1, "The fallback output "+formatNumber(float64(otherwise))+" does not exist",
				"The node has "+strconv.Itoa(len(out))+" outputs, counted from 0. Choose another fallback output.")
		}
	}
	for i, item := range call.Input(0) {
		chosen, err := to(i)
		if err != nil {
			if !call.Survives(ctx, err) {
				return nil, err
			}
			if len(out) > 0 {
				out[0] = append(out[0], node.ErrorItem(err.Error(), workflow.Paired(i)))
			}
			continue
		}
		if len(chosen) == 0 && otherwise >= 0 {
			chosen = []int{otherwise}
		}
		for _, output := range chosen {
			out[output] = append(out[output], node.Passed(item, i, 0))
		}
	}
	return node.Outputs(out...), nil
}

// switchByExpression sends items to the output whose index is computed.
func switchByExpression(ctx context.Context, call *node.Call) (*node.Result, error) {
	out := make([]workflow.Items, call.Type.OutputCount(call.Node))
	for i, item := range call.Input(0) {
		index, err := outputIndex(ctx, call, i, len(out))
		switch {
		case err == nil:
			out[index] = append(out[index], node.Passed(item, i, 0))
		case !call.Survives(ctx, err):
			return nil, err
		default:
			// n8n does not link these.
			out[0] = append(out[0], node.ErrorItem(err.Error(), nil))
		}
	}
	return node.Outputs(out...), nil
}

func outputIndex(ctx context.Context, call *node.Call, item, count int) (int, error) {
	raw := parameter(call, "output")
	if !raw.Exists() {
		return 0, nil
	}
	value, err := resolve(ctx, call, item, raw, "output")
	if err != nil {
		return 0, err
	}
	number, ok := toNumber(value)
	if !ok || value.Type == gjson.Null || value.String() == "" {
		return 0, node.OperationError(item, "Invalid input for 'Output Index' [item "+strconv.Itoa(item)+"]",
			"'"+value.String()+"' is no number. Outputs are counted from 0.")
	}
	if number.Num != math.Trunc(number.Num) || number.Num < 0 || number.Num >= float64(count) {
		message := notAllowed(formatNumber(number.Num))
		if call.Node.TypeVersion < 3 {
			message += "It has to be between 0 and " + strconv.Itoa(count-1) + "!"
		}
		return 0, node.OperationError(item, message, "Outputs are counted from 0, and the node has "+strconv.Itoa(count)+".")
	}
	return int(number.Num), nil
}

// notAllowed has n8n's spelling, as workflows may look at the text.
func notAllowed(output string) string {
	return "The ouput " + output + " is not allowed. " //nolint:misspell // see above
}
