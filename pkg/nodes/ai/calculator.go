package ai

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// calculate evaluates an expression: numbers, + - * / % ^ (and **), factorial !,
// parentheses, comparisons, and, or, not, c ? a : b, the functions and constants
// below. The result is written as JavaScript writes it.
func calculate(text string) (string, error) {
	p := &calculator{text: text}
	value, err := p.conditional()
	if err != nil {
		return "", err
	}
	if p.skip(); p.at < len(p.text) {
		return "", fmt.Errorf("unexpected %q", p.text[p.at:])
	}
	if value.truth {
		return strconv.FormatBool(value.number != 0), nil
	}
	return jsNumber(value.number), nil
}

// operand is a number, or a truth value as 0 or 1.
type operand struct {
	number float64
	truth  bool
}

func truth(b bool) operand {
	if b {
		return operand{1, true}
	}
	return operand{0, true}
}

// calculator is a recursive descent parser that evaluates as it reads.
type calculator struct {
	text  string
	at    int
	depth int
}

// maxDepth bounds the nesting of an expression.
const maxDepth = 200

func (p *calculator) skip() {
	for p.at < len(p.text) && strings.IndexByte(" \t\r\n", p.text[p.at]) >= 0 {
		p.at++
	}
}

// take reads the first of some operators that comes next.
func (p *calculator) take(operators ...string) string {
	p.skip()
	for _, op := range operators {
		if !strings.HasPrefix(p.text[p.at:], op) {
			continue
		}
		end := p.at + len(op)
		if isLetter(op[0]) && end < len(p.text) && (isLetter(p.text[end]) || isDigit(p.text[end])) {
			continue // "order" is not "or"
		}
		p.at = end
		return op
	}
	return ""
}

func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' || c == '_' }
func isDigit(c byte) bool  { return c >= '0' && c <= '9' }

func (p *calculator) conditional() (operand, error) {
	if p.depth++; p.depth > maxDepth {
		return operand{}, fmt.Errorf("too deeply nested")
	}
	defer func() { p.depth-- }()
	condition, err := p.binary(0)
	if err != nil || p.take("?") == "" {
		return condition, err
	}
	yes, err := p.conditional()
	if err != nil {
		return yes, err
	}
	if p.take(":") == "" {
		return yes, fmt.Errorf("a ? without :")
	}
	no, err := p.conditional()
	if condition.number != 0 {
		return yes, err
	}
	return no, err
}

// levels are the left-associative operators, weakest first.
var levels = [][]string{
	{"||", "or"},
	{"&&", "and"},
	{"==", "!=", "<=", ">=", "<", ">"},
	{"+", "-"},
	{"*", "/", "%"},
}

func (p *calculator) binary(level int) (operand, error) {
	if level == len(levels) {
		return p.unary()
	}
	left, err := p.binary(level + 1)
	for err == nil {
		before := p.at
		op := p.take(levels[level]...)
		if op == "" || op == "*" && strings.HasPrefix(p.text[p.at:], "*") {
			p.at = before
			return left, nil
		}
		var right operand
		if right, err = p.binary(level + 1); err == nil {
			left = apply(op, left.number, right.number)
		}
	}
	return left, err
}

func apply(op string, a, b float64) operand {
	switch op {
	case "||", "or":
		return truth(a != 0 || b != 0)
	case "&&", "and":
		return truth(a != 0 && b != 0)
	case "==":
		return truth(a == b)
	case "!=":
		return truth(a != b)
	case "<=":
		return truth(a <= b)
	case ">=":
		return truth(a >= b)
	case "<":
		return truth(a < b)
	case ">":
		return truth(a > b)
	case "+":
		return operand{number: a + b}
	case "-":
		return operand{number: a - b}
	case "*":
		return operand{number: a * b}
	case "/":
		return operand{number: a / b}
	}
	return operand{number: math.Mod(a, b)}
}

func (p *calculator) unary() (operand, error) {
	if p.depth++; p.depth > maxDepth {
		return operand{}, fmt.Errorf("too deeply nested")
	}
	defer func() { p.depth-- }()
	op := p.take("-", "+", "not", "!")
	if op == "" {
		return p.power()
	}
	value, err := p.unary()
	switch op {
	case "-":
		return operand{number: -value.number}, err
	case "+":
		return operand{number: value.number}, err
	}
	return truth(value.number == 0), err
}

// power is right-associative and binds more tightly than a sign before it.
func (p *calculator) power() (operand, error) {
	base, err := p.primary()
	if err != nil {
		return base, err
	}
	for {
		before := p.at
		if p.take("!") == "" || strings.HasPrefix(p.text[p.at:], "=") {
			p.at = before
			break
		}
		base = operand{number: factorial(base.number)}
	}
	if p.take("^", "**") == "" {
		return base, nil
	}
	exponent, err := p.unary()
	return operand{number: math.Pow(base.number, exponent.number)}, err
}

func (p *calculator) primary() (operand, error) {
	p.skip()
	if p.at == len(p.text) {
		return operand{}, fmt.Errorf("the expression ends too early")
	}
	switch c := p.text[p.at]; {
	case c == '(':
		p.at++
		value, err := p.conditional()
		if err == nil && p.take(")") == "" {
			err = fmt.Errorf("a ( without )")
		}
		return value, err
	case isDigit(c) || c == '.':
		return p.literal()
	case isLetter(c):
		return p.name()
	}
	return operand{}, fmt.Errorf("unexpected %q", p.text[p.at:])
}

func (p *calculator) literal() (operand, error) {
	start := p.at
	digits := func() {
		for p.at < len(p.text) && isDigit(p.text[p.at]) {
			p.at++
		}
	}
	digits()
	if p.at < len(p.text) && p.text[p.at] == '.' {
		p.at++
		digits()
	}
	if mark := p.at; p.at < len(p.text) && p.text[p.at]|0x20 == 'e' {
		if p.at++; p.at < len(p.text) && (p.text[p.at] == '+' || p.text[p.at] == '-') {
			p.at++
		}
		exponent := p.at
		if digits(); p.at == exponent {
			p.at = mark // 2e is 2 and a name
		}
	}
	value, err := strconv.ParseFloat(p.text[start:p.at], 64)
	if math.IsInf(value, 0) {
		err = nil
	}
	return operand{number: value}, err
}

func (p *calculator) name() (operand, error) {
	start := p.at
	for p.at < len(p.text) && (isLetter(p.text[p.at]) || isDigit(p.text[p.at])) {
		p.at++
	}
	name := p.text[start:p.at]
	if name == "Math" && p.take(".") != "" {
		start = p.at
		for p.at < len(p.text) && (isLetter(p.text[p.at]) || isDigit(p.text[p.at])) {
			p.at++
		}
		name = p.text[start:p.at]
	}
	if p.take("(") == "" {
		switch name {
		case "true", "false":
			return truth(name == "true"), nil
		}
		if value, ok := constants[name]; ok {
			return operand{number: value}, nil
		}
		if f, ok := functions[name]; ok && f.one != nil { // sqrt 2
			value, err := p.unary()
			return operand{number: f.one(value.number)}, err
		}
		return operand{}, fmt.Errorf("unknown name %q", name)
	}
	var arguments []float64
	for p.take(")") == "" {
		if len(arguments) > 0 && p.take(",") == "" {
			return operand{}, fmt.Errorf("a ( without )")
		}
		value, err := p.conditional()
		if err != nil {
			return value, err
		}
		arguments = append(arguments, value.number)
	}
	f, ok := functions[name]
	switch {
	case ok && f.one != nil && len(arguments) == 1:
		return operand{number: f.one(arguments[0])}, nil
	case ok && f.many != nil && len(arguments) >= f.least:
		return operand{number: f.many(arguments)}, nil
	}
	return operand{}, fmt.Errorf("no function %s with %d arguments", name, len(arguments))
}

// jsNumber writes a number as JavaScript does.
func jsNumber(f float64) string {
	switch {
	case math.IsNaN(f):
		return "NaN"
	case math.IsInf(f, 1):
		return "Infinity"
	case math.IsInf(f, -1):
		return "-Infinity"
	case f == 0:
		return "0" // also for -0
	}
	if size := math.Abs(f); size >= 1e21 || size < 1e-6 {
		text := strconv.FormatFloat(f, 'e', -1, 64)
		mantissa, exponent, _ := strings.Cut(text, "e")
		sign := exponent[:1]
		return mantissa + "e" + sign + strings.TrimLeft(exponent[1:], "0")
	}
	return strconv.FormatFloat(f, 'f', -1, 64)
}
