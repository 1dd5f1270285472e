package core

import (
	"context"
	"time"

	"github.com/tidwall/gjson"

	"github.com/reprise-engine/reprise/pkg/node"
	"github.com/reprise-engine/reprise/pkg/nodes/jsonobject"
)

// oldKinds are the groups of conditions before version 2, in the order they
// are looked at, with the operation that an absent one means.
var oldKinds = []struct{ kind, operation string }{
	{"boolean", "equal"}, {"dateTime", "after"}, {"number", "smaller"}, {"string", "equal"},
}

// readOldFilter reads conditions grouped by type. The parameter combine says,
// with the value either, that one of them is enough.
func readOldFilter(combine, either string) func(context.Context, *node.Call) (decide, error) {
	return func(ctx context.Context, call *node.Call) (decide, error) {
		zone := zoneOf(call.Workflow.Timezone)
		return func(ctx context.Context, call *node.Call, item int) (bool, error) {
			combination, err := choice(ctx, call, item, combine, "")
			if err != nil {
				return false, err
			}
			enough := combination == either
			for _, group := range oldKinds {
				for _, one := range parameter(call, "conditions."+group.kind).Array() {
					left, err := resolve(ctx, call, item, one.Get("value1"), "conditions")
					if err != nil {
						return false, err
					}
					right, err := resolve(ctx, call, item, one.Get("value2"), "conditions")
					if err != nil {
						return false, err
					}
					operation, err := resolve(ctx, call, item, one.Get("operation"), "conditions")
					if err != nil {
						return false, err
					}
					name := operation.String()
					if name == "" {
						name = group.operation
					}
					met, err := compareOld(name, left, right, zone)
					if err != nil {
						return false, node.OperationError(item, err.Error(), "")
					}
					if met == enough {
						return met, nil
					}
				}
			}
			return !enough, nil
		}, nil
	}
}

// compareOld applies an operation of the first version, which does not look at
// types: equality is strict, order is by number, text by its rendering.
func compareOld(operation string, left, right gjson.Result, zone *time.Location) (bool, error) {
	switch operation {
	case "isEmpty":
		return oldEmpty(left), nil
	case "isNotEmpty":
		return !oldEmpty(left), nil
	case "equal", "equals":
		return sameScalar(left, right), nil
	case "notEqual", "notEquals":
		return !sameScalar(left, right), nil
	case "smaller", "smallerEqual", "larger", "largerEqual":
		l, _ := toNumber(left)
		r, _ := toNumber(right)
		return compareNumber(map[string]string{
			"smaller": "lt", "smallerEqual": "lte", "larger": "gt", "largerEqual": "gte",
		}[operation], operand{Result: numberResult(l.Raw)}, operand{Result: numberResult(r.Raw)}), nil
	case "after", "before":
		l, okLeft := parseTime(left, zone)
		r, okRight := parseTime(right, zone)
		if !okLeft || !okRight {
			return false, invalidDate(left, right, okLeft)
		}
		return compareOrder(operation, l.Compare(r)), nil
	case "contains", "notContains", "startsWith", "notStartsWith", "endsWith", "notEndsWith", "regex", "notRegex":
		return compareText(operation, left.String(), right.String())
	}
	return false, unknownOperation(operation)
}

type unknownOperation string

func (o unknownOperation) Error() string {
	return "The operation '" + string(o) + "' is unknown. Choose another one in the condition."
}

type invalidDateError string

func (e invalidDateError) Error() string {
	return "The value '" + string(e) + "' is not a valid DateTime."
}

func invalidDate(left, right gjson.Result, leftIsFine bool) error {
	if leftIsFine {
		return invalidDateError(right.String())
	}
	return invalidDateError(left.String())
}

func oldEmpty(value gjson.Result) bool {
	switch {
	case value.Type == gjson.Null:
		return true
	case value.Type == gjson.String:
		return value.Str == ""
	case value.IsArray():
		return len(value.Array()) == 0
	case value.IsObject():
		return jsonobject.Parse(value.Raw).Len() == 0
	}
	return false
}

func sameScalar(left, right gjson.Result) bool {
	return left.Type == right.Type && left.Type != gjson.JSON &&
		left.Exists() == right.Exists() && left.Value() == right.Value()
}
