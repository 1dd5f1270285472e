package callers_test

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/golang-jwt/jwt/v5"
	"github.com/stretchr/testify/require"

	"github.com/reprise-engine/reprise/internal/callers"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

var ref = workflow.CredentialRef{ID: "1", Name: "callers"}

func TestCheck(t *testing.T) {
	public, private, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	der, err := x509.MarshalPKIXPublicKey(public)
	require.NoError(t, err)
	encoded := string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
	bearer := func(method jwt.SigningMethod, key any) string {
		text, err := jwt.NewWithClaims(method, jwt.MapClaims{"sub": "ann"}).SignedString(key)
		require.NoError(t, err)
		return "Bearer " + text
	}
	basic, key := map[string]any{"user": "ann", "password": "right"}, map[string]any{"name": "X-Key", "value": "right"}
	secret := map[string]any{"secret": "right"}
	for name, row := range map[string]struct {
		kind      string
		data      map[string]any
		set       func(*http.Request)
		status    int // 0 is let in
		challenge string
		hidden    string
		claims    string
	}{
		"basic":                    {kind: callers.Basic, data: basic, set: func(r *http.Request) { r.SetBasicAuth("ann", "right") }, hidden: "authorization"},
		"basic, nothing sent":      {kind: callers.Basic, data: basic, status: 401, challenge: `Basic realm="Webhook"`},
		"basic, another password":  {kind: callers.Basic, data: basic, set: func(r *http.Request) { r.SetBasicAuth("ann", "wrong") }, status: 403},
		"basic, another user":      {kind: callers.Basic, data: basic, set: func(r *http.Request) { r.SetBasicAuth("ben", "right") }, status: 403},
		"basic, an empty password": {kind: callers.Basic, data: map[string]any{}, set: func(r *http.Request) { r.SetBasicAuth("", "") }, status: 403},
		"header":                   {kind: callers.Header, data: key, set: func(r *http.Request) { r.Header.Set("x-key", "right") }, hidden: "x-key"},
		"header, another value":    {kind: callers.Header, data: key, set: func(r *http.Request) { r.Header.Set("x-key", "wrong") }, status: 403},
		"header, nothing sent":     {kind: callers.Header, data: key, status: 403},
		"header, an empty value":   {kind: callers.Header, data: map[string]any{"name": "X-Key", "value": ""}, status: 403},
		"token":                    {kind: callers.JWT, data: secret, set: func(r *http.Request) { r.Header.Set("Authorization", bearer(jwt.SigningMethodHS256, []byte("right"))) }, hidden: "authorization", claims: `{"sub":"ann"}`},
		"token, nothing sent":      {kind: callers.JWT, data: secret, status: 401, challenge: "Bearer"},
		"token of another key":     {kind: callers.JWT, data: secret, set: func(r *http.Request) { r.Header.Set("Authorization", bearer(jwt.SigningMethodHS256, []byte("wrong"))) }, status: 403},
		"token without a signature": {kind: callers.JWT, data: secret, set: func(r *http.Request) {
			r.Header.Set("Authorization", bearer(jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType))
		}, status: 403},
		"token, no secret":             {kind: callers.JWT, data: map[string]any{"secret": ""}, set: func(r *http.Request) { r.Header.Set("Authorization", bearer(jwt.SigningMethodHS256, []byte(""))) }, status: 403},
		"token of a key pair":          {kind: callers.JWT, data: map[string]any{"algorithm": "EdDSA", "publicKey": encoded}, set: func(r *http.Request) { r.Header.Set("Authorization", bearer(jwt.SigningMethodEdDSA, private)) }, hidden: "authorization", claims: `{"sub":"ann"}`},
		"public key used as a secret":  {kind: callers.JWT, data: map[string]any{"algorithm": "EdDSA", "publicKey": encoded}, set: func(r *http.Request) { r.Header.Set("Authorization", bearer(jwt.SigningMethodHS256, []byte(encoded))) }, status: 403},
		"token of another, for basic":  {kind: callers.Basic, data: basic, set: func(r *http.Request) { r.Header.Set("Authorization", bearer(jwt.SigningMethodHS256, []byte("right"))) }, status: 401, challenge: `Basic realm="Webhook"`},
		"basic of another, for tokens": {kind: callers.JWT, data: secret, set: func(r *http.Request) { r.SetBasicAuth("ann", "right") }, status: 401, challenge: "Bearer"},
	} {
		t.Run(name, func(t *testing.T) {
			r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", nil)
			if row.set != nil {
				row.set(r)
			}
			caller, err := callers.Check(r, func(_ context.Context, kind string, got workflow.CredentialRef) (map[string]any, error) {
				require.Equal(t, row.kind, kind)
				require.Equal(t, ref, got)
				return row.data, nil
			}, row.kind, ref)
			if row.status != 0 {
				require.Nil(t, caller)
				var refusal *callers.Refusal
				require.ErrorAs(t, err, &refusal)
				require.Equal(t, row.status, refusal.Status)
				require.Equal(t, row.challenge, refusal.Challenge)
				return
			}
			require.NoError(t, err)
			require.Equal(t, row.hidden, caller.Hidden)
			require.Equal(t, row.claims, string(caller.Claims))
		})
	}
}

func TestNothingToCheckAgainst(t *testing.T) {
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
	r.SetBasicAuth("", "")
	gone := errors.New("no such credential")
	for name, row := range map[string]struct {
		credentials callers.Credentials
		kind        string
		ref         workflow.CredentialRef
	}{
		"no file":       {nil, callers.Basic, ref},
		"not in it":     {func(context.Context, string, workflow.CredentialRef) (map[string]any, error) { return nil, gone }, callers.Basic, ref},
		"empty":         {func(context.Context, string, workflow.CredentialRef) (map[string]any, error) { return nil, nil }, callers.Basic, ref},
		"none chosen":   {func(context.Context, string, workflow.CredentialRef) (map[string]any, error) { panic("asked") }, callers.Basic, workflow.CredentialRef{}},
		"another type":  {func(context.Context, string, workflow.CredentialRef) (map[string]any, error) { panic("asked") }, "slackApi", ref},
		"no type given": {func(context.Context, string, workflow.CredentialRef) (map[string]any, error) { panic("asked") }, "", ref},
	} {
		t.Run(name, func(t *testing.T) {
			caller, err := callers.Check(r, row.credentials, row.kind, row.ref)
			require.Nil(t, caller)
			require.ErrorIs(t, err, callers.ErrUnknown)
			if name == "not in it" {
				require.ErrorIs(t, err, gone)
			}
		})
	}
}
