package credentials

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-engine/reprise/pkg/workflow"
)

const export = `[{"id":"1","name":"Main","type":"openAiApi","data":{"apiKey":"one"}},
	{"id":"2","name":"Other","type":"openAiApi","data":{"apiKey":"two"}},
	{"id":"1","name":"Main","type":"smtp","data":{"host":"mail"}}]`

func load(t *testing.T, text string) (*Store, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "credentials.json")
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	return Load(file)
}

func TestGetFindsByIDThenByName(t *testing.T) {
	s, err := load(t, export)
	require.NoError(t, err)
	for _, test := range []struct {
		name string
		ref  workflow.CredentialRef
		key  string
	}{
		{"by id", workflow.CredentialRef{ID: "2", Name: "Main"}, "two"},
		{"by name", workflow.CredentialRef{ID: "of another system", Name: "Main"}, "one"},
	} {
		t.Run(test.name, func(t *testing.T) {
			data, err := s.Get(t.Context(), "openAiApi", test.ref)
			require.NoError(t, err)
			require.Equal(t, test.key, data["apiKey"])
		})
	}
	_, err = s.Get(t.Context(), "smtp", workflow.CredentialRef{ID: "2", Name: "Other"})
	require.ErrorContains(t, err, `credential "Other" (type smtp, id "2") not found: the worker's credentials file has none`)
	s.Override("openAiApi", map[string]any{"apiKey": "mock"})
	data, err := s.Get(t.Context(), "openAiApi", workflow.CredentialRef{Name: "any"})
	require.NoError(t, err)
	require.Equal(t, "mock", data["apiKey"])
}

func TestLoadErrorsNeverShowSecrets(t *testing.T) {
	_, err := load(t, `[{"id":"1","data":{"apiKey":"sk-secret"}`)
	require.ErrorContains(t, err, "is not a JSON list of")
	require.NotContains(t, err.Error(), "sk-secret")
	_, err = Load(filepath.Join(t.TempDir(), "none.json"))
	require.ErrorIs(t, err, os.ErrNotExist)
	s, err := Load("")
	require.NoError(t, err)
	_, err = s.Get(t.Context(), "openAiApi", workflow.CredentialRef{Name: "x"})
	require.ErrorContains(t, err, "REPRISE_CREDENTIALS_FILE")
}
