package http

import (
	"context"
	"io"
	nethttp "net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"github.com/reprise-engine/reprise/pkg/node"
	"github.com/reprise-engine/reprise/pkg/nodes/jsonobject"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// runKind runs a node of another type of this package.
func runKind(t *testing.T, name string, version float64, call *node.Call) (workflow.Items, error) {
	t.Helper()
	call.Node.Type, call.Node.TypeVersion = name, version
	for _, typ := range Types() {
		if typ.Type != name {
			continue
		}
		result, err := typ.Execute(context.Background(), call)
		if err != nil {
			return nil, err
		}
		return result.Outputs[0], nil
	}
	t.Fatalf("no type %s", name)
	return nil, nil
}

func TestGraphQLRequests(t *testing.T) {
	base := service(t).URL
	for _, test := range []struct {
		name, parameters string
		version          float64
		method           string
		body, kind, sent string
	}{
		{"json", `{"endpoint":"BASE/echo","query":"query Q($a:Int){x}","variables":"{\"a\": 1}","operationName":"Q"}`, 1.1, "POST", `{"query":"query Q($a:Int){x}","variables":{"a":1},"operationName":"Q"}`, "application/json", ""},
		{"no variables", `{"endpoint":"BASE/echo","query":"{x}"}`, 1.1, "POST", `{"query":"{x}","variables":{},"operationName":null}`, "application/json", ""},
		{"text of version 1", `{"endpoint":"BASE/echo","query":"{x}"}`, 1, "POST", `{x}`, "application/graphql", ""},
		{"GET", `{"endpoint":"BASE/echo","requestMethod":"GET","query":"{x y}"}`, 1.1, "GET", ``, "", "query=%7Bx%20y%7D"},
	} {
		t.Run(test.name, func(t *testing.T) {
			parameters := strings.Replace(test.parameters, "{", `{"authentication":"headerAuth","headerParametersUi":{"parameter":[{"name":"X-A","value":"1"}]},`, 1)
			call := withCredential(newCall(t, base, parameters), "httpHeaderAuth", map[string]any{"name": "X-Key", "value": "secret-key"})
			items, err := runKind(t, TypeGraphQL, test.version, call)
			require.NoError(t, err)
			got := gjson.ParseBytes(items[0].JSON)
			require.Equal(t, test.method, got.Get("method").String())
			require.Equal(t, test.body, got.Get("body").String())
			require.Equal(t, test.kind, got.Get("headers.content-type").String())
			require.Equal(t, test.sent, got.Get("query").String())
			require.Equal(t, "1", got.Get("headers.x-a").String())
			require.Equal(t, "secret-key", got.Get("headers.x-key").String())
		})
	}
}

func TestGraphQLAnswers(t *testing.T) {
	answer := ""
	server := httptest.NewServer(nethttp.HandlerFunc(func(w nethttp.ResponseWriter, _ *nethttp.Request) { _, _ = io.WriteString(w, answer) }))
	defer server.Close()
	for _, test := range []struct{ name, answer, more, want, fails string }{
		{"data", `{"data":{"x":1},"errors":null}`, "", `[{"data":{"x":1},"errors":null}]`, ""},
		{"errors", `{"data":null,"errors":[{"message":"one"},{"message":"two"}]}`, "", "", "one, two"},
		{"errors without words", `{"errors":[{}]}`, "", "", "Unexpected error"},
		{"text", `{"errors":[]}`, `,"responseFormat":"string","dataPropertyName":"out"`, `[{"out":"{\"errors\":[]}"}]`, ""},
		{"no JSON", `<html>`, "", "", "is not valid JSON"},
		{"bad variables", ``, `,"variables":"[1]"`, "", "must be a JSON object"},
		{"broken variables", ``, `,"variables":"{"`, "", "is not valid JSON"},
		{"no endpoint", ``, `,"endpoint":""`, "", "Invalid URL"},
	} {
		t.Run(test.name, func(t *testing.T) {
			answer = test.answer
			endpoint := `"endpoint":"BASE",`
			if strings.Contains(test.more, "endpoint") {
				endpoint = ""
			}
			call := newCall(t, server.URL, `{`+endpoint+`"query":"{x}"`+test.more+`}`)
			items, err := runKind(t, TypeGraphQL, 1.1, call)
			if test.fails != "" {
				require.ErrorContains(t, err, test.fails)
				call.Node.OnError = workflow.OnErrorContinue
				items, err = runKind(t, TypeGraphQL, 1.1, call)
				require.NoError(t, err)
				require.Contains(t, gjson.GetBytes(items[0].JSON, "error").String(), test.fails)
				return
			}
			require.NoError(t, err)
			require.JSONEq(t, test.want, jsons(t, items))
		})
	}
	for query, want := range map[string]bool{"{x}": false, "mutation {x}": true, "={{ $json.q }}": true} {
		require.Equal(t, want, mutates(&workflow.Node{Parameters: []byte(`{"query":` + jsonobject.Quote(query) + `}`)}), query)
	}
}

const rssFeed = `<?xml version="1.0"?><rss version="2.0" xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:content="http://purl.org/rss/1.0/modules/content/" xmlns:media="http://search.yahoo.com/mrss/">
<channel><title>News</title><item><title>One &amp; two</title><link>https://x/1</link><pubDate>Tue, 10 Jun 2003 04:00:00 GMT</pubDate>
<dc:creator>Ann</dc:creator><content:encoded><![CDATA[<p>Long</p><p>text</p>]]></content:encoded><description>&lt;b&gt;Short&lt;/b&gt; &amp;amp; sweet</description>
<guid isPermaLink="false">g1</guid><category>a</category><category>b</category><enclosure url="https://x/a.mp3" length="5" type="audio/mpeg"/>
<media:thumbnail url="https://x/t.png" width="7"/></item><item><title>Bare</title></item></channel></rss>`

const atomFeed = `<feed xmlns="http://www.w3.org/2005/Atom"><title>F</title><entry><id>urn:1</id><title>T</title><link rel="self" href="https://x/self"/><link rel="alternate" href="https://x/alt"/>
<published>2024-05-01T10:00:00+02:00</published><author><name>Bob</name></author><summary>S</summary><content type="html">&lt;i&gt;C&lt;/i&gt;</content></entry></feed>`

func TestFeeds(t *testing.T) {
	answers := map[string]string{
		"/rss": rssFeed, "/atom": atomFeed,
		"/json": `{"version":"https://jsonfeed.org/version/1.1","title":"F","items":[{"id":"1","url":"https://x/1","title":"T","content_text":"C","date_published":"2024-05-01T08:00:00Z","tags":["a"]}]}`,
		"/page": `<html><body>no feed</body></html>`, "/broken": `<rss version="2.0"><channel><item><title>x`, "/nothing": ``,
	}
	server := httptest.NewServer(nethttp.HandlerFunc(func(w nethttp.ResponseWriter, r *nethttp.Request) {
		if _, ok := answers[r.URL.Path]; !ok {
			w.WriteHeader(404)
		}
		_, _ = io.WriteString(w, answers[r.URL.Path])
	}))
	defer server.Close()
	read := func(path, more string) (workflow.Items, error) {
		return runKind(t, TypeFeed, 1.2, newCall(t, server.URL, `{"url":"BASE`+path+`","options":{`+more+`}}`))
	}
	for _, test := range []struct{ path, more, want string }{
		{"/rss", `"customFields":"media:thumbnail, nothing"`, `[{"creator":"Ann","title":"One & two","link":"https://x/1","pubDate":"Tue, 10 Jun 2003 04:00:00 GMT",
			"content:encoded":"<p>Long</p><p>text</p>","content:encodedSnippet":"Long\ntext","dc:creator":"Ann","enclosure":{"url":"https://x/a.mp3","length":"5","type":"audio/mpeg"},
			"content":"<b>Short</b> &amp; sweet","contentSnippet":"Short & sweet","guid":"g1","categories":["a","b"],"media:thumbnail":{"$":{"url":"https://x/t.png","width":"7"}},
			"isoDate":"2003-06-10T04:00:00.000Z"},{"title":"Bare"}]`},
		{"/atom", "", `[{"title":"T","link":"https://x/alt","pubDate":"2024-05-01T08:00:00.000Z","author":"Bob","content":"<i>C</i>","contentSnippet":"C","summary":"S","summarySnippet":"S","id":"urn:1","isoDate":"2024-05-01T08:00:00.000Z"}]`},
		{"/json", "", `[{"title":"T","link":"https://x/1","pubDate":"2024-05-01T08:00:00Z","content":"C","contentSnippet":"C","guid":"1","categories":["a"],"isoDate":"2024-05-01T08:00:00.000Z"}]`},
	} {
		items, err := read(test.path, test.more)
		require.NoError(t, err)
		require.JSONEq(t, test.want, jsons(t, items), test.path)
	}
	for path, want := range map[string]string{"/page": "holds no feed", "/nothing": "holds no feed", "/broken": "cannot be read", "/gone": "could not be found"} {
		_, err := read(path, "")
		require.ErrorContains(t, err, want, path)
	}
	call := newCall(t, server.URL, `{"url":"BASE/atom"}`, `{}`, `{}`)
	items, err := runKind(t, TypeFeed, 1, call)
	require.NoError(t, err)
	require.Len(t, items, 1, "version 1 reads once")
	require.Len(t, items[0].PairedItem, 2)
	items, err = runKind(t, TypeFeed, 1.1, call)
	require.NoError(t, err)
	require.Len(t, items, 2)
}
