package expression

import (
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// unescape resolves the escapes of a JavaScript string; ok is false for an
// escape that is no legal one.
func unescape(s string) (string, bool) {
	if !strings.Contains(s, `\`) {
		return s, true
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		if s[i] != '\\' {
			b.WriteByte(s[i])
			i++
			continue
		}
		if i+1 >= len(s) {
			return "", false
		}
		c := s[i+1]
		i += 2
		switch c {
		case 'n':
			b.WriteByte('\n')
		case 't':
			b.WriteByte('\t')
		case 'r':
			b.WriteByte('\r')
		case 'b':
			b.WriteByte('\b')
		case 'f':
			b.WriteByte('\f')
		case 'v':
			b.WriteByte('\v')
		case '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
			if c != '0' || i < len(s) && isDigit(s[i]) {
				return "", false
			}
			b.WriteByte(0)
		case '\r':
			if i < len(s) && s[i] == '\n' {
				i++
			}
		case '\n':
		case 'x', 'u':
			r, n, ok := escapedRune(s[i:], c)
			if !ok {
				return "", false
			}
			i += n
			if utf16.IsSurrogate(r) {
				if !strings.HasPrefix(s[i:], `\u`) {
					return "", false
				}
				low, n, ok := escapedRune(s[i+2:], 'u')
				if r = utf16.DecodeRune(r, low); !ok || r == utf8.RuneError {
					return "", false
				}
				i += 2 + n
			}
			b.WriteRune(r)
		default:
			b.WriteByte(c)
		}
	}
	return b.String(), true
}

// escapedRune reads what follows \x or \u.
func escapedRune(s string, kind byte) (r rune, size int, ok bool) {
	digits := 4
	if kind == 'x' {
		digits = 2
	} else if strings.HasPrefix(s, "{") {
		end := strings.IndexByte(s, '}')
		if end < 0 {
			return 0, 0, false
		}
		v, err := strconv.ParseUint(s[1:end], 16, 32)
		return rune(v), end + 1, err == nil && v <= utf8.MaxRune
	}
	if len(s) < digits {
		return 0, 0, false
	}
	v, err := strconv.ParseUint(s[:digits], 16, 32)
	return rune(v), digits, err == nil
}
