package mockllm

import (
	"regexp"
	"strings"

	"github.com/tidwall/gjson"
)

// fillArguments makes arguments for a JSON schema: the first required string
// gets text, other required properties a plain value of their type. A schema
// that requires nothing gets text in its first string.
func fillArguments(schema gjson.Result, text string) string {
	f := filler{text: text}
	return string(f.object(nil, schema))
}

type filler struct {
	text string
	used bool // the text has found its place
}

func (f *filler) object(dst []byte, schema gjson.Result) []byte {
	properties := schema.Get("properties")
	required := map[string]bool{}
	schema.Get("required").ForEach(func(_, name gjson.Result) bool {
		required[name.Str] = true
		return true
	})
	if len(required) == 0 {
		if name := firstOf(properties, "string"); name != "" {
			required[name] = true
		} else if name := firstOf(properties, "object"); name != "" {
			required[name] = true
		}
	}
	dst = append(dst, '{')
	first := true
	properties.ForEach(func(name, property gjson.Result) bool {
		if !required[name.Str] {
			return true
		}
		if !first {
			dst = append(dst, ',')
		}
		first = false
		dst = gjson.AppendJSONString(dst, name.Str)
		dst = append(dst, ':')
		dst = f.value(dst, property)
		return true
	})
	return append(dst, '}')
}

func firstOf(properties gjson.Result, kind string) string {
	found := ""
	properties.ForEach(func(name, property gjson.Result) bool {
		if typeOf(property) == kind {
			found = name.Str
		}
		return found == ""
	})
	return found
}

func (f *filler) value(dst []byte, schema gjson.Result) []byte {
	if d := schema.Get("default"); d.Exists() {
		return append(dst, d.Raw...)
	}
	if e := schema.Get("enum.0"); e.Exists() {
		return append(dst, e.Raw...)
	}
	if c := schema.Get("const"); c.Exists() {
		return append(dst, c.Raw...)
	}
	switch typeOf(schema) {
	case "object":
		return f.object(dst, schema)
	case "array":
		dst = append(dst, '[')
		if items := schema.Get("items"); items.Exists() {
			dst = f.value(dst, items)
		}
		return append(dst, ']')
	case "number", "integer":
		if n := firstNumber.FindString(f.text); n != "" {
			return append(dst, n...)
		}
		return append(dst, '1')
	case "boolean":
		return append(dst, "true"...)
	case "null":
		return append(dst, "null"...)
	}
	if f.used {
		return append(dst, `"text"`...)
	}
	f.used = true
	return gjson.AppendJSONString(dst, f.text)
}

// typeOf reads a schema's type; of several the first that is not null.
func typeOf(schema gjson.Result) string {
	t := schema.Get("type")
	if t.Type == gjson.String {
		return t.Str
	}
	for _, one := range t.Array() {
		if one.Str != "null" {
			return one.Str
		}
	}
	if schema.Get("properties").Exists() {
		return "object"
	}
	return "string"
}

var (
	firstNumber = regexp.MustCompile(`\b(0|[1-9][0-9]{0,14})\b`)
	// A sum that reads like a date or a telephone number is none.
	noSum = regexp.MustCompile(`^\d{1,4}([-/])\d{1,4}([-/]\d{1,4})+$`)
)

// findArithmetic returns the first arithmetic expression in a text ("6 * 7",
// "(1+2)^3"), or "". It has at least one operator between numbers.
func findArithmetic(s string) string {
	for i := 0; i < len(s); i++ {
		if !startsTerm(s[i]) || i > 0 && (isWord(s[i-1]) || s[i-1] == '.') {
			continue
		}
		end, operators := scanSum(s, i)
		switch {
		case end < 0:
			continue
		case operators == 0 || end < len(s) && isLetter(s[end]) || noSum.MatchString(s[i:end]):
			i = end - 1 // what was read holds no other start
			continue
		}
		return s[i:end]
	}
	return ""
}

// scanSum reads term (operator term)* from i and returns where it ends and how
// many operators it has; end is -1 when there is no term.
func scanSum(s string, i int) (end, operators int) {
	end, operators = scanTerm(s, i)
	for end >= 0 {
		at := skipSpace(s, end)
		if at >= len(s) || !strings.ContainsRune("+-*/%^", rune(s[at])) {
			return end, operators
		}
		if s[at] == '*' && at+1 < len(s) && s[at+1] == '*' {
			at++
		}
		next, more := scanTerm(s, skipSpace(s, at+1))
		if next < 0 {
			return end, operators
		}
		end, operators = next, operators+1+more
	}
	return end, operators
}

func scanTerm(s string, i int) (end, operators int) {
	if i < len(s) && (s[i] == '-' || s[i] == '+') {
		i++
	}
	if i >= len(s) {
		return -1, 0
	}
	if s[i] == '(' {
		end, operators = scanSum(s, skipSpace(s, i+1))
		if end < 0 {
			return -1, 0
		}
		end = skipSpace(s, end)
		if end >= len(s) || s[end] != ')' {
			return -1, 0
		}
		return end + 1, operators
	}
	start := i
	for i < len(s) && isDigit(s[i]) {
		i++
	}
	if i+1 < len(s) && s[i] == '.' && isDigit(s[i+1]) {
		for i++; i < len(s) && isDigit(s[i]); i++ {
		}
	}
	if i == start {
		return -1, 0
	}
	return i, 0
}

func skipSpace(s string, i int) int {
	for i < len(s) && s[i] == ' ' {
		i++
	}
	return i
}

func startsTerm(c byte) bool { return isDigit(c) || c == '(' || c == '-' }
func isDigit(c byte) bool    { return c >= '0' && c <= '9' }
func isLetter(c byte) bool   { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= 0x80 }
func isWord(c byte) bool     { return isDigit(c) || isLetter(c) || c == '_' }
