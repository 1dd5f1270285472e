package expression

import (
	"encoding/json"
	"regexp"
	"strings"
)

// FromAI is one $fromAI(key, description, type, default): an argument that the
// model of an Agent fills in when the node runs as its tool.
type FromAI struct {
	Key         string
	Description string
	// Type is "string" (also when none is given), "number", "boolean" or "json".
	Type string
	// Default is nil when none is given.
	Default json.RawMessage
}

// FindFromAI lists the $fromAI calls in a parameter tree in the order in which
// they stand, each key once (the first call wins). Arguments that are no
// literals count as not given; a call without a literal key is left out.
func FindFromAI(raw json.RawMessage) []FromAI {
	var found []FromAI
	seen := map[string]bool{}
	eachExpression(raw, func(text string) {
		for _, p := range split(text) {
			if !p.code || !mentionsFromAI(p.text) {
				continue
			}
			tokens, _ := lex(p.text)
			for i := range tokens {
				if tokens[i].kind != tokenIdent || !fromAINames[tokens[i].text] {
					continue
				}
				r := &reader{tokens: tokens, at: i + 1}
				call, _ := r.fromAI()
				if call.Key != "" && !seen[call.Key] {
					seen[call.Key] = true
					found = append(found, call)
				}
			}
		}
	})
	return found
}

var fromAINames = map[string]bool{"$fromAI": true, "$fromAi": true, "$fromai": true}

func mentionsFromAI(code string) bool {
	return strings.Contains(code, "$fromAI") || strings.Contains(code, "$fromAi") || strings.Contains(code, "$fromai")
}

// fromAI reads the arguments behind the name. ok is false when one of them is
// no literal; what was read before it is returned.
func (r *reader) fromAI() (call FromAI, ok bool) {
	call.Type = "string"
	if !r.accept("(") {
		return call, false
	}
	for i := 0; !r.accept(")"); i++ {
		f := r.literal()
		if f == nil || i > 3 {
			return call, false
		}
		var text string
		isText := json.Unmarshal(f.literal.JSON, &text) == nil && f.literal.JSON != nil
		switch {
		case i == 0 && isText:
			call.Key = text
		case i == 0:
			return call, false
		case i == 1 && isText:
			call.Description = text
		case i == 2 && isText && text != "":
			call.Type = text
		case i == 3:
			call.Default = f.literal.JSON
		}
		if !r.accept(",") && !r.peek().is(")") {
			return call, false
		}
	}
	return call, call.Key != ""
}

var fromAIKey = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

// fromAI is the value of a call: the model's argument of that name, else the
// default, else undefined.
func (s *Scope) fromAI(call FromAI) (Value, error) {
	if !fromAIKey.MatchString(call.Key) {
		return Value{}, &Error{
			Message:     "Invalid parameter key",
			Description: `The key of $fromAI("key") must be 1 to 64 characters long and hold only letters, digits, "_" and "-"`,
		}
	}
	if v, ok := member(s.ToolArguments, call.Key); ok {
		return scalar(v), nil
	}
	if query, ok := member(s.ToolArguments, "query"); ok {
		if v, ok := member(query, call.Key); ok {
			return scalar(v), nil
		}
	}
	if call.Default != nil {
		return Value{JSON: call.Default}, nil
	}
	return undefined, nil
}

// eachExpression calls visit with every expression in a parameter tree,
// without its leading "=".
func eachExpression(raw json.RawMessage, visit func(text string)) {
	eachText(raw, func(text string) {
		if strings.HasPrefix(text, "=") {
			visit(text[1:])
		}
	})
}

// eachText calls visit with every string in a JSON tree that is no key.
func eachText(raw []byte, visit func(text string)) {
	i := skipSpace(raw, 0)
	if i >= len(raw) {
		return
	}
	switch raw[i] {
	case '"':
		visit(decodeString(raw[i:skipString(raw, i)]))
	case '{':
		members(raw, func(_, v []byte) bool { eachText(v, visit); return true })
	case '[':
		elements(raw, func(v []byte) bool { eachText(v, visit); return true })
	}
}
