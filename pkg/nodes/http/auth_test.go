package http

import (
	"context"
	"errors"
	nethttp "net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-engine/reprise/pkg/node"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

const secret = "s3cr3t/key+1"

func withCredential(call *node.Call, kind string, data map[string]any) *node.Call {
	call.Node.Credentials = map[string]workflow.CredentialRef{kind: {ID: "c1", Name: "Mine"}}
	call.Credentials = func(_ context.Context, asked string, ref workflow.CredentialRef) (map[string]any, error) {
		if asked != kind || ref.ID != "c1" {
			return nil, errors.New("no such credential")
		}
		return data, nil
	}
	return call
}

func generic(kind, more string) string {
	return `{"url":"BASE/echo","authentication":"genericCredentialType","genericAuthType":"` + kind + `"` + more + `}`
}

func predefined(kind string) string {
	return `{"url":"BASE/echo","authentication":"predefinedCredentialType","nodeCredentialType":"` + kind + `"}`
}

func TestCredentials(t *testing.T) {
	tests := []struct {
		kind, parameters string
		data             map[string]any
		want             map[string]string // path in the echo
	}{
		{"httpHeaderAuth", generic("httpHeaderAuth", ""), map[string]any{"name": "X-Key", "value": secret}, map[string]string{"headers.x-key": secret}},
		{"httpBearerAuth", generic("httpBearerAuth", ""), map[string]any{"token": secret}, map[string]string{"headers.authorization": "Bearer " + secret}},
		{"httpBasicAuth", generic("httpBasicAuth", ""), map[string]any{"user": "ann", "password": "pass"}, map[string]string{"headers.authorization": "Basic YW5uOnBhc3M="}},
		{"httpQueryAuth", generic("httpQueryAuth", `,"sendQuery":true,"queryParameters":{"parameters":[{"name":"a","value":"1"}]}`), map[string]any{"name": "key", "value": secret}, map[string]string{"query": "a=1&key=s3cr3t%2Fkey%2B1"}},
		{
			"httpCustomAuth", generic("httpCustomAuth", `,"method":"POST","sendBody":true,"bodyParameters":{"parameters":[{"name":"a","value":"1"}]}`),
			map[string]any{"json": `{"headers":{"X-A":"1"},"qs":{"k":"` + secret + `"},"body":{"b":2}}`},
			map[string]string{"headers.x-a": "1", "query": "k=s3cr3t%2Fkey%2B1", "body": `{"a":"1","b":2}`},
		},
		{"openAiApi", predefined("openAiApi"), map[string]any{"apiKey": secret, "url": "https://x"}, map[string]string{"headers.authorization": "Bearer " + secret}},
		{"anthropicApi", predefined("anthropicApi"), map[string]any{"apiKey": secret}, map[string]string{"headers.x-api-key": secret, "headers.anthropic-version": "2023-06-01", "headers.authorization": ""}},
		{"googleOAuth2Api", predefined("googleOAuth2Api"), map[string]any{"oauthTokenData": map[string]any{"access_token": secret}}, map[string]string{"headers.authorization": "Bearer " + secret}},
		{"wordpressApi", predefined("wordpressApi"), map[string]any{"username": "ann", "password": "pass"}, map[string]string{"headers.authorization": "Basic YW5uOnBhc3M="}},
		{"oAuth2Api", generic("oAuth2Api", ""), map[string]any{"oauthTokenData": map[string]any{"access_token": secret}}, map[string]string{"headers.authorization": "Bearer " + secret}},
	}
	base := service(t).URL
	for _, tt := range tests {
		t.Run(tt.kind, func(t *testing.T) {
			got := echoed(t, withCredential(newCall(t, base, tt.parameters), tt.kind, tt.data))
			for path, want := range tt.want {
				require.Equal(t, want, got.Get(path).String(), path)
			}
		})
	}
}

func TestCredentialErrors(t *testing.T) {
	base := service(t).URL
	_, err := execute(t, newCall(t, base, generic("httpHeaderAuth", "")))
	require.EqualError(t, err, `Node does not have any credentials set for "httpHeaderAuth"`)
	call := withCredential(newCall(t, base, generic("httpHeaderAuth", "")), "httpHeaderAuth", nil)
	call.Node.Credentials["httpHeaderAuth"] = workflow.CredentialRef{ID: "gone", Name: "Mine"}
	_, err = execute(t, call)
	require.EqualError(t, err, `credential "Mine" of type httpHeaderAuth: no such credential`)
	_, err = execute(t, withCredential(newCall(t, base, predefined("aws")), "aws", map[string]any{"region": "eu"}))
	require.ErrorContains(t, err, `credentials of type "aws" are not supported`)
}

// A service that repeats the key in its error must not carry it into run data.
func TestSecretsAreBlankedOutInErrors(t *testing.T) {
	server := httptest.NewServer(nethttp.HandlerFunc(func(w nethttp.ResponseWriter, r *nethttp.Request) {
		nethttp.Error(w, "bad key "+r.Header.Get("Authorization")+" at "+r.URL.String(), nethttp.StatusUnauthorized)
	}))
	defer server.Close()
	tests := []struct {
		kind, parameters string
		data             map[string]any
		secrets          []string
	}{
		{"httpBearerAuth", generic("httpBearerAuth", ""), map[string]any{"token": secret}, []string{secret}},
		{"httpBasicAuth", generic("httpBasicAuth", ""), map[string]any{"user": "annabel", "password": `p"ss\word`}, []string{`p"ss\word`, `cFwi`, "YW5uYWJlbDpwInNzXHdvcmQ="}},
		{"httpQueryAuth", generic("httpQueryAuth", ""), map[string]any{"name": "k", "value": secret}, []string{secret, escape(secret)}},
	}
	for _, tt := range tests {
		t.Run(tt.kind, func(t *testing.T) {
			call := withCredential(newCall(t, server.URL, tt.parameters), tt.kind, tt.data)
			_, err := execute(t, call)
			ne := nodeError(t, err)
			require.Contains(t, ne.Description, blank)
			call.Node.OnError = workflow.OnErrorContinue
			items, err := execute(t, call)
			require.NoError(t, err)
			told := jsons(t, items)
			require.Contains(t, told, blank)
			for _, s := range tt.secrets {
				require.NotContains(t, ne.Message+ne.Description+told, s)
			}
		})
	}
	t.Run("in a URL that cannot be reached", func(t *testing.T) {
		call := withCredential(newCall(t, "http://127.0.0.1:1", generic("httpQueryAuth", "")), "httpQueryAuth", map[string]any{"name": "k", "value": secret})
		_, err := execute(t, call)
		require.NotContains(t, err.Error()+nodeError(t, err).Description, "s3cr3t")
	})
}

func TestRedirectToAnotherHostDoesNotTakeTheKeyAlong(t *testing.T) {
	other := service(t)
	server := httptest.NewServer(nethttp.HandlerFunc(func(w nethttp.ResponseWriter, r *nethttp.Request) {
		if r.URL.Path == "/near" {
			_, _ = w.Write([]byte(r.Header.Get("X-Key")))
			return
		}
		target := "/near"
		if strings.HasSuffix(r.URL.Path, "/echo") {
			target = other.URL + "/echo"
		}
		nethttp.Redirect(w, r, target, nethttp.StatusTemporaryRedirect)
	}))
	defer server.Close()
	data := map[string]any{"name": "X-Key", "value": secret}
	got := echoed(t, withCredential(newCall(t, server.URL, generic("httpHeaderAuth", "")), "httpHeaderAuth", data))
	require.False(t, got.Get("headers.x-key").Exists())
	near := strings.ReplaceAll(generic("httpHeaderAuth", ""), "/echo", "/start")
	got = echoed(t, withCredential(newCall(t, server.URL, near), "httpHeaderAuth", data))
	require.Equal(t, secret, got.Get("data").String(), "on the same host it does")
}
