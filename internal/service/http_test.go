package service

import (
	"bytes"
	"context"
	"encoding/hex"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/reprise-engine/reprise/internal/embedded"
	"github.com/reprise-engine/reprise/internal/redistest"
	"github.com/reprise-engine/reprise/pkg/state"
)

func TestMain(m *testing.M) { os.Exit(redistest.Main(m)) }

func TestPublicURL(t *testing.T) {
	for _, test := range []struct{ addr, public, want, problem string }{
		{"127.0.0.1:8484", "", "http://127.0.0.1:8484", ""},
		{":8484", "", "http://localhost:8484", ""},
		{"0.0.0.0:8484", "", "http://localhost:8484", ""},
		{"[::1]:8484", "", "http://[::1]:8484", ""},
		{"", "https://flows.example.com/base", "https://flows.example.com/base", ""},
		{"8484", "", "", "REPRISE_HTTP_ADDR"},
		{"127.0.0.1:0", "", "", "REPRISE_PUBLIC_URL must say"},
		{"127.0.0.1:0", "flows.example.com", "", "REPRISE_PUBLIC_URL"},
		{"", "ftp://flows.example.com", "", "REPRISE_PUBLIC_URL"},
		{"", "https://flows.example.com/?a=b", "", "REPRISE_PUBLIC_URL"},
	} {
		got, err := publicURL(Coordinator{HTTPAddr: test.addr, PublicURL: test.public})
		if test.problem != "" {
			require.ErrorContains(t, err, test.problem, "%+v", test)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, test.want, got)
	}
}

func TestSigningKey(t *testing.T) {
	key, err := keyBytes("REPRISE_SIGNING_KEY", "")
	require.NoError(t, err)
	require.Nil(t, key)
	raw := bytes.Repeat([]byte{7}, 32)
	key, err = keyBytes("REPRISE_SIGNING_KEY", hex.EncodeToString(raw))
	require.NoError(t, err)
	require.Equal(t, raw, key)
	text := strings.Repeat("a text ", 5)
	key, err = keyBytes("REPRISE_SIGNING_KEY", text)
	require.NoError(t, err)
	require.Equal(t, []byte(text), key)
	_, err = keyBytes("REPRISE_SIGNING_KEY", "abcdef-secret")
	require.ErrorContains(t, err, "at least 32")
	require.NotContains(t, err.Error(), "secret")
}

// Without a configured key all coordinators sign with the one that Redis keeps.
func TestSigningKeyIsShared(t *testing.T) {
	store, err := state.Open(t.Context(), state.Config{URL: redistest.Shared(t).URL(), Prefix: fmt.Sprintf("key-%d", time.Now().UnixNano())})
	require.NoError(t, err)
	defer func() { require.NoError(t, store.Close()) }()
	none, err := linkSigner(t.Context(), Coordinator{}, store)
	require.NoError(t, err)
	require.Nil(t, none)
	settings := Coordinator{PublicURL: "http://public"}
	first, err := linkSigner(t.Context(), settings, store)
	require.NoError(t, err)
	second, err := linkSigner(t.Context(), settings, store)
	require.NoError(t, err)
	require.Equal(t, first.ResumeURL("e", 1), second.ResumeURL("e", 1))
	settings.SigningKey = strings.Repeat("k", 32)
	other, err := linkSigner(t.Context(), settings, store)
	require.NoError(t, err)
	require.NotEqual(t, first.ResumeURL("e", 1), other.ResumeURL("e", 1))
}

// A coordinator with an HTTP address answers links there until it is stopped.
func TestCoordinatorServesLinks(t *testing.T) {
	server, err := embedded.StartNATS(t.TempDir(), embedded.NATSOptions{})
	require.NoError(t, err)
	defer server.Shutdown()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	addr := listener.Addr().String()
	require.NoError(t, listener.Close())
	p, err := StartCoordinator(t.Context(), Coordinator{
		NATSURL: server.URL, RedisURL: redistest.Shared(t).URL(), Retention: time.Hour, DeliveryLimit: 3,
		SweepAfter: 15 * time.Second, StreamReplica: 1, HTTPAddr: addr,
	}, zap.NewNop())
	require.NoError(t, err)
	get := func(path string) (int, error) {
		r, err := http.Get("http://" + addr + path)
		if err != nil {
			return 0, err
		}
		return r.StatusCode, r.Body.Close()
	}
	status, err := get("/approval/nobody_1?signature=forged.00")
	require.NoError(t, err)
	require.Equal(t, http.StatusForbidden, status)
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	p.Stop(ctx)
	_, err = get("/")
	require.Error(t, err)
}
