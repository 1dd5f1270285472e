package cli

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"
)

func TestCredentialsImport(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	key, into := filepath.Join(dir, "key"), filepath.Join(dir, "credentials.json")
	require.Zero(t, reprise(t, "credentials", "keygen", "--out", key).code)
	// The members that n8n writes beside those that are needed are kept.
	export := `[{"updatedAt":"2025-01-01T00:00:00.000Z","id":"a1","name":"Main","data":{"apiKey":"sk-secret-value"},"type":"openAiApi","isManaged":false}]`
	o := repriseWith(t, export, "credentials", "import", "-", "--into", into, "--key-file", key)
	require.Zero(t, o.code, o.stderr)
	assert.Contains(t, o.stdout, "1 credentials added, 0 replaced, 0 were there already")
	written, err := os.ReadFile(into)
	require.NoError(t, err)
	assert.NotContains(t, string(written), "sk-secret")
	assert.Equal(t, "a1", gjson.GetBytes(written, "0.id").String())

	separate := filepath.Join(dir, "separate")
	require.NoError(t, os.Mkdir(separate, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(separate, "a1.json"), []byte(`{"id":"a1","name":"Renamed","type":"openAiApi","data":{"apiKey":"sk-secret-two"}}`), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(separate, "b.json"), []byte(`{"id":"b","name":"B","type":"smtp","data":{"password":"sk-secret-b"}}`), 0o600))
	o = reprise(t, "credentials", "import", separate, "--into", into, "--key-file", key)
	assert.Contains(t, o.stdout, "1 credentials added, 0 replaced, 1 were there already")
	o = reprise(t, "credentials", "import", separate, "--into", into, "--key-file", key, "--replace")
	assert.Contains(t, o.stdout, "0 credentials added, 2 replaced, 0 were there already")
	o = reprise(t, "credentials", "list", into, "--key-file", key, "--output", "json")
	assert.Equal(t, `["Renamed","B"]`, gjson.Get(o.stdout, "#.name").Raw)
	assert.Equal(t, `["ok","ok"]`, gjson.Get(o.stdout, "#.status").Raw)

	for bad, want := range map[string]string{
		`{"id":"1","name":"x","type":"t","data":"U2FsdGVkX1sk-secret"}`: "is encrypted by n8n",
		`[{"id":"1","name":"x","data":{"k":"sk-secret"}}]`:              "has no type",
		`[{"id":"1","name":"x","type":"t"}]`:                            "has no data",
		`[{"id":{"k":"sk-secret"}}]`:                                    `has a bad "id"`,
		`sk-secret`:                                                     "not a JSON list",
	} {
		o := repriseWith(t, bad, "credentials", "import", "-", "--into", into, "--key-file", key)
		assert.NotContains(t, o.stdout+o.stderr, "sk-secret")
		o.failed(t, 2, want)
	}
	repriseWith(t, export, "credentials", "import", "-", "--into", filepath.Join(dir, "new.json")).failed(t, 2, "there is no key")
	require.Zero(t, repriseWith(t, export, "credentials", "import", "-", "--plain", "--into", filepath.Join(dir, "new.json")).code)
	reprise(t, "credentials", "import", t.TempDir(), "--into", into, "--key-file", key).failed(t, 2, "there are no files *.json")
}

func TestCredentialsTest(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/token" && r.FormValue("grant_type") == "client_credentials":
			_, _ = fmt.Fprint(w, `{"access_token":"sk-secret-token"}`)
		case r.URL.Path == "/away/models":
			http.Redirect(w, r, "/v1/models", http.StatusFound)
		case r.URL.Path == "/v1/models" && r.Header.Get("Authorization") == "Bearer sk-secret-good":
			_, _ = fmt.Fprint(w, `{"data":[]}`)
		default:
			http.Error(w, "no "+r.Header.Get("Authorization"), http.StatusUnauthorized)
		}
	}))
	defer server.Close()
	mailHost, mailPort := mailServer(t)
	path := file(t, strings.NewReplacer("BASE", server.URL, "MAILHOST", mailHost, "MAILPORT", mailPort).Replace(`[
		{"id":"1","name":"good","type":"openAiApi","data":{"apiKey":"sk-secret-good","url":"BASE/v1"}},
		{"id":"2","name":"bad","type":"openAiApi","data":{"apiKey":"sk-secret-bad","url":"BASE/v1"}},
		{"id":"3","name":"away","type":"openAiApi","data":{"apiKey":"sk-secret-good","url":"BASE/away"}},
		{"id":"4","name":"down","type":"openAiApi","data":{"apiKey":"sk-secret-good","url":"http://127.0.0.1:1"}},
		{"id":"5","name":"client","type":"oAuth2Api","data":{"grantType":"clientCredentials","accessTokenUrl":"BASE/token","clientId":"c","clientSecret":"sk-secret"}},
		{"id":"6","name":"token","type":"oAuth2Api","data":{"oauthTokenData":{"access_token":"sk-secret-at"}}},
		{"id":"7","name":"header","type":"httpHeaderAuth","data":{"name":"X","value":"sk-secret"}},
		{"id":"8","name":"dynamic","type":"openAiApi","data":{"apiKey":"={{ 'sk-secret' }}"}},
		{"id":"9","name":"mail","type":"smtp","data":{"host":"MAILHOST","port":MAILPORT,"secure":false,"user":"ada","password":"sk-secret-mail"}},
		{"id":"10","name":"wrong mail","type":"smtp","data":{"host":"MAILHOST","port":MAILPORT,"secure":false,"user":"ada","password":"sk-secret-wrong"}},
		{"id":"11","name":"nowhere","type":"wordpressApi","data":{"url":"::","username":"u","password":"sk-secret-wp"}}]`))
	for _, test := range []struct{ name, good, failure string }{
		{"good", `credential "good" (openAiApi) is good: `, ""},
		{"1", `credential "good" (openAiApi) is good: `, ""},
		{"bad", "", "refused it (status 401 Unauthorized)"},
		{"away", "", "302"},
		{"down", "", "connection refused"},
		{"client", "the service gave an access token", ""},
		{"token", "", "no way to another one"},
		{"header", "", "there is no test for this type"},
		{"dynamic", "", `field "apiKey" is an expression`},
		{"mail", "the mail server took the login", ""},
		{"wrong mail", "", "check user and password of the credential"},
		{"nowhere", "", "is no URL"},
		{"none", "", `there is no credential "none"`},
	} {
		o := reprise(t, "credentials", "test", test.name, "--file", path)
		assert.NotContains(t, o.stdout+o.stderr, "sk-secret", test.name)
		if test.failure != "" {
			assert.NotZero(t, o.code, test.name)
			assert.Contains(t, o.stderr, test.failure, test.name)
			continue
		}
		assert.Zero(t, o.code, o.stderr)
		assert.Contains(t, o.stdout, test.good)
	}
}

// mailServer takes the login of ada, and says her password back when it is wrong.
func mailServer(t *testing.T) (host, port string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	done := make(chan struct{})
	t.Cleanup(func() { _ = l.Close(); <-done })
	go func() {
		defer close(done)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			serveMail(conn)
		}
	}()
	host, port, err = net.SplitHostPort(l.Addr().String())
	require.NoError(t, err)
	return host, port
}

func serveMail(conn net.Conn) {
	defer conn.Close()
	_, _ = fmt.Fprint(conn, "220 mail.test\r\n")
	for lines := bufio.NewScanner(conn); lines.Scan(); {
		switch word, rest, _ := strings.Cut(lines.Text(), " "); strings.ToUpper(word) {
		case "EHLO":
			_, _ = fmt.Fprint(conn, "250-mail.test\r\n250 AUTH PLAIN\r\n")
		case "AUTH": // "\0ada\0sk-secret-mail"
			if rest == "PLAIN AGFkYQBzay1zZWNyZXQtbWFpbA==" {
				_, _ = fmt.Fprint(conn, "235 welcome\r\n")
				continue
			}
			_, _ = fmt.Fprint(conn, "535 not with sk-secret-wrong\r\n")
		case "QUIT":
			_, _ = fmt.Fprint(conn, "221 bye\r\n")
			return
		default:
			_, _ = fmt.Fprint(conn, "500 what?\r\n")
		}
	}
}
