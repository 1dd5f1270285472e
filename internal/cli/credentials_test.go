package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"github.com/reprise-engine/reprise/internal/credentials"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

const plainCredentials = `[{"id":"1","name":"Main","type":"openAiApi","data":{"apiKey":"sk-secret-value"}},
	{"id":"2","name":"Mail","type":"smtp","data":{"password":"sk-secret-too"}}]`

func TestCredentialsCommands(t *testing.T) {
	t.Parallel()
	path := file(t, plainCredentials)
	dir := t.TempDir()
	oldKey, newKey, bothKeys := filepath.Join(dir, "old"), filepath.Join(dir, "new"), filepath.Join(dir, "both")
	never := func(o outcome) outcome {
		assert.NotContains(t, o.stdout+o.stderr, "sk-secret")
		return o
	}
	o := never(reprise(t, "credentials", "keygen", "--out", oldKey))
	require.Zero(t, o.code, o.stderr)
	key, err := os.ReadFile(oldKey)
	require.NoError(t, err)
	assert.NotContains(t, o.stdout, strings.Fields(string(key))[0])
	info, err := os.Stat(oldKey)
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	reprise(t, "credentials", "keygen", "--out", oldKey).failed(t, 2, "is there already")

	o = never(reprise(t, "credentials", "list", path, "--output", "json"))
	assert.Equal(t, `["plain text","plain text"]`, gjson.Get(o.stdout, "#.status").Raw)
	o = never(reprise(t, "credentials", "encrypt", path, "--key-file", oldKey))
	require.Zero(t, o.code, o.stderr)
	assert.Contains(t, o.stdout, "2 of 2 credentials encrypted with key ")
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.NotContains(t, string(data), "sk-secret")
	assert.Contains(t, reprise(t, "credentials", "encrypt", path, "--key-file", oldKey).stdout, "0 of 2")

	o = reprise(t, "credentials", "keygen")
	require.Zero(t, o.code)
	require.NoError(t, os.WriteFile(newKey, []byte(o.stdout), 0o600))
	require.NoError(t, os.WriteFile(bothKeys, append([]byte(o.stdout), key...), 0o600))
	never(reprise(t, "credentials", "rotate", path, "--key-file", newKey)).failed(t, 2, "is encrypted with key")
	rotated := filepath.Join(dir, "rotated.json")
	o = never(reprise(t, "credentials", "rotate", path, "--key-file", bothKeys, "--out", rotated))
	require.Zero(t, o.code, o.stderr)
	assert.Contains(t, o.stdout, "2 of 2 credentials encrypted anew")

	o = never(reprise(t, "credentials", "list", rotated, "--key-file", oldKey))
	assert.Equal(t, 2, strings.Count(o.stdout, "no key"), o.stdout)
	o = never(reprise(t, "credentials", "list", rotated, "--key-file", newKey))
	assert.Regexp(t, `1 +Main +openAiApi +[0-9a-f]{8} +ok`, o.stdout)
	keys, err := credentials.ReadKeys(newKey)
	require.NoError(t, err)
	store, err := credentials.Open(rotated, keys, nil)
	require.NoError(t, err)
	got, err := store.Get(t.Context(), "openAiApi", workflow.CredentialRef{ID: "1"})
	require.NoError(t, err)
	assert.Equal(t, "sk-secret-value", got["apiKey"])
}

func TestCredentialsUsage(t *testing.T) {
	t.Parallel()
	reprise(t, "credentials", "encrypt", file(t, plainCredentials)).failed(t, 2, "no key is given", "reprise credentials keygen")
	reprise(t, "credentials", "list", file(t, `{"a":"sk-secret"}`)).failed(t, 2, "is not a JSON list")
	reprise(t, "credentials", "list", filepath.Join(t.TempDir(), "none.json")).failed(t, 2, "no such file")
	reprise(t, "credentials", "rotate", file(t, plainCredentials), "--key-file", file(t, "password")).failed(t, 2, "is not 32 bytes")
}
