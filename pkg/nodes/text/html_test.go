package text

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/node"
	"github.com/reprise-engine/reprise/pkg/nodes/jsonobject"
	"github.com/reprise-engine/reprise/pkg/nodes/nodestest"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// run gives the JSON of all items, each on a line, or the failure of the node.
func run(t *testing.T, nodeType *node.Type, parameters string, items workflow.Items, change func(*node.Call)) (string, *engine.NodeError) {
	t.Helper()
	call := nodestest.Call(nodeType, parameters, items)
	if change != nil {
		change(call)
	}
	result, err := nodeType.Execute(context.Background(), call)
	if err != nil {
		var failure *engine.NodeError
		require.True(t, errors.As(err, &failure), "%v is a failure of the node", err)
		return "", failure
	}
	var lines []string
	for _, item := range result.Outputs[0] {
		lines = append(lines, plain(string(item.JSON)))
	}
	return strings.Join(lines, "\n"), nil
}

// plain is JSON without the escapes that it need not have.
var plain = strings.NewReplacer(`\u003c`, "<", `\u003e`, ">", `\u0026`, "&").Replace

const page = `<html><body><h1>News</h1><div id="a" class="x">one <b>two</b>
 three<img src="p.png" alt="pic"><a href="/l">more</a></div><div class="x">four<br>five</div><script>no()</script>
<ul><li>u</li><li>v</li></ul><form><input name="i" value="7"><textarea>t x</textarea><select><option value="1">A</option><option value="2" selected>B</option></select></form></body></html>`

func TestExtraction(t *testing.T) {
	item := `{"data":` + jsonobject.Quote(page) + `,"deep":{"h":["<p>1</p>","<p>2</p>"]}}`
	value := func(rest string) string {
		return `{"operation":"extractHtmlContent","extractionValues":{"values":[{"key":"k",` + rest + `}]},"options":{"trimValues":true}}`
	}
	for _, row := range []struct{ name, parameters, want string }{
		{"text as shown", value(`"cssSelector":"#a"`), `{"k":"one two threepic [p.png]more [/l]"}`},
		{"skipped", value(`"cssSelector":"#a","skipSelectors":"img, a"`), `{"k":"one two three"}`},
		{"all that was found", value(`"cssSelector":"li"`), `{"k":"uv"}`},
		{"lines", value(`"cssSelector":"div.x:last"`), `{"k":"four\nfive"}`},
		{"blocks", value(`"cssSelector":"body","skipSelectors":"div,form"`), `{"k":"News\n\n * u\n * v"}`},
		{"html of the first", value(`"cssSelector":".x","returnValue":"html"`), `{"k":"one <b>two</b>\n three<img src=\"p.png\" alt=\"pic\"/><a href=\"/l\">more</a>"}`},
		{"no html", value(`"cssSelector":"nav","returnValue":"html"`), `{"k":null}`},
		{"no attribute", value(`"cssSelector":"nav","returnValue":"attribute","attribute":"id"`), `{}`},
		{"attributes", value(`"cssSelector":"div","returnValue":"attribute","attribute":"id","returnArray":true`), `{"k":["a",null]}`},
		{"values", value(`"cssSelector":"input, textarea, select","returnValue":"value","returnArray":true`), `{"k":["7","t x","2"]}`},
		{"position", value(`"cssSelector":"li:eq(1)"`), `{"k":"v"}`},
		{"from the end", value(`"cssSelector":"li:eq(-2)"`), `{"k":"u"}`},
		{"contains", value(`"cssSelector":"li:contains('v')","returnArray":true`), `{"k":["v"]}`},
		{"nothing, as a list", value(`"cssSelector":"nav","returnArray":true`), `{"k":[]}`},
		{"a list of pages, a path", `{"operation":"extractHtmlContent","dataPropertyName":"deep.h","extractionValues":{"values":[{"key":"k","cssSelector":"p"}]}}`, `{"k":"1"}` + "\n" + `{"k":"2"}`},
		{"cleaned up", `{"operation":"extractHtmlContent","extractionValues":{"values":[{"key":"k","cssSelector":"#a","returnValue":"html"}]},"options":{"cleanUpText":true}}`, `{"k":"one <b>two</b> three<img src=\"p.png\" alt=\"pic\"/><a href=\"/l\">more</a>"}`},
	} {
		t.Run(row.name, func(t *testing.T) {
			got, failure := run(t, HTML(), row.parameters, nodestest.Items(item), nil)
			require.Nil(t, failure)
			require.Equal(t, row.want, got)
		})
	}
	for _, old := range []func(*node.Call){
		func(c *node.Call) { c.Node.TypeVersion = 1 },
		func(c *node.Call) { c.Type, c.Node.Type = HTMLExtract(), base+"htmlExtract" },
	} {
		nodeType := HTML()
		call := nodestest.Call(nodeType, value(`"cssSelector":"#a"`), nodestest.Items(item))
		old(call)
		result, err := call.Type.Execute(context.Background(), call)
		require.NoError(t, err)
		require.Equal(t, `{"k":"one two\n threemore"}`, string(result.Outputs[0][0].JSON), "text as the page has it")
	}
}

func TestExtractionFromAFile(t *testing.T) {
	items := nodestest.Items(`{}`)
	items[0].Binary = map[string]workflow.Binary{"page": {FileName: "p.html", Data: base64.StdEncoding.EncodeToString([]byte("\ufeff<p>ü</p>"))}}
	parameters := `{"operation":"extractHtmlContent","sourceData":"binary","dataPropertyName":"page","extractionValues":{"values":[{"key":"k","cssSelector":"p"}]}}`
	got, failure := run(t, HTML(), parameters, items, nil)
	require.Nil(t, failure)
	require.Equal(t, `{"k":"ü"}`, got)
	_, failure = run(t, HTML(), strings.Replace(parameters, `"page"`, `"other"`, 1), items, nil)
	require.Equal(t, `No property named "other" exists!`, failure.Message)
}

func TestExtractionFailures(t *testing.T) {
	for _, row := range []struct{ name, parameters, message string }{
		{"field", `{"operation":"extractHtmlContent","dataPropertyName":"zzz"}`, `No property named "zzz" exists!`},
		{"selector", `{"operation":"extractHtmlContent","extractionValues":{"values":[{"key":"k","cssSelector":"p["}]}}`, `The CSS selector "p[" is not valid`},
		{"no selector", `{"operation":"extractHtmlContent","extractionValues":{"values":[{"key":"k","cssSelector":" "}]}}`, `The value "k" has no CSS selector`},
		{"selector to skip", `{"operation":"extractHtmlContent","extractionValues":{"values":[{"key":"k","cssSelector":"p","skipSelectors":"]"}]}}`, "The selectors to skip are not valid"},
		{"kind", `{"operation":"extractHtmlContent","extractionValues":{"values":[{"key":"k","cssSelector":"p","returnValue":"soul"}]}}`, `"soul" is not supported`},
		{"source", `{"operation":"extractHtmlContent","sourceData":"air"}`, `"air" is not supported`},
		{"operation", `{"operation":"burn"}`, `"burn" is not supported`},
	} {
		t.Run(row.name, func(t *testing.T) {
			got, failure := run(t, HTML(), row.parameters, nodestest.Items(`{"data":"<p>x</p>"}`), nil)
			require.NotNil(t, failure, got)
			require.Equal(t, row.message, failure.Message)
		})
	}
}

func TestTemplates(t *testing.T) {
	items := nodestest.Items(`{"a":"x","o":{"b":1},"n":5}`, `{"a":"<y>"}`)
	for _, row := range []struct{ template, want string }{
		{`<p>{{ $json.a }}</p>`, `{"html":"<p>x</p>"}` + "\n" + `{"html":"<p><y></p>"}`},
		{`={{ $json.a }}`, `{"html":"x"}` + "\n" + `{"html":"<y>"}`},
		{`{{ $json.o }}`, `{"html":"{\"b\":1}"}` + "\n" + `{"html":""}`},
		{`{{ $json.n }}`, `{"html":"5"}` + "\n" + `{"html":""}`},
		{``, `{"html":""}` + "\n" + `{"html":""}`},
	} {
		got, failure := run(t, HTML(), `{"html":`+jsonobject.Quote(row.template)+`}`, items, nil)
		require.Nil(t, failure)
		require.Equal(t, row.want, got, row.template)
	}
	got, failure := run(t, HTML(), `{"html":"x"}`, workflow.Items{}, nil)
	require.Nil(t, failure)
	require.Empty(t, got)
}

func TestTables(t *testing.T) {
	items := nodestest.Items(`{"first_name":"Ann","n":1}`, `{"n":2,"last":{"x":true}}`)
	call := nodestest.Call(HTML(), `{"operation":"convertToHtmlTable","options":{"customStyling":true,"capitalize":true,"caption":"All","tableAttributes":"id='t'","headerAttributes":"h","rowAttributes":"r","cellAttributes":"c"}}`, items)
	result, err := HTML().Execute(context.Background(), call)
	require.NoError(t, err)
	out := result.Outputs[0]
	require.Len(t, out, 1)
	require.Equal(t, workflow.PairedItems{{Item: 0}, {Item: 1}}, out[0].PairedItem)
	require.Equal(t, `{"table":"<table  id='t'><caption>All</caption><thead  h><tr><th>First Name</th><th>N</th><th>Last</th></tr></thead><tbody>`+
		`<tr  r><td  c>Ann</td><td  c>1</td><td  c></td></tr><tr  r><td  c></td><td  c>2</td><td  c>{\"x\":true}</td></tr></tbody></table>"}`, plain(string(out[0].JSON)))
}

func TestShownText(t *testing.T) {
	for _, row := range []struct{ page, want string }{
		{"a  b\n c", "a b c"},
		{"<p>a</p><p>b</p>", "a\n\nb"},
		{"<div>a</div> <div>b</div>", "a\nb"},
		{"<p>a<br><br>b</p>", "a\n\nb"},
		{"<p>x <b> y </b> z</p>", "x y z"},
		{"<ol start='3'><li>c<ul><li>d</li></ul></li><li>e</li></ol>", "3. c\n\n    * d\n\n 4. e"},
		{"<pre>  a\n   b</pre>", "a\n   b"},
		{"<table><tr><td>1</td><td>2</td></tr><tr><td>3</td></tr></table>", "1 2\n3"},
		{"<a href='#top'>up</a> <a href='mailto:a@b.c'>mail</a>", "up mail [a@b.c]"},
		{"a<hr>b<style>c</style><!-- d -->", "a\n\n" + strings.Repeat("-", 40) + "\n\nb"},
	} {
		got, failure := run(t, HTML(), `{"operation":"extractHtmlContent","extractionValues":{"values":[{"key":"k","cssSelector":"body"}]}}`, nodestest.Items(`{"data":`+jsonobject.Quote(row.page)+`}`), nil)
		require.Nil(t, failure)
		require.Equal(t, `{"k":`+plain(jsonobject.Quote(row.want))+`}`, got, row.page)
	}
}

func TestDeepPages(t *testing.T) {
	deep := strings.Repeat("<div>", 20000) + "x"
	got, failure := run(t, HTML(), `{"operation":"extractHtmlContent","extractionValues":{"values":[{"key":"k","cssSelector":"body"}]}}`, nodestest.Items(fmt.Sprintf(`{"data":%q}`, deep)), nil)
	if failure != nil {
		require.Equal(t, "The HTML cannot be read", failure.Message)
		return
	}
	require.Equal(t, `{"k":"x"}`, got)
}
