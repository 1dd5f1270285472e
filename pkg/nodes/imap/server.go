package imap

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	goimap "github.com/emersion/go-imap/v2"
	"github.com/emersion/go-imap/v2/imapclient"

	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/node"
)

const (
	credentialType = "imap"
	dialTimeout    = 30 * time.Second
)

// server is a mail server and who logs in there.
type server struct {
	host, user, password string
	port                 int
	// secure: the connection is encrypted from the start; trustAny accepts any certificate.
	secure, trustAny bool
}

func (s *server) address() string { return net.JoinHostPort(s.host, strconv.Itoa(s.port)) }

// findServer reads the node's credential, {"host", "port", "secure", "allowUnauthorizedCerts",
// "user", "password"}.
func findServer(ctx context.Context, call *node.Call) (*server, error) {
	ref, ok := call.Node.Credentials[credentialType]
	if !ok {
		return nil, node.OperationError(-1, fmt.Sprintf("%q has no mail server", call.Node.Name), "Set a credential of type imap on the node.")
	}
	if call.Credentials == nil {
		return nil, node.OperationError(-1, "credentials are not available here", "")
	}
	data, err := call.Credentials(ctx, credentialType, ref)
	if err != nil {
		return nil, fmt.Errorf("credential %q of type %s: %w", ref.Name, credentialType, err)
	}
	text := func(name string) string {
		if v, ok := data[name]; ok && v != nil {
			return strings.TrimSpace(fmt.Sprint(v))
		}
		return ""
	}
	s := &server{
		host: text("host"), user: text("user"), port: 993,
		secure: text("secure") != "false", trustAny: text("allowUnauthorizedCerts") == "true",
	}
	s.password, _ = data["password"].(string)
	if s.host == "" {
		return nil, node.OperationError(-1, fmt.Sprintf("Credential %q (imap) names no host", ref.Name), "")
	}
	if port := text("port"); port != "" {
		if s.port, err = strconv.Atoi(port); err != nil || s.port < 1 || s.port > 65535 {
			return nil, node.OperationError(-1, fmt.Sprintf("Credential %q (imap) has the port %q; want a number from 1 to 65535", ref.Name, port), "")
		}
	}
	return s, nil
}

// connection is a connection that is logged in, until close or the end of its context.
type connection struct {
	*imapclient.Client
	forget func() bool
}

func (c *connection) close() {
	c.forget()
	_ = c.Logout().Wait()
	_ = c.Close()
}

// connect logs in. The password goes over an encrypted connection only, or to this machine.
func (s *server) connect(ctx context.Context) (*connection, error) {
	c, raw, err := s.open(ctx, false)
	if err == nil && !s.secure && c.Caps().Has(goimap.CapStartTLS) {
		c.forget()
		_ = c.Close()
		c, _, err = s.open(ctx, true)
	} else if err == nil && !s.secure && !isLoopback(raw.RemoteAddr()) {
		c.close()
		return nil, s.failure("the server offers no encryption, so the password was not sent; turn on SSL/TLS in the credential", nil)
	}
	if err != nil {
		return nil, s.failure("it cannot be reached", err)
	}
	if err := c.Login(s.user, s.password).Wait(); err != nil {
		c.forget()
		_ = c.Close()
		return nil, s.failure("it refused the login; check user and password of the credential", err)
	}
	return c, nil
}

func (s *server) open(ctx context.Context, startTLS bool) (*connection, net.Conn, error) {
	dialer := net.Dialer{Timeout: dialTimeout}
	raw, err := dialer.DialContext(ctx, "tcp", s.address())
	if err != nil {
		return nil, nil, err
	}
	config := &tls.Config{
		ServerName: s.host, MinVersion: tls.VersionTLS12, NextProtos: []string{"imap"},
		InsecureSkipVerify: s.trustAny, //nolint:gosec // the credential's owner chose it
	}
	c := &connection{forget: context.AfterFunc(ctx, func() { _ = raw.Close() })}
	options := &imapclient.Options{TLSConfig: config}
	switch {
	case s.secure:
		encrypted := tls.Client(raw, config)
		if err = encrypted.HandshakeContext(ctx); err == nil {
			c.Client = imapclient.New(encrypted, options)
		}
	case startTLS:
		c.Client, err = imapclient.NewStartTLS(raw, options)
	default:
		c.Client = imapclient.New(raw, options)
	}
	if err == nil {
		err = c.WaitGreeting()
	}
	if err != nil {
		c.forget()
		_ = raw.Close()
		return nil, nil, err
	}
	return c, raw, nil
}

func isLoopback(a net.Addr) bool {
	tcp, ok := a.(*net.TCPAddr)
	return ok && tcp.IP.IsLoopback()
}

// failure is what a person is told, without the password.
func (s *server) failure(what string, err error) error {
	failure := &engine.NodeError{Name: "NodeApiError", Message: fmt.Sprintf("The mail server %s: %s", s.address(), what)}
	if err != nil {
		failure.Description = err.Error()
		if len(s.password) >= 4 {
			failure.Description = strings.ReplaceAll(failure.Description, s.password, "[secret]")
		}
	}
	return failure
}
