package expression

import "strings"

// mutation tells what code might change beyond its own variables: data that it reads, which must be
// fetched again after it, or the globals of the VM, which is then not used again. The VM serves one run
// of one node, so what is overlooked reaches no other execution.
func mutation(tokens []token) (data, globals bool) {
	for i, t := range tokens {
		switch {
		case t.kind == tokenPunct && assigns(t.text):
			globals = globals || assignsGlobal(tokens, i)
		case t.is("]") && i+1 < len(tokens) && tokens[i+1].is("("): // a method by a computed name
			globals = true
		case t.kind == tokenIdent:
			switch {
			case t.text == "delete", t.text == "apply", t.text == "call", t.text == "bind", strings.HasPrefix(t.text, "define"):
				globals = true
			case t.text == "assign": // Object.assign({}, …) changes what it has just made
				globals = globals || i+2 >= len(tokens) || !tokens[i+1].is("(") || !tokens[i+2].is("{")
			case mutators[t.text], strings.HasPrefix(t.text, "set"):
				data = true
			}
		}
	}
	return data, globals
}

// mutators are methods that change the list they are called on. No global is a list.
var mutators = names("sort", "reverse", "push", "pop", "shift", "unshift", "splice", "fill", "copyWithin")

// assigns reports whether an operator changes its operand.
func assigns(operator string) bool {
	switch operator {
	case "++", "--":
		return true
	case "=>", "==", "===", "!=", "!==", "<=", ">=":
		return false
	}
	return strings.HasSuffix(operator, "=")
}

// assignsGlobal reports whether the operator at i may change something that is not a
// variable of the code.
func assignsGlobal(tokens []token, i int) bool {
	variable := func(at int) bool { // a name by itself, which is none of JavaScript's or n8n's
		if at < 0 || at >= len(tokens) || tokens[at].kind != tokenIdent || operatorWords[tokens[at].text] {
			return false
		}
		if at > 0 && (tokens[at-1].is(".") || tokens[at-1].is("?.")) {
			return false
		}
		name := tokens[at].text
		return name[0] >= 'a' && name[0] <= 'z' && !lowerGlobals[name]
	}
	switch {
	case variable(i - 1):
		return false
	case tokens[i].is("++") || tokens[i].is("--"):
		return !variable(i+1) || i+2 < len(tokens) && (tokens[i+2].is(".") || tokens[i+2].is("[") || tokens[i+2].is("?."))
	case i > 0 && tokens[i-1].is("}"): // const {a} = …
		return false
	case i > 0 && tokens[i-1].is("]"): // const [a] = …, or a member
		open := opening(tokens, i-1)
		return open < 0 || open > 0 && tokens[open-1].closes() && !declares(tokens[open-1])
	}
	return i < 2 || !declares(tokens[i-2]) // const Name = …
}

func declares(t token) bool { return t.text == "const" || t.text == "let" || t.text == "var" }

// lowerGlobals are functions that every VM has.
var lowerGlobals = names("parseInt", "parseFloat", "isNaN", "isFinite", "encodeURI", "encodeURIComponent", "decodeURI",
	"decodeURIComponent", "structuredClone", "console", "numberList", "zip", "undefined")

// opening is the index of the bracket that the one at i closes, -1 when there is none.
func opening(tokens []token, i int) int {
	depth := 0
	for ; i >= 0; i-- {
		switch {
		case tokens[i].is("}"), tokens[i].is("]"), tokens[i].is(")"), tokens[i].kind == tokenTemplateTail:
			depth++
		case tokens[i].is("{"), tokens[i].is("["), tokens[i].is("("), tokens[i].kind == tokenTemplateHead:
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return -1
}

// readsItems reports whether code uses items as wholes other than through $json.
func readsItems(tokens []token) bool {
	for i, t := range tokens {
		if t.kind != tokenIdent {
			continue
		}
		switch t.text {
		case "$binary", "$thisItem":
			return true
		case "$input":
			if i+2 < len(tokens) && tokens[i+2].text == "item" {
				return true
			}
		}
	}
	return false
}
