package cluster

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	toxiproxy "github.com/Shopify/toxiproxy/v2"
	"github.com/rs/zerolog"
)

// Link is a network way to a server that can be slow, swallow everything, or be
// cut: a toxiproxy.
type Link struct {
	t     testing.TB
	proxy *toxiproxy.Proxy
}

// NewLink opens a way to the server at addr (host:port). It ends with the test.
func NewLink(t testing.TB, addr string) *Link {
	t.Helper()
	server := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop())
	proxy := toxiproxy.NewProxy(server, "link", fmt.Sprintf("127.0.0.1:%d", FreePort(t)), addr)
	if err := proxy.Start(); err != nil {
		t.Fatalf("start toxiproxy: %v", err)
	}
	t.Cleanup(proxy.Stop)
	return &Link{t: t, proxy: proxy}
}

// Addr is where the server is reached through the link.
func (l *Link) Addr() string { return l.proxy.Listen }

// BlackHole swallows everything both ways, on old and new connections, which stay
// open, until Heal.
func (l *Link) BlackHole() {
	l.t.Helper()
	for _, way := range []string{"upstream", "downstream"} {
		l.toxic(`{"name":"hole-%s","type":"timeout","stream":"%s","attributes":{"timeout":0}}`, way, way)
	}
}

// Slow delays everything that the server says until Heal.
func (l *Link) Slow(by, jitter time.Duration) {
	l.t.Helper()
	l.toxic(`{"name":"slow","type":"latency","stream":"downstream","attributes":{"latency":%d,"jitter":%d}}`, by.Milliseconds(), jitter.Milliseconds())
}

// Heal ends BlackHole and Slow. Connections whose bytes were swallowed are closed.
func (l *Link) Heal() {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	l.proxy.Toxics.ResetToxics(ctx)
}

// Cut closes all connections and refuses new ones until Mend.
func (l *Link) Cut() { l.proxy.Stop() }

// Mend ends Cut.
func (l *Link) Mend() {
	l.t.Helper()
	if err := l.proxy.Start(); err != nil {
		l.t.Fatalf("start toxiproxy again: %v", err)
	}
}

func (l *Link) toxic(format string, args ...any) {
	l.t.Helper()
	if _, err := l.proxy.Toxics.AddToxicJson(strings.NewReader(fmt.Sprintf(format, args...))); err != nil {
		l.t.Fatalf("add toxic: %v", err)
	}
}
