package ai

import (
	"encoding/json"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/reprise-engine/reprise/pkg/nodes/jsonobject"
)

// schemaOfExample makes a schema from an example of an answer. required makes
// every property of its objects required, closed forbids others.
func schemaOfExample(example json.RawMessage, required, closed bool) json.RawMessage {
	var b strings.Builder
	writeExample(&b, gjson.ParseBytes(example), required, closed)
	return json.RawMessage(b.String())
}

func writeExample(b *strings.Builder, value gjson.Result, required, closed bool) {
	switch {
	case value.IsObject():
		b.WriteString(`{"type":"object","properties":{`)
		var names []string
		value.ForEach(func(key, member gjson.Result) bool {
			if len(names) > 0 {
				b.WriteByte(',')
			}
			names = append(names, jsonobject.Quote(key.String()))
			b.WriteString(names[len(names)-1] + ":")
			writeExample(b, member, required, closed)
			return true
		})
		b.WriteByte('}')
		if required && len(names) > 0 {
			b.WriteString(`,"required":[` + strings.Join(names, ",") + `]`)
		}
		if closed {
			b.WriteString(`,"additionalProperties":false`)
		}
		b.WriteByte('}')
	case value.IsArray():
		b.WriteString(`{"type":"array"`)
		if first := value.Get("0"); first.Exists() {
			b.WriteString(`,"items":`)
			writeExample(b, first, required, closed)
		}
		b.WriteByte('}')
	case value.Type == gjson.String:
		b.WriteString(`{"type":"string"}`)
	case value.Type == gjson.Number:
		b.WriteString(`{"type":"number"}`)
	case value.Type == gjson.True, value.Type == gjson.False:
		b.WriteString(`{"type":"boolean"}`)
	default:
		// null tells nothing about the type.
		b.WriteString(`{}`)
	}
}

// pruned is value without the properties that schema does not name.
func pruned(value string, schema gjson.Result) string {
	parsed := gjson.Parse(value)
	switch {
	case parsed.IsObject() && schema.Get("properties").IsObject():
		kept := jsonobject.Parse("{}")
		properties := schema.Get("properties").Map()
		parsed.ForEach(func(key, member gjson.Result) bool {
			if inner, ok := properties[key.String()]; ok {
				kept.Set(key.String(), pruned(member.Raw, inner))
			}
			return true
		})
		return kept.String()
	case parsed.IsArray() && schema.Get("items").IsObject():
		var list []string
		for _, element := range parsed.Array() {
			list = append(list, pruned(element.Raw, schema.Get("items")))
		}
		return "[" + strings.Join(list, ",") + "]"
	}
	return value
}
