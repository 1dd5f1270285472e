package redact

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"html"
	"net/url"
	"slices"
	"strings"
	"sync"
	"unicode/utf16"
)

// Blank stands where a secret was.
const Blank = "[secret]"

// MinBytes is the length below which a text is not looked for.
const MinBytes = 6

// form is one way in which a secret is written.
type form struct{ text, blank string }

// cache keeps the forms of the secrets that are used again and again; a worker holds those
// in memory anyway.
var cache struct {
	sync.Mutex
	of map[string][]form
}

const maxCached = 1024

// formsOf is forms, remembered.
func formsOf(secret string) []form {
	cache.Lock()
	defer cache.Unlock()
	if list, ok := cache.of[secret]; ok {
		return list
	}
	if cache.of == nil || len(cache.of) >= maxCached {
		cache.of = map[string][]form{}
	}
	list := forms(secret)
	cache.of[secret] = list
	return list
}

// forms are the ways in which a secret is looked for.
func forms(secret string) []form {
	var list []form
	known := map[string]bool{}
	add := func(text, blank string) {
		if len(text) < MinBytes {
			return
		}
		if !known[text] {
			known[text] = true
			list = append(list, form{text, blank})
		}
	}
	add(secret, Blank)
	add(html.EscapeString(secret), Blank)
	layer := []string{secret}
	for range 3 { // a text in JSON that is a text in JSON, as errors quote it
		var next []string
		for _, text := range layer {
			for _, written := range inJSON(text) {
				if !slices.Contains(next, written) {
					next = append(next, written)
					add(written, Blank)
				}
			}
		}
		layer = next
	}
	for _, once := range inURL(secret) {
		add(once, Blank)
		for _, twice := range inURL(once) { // a URL in a URL
			add(twice, Blank)
		}
	}
	add(hex.EncodeToString([]byte(secret)), Blank)
	add(strings.ToUpper(hex.EncodeToString([]byte(secret))), Blank)
	for _, plain := range list {
		for _, encoding := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
			for offset := range 3 {
				text := inside(encoding, plain.text, offset)
				// Of the same length, so that what was base64 remains it.
				add(text, strings.Repeat("KioqKioq", len(text)/8+1)[:len(text)])
			}
		}
	}
	return list
}

// inJSON are the ways in which programs write a text in JSON.
func inJSON(text string) []string {
	plain := quoted(text)
	safe := strings.NewReplacer("<", `\u003c`, ">", `\u003e`, "&", `\u0026`).Replace(plain) // encoding/json
	return []string{plain, safe, strings.ReplaceAll(plain, "/", `\/`), ascii(plain)}        // PHP, Python
}

// inURL are the ways in which programs write a text in a URL.
func inURL(text string) []string {
	var found []string
	for _, escaped := range []string{url.QueryEscape(text), url.PathEscape(text), escapeAll(text)} {
		found = append(found, escaped, lowerEscapes(escaped))
	}
	return found
}

// inside is what of a base64 text is sure to be there when a secret begins offset bytes, modulo
// three, after the beginning of what was encoded, whatever is around it.
func inside(encoding *base64.Encoding, secret string, offset int) string {
	whole := encoding.EncodeToString([]byte(strings.Repeat("\x00", offset) + secret))
	bits := 8 * offset
	first := (bits + 5) / 6 // the first digit that only the secret decides
	last := (bits + 8*len(secret)) / 6
	return whole[first:last]
}

// quoted is a text as it stands inside a JSON string.
func quoted(text string) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(text); err != nil { // a text always encodes
		return text
	}
	out := strings.TrimSuffix(b.String(), "\n")
	return out[1 : len(out)-1]
}

// ascii escapes all that is not ASCII, as in JSON.
func ascii(text string) string {
	var b strings.Builder
	for _, unit := range utf16.Encode([]rune(text)) {
		if unit < 0x80 {
			b.WriteByte(byte(unit))
		} else {
			fmt.Fprintf(&b, `\u%04x`, unit)
		}
	}
	return b.String()
}

// escapeAll escapes all but RFC 3986's unreserved characters.
func escapeAll(text string) string {
	var b strings.Builder
	for i := range len(text) {
		c := text[i]
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("-._~", c) >= 0 {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}

// lowerEscapes writes the hexadecimal digits of percent escapes in lower case.
func lowerEscapes(text string) string {
	b := []byte(text)
	for i := 0; i+2 < len(b); i++ {
		if b[i] == '%' {
			copy(b[i+1:i+3], strings.ToLower(string(b[i+1:i+3])))
			i += 2
		}
	}
	return string(b)
}
