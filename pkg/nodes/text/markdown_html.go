package text

import (
	"bytes"
	"fmt"
	"html"
	"regexp"
	"strings"

	"github.com/yuin/goldmark"
	emoji "github.com/yuin/goldmark-emoji"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/renderer"
	ghtml "github.com/yuin/goldmark/renderer/html"
	"github.com/yuin/goldmark/util"
)

// htmlOf renders Markdown. The options are those of Showdown
// (https://github.com/showdownjs/showdown/wiki/Showdown-Options).
func htmlOf(text string, o options) (string, error) {
	text = prepare(strings.ReplaceAll(text, "\r\n", "\n"), o)
	var extensions []goldmark.Extender
	if o.flag("tables", false) {
		extensions = append(extensions, extension.NewTable(extension.WithTableCellAlignMethod(extension.TableCellAlignStyle)))
	}
	if o.flag("strikethrough", false) {
		extensions = append(extensions, extension.Strikethrough)
	}
	if o.flag("tasklists", false) {
		extensions = append(extensions, extension.TaskList)
	}
	if o.flag("simplifiedAutoLink", false) {
		extensions = append(extensions, extension.Linkify)
	}
	if o.flag("emoji", false) {
		extensions = append(extensions, emoji.New(emoji.WithRenderingMethod(emoji.Unicode)))
	}
	parsing := []parser.Option{parser.WithHeadingAttribute(), parser.WithASTTransformers(util.Prioritized(&shaper{o: o, ids: map[string]int{}}, 500))}
	if o.flag("ghMentions", false) {
		link := o.text("ghMentionsLink", "https://github.com/{u}")
		parsing = append(parsing, parser.WithInlineParsers(util.Prioritized(mentions{link}, 600)))
	}
	// What a page's author writes as HTML stays HTML, as in n8n.
	rendering := []renderer.Option{ghtml.WithUnsafe(), ghtml.WithXHTML(), ghtml.WithWriter(writer{ghtml.DefaultWriter})}
	breaks := o.flag("simpleLineBreaks", false)
	rendering = append(rendering, renderer.WithNodeRenderers(util.Prioritized(&nodes{breaks: breaks, encode: o.flag("encodeEmails", true)}, 100)))
	md := goldmark.New(goldmark.WithExtensions(extensions...), goldmark.WithParserOptions(parsing...), goldmark.WithRendererOptions(rendering...))
	var b bytes.Buffer
	if err := md.Convert([]byte(text), &b); err != nil {
		return "", fmt.Errorf("render Markdown: %w", err)
	}
	result := strings.TrimRight(b.String(), "\n")
	if o.flag("completeHTMLDocument", false) {
		result = "<!DOCTYPE HTML>\n<html>\n<head>\n<meta charset=\"utf-8\">\n</head>\n<body>\n" + result + "\n</body>\n</html>"
	}
	return result, nil
}

var (
	fence         = regexp.MustCompile("^ {0,3}(```+|~~~+)")
	tightHeading  = regexp.MustCompile(`^(#{1,6})([^#\s].*)$`)
	customHeading = regexp.MustCompile(`^(#{1,6}.*?)[ \t]*\{([\w-]+)\}[ \t]*#*[ \t]*$`)
	sizedImage    = regexp.MustCompile(`!\[([^\]]*)\]\(\s*<?([^\s>)]+)>?\s+=(\d+|\*)x(\d+|\*)(?:\s+["']([^"']*)["'])?\s*\)`)
)

// prepare rewrites what Showdown reads and CommonMark does not; code is left alone.
func prepare(text string, o options) string {
	lines := strings.Split(text, "\n")
	open := ""
	for i, line := range lines {
		if mark := fence.FindStringSubmatch(line); mark != nil {
			switch {
			case open == "":
				open = mark[1]
			case strings.HasPrefix(mark[1], open):
				open = ""
			}
			continue
		}
		if open != "" {
			continue
		}
		if !o.flag("requireSpaceBeforeHeadingText", false) {
			line = tightHeading.ReplaceAllString(line, "$1 $2")
		}
		if o.flag("customizedHeaderId", false) {
			line = customHeading.ReplaceAllString(line, "$1 {#$2}")
		}
		if o.flag("parseImgDimensions", false) {
			line = sizedImage.ReplaceAllStringFunc(line, sizedImageTag)
		}
		lines[i] = line
	}
	return strings.Join(lines, "\n")
}

func sizedImageTag(markdown string) string {
	parts := sizedImage.FindStringSubmatch(markdown)
	size := func(n string) string {
		if n == "*" {
			return "auto"
		}
		return n
	}
	title := ""
	if parts[5] != "" {
		title = ` title="` + html.EscapeString(parts[5]) + `"`
	}
	return fmt.Sprintf(`<img src="%s" alt="%s"%s width="%s" height="%s" />`, html.EscapeString(parts[2]), html.EscapeString(parts[1]), title, size(parts[3]), size(parts[4]))
}
