package http

import (
	"context"
	"encoding/json"
	"io"
	nethttp "net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-engine/reprise/pkg/workflow"
)

func TestOptimizedResponses(t *testing.T) {
	const (
		list = `[{"id":1,"name":"a","author":{"id":7,"mail":"m"},"a.b":1},{"id":2,"name":"b","author":{"id":8,"mail":"n"}}]`
		page = `<html><head><title>T</title></head><body><h1>News</h1><div class="ad">Buy</div><p>One <b>two</b></p><p>Three</p><script>x()</script></body></html>`
	)
	mux := nethttp.NewServeMux()
	serve := func(path, contentType, body string) {
		mux.HandleFunc(path, func(w nethttp.ResponseWriter, _ *nethttp.Request) {
			w.Header().Set("Content-Type", contentType)
			_, _ = io.WriteString(w, body)
		})
	}
	serve("/list", "application/json", list)
	serve("/data", "application/json", `{"total":2,"result":{"rows":`+list+`}}`)
	serve("/page", "text/html; charset=utf-8", page)
	serve("/text", "text/plain", "äöü and more")
	server := httptest.NewServer(mux)
	defer server.Close()
	for _, row := range []struct{ name, path, parameters, want, fails string }{
		{"all", "/list", `"responseType":"json"`, list, ""},
		{"selected", "/list", `"fieldsToInclude":"selected","fields":"id, author.mail,none"`, `[{"id":1,"author":{"mail":"m"}},{"id":2,"author":{"mail":"n"}}]`, ""},
		{"except", "/list", `"fieldsToInclude":"except","fields":"name,author.id,a"`, `[{"id":1,"author":{"mail":"m"},"a.b":1},{"id":2,"author":{"mail":"n"}}]`, ""},
		{"a field with the data", "/data", `"dataField":"result.rows","fieldsToInclude":"selected","fields":"id"`, `[{"id":1},{"id":2}]`, ""},
		{"a place in a list", "/data", `"dataField":"result.rows.1.author"`, `[{"id":8,"mail":"n"}]`, ""},
		{"no such field", "/data", `"dataField":"rows"`, "", `The field "rows" that should hold the data is not in the response; it has "total", "result"`},
		{"not JSON", "/page", ``, "", "The response is not JSON"},
		{"elements", "/page", `"responseType":"html","cssSelector":"p"`, `[{"data":"<p>One <b>two</b></p>\n<p>Three</p>"}]`, ""},
		{"content", "/page", `"responseType":"html","onlyContent":true,"elementsToOmit":".ad, h1"`, `[{"data":"One two\n\nThree"}]`, ""},
		{"a selector that is none", "/page", `"responseType":"html","cssSelector":"p["`, "", `CSS selector "p["`},
		{"nothing found", "/page", `"responseType":"html","cssSelector":"table"`, `[{"data":""}]`, ""},
		{"cut", "/page", `"responseType":"html","onlyContent":true,"cssSelector":"h1","truncateResponse":true,"maxLength":2`, `[{"data":"Ne"}]`, ""},
		{"text", "/text", `"responseType":"text","truncateResponse":true,"maxLength":3`, `[{"data":"äöü"}]`, ""},
		{"the text of a page", "/page", `"responseType":"text","truncateResponse":true,"maxLength":4`, `[{"data":"News"}]`, ""},
		{"off", "/text", `"responseType":"html"`, `[{"data":"äöü and more"}]`, ""},
		{"unknown", "/text", `"responseType":"xml"`, "", `expected response type "xml" is not supported`},
	} {
		t.Run(row.name, func(t *testing.T) {
			on := "true"
			if row.name == "off" {
				on = "false"
			}
			parameters := `{"url":"BASE` + row.path + `","optimizeResponse":` + on
			if row.parameters != "" {
				parameters += "," + row.parameters
			}
			call := newCall(t, server.URL, parameters+"}")
			call.Node.Type = TypeTool
			items, err := execute(t, call)
			if row.fails != "" {
				require.ErrorContains(t, err, row.fails)
				return
			}
			require.NoError(t, err)
			require.Equal(t, row.want, jsons(t, items))
		})
	}
}

func TestOldTool(t *testing.T) {
	base := service(t).URL
	for _, row := range []struct{ name, parameters, schema, arguments, want, fails string }{
		{
			"placeholders in the url", `"url":"BASE/echo/{city}?q={q}","placeholderDefinitions":{"values":[{"name":"q","type":"number","description":"how many"},{"name":"unused"}]}`,
			`{"type":"object","properties":{"city":{"type":"string"},"q":{"description":"how many","type":"number"}},"required":["city","q"],"additionalProperties":false}`,
			`{"city":"../a b/c?d=e","q":5}`, `GET /echo/../a b/c?d=e q=5 `, "",
		},
		{
			"the whole url", `"url":"{address}"`,
			`{"type":"object","properties":{"address":{"type":"string"}},"required":["address"],"additionalProperties":false}`,
			`{"address":"BASE/echo/x?y=1"}`, `GET /echo/x y=1 `, "",
		},
		{
			"a url that is none", `"url":"{address}"`,
			`{"type":"object","properties":{"address":{"type":"string"}},"required":["address"],"additionalProperties":false}`,
			`{"address":"file:///etc/passwd"}`, "", "Invalid URL",
		},
		{
			"fields of the query", `"url":"BASE/echo/","sendQuery":true,"parametersQuery":{"values":[{"name":"a"},{"name":"b","valueProvider":"modelOptional"},{"name":"c","valueProvider":"modelOptional"},{"name":"d","valueProvider":"fieldValue","value":"eq.{x}"}]}`,
			`{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"},"c":{"type":"string"},"x":{"type":"string"}},"required":["a","x"],"additionalProperties":false}`,
			`{"a":"1&2","c":"3","x":"4"}`, `GET /echo/ a=1%262&c=3&d=eq.4 `, "",
		},
		{
			"a missing argument", `"url":"BASE/echo/","sendQuery":true,"parametersQuery":{"values":[{"name":"a","valueProvider":"modelRequired"}]}`,
			`{"type":"object","properties":{"a":{"type":"string"}},"required":["a"],"additionalProperties":false}`,
			`{}`, "", `The argument "a" of the tool is missing`,
		},
		{
			"a body of JSON", `"method":"POST","url":"BASE/echo/","sendBody":true,"specifyBody":"json","jsonBody":"{\"a\": {n}, \"b\": \"{text}\", \"c\": \"say {text}\", \"d\": {\"e\":1}}"`,
			`{"type":"object","properties":{"n":{"type":"string"},"text":{"type":"string"}},"required":["n","text"],"additionalProperties":false}`,
			`{"n":[1,2],"text":"x\", \"evil\": \"y"}`, `POST /echo/  {"a":[1,2],"b":"x\", \"evil\": \"y","c":"say x\", \"evil\": \"y","d":{"e":1}}`, "",
		},
		{
			"a body of fields", `"method":"PUT","url":"BASE/echo/","sendBody":true,"parametersBody":{"values":[{"name":"a","valueProvider":"fieldValue","value":"{n}"},{"name":"b","valueProvider":"fieldValue","value":7}]}`,
			`{"type":"object","properties":{"n":{"type":"string"}},"required":["n"],"additionalProperties":false}`,
			`{"n":{"o":1}}`, `PUT /echo/  {"a":{"o":1},"b":7}`, "",
		},
		{
			"the model's body and query", `"method":"PATCH","url":"BASE/echo/","sendBody":true,"specifyBody":"model","sendQuery":true,"specifyQuery":"model"`,
			`{"type":"object","properties":{"query":{"type":"object","additionalProperties":true},"body":{"type":"object","additionalProperties":true}},"required":["query","body"],"additionalProperties":false}`,
			`{"query":"{\"q\":1}","body":{"x":[true]}}`, `PATCH /echo/ q=1 {"x":[true]}`, "",
		},
	} {
		t.Run(row.name, func(t *testing.T) {
			call := newCall(t, base, `{"toolDescription":"d",`+row.parameters+`}`)
			call.Node.Type, call.Node.TypeVersion = TypeOldTool, 1.1
			description, err := describeOldTool(context.Background(), call)
			require.NoError(t, err)
			require.Equal(t, row.schema, string(description.Schema))
			arguments := newCall(t, base, row.arguments).Node.Parameters
			call.ToolArguments = arguments
			result, err := Config{MaxResponseBytes: 1 << 20}.executeOldTool(context.Background(), call)
			if row.fails != "" {
				require.ErrorContains(t, err, row.fails)
				return
			}
			require.NoError(t, err)
			require.Len(t, result.Outputs[0], 1)
			seen := result.Outputs[0][0].JSON
			require.Equal(t, row.want, gjsonString(seen, "method")+" "+gjsonString(seen, "path")+" "+gjsonString(seen, "query")+" "+gjsonString(seen, "body"))
		})
	}
	require.True(t, changesOnce(&workflow.Node{Type: TypeOldTool, TypeVersion: 1.1, Parameters: json.RawMessage(`{"method":"POST"}`)}))
	require.False(t, changesOnce(&workflow.Node{Type: TypeOldTool, TypeVersion: 1.1, Parameters: json.RawMessage(`{}`)}))
}
