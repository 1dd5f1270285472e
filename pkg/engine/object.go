package engine

import (
	"bytes"
	"encoding/json"

	"github.com/tidwall/gjson"
)

// overlay is JavaScript's {...base, ...over}: keys keep the place where they
// first appear and the value that comes last. What is no object counts as {}.
func overlay(base, over json.RawMessage) json.RawMessage {
	var keys []string // as written, with quotes
	values := map[string]string{}
	add := func(raw json.RawMessage) {
		doc := gjson.ParseBytes(raw)
		if !doc.IsObject() {
			return
		}
		doc.ForEach(func(key, value gjson.Result) bool {
			if _, seen := values[key.Str]; !seen {
				keys = append(keys, key.Raw)
			}
			values[key.Str] = value.Raw
			return true
		})
	}
	add(base)
	add(over)
	var b bytes.Buffer
	b.WriteByte('{')
	for i, raw := range keys {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(raw)
		b.WriteByte(':')
		b.WriteString(values[gjson.Parse(raw).Str])
	}
	b.WriteByte('}')
	return b.Bytes()
}
