package http

import (
	"context"
	"fmt"
	nethttp "net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"github.com/reprise-engine/reprise/pkg/node"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

func gjsonString(raw []byte, path string) string { return gjson.GetBytes(raw, path).String() }

func TestItems(t *testing.T) {
	base := service(t).URL
	statuses := []string{`{"s":200}`, `{"s":404}`, `{"s":500}`}
	call := newCall(t, base, `{"url":"=BASE/status/{{ $json.s }}"}`, statuses...)
	call.Node.OnError = workflow.OnErrorContinue
	items, err := execute(t, call)
	require.NoError(t, err)
	require.Len(t, items, 3)
	for i, want := range []string{"scripted 200", "404 - ", "500 - "} {
		require.Contains(t, gjsonString(items[i].JSON, "error.message"), want)
		require.Equal(t, workflow.Paired(i), items[i].PairedItem)
	}
	_, err = execute(t, newCall(t, base, `{"url":"=BASE/status/{{ $json.s }}"}`, statuses...))
	require.Equal(t, 1, *nodeError(t, err).ItemIndex, "the first failure in the order of the items")
}

func TestNothingIsSentWhenARequestOfTheBatchCannotBeMade(t *testing.T) {
	server := httptest.NewServer(nethttp.HandlerFunc(func(_ nethttp.ResponseWriter, _ *nethttp.Request) {
		t.Error("a request was sent")
	}))
	defer server.Close()
	_, err := execute(t, newCall(t, server.URL, `{"url":"={{ $json.u }}"}`, `{"u":"`+server.URL+`"}`, `{"u":"nowhere"}`))
	require.Equal(t, 1, *nodeError(t, err).ItemIndex)
}

// The requests of a batch are under way together: each is answered only when
// all of its batch have arrived.
func TestBatchesAreConcurrent(t *testing.T) {
	var mu sync.Mutex
	waiting, largest := []chan struct{}{}, 0
	server := httptest.NewServer(nethttp.HandlerFunc(func(w nethttp.ResponseWriter, r *nethttp.Request) {
		mine := make(chan struct{})
		mu.Lock()
		waiting = append(waiting, mine)
		largest = max(largest, len(waiting))
		if len(waiting) == 2 {
			for _, c := range waiting {
				close(c)
			}
			waiting = nil
		}
		mu.Unlock()
		select {
		case <-mine:
		case <-r.Context().Done():
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"n":%q}`, r.URL.Query().Get("n"))
	}))
	defer server.Close()
	call := newCall(t, server.URL, `{"url":"=BASE?n={{ $json.n }}","options":{"batching":{"batch":{"batchSize":2,"batchInterval":60}}}}`, `{"n":1}`, `{"n":2}`, `{"n":3}`, `{"n":4}`)
	began := time.Now()
	items, err := execute(t, call)
	require.NoError(t, err)
	require.Equal(t, `[{"n":"1"},{"n":"2"},{"n":"3"},{"n":"4"}]`, jsons(t, items))
	require.Equal(t, 2, largest)
	require.GreaterOrEqual(t, time.Since(began), 60*time.Millisecond)
}

func TestCancelDuringTheBatchInterval(t *testing.T) {
	call := newCall(t, service(t).URL, `{"url":"BASE/json","options":{"batching":{"batch":{"batchSize":1,"batchInterval":3600000}}}}`, `{}`, `{}`)
	ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
	defer cancel()
	_, err := Types()[0].Execute(ctx, call)
	require.Equal(t, context.DeadlineExceeded, err)
}

func TestNoItems(t *testing.T) {
	call := newCall(t, "", `{"url":"notaurl"}`)
	call.Inputs = []workflow.Items{{}}
	items, err := execute(t, call)
	require.NoError(t, err)
	require.Empty(t, items)
}

func TestPagination(t *testing.T) {
	const page = `,"options":{"pagination":{"pagination":`
	const all = `[{"page":1,"items":[{"text":"}}1"}],"next":"BASE/page?page=2"},{"page":2,"items":[{"text":"}}2"}],"next":"BASE/page?page=3"},{"page":3,"items":[{"text":"}}3"}],"next":null}]`
	count := `"parameters":{"parameters":[{"type":"qs","name":"page","value":"={{ $pageCount + 1 }}"}]}`
	tests := []struct{ name, parameters, want string }{
		{"by a parameter", `{"url":"BASE/page"` + page + `{"paginationMode":"updateAParameterInEachRequest",` + count + `,"paginationCompleteWhen":"other","completeExpression":"={{ $response.body.next === null }}"}}}}`, all},
		{"by the next URL", `{"url":"BASE/page"` + page + `{"paginationMode":"responseContainsNextURL","nextURL":"={{ $response.body.next }}","paginationCompleteWhen":"other","completeExpression":"={{ !$response.body.next }}"}}}}`, all},
		{"until it is empty", `{"url":"BASE/page?list=1"` + page + `{` + count + `}}}}`, `[{"text":"}}1"},{"text":"}}2"},{"text":"}}3"}]`},
		{"limited", `{"url":"BASE/page?list=1"` + page + `{` + count + `,"limitPagesFetched":true,"maxRequests":2,"paginationCompleteWhen":"other","completeExpression":"={{ false }}"}}}}`, `[{"text":"}}1"},{"text":"}}2"}]`},
		{"until a status", `{"url":"BASE/status/404"` + page + `{` + count + `,"paginationCompleteWhen":"receiveSpecificStatusCodes","statusCodesWhenComplete":"403, 404"}}}}`, `[{"error":{"code":"E404","message":"scripted 404"}}]`},
	}
	base := service(t).URL
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			call := newCall(t, base, tt.parameters)
			items, err := execute(t, call)
			require.NoError(t, err)
			require.JSONEq(t, string(newCall(t, base, tt.want).Node.Parameters), jsons(t, items))
		})
	}
	t.Run("not to another host", func(t *testing.T) {
		_, err := execute(t, newCall(t, base, `{"url":"BASE/page"`+page+`{"paginationMode":"responseContainsNextURL","nextURL":"http://elsewhere.test/","paginationCompleteWhen":"other","completeExpression":"={{ false }}"}}}}`))
		require.ErrorContains(t, err, "another host: elsewhere.test")
	})
}

func TestTool(t *testing.T) {
	base := service(t).URL
	const parameters = `{"toolDescription":"Shouts the text back over HTTP","url":"BASE/echo","sendQuery":true,"queryParameters":{"parameters":[{"name":"text","value":"={{ $fromAI('text', 'the text to shout', 'string') }}"}]},"options":{}}`
	var registry node.Registry
	registry.Register(Types()...)
	tool, ok := registry.Find(TypeTool, 4.2)
	require.True(t, ok)
	require.True(t, tool.ToolNode)
	newTool := func(parameters string) *node.Call {
		call := newCall(t, base, parameters)
		call.Node.Name, call.Node.Type = "Shout", TypeTool
		return call
	}
	t.Run("to the model", func(t *testing.T) {
		call := newTool(parameters)
		call.Inputs = nil
		d, err := tool.Describe(t.Context(), call)
		require.NoError(t, err)
		require.Equal(t, "Shout", d.Name)
		require.Equal(t, "Shouts the text back over HTTP", d.Description)
		require.Equal(t, "object", gjsonString(d.Schema, "type"))
		require.JSONEq(t, `{"text":{"type":"string","description":"the text to shout"}}`, gjson.GetBytes(d.Schema, "properties").Raw)
		require.JSONEq(t, `["text"]`, gjson.GetBytes(d.Schema, "required").Raw)

		d, err = tool.Describe(t.Context(), newTool(`{"url":"BASE/json"}`))
		require.NoError(t, err)
		require.Equal(t, toolDescription, d.Description)
	})
	t.Run("with the model's arguments", func(t *testing.T) {
		call := newTool(parameters)
		call.ToolArguments, call.ToolCallID = []byte(`{"text":"hi and compute 6 * 7"}`), "call_1"
		result, err := tool.Execute(t.Context(), call)
		require.NoError(t, err)
		require.Equal(t, "text=hi%20and%20compute%206%20%2A%207", gjsonString(result.Outputs[0][0].JSON, "query"))
	})
	t.Run("a failure reaches the model", func(t *testing.T) {
		for onError, fails := range map[workflow.OnError]bool{
			workflow.OnErrorUnset: true, workflow.OnErrorStop: true, workflow.OnErrorOutput: true, workflow.OnErrorContinue: false,
		} {
			call := newTool(`{"url":"BASE/textstatus"}`)
			call.Node.OnError, call.ToolArguments = onError, []byte(`{}`)
			result, err := tool.Execute(t.Context(), call)
			if !fails {
				require.NoError(t, err)
				require.Contains(t, jsons(t, result.Outputs[0]), "plain failure")
				continue
			}
			require.EqualError(t, err, "The service was not able to process your request", "onError %q", onError)
		}
	})
}

func TestTypesRegister(t *testing.T) {
	var registry node.Registry
	registry.Register(Types()...)
	for _, version := range []float64{1, 2, 3, 4, 4.1, 4.2, 4.3, 4.4} {
		_, ok := registry.Find(TypeRequest, version)
		require.True(t, ok, version)
	}
	_, ok := registry.Find(TypeTool, 3)
	require.False(t, ok, "it came with version 4")
}
