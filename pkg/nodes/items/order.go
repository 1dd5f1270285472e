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

// compare orders two values for sorting. Where JavaScript's < has no answer,
// which would leave the order to chance, numbers come before texts, and what is
// null or missing last.
func compare(a, b gjson.Result) int {
	switch {
	case less(a, b):
		return -1
	case less(b, a):
		return 1
	}
	return rank(a) - rank(b)
}

func rank(value gjson.Result) int {
	switch value.Type {
	case gjson.Null:
		return 2
	case gjson.String, gjson.JSON:
		return 1
	}
	return 0
}
