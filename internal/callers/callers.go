// Package callers checks who calls over HTTP: what a caller of a trigger, or of a wait that has not only a
// link, has to prove by basic authentication, a header or a JSON web token, against the credential that the
// workflow names.
package callers

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/golang-jwt/jwt/v5"

	"github.com/reprise-engine/reprise/pkg/workflow"
)

// The types of credentials that callers are checked against.
const (
	Basic  = "httpBasicAuth"
	Header = "httpHeaderAuth"
	JWT    = "jwtAuth"
)

// Credentials returns the secret data of a credential; nil has none.
type Credentials func(ctx context.Context, credentialType string, ref workflow.CredentialRef) (map[string]any, error)

// ErrUnknown is wrapped by what Check returns when there is nothing to check a caller against. The caller
// is to be refused, and whoever runs the process to be told.
var ErrUnknown = errors.New("callers: the credential is not in REPRISE_WEBHOOK_CREDENTIALS_FILE")

// Refusal is what a caller is told that is not let in.
type Refusal struct {
	Status  int
	Message string
	// Challenge is the header WWW-Authenticate; "" for none.
	Challenge string
}

func (r *Refusal) Error() string { return r.Message }

var wrong = &Refusal{Status: http.StatusForbidden, Message: "the authorization data is wrong"}

// Caller is one that has proved who it is.
type Caller struct {
	// Hidden is the header, in lower case, that proved it: nothing that is kept may hold it.
	Hidden string
	Claims json.RawMessage // of a JWT
}

// Check checks who makes a call against a credential of one of the types above. Its errors are a *Refusal,
// or wrap ErrUnknown.
func Check(r *http.Request, credentials Credentials, credentialType string, ref workflow.CredentialRef) (*Caller, error) {
	check, ok := map[string]func(*http.Request, map[string]any) (*Caller, error){Basic: basic, Header: header, JWT: token}[credentialType]
	if !ok {
		return nil, fmt.Errorf("%w: no caller is checked against the type %q", ErrUnknown, credentialType)
	}
	if credentials == nil || ref == (workflow.CredentialRef{}) {
		return nil, ErrUnknown
	}
	data, err := credentials(r.Context(), credentialType, ref)
	if err != nil || data == nil {
		return nil, errors.Join(ErrUnknown, err)
	}
	return check(r, data)
}

func equal(a, b string) bool {
	x, y := sha256.Sum256([]byte(a)), sha256.Sum256([]byte(b)) // so that lengths do not show
	return subtle.ConstantTimeCompare(x[:], y[:]) == 1
}

func textOf(data map[string]any, name string) string {
	text, _ := data[name].(string)
	return text
}

func basic(r *http.Request, data map[string]any) (*Caller, error) {
	user, password, ok := r.BasicAuth()
	if !ok {
		return nil, &Refusal{Status: http.StatusUnauthorized, Message: "authorization is required", Challenge: `Basic realm="Webhook"`}
	}
	want := textOf(data, "password")
	right := equal(user, textOf(data, "user"))
	if !equal(password, want) || !right || want == "" {
		return nil, wrong
	}
	return &Caller{Hidden: "authorization"}, nil
}

func header(r *http.Request, data map[string]any) (*Caller, error) {
	name, want := textOf(data, "name"), textOf(data, "value")
	if name == "" || want == "" || !equal(r.Header.Get(name), want) {
		return nil, wrong
	}
	return &Caller{Hidden: strings.ToLower(name)}, nil
}

// token checks a bearer token with the algorithm of the credential and no other.
func token(r *http.Request, data map[string]any) (*Caller, error) {
	text, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !ok {
		return nil, &Refusal{Status: http.StatusUnauthorized, Message: "a bearer token is required", Challenge: "Bearer"}
	}
	algorithm := textOf(data, "algorithm")
	if algorithm == "" {
		algorithm = "HS256"
	}
	claims := jwt.MapClaims{}
	_, err := jwt.ParseWithClaims(strings.TrimSpace(text), claims, func(t *jwt.Token) (any, error) {
		return verificationKey(t.Method, data)
	}, jwt.WithValidMethods([]string{algorithm}))
	if err != nil {
		return nil, &Refusal{Status: http.StatusForbidden, Message: "the token is not valid"}
	}
	raw, _ := json.Marshal(claims) // came from JSON
	return &Caller{Hidden: "authorization", Claims: raw}, nil
}

func verificationKey(method jwt.SigningMethod, data map[string]any) (any, error) {
	pem := []byte(textOf(data, "publicKey"))
	switch method.(type) {
	case *jwt.SigningMethodHMAC:
		if textOf(data, "secret") == "" {
			return nil, jwt.ErrInvalidKey
		}
		return []byte(textOf(data, "secret")), nil
	case *jwt.SigningMethodRSA, *jwt.SigningMethodRSAPSS:
		return jwt.ParseRSAPublicKeyFromPEM(pem)
	case *jwt.SigningMethodECDSA:
		return jwt.ParseECPublicKeyFromPEM(pem)
	case *jwt.SigningMethodEd25519:
		return jwt.ParseEdPublicKeyFromPEM(pem)
	}
	return nil, jwt.ErrInvalidKeyType
}
