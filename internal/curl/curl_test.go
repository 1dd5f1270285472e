package curl

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func node(t *testing.T, line string) (Node, *Request) {
	t.Helper()
	words, err := Words(line)
	require.NoError(t, err)
	r, err := Parse(words)
	require.NoError(t, err)
	return r.Node(), r
}

// noFollow is what every node says that is not told to follow redirects.
const noFollow = `"redirect":{"redirect":{"followRedirects":false}}`

func TestNodeOfACommandLine(t *testing.T) {
	file := filepath.Join(t.TempDir(), "data.txt")
	require.NoError(t, os.WriteFile(file, []byte("a=1\nb"), 0o600))
	for name, c := range map[string]struct{ line, want string }{
		"plain":   {`curl https://example.com/a?b=c`, `{"method":"GET","url":"https://example.com/a?b=c","options":{` + noFollow + `}}`},
		"guessed": {`curl -sSL example.com`, `{"method":"GET","url":"http://example.com","options":{}}`},
		"lines": {"curl -X PUT \\\n  'https://example.com' \\\n  -H 'X-A: it'\\''s' -H \"X-B: \\\"q\\\"\"",
			`{"method":"PUT","url":"https://example.com","sendHeaders":true,"headerParameters":{"parameters":[{"name":"X-A","value":"it's"},{"name":"X-B","value":"\"q\""}]},"options":{` + noFollow + `}}`},
		"json": {`curl https://example.com --json '{"a":"x y"}'`,
			`{"method":"POST","url":"https://example.com","sendBody":true,"specifyBody":"json","contentType":"json","jsonBody":"{\"a\":\"x y\"}","sendHeaders":true,"headerParameters":{"parameters":[{"name":"Accept","value":"application/json"}]},"options":{` + noFollow + `}}`},
		"bash quotes": {`curl https://example.com -H 'content-type: application/json' --data-raw $'{"a":"it\'s\\n"}'`,
			`{"method":"POST","url":"https://example.com","sendBody":true,"specifyBody":"json","contentType":"json","jsonBody":"{\"a\":\"it's\\n\"}","options":{` + noFollow + `}}`},
		"variable": {`curl https://example.com -H "X-Key: $KEY"`,
			`{"method":"GET","url":"https://example.com","sendHeaders":true,"headerParameters":{"parameters":[{"name":"X-Key","value":"$KEY"}]},"options":{` + noFollow + `}}`},
		"form data": {`curl https://example.com -d a=1 -d 'b=x%20y' --data-urlencode 'c=p&q'`,
			`{"method":"POST","url":"https://example.com","sendBody":true,"contentType":"form-urlencoded","bodyParameters":{"parameters":[{"name":"a","value":"1"},{"name":"b","value":"x y"},{"name":"c","value":"p&q"}]},"options":{` + noFollow + `}}`},
		"data of a file": {`curl https://example.com --data @` + file,
			`{"method":"POST","url":"https://example.com","sendBody":true,"contentType":"form-urlencoded","bodyParameters":{"parameters":[{"name":"a","value":"1b"}]},"options":{` + noFollow + `}}`},
		"raw": {`curl https://example.com -H 'Content-Type: text/xml' --data-binary '<a/>'`,
			`{"method":"POST","url":"https://example.com","sendBody":true,"contentType":"raw","rawContentType":"text/xml","body":"<a/>","options":{` + noFollow + `}}`},
		"an equals sign first": {`curl https://example.com -H 'Content-Type: text/plain' -d '=1+1'`,
			`{"method":"POST","url":"https://example.com","sendBody":true,"contentType":"raw","rawContentType":"text/plain","body":"={{ \"=1+1\" }}","options":{` + noFollow + `}}`},
		"multipart": {`curl https://example.com -F name=Ada -F 'photo=@/tmp/p.png;type=image/png'`,
			`{"method":"POST","url":"https://example.com","sendBody":true,"contentType":"multipart-form-data","bodyParameters":{"parameters":[{"parameterType":"formData","name":"name","value":"Ada"},{"parameterType":"formBinaryData","name":"photo","inputDataFieldName":"photo"}]},"options":{` + noFollow + `}}`},
		"query": {`curl -G https://example.com -d a=1 --data-urlencode 'q=x y' --url-query z=ä`,
			`{"method":"GET","url":"https://example.com","sendQuery":true,"queryParameters":{"parameters":[{"name":"z","value":"ä"},{"name":"a","value":"1"},{"name":"q","value":"x y"}]},"options":{` + noFollow + `}}`},
		"user": {`curl -u ada:pw https://example.com`,
			`{"method":"GET","url":"https://example.com","sendHeaders":true,"headerParameters":{"parameters":[{"name":"Authorization","value":"Basic YWRhOnB3"}]},"options":{` + noFollow + `}}`},
		"cookies": {`curl -b 'a=1; b=2' -A me -e https://x.org https://example.com`,
			`{"method":"GET","url":"https://example.com","sendHeaders":true,"headerParameters":{"parameters":[{"name":"Cookie","value":"a=1; b=2"},{"name":"User-Agent","value":"me"},{"name":"Referer","value":"https://x.org"}]},"options":{` + noFollow + `}}`},
		"options": {`curl -kL -x proxy:8080 --max-time 2.5 --max-redirs=3 --compressed -o out.txt https://example.com`,
			`{"method":"GET","url":"https://example.com","options":{"allowUnauthorizedCerts":true,"proxy":"http://proxy:8080","timeout":2500,"redirect":{"redirect":{"followRedirects":true,"maxRedirects":3}}}}`},
		"head":         {`curl -I https://example.com`, `{"method":"HEAD","url":"https://example.com","options":{` + noFollow + `}}`},
		"joined short": {`curl -XDELETE https://example.com`, `{"method":"DELETE","url":"https://example.com","options":{` + noFollow + `}}`},
		"another json": {`curl https://example.com -H 'Content-Type: application/ld+json' -d '{}'`,
			`{"method":"POST","url":"https://example.com","sendBody":true,"specifyBody":"json","contentType":"json","jsonBody":"{}","sendHeaders":true,"headerParameters":{"parameters":[{"name":"Content-Type","value":"application/ld+json"}]},"options":{` + noFollow + `}}`},
	} {
		t.Run(name, func(t *testing.T) {
			n, _ := node(t, c.line)
			got, err := json.Marshal(n.Parameters)
			require.NoError(t, err)
			assert.JSONEq(t, c.want, string(got))
			assert.Equal(t, "n8n-nodes-base.httpRequest", n.Type)
			assert.InDelta(t, 4.2, n.TypeVersion, 0)
		})
	}
}

func TestRetriesAndNotes(t *testing.T) {
	n, r := node(t, `curl --retry 2 --cert me.pem -u ada:pw https://example.com`)
	assert.True(t, n.RetryOnFail)
	assert.Equal(t, 3, n.MaxTries)
	require.Len(t, r.Notes, 2)
	assert.Contains(t, r.Notes[0], "--cert is left out")
	assert.Contains(t, r.Notes[1], "holds the secret")
}

func TestWrongCommandLines(t *testing.T) {
	for name, c := range map[string]struct{ line, want string }{
		"no URL":       {`curl -X POST`, "no URL"},
		"two URLs":     {`curl https://a.example/ https://b.example/`, "two URLs"},
		"unknown":      {`curl --frobnicate https://a.example/`, "--frobnicate is not known"},
		"short":        {`curl -Z https://a.example/`, "-Z is not known"},
		"no value":     {`curl https://a.example/ -H`, "-H needs a value"},
		"header":       {`curl https://a.example/ -H nothing`, "no colon"},
		"no file":      {`curl https://a.example/ -d @/none/such`, "/none/such"},
		"time":         {`curl https://a.example/ -m soon`, "no number of seconds"},
		"data, form":   {`curl https://a.example/ -d a=1 -F b=2`, "sends one of them"},
		"form field":   {`curl https://a.example/ -F b`, "name=value"},
		"redirects":    {`curl https://a.example/ --max-redirs many`, "no number"},
		"empty option": {`curl --data`, "--data needs a value"},
	} {
		t.Run(name, func(t *testing.T) {
			words, err := Words(c.line)
			require.NoError(t, err)
			_, err = Parse(words)
			require.ErrorContains(t, err, c.want)
		})
	}
	_, err := Words(`curl 'https://a.example/`)
	require.ErrorContains(t, err, "cannot be read")
	_, err = Words(`curl https://a.example/ | jq .`)
	require.ErrorContains(t, err, "without pipes")
}
