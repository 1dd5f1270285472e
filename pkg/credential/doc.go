// Package credential knows the credential types of n8n that are used in HTTP requests: what each
// adds to a request (a Grant), how the tokens of OAuth2 are got and renewed (Tokens), and which
// request shows that a credential is good (TestURL).
//
// The facts come from the services' own documentation. A type that is not listed is taken by the names
// of its fields: a key or token is a bearer token, a user with a password is basic authentication.
//
// Nothing here keeps a secret longer than its caller does, but for Tokens, and no error shows one.
package credential

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Data is a credential's decrypted data.
type Data map[string]any

// Text is the first of some fields that is not empty, as text.
func (d Data) Text(names ...string) string {
	for _, name := range names {
		switch v := d[name].(type) {
		case string:
			if v != "" {
				return v
			}
		case float64:
			return strconv.FormatFloat(v, 'f', -1, 64)
		case int, bool:
			return fmt.Sprint(v)
		}
	}
	return ""
}

// Pair is a query parameter.
type Pair struct{ Name, Value string }

// Grant is what a credential adds to requests.
type Grant struct {
	Headers map[string]string
	Query   []Pair
	// Hidden are secrets that are not in the data as they are: encoded, or signed with.
	Hidden []string
	// Sign completes a request whose method, URL and headers are final; nil needs none. body is what
	// will be sent.
	Sign func(req *http.Request, body []byte, now time.Time) error
	// Digest answers the challenge of a server that refused the request; nil has no answer.
	Digest *Digest
}

func (g *Grant) header(name, value string) {
	if g.Headers == nil {
		g.Headers = map[string]string{}
	}
	g.Headers[name] = value
}

func (g *Grant) bearer(token string) { g.header("Authorization", "Bearer "+token) }

func (g *Grant) basic(user, password string) {
	req := http.Request{Header: http.Header{}}
	req.SetBasicAuth(user, password)
	value := req.Header.Get("Authorization")
	g.header("Authorization", value)
	g.Hidden = append(g.Hidden, strings.TrimPrefix(value, "Basic "))
}

// UnsupportedError is returned by New for a type that is not known, with data that does not tell what
// to do with it.
type UnsupportedError struct{ Type string }

// Error implements error.
func (e *UnsupportedError) Error() string {
	return fmt.Sprintf("credentials of type %q are not supported by this node; use a generic credential (header, bearer, basic or query auth) instead", e.Type)
}

// MissingError is returned for data without a field that the type needs.
type MissingError struct{ Type, Field string }

// Error implements error.
func (e *MissingError) Error() string {
	return fmt.Sprintf("a credential of type %s needs %q, which is empty", e.Type, e.Field)
}

// New returns what a credential of a type adds to requests. Tokens of OAuth2 are taken as they are in
// the data: Tokens.Resolve puts good ones there.
func New(kind string, data Data) (*Grant, error) {
	g := &Grant{}
	switch kind {
	case "httpHeaderAuth":
		g.header(data.Text("name"), data.Text("value"))
		return g, nil
	case "httpBearerAuth":
		g.bearer(data.Text("token"))
		return g, nil
	case "httpBasicAuth":
		g.basic(data.Text("user"), data.Text("password"))
		return g, nil
	case "httpQueryAuth":
		g.Query = []Pair{{data.Text("name"), data.Text("value")}}
		return g, nil
	case "httpDigestAuth":
		g.Digest = &Digest{User: data.Text("user"), Password: data.Text("password")}
		return g, nil
	case "oAuth1Api", "twitterOAuth1Api":
		return g, g.oauth1(kind, data)
	case "aws":
		return g, g.aws(data)
	}
	if IsOAuth2(kind, data) {
		return g, g.oauth2(kind, data)
	}
	if s, ok := schemes[kind]; ok {
		return g, g.scheme(kind, s, data)
	}
	return g, g.guess(kind, data)
}

// oauth2 uses the access token.
func (g *Grant) oauth2(kind string, data Data) error {
	token := AccessToken(data)
	if token == "" {
		return &MissingError{kind, "oauthTokenData.access_token"}
	}
	g.bearer(token)
	if s, ok := schemes[kind]; ok { // its fixed headers
		for name, value := range s.fixed {
			g.header(name, value)
		}
	}
	return nil
}

// AccessToken is the token of OAuth2 in the data, "" when there is none.
func AccessToken(data Data) string {
	tokens, _ := data["oauthTokenData"].(map[string]any)
	return Data(tokens).Text("access_token")
}

// keyFields hold the key or token of most types.
var keyFields = []string{"apiKey", "accessToken", "token", "apiToken", "appToken", "appAccessToken", "secretKey"}

// guess takes a type by the names of its fields.
func (g *Grant) guess(kind string, data Data) error {
	key := data.Text(keyFields...)
	user, password := data.Text("user", "username", "email"), data.Text("password")
	switch {
	case key != "":
		g.bearer(key)
		g.custom(data)
	case user != "" && password != "":
		g.basic(user, password)
	default:
		return &UnsupportedError{kind}
	}
	return nil
}

// custom adds the header that a person named in the credential, as some types allow.
func (g *Grant) custom(data Data) {
	if name, value := data.Text("headerName"), data.Text("headerValue"); name != "" && value != "" {
		g.header(name, value)
	}
}
