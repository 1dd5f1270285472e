package expression

import "strings"

// part is a stretch of a parameter text: literal text, or the code between
// {{ and }}.
type part struct {
	text string
	code bool
}

// split takes a text without its leading "=" apart. The first }} ends an
// expression, wherever it stands; \{{ opens none and \}} closes none; an
// expression that is not closed reaches to the end.
func split(text string) []part {
	var parts []part
	literal := func(s string) {
		if s == "" {
			return
		}
		s = strings.ReplaceAll(s, `\\`, `\`)
		if n := len(parts); n > 0 && !parts[n-1].code {
			parts[n-1].text += s
			return
		}
		parts = append(parts, part{text: s})
	}
	for {
		open := find(text, "{{")
		if open < 0 {
			literal(text)
			return parts
		}
		literal(text[:open])
		text = text[open+2:]
		end := find(text, "}}")
		if end < 0 {
			return append(parts, part{text: strings.ReplaceAll(text, `\}}`, "}}"), code: true})
		}
		parts = append(parts, part{text: strings.ReplaceAll(text[:end], `\}}`, "}}"), code: true})
		text = text[end+2:]
	}
}

// find is the index of mark without a backslash before it, or -1.
func find(text, mark string) int {
	for from := 0; ; {
		i := strings.Index(text[from:], mark)
		if i < 0 {
			return -1
		}
		i += from
		if i == 0 || text[i-1] != '\\' {
			return i
		}
		from = i + len(mark)
	}
}
