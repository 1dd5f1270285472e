package http

import (
	"io"
	"log"
	nethttp "net/http"
	"net/http/httptest"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-engine/reprise/pkg/workflow"
)

const exampleItem = `{"q": "a b&c", "n": 5, "o": {"x": [1]}}`

// The bodies and content types that n8n sent.
func TestBodies(t *testing.T) {
	const post = `"url":"BASE/echo","method":"POST","sendBody":true,`
	tests := []struct{ name, parameters, body, contentType string }{
		{"keypairs keep types and order", `{` + post + `"bodyParameters":{"parameters":[{"name":"q","value":"={{ $json.q }}"},{"name":"n","value":"={{ $json.n }}"},{},{"name":"o","value":"={{ $json.o }}"}]}}`,
			`{"q":"a b&c","n":5,"o":{"x":[1]}}`, "application/json"},
		{"JSON as text", `{` + post + `"specifyBody":"json","jsonBody":"={\"n\": {{ $json.n }}, \"o\": {{ $json.o }} }"}`, `{"n":5,"o":{"x":[1]}}`, "application/json"},
		{"JSON from an expression", `{` + post + `"specifyBody":"json","jsonBody":"={{ $json }}"}`, `{"q":"a b&c","n":5,"o":{"x":[1]}}`, "application/json"},
		{"form", `{` + post + `"contentType":"form-urlencoded","bodyParameters":{"parameters":[{"name":"q","value":"={{ $json.q }}"},{"name":"n","value":"5"}]}}`, "q=a%20b%26c&n=5", "application/x-www-form-urlencoded"},
		{"form as text", `{` + post + `"contentType":"form-urlencoded","specifyBody":"string","body":"a=1&b=2"}`, "a=1&b=2", "application/x-www-form-urlencoded"},
		{"raw", `{` + post + `"contentType":"raw","rawContentType":"text/plain","body":"=raw {{ $json.n }}"}`, "raw 5", "text/plain"},
		{"nothing asked for", `{"url":"BASE/echo","method":"POST","bodyParameters":{"parameters":[{"name":"q","value":"1"}]}}`, "", ""},
	}
	base := service(t).URL
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := echoed(t, newCall(t, base, tt.parameters, exampleItem))
			require.Equal(t, "POST", got.Get("method").String())
			require.Equal(t, tt.body, got.Get("body").String())
			require.Equal(t, tt.contentType, got.Get("headers.content-type").String())
		})
	}
}

func TestMultipart(t *testing.T) {
	call := newCall(t, service(t).URL, `{"url":"BASE/echo","method":"POST","sendBody":true,"contentType":"multipart-form-data","bodyParameters":{"parameters":[
		{"parameterType":"formData","name":"a","value":"1"},{"parameterType":"formBinaryData","name":"f","inputDataFieldName":"data"}]}}`)
	call.Inputs[0][0].Binary = map[string]workflow.Binary{"data": {MimeType: "text/csv", FileName: `a"b.csv`, Data: "aWQKMQo="}}
	got := echoed(t, call)
	boundary := regexp.MustCompile(`boundary=(\w+)`).FindStringSubmatch(got.Get("headers.content-type").String())
	require.NotNil(t, boundary)
	require.Equal(t, regexp.MustCompile(boundary[1]).ReplaceAllString(got.Get("body").String(), "B"),
		"--B\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n1\r\n--B\r\nContent-Disposition: form-data; name=\"f\"; filename=\"a\\\"b.csv\"\r\nContent-Type: text/csv\r\n\r\nid\n1\n\r\n--B--\r\n")
}

func TestFileAsBody(t *testing.T) {
	const parameters = `{"url":"BASE/echo","method":"PUT","sendBody":true,"contentType":"binaryData","inputDataFieldName":"f"}`
	base := service(t).URL
	call := newCall(t, base, parameters)
	call.Inputs[0][0].Binary = map[string]workflow.Binary{"f": {MimeType: "image/png", Data: "aGk="}}
	got := echoed(t, call)
	require.Equal(t, "hi", got.Get("body").String())
	require.Equal(t, "image/png", got.Get("headers.content-type").String())

	_, err := execute(t, newCall(t, base, parameters))
	require.ErrorContains(t, err, "binary file 'f', but none was found [item 0]")
}

func TestQuery(t *testing.T) {
	tests := []struct{ name, parameters, want string }{
		{"keypairs", `{"url":"BASE/echo","sendQuery":true,"queryParameters":{"parameters":[{"name":"q","value":"={{ $json.q }}"},{"name":"a*","value":""}]}}`, "q=a%20b%26c&a%2A="},
		{"added to the URL's", `{"url":"BASE/echo?x=1 2#part","sendQuery":true,"queryParameters":{"parameters":[{"name":"n","value":"={{ $json.n }}"}]}}`, "x=1%202&n=5"},
		{"JSON", `{"url":"BASE/echo","sendQuery":true,"specifyQuery":"json","jsonQuery":"{\"a\":[1,2],\"o\":{\"k\":null}}"}`, "a%5B0%5D=1&a%5B1%5D=2&o%5Bk%5D="},
		{"lists repeated", `{"url":"BASE/echo","sendQuery":true,"specifyQuery":"json","jsonQuery":{"a":[1,2]},"options":{"queryParameterArrays":"repeat"}}`, "a=1&a=2"},
		{"lists in brackets", `{"url":"BASE/echo","sendQuery":true,"specifyQuery":"json","jsonQuery":{"a":[1,2]},"options":{"queryParameterArrays":"brackets"}}`, "a%5B%5D=1&a%5B%5D=2"},
		{"not asked for", `{"url":"BASE/echo","queryParameters":{"parameters":[{"name":"n","value":"1"}]}}`, ""},
	}
	base := service(t).URL
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			require.Equal(t, tt.want, echoed(t, newCall(t, base, tt.parameters, exampleItem)).Get("query").String())
		})
	}
}

func TestHeaders(t *testing.T) {
	base := service(t).URL
	t.Run("of ours", func(t *testing.T) {
		got := echoed(t, newCall(t, base, `{"url":"BASE/echo"}`)).Get("headers")
		require.Equal(t, acceptAny, got.Get("accept").String())
		require.Equal(t, "reprise", got.Get("user-agent").String())
		require.False(t, got.Get("content-type").Exists())
	})
	t.Run("of the user", func(t *testing.T) {
		got := echoed(t, newCall(t, base, `{"url":"BASE/echo","method":"POST","sendBody":true,"sendHeaders":true,"headerParameters":{"parameters":[
			{"name":"accept","value":"text/x"},{"name":"X-N","value":"={{ $json.n }}"},{"name":"Host","value":"elsewhere.test"},{"name":"content-type","value":"application/x-own"},{}]}}`, exampleItem))
		require.Equal(t, "text/x", got.Get("headers.accept").String())
		require.Equal(t, "5", got.Get("headers.x-n").String())
		require.Equal(t, "application/x-own", got.Get("headers.content-type").String())
		require.Equal(t, "elsewhere.test", got.Get("host").String())
	})
	t.Run("as JSON", func(t *testing.T) {
		got := echoed(t, newCall(t, base, `{"url":"BASE/echo","sendHeaders":true,"specifyHeaders":"json","jsonHeaders":"{\"X-A\":\"1\\r\\nX-B: 2\"}"}`))
		require.Equal(t, "1 X-B: 2", got.Get("headers.x-a").String(), "a value cannot start another header")
	})
}

func TestIdempotencyKey(t *testing.T) {
	base := service(t).URL
	tests := []struct {
		name, parameters string
		items            []string
		want             []string
	}{
		{"a change", `{"url":"BASE/echo","method":"POST"}`, []string{`{}`}, []string{"key-1"}},
		{"a key for each of several", `{"url":"BASE/echo","method":"DELETE"}`, []string{`{}`, `{}`}, []string{"key-1-0", "key-1-1"}},
		{"reading", `{"url":"BASE/echo"}`, []string{`{}`}, []string{""}},
		{"one of the user's", `{"url":"BASE/echo","method":"POST","sendHeaders":true,"headerParameters":{"parameters":[{"name":"idempotency-key","value":"mine"}]}}`, []string{`{}`}, []string{"mine"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for range 2 { // another attempt sends the same
				items, err := execute(t, newCall(t, base, tt.parameters, tt.items...))
				require.NoError(t, err)
				var got []string
				for _, item := range items {
					got = append(got, gjsonString(item.JSON, "headers.idempotency-key"))
				}
				require.Equal(t, tt.want, got)
			}
		})
	}
}

func TestUntrustedCertificate(t *testing.T) {
	server := httptest.NewUnstartedServer(nethttp.HandlerFunc(func(w nethttp.ResponseWriter, _ *nethttp.Request) { w.WriteHeader(204) }))
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	defer server.Close()
	_, err := execute(t, newCall(t, server.URL, `{"url":"BASE"}`))
	require.ErrorContains(t, err, "certificate")
	require.ErrorContains(t, err, "Ignore SSL Issues")
	_, err = execute(t, newCall(t, server.URL, `{"url":"BASE","options":{"allowUnauthorizedCerts":true}}`))
	require.NoError(t, err)
}

// Versions 1 and 2 call the same things by other names.
func TestOldVersions(t *testing.T) {
	base := service(t).URL
	run := func(t *testing.T, version float64, parameters string) string {
		call := newCall(t, base, parameters, `{"n":1}`)
		call.Node.TypeVersion = version
		items, err := execute(t, call)
		require.NoError(t, err)
		return jsons(t, items)
	}
	require.Equal(t, `[{"ok":true,"list":[1,2,3],"nested":{"a":null}}]`, run(t, 1, `{"url":"BASE/json","options":{}}`))
	require.Equal(t, `[[{"id":1},{"id":2}]]`, run(t, 1, `{"url":"BASE/array","options":{}}`), "a list stays one item")
	require.Equal(t, `[{"id":1},{"id":2}]`, run(t, 1, `{"url":"BASE/array","options":{"splitIntoItems":true}}`))
	require.Equal(t, `[{"text":"42"}]`, run(t, 1, `{"url":"BASE/scalar","responseFormat":"string","dataPropertyName":"text"}`))
	require.Contains(t, run(t, 1, `{"url":"BASE/scalar","options":{"fullResponse":true}}`), `"statusCode":200,"statusMessage":"OK"`)

	got := run(t, 1, `{"url":"BASE/echo","requestMethod":"POST","jsonParameters":true,"bodyParametersJson":"={\"n\": {{ $json.n }}}","options":{}}`)
	require.Contains(t, got, `"body":"{\"n\":1}"`)
	require.Contains(t, got, `"accept":"application/json,text/*;q=0.99"`)
	require.Contains(t, run(t, 2, `{"url":"BASE/echo","queryParametersUi":{"parameter":[{"name":"a","value":"={{ $json.n }}"}]}}`), `"query":"a=1"`)
	require.Contains(t, run(t, 2, `{"url":"BASE/echo","requestMethod":"PUT","bodyParametersUi":{"parameter":[{"name":"a","value":"x"}]}}`), `"body":"{\"a\":\"x\"}"`)
}
