package items

import (
	"strings"

	"github.com/tidwall/gjson"

	"github.com/reprise-engine/reprise/pkg/nodes/jsonobject"
)

func quote(text string) string { return jsonobject.Quote(text) }

// lower is a text in lower case, so that texts are ordered without regard to
// it; other values are what they are.
func lower(value gjson.Result) gjson.Result {
	if value.Type == gjson.String {
		value.Str = strings.ToLower(value.Str)
	}
	return value
}

// less is JavaScript's a < b: texts by their characters, everything else by
// number, and false when one side is none.
func less(a, b gjson.Result) bool {
	if a.Type == gjson.String && b.Type == gjson.String {
		return a.Str < b.Str
	}
	if a.Type == gjson.JSON || b.Type == gjson.JSON {
		return text(a.Raw) < text(b.Raw)
	}
	left, okLeft := toNumber(a)
	right, okRight := toNumber(b)
	return okLeft && okRight && left < right
}

// compare orders two values for sorting, the second one first when descending.
// Where JavaScript's < has no answer, which would leave the order to chance,
// numbers come before texts; what is null or missing comes last either way.
func compare(a, b gjson.Result, descending bool) int {
	order := 0
	switch {
	case less(a, b):
		order = -1
	case less(b, a):
		order = 1
	case rank(a) != rank(b):
		order = rank(a) - rank(b)
		if max(rank(a), rank(b)) >= rankNull {
			return order
		}
	}
	if descending {
		return -order
	}
	return order
}

const (
	rankNumber = iota
	rankText
	rankNull
	rankMissing
)

func rank(value gjson.Result) int {
	switch {
	case !value.Exists():
		return rankMissing
	case value.Type == gjson.Null:
		return rankNull
	case value.Type == gjson.String || value.Type == gjson.JSON:
		return rankText
	}
	return rankNumber
}
