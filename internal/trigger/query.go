package trigger

import (
	"net/url"
	"strconv"
	"strings"
)

// fields makes an object of the parameters of a query or form, in the way of Node.js's usual
// parser: a=1&a=2 and a[]=1 are lists, a[b]=1 is an object. Deeper than maxNesting, or
// with brackets that do not fit, the name is taken as it is.
func fields(raw string) map[string]any {
	out := map[string]any{}
	for _, pair := range strings.Split(raw, "&") {
		if pair == "" {
			continue
		}
		name, value, _ := strings.Cut(pair, "=")
		setField(out, unescape(name), unescape(value))
	}
	return finished(out).(map[string]any)
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

// list is an array in the making: values by index, and those that are appended.
type list struct{ values []any }

func setField(out map[string]any, name string, value any) {
	keys := splitName(name)
	var at any = out
	for i, key := range keys {
		last := i == len(keys)-1
		object, ok := at.(map[string]any)
		if !ok {
			return
		}
		if last {
			switch have := object[key].(type) {
			case nil:
				object[key] = value
			case *list:
				have.values = append(have.values, value)
			default:
				object[key] = &list{[]any{have, value}}
			}
			return
		}
		next := keys[i+1]
		if next == "" || isIndex(next) && i+2 == len(keys) {
			l, ok := object[key].(*list)
			if !ok {
				l = &list{}
				if have := object[key]; have != nil {
					l.values = append(l.values, have)
				}
				object[key] = l
			}
			if i+2 == len(keys) {
				l.values = append(l.values, value)
				return
			}
			inner := map[string]any{} // a[][b]=1: an object for each
			l.values = append(l.values, inner)
			setField(inner, keys[i+2]+bracketed(keys[i+3:]), value)
			return
		}
		inner, ok := object[key].(map[string]any)
		if !ok {
			inner = map[string]any{}
			object[key] = inner
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

// finished makes slices of the lists.
func finished(value any) any {
	switch v := value.(type) {
	case map[string]any:
		for key, inner := range v {
			v[key] = finished(inner)
		}
	case *list:
		for i, inner := range v.values {
			v.values[i] = finished(inner)
		}
		return v.values
	}
	return value
}
