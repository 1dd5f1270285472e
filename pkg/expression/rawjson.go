package expression

import (
	"bytes"
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"unicode/utf16"
)

// This file reads JSON without decoding it: what a path selects is a slice of
// the text it came from.

func skipSpace(raw []byte, i int) int {
	for i < len(raw) && (raw[i] == ' ' || raw[i] == '\n' || raw[i] == '\t' || raw[i] == '\r') {
		i++
	}
	return i
}

// skipString is the index behind the string that starts at i.
func skipString(raw []byte, i int) int {
	for i++; i < len(raw); i++ {
		j := bytes.IndexByte(raw[i:], '"')
		if j < 0 {
			return len(raw)
		}
		i += j
		slashes := 0
		for raw[i-1-slashes] == '\\' {
			slashes++
		}
		if slashes%2 == 0 {
			return i + 1
		}
	}
	return len(raw)
}

// skipValue is the index behind the value that starts at i.
func skipValue(raw []byte, i int) int {
	if i >= len(raw) {
		return len(raw)
	}
	switch raw[i] {
	case '"':
		return skipString(raw, i)
	case '{', '[':
		for depth := 0; i < len(raw); {
			switch raw[i] {
			case '"':
				i = skipString(raw, i)
				continue
			case '{', '[':
				depth++
			case '}', ']':
				if depth--; depth == 0 {
					return i + 1
				}
			}
			i++
		}
		return len(raw)
	}
	for i < len(raw) && raw[i] != ',' && raw[i] != '}' && raw[i] != ']' && raw[i] > ' ' {
		i++
	}
	return i
}

// members calls visit with each key (in quotes) and value of an object until it
// returns false.
func members(raw []byte, visit func(key, value []byte) bool) {
	i := skipSpace(raw, 0)
	if i >= len(raw) || raw[i] != '{' {
		return
	}
	for i = skipSpace(raw, i+1); i < len(raw) && raw[i] == '"'; {
		keyEnd := skipString(raw, i)
		key := raw[i:keyEnd]
		i = skipSpace(raw, keyEnd)
		if i >= len(raw) || raw[i] != ':' {
			return
		}
		i = skipSpace(raw, i+1)
		end := skipValue(raw, i)
		if !visit(key, raw[i:end]) {
			return
		}
		i = skipSpace(raw, end)
		if i >= len(raw) || raw[i] != ',' {
			return
		}
		i = skipSpace(raw, i+1)
	}
}

// elements calls visit with each element of an array until it returns false.
func elements(raw []byte, visit func(value []byte) bool) {
	i := skipSpace(raw, 0)
	if i >= len(raw) || raw[i] != '[' {
		return
	}
	i = skipSpace(raw, i+1)
	if i < len(raw) && raw[i] == ']' {
		return
	}
	for i < len(raw) {
		end := skipValue(raw, i)
		if !visit(raw[i:end]) {
			return
		}
		i = skipSpace(raw, end)
		if i >= len(raw) || raw[i] != ',' {
			return
		}
		i = skipSpace(raw, i+1)
	}
}

// member is the value of a key; the last wins, as in JavaScript.
func member(raw []byte, key string) (value []byte, ok bool) {
	members(raw, func(k, v []byte) bool {
		if string(k[1:len(k)-1]) == key || bytes.IndexByte(k, '\\') >= 0 && decodeString(k) == key {
			value, ok = v, true
		}
		return true
	})
	return value, ok
}

func element(raw []byte, index int) (value []byte, ok bool) {
	n := 0
	elements(raw, func(v []byte) bool {
		if n == index {
			value, ok = v, true
		}
		n++
		return !ok
	})
	return value, ok
}

func countElements(raw []byte) int {
	n := 0
	elements(raw, func([]byte) bool { n++; return true })
	return n
}

func decodeString(raw []byte) string {
	if bytes.IndexByte(raw, '\\') < 0 {
		return string(raw[1 : len(raw)-1])
	}
	var s string
	_ = json.Unmarshal(raw, &s)
	return s
}

// quote is a string as JSON, with nothing escaped that JSON.stringify leaves.
func quote(s string) json.RawMessage {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(s)
	return bytes.TrimRight(b.Bytes(), "\n")
}

// scalar makes of a JSON scalar the value that JavaScript would make of it.
func scalar(raw []byte) Value {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 {
		return undefined
	}
	if raw[0] != '-' && !isDigit(raw[0]) {
		return Value{JSON: raw}
	}
	if len(raw) < 16 && !bytes.ContainsAny(raw, ".eE-") {
		return Value{JSON: raw} // a short integer is canonical
	}
	f, _ := strconv.ParseFloat(string(raw), 64)
	switch {
	case math.IsInf(f, 1):
		return Value{JSON: null, Kind: "Infinity"}
	case math.IsInf(f, -1):
		return Value{JSON: null, Kind: "-Infinity"}
	}
	return Value{JSON: json.RawMessage(formatNumber(f))}
}

// formatNumber writes a number as JavaScript does.
func formatNumber(f float64) string {
	if f == 0 {
		return "0"
	}
	if a := math.Abs(f); a >= 1e-6 && a < 1e21 {
		return strconv.FormatFloat(f, 'f', -1, 64)
	}
	s := strconv.FormatFloat(f, 'e', -1, 64)
	mantissa, exponent, _ := strings.Cut(s, "e")
	sign := exponent[:1]
	return mantissa + "e" + sign + strings.TrimLeft(exponent[1:], "0")
}

// render writes a value into a text: null and undefined vanish. ok is false when
// only JavaScript can tell (an object with a toString of its own).
func render(v Value) (text string, ok bool) {
	if v.Kind == "Infinity" || v.Kind == "-Infinity" {
		return v.Kind, true
	}
	if v.Kind != "" {
		return "", true
	}
	var b strings.Builder
	ok = renderInto(&b, v.JSON)
	return b.String(), ok
}

func renderInto(b *strings.Builder, raw []byte) bool {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 || raw[0] == 'n' {
		return true
	}
	switch raw[0] {
	case '"':
		b.WriteString(decodeString(raw))
	case '{':
		if _, own := member(raw, "toString"); own {
			return false
		}
		b.WriteString("[object Object]")
	case '[':
		first, ok := true, true
		elements(raw, func(v []byte) bool {
			if !first {
				b.WriteByte(',')
			}
			first = false
			ok = renderInto(b, v)
			return ok
		})
		return ok
	case 't', 'f':
		b.Write(raw)
	default:
		v := scalar(raw)
		if v.Kind != "" {
			b.WriteString(v.Kind)
		} else {
			b.Write(v.JSON)
		}
	}
	return true
}

// utf16Length is the length of a string in JavaScript.
func utf16Length(s string) int {
	n := 0
	for _, r := range s {
		n += utf16.RuneLen(r)
	}
	return n
}
