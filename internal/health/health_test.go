package health

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestReadyTellsTheTruth(t *testing.T) {
	var broken atomic.Bool
	s, err := Serve("127.0.0.1:0", func(context.Context) error {
		if broken.Load() {
			return errors.New("redis: away")
		}
		return nil
	})
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	get := func(path string) (int, string) {
		resp, err := http.Get("http://" + s.Addr() + path)
		require.NoError(t, err)
		defer func() { _ = resp.Body.Close() }()
		body, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		return resp.StatusCode, string(body)
	}
	status, _ := get("/readyz")
	require.Equal(t, http.StatusOK, status)
	require.NoError(t, Probe(t.Context(), s.Addr()))
	broken.Store(true)
	status, body := get("/readyz")
	require.Equal(t, http.StatusServiceUnavailable, status)
	require.Equal(t, "redis: away\n", body)
	require.Error(t, Probe(t.Context(), s.Addr()))
	status, _ = get("/healthz")
	require.Equal(t, http.StatusOK, status, "the process still runs")
}

func TestPortInUse(t *testing.T) {
	s, err := Serve("127.0.0.1:0", func(context.Context) error { return nil })
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	_, err = Serve(s.Addr(), nil)
	require.ErrorContains(t, err, "listen for health checks")
}
