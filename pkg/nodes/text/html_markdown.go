package text

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"

	"github.com/JohannesKaufmann/html-to-markdown/v2/converter"
	basic "github.com/JohannesKaufmann/html-to-markdown/v2/plugin/base"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/commonmark"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/strikethrough"
	tables "github.com/JohannesKaufmann/html-to-markdown/v2/plugin/table"
	"github.com/tidwall/gjson"
	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// markdownOf writes HTML as Markdown. The options and their defaults are those of
// node-html-markdown (https://www.npmjs.com/package/node-html-markdown).
func markdownOf(text string, o options) (string, error) {
	style := []commonmark.OptionFunc{
		commonmark.WithBulletListMarker(o.text("bulletMarker", "*")),
		commonmark.WithCodeBlockFence(o.text("codeFence", "```")),
		commonmark.WithEmDelimiter(o.text("emDelimiter", "_")),
		commonmark.WithStrongDelimiter(o.text("strongDelimiter", "**")),
		commonmark.WithHorizontalRule("---"),
		commonmark.WithListEndComment(false),
	}
	escaping := converter.EscapeModeSmart
	var escapes []replacement
	for _, name := range []string{"globalEscape", "lineStartEscape"} {
		patterns, err := replacements(o.values.Get(name), name)
		if err != nil {
			return "", err
		}
		escapes = append(escapes, patterns...)
	}
	if len(escapes) > 0 {
		escaping = converter.EscapeModeDisabled
	}
	replaced, err := replacements(o.values.Get("textReplace"), "textReplace")
	if err != nil {
		return "", err
	}
	c := converter.NewConverter(converter.WithEscapeMode(escaping), converter.WithPlugins(
		basic.NewBasePlugin(), commonmark.NewCommonmarkPlugin(style...), strikethrough.NewStrikethroughPlugin(),
		tables.NewTablePlugin(tables.WithHeaderPromotion(true), tables.WithNewlineBehavior(tables.NewlineBehaviorPreserve)),
	))
	c.Register.PreRenderer(func(_ converter.Context, document *html.Node) { shapePage(document, o) }, converter.PriorityEarly)
	c.Register.TextTransformer(func(_ converter.Context, text string) string { return replaceAll(text, escapes) }, converter.PriorityEarly)
	if style := o.text("codeBlockStyle", "fence"); style == "indented" {
		c.Register.RendererFor("pre", converter.TagTypeBlock, indentedCode, converter.PriorityEarly)
	}
	var targets []string
	if o.flag("useLinkReferenceDefinitions", false) {
		c.Register.RendererFor("a", converter.TagTypeInline, referenceTo(&targets), converter.PriorityEarly)
	}
	result, err := c.ConvertString(text)
	if err != nil {
		return "", fmt.Errorf("write HTML as Markdown: %w", err)
	}
	result = strings.TrimSpace(replaceAll(blankLines.ReplaceAllString(result, ""), replaced))
	for i, target := range targets {
		separator := "\n"
		if i == 0 {
			separator = "\n\n"
		}
		result += fmt.Sprintf("%s[%d]: %s", separator, i+1, target)
	}
	if most := o.number("maxConsecutiveNewlines", 3); most > 0 {
		result = tooManyLines(most).ReplaceAllString(result, strings.Repeat("\n", most))
	}
	return result, nil
}

// blankLines are empty but for the indentation of a list.
var blankLines = regexp.MustCompile(`(?m)^[ \t]+$`)

func tooManyLines(most int) *regexp.Regexp {
	return regexp.MustCompile(fmt.Sprintf(`\n{%d,}`, min(most, 900)+1))
}

// shapePage removes what is to be ignored and makes blocks of what is to be blocks.
func shapePage(document *html.Node, o options) {
	ignored, blocks := tags(o.values.Get("ignore")), tags(o.values.Get("blockElements"))
	keepData := o.flag("keepDataImages", false)
	var walk func(n *html.Node)
	walk = func(n *html.Node) {
		for child := n.FirstChild; child != nil; {
			next := child.NextSibling
			source := attribute(child, "src")
			switch {
			case child.Type != html.ElementNode:
			case ignored[child.Data], child.Data == "img" && !keepData && strings.HasPrefix(source, "data:"):
				n.RemoveChild(child)
				child = next
				continue
			case blocks[child.Data]:
				child.Data, child.DataAtom = "div", atom.Div
			}
			walk(child)
			child = next
		}
	}
	walk(document)
}

// tags reads a list of the names of elements.
func tags(value gjson.Result) map[string]bool {
	names := map[string]bool{}
	list := value.Array()
	if value.Type == gjson.String {
		list = nil
		for _, name := range strings.Split(value.Str, ",") {
			list = append(list, gjson.Result{Type: gjson.String, Str: name})
		}
	}
	for _, name := range list {
		names[strings.ToLower(strings.Trim(name.String(), " <>"))] = true
	}
	return names
}

// indentedCode renders a block of code by its indentation.
func indentedCode(_ converter.Context, w converter.Writer, n *html.Node) converter.RenderStatus {
	var b strings.Builder
	var collect func(n *html.Node)
	collect = func(n *html.Node) {
		if n.Type == html.TextNode {
			b.WriteString(n.Data)
		}
		for child := n.FirstChild; child != nil; child = child.NextSibling {
			collect(child)
		}
	}
	collect(n)
	_, _ = w.WriteString("\n\n")
	for _, line := range strings.Split(strings.Trim(b.String(), "\n"), "\n") {
		_, _ = w.WriteString("    " + line + "\n")
	}
	_, _ = w.WriteString("\n")
	return converter.RenderSuccess
}

// referenceTo renders a link by a number and collects where the numbers lead.
func referenceTo(targets *[]string) converter.HandleRenderFunc {
	return func(ctx converter.Context, w converter.Writer, n *html.Node) converter.RenderStatus {
		target := attribute(n, "href")
		if target == "" {
			return converter.RenderTryNext
		}
		number := 0
		for i, known := range *targets {
			if known == target {
				number = i + 1
			}
		}
		if number == 0 {
			*targets = append(*targets, target)
			number = len(*targets)
		}
		var content bytes.Buffer
		ctx.RenderChildNodes(ctx, &content, n)
		_, _ = fmt.Fprintf(w, "[%s][%d]", strings.TrimSpace(content.String()), number)
		return converter.RenderSuccess
	}
}

// replacement is a pattern of the author's and what it becomes.
type replacement struct {
	pattern *regexp.Regexp
	with    string
}

// groups are JavaScript's references to groups, $1.
var groups = regexp.MustCompile(`\$(\d)`)

// replacements reads {"pattern", "replacement"}, alone, in a list, or in the collections
// that the editor puts around them.
func replacements(value gjson.Result, option string) ([]replacement, error) {
	var list []replacement
	switch {
	case value.IsArray():
		for _, element := range value.Array() {
			more, err := replacements(element, option)
			if err != nil {
				return nil, err
			}
			list = append(list, more...)
		}
	case value.Get("pattern").Exists():
		text := value.Get("pattern").String()
		if text == "" {
			return nil, nil
		}
		// /pattern/flags is how JavaScript writes them.
		if end := strings.LastIndexByte(text, '/'); text[0] == '/' && end > 0 {
			text = text[1:end]
		}
		pattern, err := regexp.Compile("(?m)" + text)
		if err != nil {
			return nil, fmt.Errorf("option %s: the pattern %q cannot be used: %w", option, text, err)
		}
		list = append(list, replacement{pattern, groups.ReplaceAllString(value.Get("replacement").String(), "$${$1}")})
	case value.IsObject():
		var err error
		value.ForEach(func(_, inner gjson.Result) bool {
			var more []replacement
			if more, err = replacements(inner, option); err != nil {
				return false
			}
			list = append(list, more...)
			return true
		})
		return list, err
	}
	return list, nil
}

func replaceAll(text string, list []replacement) string {
	for _, r := range list {
		text = r.pattern.ReplaceAllString(text, r.with)
	}
	return text
}
