package api

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"go.uber.org/zap"
)

// Limits of the server. There is none on a whole call, because an answer may wait for an
// execution's end; what reads a body sets its own.
const (
	headerTimeout  = 10 * time.Second
	idleTimeout    = 2 * time.Minute
	maxHeaderBytes = 64 << 10
)

// Serve listens on addr ("127.0.0.1:5680"; port 0 takes a free one) and serves h until
// stop is called. url is where it can be reached from this machine. stop takes no more calls and
// lets those in work end until its context does, then breaks them off; it may be repeated.
// Calls are also broken off when ctx ends.
func Serve(ctx context.Context, addr string, h http.Handler, log *zap.Logger) (stop func(context.Context), url string, err error) {
	if log == nil {
		log = zap.NewNop()
	}
	log = log.Named("api")
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, "", fmt.Errorf("listen for HTTP on %s: %w", addr, err)
	}
	errorLog, err := zap.NewStdLogAt(log, zap.WarnLevel)
	if err != nil {
		_ = listener.Close()
		return nil, "", fmt.Errorf("make the log of the HTTP server: %w", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	server := &http.Server{
		Handler:           h,
		ReadHeaderTimeout: headerTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		BaseContext:       func(net.Listener) context.Context { return ctx },
		ErrorLog:          errorLog,
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			log.Error("HTTP server ended", zap.Error(err))
		}
	}()
	stop = func(within context.Context) {
		if err := server.Shutdown(within); err != nil {
			cancel()
			_ = server.Close()
		}
		cancel()
		<-done
	}
	return stop, "http://" + reachable(listener.Addr()), nil
}

// reachable is an address to dial for one that is listened on.
func reachable(addr net.Addr) string {
	host, port, err := net.SplitHostPort(addr.String())
	if err != nil {
		return addr.String()
	}
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return net.JoinHostPort(host, port)
}
