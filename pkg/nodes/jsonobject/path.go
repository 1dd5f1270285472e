package jsonobject

import (
	"strconv"
	"strings"

	"github.com/tidwall/gjson"
)

// maxIndex bounds the index a path may write to in a list, so that "a[999999999]"
// cannot fill the memory with nulls.
const maxIndex = 10_000

// Split takes a path apart as lodash, and so n8n's parameters, write it:
// a.b, a[0].b, a["x y"].
func Split(path string) []string {
	if !strings.ContainsAny(path, ".[") {
		return []string{path}
	}
	var parts []string
	for rest := path; rest != ""; {
		switch rest[0] {
		case '.':
			rest = rest[1:]
			continue
		case '[':
			if end := strings.IndexByte(rest, ']'); end > 0 {
				parts = append(parts, strings.Trim(rest[1:end], `"'`))
				rest = rest[end+1:]
				continue
			}
			return append(parts, rest)
		}
		end := strings.IndexAny(rest, ".[")
		if end < 0 {
			return append(parts, rest)
		}
		parts = append(parts, rest[:end])
		rest = rest[end:]
	}
	if parts == nil {
		return []string{path}
	}
	return parts
}

// GetPath returns the value at a path, "" when there is none. A member with the
// whole path as its key goes first.
func (o Object) GetPath(path string) string {
	if value := o.Get(path); value != "" {
		return value
	}
	parts := Split(path)
	value := o.Get(parts[0])
	for _, part := range parts[1:] {
		value = child(value, part)
	}
	return value
}

func child(value, key string) string {
	switch {
	case value == "":
	case value[0] == '{':
		return Parse(value).Get(key)
	case value[0] == '[':
		if i, ok := index(key); ok {
			if list := gjson.Parse(value).Array(); i < len(list) {
				return list[i].Raw
			}
		}
	}
	return ""
}

// SetPath sets the value at a path and makes the objects and lists on the way,
// in place of what cannot hold the next step.
func (o *Object) SetPath(path, value string) {
	if value == "" {
		return
	}
	parts := Split(path)
	if len(parts) == 1 || o.Has(path) {
		o.Set(path, value)
		return
	}
	o.Set(parts[0], set(o.Get(parts[0]), parts[1:], value))
}

func set(holder string, parts []string, value string) string {
	if len(parts) == 0 {
		return value
	}
	i, isIndex := index(parts[0])
	if isIndex && !strings.HasPrefix(holder, "{") && i <= maxIndex {
		var list []string
		if strings.HasPrefix(holder, "[") {
			for _, element := range gjson.Parse(holder).Array() {
				list = append(list, element.Raw)
			}
		}
		for len(list) <= i {
			list = append(list, "null")
		}
		list[i] = set(list[i], parts[1:], value)
		return "[" + strings.Join(list, ",") + "]"
	}
	o := Parse(holder)
	o.Set(parts[0], set(o.Get(parts[0]), parts[1:], value))
	return o.String()
}

// DeletePath removes what is at a path; the objects around it stay.
func (o *Object) DeletePath(path string) {
	if o.Has(path) {
		o.Delete(path)
		return
	}
	parts := Split(path)
	if len(parts) > 1 {
		if value := o.Get(parts[0]); strings.HasPrefix(value, "{") {
			inner := Parse(value)
			inner.DeletePath(strings.Join(parts[1:], "."))
			o.Set(parts[0], inner.String())
		}
	}
}

func index(key string) (int, bool) {
	i, err := strconv.Atoi(key)
	return i, err == nil && i >= 0 && strconv.Itoa(i) == key
}
