// Package health serves a process's /healthz and /readyz, and what else operators read there.
package health

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"
)

// Server answers health questions over HTTP.
type Server struct {
	http     *http.Server
	listener net.Listener
}

// checkTimeout bounds one readiness check, so that a black hole reads as "not
// ready" and not as silence.
const checkTimeout = 2 * time.Second

// Page is something else to be read at the same address, such as metrics.
type Page struct {
	Path    string // "/metrics"
	Handler http.Handler
}

// Serve listens on addr ("127.0.0.1:8081") and answers until Close. /healthz says that
// the process runs; /readyz is 200 when check returns nil and 503 with its text
// when not.
func Serve(addr string, check func(context.Context) error, pages ...Page) (*Server, error) {
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("listen for health checks: %w", err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), checkTimeout)
		defer cancel()
		if err := check(ctx); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "ready")
	})
	for _, p := range pages {
		mux.Handle("GET "+p.Path, p.Handler)
	}
	s := &Server{http: &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}, listener: listener}
	go func() { _ = s.http.Serve(listener) }() // returns when Close closes the listener
	return s, nil
}

// Addr is the address that is listened on.
func (s *Server) Addr() string { return s.listener.Addr().String() }

// Close stops answering.
func (s *Server) Close() error { return s.http.Close() }

// Probe asks a process on this machine whether it is ready: the health check
// of a container.
func Probe(ctx context.Context, addr string) error {
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		return fmt.Errorf("health address %q: %w", addr, err)
	}
	return Ask(ctx, "http://127.0.0.1:"+port+"/readyz")
}

// Ask asks a URL, which must answer with 200.
func Ask(ctx context.Context, url string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return errors.New("not ready: " + resp.Status)
	}
	return nil
}
