package cli

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/reprise-engine/reprise/internal/service"
)

func TestImportCurl(t *testing.T) {
	line := `curl 'https://example.com' -u ada:pw`
	o := reprise(t, "import-curl", line)
	require.Equal(t, service.ExitOK, o.code, o.stderr)
	assert.Contains(t, o.stdout, `"url": "https://example.com"`)
	assert.Contains(t, o.stderr, "a credential")
	assert.Equal(t, o.stdout, repriseWith(t, line+"\n", "import-curl", "-").stdout)
	assert.Equal(t, o.stdout, reprise(t, "import-curl", "--", "curl", "https://example.com", "-u", "ada:pw").stdout)
	reprise(t, "import-curl", "curl --frobnicate x").failed(t, service.ExitUsage, "--frobnicate")
	reprise(t, "import-curl", " ").failed(t, service.ExitUsage, "empty")
}

// What the workflow sends is what curl would have.
func TestImportCurlRuns(t *testing.T) {
	var got *http.Request
	var fields map[string][]string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = r.ParseForm()
		got, fields = r, r.PostForm
		_, _ = w.Write([]byte(`{"ok":true}`))
	}))
	defer server.Close()
	o := reprise(t, "import-curl", "--workflow", "curl -X PATCH '"+server.URL+"/x?y=1' -H 'X-Key: k' -d 'a=1&b=x+y'")
	require.Equal(t, service.ExitOK, o.code, o.stderr)
	file := filepath.Join(t.TempDir(), "flow.json")
	require.NoError(t, os.WriteFile(file, []byte(o.stdout), 0o600))
	ran := reprise(t, "run", file)
	require.Equal(t, service.ExitOK, ran.code, ran.stdout+ran.stderr)
	assert.Equal(t, "PATCH /x?y=1", got.Method+" "+got.URL.String())
	assert.Equal(t, "k", got.Header.Get("X-Key"))
	assert.Equal(t, map[string][]string{"a": {"1"}, "b": {"x y"}}, fields)
}
