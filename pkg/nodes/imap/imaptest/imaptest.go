// Package imaptest starts mail servers for the tests of what reads mail.
package imaptest

import (
	"io"
	"log"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/emersion/go-imap/v2"
	"github.com/emersion/go-imap/v2/imapserver"
	"github.com/emersion/go-imap/v2/imapserver/imapmemserver"
	"github.com/stretchr/testify/require"
)

// Password is what Credential logs in with.
const Password = "secret-word"

const (
	owner   = "ann"
	mailbox = "INBOX"
)

// Server is a mail server on loopback, without encryption, for one user with one mailbox, "INBOX".
type Server struct {
	*imapmemserver.User
	Port int
}

// Start starts a server until the end of the test.
func Start(t testing.TB) *Server {
	t.Helper()
	s := &Server{User: imapmemserver.NewUser(owner, Password)}
	require.NoError(t, s.Create(mailbox, nil))
	memory := imapmemserver.New()
	memory.AddUser(s.User)
	server := imapserver.New(&imapserver.Options{
		NewSession: func(*imapserver.Conn) (imapserver.Session, *imapserver.GreetingData, error) {
			return memory.NewSession(), nil, nil
		},
		InsecureAuth: true, Logger: log.New(io.Discard, "", 0),
	})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s.Port = listener.Addr().(*net.TCPAddr).Port
	done := make(chan struct{})
	go func() { defer close(done); _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close(); <-done })
	return s
}

// Credential is a node's credential of type imap for the mailbox.
func (s *Server) Credential() map[string]any {
	return map[string]any{"host": "127.0.0.1", "port": s.Port, "secure": false, "user": owner, "password": Password}
}

// Deliver puts a mail into the mailbox; its lines end with a line feed alone.
func (s *Server) Deliver(t testing.TB, text string) {
	t.Helper()
	text = strings.ReplaceAll(text, "\n", "\r\n")
	_, err := s.Append(mailbox, strings.NewReader(text), &imap.AppendOptions{Time: time.Now()})
	require.NoError(t, err)
}

// Unseen counts the mails that are not marked as read.
func (s *Server) Unseen(t testing.TB) int {
	t.Helper()
	data, err := s.Status(mailbox, &imap.StatusOptions{NumUnseen: true})
	require.NoError(t, err)
	return int(*data.NumUnseen)
}
