package expression

import (
	"sort"
	"strings"
)

// rewrite turns the code of an expression into plain JavaScript: calls of n8n's
// extension methods (x.isEmpty()) become calls of a function that knows what
// they mean for the type of x, nothing included, and the messages of caught
// errors become V8's.
func rewrite(source string, tokens []token, extensions bool) string {
	w := &rewriter{tokens: tokens, match: matchBrackets(tokens)}
	for i, t := range tokens {
		switch {
		case extensions && t.kind == tokenIdent && extensionNames[t.text]:
			w.call(i)
		case t.kind == tokenIdent && t.text == "catch":
			w.caught(i)
		}
	}
	return w.apply(source)
}

// Names in the VM that rewritten code calls.
const (
	callExtension         = "__extend("
	callExtensionOptional = "__extendOptional("
	rewordError           = "__reword("
)

type edit struct {
	start, end int
	text       string
}

type rewriter struct {
	tokens []token
	match  []int
	edits  []edit
}

// matchBrackets gives for every bracket the index of its partner, -1 for other
// tokens and for brackets without one.
func matchBrackets(tokens []token) []int {
	match := make([]int, len(tokens))
	var open []int
	for i, t := range tokens {
		match[i] = -1
		switch {
		case t.kind == tokenTemplateHead, t.is("("), t.is("["), t.is("{"):
			open = append(open, i)
		case t.kind == tokenTemplateTail, t.is(")"), t.is("]"), t.is("}"):
			if n := len(open); n > 0 {
				match[i], match[open[n-1]] = open[n-1], i
				open = open[:n-1]
			}
		}
	}
	return match
}

// balanced reports whether every bracket has a partner of its kind.
func balanced(tokens []token) bool {
	partner := map[string]string{"(": ")", "[": "]", "{": "}"}
	for i, m := range matchBrackets(tokens) {
		t := tokens[i]
		if m < 0 && (t.is("(") || t.is(")") || t.is("[") || t.is("]") || t.is("{") || t.is("}")) {
			return false
		}
		if m > i && t.kind == tokenPunct && tokens[m].text != partner[t.text] {
			return false
		}
	}
	return true
}

// call rewrites receiver.name(arguments), where name is token i.
func (w *rewriter) call(i int) {
	if i < 2 || i+1 >= len(w.tokens) || !w.tokens[i+1].is("(") || w.match[i+1] < 0 {
		return
	}
	dot := w.tokens[i-1]
	optional := dot.is("?.")
	if !optional && !dot.is(".") {
		return
	}
	start, chained, ok := w.operand(i - 2)
	if !ok || w.builtin(start, i-1) {
		return
	}
	name, closing := callExtension, w.match[i+1]
	if optional || chained {
		name = callExtensionOptional
		w.continueOptional(closing + 1)
	}
	w.edits = append(w.edits,
		edit{w.tokens[start].start, w.tokens[start].start, name},
		edit{dot.start, w.tokens[i+1].end, `,"` + w.tokens[i].text + `",[`},
		edit{w.tokens[closing].start, w.tokens[closing].end, "])"})
}

// continueOptional makes the step behind an optional call optional as well,
// as the one chain that it was would have stopped there.
func (w *rewriter) continueOptional(i int) {
	if i >= len(w.tokens) {
		return
	}
	switch t := w.tokens[i]; {
	case t.is("."):
		w.edits = append(w.edits, edit{t.start, t.end, "?."})
	case t.is("["), t.is("("):
		w.edits = append(w.edits, edit{t.start, t.start, "?."})
	}
}

// namespaces have methods of these names themselves.
var namespaces = map[string]bool{
	"Math": true, "Object": true, "Number": true, "String": true, "Array": true, "JSON": true, "Date": true,
	"DateTime": true, "Duration": true, "Interval": true, "$input": true,
}

// builtin reports whether the operand in tokens[start:end] is no value of a user.
func (w *rewriter) builtin(start, end int) bool {
	first := w.tokens[start]
	if first.kind != tokenIdent {
		return false
	}
	if end == start+1 {
		return namespaces[first.text]
	}
	return first.text == "$" && end == start+4 // $('X').first()
}

// operand finds the token at which the operand that ends with token i starts.
// chained says that it has a ?. on its outermost level.
func (w *rewriter) operand(i int) (start int, chained, ok bool) {
	for i >= 0 {
		t := w.tokens[i]
		switch {
		case t.is(")"), t.is("]"), t.is("}"), t.kind == tokenTemplateTail:
			open := w.match[i]
			if open < 0 {
				return 0, false, false
			}
			before := open - 1
			if before >= 0 && w.tokens[before].is("?.") && !t.is("}") {
				chained, i = true, before-1
				continue
			}
			if before >= 0 && !t.is("}") && w.callee(before) {
				i = before
				continue
			}
			if t.is("}") && before >= 0 && w.tokens[before].is(")") {
				return 0, false, false // the body of a function or statement
			}
			return w.withNew(open), chained, true
		case t.kind == tokenTemplate && i > 0 && w.callee(i-1):
			i--
			continue
		case t.kind == tokenIdent, t.kind == tokenString, t.kind == tokenNumber, t.kind == tokenRegexp, t.kind == tokenTemplate:
			if i >= 2 && w.tokens[i-1].is("?.") {
				chained, i = true, i-2
				continue
			}
			if i >= 2 && w.tokens[i-1].is(".") {
				i -= 2
				continue
			}
			if t.kind == tokenIdent && operatorWords[t.text] {
				return 0, false, false
			}
			return w.withNew(i), chained, true
		default:
			return 0, false, false
		}
	}
	return 0, false, false
}

// callee reports whether token i ends something that can be called or indexed.
func (w *rewriter) callee(i int) bool {
	t := w.tokens[i]
	switch t.kind {
	case tokenIdent:
		if i > 0 && (w.tokens[i-1].is(".") || w.tokens[i-1].is("?.")) {
			return true
		}
		return !operatorWords[t.text] && !statementWords[t.text]
	case tokenPunct:
		return t.text == ")" || t.text == "]"
	case tokenString, tokenTemplate, tokenTemplateTail:
		return true
	}
	return false
}

var statementWords = map[string]bool{
	"if": true, "for": true, "while": true, "switch": true, "catch": true, "with": true, "else": true,
	"const": true, "let": true, "var": true,
}

func (w *rewriter) withNew(i int) int {
	for i > 0 && w.tokens[i-1].kind == tokenIdent && w.tokens[i-1].text == "new" {
		i--
	}
	return i
}

// caught rewrites catch (e) { to reword the error first.
func (w *rewriter) caught(i int) {
	if i+4 >= len(w.tokens) || !w.tokens[i+1].is("(") || w.tokens[i+2].kind != tokenIdent ||
		!w.tokens[i+3].is(")") || !w.tokens[i+4].is("{") {
		return
	}
	end := w.tokens[i+4].end
	w.edits = append(w.edits, edit{end, end, rewordError + w.tokens[i+2].text + ");"})
}

func (w *rewriter) apply(source string) string {
	if len(w.edits) == 0 {
		return source
	}
	sort.SliceStable(w.edits, func(i, j int) bool { return w.edits[i].start < w.edits[j].start })
	var b strings.Builder
	at := 0
	for _, e := range w.edits {
		if e.start < at {
			continue
		}
		b.WriteString(source[at:e.start])
		b.WriteString(e.text)
		at = e.end
	}
	b.WriteString(source[at:])
	return b.String()
}
