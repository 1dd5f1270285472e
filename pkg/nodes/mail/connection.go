package mail

import (
	"context"
	"crypto/tls"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/wneessen/go-mail/smtp"
)

const (
	dialTimeout = 30 * time.Second
	// idleTimeout bounds the wait for one answer, and for one piece of a mail to be
	// taken.
	idleTimeout = 2 * time.Minute
)

// connection is an authenticated connection to a server.
type connection struct {
	server *server
	raw    net.Conn
	client *smtp.Client
	forget func() bool // of the context's end
}

// connect opens a connection that is closed when ctx ends.
func connect(ctx context.Context, s *server) (*connection, error) {
	dialer := net.Dialer{Timeout: dialTimeout}
	raw, err := dialer.DialContext(ctx, "tcp", s.address())
	if err != nil {
		return nil, s.unreachable(err)
	}
	c := &connection{server: s, raw: raw}
	c.forget = context.AfterFunc(ctx, func() { _ = raw.Close() })
	if err := c.open(ctx); err != nil {
		c.drop()
		return nil, err
	}
	return c, nil
}

func (c *connection) open(ctx context.Context) error {
	s := c.server
	config := &tls.Config{
		ServerName: s.host, MinVersion: tls.VersionTLS12,
		InsecureSkipVerify: s.trustAny, //nolint:gosec // the node's author chose it
	}
	conn := c.raw
	c.extend()
	if s.secure {
		encrypted := tls.Client(c.raw, config)
		if err := encrypted.HandshakeContext(ctx); err != nil {
			return s.notEncrypted(err)
		}
		conn = encrypted
	}
	var err error
	if c.client, err = smtp.NewClient(conn, s.host); err != nil {
		return s.unreachable(err)
	}
	c.extend()
	if err := c.client.Hello(s.name); err != nil {
		return s.unreachable(err)
	}
	if offered, _ := c.client.Extension("STARTTLS"); offered && !s.secure && !s.plain {
		c.extend()
		if err := c.client.StartTLS(config); err != nil {
			return s.notEncrypted(err)
		}
	}
	if s.user == "" && s.password == "" {
		return nil
	}
	return c.authenticate()
}

// authenticate logs in with the best mechanism that the server has.
func (c *connection) authenticate() error {
	s := c.server
	offered, mechanisms := c.client.Extension("AUTH")
	if !offered {
		return s.refusedLogin("the server offers no login; leave user and password of the credential empty if it needs none", nil)
	}
	_, encrypted := c.client.TLSConnectionState()
	if !encrypted && !s.plain && !isLoopback(c.raw.RemoteAddr()) {
		return s.refusedLogin("the server offers no encryption, so the password was not sent; use another port, or disable STARTTLS in the credential to send it in the clear", nil)
	}
	// A plain password is safe inside TLS and works with every account; without TLS it goes last.
	list := []struct {
		name string
		auth func() smtp.Auth
	}{
		{"PLAIN", func() smtp.Auth { return smtp.PlainAuth("", s.user, s.password, s.host, true) }},
		{"LOGIN", func() smtp.Auth { return smtp.LoginAuth(s.user, s.password, s.host, true) }},
		{"CRAM-MD5", func() smtp.Auth { return smtp.CRAMMD5Auth(s.user, s.password) }},
		{"SCRAM-SHA-1", func() smtp.Auth { return smtp.ScramSHA1Auth(s.user, s.password) }},
		{"SCRAM-SHA-256", func() smtp.Auth { return smtp.ScramSHA256Auth(s.user, s.password) }},
	}
	if !encrypted {
		slices.Reverse(list)
	}
	known := strings.Fields(strings.ToUpper(mechanisms))
	for _, mechanism := range list {
		if !slices.Contains(known, mechanism.name) {
			continue
		}
		c.extend()
		if err := c.client.Auth(mechanism.auth()); err != nil {
			return s.refusedLogin("", err)
		}
		return nil
	}
	return s.refusedLogin("the server offers only the login mechanisms "+mechanisms+", none of which is known here", nil)
}

func isLoopback(a net.Addr) bool {
	tcp, ok := a.(*net.TCPAddr)
	return ok && tcp.IP.IsLoopback()
}

// extend gives the server its time for the next step.
func (c *connection) extend() { _ = c.raw.SetDeadline(time.Now().Add(idleTimeout)) }

// alive reports whether the connection can take another mail.
func (c *connection) alive() bool {
	c.extend()
	return c.client.Noop() == nil
}

// close says good-bye; a mail that was accepted is safe whatever comes of it.
func (c *connection) close() {
	_ = c.raw.SetDeadline(time.Now().Add(5 * time.Second))
	_ = c.client.Quit()
	c.drop()
}

func (c *connection) drop() {
	c.forget()
	_ = c.raw.Close()
}
