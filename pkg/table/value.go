package table

import (
	"bytes"
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/tidwall/gjson"
)

// A value is nil, a string, a float64, a bool, or for a date its int64 in ms.

// dateLayouts of texts that are dates; those without a zone are in UTC.
var dateLayouts = []string{
	time.RFC3339Nano, "2006-01-02T15:04:05.999999999Z0700", "2006-01-02T15:04:05.999999999", "2006-01-02T15:04",
	"2006-01-02 15:04:05.999999999Z07:00", "2006-01-02 15:04:05.999999999", "2006-01-02 15:04", time.DateOnly,
}

// maxDate is the last moment that is a date, and its negative the first, as in JavaScript.
const maxDate = 8_640_000_000_000_000

// convert makes a JSON value one of a column. What is empty is nil, except for a text.
func convert(v gjson.Result, c Column) (any, *Error) {
	if v.Type == gjson.Null {
		return nil, nil
	}
	text := v.String()
	if c.Type == String {
		if v.Type == gjson.JSON {
			return compact(v.Raw), nil
		}
		return text, nil
	}
	if v.Type == gjson.String && strings.TrimSpace(text) == "" {
		return nil, nil
	}
	switch {
	case c.Type == Number && (v.Type == gjson.Number || v.Type == gjson.String):
		if n, err := strconv.ParseFloat(strings.TrimSpace(text), 64); err == nil && !math.IsInf(n, 0) && !math.IsNaN(n) {
			return n, nil
		}
	case c.Type == Boolean:
		switch strings.ToLower(strings.TrimSpace(text)) {
		case "true", "1":
			return true, nil
		case "false", "0":
			return false, nil
		}
	case c.Type == Date && v.Type == gjson.Number:
		if math.Abs(v.Num) <= maxDate {
			return int64(v.Num), nil
		}
	case c.Type == Date && v.Type == gjson.String:
		for _, layout := range dateLayouts {
			if at, err := time.Parse(layout, strings.TrimSpace(text)); err == nil {
				return at.UnixMilli(), nil
			}
		}
	}
	return nil, bad("%.100s is no %s, which the column %q is of", v.Raw, c.Type, c.Name)
}

// compact is a JSON value without its spaces.
func compact(raw string) string {
	var b bytes.Buffer
	if json.Compact(&b, []byte(raw)) != nil {
		return raw
	}
	return b.String()
}

// appendValue writes a value as JSON, dates as texts.
func appendValue(b []byte, v any, isDate bool) []byte {
	switch v := v.(type) {
	case string:
		return appendText(b, v)
	case float64:
		text, err := json.Marshal(v)
		if err != nil {
			return append(b, "null"...) // only NaN and the infinities, which convert refuses
		}
		return append(b, text...)
	case bool:
		return strconv.AppendBool(b, v)
	case int64:
		if !isDate {
			return strconv.AppendInt(b, v, 10)
		}
		return appendText(b, Moment(v))
	}
	return append(b, "null"...)
}

// Moment is a date as items have it.
func Moment(ms int64) string { return time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.000Z07:00") }

// appendText writes a JSON text without the escapes that only HTML needs.
func appendText(b []byte, text string) []byte {
	var buffer bytes.Buffer
	e := json.NewEncoder(&buffer)
	e.SetEscapeHTML(false)
	_ = e.Encode(text) // a text can always be encoded
	return append(b, bytes.TrimSuffix(buffer.Bytes(), []byte("\n"))...)
}

// compare orders two values of one column: nothing before everything else.
func compare(a, b any) int {
	if a == nil || b == nil {
		switch {
		case a == b:
			return 0
		case a == nil:
			return -1
		}
		return 1
	}
	switch a := a.(type) {
	case string:
		b, _ := b.(string)
		return strings.Compare(a, b)
	case float64:
		b, _ := b.(float64)
		return order(a < b, a > b)
	case int64:
		b, _ := b.(int64)
		return order(a < b, a > b)
	case bool:
		b, _ := b.(bool)
		return order(!a && b, a && !b)
	}
	return 0
}

func order(less, greater bool) int {
	switch {
	case less:
		return -1
	case greater:
		return 1
	}
	return 0
}
