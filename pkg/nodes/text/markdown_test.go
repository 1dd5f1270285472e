package text

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"github.com/reprise-engine/reprise/pkg/nodes/jsonobject"
	"github.com/reprise-engine/reprise/pkg/nodes/nodestest"
)

func TestMarkdownToHTML(t *testing.T) {
	for _, row := range []struct{ name, markdown, options, want string }{
		{"ids without spaces", "# My Über Title!", `{}`, `<h1 id="mybertitle">My Über Title!</h1>`},
		{"ids that come again", "# A\n# A", `{}`, "<h1 id=\"a\">A</h1>\n<h1 id=\"a-1\">A</h1>"},
		{"ids as on GitHub", "# My Title, 2!", `{"ghCompatibleHeaderId":true}`, `<h1 id="my-title-2">My Title, 2!</h1>`},
		{"ids with a prefix", "# My Title", `{"prefixHeaderId":"s-"}`, `<h1 id="smytitle">My Title</h1>`},
		{"ids with a raw prefix", "# My Title", `{"prefixHeaderId":"S-","rawPrefixHeaderId":true}`, `<h1 id="S-mytitle">My Title</h1>`},
		{"raw ids", "# My 'T'", `{"rawHeaderId":true}`, `<h1 id="my--t-">My 'T'</h1>`},
		{"no ids", "# A", `{"noHeaderId":true}`, `<h1>A</h1>`},
		{"ids of the author", "# A {my-id}", `{"customizedHeaderId":true}`, `<h1 id="my-id">A</h1>`},
		{"levels", "# A\n###### B", `{"headerLevelStart":3,"noHeaderId":true}`, "<h3>A</h3>\n<h6>B</h6>"},
		{"heading without a space", "##A", `{"noHeaderId":true}`, `<h2>A</h2>`},
		{"which is none", "##A", `{"requireSpaceBeforeHeadingText":true}`, `<p>##A</p>`},
		{"code is left alone", "```\n#A {b}\n```", `{"customizedHeaderId":true}`, "<pre><code>#A {b}\n</code></pre>"},
		{"language of code", "```go\nx := \"a\" < 'b'\n```", `{}`, "<pre><code class=\"go language-go\">x := \"a\" &lt; 'b'\n</code></pre>"},
		{"quotes", "\"a\" & `\"b\"`", `{}`, `<p>"a" &amp; <code>"b"</code></p>`},
		{"line breaks", "a\nb", `{"simpleLineBreaks":true}`, "<p>a<br />\nb</p>"},
		{"HTML", "<div onclick=\"x\">a</div>", `{}`, `<div onclick="x">a</div>`},
		{"a document", "a", `{"completeHTMLDocument":true}`, "<!DOCTYPE HTML>\n<html>\n<head>\n<meta charset=\"utf-8\">\n</head>\n<body>\n<p>a</p>\n</body>\n</html>"},
		{"new window", "[a](b)", `{"openLinksInNewWindow":true}`, `<p><a href="b" rel="noopener noreferrer" target="_blank">a</a></p>`},
		{"no automatic links", "http://x.y", `{}`, `<p>http://x.y</p>`},
		{"automatic links", "see http://x.yz.", `{"simplifiedAutoLink":true}`, `<p>see <a href="http://x.yz">http://x.yz</a>.</p>`},
		{"mail addresses, plain", "<a@b.c>", `{"encodeEmails":false}`, `<p><a href="mailto:a@b.c">a@b.c</a></p>`},
		{"mail addresses", "<a@b.c>", `{}`, `<p><a href="&#109;&#97;&#105;&#108;&#116;&#111;&#58;&#97;&#64;&#98;&#46;&#99;">&#97;&#64;&#98;&#46;&#99;</a></p>`},
		{"no strikethrough", "~~a~~", `{}`, `<p>~~a~~</p>`},
		{"strikethrough", "~~a~~", `{"strikethrough":true}`, `<p><del>a</del></p>`},
		{"emoji", ":smile:", `{"emoji":true}`, `<p>😄</p>`},
		{"mentions", "hi @jo-e, not a@b", `{"ghMentions":true,"ghMentionsLink":"https://x/{u}"}`, `<p>hi <a href="https://x/jo-e">@jo-e</a>, not a@b</p>`},
		{"mention in a link stays text", "`@jo`", `{"ghMentions":true}`, `<p><code>@jo</code></p>`},
		{"tasks", "- [x] a", `{"tasklists":true}`, "<ul>\n<li><input checked=\"\" disabled=\"\" type=\"checkbox\" /> a</li>\n</ul>"},
		{"sizes of images", "x ![a](b.png =10x*)", `{"parseImgDimensions":true}`, `<p>x <img src="b.png" alt="a" width="10" height="auto" /></p>`},
		{"nothing", "", `{}`, ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			got, err := htmlOf(row.markdown, options{gjson.Parse(row.options)})
			require.NoError(t, err)
			require.Equal(t, row.want, got)
		})
	}
}

func TestHTMLToMarkdown(t *testing.T) {
	for _, row := range []struct{ name, page, options, want string }{
		{"emphasis", "<p><em>a</em> <strong>b</strong></p>", `{}`, "_a_ **b**"},
		{"delimiters", "<p><em>a</em> <strong>b</strong></p><ul><li>c</li></ul>", `{"emDelimiter":"*","strongDelimiter":"__","bulletMarker":"-"}`, "*a* __b__\n\n- c"},
		{"code", "<pre><code class='language-js'>a\nb</code></pre>", `{}`, "```js\na\nb\n```"},
		{"fence", "<pre>a</pre>", `{"codeFence":"~~~"}`, "~~~\na\n~~~"},
		{"indented code", "<p>x</p><pre>a\n b</pre>", `{"codeBlockStyle":"indented"}`, "x\n\n    a\n     b"},
		{"tables", "<table><tr><th>A</th></tr><tr><td>1</td></tr></table>", `{}`, "| A |\n|---|\n| 1 |"},
		{"scripts and styles", "<style>a{}</style><script>b()</script>c", `{}`, "c"},
		{"ignored", "<nav>a</nav><p>b</p><aside>c</aside>", `{"ignore":"nav, aside"}`, "b"},
		{"blocks", "<span>a</span><span>b</span>", `{"blockElements":["span"]}`, "a\n\nb"},
		{"images with data", "<p>a<img src='data:image/png;base64,AA=='></p>", `{}`, "a"},
		{"images with data, kept", "<img alt='i' src='data:image/png;base64,AA=='>", `{"keepDataImages":true}`, "![i](data:image/png;base64,AA==)"},
		{"links at the bottom", "<a href='u'>a</a> <a href='v'>b</a> <a href='u'>c</a>", `{"useLinkReferenceDefinitions":true}`, "[a][1] [b][2] [c][1]\n\n[1]: u\n[2]: v"},
		{"line breaks", "<p>a</p><p>b</p>", `{"maxConsecutiveNewlines":1}`, "a\nb"},
		{"nested list", "<ul><li>a<ul><li>b</li></ul></li></ul>", `{}`, "* a\n\n  * b"},
		{"replacement", "<p>one two</p>", `{"textReplace":{"values":[{"pattern":"(o)ne","replacement":"$1!"}]}}`, "o! two"},
		{"escapes of the author", "<p>a_b#c</p>", `{"globalEscape":{"value":{"pattern":"#","replacement":"\\#"}}}`, `a_b\#c`},
		{"strikethrough", "<del>a</del>", `{}`, "~~a~~"},
		{"nothing", "", `{}`, ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			got, err := markdownOf(row.page, options{gjson.Parse(row.options)})
			require.NoError(t, err)
			require.Equal(t, row.want, got)
		})
	}
}

func TestMarkdownNode(t *testing.T) {
	items := nodestest.Items(`{"a":{"b":1},"h":"<b>x</b>"}`, `{"h":"y"}`)
	got, failure := run(t, Markdown(), `{"html":"={{ $json.h }}","destinationKey":"a.md"}`, items, nil)
	require.Nil(t, failure)
	require.Equal(t, `{"a":{"b":1,"md":"**x**"},"h":"<b>x</b>"}`+"\n"+`{"h":"y","a":{"md":"y"}}`, got)
	for parameters, message := range map[string]string{
		`{"mode":"rtf"}`: `"rtf" is not supported`,
		`{"html":"x","options":{"textReplace":{"pattern":"(","replacement":""}}}`: "option textReplace: the pattern \"(\" cannot be used: error parsing regexp: missing closing ): `(?m)(`",
		`{"html":"x","options":{"bulletMarker":"x"}}`:                             "",
	} {
		_, failure := run(t, Markdown(), parameters, items, nil)
		require.NotNil(t, failure, parameters)
		if message != "" {
			require.Equal(t, message, failure.Message)
		}
	}
	long := jsonobject.Quote(fmt.Sprint(make([]int, 50000)))
	_, failure = run(t, Markdown(), `{"mode":"markdownToHtml","markdown":`+long+`}`, items, nil)
	require.Nil(t, failure)
}
