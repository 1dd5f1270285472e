package expression

import (
	"unicode"
	"unicode/utf8"
)

// tokenKind is the kind of a JavaScript token.
type tokenKind uint8

const (
	tokenIdent tokenKind = iota
	tokenNumber
	tokenString
	tokenRegexp
	tokenPunct
	// A template without substitutions, or its pieces: `a${  }b${  }c`.
	tokenTemplate
	tokenTemplateHead
	tokenTemplateMiddle
	tokenTemplateTail
)

// token is a piece of source; text is what stands there, with quotes.
type token struct {
	kind       tokenKind
	text       string
	start, end int
}

func (t token) is(punct string) bool { return t.kind == tokenPunct && t.text == punct }

// closes reports whether a token may end an operand, so that a slash after it
// divides.
func (t token) closes() bool {
	switch t.kind {
	case tokenPunct:
		return t.text == ")" || t.text == "]" || t.text == "}" || t.text == "++" || t.text == "--"
	case tokenIdent:
		return !operatorWords[t.text]
	case tokenTemplateHead, tokenTemplateMiddle:
		return false
	}
	return true
}

// operatorWords are words after which an operand begins.
var operatorWords = map[string]bool{
	"return": true, "typeof": true, "instanceof": true, "in": true, "of": true, "new": true, "delete": true,
	"void": true, "throw": true, "case": true, "do": true, "else": true, "await": true, "yield": true,
}

// puncts that are longer than a character, longest first.
var puncts = []string{
	">>>=", "...", "===", "!==", "**=", "<<=", ">>=", ">>>", "&&=", "||=", "??=",
	"=>", "==", "!=", "<=", ">=", "&&", "||", "??", "?.", "++", "--", "+=", "-=", "*=", "/=", "%=",
	"&=", "|=", "^=", "<<", ">>", "**",
}

// lex takes JavaScript apart; comments and white space vanish. ok is false for
// text that no JavaScript can hold (a string or comment without its end, a
// character that starts nothing).
func lex(source string) (tokens []token, ok bool) {
	l := lexer{source: source}
	for {
		if !l.skipSpace() {
			return l.tokens, false
		}
		if l.at >= len(source) {
			return l.tokens, len(l.braces) == 0
		}
		if !l.next() {
			return l.tokens, false
		}
	}
}

type lexer struct {
	source string
	at     int
	tokens []token
	// braces are the open { : true for the ${ of a template.
	braces []bool
}

func (l *lexer) emit(kind tokenKind, end int) {
	l.tokens = append(l.tokens, token{kind: kind, text: l.source[l.at:end], start: l.at, end: end})
	l.at = end
}

func (l *lexer) skipSpace() bool {
	for l.at < len(l.source) {
		rest := l.source[l.at:]
		switch c := rest[0]; {
		case c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\v' || c == '\f':
			l.at++
		case len(rest) > 1 && rest[:2] == "//":
			for l.at < len(l.source) && l.source[l.at] != '\n' && l.source[l.at] != '\r' {
				l.at++
			}
		case len(rest) > 1 && rest[:2] == "/*":
			end := l.at + 2
			for ; ; end++ {
				if end+1 >= len(l.source) {
					return false
				}
				if l.source[end] == '*' && l.source[end+1] == '/' {
					break
				}
			}
			l.at = end + 2
		case c >= utf8.RuneSelf:
			r, size := utf8.DecodeRuneInString(rest)
			if !unicode.IsSpace(r) && r != '\uFEFF' {
				return true
			}
			l.at += size
		default:
			return true
		}
	}
	return true
}

func (l *lexer) next() bool {
	c := l.source[l.at]
	switch {
	case c == '\'' || c == '"':
		return l.quoted(c)
	case c == '`':
		return l.template(l.at+1, tokenTemplate, tokenTemplateHead)
	case c >= '0' && c <= '9', c == '.' && l.at+1 < len(l.source) && isDigit(l.source[l.at+1]):
		l.number()
		return true
	case identStart(l.source[l.at:]) > 0 || c == '#' || c == '\\':
		return l.ident()
	case c == '/' && (len(l.tokens) == 0 || !l.tokens[len(l.tokens)-1].closes()):
		return l.regexp()
	case c == '{':
		l.braces = append(l.braces, false)
	case c == '}':
		n := len(l.braces)
		if n == 0 {
			return false
		}
		inTemplate := l.braces[n-1]
		l.braces = l.braces[:n-1]
		if inTemplate {
			return l.template(l.at+1, tokenTemplateTail, tokenTemplateMiddle)
		}
	}
	for _, p := range puncts {
		if len(l.source)-l.at >= len(p) && l.source[l.at:l.at+len(p)] == p {
			if p == "?." && l.at+2 < len(l.source) && isDigit(l.source[l.at+2]) {
				continue // a ? .5 : b
			}
			l.emit(tokenPunct, l.at+len(p))
			return true
		}
	}
	if c >= utf8.RuneSelf || c < ' ' || c == '@' {
		return false
	}
	l.emit(tokenPunct, l.at+1)
	return true
}

func (l *lexer) quoted(quote byte) bool {
	for i := l.at + 1; i < len(l.source); i++ {
		switch l.source[i] {
		case '\\':
			i++
		case '\n', '\r':
			return false
		case quote:
			l.emit(tokenString, i+1)
			return true
		}
	}
	return false
}

// template reads the text of a template from i on: to its end, or to the next
// substitution.
func (l *lexer) template(i int, whole, piece tokenKind) bool {
	for ; i < len(l.source); i++ {
		switch l.source[i] {
		case '\\':
			i++
		case '`':
			l.emit(whole, i+1)
			return true
		case '$':
			if i+1 < len(l.source) && l.source[i+1] == '{' {
				l.braces = append(l.braces, true)
				l.emit(piece, i+2)
				return true
			}
		}
	}
	return false
}

func (l *lexer) number() {
	i := l.at
	hex := i+1 < len(l.source) && l.source[i] == '0' && (l.source[i+1]|0x20 == 'x' || l.source[i+1]|0x20 == 'b' || l.source[i+1]|0x20 == 'o')
	seenDot := false
	for ; i < len(l.source); i++ {
		c := l.source[i]
		switch {
		case isDigit(c) || c == '_' || c == 'n' || c|0x20 >= 'a' && c|0x20 <= 'z':
		case c == '.' && !hex && !seenDot:
			seenDot = true
		case (c == '+' || c == '-') && !hex && l.source[i-1]|0x20 == 'e':
		default:
			l.emit(tokenNumber, i)
			return
		}
	}
	l.emit(tokenNumber, i)
}

func (l *lexer) ident() bool {
	i := l.at
	for i < len(l.source) {
		if n := identPart(l.source[i:]); n > 0 {
			i += n
		} else if l.source[i] == '\\' || l.source[i] == '#' && i == l.at {
			i++
		} else {
			break
		}
	}
	if i == l.at {
		return false
	}
	l.emit(tokenIdent, i)
	return true
}

func (l *lexer) regexp() bool {
	inClass := false
	for i := l.at + 1; i < len(l.source); i++ {
		switch c := l.source[i]; {
		case c == '\\':
			i++
		case c == '\n':
			return false
		case c == '[':
			inClass = true
		case c == ']':
			inClass = false
		case c == '/' && !inClass:
			for i++; i < len(l.source) && identPart(l.source[i:]) > 0; i++ {
			}
			l.emit(tokenRegexp, i)
			return true
		}
	}
	return false
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// identStart is the length of the character that can start a name, or 0.
func identStart(s string) int {
	c := s[0]
	if c < utf8.RuneSelf {
		if c == '$' || c == '_' || c|0x20 >= 'a' && c|0x20 <= 'z' {
			return 1
		}
		return 0
	}
	r, size := utf8.DecodeRuneInString(s)
	if unicode.IsLetter(r) {
		return size
	}
	return 0
}

func identPart(s string) int {
	if isDigit(s[0]) {
		return 1
	}
	if n := identStart(s); n > 0 {
		return n
	}
	if r, size := utf8.DecodeRuneInString(s); r == '\u200c' || r == '\u200d' || unicode.IsDigit(r) || unicode.Is(unicode.Mn, r) || unicode.Is(unicode.Pc, r) {
		return size
	}
	return 0
}

// unquote is the value of a string, or of a template without substitutions.
func unquote(t token) (string, bool) {
	if t.kind != tokenString && t.kind != tokenTemplate {
		return "", false
	}
	return unescape(t.text[1 : len(t.text)-1])
}
