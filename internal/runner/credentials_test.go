package runner

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reprise-engine/reprise/internal/redact"
	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/expression"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// asking is a run's Credentials, for a node whose first input item is {"tenant": "acme"}.
func asking(t *testing.T, data map[string]any, secrets *redact.Set) func(context.Context, string, workflow.CredentialRef) (map[string]any, error) {
	t.Helper()
	evaluator, err := expression.New()
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, evaluator.Close()) })
	r := New(Config{Evaluator: evaluator, Credentials: func(context.Context, string, workflow.CredentialRef) (map[string]any, error) {
		if data == nil {
			return nil, errors.New("there is none")
		}
		return data, nil
	}})
	scope := expression.Scope{
		Inputs: []workflow.Items{{{JSON: []byte(`{"tenant":"acme"}`)}}}, Sources: []*workflow.Source{{PreviousNode: "Before"}}, Now: time.Now(),
	}
	return r.noting(secrets, scope, &workflow.Node{Name: "Work", Parameters: []byte(`{}`)})
}

func TestExpressionsInCredentials(t *testing.T) {
	secrets := &redact.Set{}
	stored := map[string]any{
		"name": "X-Key", "value": "={{ 'key-of-' + $json.tenant }}", "nothing": "={{ undefined }}", "password": "=not an expression", "port": 25.0,
	}
	data, err := asking(t, stored, secrets)(t.Context(), "httpHeaderAuth", workflow.CredentialRef{Name: "Mine"})
	require.NoError(t, err)
	require.Equal(t, map[string]any{"name": "X-Key", "value": "key-of-acme", "nothing": nil, "password": "=not an expression", "port": 25.0}, data)
	require.Equal(t, "it said [secret]", secrets.String("it said key-of-acme"), "what comes out is a secret too")
	require.Contains(t, stored["value"], "{{", "what is stored stays")

	_, err = asking(t, map[string]any{"value": "={{ 'very-secret' + $('Missing').first().json.x }}"}, secrets)(t.Context(), "httpHeaderAuth", workflow.CredentialRef{Name: "Mine"})
	var failed *engine.NodeError
	require.ErrorAs(t, err, &failed)
	require.Equal(t, `The expression in field "value" of credential "Mine" cannot be evaluated`, failed.Message)
	require.NotContains(t, failed.Message+failed.Description, "very-secret")
	_, err = asking(t, nil, secrets)(t.Context(), "x", workflow.CredentialRef{})
	require.EqualError(t, err, "there is none")
}

func TestTokensOfOAuth2(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.FormValue("scope") != "acme" {
			w.WriteHeader(400)
			_, _ = io.WriteString(w, `{"error":"invalid_scope"}`)
			return
		}
		_, _ = io.WriteString(w, `{"access_token":"fresh-token","expires_in":60}`)
	}))
	defer server.Close()
	secrets := &redact.Set{}
	stored := map[string]any{
		"grantType": "clientCredentials", "accessTokenUrl": server.URL, "clientId": "id", "clientSecret": "client-secret", "scope": "={{ $json.tenant }}",
	}
	data, err := asking(t, stored, secrets)(t.Context(), "oAuth2Api", workflow.CredentialRef{})
	require.NoError(t, err)
	require.Equal(t, "fresh-token", data["oauthTokenData"].(map[string]any)["access_token"])
	require.Equal(t, "Bearer [secret]", secrets.String("Bearer fresh-token"))
	stored["scope"] = "other"
	_, err = asking(t, stored, secrets)(t.Context(), "oAuth2Api", workflow.CredentialRef{})
	require.ErrorContains(t, err, "the server refused: invalid_scope")
}
