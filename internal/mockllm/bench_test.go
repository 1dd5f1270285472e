package mockllm

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

const benchTools = `"tools":[{"type":"function","function":{"name":"Shout","description":"Shouts the text back","parameters":{"type":"object","properties":{"input":{"type":"string"}},"additionalProperties":false}}},
 {"type":"function","function":{"name":"Calculator","description":"Useful for getting the result of a math expression.","parameters":{"type":"object","properties":{"input":{"type":"string"}},"additionalProperties":false}}}],`

var benchBodies = map[string]string{
	"first": `{"model":"demo",` + benchTools + `"messages":[{"role":"system","content":"You are a helpful assistant"},{"role":"user","content":"shout hi and compute 6 * 7"}]}`,
	"second": `{"model":"demo",` + benchTools + `"messages":[{"role":"system","content":"You are a helpful assistant"},{"role":"user","content":"shout hi and compute 6 * 7"},
	 {"role":"assistant","content":null,"tool_calls":[{"id":"call_1","type":"function","function":{"name":"Calculator","arguments":"{\"input\":\"6 * 7\"}"}},{"id":"call_2","type":"function","function":{"name":"Shout","arguments":"{\"input\":\"x\"}"}}]},
	 {"role":"tool","tool_call_id":"call_1","content":"[{\"response\":\"42\"}]"},{"role":"tool","tool_call_id":"call_2","content":"[{\"response\":\"X\"}]"}]}`,
}

// The handler alone, then with a real connection around it.
func BenchmarkChat(b *testing.B) {
	for name, body := range benchBodies {
		b.Run("handler/"+name, func(b *testing.B) {
			s := New(Config{})
			b.ReportAllocs()
			for b.Loop() {
				r := httptest.NewRequest(http.MethodPost, "/v1/chat/completions", strings.NewReader(body))
				w := httptest.NewRecorder()
				s.ServeHTTP(w, r)
				if w.Code != 200 {
					b.Fatal(w.Code, w.Body)
				}
			}
		})
		b.Run("http/"+name, func(b *testing.B) {
			server := httptest.NewServer(New(Config{}))
			defer server.Close()
			client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}
			defer client.CloseIdleConnections()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					resp, err := client.Post(server.URL+"/v1/chat/completions", "application/json", strings.NewReader(body))
					if err != nil {
						b.Error(err)
						return
					}
					_, _ = io.Copy(io.Discard, resp.Body)
					_ = resp.Body.Close()
				}
			})
		})
	}
}
