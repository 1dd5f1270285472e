package redact

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"sort"
	"strings"
	"sync"
)

// Set is a growing set of secrets. The zero value is empty, a nil Set too. It is safe for
// concurrent use.
type Set struct {
	mu    sync.Mutex
	known map[string]bool
	// forms of all secrets, longest first, so that nothing is left of a secret that holds
	// another. Replaced, never changed.
	forms []form
}

// Add adds secrets. Those shorter than MinBytes are left out.
func (s *Set) Add(secrets ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	changed := false
	for _, secret := range secrets {
		if len(secret) < MinBytes || s.known[secret] {
			continue
		}
		if s.known == nil {
			s.known = map[string]bool{}
		}
		s.known[secret] = true
		s.forms = append(s.forms[:len(s.forms):len(s.forms)], formsOf(secret)...)
		changed = true
	}
	if changed {
		sort.SliceStable(s.forms, func(i, j int) bool { return len(s.forms[i].text) > len(s.forms[j].text) })
	}
}

func (s *Set) all() []form {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.forms
}

// Empty reports whether there is nothing to look for.
func (s *Set) Empty() bool { return len(s.all()) == 0 }

// String returns text without secrets.
func (s *Set) String(text string) string {
	for _, f := range s.all() {
		if strings.Contains(text, f.text) {
			text = strings.ReplaceAll(text, f.text, f.blank)
		}
	}
	return text
}

// found reports whether a secret is in data.
func found(list []form, data []byte) bool {
	for _, f := range list {
		if bytes.Contains(data, []byte(f.text)) {
			return true
		}
	}
	return false
}

// ErrNotRemoved is returned by Value when a secret is in a value in a place where nothing else can be.
var ErrNotRemoved = errors.New("redact: a secret cannot be taken out of a value")

// Value takes the secrets out of what v points to, by way of its JSON; when there are none, v
// stays as it is. ErrNotRemoved: it still holds one.
func Value[T any](s *Set, v *T) error {
	list := s.all()
	if len(list) == 0 {
		return nil
	}
	data, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("look for secrets: %w", err)
	}
	if !found(list, data) {
		return nil
	}
	var clean T
	if err := json.Unmarshal(s.JSON(data), &clean); err != nil {
		return ErrNotRemoved
	}
	if again, err := json.Marshal(&clean); err != nil || found(list, again) {
		return ErrNotRemoved
	}
	*v = clean
	return nil
}

// JSON replaces secrets in the texts of a JSON document, and numbers that are secrets by
// texts. A document without secrets is returned as it is.
func (s *Set) JSON(data []byte) []byte {
	list := s.all()
	if !found(list, data) {
		return data
	}
	out := make([]byte, 0, len(data))
	for i := 0; i < len(data); {
		end := i
		if data[i] == '"' {
			end = stringEnd(data, i)
			out = append(out, s.jsonText(data[i:end])...)
			i = end
			continue
		}
		for end < len(data) && data[end] != '"' {
			end++
		}
		out = append(out, cleanNumbers(list, data[i:end])...)
		i = end
	}
	return out
}

// jsonText is a JSON text without secrets. They are looked for in what it says, as its escapes could
// be cut in pieces.
func (s *Set) jsonText(raw []byte) []byte {
	var text string
	if json.Unmarshal(raw, &text) != nil {
		return raw
	}
	clean := s.String(text)
	if clean == text {
		return raw
	}
	return []byte(`"` + quoted(clean) + `"`)
}

// stringEnd is the index after the text that begins at i.
func stringEnd(data []byte, i int) int {
	for i++; i < len(data); i++ {
		switch data[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(data)
}

// cleanNumbers replaces what stands between texts where it holds a secret: a number made of
// the digits of a password.
func cleanNumbers(list []form, between []byte) []byte {
	if !found(list, between) {
		return between
	}
	const separators = "{}[]:, \t\r\n"
	var out []byte
	for i := 0; i < len(between); {
		end := i
		for end < len(between) && strings.IndexByte(separators, between[end]) < 0 {
			end++
		}
		switch {
		case end == i:
			out = append(out, between[i])
			end++
		case found(list, between[i:end]):
			out = append(out, `"`+Blank+`"`...)
		default:
			out = append(out, between[i:end]...)
		}
		i = end
	}
	return out
}
