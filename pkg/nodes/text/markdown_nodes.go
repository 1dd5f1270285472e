package text

import (
	"bufio"
	"bytes"
	"fmt"
	"regexp"
	"strings"

	"github.com/yuin/goldmark/ast"
	east "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/renderer"
	ghtml "github.com/yuin/goldmark/renderer/html"
	gtext "github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// shaper changes a parsed document: ids and levels of headings, ids of table headers,
// where links open.
type shaper struct {
	o   options
	ids map[string]int
}

// Transform implements parser.ASTTransformer.
func (s *shaper) Transform(document *ast.Document, reader gtext.Reader, _ parser.Context) {
	start := max(s.o.number("headerLevelStart", 1), 1)
	_ = ast.Walk(document, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.Heading:
			s.heading(n, reader.Source())
			n.Level = min(n.Level+start-1, 6)
		case *ast.Link, *ast.AutoLink:
			if s.o.flag("openLinksInNewWindow", false) {
				n.SetAttributeString("rel", []byte("noopener noreferrer"))
				n.SetAttributeString("target", []byte("_blank"))
			}
		case *east.TableCell:
			if _, header := n.Parent().(*east.TableHeader); header && s.o.flag("tablesHeaderId", false) {
				id := strings.ToLower(strings.ReplaceAll(strings.TrimSpace(string(n.Lines().Value(reader.Source()))), " ", "_"))
				n.SetAttributeString("id", []byte(id))
			}
		}
		return ast.WalkContinue, nil
	})
}

func (s *shaper) heading(n *ast.Heading, source []byte) {
	if s.o.flag("noHeaderId", false) {
		n.RemoveAttributes()
		return
	}
	if _, custom := n.AttributeString("id"); custom {
		return
	}
	title := strings.TrimSpace(string(n.Lines().Value(source)))
	n.SetAttributeString("id", []byte(s.unique(s.id(title))))
}

var (
	notWord      = regexp.MustCompile(`[^\w]`)
	notInGitHub  = regexp.MustCompile("[&+$,/:;=?@\"#{}|^¨~\\[\\]`\\\\*)(%.!'<>]")
	spacesQuotes = regexp.MustCompile(`[ \x60'"]|&amp;`)
)

// id is Showdown's id of a heading: its letters and digits, in one of three ways.
func (s *shaper) id(title string) string {
	prefix := s.o.text("prefixHeaderId", "")
	rawPrefix := s.o.flag("rawPrefixHeaderId", false)
	if !rawPrefix {
		title = prefix + title
	}
	switch {
	case s.o.flag("ghCompatibleHeaderId", false):
		title = notInGitHub.ReplaceAllString(strings.ReplaceAll(title, " ", "-"), "")
	case s.o.flag("rawHeaderId", false):
		title = spacesQuotes.ReplaceAllString(title, "-")
	default:
		title = notWord.ReplaceAllString(title, "")
	}
	title = strings.ToLower(title)
	if rawPrefix {
		title = prefix + title
	}
	return title
}

// unique numbers the ids that come again.
func (s *shaper) unique(id string) string {
	n := s.ids[id]
	s.ids[id]++
	if n > 0 {
		return fmt.Sprintf("%s-%d", id, n)
	}
	return id
}

// mentions reads @name as a link to a person.
type mentions struct{ link string }

var mention = regexp.MustCompile(`^@([A-Za-z\d](?:[A-Za-z\d.-]*[A-Za-z\d])?)`)

// Trigger implements parser.InlineParser.
func (mentions) Trigger() []byte { return []byte{'@'} }

// Parse implements parser.InlineParser.
func (m mentions) Parse(_ ast.Node, block gtext.Reader, _ parser.Context) ast.Node {
	before := block.PrecendingCharacter()
	line, segment := block.PeekLine()
	found := mention.FindSubmatch(line)
	if found == nil || (before != ' ' && before != '\n' && before != '(') {
		return nil
	}
	block.Advance(len(found[0]))
	link := ast.NewLink()
	link.Destination = []byte(strings.ReplaceAll(m.link, "{u}", string(found[1])))
	link.AppendChild(link, ast.NewTextSegment(segment.WithStop(segment.Start+len(found[0]))))
	return link
}

// writer leaves quotes in code as they are, as Showdown does; goldmark escapes them.
type writer struct{ ghtml.Writer }

// RawWrite implements html.Writer.
func (w writer) RawWrite(to util.BufWriter, source []byte) {
	unquoted(to, func(b util.BufWriter) { w.Writer.RawWrite(b, source) })
}

// unquoted writes what write writes, without escaped quotes.
func unquoted(to util.BufWriter, write func(util.BufWriter)) {
	var b bytes.Buffer
	buffered := bufio.NewWriter(&b)
	write(buffered)
	_ = buffered.Flush()
	_, _ = to.Write(bytes.ReplaceAll(b.Bytes(), []byte("&quot;"), []byte(`"`)))
}

// nodes renders what looks different in Showdown.
type nodes struct {
	breaks, encode bool
}

// RegisterFuncs implements renderer.NodeRenderer.
func (r *nodes) RegisterFuncs(register renderer.NodeRendererFuncRegisterer) {
	register.Register(ast.KindText, r.text)
	register.Register(ast.KindFencedCodeBlock, r.code)
	register.Register(ast.KindAutoLink, r.autoLink)
}

func (r *nodes) text(w util.BufWriter, source []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	if !entering {
		return ast.WalkContinue, nil
	}
	text := n.(*ast.Text)
	value := text.Segment.Value(source)
	unquoted(w, func(b util.BufWriter) {
		if text.IsRaw() {
			ghtml.DefaultWriter.RawWrite(b, value)
		} else {
			ghtml.DefaultWriter.Write(b, value)
		}
	})
	switch {
	case text.HardLineBreak() || text.SoftLineBreak() && r.breaks:
		_, _ = w.WriteString("<br />\n")
	case text.SoftLineBreak():
		_ = w.WriteByte('\n')
	}
	return ast.WalkContinue, nil
}

func (r *nodes) code(w util.BufWriter, source []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	if !entering {
		return ast.WalkContinue, nil
	}
	class := ""
	if language := n.(*ast.FencedCodeBlock).Language(source); len(language) > 0 {
		name := string(util.EscapeHTML(language))
		class = fmt.Sprintf(` class="%s language-%s"`, name, name)
	}
	_, _ = w.WriteString("<pre><code" + class + ">")
	lines := n.Lines()
	for i := range lines.Len() {
		line := lines.At(i)
		writer{ghtml.DefaultWriter}.RawWrite(w, line.Value(source))
	}
	_, _ = w.WriteString("</code></pre>\n")
	return ast.WalkSkipChildren, nil
}

func (r *nodes) autoLink(w util.BufWriter, source []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	if !entering {
		return ast.WalkContinue, nil
	}
	link := n.(*ast.AutoLink)
	address, label := string(util.EscapeHTML(util.URLEscape(link.URL(source), false))), string(util.EscapeHTML(link.Label(source)))
	if link.AutoLinkType == ast.AutoLinkEmail {
		if !strings.HasPrefix(strings.ToLower(address), "mailto:") {
			address = "mailto:" + address
		}
		if r.encode {
			address, label = entities(address), entities(label)
		}
	}
	_, _ = w.WriteString(`<a href="` + address + `"`)
	if n.Attributes() != nil {
		ghtml.RenderAttributes(w, n, ghtml.LinkAttributeFilter)
	}
	_, _ = w.WriteString(">" + label + "</a>")
	return ast.WalkContinue, nil
}

// entities hides an address from simple collectors.
func entities(text string) string {
	var b strings.Builder
	for _, r := range text {
		fmt.Fprintf(&b, "&#%d;", r)
	}
	return b.String()
}
