package core

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/reprise-engine/reprise/pkg/nodes/jsonobject"
)

// compare applies the operation. Unknown operations are never met, as in n8n.
func (c condition) compare(left, right operand) (bool, error) {
	switch c.operation {
	case "exists":
		return !left.missing(), nil
	case "notExists":
		return left.missing(), nil
	case "empty", "notEmpty":
		return isEmpty(left.Result, c.kind) == (c.operation == "empty"), nil
	}
	switch c.kind {
	case "string":
		return compareText(c.operation, left.String(), right.String())
	case "number":
		return compareNumber(c.operation, left, right), nil
	case "boolean":
		return compareBoolean(c.operation, left, right), nil
	case "dateTime":
		if left.missing() || right.missing() {
			return false, nil
		}
		return compareOrder(c.operation, left.time.Compare(right.time)), nil
	case "array":
		return compareList(c.operation, left, right), nil
	}
	return false, nil
}

func isEmpty(value gjson.Result, kind string) bool {
	switch kind {
	case "string":
		return value.String() == ""
	case "array":
		return len(value.Array()) == 0
	case "object":
		return !value.IsObject() || jsonobject.Parse(value.Raw).Len() == 0
	}
	return value.Type == gjson.Null
}

func compareText(operation, left, right string) (bool, error) {
	positive, negated := strings.CutPrefix(operation, "not")
	if negated {
		positive = strings.ToLower(positive[:1]) + positive[1:]
	}
	var met bool
	switch positive {
	case "equals":
		met = left == right
	case "contains":
		met = strings.Contains(left, right)
	case "startsWith":
		met = strings.HasPrefix(left, right)
	case "endsWith":
		met = strings.HasSuffix(left, right)
	case "regex":
		pattern, err := scriptRegexp(right)
		if err != nil {
			return false, err
		}
		met = pattern.MatchString(left)
	default:
		return false, nil
	}
	return met != negated, nil
}

// scriptRegexp compiles a pattern that is written as in JavaScript: bare, or
// /between slashes/ with flags. Patterns that need backtracking (look-around,
// back references) are refused.
func scriptRegexp(text string) (*regexp.Regexp, error) {
	flags := ""
	if end := strings.LastIndexByte(text, '/'); strings.HasPrefix(text, "/") && end > 0 && strings.Trim(text[end+1:], "gimsuy") == "" {
		for _, flag := range text[end+1:] {
			if strings.ContainsRune("ims", flag) {
				flags += string(flag)
			}
		}
		text = text[1:end]
	}
	if flags != "" {
		text = "(?" + flags + ")" + text
	}
	pattern, err := regexp.Compile(text)
	if err != nil {
		return nil, fmt.Errorf("regular expression %q: %w; look-around and back references are not supported here, use a Code node", text, err)
	}
	return pattern, nil
}

func compareNumber(operation string, left, right operand) bool {
	equal := left.Type == right.Type && left.Exists() == right.Exists() && left.Num == right.Num
	l, r := left.number(), right.number()
	switch operation {
	case "equals":
		return equal
	case "notEquals":
		return !equal
	case "gt":
		return l > r
	case "lt":
		return l < r
	case "gte":
		return l >= r
	case "lte":
		return l <= r
	}
	return false
}

func compareBoolean(operation string, left, right operand) bool {
	switch operation {
	case "true":
		return left.Type == gjson.True
	case "false":
		return left.Type != gjson.True
	case "equals":
		return left.Type == right.Type && left.Exists() == right.Exists()
	case "notEquals":
		return left.Type != right.Type || left.Exists() != right.Exists()
	}
	return false
}

// compareOrder reads the sign of an ordering: below 0 when left comes first.
func compareOrder(operation string, order int) bool {
	switch operation {
	case "equals":
		return order == 0
	case "notEquals":
		return order != 0
	case "after":
		return order > 0
	case "before":
		return order < 0
	case "afterOrEquals":
		return order >= 0
	case "beforeOrEquals":
		return order <= 0
	}
	return false
}

func compareList(operation string, left, right operand) bool {
	list := left.Array()
	if rest, ok := strings.CutPrefix(operation, "length"); ok {
		length, limit := float64(len(list)), right.number()
		switch rest {
		case "Equals":
			return length == limit
		case "NotEquals":
			return length != limit
		case "Gt":
			return length > limit
		case "Lt":
			return length < limit
		case "Gte":
			return length >= limit
		case "Lte":
			return length <= limit
		}
		return false
	}
	found := false
	for _, element := range list {
		// As JavaScript's includes: lists and objects are never the same one.
		if element.Type == right.Type && element.Type != gjson.JSON && right.Exists() && element.Value() == right.Value() {
			found = true
			break
		}
	}
	switch operation {
	case "contains":
		return found
	case "notContains":
		return !found
	}
	return false
}
