package mail_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"io"
	"log"
	"math/big"
	"mime"
	"mime/multipart"
	"mime/quotedprintable"
	"net"
	"net/mail"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/emersion/go-sasl"
	"github.com/emersion/go-smtp"
	"github.com/stretchr/testify/require"

	"github.com/reprise-engine/reprise/pkg/node"
	mailnodes "github.com/reprise-engine/reprise/pkg/nodes/mail"
	"github.com/reprise-engine/reprise/pkg/nodes/nodestest"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// mailbox is an SMTP server that keeps what it gets.
type mailbox struct {
	// What the server is like; set before it is started.
	login      bool // wants user "ada" with password "s3cret-word"
	tls        *tls.Config
	implicit   bool            // TLS from the start
	refused    map[string]bool // recipients
	refuseFrom bool
	refuseData bool
	hangUp     bool // closes the connection in place of an answer to a mail

	listener net.Listener
	mu       sync.Mutex
	sessions int
	mails    []received
}

type received struct {
	from      string
	to        []string
	encrypted bool
	user      string
	data      string
}

func (m *mailbox) start(tb testing.TB) *mailbox {
	tb.Helper()
	var err error
	m.listener, err = net.Listen("tcp", "127.0.0.1:0")
	require.NoError(tb, err)
	server := smtp.NewServer(smtp.BackendFunc(func(c *smtp.Conn) (smtp.Session, error) {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.sessions++
		return &session{box: m, conn: c}, nil
	}))
	server.Domain, server.AllowInsecureAuth, server.TLSConfig = "mail.test", true, m.tls
	server.ErrorLog = log.New(io.Discard, "", 0)
	l := m.listener
	if m.implicit {
		l = tls.NewListener(l, m.tls)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(l)
	}()
	tb.Cleanup(func() {
		_ = server.Close()
		_ = l.Close() // the server does not know it yet when the test was quick
		<-done
	})
	return m
}

func (m *mailbox) received() []received {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]received(nil), m.mails...)
}

func (m *mailbox) only(tb testing.TB) received {
	tb.Helper()
	mails := m.received()
	require.Len(tb, mails, 1)
	return mails[0]
}

func (m *mailbox) credential(more map[string]any) map[string]any {
	data := map[string]any{
		"host": "127.0.0.1", "port": float64(m.listener.Addr().(*net.TCPAddr).Port),
		"secure": m.implicit, "user": "", "password": "",
	}
	for name, value := range more {
		data[name] = value
	}
	return data
}

type session struct {
	box  *mailbox
	conn *smtp.Conn
	mail received
}

func (s *session) AuthMechanisms() []string {
	if s.box.login {
		return []string{sasl.Plain}
	}
	return nil
}

func (s *session) Auth(string) (sasl.Server, error) {
	return sasl.NewPlainServer(func(_, user, password string) error {
		if user != "ada" || password != "s3cret-word" {
			return &smtp.SMTPError{Code: 535, EnhancedCode: smtp.EnhancedCode{5, 7, 8}, Message: "no such login as " + user + "/" + password}
		}
		s.mail.user = user
		return nil
	}), nil
}

func (s *session) Mail(from string, _ *smtp.MailOptions) error {
	switch {
	case s.box.login && s.mail.user == "":
		return smtp.ErrAuthRequired
	case s.box.refuseFrom:
		return &smtp.SMTPError{Code: 553, EnhancedCode: smtp.EnhancedCode{5, 7, 1}, Message: "not your address"}
	}
	s.mail.from = from
	_, s.mail.encrypted = s.conn.TLSConnectionState()
	return nil
}

func (s *session) Rcpt(to string, _ *smtp.RcptOptions) error {
	if s.box.refused[to] {
		return &smtp.SMTPError{Code: 550, EnhancedCode: smtp.EnhancedCode{5, 1, 1}, Message: "no such mailbox"}
	}
	s.mail.to = append(s.mail.to, to)
	return nil
}

func (s *session) Data(r io.Reader) error {
	data, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	s.mail.data = string(data)
	s.box.mu.Lock()
	s.box.mails = append(s.box.mails, s.mail)
	s.box.mu.Unlock()
	switch {
	case s.box.hangUp:
		_ = s.conn.Conn().Close()
	case s.box.refuseData:
		return &smtp.SMTPError{Code: 554, EnhancedCode: smtp.EnhancedCode{5, 6, 0}, Message: "looks like spam"}
	}
	return nil
}

func (s *session) Reset()        { s.mail.from, s.mail.to, s.mail.data = "", nil, "" }
func (s *session) Logout() error { return nil }

// selfSigned is a certificate that nobody trusts.
func selfSigned(tb testing.TB) *tls.Config {
	tb.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(tb, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	require.NoError(tb, err)
	return &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{certificate}, PrivateKey: key}}, MinVersion: tls.VersionTLS12}
}

// parts are a mail's header and its leaves by content type, decoded.
type parts struct {
	header mail.Header
	leaves map[string]leaf
	order  []string
}

type leaf struct {
	header  map[string][]string
	content string
}

func read(tb testing.TB, data string) parts {
	tb.Helper()
	m, err := mail.ReadMessage(strings.NewReader(data))
	require.NoError(tb, err)
	p := parts{header: m.Header, leaves: map[string]leaf{}}
	p.walk(tb, map[string][]string(m.Header), m.Body)
	return p
}

func (p *parts) walk(tb testing.TB, header map[string][]string, r io.Reader) {
	tb.Helper()
	get := func(name string) string { return mail.Header(header).Get(name) }
	kind, parameters, err := mime.ParseMediaType(get("Content-Type"))
	require.NoError(tb, err)
	if strings.HasPrefix(kind, "multipart/") {
		reader := multipart.NewReader(r, parameters["boundary"])
		for {
			part, err := reader.NextRawPart()
			if errors.Is(err, io.EOF) {
				return
			}
			require.NoError(tb, err)
			p.walk(tb, part.Header, part)
		}
	}
	if get("Content-Transfer-Encoding") == "quoted-printable" {
		r = quotedprintable.NewReader(r)
	}
	content, err := io.ReadAll(r)
	require.NoError(tb, err)
	p.leaves[kind] = leaf{header, strings.ReplaceAll(string(content), "\r\n", "\n")}
	p.order = append(p.order, kind)
}

var now = time.Date(2026, 12, 1, 5, 34, 31, 0, time.UTC)

func typeNamed(tb testing.TB, name string) *node.Type {
	tb.Helper()
	for _, t := range mailnodes.Types() {
		if t.Type == name {
			return t
		}
	}
	tb.Fatalf("no type %s", name)
	return nil
}

// mailCall is a call of a node whose credential leads to the server.
func mailCall(tb testing.TB, typeName, parameters string, credential map[string]any, items ...string) *node.Call {
	tb.Helper()
	call := nodestest.Call(typeNamed(tb, typeName), parameters, nodestest.Items(items...))
	call.Now = func() time.Time { return now }
	call.IdempotencyKey = "execution_7"
	call.Node.Credentials = map[string]workflow.CredentialRef{"smtp": {ID: "1", Name: "Mail"}}
	call.Credentials = func(_ context.Context, kind string, ref workflow.CredentialRef) (map[string]any, error) {
		if kind != "smtp" || ref.Name != "Mail" {
			return nil, errors.New("asked for another credential")
		}
		return credential, nil
	}
	return call
}

func execute(tb testing.TB, call *node.Call) *node.Result {
	tb.Helper()
	result, err := call.Type.Execute(tb.Context(), call)
	require.NoError(tb, err)
	require.Nil(tb, result.Error)
	return result
}

func object(tb testing.TB, raw json.RawMessage) map[string]any {
	tb.Helper()
	var o map[string]any
	require.NoError(tb, json.Unmarshal(raw, &o))
	return o
}
