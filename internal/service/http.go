package service

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"net"
	"net/url"
	"time"

	"go.uber.org/zap"

	"github.com/reprise-engine/reprise/internal/api"
	"github.com/reprise-engine/reprise/internal/links"
	"github.com/reprise-engine/reprise/internal/trigger"
	"github.com/reprise-engine/reprise/pkg/queue"
	"github.com/reprise-engine/reprise/pkg/state"
)

// secretSigningKey is the name under which Redis keeps the key of the links.
const secretSigningKey = "signing-key"

// linkSigner makes what signs links; nil when there is neither an HTTP address nor a
// public URL, so that there are no links.
func linkSigner(ctx context.Context, s Coordinator, store *state.Store) (*links.Signer, error) {
	if s.HTTPAddr == "" && s.PublicURL == "" {
		return nil, nil
	}
	public, err := publicURL(s)
	if err != nil {
		return nil, err
	}
	key, err := keyBytes("REPRISE_SIGNING_KEY", s.SigningKey)
	if err != nil {
		return nil, err
	}
	if key == nil {
		proposal := make([]byte, links.MinKeyBytes)
		_, _ = rand.Read(proposal) // never fails
		if key, err = store.Secret(ctx, secretSigningKey, proposal); err != nil {
			return nil, err
		}
		if len(key) < links.MinKeyBytes {
			return nil, fmt.Errorf("the signing key in redis has %d bytes instead of %d: remove it, or set REPRISE_SIGNING_KEY", len(key), links.MinKeyBytes)
		}
	}
	return links.New(key, public), nil
}

// publicURL is where people reach the HTTP address: as it is set, else that address.
func publicURL(s Coordinator) (string, error) {
	if s.PublicURL != "" {
		u, err := url.Parse(s.PublicURL)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "" {
			return "", fmt.Errorf("REPRISE_PUBLIC_URL %q: it must be an address such as https://flows.example.com, perhaps with a path", s.PublicURL)
		}
		return s.PublicURL, nil
	}
	host, port, err := net.SplitHostPort(s.HTTPAddr)
	if err != nil {
		return "", fmt.Errorf("REPRISE_HTTP_ADDR %q: it must be host:port, such as 127.0.0.1:8484: %w", s.HTTPAddr, err)
	}
	if port == "0" {
		return "", fmt.Errorf("REPRISE_HTTP_ADDR %q: with any free port, REPRISE_PUBLIC_URL must say how it is reached", s.HTTPAddr)
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "localhost"
	}
	return "http://" + net.JoinHostPort(host, port), nil
}

// keyBytes reads a configured key: the bytes that hex stands for, else the text
// itself. nil when there is none. The error names the setting and does not show it.
func keyBytes(setting, text string) ([]byte, error) {
	if text == "" {
		return nil, nil
	}
	if key, err := hex.DecodeString(text); err == nil && len(key) >= links.MinKeyBytes {
		return key, nil
	}
	if len(text) < links.MinKeyBytes {
		return nil, fmt.Errorf("%s has %d bytes, at least %d are needed: `openssl rand -hex 32` makes one", setting, len(text), links.MinKeyBytes)
	}
	return []byte(text), nil
}

// httpGrace is how long calls that are being answered may take when the process
// stops; those that wait for an execution's end are broken off.
const httpGrace = 2 * time.Second

// serveHTTP answers the links that executions hand out. It asks any coordinator,
// over NATS, as the links may lead to another process than the one that made them.
func serveHTTP(addr string, conn *queue.Conn, signer *links.Signer, triggers *trigger.Host, log *zap.Logger) (stop func(context.Context), err error) {
	if addr == "" {
		return func(context.Context) {}, nil
	}
	handler := withTriggers(api.Handler(api.Config{Backend: conn, Signer: signer, Credentials: triggers.Credentials, Log: log}), triggers, signer.PublicURL())
	stopServer, at, err := api.Serve(context.Background(), addr, handler, log)
	if err != nil {
		return nil, err
	}
	log.Info("approvals and webhooks are answered", zap.String("url", at), zap.String("public_url", signer.PublicURL()))
	return func(ctx context.Context) {
		ctx, cancel := context.WithTimeout(ctx, httpGrace)
		defer cancel()
		stopServer(ctx)
	}, nil
}
