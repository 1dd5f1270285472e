package expression

import (
	"sync"
	"sync/atomic"
)

// program is a compiled parameter text.
type program struct {
	id       uint64 // names it inside VMs
	segments []segment
	// fast: Go alone evaluates it, as far as can be told before.
	fast bool
	// mutates: it may change globals of the VM, which must not be used again. spoils: it may
	// change the data it reads, so that must be read again after.
	mutates, spoils bool
	// keys of $json that it reads, when these are all it can read; whole otherwise.
	keys  []string
	whole bool
	// items: it uses items otherwise than through $json.
	items bool
	// alone: it took too long or too much when it was evaluated for several items at once.
	alone atomic.Bool
	err   *Error
}

type segment struct {
	text string // literal text, or the code rewritten for the VM
	code bool
	fast *fast
	// free are the names the code uses that it might not declare: those that do
	// not exist are undefined in n8n, and no error.
	free []string
}

// single reports whether the program is one expression whose value keeps its
// type.
func (p *program) single() bool { return len(p.segments) == 1 && p.segments[0].code }

// programs caches compiled texts. The texts come from workflows, so there are
// few; the bound is for those who generate them.
type programs struct {
	mu     sync.RWMutex
	byText map[string]*program
}

const maxPrograms = 10_000

// compiled is shared by all evaluators.
var compiled programs

var lastProgram atomic.Uint64

func (c *programs) get(text string) *program {
	c.mu.RLock()
	p := c.byText[text]
	c.mu.RUnlock()
	if p != nil {
		return p
	}
	p = compile(text)
	c.mu.Lock()
	if c.byText == nil || len(c.byText) >= maxPrograms {
		c.byText = map[string]*program{}
	}
	c.byText[text] = p
	c.mu.Unlock()
	return p
}

// compile compiles a text without its leading "=".
func compile(text string) *program {
	p := &program{id: lastProgram.Add(1), fast: true}
	for _, part := range split(text) {
		if !part.code {
			p.segments = append(p.segments, segment{text: part.text})
			continue
		}
		s, err := compileSegment(part.text)
		if err != nil {
			p.err = err
			return p
		}
		if s.fast == nil {
			p.fast = false
			tokens, _ := lex(part.text)
			data, globals := mutation(tokens)
			p.spoils, p.mutates = p.spoils || data, p.mutates || globals
			p.items = p.items || readsItems(tokens)
		}
		keys, whole := jsonKeys(part.text)
		p.keys, p.whole = append(p.keys, keys...), p.whole || whole
		p.segments = append(p.segments, s)
	}
	return p
}

func compileSegment(code string) (segment, *Error) {
	tokens, ok := lex(code)
	if !ok || len(tokens) == 0 || !balanced(tokens) {
		return segment{}, invalidSyntax()
	}
	if err := forbidden(tokens); err != nil {
		return segment{}, err
	}
	s := segment{code: true, fast: compileFast(tokens)}
	if end := statementEnd(tokens); end < len(tokens) {
		code, tokens = code[:tokens[end].start], tokens[:end]
	}
	if len(tokens) == 0 {
		return segment{}, invalidSyntax()
	}
	switch tokens[0].text {
	case "class", "function", "async": // declarations, which have no value
		if tokens[0].text != "async" || len(tokens) > 1 && tokens[1].text == "function" {
			return segment{}, invalidSyntax()
		}
	}
	s.text = rewrite(code, tokens, true)
	s.free = freeNames(tokens)
	return s, nil
}

// jsonKeys are the keys of $json that code names; whole says that it does
// something else with it.
func jsonKeys(code string) (keys []string, whole bool) {
	tokens, _ := lex(code)
	for i, t := range tokens {
		if t.kind != tokenIdent || t.text != "$json" || i > 0 && (tokens[i-1].is(".") || tokens[i-1].is("?.")) {
			continue
		}
		r := &reader{tokens: tokens, at: i + 1}
		key, ok := r.key()
		if !ok || unsafeKeys[key] || r.peek().is("(") {
			return nil, true
		}
		keys = append(keys, key)
	}
	return keys, false
}

// freeNames are the names that stand where a variable can stand.
func freeNames(tokens []token) []string {
	var list []string
	seen := map[string]bool{}
	for i, t := range tokens {
		if t.kind != tokenIdent || reserved[t.text] || seen[t.text] || t.text[0] == '#' || !plainName(t.text) ||
			i > 0 && (tokens[i-1].is(".") || tokens[i-1].is("?.")) {
			continue
		}
		seen[t.text] = true
		list = append(list, t.text)
	}
	return list
}

var reserved = names(
	"await", "break", "case", "catch", "class", "const", "continue", "debugger", "default", "delete", "do", "else", "enum", "export",
	"extends", "false", "finally", "for", "function", "if", "import", "in", "instanceof", "let", "new", "null", "return", "static",
	"super", "switch", "this", "throw", "true", "try", "typeof", "var", "void", "while", "with", "yield", "arguments",
)

// statementEnd is the index of the first semicolon outside of brackets: what
// follows the first statement is not evaluated.
func statementEnd(tokens []token) int {
	depth := 0
	for i, t := range tokens {
		switch {
		case t.kind == tokenTemplateHead, t.is("("), t.is("["), t.is("{"):
			depth++
		case t.kind == tokenTemplateTail, t.is(")"), t.is("]"), t.is("}"):
			depth--
		case depth == 0 && t.is(";"):
			return i
		}
	}
	return len(tokens)
}

// forbiddenNames lead to the function constructor or to prototypes.
var forbiddenNames = map[string]bool{
	"__proto__": true, "prototype": true, "getPrototypeOf": true, "setPrototypeOf": true,
	"defineProperty": true, "defineProperties": true, "__defineGetter__": true, "__defineSetter__": true,
	"__lookupGetter__": true, "__lookupSetter__": true, "getOwnPropertyDescriptor": true,
	"getOwnPropertyDescriptors": true, "captureStackTrace": true, "prepareStackTrace": true,
}

// forbidden finds property accesses that n8n refuses.
func forbidden(tokens []token) *Error {
	for i := 1; i < len(tokens); i++ {
		before, name := tokens[i-1], tokens[i].text
		switch {
		case tokens[i].kind == tokenIdent && (before.is(".") || before.is("?.")):
			if name == "constructor" {
				return &Error{Message: "Expression contains invalid constructor function call"}
			}
		case tokens[i].kind == tokenString && before.is("[") && i+1 < len(tokens) && tokens[i+1].is("]") && i > 1 && tokens[i-2].closes():
			if name, _ = unquote(tokens[i]); name == "constructor" {
				return refused(name)
			}
		default:
			continue
		}
		if forbiddenNames[name] {
			return refused(name)
		}
	}
	return nil
}

func refused(name string) *Error {
	return &Error{Message: `Cannot access "` + name + `" due to security concerns`}
}

func invalidSyntax() *Error { return &Error{Message: "invalid syntax"} }
