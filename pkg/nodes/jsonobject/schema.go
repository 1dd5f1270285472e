package jsonobject

import (
	"strings"

	"github.com/tidwall/gjson"
)

// Schema is the JSON schema of an object with these properties, by name, of which the required ones
// must be there. closed forbids others.
func Schema(properties Object, required []string, closed bool) Object {
	var schema Object
	schema.Set("type", `"object"`)
	schema.Set("properties", properties.String())
	if len(required) > 0 {
		quoted := make([]string, len(required))
		for i, name := range required {
			quoted[i] = Quote(name)
		}
		schema.Set("required", "["+strings.Join(quoted, ",")+"]")
	}
	if closed {
		schema.Set("additionalProperties", "false")
	}
	return schema
}

// SchemaOfExample is the JSON schema of values like the example, a JSON text. required makes every
// property of its objects required, closed forbids others.
func SchemaOfExample(example string, required, closed bool) string {
	value := gjson.Parse(example)
	var schema Object
	switch {
	case value.IsObject():
		var properties Object
		var names []string
		for _, m := range Parse(value.Raw).members {
			if required && !properties.Has(m.Key) {
				names = append(names, m.Key)
			}
			properties.Set(m.Key, SchemaOfExample(m.Value, required, closed))
		}
		schema = Schema(properties, names, closed)
	case value.IsArray():
		schema.Set("type", `"array"`)
		if first := value.Get("0"); first.Exists() {
			schema.Set("items", SchemaOfExample(first.Raw, required, closed))
		}
	case value.Type == gjson.String:
		schema.Set("type", `"string"`)
	case value.Type == gjson.Number:
		schema.Set("type", `"number"`)
	case value.IsBool():
		schema.Set("type", `"boolean"`)
	default: // null tells nothing about the type
	}
	return schema.String()
}
