// Package jsonobject changes JSON objects without losing what Go maps lose:
// the order of the keys and the text of the numbers. Node types use it to build
// items.
//
// Values are raw JSON texts; an empty text means that there is no value
// (JavaScript's undefined). Inputs are taken to be valid JSON, as items are.
package jsonobject

import (
	"github.com/segmentio/encoding/json"
	"github.com/tidwall/gjson"
)

// Member is a key and its value, a JSON text.
type Member struct {
	Key   string
	Value string
}

// Object is the members of a JSON object in the order they were written or
// set. The zero value is {}. Copies share their members: Clone first.
type Object struct {
	members []Member
}

// Parse reads one level of an object; what is not an object reads as {}.
func Parse[T ~[]byte | ~string](raw T) Object {
	root := gjson.Parse(string(raw))
	var o Object
	if !root.IsObject() {
		return o
	}
	o.members = make([]Member, 0, 8)
	root.ForEach(func(key, value gjson.Result) bool {
		o.members = append(o.members, Member{key.String(), value.Raw})
		return true
	})
	return o
}

// Clone returns an object that can be changed without changing o.
func (o Object) Clone() Object {
	return Object{append([]Member(nil), o.members...)}
}

// Len is the number of members.
func (o Object) Len() int { return len(o.members) }

// Members are the members in order; they must not be changed.
func (o Object) Members() []Member { return o.members }

// Get returns the value of a key, "" when there is none.
func (o Object) Get(key string) string {
	// From the end, since the last of two equal keys is the one that counts.
	for i := len(o.members) - 1; i >= 0; i-- {
		if o.members[i].Key == key {
			return o.members[i].Value
		}
	}
	return ""
}

// Has reports whether there is such a key.
func (o Object) Has(key string) bool { return o.Get(key) != "" }

// Set gives a key its value: in place when the key is there, else at the end.
// An empty value changes nothing.
func (o *Object) Set(key, value string) {
	if value == "" {
		return
	}
	for i := len(o.members) - 1; i >= 0; i-- {
		if o.members[i].Key == key {
			o.members[i].Value = value
			return
		}
	}
	o.members = append(o.members, Member{key, value})
}

// Delete removes a key.
func (o *Object) Delete(key string) {
	kept := o.members[:0]
	for _, m := range o.members {
		if m.Key != key {
			kept = append(kept, m)
		}
	}
	o.members = kept
}

// JSON is the object as a JSON text.
func (o Object) JSON() json.RawMessage { return o.append(nil) }

func (o Object) String() string { return string(o.append(nil)) }

func (o Object) append(b []byte) []byte {
	if b == nil {
		size := 2
		for _, m := range o.members {
			size += len(m.Key) + len(m.Value) + 4
		}
		b = make([]byte, 0, size)
	}
	b = append(b, '{')
	for i, m := range o.members {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(appendQuoted(b, m.Key), ':')
		b = append(b, m.Value...)
	}
	return append(b, '}')
}

// Quote is a text as a JSON string. Unlike encoding/json it leaves <, > and &
// as they are.
func Quote(text string) string { return string(appendQuoted(nil, text)) }

func appendQuoted(b []byte, text string) []byte { return json.AppendEscape(b, text, 0) }
