package redistest

import (
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"
)

// A server that finds its port taken is not mistaken for the one that has it.
func TestTakenPort(t *testing.T) {
	t.Parallel()
	binary, err := exec.LookPath("redis-server")
	require.NoError(t, err)
	first := Start(t)
	second := &Server{binary: binary, dir: t.TempDir(), port: first.port}
	second.mu.Lock()
	defer second.mu.Unlock()
	require.ErrorContains(t, second.launch(), "Address already in use")
}
