package values

import (
	"strings"
)

// layout is a format for dates, taken apart. Its tokens are Luxon's; those that only
// Moment has are marked with @.
type layout []piece

// piece is a token, or a text that stands for itself.
type piece struct{ token, literal string }

// luxonTokens are the tokens of Luxon's formats
// (https://moment.github.io/luxon/#/formatting?id=table-of-tokens). The value is what a
// localised one stands for in American English, Luxon's default in n8n.
var luxonTokens = map[string]string{
	"S": "", "SSS": "", "u": "", "uu": "", "uuu": "", "s": "", "ss": "", "m": "", "mm": "", "h": "", "hh": "", "H": "", "HH": "",
	"Z": "", "ZZ": "", "ZZZ": "", "ZZZZ": "", "ZZZZZ": "", "z": "", "a": "", "d": "", "dd": "",
	"c": "", "ccc": "", "cccc": "", "ccccc": "", "E": "", "EEE": "", "EEEE": "", "EEEEE": "",
	"L": "", "LL": "", "LLL": "", "LLLL": "", "LLLLL": "", "M": "", "MM": "", "MMM": "", "MMMM": "", "MMMMM": "",
	"y": "", "yy": "", "yyyy": "", "yyyyyy": "", "G": "", "GG": "", "GGGGG": "", "kk": "", "kkkk": "", "W": "", "WW": "",
	"n": "", "nn": "", "ii": "", "iiii": "", "o": "", "ooo": "", "q": "", "qq": "", "X": "", "x": "",

	"D": "M/d/yyyy", "DD": "MMM d, yyyy", "DDD": "MMMM d, yyyy", "DDDD": "EEEE, MMMM d, yyyy",
	"t": "h:mm\u202fa", "tt": "h:mm:ss\u202fa", "ttt": "h:mm:ss\u202fa ZZZZ", "tttt": "h:mm:ss\u202fa ZZZZZ",
	"T": "HH:mm", "TT": "HH:mm:ss", "TTT": "HH:mm:ss ZZZZ", "TTTT": "HH:mm:ss ZZZZZ",
	"f": "M/d/yyyy, h:mm\u202fa", "ff": "MMM d, yyyy, h:mm\u202fa", "fff": "MMMM d, yyyy 'at' h:mm\u202fa ZZZZ", "ffff": "EEEE, MMMM d, yyyy 'at' h:mm\u202fa ZZZZZ",
	"F": "M/d/yyyy, h:mm:ss\u202fa", "FF": "MMM d, yyyy, h:mm:ss\u202fa", "FFF": "MMMM d, yyyy 'at' h:mm:ss\u202fa ZZZZ", "FFFF": "EEEE, MMMM d, yyyy 'at' h:mm:ss\u202fa ZZZZZ",
}

// luxonLayout takes a Luxon format apart: runs of one letter are tokens, 'quoted' text and
// the rest stand for themselves.
func luxonLayout(format string) layout {
	var l layout
	for rest := format; rest != ""; {
		if rest[0] == '\'' {
			text, after, _ := strings.Cut(rest[1:], "'")
			if text == "" {
				text = "'"
			}
			l, rest = append(l, piece{literal: text}), after
			continue
		}
		run := 1
		for run < len(rest) && rest[run] == rest[0] {
			run++
		}
		token := rest[:run]
		rest = rest[run:]
		switch meaning, ok := luxonTokens[token]; {
		case !ok:
			l = append(l, piece{literal: token})
		case meaning != "":
			l = append(l, luxonLayout(meaning)...)
		default:
			l = append(l, piece{token: token})
		}
	}
	return l
}

// momentTokens translates Moment's tokens (https://momentjs.com/docs/#/displaying/format/),
// which version 1 of the node uses.
var momentTokens = map[string]string{
	"M": "M", "Mo": "@Mo", "MM": "MM", "MMM": "MMM", "MMMM": "MMMM", "Q": "q", "Qo": "@Qo",
	"D": "d", "Do": "@Do", "DD": "dd", "DDD": "o", "DDDo": "@DDDo", "DDDD": "ooo",
	"d": "@d", "do": "@do", "dd": "@dd", "ddd": "EEE", "dddd": "EEEE", "e": "@d", "E": "E",
	"w": "n", "ww": "nn", "W": "W", "WW": "WW", "YY": "yy", "YYYY": "yyyy", "YYYYYY": "yyyyyy", "Y": "y", "y": "y",
	"gg": "ii", "gggg": "iiii", "GG": "kk", "GGGG": "kkkk", "A": "a", "a": "@a",
	"H": "H", "HH": "HH", "h": "h", "hh": "hh", "k": "@k", "kk": "@kk", "m": "m", "mm": "mm", "s": "s", "ss": "ss",
	"S": "@S", "SS": "@SS", "SSS": "SSS", "Z": "ZZ", "ZZ": "ZZZ", "z": "ZZZZ", "zz": "ZZZZ", "X": "X", "x": "x",
}

// momentLocal are Moment's localised formats in English.
var momentLocal = map[string]string{
	"LT": "h:mm A", "LTS": "h:mm:ss A", "L": "MM/DD/YYYY", "LL": "MMMM D, YYYY", "LLL": "MMMM D, YYYY h:mm A", "LLLL": "dddd, MMMM D, YYYY h:mm A",
	"l": "M/D/YYYY", "ll": "MMM D, YYYY", "lll": "MMM D, YYYY h:mm A", "llll": "ddd, MMM D, YYYY h:mm A",
}

// momentLayout takes a Moment format apart. At each place the longest token counts;
// [bracketed] text stands for itself.
func momentLayout(format string) layout {
	var l layout
next:
	for rest := format; rest != ""; {
		if end := strings.IndexByte(rest, ']'); rest[0] == '[' && end > 0 {
			l, rest = append(l, piece{literal: rest[1:end]}), rest[end+1:]
			continue
		}
		for n := min(6, len(rest)); n > 0; n-- {
			if local, ok := momentLocal[rest[:n]]; ok {
				l, rest = append(l, momentLayout(local)...), rest[n:]
				continue next
			}
			if token, ok := momentTokens[rest[:n]]; ok {
				l, rest = append(l, piece{token: token}), rest[n:]
				continue next
			}
		}
		l, rest = append(l, piece{literal: rest[:1]}), rest[1:]
	}
	return l
}
