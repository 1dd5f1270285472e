package files

import (
	"bytes"
	"io"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/tidwall/gjson"
	"golang.org/x/text/encoding/charmap"

	"github.com/reprise-engine/reprise/pkg/nodes/jsonobject"
)

// rtf reads the tables of a Rich Text Format file, one after the other.
func (j *job) rtf(data []byte) ([][]string, error) {
	if !bytes.HasPrefix(bytes.TrimLeft(data, " \r\n\t"), []byte(`{\rtf`)) {
		return nil, failure(j.item, "The file cannot be read as RTF")
	}
	p := &rtfReader{data: data, skip: []rtfGroup{{replaced: 1}}}
	p.read()
	if len(p.rows) == 0 {
		return nil, failure(j.item, "The file holds no table")
	}
	j.typed(p.rows)
	return p.rows, j.err
}

// rtfGroup is what holds within braces.
type rtfGroup struct {
	ignored  bool
	replaced int // bytes that stand for a \u where it is not known
}

type rtfReader struct {
	data  []byte
	at    int
	skip  []rtfGroup
	text  strings.Builder
	row   []string
	rows  [][]string
	high  rune // first half of a surrogate pair
	stale int  // bytes that a \u replaces, still to come
}

// ignoredGroups hold no text of the document.
var ignoredGroups = map[string]bool{"fonttbl": true, "colortbl": true, "stylesheet": true, "info": true, "pict": true, "header": true, "footer": true, "object": true}

func (p *rtfReader) group() *rtfGroup { return &p.skip[len(p.skip)-1] }

func (p *rtfReader) read() {
	for p.at < len(p.data) {
		c := p.data[p.at]
		p.at++
		switch c {
		case '{':
			if len(p.skip) < 10_000 {
				p.skip = append(p.skip, *p.group())
			}
		case '}':
			if len(p.skip) > 1 {
				p.skip = p.skip[:len(p.skip)-1]
			}
		case '\\':
			p.control()
		case '\r', '\n':
		default:
			p.put(charmap.Windows1252.DecodeByte(c))
		}
	}
}

// put adds a letter of the text, unless it stands for one that was given already.
func (p *rtfReader) put(r rune) {
	if p.stale > 0 {
		p.stale--
		return
	}
	if !p.group().ignored {
		p.text.WriteRune(r)
	}
}

func (p *rtfReader) control() {
	if p.at >= len(p.data) {
		return
	}
	c := p.data[p.at]
	if c|0x20 < 'a' || c|0x20 > 'z' {
		p.at++
		switch c {
		case '\'':
			if p.at+2 <= len(p.data) {
				if n, err := strconv.ParseUint(string(p.data[p.at:p.at+2]), 16, 8); err == nil {
					p.put(charmap.Windows1252.DecodeByte(byte(n)))
				}
				p.at += 2
			}
		case '*':
			p.group().ignored = true
		case '~':
			p.put('\u00a0')
		case '\\', '{', '}':
			p.put(rune(c))
		}
		return
	}
	start := p.at
	for p.at < len(p.data) && p.data[p.at]|0x20 >= 'a' && p.data[p.at]|0x20 <= 'z' {
		p.at++
	}
	word, digits := string(p.data[start:p.at]), p.at
	for p.at < len(p.data) && (p.data[p.at] >= '0' && p.data[p.at] <= '9' || p.at == digits && p.data[p.at] == '-') {
		p.at++
	}
	number, _ := strconv.Atoi(string(p.data[digits:p.at]))
	if p.at < len(p.data) && p.data[p.at] == ' ' {
		p.at++
	}
	p.word(word, number)
}

func (p *rtfReader) word(word string, number int) {
	switch {
	case ignoredGroups[word]:
		p.group().ignored = true
	case p.group().ignored:
	case word == "uc":
		p.group().replaced = max(number, 0)
	case word == "u":
		p.unicode(rune(uint16(number)))
	case word == "bin":
		p.at = min(p.at+max(number, 0), len(p.data))
	case word == "tab":
		p.put('\t')
	case word == "par" || word == "line":
		p.put('\n')
	case word == "trowd":
		p.row = nil
		p.text.Reset()
	case word == "cell":
		cell := ""
		if text := strings.TrimSpace(p.text.String()); text != "" {
			cell = jsonobject.Quote(text)
		}
		p.row = append(p.row, cell)
		p.text.Reset()
	case word == "row":
		p.rows = append(p.rows, p.row)
		p.row = nil
		p.text.Reset()
	}
}

func (p *rtfReader) unicode(r rune) {
	p.stale = 0
	switch {
	case utf16.IsSurrogate(r) && p.high == 0:
		p.high = r
	case p.high != 0:
		p.put(utf16.DecodeRune(p.high, r))
		p.high = 0
	default:
		p.put(r)
	}
	p.stale = p.group().replaced
}

// writeRTF writes rows as a table of a Rich Text Format file.
func writeRTF(w io.Writer, header bool, columns []string, rows []map[string]gjson.Result) error {
	var b strings.Builder
	b.WriteString(`{\rtf1\ansi\ansicpg1252\deff0{\fonttbl{\f0 Calibri;}}` + "\n")
	line := func(cell func(i int) string) error {
		b.WriteString(`\trowd\trautofit1`)
		for i := range columns {
			b.WriteString(`\cellx` + strconv.Itoa((i+1)*1440))
		}
		b.WriteString(`\pard\intbl`)
		for i := range columns {
			b.WriteByte(' ')
			escapeRTF(&b, cell(i))
			b.WriteString(`\cell`)
		}
		b.WriteString("\\row\n")
		_, err := io.WriteString(w, b.String())
		b.Reset()
		return err
	}
	if header {
		if err := line(func(i int) string { return columns[i] }); err != nil {
			return err
		}
	}
	for _, row := range rows {
		if err := line(func(i int) string { return row[columns[i]].String() }); err != nil {
			return err
		}
	}
	_, err := io.WriteString(w, b.String()+"}")
	return err
}

func escapeRTF(b *strings.Builder, text string) {
	for _, r := range text {
		switch {
		case r == '\\' || r == '{' || r == '}':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\line `)
		case r == '\t':
			b.WriteString(`\tab `)
		case r < ' ':
		case r < utf8.RuneSelf:
			b.WriteRune(r)
		default:
			for _, unit := range utf16.Encode([]rune{r}) {
				b.WriteString(`\u` + strconv.Itoa(int(int16(unit))) + "?")
			}
		}
	}
}
