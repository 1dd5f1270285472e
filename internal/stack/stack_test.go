package stack

import (
	"net"
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestHTTP: one coordinator of several listens, and its address is the public URL
// unless another one is given.
func TestHTTP(t *testing.T) {
	t.Parallel()
	s, err := Start(t.Context(), Config{Coordinators: 2, Workers: -1, HTTPAddr: "127.0.0.1:0"})
	require.NoError(t, err)
	t.Cleanup(s.Stop)
	require.Regexp(t, `^http://127\.0\.0\.1:\d+$`, s.PublicURL)
	answer, err := http.Get(s.PublicURL + "/approval/nobody_1")
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	assert.Contains(t, []int{http.StatusForbidden, http.StatusNotFound}, answer.StatusCode)
}

func TestPublicURL(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name           string
		config         Config
		listen, public string // regular expressions
	}{
		{"off", Config{}, `^$`, `^$`},
		{"others listen", Config{PublicURL: "https://flows.example.com/"}, `^$`, `^https://flows\.example\.com$`},
		{"any port", Config{HTTPAddr: "127.0.0.1:0"}, `^127\.0\.0\.1:[1-9]\d*$`, `^http://127\.0\.0\.1:[1-9]\d*$`},
		{"all interfaces", Config{HTTPAddr: "0.0.0.0:0"}, `^0\.0\.0\.0:[1-9]\d*$`, `^http://127\.0\.0\.1:[1-9]\d*$`},
		{"behind a proxy", Config{HTTPAddr: "127.0.0.1:0", PublicURL: "https://flows.example.com"}, `^127\.0\.0\.1:[1-9]\d*$`, `^https://flows\.example\.com$`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := &Stack{}
			listen, err := s.public(c.config)
			require.NoError(t, err)
			assert.Regexp(t, c.listen, listen)
			assert.Regexp(t, c.public, s.PublicURL)
		})
	}
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = taken.Close() })
	_, err = new(Stack).public(Config{HTTPAddr: taken.Addr().String()})
	assert.ErrorContains(t, err, "cannot be used")
	_, err = new(Stack).public(Config{HTTPAddr: "8484"})
	assert.ErrorContains(t, err, "use host:port")
}
