package mail

import (
	"bytes"
	"encoding/json"
	"fmt"
	"html/template"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/tidwall/gjson"

	"github.com/reprise-engine/reprise/pkg/nodes/approval"
)

// invitation is a mail that asks a person to decide on the page it leads to.
type invitation struct {
	Subject, Message string
	// Tool and Arguments are shown when they are set.
	Tool, Arguments string
	Buttons         []button
	Until           string // in words; "" is without end
}

type button struct {
	Label, URL string
	Primary    bool
}

// maxShownBytes is how much of a tool's arguments is put into a mail.
const maxShownBytes = 20_000

// show adds the tool and its arguments, unless the message names them all: nobody should
// be asked to allow what he cannot see.
func (in *invitation) show(about *approval.ToolCall) {
	if about == nil || names(in.Message, about) {
		return
	}
	in.Tool = about.Node
	if about.Name != "" && about.Name != about.Node {
		in.Tool += " (" + about.Name + ")"
	}
	in.Arguments = indented(about.Arguments)
}

// names reports whether a text has the tool's name and every value of its
// arguments.
func names(text string, about *approval.ToolCall) bool {
	if !strings.Contains(text, about.Node) && !strings.Contains(text, about.Name) {
		return false
	}
	if strings.Contains(text, strings.TrimSpace(string(about.Arguments))) {
		return true
	}
	values := 0
	var all func(gjson.Result) bool
	all = func(v gjson.Result) bool {
		if !v.IsObject() && !v.IsArray() {
			values++
			return hasWord(text, v.String())
		}
		found := true
		v.ForEach(func(_, inner gjson.Result) bool {
			found = all(inner)
			return found
		})
		return found
	}
	return all(gjson.ParseBytes(about.Arguments)) && values > 0
}

// hasWord reports whether a text has a word, not only as a part of longer ones.
func hasWord(text, word string) bool {
	inside := func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }
	for word != "" {
		at := strings.Index(text, word)
		if at < 0 {
			return false
		}
		before, _ := utf8.DecodeLastRuneInString(text[:at])
		text = text[at+len(word):]
		after, _ := utf8.DecodeRuneInString(text)
		if !inside(before) && !inside(after) {
			return true
		}
	}
	return false
}

func indented(arguments json.RawMessage) string {
	var b bytes.Buffer
	if err := json.Indent(&b, arguments, "", "  "); err != nil {
		b.Reset()
		b.Write(arguments)
	}
	text := visible(b.String())
	if len(text) <= maxShownBytes {
		return text
	}
	cut := maxShownBytes
	for !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut] + "\n… (shortened; the page shows all of it)"
}

// visible writes characters that cannot be seen, and those that turn the direction of
// reading, as JSON's escapes: arguments must not look like others.
func visible(text string) string {
	var b strings.Builder
	for _, r := range text {
		if unicode.Is(unicode.Cf, r) || unicode.IsControl(r) && r != '\n' && r != '\t' {
			for _, unit := range utf16.AppendRune(nil, r) {
				fmt.Fprintf(&b, "\\u%04x", unit)
			}
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

// Lines of the message.
func (in *invitation) Lines() []string {
	return strings.Split(strings.ReplaceAll(in.Message, "\r\n", "\n"), "\n")
}

const deciding = "The link opens a page that shows the question again. Nothing is decided until you answer there."

// Note at the end of the mail.
func (in *invitation) Note() string {
	if in.Until == "" {
		return deciding
	}
	return deciding + " Please answer before " + in.Until + "."
}

var page = template.Must(template.New("invitation").Parse(`<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>{{.Subject}}</title>
</head>
<body style="margin:0;padding:24px;background:#f4f5f7;font-family:Helvetica,Arial,sans-serif;font-size:16px;line-height:1.5;color:#1f2430">
<div style="max-width:560px;margin:0 auto;padding:24px;background:#ffffff;border:1px solid #dfe2e8;border-radius:6px">
<p style="margin:0 0 16px">{{range $i, $line := .Lines}}{{if $i}}<br>
{{end}}{{$line}}{{end}}</p>
{{if .Tool}}<p style="margin:0 0 4px"><strong>{{.Tool}}</strong></p>
<pre style="margin:0 0 16px;padding:12px;background:#f4f5f7;border-radius:4px;white-space:pre-wrap;word-break:break-word;font-size:14px">{{.Arguments}}</pre>
{{end}}<p style="margin:0 0 16px">
{{range .Buttons}}<a href="{{.URL}}" style="display:inline-block;margin:0 8px 8px 0;padding:10px 20px;border:1px solid #2f5bd7;border-radius:4px;text-decoration:none;font-weight:bold;{{if .Primary}}background:#2f5bd7;color:#ffffff{{else}}background:#ffffff;color:#2f5bd7{{end}}">{{.Label}}</a>
{{end}}</p>
<p style="margin:0;color:#646b79;font-size:13px">{{.Note}}</p>
</div>
</body>
</html>
`))

// write is the mail in its two forms.
func (in *invitation) write() (html, text string, err error) {
	var b bytes.Buffer
	if err := page.Execute(&b, in); err != nil {
		return "", "", fmt.Errorf("write the mail: %w", err)
	}
	var t strings.Builder
	t.WriteString(strings.Join(in.Lines(), "\n"))
	if in.Tool != "" {
		fmt.Fprintf(&t, "\n\nTool: %s\n%s", in.Tool, in.Arguments)
	}
	t.WriteString("\n")
	for _, b := range in.Buttons {
		fmt.Fprintf(&t, "\n%s: %s", b.Label, b.URL)
	}
	fmt.Fprintf(&t, "\n\n%s\n", in.Note())
	return b.String(), t.String(), nil
}
