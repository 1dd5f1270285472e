package ai

import (
	"compress/gzip"
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/node"
	"github.com/reprise-engine/reprise/pkg/nodes/nodestest"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// ask asks the model at a server through a client.
func ask(t *testing.T, client *http.Client, server string, secret map[string]any) error {
	t.Helper()
	call := nodestest.Call(typeOf(t, "lmChatOpenAi"), `{"model":"m","options":{"maxRetries":0}}`, nodestest.Items(`{}`))
	call.Node.TypeVersion = 1.2
	call.Node.Credentials = map[string]workflow.CredentialRef{"openAiApi": {ID: "1"}}
	secret["url"] = server
	call.Credentials = func(context.Context, string, workflow.CredentialRef) (map[string]any, error) { return secret, nil }
	call.HTTP = client
	model, err := openOpenAI(t.Context(), call, 0)
	require.NoError(t, err)
	_, err = model.(*openAI).ask(t.Context(), question{Messages: []message{{Role: roleUser, Content: "hi"}}})
	require.Error(t, err)
	return err
}

func TestModelAnswersWithoutEnd(t *testing.T) {
	zeros := make([]byte, 64<<10)
	mux := http.NewServeMux()
	mux.HandleFunc("/endless/", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		for {
			if _, err := w.Write(zeros); err != nil {
				return
			}
		}
	})
	mux.HandleFunc("/bomb/", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		for {
			if _, err := z.Write(zeros); err != nil {
				return
			}
		}
	})
	mux.HandleFunc("/promise/", func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Content-Length", "1000000000000") })
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	for _, path := range []string{"/endless", "/bomb", "/promise"} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		err := ask(t, server.Client(), server.URL+path, map[string]any{"apiKey": "k"})
		runtime.ReadMemStats(&after)
		var failure *engine.NodeError
		require.ErrorAs(t, err, &failure, path)
		require.Equal(t, engine.ReasonTooLarge, failure.Reason, path)
		require.Equal(t, "the model's server sent more than 32 MiB", failure.Description, path)
		require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(10*maxAnswerBytes), path) // what was ever taken, growing
	}
}

func TestModelKeyStaysWithItsServer(t *testing.T) {
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { t.Errorf("reached with %v", r.Header) }))
	t.Cleanup(other.Close)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		to := other.URL
		if r.URL.Query().Has("again") || r.URL.Path[:5] == "/loop" {
			to = "/loop"
		}
		http.Redirect(w, r, to, http.StatusTemporaryRedirect)
	}))
	t.Cleanup(server.Close)
	secret := map[string]any{"apiKey": "sk-key", "header": true, "headerName": "X-Gateway", "headerValue": "gateway-key"}
	var failure *engine.NodeError
	require.ErrorAs(t, ask(t, server.Client(), server.URL+"/v1", secret), &failure)
	require.Contains(t, failure.Description, "the model's server redirects to "+other.URL)
	require.ErrorAs(t, ask(t, server.Client(), server.URL+"/loop", secret), &failure)
	require.Contains(t, failure.Description, "redirects without end")
}

func TestModelAtARefusedAddress(t *testing.T) {
	client := &http.Client{Transport: &http.Transport{DialContext: func(_ context.Context, network, address string) (net.Conn, error) {
		return nil, &net.OpError{Op: "dial", Net: network, Err: &node.AddressRefusedError{Host: address, Kind: "a private address", Hint: "allow it"}}
	}}}
	var failure *engine.NodeError
	require.ErrorAs(t, ask(t, client, "http://10.0.0.1:11434/v1", map[string]any{"apiKey": "k"}), &failure)
	require.Equal(t, "The model cannot be reached: the connection to 10.0.0.1:11434 was refused: it is a private address", failure.Message)
	require.Equal(t, "allow it", failure.Description)
	require.True(t, failure.NotRetryable)
}
