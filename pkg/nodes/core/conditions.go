package core

import (
	"context"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"github.com/reprise-engine/reprise/pkg/node"
)

// conditions is the value of a "filter" parameter (If, Filter and Switch since
// their second version), with expressions still in it.
type conditions struct {
	list       []condition
	any        bool
	ignoreCase bool
	strict     bool
	zone       *time.Location
}

type condition struct {
	left, right     gjson.Result
	kind, operation string
	rightKind       string
	single          bool // the operation has no right side
}

// readConditions reads the parameter at path. n8n's editor stores the effect of
// its two switches in conditions.options; files written by hand may have only
// the switches.
func readConditions(ctx context.Context, call *node.Call, path string) (conditions, error) {
	c := conditions{zone: time.UTC}
	if call.Workflow.Timezone != "" {
		c.zone = zoneOf(call.Workflow.Timezone)
	}
	filter := parameter(call, path)
	if len(call.Input(0)) > 0 {
		options, err := resolve(ctx, call, 0, filter.Get("options"), path+".options")
		if err != nil {
			return c, err
		}
		c.ignoreCase = !options.Get("caseSensitive").Bool()
		if !options.Get("caseSensitive").Exists() {
			if c.ignoreCase, err = flag(ctx, call, 0, "options.ignoreCase", c.ignoreCase); err != nil {
				return c, err
			}
		}
		c.strict = options.Get("typeValidation").Str == "strict"
	}
	combinator, err := resolve(ctx, call, 0, filter.Get("combinator"), path+".combinator")
	if err != nil {
		return c, err
	}
	c.any = combinator.Str == "or"
	filter.Get("conditions").ForEach(func(_, one gjson.Result) bool {
		operator := one.Get("operator")
		cond := condition{
			left: one.Get("leftValue"), right: one.Get("rightValue"),
			kind: operator.Get("type").Str, operation: operator.Get("operation").Str,
			rightKind: operator.Get("rightType").Str, single: operator.Get("singleValue").Bool(),
		}
		if cond.rightKind == "" {
			cond.rightKind = cond.kind
		}
		c.list = append(c.list, cond)
		return true
	})
	return c, nil
}

// evaluate decides one item. No conditions at all are met.
func (c *conditions) evaluate(ctx context.Context, call *node.Call, item int) (bool, error) {
	type sides struct{ left, right gjson.Result }
	values := make([]sides, len(c.list))
	// All values first: n8n too reports a broken expression in a condition that
	// need not be looked at.
	for i, cond := range c.list {
		var err error
		if values[i].left, err = resolve(ctx, call, item, cond.left, "conditions"); err != nil {
			return false, err
		}
		if cond.single {
			continue
		}
		if values[i].right, err = resolve(ctx, call, item, cond.right, "conditions"); err != nil {
			return false, err
		}
	}
	for i, cond := range c.list {
		left, ok := typed(values[i].left, cond.kind, c.strict, c.zone)
		if !ok {
			return false, c.typeError(values[i].left, cond.kind, i, item)
		}
		var right operand
		if !cond.single {
			if right, ok = typed(values[i].right, cond.rightKind, c.strict, c.zone); !ok {
				return false, c.typeError(values[i].right, cond.rightKind, i, item)
			}
		}
		if c.ignoreCase {
			left = left.lower()
			if !strings.HasSuffix(strings.ToLower(cond.operation), "regex") {
				right = right.lower()
			}
		}
		met, err := cond.compare(left, right)
		if err != nil {
			return false, node.OperationError(item, err.Error(), "")
		}
		if met == c.any {
			return met, nil
		}
	}
	return !c.any || len(c.list) == 0, nil
}

func (c *conditions) typeError(value gjson.Result, kind string, index, item int) error {
	got, text := typeName(value), value.String()
	where := " [condition " + formatNumber(float64(index)) + ", item " + formatNumber(float64(item)) + "]"
	if c.strict {
		return node.OperationError(item, "Wrong type: '"+text+"' is "+article(got)+" but was expecting "+article(kind)+where,
			"Change the type of the comparison, convert the value, or enable 'Convert types where required'.")
	}
	return node.OperationError(item, "Conversion error: the "+got+" '"+text+"' can't be converted to "+article(kind)+where,
		"Change the type of the comparison, or the value.")
}

func article(noun string) string {
	if strings.ContainsRune("aeiou", rune(noun[0])) {
		return "an " + noun
	}
	return "a " + noun
}
