package workflow

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"
)

// The functions here read one value in any of the spellings that files have.
// ok is false when the value is there and cannot be read; an absent or null
// value is fine and gives the fallback.

// text reads a string; numbers and booleans are rendered.
func text(v gjson.Result) string {
	switch v.Type {
	case gjson.String:
		return v.Str
	case gjson.Number, gjson.True, gjson.False:
		return v.Raw
	default:
		return ""
	}
}

// number reads a number or a text that holds one.
func number(v gjson.Result, fallback float64) (f float64, ok bool) {
	switch v.Type {
	case gjson.Null:
		return fallback, true
	case gjson.Number:
		f = v.Num
	case gjson.String:
		s := strings.TrimSpace(v.Str)
		if s == "" {
			return fallback, true
		}
		// ParseFloat also takes hexadecimal numbers and names of infinity.
		if !json.Valid([]byte(s)) {
			return fallback, false
		}
		parsed, err := strconv.ParseFloat(s, 64)
		if err != nil {
			return fallback, false
		}
		f = parsed
	default:
		return fallback, false
	}
	if math.IsInf(f, 0) || math.IsNaN(f) {
		return fallback, false
	}
	return f, true
}

// integer reads a number that fits 32 bits and drops its fraction.
func integer(v gjson.Result) (n int, ok bool) {
	f, ok := number(v, 0)
	if !ok || f > math.MaxInt32 || f < math.MinInt32 {
		return 0, false
	}
	return int(f), true
}

// boolean reads true and false, also as texts or as 1 and 0.
func boolean(v gjson.Result) (b, ok bool) {
	switch strings.ToLower(text(v)) {
	case "true", "1":
		return true, true
	case "false", "0", "":
		return false, v.Type != gjson.JSON
	}
	return false, false
}

// unquoted opens a JSON text inside a string, as exports of a database have it.
func unquoted(v gjson.Result) gjson.Result {
	if v.Type == gjson.String {
		s := strings.TrimSpace(v.Str)
		if s != "" && (s[0] == '{' || s[0] == '[') && gjson.Valid(s) {
			return gjson.Parse(s)
		}
	}
	return v
}

// describe names the kind of a value for a message.
func describe(v gjson.Result) string {
	switch {
	case !v.Exists():
		return "missing"
	case v.IsArray():
		return "a list"
	case v.IsObject():
		return "an object"
	case v.Type == gjson.Null:
		return "null"
	case v.Type == gjson.String:
		return fmt.Sprintf("the text %q", clip(v.Str, 40))
	}
	return clip(v.Raw, 40)
}
