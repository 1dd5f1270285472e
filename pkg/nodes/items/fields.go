package items

import (
	"bytes"
	"encoding/json"
	"math"
	"sort"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/reprise-engine/reprise/pkg/nodes/jsonobject"
)

// get returns the JSON of a field, "" when there is none.
func get(object jsonobject.Object, field string, dots bool) string {
	if dots {
		return object.GetPath(field)
	}
	return object.Get(field)
}

// put gives a field its value.
func put(object *jsonobject.Object, field, value string, dots bool) {
	if dots {
		object.SetPath(field, value)
	} else {
		object.Set(field, value)
	}
}

// remove takes a field away.
func remove(object *jsonobject.Object, field string, dots bool) {
	if dots {
		object.DeletePath(field)
	} else {
		object.Delete(field)
	}
}

// isNothing reports whether there is no value, or null.
func isNothing(raw string) bool { return raw == "" || raw == "null" }

// canonical is the same text for equal values: keys are sorted, numbers and
// texts written in one way. "" stays what it is.
func canonical(raw string) string {
	var b strings.Builder
	appendCanonical(&b, gjson.Parse(raw))
	return b.String()
}

func appendCanonical(b *strings.Builder, value gjson.Result) {
	switch {
	case value.Type == gjson.Number:
		b.WriteString(numberText(value))
	case value.Type == gjson.String:
		b.WriteString(jsonobject.Quote(value.Str))
	case value.IsArray():
		b.WriteByte('[')
		for i, element := range value.Array() {
			if i > 0 {
				b.WriteByte(',')
			}
			appendCanonical(b, element)
		}
		b.WriteByte(']')
	case value.IsObject():
		members := append([]jsonobject.Member(nil), jsonobject.Parse(value.Raw).Members()...)
		sort.SliceStable(members, func(i, j int) bool { return members[i].Key < members[j].Key })
		b.WriteByte('{')
		for i, m := range members {
			if i > 0 {
				b.WriteByte(',')
			}
			b.WriteString(jsonobject.Quote(m.Key))
			b.WriteByte(':')
			appendCanonical(b, gjson.Parse(m.Value))
		}
		b.WriteByte('}')
	default:
		b.WriteString(value.Raw)
	}
}

// numberText writes whole numbers digit by digit as they came, since they may
// be ids that a float cannot hold, and the rest as JavaScript would.
func numberText(value gjson.Result) string {
	if !strings.ContainsAny(value.Raw, ".eE") {
		return value.Raw
	}
	return formatNumber(value.Num)
}

func formatNumber(f float64) string {
	if a := math.Abs(f); a != 0 && (a < 1e-6 || a >= 1e21) {
		mantissa, exponent, _ := strings.Cut(strconv.FormatFloat(f, 'e', -1, 64), "e")
		// JavaScript writes 1e-7 where Go writes 1e-07.
		return mantissa + "e" + exponent[:1] + strings.TrimLeft(exponent[1:], "0")
	}
	return strconv.FormatFloat(f, 'f', -1, 64)
}

// text is a value as part of a text: trees are JSON, null and undefined empty.
func text(raw string) string {
	value := gjson.Parse(raw)
	switch value.Type {
	case gjson.Number:
		return numberText(value)
	case gjson.JSON:
		var b bytes.Buffer
		if json.Compact(&b, []byte(raw)) == nil {
			return b.String()
		}
	}
	return value.String()
}

// toNumber is JavaScript's Number(value); ok is false for NaN.
func toNumber(value gjson.Result) (number float64, ok bool) {
	switch value.Type {
	case gjson.Number:
		return value.Num, true
	case gjson.True:
		return 1, true
	case gjson.False:
		return 0, true
	case gjson.Null:
		return 0, value.Exists()
	case gjson.String:
		trimmed := strings.TrimSpace(value.Str)
		if trimmed == "" {
			return 0, true
		}
		if strings.Trim(trimmed, "+-0123456789.eE") != "" {
			return 0, false // Go also reads "inf", "1_000" and hexadecimal
		}
		f, err := strconv.ParseFloat(trimmed, 64)
		return f, err == nil
	}
	return 0, false
}

// list writes a JSON list; a value that is missing is null in it.
func list(values []string) string {
	var b strings.Builder
	b.WriteByte('[')
	for i, v := range values {
		if i > 0 {
			b.WriteByte(',')
		}
		if v == "" {
			v = "null"
		}
		b.WriteString(v)
	}
	b.WriteByte(']')
	return b.String()
}
