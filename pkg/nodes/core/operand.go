package core

import (
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/tidwall/gjson"
)

// operand is one side of a condition after its type was seen to.
type operand struct {
	gjson.Result
	time time.Time
}

// missing is JavaScript's value == null.
func (o operand) missing() bool { return o.Type == gjson.Null }

// number is the value in an order comparison: null counts as 0 there, undefined
// compares as false with everything.
func (o operand) number() float64 {
	if o.Type == gjson.Number {
		return o.Num
	}
	if !o.Exists() {
		return math.NaN()
	}
	return 0
}

func (o operand) lower() operand {
	switch {
	case o.Type == gjson.String:
		o.Result = textResult(strings.ToLower(o.Str))
	case o.IsArray():
		var list []string
		for _, element := range o.Array() {
			list = append(list, operand{Result: element}.lower().Raw)
		}
		o.Result = gjson.Parse("[" + strings.Join(list, ",") + "]")
	}
	return o
}

// typed checks a value against the type of a comparison and, unless strict,
// converts it.
func typed(value gjson.Result, kind string, strict bool, zone *time.Location) (operand, bool) {
	o := operand{Result: value}
	if value.Type == gjson.Null || kind == "any" || kind == "" {
		return o, true
	}
	if kind == "dateTime" {
		var ok bool
		o.time, ok = parseTime(value, zone)
		return o, ok
	}
	if strict {
		return o, typeName(value) == kind
	}
	var ok bool
	o.Result, ok = convert(value, kind)
	return o, ok
}

func typeName(value gjson.Result) string {
	switch {
	case value.Type == gjson.String:
		return "string"
	case value.Type == gjson.Number:
		return "number"
	case value.Type == gjson.True || value.Type == gjson.False:
		return "boolean"
	case value.IsArray():
		return "array"
	case value.IsObject():
		return "object"
	}
	return "null"
}

// timeLayouts are the forms of a date that n8n reads, ISO 8601 first. Those
// without an offset are in the workflow's time zone.
var timeLayouts = []string{
	time.RFC3339Nano,
	"2006-01-02T15:04:05.999999999",
	"2006-01-02T15:04Z07:00",
	"2006-01-02T15:04",
	"2006-01-02",
	"2006-01",
	"2006",
	"20060102T150405Z07:00",
	"20060102T150405",
	"20060102",
	"2006-01-02T15:04:05.999999999-0700",
	time.RFC1123Z,
	time.RFC1123,
	"Mon, 2 Jan 2006 15:04:05 -0700",
	"2 Jan 2006 15:04:05 -0700",
	time.RFC850,
	time.ANSIC,
	"2006-01-02 15:04:05.999999999 Z07:00",
	"2006-01-02 15:04:05.999999999Z07:00",
	"2006-01-02 15:04:05.999999999",
	"2006-01-02 15:04",
}

// parseTime reads a date. Numbers, also in texts of ten digits and more, are
// milliseconds since 1970.
func parseTime(value gjson.Result, zone *time.Location) (time.Time, bool) {
	if value.Type == gjson.Number {
		return time.UnixMilli(int64(value.Num)), true
	}
	if value.Type != gjson.String {
		return time.Time{}, false
	}
	text := strings.TrimSpace(value.Str)
	for _, layout := range timeLayouts {
		if t, err := time.ParseInLocation(layout, text, zone); err == nil {
			return t, true
		}
	}
	if n, err := strconv.ParseInt(text, 10, 64); err == nil && len(text) >= 10 {
		return time.UnixMilli(n), true
	}
	return time.Time{}, false
}

func zoneOf(name string) *time.Location {
	if zone, err := time.LoadLocation(name); err == nil {
		return zone
	}
	return time.UTC
}
