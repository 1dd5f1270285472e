package flow

import (
	"bytes"
	"encoding/json"
	"math"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/reprise-engine/reprise/pkg/nodes/jsonobject"
)

// conversion is how the values of workflow inputs are fitted to their types.
type conversion struct {
	text    bool // texts are made of what is none
	lenient bool // "5" is a number, "true" a boolean
}

// apply fits a value to a type of n8n's workflow inputs. ok is false when it does
// not fit. Null fits every type, and what is not known as a type fits all values.
func (c conversion) apply(value gjson.Result, kind string) (raw string, ok bool) {
	if value.Type == gjson.Null {
		return "null", true
	}
	switch kind {
	case "string":
		if !c.text || value.Type == gjson.String {
			return value.Raw, true
		}
		return jsonobject.Quote(textOf(value)), true
	case "number":
		if value.Type == gjson.Number || !c.lenient {
			return value.Raw, value.Type == gjson.Number
		}
		return numberOf(value)
	case "boolean":
		if value.IsBool() || !c.lenient {
			return value.Raw, value.IsBool()
		}
		return booleanOf(value)
	case "array":
		return c.tree(value, gjson.Result.IsArray)
	case "object":
		return c.tree(value, gjson.Result.IsObject)
	}
	return value.Raw, true
}

// tree accepts a tree, or leniently a text that holds one.
func (c conversion) tree(value gjson.Result, is func(gjson.Result) bool) (string, bool) {
	if is(value) {
		return value.Raw, true
	}
	if c.lenient && value.Type == gjson.String && gjson.Valid(value.Str) {
		if inner := gjson.Parse(value.Str); is(inner) {
			return inner.Raw, true
		}
	}
	return value.Raw, false
}

func textOf(value gjson.Result) string {
	var b bytes.Buffer
	if value.Type == gjson.JSON && json.Compact(&b, []byte(value.Raw)) == nil {
		return b.String()
	}
	return value.String()
}

func numberOf(value gjson.Result) (string, bool) {
	switch value.Type {
	case gjson.True:
		return "1", true
	case gjson.False:
		return "0", true
	case gjson.String:
		text := strings.TrimSpace(value.Str)
		f, err := strconv.ParseFloat(text, 64)
		switch {
		case err != nil || math.IsNaN(f) || math.IsInf(f, 0):
			return "", false
		case gjson.Valid(text): // as written: it may be an id that a float cannot hold
			return text, true
		}
		return strconv.FormatFloat(f, 'f', -1, 64), true
	}
	return "", false
}

func booleanOf(value gjson.Result) (string, bool) {
	switch strings.ToLower(strings.TrimSpace(value.String())) {
	case "true", "1":
		return "true", true
	case "false", "0":
		return "false", true
	}
	return "", false
}
