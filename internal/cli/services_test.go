package cli

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-engine/reprise/internal/service"
)

func TestHealthcheckTellsContainersZeroOrOne(t *testing.T) {
	var status atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/readyz" {
			http.NotFound(w, r)
			return
		}
		w.WriteHeader(int(status.Load()))
	}))
	t.Cleanup(server.Close)
	ask := func(args ...string) int {
		root := Root()
		root.SetArgs(append([]string{"healthcheck"}, args...))
		return execute(context.Background(), root)
	}
	status.Store(http.StatusOK)
	require.Equal(t, service.ExitOK, ask("--metrics-addr", server.Listener.Addr().String()))
	require.Equal(t, service.ExitOK, ask("--url", server.URL+"/readyz"))
	require.Equal(t, service.ExitFailed, ask("--url", server.URL+"/other"))
	status.Store(http.StatusServiceUnavailable)
	require.Equal(t, service.ExitFailed, ask("--metrics-addr", server.Listener.Addr().String()))
	server.Close()
	require.Equal(t, service.ExitFailed, ask("--metrics-addr", server.Listener.Addr().String()))
	require.Equal(t, service.ExitFailed, ask("--url", server.URL+"/readyz"))
}

// coordinator and worker take the flags of their programs, which read the environment.
func TestServicesAreCommands(t *testing.T) {
	for name := range services {
		root := Root()
		root.SetArgs([]string{name, "--help"})
		require.Equal(t, service.ExitOK, execute(context.Background(), root), name)
		root = Root()
		root.SetArgs([]string{name, "--no-such-flag"})
		require.Equal(t, service.ExitUsage, execute(context.Background(), root), name)
	}
}
