package expression

import (
	"encoding/json"
	"strconv"
)

var (
	null      = json.RawMessage("null")
	undefined = Value{Kind: "undefined"}
)

// root is what a fast path starts at.
type root uint8

const (
	rootLiteral   root = iota
	rootItem           // the input item: $json, $binary and $input.item
	rootInput          // $input.first(), last(), all()
	rootNode           // $('X').item, first(), last(), all()
	rootLegacy         // $node["X"].json
	rootExecution      // $execution.id …
	rootWorkflow       // $workflow.name …
	rootItemIndex
	rootRunIndex
	rootFromAI
)

// fast is an expression that Go evaluates: a root and the keys that are followed
// from there.
type fast struct {
	root    root
	node    string // of rootNode and rootLegacy
	which   string // "item", "first", "last", "all"; "binary" for $binary
	branch  int    // explicit output and run, -1 when not given
	run     int
	keys    []string
	literal Value
	fromAI  FromAI
}

// unsafeKeys are refused by n8n or inherited by every object: JavaScript decides.
var unsafeKeys = map[string]bool{
	"__proto__": true, "constructor": true, "prototype": true, "hasOwnProperty": true, "isPrototypeOf": true,
	"propertyIsEnumerable": true, "toLocaleString": true, "toString": true, "valueOf": true,
	"__defineGetter__": true, "__defineSetter__": true, "__lookupGetter__": true, "__lookupSetter__": true,
}

// compileFast returns nil when the tokens are more than a path or a literal.
func compileFast(tokens []token) *fast {
	r := &reader{tokens: tokens}
	f := r.literal()
	if f == nil {
		f = r.path()
	}
	if f == nil {
		return nil
	}
	if r.peek().is(";") {
		r.at++
	}
	if r.at != len(tokens) {
		return nil
	}
	return f
}

// reader walks over tokens.
type reader struct {
	tokens []token
	at     int
}

func (r *reader) peek() token {
	if r.at < len(r.tokens) {
		return r.tokens[r.at]
	}
	return token{kind: tokenPunct}
}

func (r *reader) take() token {
	t := r.peek()
	r.at++
	return t
}

func (r *reader) accept(punct string) bool {
	if r.peek().is(punct) {
		r.at++
		return true
	}
	return false
}

func (r *reader) literal() *fast {
	start := r.at
	t := r.take()
	f := &fast{root: rootLiteral}
	switch {
	case t.kind == tokenString || t.kind == tokenTemplate:
		if s, ok := unquote(t); ok {
			f.literal = Value{JSON: quote(s)}
			return f
		}
	case t.kind == tokenNumber:
		if v, ok := plainNumber(t.text); ok {
			f.literal = v
			return f
		}
	case t.is("-") && r.peek().kind == tokenNumber:
		if v, ok := plainNumber("-" + r.take().text); ok {
			f.literal = v
			return f
		}
	case t.kind == tokenIdent:
		switch t.text {
		case "true", "false", "null":
			f.literal = Value{JSON: json.RawMessage(t.text)}
			return f
		case "undefined":
			f.literal = undefined
			return f
		}
	}
	r.at = start
	return nil
}

// plainNumber reads a number whose notation JSON and JavaScript share.
func plainNumber(text string) (Value, bool) {
	if !json.Valid([]byte(text)) {
		return Value{}, false
	}
	return scalar([]byte(text)), true
}

func (r *reader) path() *fast {
	t := r.take()
	if t.kind != tokenIdent {
		return nil
	}
	f := &fast{branch: -1, run: -1}
	switch t.text {
	case "$json":
		f.root, f.keys = rootItem, []string{"json"}
	case "$binary":
		f.root, f.which, f.keys = rootItem, "binary", []string{"binary"}
	case "$input":
		f.root = rootInput
		if !r.accessor(f) {
			return nil
		}
		if f.which == "item" {
			f.root = rootItem
		}
	case "$":
		name, ok := r.argument("(", ")")
		if !ok || name == "" {
			return nil
		}
		f.root, f.node = rootNode, name
		if !r.accessor(f) {
			return nil
		}
	case "$node":
		name, ok := r.key()
		if !ok {
			return nil
		}
		f.root, f.node = rootLegacy, name
		if k := r.peekKey(); k != "json" && k != "binary" {
			return nil
		}
	case "$itemIndex":
		f.root = rootItemIndex
	case "$runIndex":
		f.root = rootRunIndex
	case "$workflow":
		f.root = rootWorkflow
		if k := r.peekKey(); k != "id" && k != "name" && k != "active" {
			return nil
		}
	case "$execution":
		f.root = rootExecution
		if k := r.peekKey(); k != "id" && k != "mode" && k != "resumeUrl" && k != "resumeFormUrl" && k != "idempotencyKey" {
			return nil
		}
	case "$fromAI", "$fromAi", "$fromai":
		f.root = rootFromAI
		call, ok := r.fromAI()
		if !ok {
			return nil
		}
		f.fromAI = call
	default:
		return nil
	}
	for r.at < len(r.tokens) && !r.peek().is(";") {
		key, ok := r.key()
		if !ok || unsafeKeys[key] {
			return nil
		}
		f.keys = append(f.keys, key)
	}
	return f
}

// accessor reads .item, .first(), .last() or .all() with literal arguments.
func (r *reader) accessor(f *fast) bool {
	if !r.accept(".") {
		return false
	}
	f.which = r.take().text
	switch f.which {
	case "item":
		return true
	case "first", "last", "all":
	default:
		return false
	}
	if !r.accept("(") {
		return false
	}
	for i := 0; !r.accept(")"); i++ {
		t := r.take()
		n, err := strconv.Atoi(t.text)
		if t.kind != tokenNumber || err != nil || i > 1 || f.root == rootInput {
			return false
		}
		if i == 0 {
			f.branch = n
		} else {
			f.run = n
		}
		if !r.accept(",") && !r.peek().is(")") {
			return false
		}
	}
	return true
}

// argument reads a string between two brackets.
func (r *reader) argument(open, shut string) (string, bool) {
	if !r.accept(open) {
		return "", false
	}
	s, ok := unquote(r.take())
	return s, ok && r.accept(shut)
}

// key reads one step: .name, ?.name, ["name"], ['name'], [0], ?.["name"].
func (r *reader) key() (string, bool) {
	optional := r.accept("?.")
	if !optional && r.accept(".") || optional && r.peek().kind == tokenIdent {
		t := r.take()
		return t.text, t.kind == tokenIdent && t.text[0] != '#' && plainName(t.text)
	}
	if !r.accept("[") {
		return "", false
	}
	t := r.take()
	switch t.kind {
	case tokenString, tokenTemplate:
		s, ok := unquote(t)
		return s, ok && r.accept("]")
	case tokenNumber:
		n, err := strconv.Atoi(t.text)
		return strconv.Itoa(n), err == nil && strconv.Itoa(n) == t.text && r.accept("]")
	}
	if t.is("-") && r.peek().kind == tokenNumber {
		n, err := strconv.Atoi(r.take().text)
		return strconv.Itoa(-n), err == nil && n != 0 && r.accept("]")
	}
	return "", false
}

func plainName(s string) bool {
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' {
			return false
		}
	}
	return true
}

// peekKey is the next step without taking it, "" when there is none.
func (r *reader) peekKey() string {
	at := r.at
	key, ok := r.key()
	r.at = at
	if !ok {
		return ""
	}
	return key
}

// follow walks keys from a JSON value. ok is false when a key might be a
// builtin (the length of an array is not, it is known here): JavaScript decides.
func follow(v Value, keys []string) (Value, bool) {
	raw := []byte(v.JSON)
	if v.Kind != "" {
		return undefinedBehind(v, keys)
	}
	for i, key := range keys {
		raw = raw[skipSpace(raw, 0):]
		if len(raw) == 0 {
			return undefined, true
		}
		var found bool
		switch raw[0] {
		case '{':
			raw, found = member(raw, key)
		case '[':
			if key == "length" {
				raw, found = []byte(strconv.Itoa(countElements(raw))), true
			} else if n, isIndex := arrayIndex(key); isIndex {
				raw, found = element(raw, n)
			} else if !isNegative(key) {
				return Value{}, false
			}
		case '"':
			s := decodeString(raw)
			if key == "length" {
				raw, found = []byte(strconv.Itoa(utf16Length(s))), true
			} else if n, isIndex := arrayIndex(key); isIndex {
				if !ascii(s) {
					return Value{}, false
				}
				if found = n < len(s); found {
					raw = quote(s[n : n+1])
				}
			} else if !isNegative(key) {
				return Value{}, false
			}
		case 'n':
			return undefined, true // an error that is swallowed
		default:
			if _, isIndex := arrayIndex(key); !isIndex && !isNegative(key) {
				return Value{}, false
			}
		}
		if !found {
			return undefinedBehind(undefined, keys[i+1:])
		}
	}
	return scalar(raw), true
}

// undefinedBehind follows keys from a value without properties.
func undefinedBehind(v Value, keys []string) (Value, bool) {
	if len(keys) == 0 {
		return v, true
	}
	return undefined, v.Kind == "undefined"
}

func arrayIndex(key string) (int, bool) {
	n, err := strconv.Atoi(key)
	return n, err == nil && n >= 0 && strconv.Itoa(n) == key
}

func isNegative(key string) bool { return len(key) > 1 && key[0] == '-' && isDigit(key[1]) }

func ascii(s string) bool {
	for i := 0; i < len(s); i++ {
		if s[i] >= 0x80 {
			return false
		}
	}
	return true
}
