package credentials

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/reprise-engine/reprise/pkg/workflow"
)

func newKeys(t *testing.T, n int) Keys {
	t.Helper()
	var keys Keys
	for range n {
		key, err := NewKey()
		require.NoError(t, err)
		keys = append(keys, key)
	}
	return keys
}

// write stores a credentials file with a mode.
func write(t *testing.T, text string, mode os.FileMode) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "credentials.json")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	require.NoError(t, os.Chmod(path, mode))
	return path
}

// encrypted is the export as an encrypted file.
func encrypted(t *testing.T, keys Keys) string {
	t.Helper()
	path := write(t, export, 0o644)
	f, err := Read(path)
	require.NoError(t, err)
	n, err := f.Encrypt(keys)
	require.NoError(t, err)
	require.Equal(t, 3, n)
	require.NoError(t, f.Write(path))
	return path
}

// edit changes the entries of a file as somebody without a key could.
func edit(t *testing.T, path string, change func([]map[string]any)) {
	t.Helper()
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	var entries []map[string]any
	require.NoError(t, json.Unmarshal(data, &entries))
	change(entries)
	data, err = json.Marshal(entries)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, data, 0o600))
}

func TestEncryptedFile(t *testing.T) {
	keys := newKeys(t, 1)
	path := encrypted(t, keys)
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NotContains(t, string(data), "apiKey")
	require.Contains(t, string(data), `"kid": "`+keys[0].ID+`"`)
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm(), "whatever it was before")

	s, err := Open(path, keys, nil)
	require.NoError(t, err)
	got, err := s.Get(t.Context(), "openAiApi", workflow.CredentialRef{ID: "2"})
	require.NoError(t, err)
	require.Equal(t, "two", got["apiKey"])

	for name, wrong := range map[string]Keys{"none": nil, "another": newKeys(t, 1)} {
		_, err = Open(path, wrong, nil)
		require.ErrorIs(t, err, ErrNoKey, name)
		require.ErrorContains(t, err, keys[0].ID, name)
	}
}

// An envelope opens for its own credential only.
func TestEnvelopesCannotBeMovedOrAltered(t *testing.T) {
	keys := newKeys(t, 1)
	envelope := func(e map[string]any) map[string]any { return e["encrypted"].(map[string]any) }
	for name, change := range map[string]func([]map[string]any){
		"two of a type changed about": func(e []map[string]any) { e[0]["encrypted"], e[1]["encrypted"] = e[1]["encrypted"], e[0]["encrypted"] },
		"of another type":             func(e []map[string]any) { e[0]["encrypted"] = e[2]["encrypted"] },
		"another id":                  func(e []map[string]any) { e[0]["id"] = "7" },
		"another name":                func(e []map[string]any) { e[0]["name"] = "Production" },
		"another type":                func(e []map[string]any) { e[0]["type"] = "httpHeaderAuth" },
		"another nonce":               func(e []map[string]any) { envelope(e[0])["nonce"] = envelope(e[1])["nonce"] },
		"a short nonce":               func(e []map[string]any) { envelope(e[0])["nonce"] = "AAAA" },
		"no ciphertext":               func(e []map[string]any) { envelope(e[0])["ciphertext"] = "" },
		"an altered bit": func(e []map[string]any) {
			text := envelope(e[0])["ciphertext"].(string)
			first := map[bool]string{true: "B", false: "A"}[text[0] == 'A']
			envelope(e[0])["ciphertext"] = first + text[1:]
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := encrypted(t, keys)
			edit(t, path, change)
			_, err := Open(path, keys, nil)
			require.ErrorIs(t, err, ErrAltered)
		})
	}
	path := encrypted(t, keys)
	edit(t, path, func(e []map[string]any) { envelope(e[0])["alg"] = "none" })
	_, err := Open(path, keys, nil)
	require.ErrorContains(t, err, `encrypted with "none"`)
}

func TestRotation(t *testing.T) {
	old, both := newKeys(t, 1), newKeys(t, 1)
	both = append(both, old...)
	path := encrypted(t, old)
	_, err := Open(path, Keys{old[0], both[0]}, nil)
	require.NoError(t, err, "workers that know the new key already")
	f, err := Read(path)
	require.NoError(t, err)
	n, err := f.Rotate(both)
	require.NoError(t, err)
	require.Equal(t, 3, n)
	require.NoError(t, f.Write(path))
	_, err = Open(path, both[:1], nil)
	require.NoError(t, err, "the old key is not needed any more")
	_, err = Open(path, old, nil)
	require.ErrorIs(t, err, ErrNoKey)
	n, err = f.Rotate(both)
	require.NoError(t, err)
	require.Zero(t, n, "once is enough")

	before := *f.Entries[0].Encrypted
	_, err = f.Rotate(newKeys(t, 1))
	require.ErrorIs(t, err, ErrNoKey)
	require.Equal(t, before, *f.Entries[0].Encrypted, "nothing is changed when one cannot be opened")
	_, err = f.Rotate(nil)
	require.ErrorContains(t, err, "reprise credentials keygen")
}

func TestMixedFileKeepsWhatItDoesNotKnow(t *testing.T) {
	keys := newKeys(t, 1)
	path := encrypted(t, keys)
	edit(t, path, func(e []map[string]any) {
		e[1] = map[string]any{"id": "9", "name": "New", "type": "httpBearerAuth", "data": map[string]any{"token": "fresh"}, "createdAt": "today"}
	})
	s, err := Open(path, keys, nil)
	require.NoError(t, err)
	got, err := s.Get(t.Context(), "httpBearerAuth", workflow.CredentialRef{ID: "9"})
	require.NoError(t, err)
	require.Equal(t, "fresh", got["token"])
	f, err := Read(path)
	require.NoError(t, err)
	n, err := f.Encrypt(keys)
	require.NoError(t, err)
	require.Equal(t, 1, n)
	require.NoError(t, f.Write(path))
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Contains(t, string(data), `"createdAt": "today"`)
	require.NotContains(t, string(data), "fresh")
}

func TestModesOfPlainFiles(t *testing.T) {
	for name, c := range map[string]struct {
		mode    os.FileMode
		keys    Keys
		warning string
	}{
		"for its owner":       {0o600, nil, ""},
		"for its group":       {0o640, nil, ""},
		"for everybody":       {0o644, nil, "everybody may read"},
		"although there is a": {0o600, newKeys(t, 1), "although there is a key"},
	} {
		core, logs := observer.New(zap.WarnLevel)
		_, err := Open(write(t, export, c.mode), c.keys, zap.New(core))
		require.NoError(t, err, name)
		if c.warning == "" {
			require.Zero(t, logs.Len(), name)
			continue
		}
		require.Equal(t, 1, logs.Len(), name)
		require.Contains(t, logs.All()[0].Message, c.warning)
	}
	_, err := Open(write(t, export, 0o646), nil, nil)
	require.ErrorContains(t, err, "can be changed by everybody; run: chmod o-w")
	keys := newKeys(t, 1)
	core, logs := observer.New(zap.DebugLevel)
	path := encrypted(t, keys)
	require.NoError(t, os.Chmod(path, 0o644))
	_, err = Open(path, keys, zap.New(core))
	require.NoError(t, err)
	require.Zero(t, logs.Len(), "who reads it reads nothing")
}

func TestFailedWriteLeavesTheFileAlone(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "credentials.json")
	require.NoError(t, os.MkdirAll(filepath.Join(path, "occupied"), 0o700)) // a directory cannot be replaced by a file
	f := &File{Entries: []*Entry{{ID: "1"}}}
	require.Error(t, f.Write(path))
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, 1, "no temporary file is left")
	require.ErrorIs(t, f.Write(filepath.Join(dir, "none", "c.json")), os.ErrNotExist)

	link, target := filepath.Join(dir, "link"), filepath.Join(dir, "target")
	require.NoError(t, os.WriteFile(target, []byte("[]"), 0o644))
	require.NoError(t, os.Symlink(target, link))
	require.NoError(t, f.Write(link))
	info, err := os.Lstat(link)
	require.NoError(t, err)
	require.NotZero(t, info.Mode()&os.ModeSymlink, "the link stays")
	data, err := os.ReadFile(target)
	require.NoError(t, err)
	require.Contains(t, string(data), `"id": "1"`)
}

func TestBadEntriesShowNoSecrets(t *testing.T) {
	for text, want := range map[string]string{
		`[{"id":"1","data":"sk-secret"}]`:                           "is encrypted by n8n",
		`[{"id":"1","data":["sk-secret"]}]`:                         `"data" that is no object`,
		`[{"id":["sk-secret"]}]`:                                    `bad "id"`,
		`[{"id":"1","encrypted":"sk-secret"}]`:                      `bad "encrypted"`,
		`[{"id":"1","data":{"a":"sk-secret"},"encrypted":{"v":1}}]`: "both",
		`[{"id":"1","data":{"a":"sk-secret"}},"sk-secret"]`:         "is not a JSON list",
		`{"id":"1","data":{"a":"sk-secret"}}`:                       "is not a JSON list",
	} {
		_, err := Read(write(t, text, 0o600))
		require.ErrorContains(t, err, want, text)
		require.NotContains(t, err.Error(), "sk-secret")
	}
}

func TestKeys(t *testing.T) {
	keys := newKeys(t, 3)
	text := "# keys\n" + keys[0].Text() + " # new\n\n" + strings.TrimRight(keys[1].Text(), "=") + "," + strings.NewReplacer("+", "-", "/", "_").Replace(keys[2].Text()) + "\r\n"
	parsed, err := ParseKeys(text)
	require.NoError(t, err)
	require.Len(t, parsed, 3)
	for i := range keys {
		require.Equal(t, keys[i].ID, parsed[i].ID)
	}
	inHex, err := ParseKeys(strings.Repeat("0f", 32))
	require.NoError(t, err)
	require.Len(t, inHex, 1)
	for _, bad := range []string{"my-password", strings.Repeat("0f", 16), "AAAA"} {
		_, err = ParseKeys(keys[0].Text() + " " + bad)
		require.ErrorContains(t, err, "credentials key 2 is not 32 bytes")
		require.NotContains(t, err.Error(), bad)
	}
	t.Setenv(EnvKey, keys[0].Text())
	got, err := EnvironmentKeys()
	require.NoError(t, err)
	require.Equal(t, keys[0].ID, got[0].ID)
	file := filepath.Join(t.TempDir(), "key")
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	t.Setenv(EnvKeyFile, file)
	_, err = EnvironmentKeys()
	require.ErrorContains(t, err, "both set")
	t.Setenv(EnvKey, "")
	got, err = EnvironmentKeys()
	require.NoError(t, err)
	require.Len(t, got, 3)
}

func TestSecretsOfCredentials(t *testing.T) {
	for _, c := range []struct {
		kind, data string
		want       []string
	}{
		{"openAiApi", `{"apiKey":"sk-1","url":"http://host/v1","organizationId":"org","header":true,"headerName":"X","headerValue":"hv"}`, []string{"sk-1", "hv"}},
		{"httpHeaderAuth", `{"name":"Authorization","value":"Bearer abc"}`, []string{"Bearer abc", "abc"}},
		{"httpBasicAuth", `{"user":"ada","password":"pw"}`, []string{"pw"}},
		{"httpQueryAuth", `{"name":"key","value":" v "}`, []string{" v ", "v"}},
		{"httpCustomAuth", `{"json":"{\"headers\":{\"X\":\"h\"},\"qs\":{\"k\":7},\"body\":{\"deep\":[{\"b\":\"x\"}]}}"}`, []string{"h", "7", "x"}},
		{"smtp", `{"host":"mail","port":465,"secure":true,"user":"ada","password":"pw"}`, []string{"pw"}},
		{"oAuth2Api", `{"clientId":"c","clientSecret":"cs","accessTokenUrl":"https://idp/t","oauthTokenData":{"access_token":"at","token_type":"Bearer"}}`, []string{"cs", "at"}},
		{"postgres", `{"host":"db","password":12345678,"port":5432}`, []string{"12345678"}},
		{"slackApi", `{"webhookUrl":"https://hooks/T/B/x"}`, []string{"https://hooks/T/B/x"}},
		{"redis", `{"url":"redis://u:pw@host/0"}`, []string{"pw"}},
		{"unknownApi", `{"whatever":"x"}`, []string{"x"}},
	} {
		var data map[string]any
		require.NoError(t, json.Unmarshal([]byte(c.data), &data))
		require.ElementsMatch(t, c.want, Secrets(c.kind, data), c.kind)
	}
}
