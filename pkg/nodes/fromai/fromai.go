// Package fromai reads the $fromAI(key, description, type, default) calls in a
// node's parameters and turns them into the JSON schema of a tool's arguments.
package fromai

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/reprise-engine/reprise/pkg/nodes/jsonobject"
)

// argument is one $fromAI(key, description, type, default) in the parameters.
type argument struct {
	key, description, kind string
	fallback               string // JSON; "" makes the argument required
}

var (
	fromAI      = regexp.MustCompile(`(?i)\$fromAI\s*\(`)
	argumentKey = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)
)

// TextSchema is the JSON schema of the arguments of tools that take one text.
var TextSchema = json.RawMessage(`{"type":"object","properties":{"input":{"type":"string"}},"required":["input"],"additionalProperties":false}`)

// Schema is the JSON schema of the arguments that the expressions in
// some parameters ask for, in the order they are met.
func Schema(parameters json.RawMessage) (json.RawMessage, error) {
	arguments, err := findArguments(gjson.ParseBytes(parameters), nil)
	if err != nil {
		return nil, err
	}
	var properties jsonobject.Object
	var required []string
	for _, a := range arguments {
		property, err := a.schema()
		if err != nil {
			return nil, err
		}
		if properties.Has(a.key) {
			if properties.Get(a.key) != property {
				return nil, fmt.Errorf("argument %q is asked for twice with different descriptions or types", a.key)
			}
			continue
		}
		properties.Set(a.key, property)
		if a.fallback == "" {
			required = append(required, a.key)
		}
	}
	return jsonobject.Schema(properties, required, true).JSON(), nil
}

func (a argument) schema() (string, error) {
	var o jsonobject.Object
	switch a.kind {
	case "", "string":
		o.Set("type", `"string"`)
	case "number", "boolean":
		o.Set("type", jsonobject.Quote(a.kind))
	case "json":
		o.Set("type", `"object"`)
		o.Set("additionalProperties", "true")
	default:
		return "", fmt.Errorf("argument %q has the unknown type %q; use string, number, boolean or json", a.key, a.kind)
	}
	if a.description != "" {
		o.Set("description", jsonobject.Quote(a.description))
	}
	o.Set("default", a.fallback)
	return o.String(), nil
}

func findArguments(v gjson.Result, found []argument) ([]argument, error) {
	var err error
	switch {
	case v.Type == gjson.String && strings.HasPrefix(v.Str, "="):
		for _, at := range fromAI.FindAllStringIndex(v.Str, -1) {
			a, err := readArgument(v.Str[at[1]:])
			if err != nil {
				return nil, err
			}
			found = append(found, a)
		}
	case v.IsObject() || v.IsArray():
		v.ForEach(func(_, inner gjson.Result) bool {
			found, err = findArguments(inner, found)
			return err == nil
		})
	}
	return found, err
}

// readArgument reads what follows "$fromAI(".
func readArgument(text string) (argument, error) {
	parts := splitCall(text)
	for len(parts) < 4 {
		parts = append(parts, "")
	}
	a := argument{key: unquote(parts[0]), description: unquote(parts[1]), kind: strings.ToLower(unquote(parts[2]))}
	if !argumentKey.MatchString(a.key) {
		return a, fmt.Errorf("$fromAI key %q is not valid: use 1 to 64 letters, digits, _ or -", a.key)
	}
	if fallback := parts[3]; fallback != "" && fallback != "undefined" {
		a.fallback = fallback
		if text := unquote(fallback); text != fallback || !gjson.Valid(fallback) {
			a.fallback = jsonobject.Quote(text)
			if a.kind != "" && a.kind != "string" && gjson.Valid(text) { // '5' as a number's default
				a.fallback = text
			}
		}
	}
	return a, nil
}

// splitCall splits the arguments of a JavaScript call at the commas on its own
// level, up to its closing parenthesis.
func splitCall(text string) []string {
	var parts []string
	start, depth := 0, 0
	for i := 0; i < len(text); i++ {
		switch c := text[i]; c {
		case '\'', '"', '`':
			for i++; i < len(text) && text[i] != c; i++ {
				if text[i] == '\\' {
					i++
				}
			}
		case '(', '[', '{':
			depth++
		case ',':
			if depth == 0 {
				parts = append(parts, strings.TrimSpace(text[start:i]))
				start = i + 1
			}
		case ')', ']', '}':
			if depth == 0 {
				return append(parts, strings.TrimSpace(text[start:i]))
			}
			depth--
		}
	}
	return append(parts, strings.TrimSpace(text[start:]))
}

var escapes = strings.NewReplacer(`\n`, "\n", `\t`, "\t", `\r`, "\r", `\\`, `\`, `\'`, `'`, `\"`, `"`, "\\`", "`")

// unquote reads a JavaScript string literal; what is none is returned as it is.
func unquote(text string) string {
	if len(text) < 2 || strings.IndexByte("'\"`", text[0]) < 0 || text[len(text)-1] != text[0] {
		return text
	}
	return escapes.Replace(text[1 : len(text)-1])
}
