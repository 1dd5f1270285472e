package text

import (
	"strconv"
	"strings"

	"github.com/PuerkitoBio/goquery"
	"github.com/andybalholm/cascadia"
	"golang.org/x/net/html"
)

// shownText is the text of what is inside elements as a reader sees it: blocks begin on
// lines of their own, white space is condensed, links and images have their addresses in
// brackets, as in the html-to-text library. What skip matches is left out.
func shownText(found *goquery.Selection, skip []string) string {
	s := &shown{}
	for _, selector := range skip {
		if matcher, err := cascadia.Compile(selector); err == nil {
			s.skip = append(s.skip, matcher)
		}
	}
	for _, n := range found.Nodes {
		if n.Type == html.TextNode {
			s.text(n.Data)
			continue
		}
		s.children(n)
	}
	return strings.TrimSpace(s.b.String())
}

// shown writes text. Line breaks and spaces wait until something follows them.
type shown struct {
	b     strings.Builder
	skip  []cascadia.Matcher
	lines int
	space bool
	pre   int
	// lists are the numbers of the lists around; 0 is one with bullets.
	lists []int
}

// margins are the line breaks around block elements.
var margins = map[string]int{
	"p": 2, "h1": 2, "h2": 2, "h3": 2, "h4": 2, "h5": 2, "h6": 2, "ul": 2, "ol": 2, "blockquote": 2, "pre": 2, "table": 2, "hr": 2,
	"div": 1, "section": 1, "article": 1, "aside": 1, "main": 1, "nav": 1, "header": 1, "footer": 1, "form": 1, "fieldset": 1,
	"address": 1, "dl": 1, "dt": 1, "dd": 1, "li": 1, "tr": 1, "figure": 1, "figcaption": 1, "details": 1, "summary": 1, "body": 1, "html": 1,
}

func (s *shown) children(n *html.Node) {
	for child := n.FirstChild; child != nil; child = child.NextSibling {
		s.node(child)
	}
}

func (s *shown) node(n *html.Node) {
	switch n.Type {
	case html.TextNode:
		s.text(n.Data)
		return
	case html.ElementNode:
	default:
		return
	}
	for _, matcher := range s.skip {
		if matcher.Match(n) {
			return
		}
	}
	margin := margins[n.Data]
	s.breakLine(margin)
	switch n.Data {
	case "script", "style", "template", "noscript", "head":
	case "br":
		s.lines++
		s.space = false
	case "hr":
		s.write(strings.Repeat("-", 40))
	case "img":
		s.words(attribute(n, "alt"))
		if source := attribute(n, "src"); source != "" {
			s.words(" [" + source + "]")
		}
	case "a":
		s.children(n)
		if address := strings.TrimPrefix(attribute(n, "href"), "mailto:"); address != "" && address[0] != '#' {
			s.words(" [" + address + "]")
		}
	case "pre":
		s.pre++
		s.children(n)
		s.pre--
	case "ul", "ol":
		number := 0
		if n.Data == "ol" {
			number = 1
			if start, err := strconv.Atoi(attribute(n, "start")); err == nil {
				number = start
			}
		}
		s.lists = append(s.lists, number)
		s.children(n)
		s.lists = s.lists[:len(s.lists)-1]
	case "li":
		s.bullet()
		s.children(n)
	case "td", "th":
		s.children(n)
		s.space = true
	default:
		s.children(n)
	}
	s.breakLine(margin)
}

// bullet begins an entry of a list.
func (s *shown) bullet() {
	if len(s.lists) == 0 {
		return // an entry that was selected by itself
	}
	innermost := len(s.lists) - 1
	mark := strings.Repeat("   ", innermost) + " * "
	if n := s.lists[innermost]; n > 0 {
		mark = strings.Repeat("   ", innermost) + " " + strconv.Itoa(n) + ". "
		s.lists[innermost]++
	}
	s.write(mark)
	s.space = false
}

func (s *shown) text(text string) {
	if s.pre > 0 {
		s.write(text)
		return
	}
	s.words(text)
}

// words writes text with its white space condensed.
func (s *shown) words(text string) {
	const white = " \t\r\n\f"
	fields := strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(white, r) })
	if text != "" && strings.ContainsRune(white, rune(text[0])) {
		s.space = true
	}
	for i, field := range fields {
		if i > 0 {
			s.space = true
		}
		s.write(field)
	}
	if len(fields) > 0 && strings.ContainsRune(white, rune(text[len(text)-1])) {
		s.space = true
	}
}

func (s *shown) write(text string) {
	if text == "" {
		return
	}
	switch {
	case s.b.Len() == 0:
	case s.lines > 0:
		s.b.WriteString(strings.Repeat("\n", s.lines))
	case s.space && !strings.HasSuffix(s.b.String(), " "):
		s.b.WriteByte(' ')
	}
	s.lines, s.space = 0, false
	s.b.WriteString(text)
}

// breakLine makes sure that what follows begins n lines further.
func (s *shown) breakLine(n int) {
	s.lines = max(s.lines, n)
	if n > 0 {
		s.space = false
	}
}

func attribute(n *html.Node, name string) string {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}
