package http

import (
	"context"
	"crypto/md5"
	"fmt"
	"io"
	nethttp "net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-engine/reprise/pkg/node"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// digestServer knows one user, and checks the answer to its challenge by the formula of RFC 2617.
func digestServer(t *testing.T, user, password string) *httptest.Server {
	t.Helper()
	sum := func(parts ...string) string { return fmt.Sprintf("%x", md5.Sum([]byte(strings.Join(parts, ":")))) }
	field := func(header, name string) string {
		m := regexp.MustCompile(`\b` + name + `="?([^",]*)`).FindStringSubmatch(header)
		if m == nil {
			return ""
		}
		return m[1]
	}
	server := httptest.NewServer(nethttp.HandlerFunc(func(w nethttp.ResponseWriter, r *nethttp.Request) {
		h := r.Header.Get("Authorization")
		want := sum(sum(user, "a realm, quoted", password), "n0nce", field(h, "nc"), field(h, "cnonce"), "auth", sum(r.Method, r.RequestURI))
		if field(h, "response") != want || field(h, "uri") != r.RequestURI || field(h, "opaque") != "op" {
			w.Header().Set("WWW-Authenticate", `Digest realm="a realm, quoted", nonce="n0nce", qop="auth,auth-int", opaque="op", algorithm=MD5`)
			nethttp.Error(w, "who are you?", nethttp.StatusUnauthorized)
			return
		}
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"body":%q}`, body)
	}))
	t.Cleanup(server.Close)
	return server
}

func TestDigest(t *testing.T) {
	server := digestServer(t, "ann", "pass word")
	parameters := generic("httpDigestAuth", `,"method":"POST","sendQuery":true,"queryParameters":{"parameters":[{"name":"q","value":"a b"}]},"sendBody":true,"bodyParameters":{"parameters":[{"name":"a","value":1}]}`)
	got := echoed(t, withCredential(newCall(t, server.URL, parameters), "httpDigestAuth", map[string]any{"user": "ann", "password": "pass word"}))
	require.Equal(t, `{"a":1}`, got.Get("body").String())
	_, err := execute(t, withCredential(newCall(t, server.URL, parameters), "httpDigestAuth", map[string]any{"user": "ann", "password": "wrong password"}))
	require.Equal(t, "401", nodeError(t, err).HTTPCode)
	require.NotContains(t, err.Error(), "wrong")

	t.Run("a server that asks for something else", func(t *testing.T) {
		call := withCredential(newCall(t, service(t).URL, strings.ReplaceAll(parameters, "/echo", "/status/401")), "httpDigestAuth", map[string]any{"user": "ann", "password": "x"})
		_, err := execute(t, call)
		require.Equal(t, "401", nodeError(t, err).HTTPCode)
	})
}

func TestRefusedTokenIsRenewedOnce(t *testing.T) {
	var requests atomic.Int32
	server := httptest.NewServer(nethttp.HandlerFunc(func(w nethttp.ResponseWriter, r *nethttp.Request) {
		requests.Add(1)
		if r.Header.Get("Authorization") != "Bearer token-new" {
			nethttp.Error(w, "stale "+r.Header.Get("Authorization"), nethttp.StatusUnauthorized)
			return
		}
		_, _ = io.WriteString(w, `fine`)
	}))
	defer server.Close()
	token := func(text string) map[string]any {
		return map[string]any{"oauthTokenData": map[string]any{"access_token": text}}
	}
	renewed := token("token-new")
	call := newCall(t, server.URL, generic("oAuth2Api", ""))
	call.Node.Credentials = map[string]workflow.CredentialRef{"oAuth2Api": {ID: "1"}}
	call.Credentials = func(ctx context.Context, _ string, _ workflow.CredentialRef) (map[string]any, error) {
		if node.RefusedToken(ctx) == "token-old" {
			return renewed, nil
		}
		return token("token-old"), nil
	}
	items, err := execute(t, call)
	require.NoError(t, err)
	require.JSONEq(t, `[{"data":"fine"}]`, jsons(t, items))
	require.EqualValues(t, 2, requests.Load())

	renewed = token("token-bad")
	requests.Store(0)
	_, err = execute(t, call)
	require.Equal(t, "401", nodeError(t, err).HTTPCode)
	require.NotContains(t, nodeError(t, err).Description, "token-bad")
	require.EqualValues(t, 2, requests.Load())

	renewed = token("token-old") // there is no other
	requests.Store(0)
	call.Node.Parameters = []byte(strings.Replace(string(call.Node.Parameters), "{", `{"options":{"response":{"response":{"neverError":true,"responseFormat":"file"}}},`, 1))
	items, err = execute(t, call)
	require.NoError(t, err)
	require.NotEmpty(t, items[0].Binary["data"].Data)
	require.EqualValues(t, 1, requests.Load())
}

func TestSignedRequests(t *testing.T) {
	base := service(t).URL
	aws := map[string]any{"region": "eu-west-1", "accessKeyId": "AKID", "secretAccessKey": "very-secret"}
	got := echoed(t, withCredential(newCall(t, base, predefined("aws")), "aws", aws))
	require.Regexp(t, `^AWS4-HMAC-SHA256 Credential=AKID/\d{8}/eu-west-1/execute-api/aws4_request, SignedHeaders=.*host.*, Signature=[0-9a-f]{64}$`, got.Get("headers.authorization").String())
	require.NotContains(t, got.Raw, "very-secret")
	oauth1 := map[string]any{"consumerKey": "ck", "consumerSecret": "cs-secret", "oauthTokenData": map[string]any{"oauth_token": "tok", "oauth_token_secret": "ts-secret"}}
	got = echoed(t, withCredential(newCall(t, base, generic("oAuth1Api", "")), "oAuth1Api", oauth1))
	require.Regexp(t, `^OAuth oauth_consumer_key="ck".*oauth_signature="`, got.Get("headers.authorization").String())
	require.NotContains(t, got.Raw, "-secret")
}
