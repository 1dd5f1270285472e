package api

import (
	"bytes"
	"encoding/json"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-engine/reprise/internal/links"
)

// The item that a real n8n 2.41.1 made of a call with curl, but for the
// addresses and the signature.
func TestItemIsThatOfN8n(t *testing.T) {
	f := newFixture(t)
	server := httptest.NewServer(f.handler)
	defer server.Close()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL+f.resumePath(t, 1), strings.NewReader(`{"resumed":"yes"}`))
	require.NoError(t, err)
	r.Header.Set("User-Agent", "curl/7.88.1")
	r.Header.Set("Accept", "*/*")
	r.Header.Set("Content-Type", "application/json")
	client := &http.Client{Transport: &http.Transport{DisableCompression: true}}
	defer client.CloseIdleConnections()
	answer, err := client.Do(r)
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	require.Equal(t, http.StatusOK, answer.StatusCode)

	data, err := os.ReadFile("testdata/k_wait_webhook.item.json")
	require.NoError(t, err)
	var want, got map[string]any
	require.NoError(t, json.Unmarshal(data, &want))
	require.NoError(t, json.Unmarshal(f.resumes[0].Data, &got))
	want["headers"].(map[string]any)["host"] = strings.TrimPrefix(server.URL, "http://")
	want["query"].(map[string]any)[links.Parameter] = r.URL.Query().Get(links.Parameter)
	want["webhookUrl"] = publicURL + "/webhook-waiting/order-4711"
	require.Equal(t, want, got)
}

func TestItemBody(t *testing.T) {
	const jsonType, formType = "application/json", "application/x-www-form-urlencoded"
	for name, c := range map[string]struct {
		contentType, body, want string
	}{
		"object":         {jsonType, `{"a": [1, null]}`, `{"a":[1,null]}`},
		"list":           {jsonType + "; charset=utf-8", `[1,2]`, `[1,2]`},
		"exact numbers":  {jsonType, `{"a":12345678901234567890.10}`, `{"a":12345678901234567890.10}`},
		"JSON of a kind": {"application/cloudevents+json", `{"a":1}`, `{"a":1}`},
		"empty JSON":     {jsonType, ``, `{}`},
		"nothing":        {"", ``, `{}`},
		"form":           {formType, `a=1&b=x+y&c=1&c=2`, `{"a":"1","b":"x y","c":["1","2"]}`},
		"text":           {"text/plain", `hello`, `"hello"`},
		"JSON as text":   {"text/plain", `{"a":1}`, `"{\"a\":1}"`},
		"XML":            {"application/xml", `<a/>`, `"<a/>"`},
		"no type":        {"", `hello`, `"hello"`},
		"odd parameters": {"text/plain; charset", `hello`, `"hello"`},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			answer, body := f.call(t, http.MethodPost, f.resumePath(t, 1), c.body, "Content-Type", c.contentType)
			require.Equal(t, http.StatusOK, answer.StatusCode, body)
			var item struct {
				Body json.RawMessage `json:"body"`
			}
			require.NoError(t, json.Unmarshal(f.resumes[0].Data, &item))
			var got, want any
			require.NoError(t, json.Unmarshal(item.Body, &got))
			require.NoError(t, json.Unmarshal([]byte(c.want), &want))
			require.Equal(t, want, got)
			if name == "exact numbers" {
				require.Equal(t, c.want, string(item.Body))
			}
		})
	}
}

func TestItemHeaders(t *testing.T) {
	f := newFixture(t)
	f.call(t, http.MethodPost, f.resumePath(t, 1), "", "X-Many", "1", "X-Many", "2", "Cookie", "a=1", "Cookie", "b=2")
	var item struct {
		Headers map[string]string `json:"headers"`
	}
	require.NoError(t, json.Unmarshal(f.resumes[0].Data, &item))
	require.Equal(t, "1, 2", item.Headers["x-many"])
	require.Equal(t, "a=1; b=2", item.Headers["cookie"])
	require.Equal(t, "example.com", item.Headers["host"])
}

func TestRefusedBodies(t *testing.T) {
	var form bytes.Buffer
	m := multipart.NewWriter(&form)
	part, err := m.CreateFormFile("file", "a.txt")
	require.NoError(t, err)
	_, err = part.Write([]byte("hello"))
	require.NoError(t, err)
	require.NoError(t, m.Close())
	for name, c := range map[string]struct {
		body, contentType, encoding string
		status                      int
	}{
		"bad JSON":    {`{"a":`, "application/json", "", 422},
		"two values":  {`{} {}`, "application/json", "", 422},
		"bad form":    {"a=%zz", "application/x-www-form-urlencoded", "", 422},
		"files":       {form.String(), m.FormDataContentType(), "", 415},
		"binary":      {"\xff\xfe", "application/octet-stream", "", 415},
		"binary JSON": {"\"\xff\"", "application/json", "", 415},
		"compressed":  {"x", "text/plain", "gzip", 415},
		"bad type":    {"x", "/", "", 415},
		"too large":   {strings.Repeat("x", 101), "text/plain", "", 413},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, func(c *Config) { c.MaxBody = 100 })
			if name == "files" {
				f = newFixture(t)
			}
			answer, body := f.call(t, http.MethodPost, f.resumePath(t, 1), c.body, "Content-Type", c.contentType, "Content-Encoding", c.encoding)
			require.Equal(t, c.status, answer.StatusCode, body)
			require.Contains(t, body, `"message":"`)
			require.Empty(t, f.resumes)
		})
	}
	f := newFixture(t, func(c *Config) { c.MaxBody = 100 })
	answer, _ := f.call(t, http.MethodPost, f.resumePath(t, 1), strings.Repeat("x", 100), "Content-Type", "text/plain")
	require.Equal(t, http.StatusOK, answer.StatusCode, "the limit itself")
}
