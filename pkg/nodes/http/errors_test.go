package http

import (
	"context"
	"errors"
	"io"
	"net"
	nethttp "net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

func nodeError(t testing.TB, err error) *engine.NodeError {
	t.Helper()
	var ne *engine.NodeError
	require.ErrorAs(t, err, &ne)
	return ne
}

// What n8n failed with, and what its items carried when the node went on.
func TestErrors(t *testing.T) {
	const noFollow = `,"options":{"redirect":{"redirect":{"followRedirects":false}}}`
	tests := []struct {
		name, parameters            string
		message, description, class string
		code, item                  string
	}{
		{
			name: "404", parameters: `{"url":"BASE/status/404"}`,
			message: "The resource you are requesting could not be found", description: "scripted 404", class: "NodeApiError", code: "404",
			item: `{"message":"404 - \"{\\\"error\\\":{\\\"code\\\":\\\"E404\\\",\\\"message\\\":\\\"scripted 404\\\"}}\\n\"","name":"AxiosError","code":"ERR_BAD_REQUEST","status":404}`,
		},
		{name: "401", parameters: `{"url":"BASE/status/401"}`, message: "Authorization failed - please check your credentials", description: "scripted 401", class: "NodeApiError", code: "401"},
		{name: "429", parameters: `{"url":"BASE/status/429"}`, message: "The service is receiving too many requests from you", description: "scripted 429", class: "NodeApiError", code: "429"},
		{name: "418", parameters: `{"url":"BASE/status/418"}`, message: "Your request is invalid or could not be processed by the service", description: "scripted 418", class: "NodeApiError", code: "418"},
		{
			name: "500 with text", parameters: `{"url":"BASE/textstatus"}`,
			message: "The service was not able to process your request", description: "plain failure\n", class: "NodeApiError", code: "500",
			item: `{"message":"500 - \"plain failure\\n\"","name":"AxiosError","code":"ERR_BAD_RESPONSE","status":500}`,
		},
		{
			name: "redirect that is not followed", parameters: `{"url":"BASE/redirect"` + noFollow + `}`,
			message: "UNKNOWN ERROR - check the detailed error for more information", description: "<a href=\"/json\">Found</a>.\n\n", class: "NodeApiError", code: "302",
			item: `{"message":"302 - \"<a href=\\\"/json\\\">Found</a>.\\n\\n\"","name":"AxiosError","code":"ERR_BAD_RESPONSE","status":302}`,
		},
		{name: "redirects without end", parameters: `{"url":"BASE/loop"}`, message: "Maximum number of redirects exceeded", class: "NodeApiError", code: "ERR_FR_TOO_MANY_REDIRECTS"},
		{
			name: "refused", parameters: `{"url":"http://127.0.0.1:1/x"}`,
			message: "The service refused the connection - perhaps it is offline", class: "NodeApiError", code: "ECONNREFUSED",
			item: `{"message":"connect ECONNREFUSED 127.0.0.1:1","name":"Error","code":"ECONNREFUSED"}`,
		},
		{
			name: "timeout", parameters: `{"url":"BASE/hang","options":{"timeout":50}}`,
			message: "The connection was aborted, perhaps the server is offline", class: "NodeApiError", code: "ECONNABORTED",
			item: `{"message":"timeout of 50ms exceeded","name":"AxiosError","code":"ECONNABORTED"}`,
		},
		{
			name: "bad URL", parameters: `{"url":"notaurl"}`,
			message: `Invalid URL: notaurl. URL must start with "http" or "https".`, class: "NodeOperationError",
			item: `"Invalid URL: notaurl. URL must start with \"http\" or \"https\"."`,
		},
		{name: "no URL", parameters: `{}`, message: "URL parameter must be a string, got undefined", class: "NodeOperationError"},
		{
			name: "bad JSON in the answer", parameters: `{"url":"BASE/badjson"}`,
			message: "Invalid JSON in response body", class: "NodeOperationError", item: `"Invalid JSON in response body"`,
		},
		{
			name: "text where JSON was asked for", parameters: `{"url":"BASE/text","options":{"response":{"response":{"responseFormat":"json"}}}}`,
			message: `Response body is not valid JSON. Change "Response Format" to "Text"`, class: "NodeOperationError",
			item: `"Response body is not valid JSON. Change \"Response Format\" to \"Text\""`,
		},
		{
			name: "bad JSON in the body", parameters: `{"url":"BASE/echo","method":"POST","sendBody":true,"specifyBody":"json","jsonBody":"{\"a\": "}`,
			message: `The value in the "JSON Body" field is not valid JSON`, class: "NodeOperationError",
			item: `"The value in the \"JSON Body\" field is not valid JSON"`,
		},
	}
	base := service(t).URL
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := execute(t, newCall(t, base, tt.parameters))
			ne := nodeError(t, err)
			require.Equal(t, tt.message, ne.Message)
			require.Equal(t, tt.description, ne.Description)
			require.Equal(t, tt.class, ne.Name)
			require.Equal(t, tt.code, ne.HTTPCode)
			require.Equal(t, 0, *ne.ItemIndex)

			for _, onError := range []workflow.OnError{workflow.OnErrorContinue, workflow.OnErrorOutput} {
				call := newCall(t, base, tt.parameters)
				call.Node.OnError = onError
				items, err := execute(t, call)
				require.NoError(t, err)
				require.Len(t, items, 1)
				require.Equal(t, workflow.Paired(0), items[0].PairedItem)
				if tt.item != "" {
					require.Equal(t, `[{"error":`+tt.item+`}]`, jsons(t, items))
				}
			}
		})
	}
}

func TestVersionOneQuotesJSONErrorsAsTheyAre(t *testing.T) {
	call := newCall(t, service(t).URL, `{"url":"BASE/status/404"}`)
	call.Node.TypeVersion, call.Node.ContinueOnFail = 1, true
	items, err := execute(t, call)
	require.NoError(t, err)
	require.Equal(t, `[{"error":{"message":"404 - {\"error\":{\"code\":\"E404\",\"message\":\"scripted 404\"}}","name":"AxiosError","code":"ERR_BAD_REQUEST","status":404}}]`, jsons(t, items))
}

func TestConnectionClosedInTheMiddle(t *testing.T) {
	server := httptest.NewServer(nethttp.HandlerFunc(func(w nethttp.ResponseWriter, _ *nethttp.Request) {
		w.Header().Set("Content-Length", "100")
		_, _ = io.WriteString(w, "half")
		panic(nethttp.ErrAbortHandler)
	}))
	defer server.Close()
	_, err := execute(t, newCall(t, server.URL, `{"url":"BASE"}`))
	require.Equal(t, "ECONNRESET", nodeError(t, err).HTTPCode)
}

func TestTransportFailure(t *testing.T) {
	tests := map[string]error{
		"ENOTFOUND": &net.DNSError{Name: "nowhere.invalid", IsNotFound: true},
		"EAI_AGAIN": &net.DNSError{Name: "nowhere.invalid", IsTemporary: true},
		"ETIMEDOUT": context.DeadlineExceeded,
		"":          errors.New("tls: handshake failure"),
	}
	for code, err := range tests {
		ne := nodeError(t, asFailure(transportFailure(err), 0, nil).node)
		require.Equal(t, code, ne.HTTPCode)
		require.NotEmpty(t, ne.Message)
	}
}

func TestCancelClosesTheConnection(t *testing.T) {
	arrived, closed := make(chan struct{}), make(chan struct{})
	server := httptest.NewServer(nethttp.HandlerFunc(func(_ nethttp.ResponseWriter, r *nethttp.Request) {
		close(arrived)
		<-r.Context().Done()
		close(closed)
	}))
	defer server.Close()
	ctx, cancel := context.WithCancel(context.Background())
	failed := make(chan error, 1)
	call := newCall(t, server.URL, `{"url":"BASE"}`)
	call.Node.OnError = workflow.OnErrorContinue // a stop is no failure of the item
	go func() {
		_, err := Types()[0].Execute(ctx, call)
		failed <- err
	}()
	<-arrived
	cancel()
	require.Equal(t, context.Canceled, <-failed)
	select {
	case <-closed:
	case <-time.After(5 * time.Second):
		t.Fatal("the connection is still open")
	}
}

func TestDescribeBody(t *testing.T) {
	tests := map[string]string{
		`{"message":"the mock always fails here"}`:                "the mock always fails here",
		`{"errors":[{"detail":"first"},{"detail":"second"}]}`:     "first",
		`{"error":"invalid_grant","error_description":"expired"}`: "invalid_grant",
		`{"unusual":1}`: `{"unusual":1}`,
		`plain`:         "plain",
		``:              "",
	}
	for body, want := range tests {
		require.Equal(t, want, describeBody([]byte(body)))
	}
	long := describeBody([]byte(strings.Repeat("é", 2000)))
	require.LessOrEqual(t, len(long), maxDescriptionBytes+len("…"))
	require.True(t, strings.HasSuffix(long, "é…"))
}
