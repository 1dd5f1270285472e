package jsonobject

import (
	"strings"

	"github.com/tidwall/gjson"
)

// Overlay writes the members of over on top of o. deep goes on inside objects
// and, by index, inside lists. Values for which skip says true (nil skips
// none) do not replace a value that is there.
func (o *Object) Overlay(over Object, deep bool, skip func(value string) bool) {
	for _, m := range over.members {
		present := o.Get(m.Key)
		switch {
		case present != "" && skip != nil && skip(m.Value):
		case present != "" && deep:
			o.Set(m.Key, merge(present, m.Value, skip))
		default:
			o.Set(m.Key, m.Value)
		}
	}
}

func merge(below, above string, skip func(string) bool) string {
	switch {
	case strings.HasPrefix(below, "{") && strings.HasPrefix(above, "{"):
		o := Parse(below)
		o.Overlay(Parse(above), true, skip)
		return o.String()
	case strings.HasPrefix(below, "[") && strings.HasPrefix(above, "["):
		var list []string
		for _, element := range gjson.Parse(below).Array() {
			list = append(list, element.Raw)
		}
		for i, element := range gjson.Parse(above).Array() {
			if i < len(list) {
				list[i] = merge(list[i], element.Raw, skip)
			} else {
				list = append(list, element.Raw)
			}
		}
		return "[" + strings.Join(list, ",") + "]"
	}
	return above
}
