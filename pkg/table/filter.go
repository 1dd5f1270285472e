package table

import (
	"slices"
	"strings"

	"github.com/tidwall/gjson"
)

// Operators of conditions, as files have them.
var Operators = []string{"eq", "neq", "gt", "gte", "lt", "lte", "like", "ilike", "isEmpty", "isNotEmpty", "isTrue", "isFalse"}

// test is a condition that has been read.
type test struct {
	of       func(*Row) any
	operator string
	value    any
	pattern  []rune
}

// column finds a column, also one that every table has.
func (t *Table) column(name string) (c Column, of func(*Row) any, err *Error) {
	switch name {
	case ColumnID:
		return Column{name, Number}, func(r *Row) any { return float64(r.ID) }, nil
	case ColumnCreated:
		return Column{name, Date}, func(r *Row) any { return r.Created }, nil
	case ColumnUpdated:
		return Column{name, Date}, func(r *Row) any { return r.Updated }, nil
	}
	i := t.index(name)
	if i < 0 {
		return c, nil, t.unknown(name)
	}
	return t.Columns[i], func(r *Row) any { return r.Values[i] }, nil
}

func (t *Table) index(name string) int {
	return slices.IndexFunc(t.Columns, func(c Column) bool { return c.Name == name })
}

func (t *Table) unknown(column string) *Error {
	names := []string{ColumnID}
	for _, c := range t.Columns {
		names = append(names, c.Name)
	}
	return &Error{Kind: BadRequest, Message: "the data table \"" + t.Name + "\" has no column \"" + column + "\"",
		Hint: "It has " + strings.Join(append(names, ColumnCreated, ColumnUpdated), ", ") + "."}
}

// matcher reads a filter.
func (t *Table) matcher(f Filter) (func(*Row) bool, *Error) {
	tests := make([]test, 0, len(f.Conditions))
	for _, c := range f.Conditions {
		one, err := t.test(c)
		if err != nil {
			return nil, err
		}
		tests = append(tests, one)
	}
	if len(tests) == 0 {
		return func(*Row) bool { return true }, nil
	}
	return func(r *Row) bool {
		for i := range tests {
			if tests[i].holds(r) == f.Any {
				return f.Any
			}
		}
		return !f.Any
	}, nil
}

func (t *Table) test(c Condition) (one test, err *Error) {
	column, of, err := t.column(c.Column)
	if err != nil {
		return one, err
	}
	one = test{of: of, operator: c.Operator}
	value := gjson.ParseBytes(c.Value)
	switch c.Operator {
	case "eq", "neq", "gt", "gte", "lt", "lte":
		one.value, err = convert(value, column)
	case "like", "ilike":
		if column.Type != String {
			return one, bad("the column %q is no string: %s compares texts", column.Name, c.Operator)
		}
		text := value.String()
		if c.Operator == "ilike" {
			text = strings.ToLower(text)
		}
		one.pattern = []rune(text)
	case "isTrue", "isFalse":
		if column.Type != Boolean {
			return one, bad("the column %q is no boolean, which %s asks for", column.Name, c.Operator)
		}
	case "isEmpty", "isNotEmpty":
	default:
		return one, &Error{Kind: BadRequest, Message: "the condition \"" + c.Operator + "\" is not known", Hint: "Choose one of " + strings.Join(Operators, ", ") + "."}
	}
	return one, err
}

// holds tells whether a row fulfils the condition. What is empty is less and greater than nothing.
func (c *test) holds(r *Row) bool {
	v := c.of(r)
	switch c.operator {
	case "eq":
		return compare(v, c.value) == 0
	case "neq":
		return compare(v, c.value) != 0
	case "isEmpty":
		return v == nil || v == ""
	case "isNotEmpty":
		return v != nil && v != ""
	case "isTrue":
		return v == true
	case "isFalse":
		return v == false
	case "like", "ilike":
		text, ok := v.(string)
		if c.operator == "ilike" {
			text = strings.ToLower(text)
		}
		return ok && like([]rune(text), c.pattern)
	}
	if v == nil || c.value == nil {
		return false
	}
	switch n := compare(v, c.value); c.operator {
	case "gt":
		return n > 0
	case "gte":
		return n >= 0
	case "lt":
		return n < 0
	default: // lte
		return n <= 0
	}
}

// like is SQL's: % stands for any text, _ for one character. It takes no longer than the product
// of the lengths.
func like(text, pattern []rune) bool {
	t, p, star, from := 0, 0, -1, 0
	for t < len(text) {
		switch {
		case p < len(pattern) && pattern[p] == '%':
			star, from = p, t
			p++
		case p < len(pattern) && (pattern[p] == '_' || pattern[p] == text[t]):
			t++
			p++
		case star >= 0:
			from++
			t, p = from, star+1
		default:
			return false
		}
	}
	for p < len(pattern) && pattern[p] == '%' {
		p++
	}
	return p == len(pattern)
}
