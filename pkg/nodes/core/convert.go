package core

import (
	"bytes"
	"encoding/json"
	"math"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/reprise-engine/reprise/pkg/nodes/jsonobject"
)

// convert turns a value into a type of n8n's parameters, as JSON. ok is false
// when it cannot be. Null and unknown types are left alone.
func convert(value gjson.Result, kind string) (converted gjson.Result, ok bool) {
	if value.Type == gjson.Null {
		return value, true
	}
	switch kind {
	case "string":
		if value.Type == gjson.String {
			return value, true
		}
		return textResult(jsText(value)), true
	case "number":
		return toNumber(value)
	case "boolean":
		return toBoolean(value)
	case "array":
		return toTree(value, gjson.Result.IsArray)
	case "object", "json":
		return toTree(value, gjson.Result.IsObject)
	}
	return value, true
}

func textResult(text string) gjson.Result {
	return gjson.Result{Type: gjson.String, Str: text, Raw: jsonobject.Quote(text)}
}

// jsText is a value as n8n puts it into a text field: trees become JSON, numbers
// are written as JavaScript does.
func jsText(value gjson.Result) string {
	switch value.Type {
	case gjson.Number:
		return numberText(value)
	case gjson.JSON:
		return compact(value.Raw)
	}
	return value.String()
}

func compact(raw string) string {
	var b bytes.Buffer
	if json.Compact(&b, []byte(raw)) != nil {
		return raw
	}
	return b.String()
}

// numberText writes whole numbers digit by digit as they came, since they may be
// ids that a float cannot hold, and the rest as JavaScript would.
func numberText(value gjson.Result) string {
	if !strings.ContainsAny(value.Raw, ".eE") {
		return value.Raw
	}
	return formatNumber(value.Num)
}

func formatNumber(f float64) string {
	if a := math.Abs(f); a != 0 && (a < 1e-6 || a >= 1e21) {
		text := strconv.FormatFloat(f, 'e', -1, 64)
		// JavaScript writes 1e-7 where Go writes 1e-07.
		mantissa, exponent, _ := strings.Cut(text, "e")
		return mantissa + "e" + exponent[:1] + strings.TrimLeft(exponent[1:], "0")
	}
	return strconv.FormatFloat(f, 'f', -1, 64)
}

// jsNumber is JavaScript's Number(text).
func jsNumber(text string) (float64, bool) {
	text = strings.TrimSpace(text)
	switch {
	case text == "":
		return 0, true
	case strings.TrimLeft(text, "+-") == "Infinity":
		f, err := strconv.ParseFloat(text, 64)
		return f, err == nil
	case len(text) > 2 && text[0] == '0' && strings.ContainsRune("xXoObB", rune(text[1])):
		n, err := strconv.ParseUint(text, 0, 64)
		return float64(n), err == nil && !strings.Contains(text, "_")
	case strings.Trim(text, "+-0123456789.eE") != "":
		return 0, false // Go also reads "inf", "1_000" and hexadecimal floats
	}
	f, err := strconv.ParseFloat(text, 64)
	return f, err == nil || math.IsInf(f, 0)
}

func toNumber(value gjson.Result) (gjson.Result, bool) {
	switch value.Type {
	case gjson.Number:
		return value, true
	case gjson.True:
		return numberResult("1"), true
	case gjson.False:
		return numberResult("0"), true
	case gjson.String:
		f, ok := jsNumber(value.Str)
		if !ok || math.IsInf(f, 0) {
			return value, false
		}
		if text := strings.TrimSpace(value.Str); gjson.Valid(text) {
			return numberResult(text), true
		}
		return numberResult(formatNumber(f)), true
	}
	return value, false
}

func numberResult(text string) gjson.Result {
	f, _ := strconv.ParseFloat(text, 64)
	return gjson.Result{Type: gjson.Number, Raw: text, Num: f}
}

func toBoolean(value gjson.Result) (gjson.Result, bool) {
	switch value.Type {
	case gjson.True, gjson.False:
		return value, true
	case gjson.String:
		switch strings.ToLower(strings.TrimSpace(value.Str)) {
		case "true":
			return booleanResult(true), true
		case "false":
			return booleanResult(false), true
		}
	}
	if number, ok := toNumber(value); ok && (number.Num == 0 || number.Num == 1) {
		return booleanResult(number.Num == 1), true
	}
	return value, false
}

func booleanResult(b bool) gjson.Result {
	if b {
		return gjson.Result{Type: gjson.True, Raw: "true"}
	}
	return gjson.Result{Type: gjson.False, Raw: "false"}
}

// toTree accepts the tree itself or a text that holds it. Texts written with
// single quotes are common in parameters typed by hand, so n8n reads them too.
func toTree(value gjson.Result, is func(gjson.Result) bool) (gjson.Result, bool) {
	if value.Type == gjson.String {
		text := strings.TrimSpace(value.Str)
		if !gjson.Valid(text) {
			text = strings.ReplaceAll(text, "'", `"`)
		}
		if !gjson.Valid(text) {
			return value, false
		}
		if parsed := gjson.Parse(text); is(parsed) {
			return parsed, true
		}
		return value, false
	}
	return value, is(value)
}
