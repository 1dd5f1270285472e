package trigger

import (
	"net/url"
	"strconv"
	"strings"
)

// fields makes an object of the parameters of a query or form, in the way of Node.js's usual
// parser: a=1&a=2 and a[]=1 are lists, a[b]=1 is an object. Deeper than maxNesting, or
// with brackets that do not fit, the name is taken as it is.
func fields(raw string) *object {
	out := newObject()
	for _, pair := range strings.Split(raw, "&") {
		if pair == "" {
			continue
		}
		name, value, _ := strings.Cut(pair, "=")
		setField(out, unescape(name), unescape(value))
	}
	return out
}

// object keeps its keys in the order in which they came, as people see them in items.
type object struct {
	keys   []string
	values map[string]any
}

func newObject() *object { return &object{values: map[string]any{}} }

func (o *object) set(key string, value any) {
	if _, ok := o.values[key]; !ok {
		o.keys = append(o.keys, key)
	}
	o.values[key] = value
}

// MarshalJSON implements json.Marshaler.
func (o *object) MarshalJSON() ([]byte, error) {
	b := []byte{'{'}
	for i, key := range o.keys {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(append(b, toJSON(key)...), ':')
		b = append(b, toJSON(o.values[key])...)
	}
	return append(b, '}'), nil
}

func unescape(text string) string {
	plain, err := url.QueryUnescape(text)
	if err != nil {
		return text
	}
	return plain
}

// maxNesting is how deep a name may go, maxIndex the greatest index in a list.
const (
	maxNesting = 5
	maxIndex   = 100
)

// list is an array in the making.
type list struct{ values []any }

// MarshalJSON implements json.Marshaler.
func (l *list) MarshalJSON() ([]byte, error) { return toJSON(l.values), nil }

func setField(out *object, name string, value any) {
	keys := splitName(name)
	var at any = out
	for i, key := range keys {
		last := i == len(keys)-1
		o, ok := at.(*object)
		if !ok {
			return
		}
		if last {
			switch have := o.values[key].(type) {
			case nil:
				o.set(key, value)
			case *list:
				have.values = append(have.values, value)
			default:
				o.set(key, &list{[]any{have, value}})
			}
			return
		}
		next := keys[i+1]
		if next == "" || isIndex(next) && i+2 == len(keys) {
			l, ok := o.values[key].(*list)
			if !ok {
				l = &list{}
				if have := o.values[key]; have != nil {
					l.values = append(l.values, have)
				}
				o.set(key, l)
			}
			if i+2 == len(keys) {
				l.values = append(l.values, value)
				return
			}
			inner := newObject() // a[][b]=1: an object for each
			l.values = append(l.values, inner)
			setField(inner, keys[i+2]+bracketed(keys[i+3:]), value)
			return
		}
		inner, ok := o.values[key].(*object)
		if !ok {
			inner = newObject()
			o.set(key, inner)
		}
		at = inner
	}
}

func bracketed(keys []string) string {
	var b strings.Builder
	for _, k := range keys {
		b.WriteString("[" + k + "]")
	}
	return b.String()
}

func isIndex(key string) bool {
	n, err := strconv.Atoi(key)
	return err == nil && n >= 0 && n <= maxIndex
}

// splitName takes a[b][] apart.
func splitName(name string) []string {
	open := strings.IndexByte(name, '[')
	if open <= 0 || !strings.HasSuffix(name, "]") {
		return []string{name}
	}
	keys := []string{name[:open]}
	rest := name[open:]
	for rest != "" {
		end := strings.IndexByte(rest, ']')
		if rest[0] != '[' || end < 0 || len(keys) > maxNesting {
			return []string{name}
		}
		keys = append(keys, rest[1:end])
		rest = rest[end+1:]
	}
	return keys
}
