package credential

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/stretchr/testify/require"
)

// tokenServer gives out numbered tokens and remembers what it was asked.
type tokenServer struct {
	*httptest.Server
	mu     sync.Mutex
	forms  []url.Values
	users  []string
	answer func(n int) (status int, body string)
}

func newTokenServer(t *testing.T) *tokenServer {
	t.Helper()
	s := &tokenServer{answer: func(n int) (int, string) {
		return 200, fmt.Sprintf(`{"access_token":"access-%d","refresh_token":"refresh-%d","expires_in":"3600"}`, n, n)
	}}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		_ = r.ParseForm()
		user, password, _ := r.BasicAuth()
		s.forms, s.users = append(s.forms, r.PostForm), append(s.users, user+":"+password)
		status, body := s.answer(len(s.forms))
		if status == 302 {
			w.Header().Set("Location", "/elsewhere")
		}
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *tokenServer) credential(more ...string) Data {
	d := Data{"accessTokenUrl": s.URL, "clientId": "id", "clientSecret": "client-secret"}
	for i := 0; i+1 < len(more); i += 2 {
		d[more[i]] = more[i+1]
	}
	return d
}

func TestClientCredentialsAreAskedOnce(t *testing.T) {
	s := newTokenServer(t)
	now := time.Unix(1000, 0)
	tokens := &Tokens{Now: func() time.Time { return now }}
	data := s.credential("grantType", "clientCredentials", "scope", "a b", "sendAdditionalBodyProperties", "true", "additionalBodyProperties", `{"audience":"me"}`)
	resolve := func(refused string) string {
		resolved, err := tokens.Resolve(t.Context(), s.Client(), "oAuth2Api", data, refused)
		require.NoError(t, err)
		return AccessToken(resolved)
	}
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			resolved, err := tokens.Resolve(t.Context(), s.Client(), "oAuth2Api", data, "")
			if err != nil || AccessToken(resolved) != "access-1" {
				t.Errorf("got %v, %v", resolved, err)
			}
		})
	}
	group.Wait()
	require.Len(t, s.forms, 1)
	require.Equal(t, "grant_type=client_credentials", s.forms[0].Encode()[len("audience=me&"):len("audience=me&grant_type=client_credentials")])
	require.Equal(t, "a b", s.forms[0].Get("scope"))
	require.Equal(t, []string{"id:client-secret"}, s.users)
	require.NotContains(t, data, "oauthTokenData", "the caller's data stays")

	now = now.Add(time.Hour - early - time.Second)
	require.Equal(t, "access-1", resolve(""))
	now = now.Add(time.Second)
	require.Equal(t, "access-2", resolve(""), "it is about to expire")
	require.Equal(t, "access-2", resolve("access-1"), "another run renewed it already")
	require.Equal(t, "access-3", resolve("access-2"))
}

func TestRefreshTokenIsUsedWhenTheAccessTokenIsRefused(t *testing.T) {
	s := newTokenServer(t)
	tokens := &Tokens{}
	data := s.credential("authentication", "body")
	data["oauthTokenData"] = map[string]any{"access_token": "given", "refresh_token": "refresh-0", "scope": "x"}
	for _, step := range []struct{ refused, want, sent string }{
		{"", "given", ""}, {"given", "access-1", "refresh-0"}, {"", "access-1", ""}, {"access-1", "access-2", "refresh-1"},
	} {
		before := len(s.forms)
		resolved, err := tokens.Resolve(t.Context(), s.Client(), "oAuth2Api", data, step.refused)
		require.NoError(t, err)
		require.Equal(t, step.want, AccessToken(resolved))
		if step.sent == "" {
			require.Len(t, s.forms, before)
			continue
		}
		got := s.forms[len(s.forms)-1]
		require.Equal(t, step.sent, got.Get("refresh_token"))
		require.Equal(t, "client-secret", got.Get("client_secret"))
		require.Equal(t, ":", s.users[len(s.users)-1])
	}
}

func TestGoogleServiceAccount(t *testing.T) {
	s := newTokenServer(t)
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	require.NoError(t, err)
	der, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	text := string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
	data := Data{"accessTokenUrl": s.URL, "email": "bot@x.iam", "privateKey": text, "scopes": "one, two", "delegatedEmail": "ann@x"}
	resolved, err := (&Tokens{}).Resolve(t.Context(), s.Client(), "googleApi", data, "")
	require.NoError(t, err)
	require.Equal(t, "access-1", AccessToken(resolved))
	claims := jwt.MapClaims{}
	_, err = jwt.ParseWithClaims(s.forms[0].Get("assertion"), claims, func(*jwt.Token) (any, error) { return &key.PublicKey, nil })
	require.NoError(t, err)
	require.Equal(t, "one two", claims["scope"])
	require.Equal(t, "ann@x", claims["sub"])
	data["privateKey"] = "no key"
	_, err = (&Tokens{}).Resolve(t.Context(), s.Client(), "googleApi", data, "")
	require.ErrorContains(t, err, "no RSA key in PEM format")
}

func TestTokensThatCannotBeHad(t *testing.T) {
	s := newTokenServer(t)
	client := s.credential("grantType", "clientCredentials")
	for _, test := range []struct {
		name, kind string
		data       Data
		answer     string
		status     int
		want       string
	}{
		{"refused", "oAuth2Api", client, `{"error":"invalid_client","error_description":"client-secret is wrong"}`, 401, "the server refused: invalid_client: [secret] is wrong"},
		{"no JSON", "oAuth2Api", client, `<html>`, 200, "the server refused: 200 OK"},
		{"redirect", "oAuth2Api", client, ``, 302, "redirects"},
		{"no URL", "unknownOAuth2Api", Data{"grantType": "clientCredentials"}, ``, 200, "names no access token URL"},
		{"bad URL", "oAuth2Api", Data{"grantType": "clientCredentials", "accessTokenUrl": "::"}, ``, 200, "is no URL"},
		{"nothing", "oAuth2Api", Data{"clientId": "x"}, ``, 200, "has no access token, and no way to one"},
		{"properties", "oAuth2Api", s.credential("grantType", "clientCredentials", "sendAdditionalBodyProperties", "true", "additionalBodyProperties", "["), ``, 200, "no JSON object"},
	} {
		t.Run(test.name, func(t *testing.T) {
			s.answer = func(int) (int, string) { return test.status, test.answer }
			_, err := (&Tokens{}).Resolve(t.Context(), s.Client(), test.kind, test.data, "")
			require.ErrorContains(t, err, test.want)
			require.NotContains(t, err.Error(), "client-secret")
		})
	}
	var plain Data
	require.NoError(t, json.Unmarshal([]byte(`{"apiKey":"k"}`), &plain))
	resolved, err := (&Tokens{}).Resolve(t.Context(), s.Client(), "openAiApi", plain, "")
	require.NoError(t, err)
	require.Equal(t, plain, resolved)
}
