package mail

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/textproto"
	"strings"
	"syscall"

	"github.com/reprise-engine/reprise/pkg/engine"
)

// operationError is n8n's error of a node's own code. Trying again would not help.
func operationError(message, description string) *engine.NodeError {
	return &engine.NodeError{Name: "NodeOperationError", Message: message, Description: description, NotRetryable: true}
}

// serverError is a failure of the mail server. code is nodemailer's word for it.
func (s *server) serverError(code, message string, err error) error {
	failure := &engine.NodeError{Name: "NodeApiError", HTTPCode: code, Message: message}
	if err != nil {
		failure.Description = s.said(err)
	}
	return failure
}

// said is what a server answered, or what happened to its connection, on one
// line and without the password.
func (s *server) said(err error) string {
	var answer *textproto.Error
	if errors.As(err, &answer) {
		return s.redact(fmt.Sprintf("%d %s", answer.Code, strings.Join(strings.Fields(answer.Msg), " ")))
	}
	return s.redact(err.Error())
}

func (s *server) unreachable(err error) error {
	code, what := "ECONNECTION", ""
	var dns *net.DNSError
	var answer *textproto.Error
	switch {
	case errors.As(err, &answer):
		return s.serverError("EPROTOCOL", fmt.Sprintf("The mail server %s did not greet: %s", s.address(), s.said(err)), nil)
	case errors.As(err, &dns):
		code, what = "EDNS", "its name is not known; check the credential's host"
	case errors.Is(err, syscall.ECONNREFUSED):
		code, what = "ECONNREFUSED", "it refused the connection; check the credential's host and port, or whether it is running"
	case isTimeout(err):
		code, what = "ETIMEDOUT", "it did not answer in time; check the credential's host and port"
		if !s.secure {
			what += ", and whether it wants encryption from the start (SSL/TLS)"
		}
	default:
		what = s.said(err)
	}
	return s.serverError(code, fmt.Sprintf("The mail server %s cannot be reached: %s", s.address(), what), err)
}

func (s *server) notEncrypted(err error) error {
	var authority x509.UnknownAuthorityError
	var host x509.HostnameError
	var invalid x509.CertificateInvalidError
	var record tls.RecordHeaderError
	what := s.said(err)
	switch {
	case errors.As(err, &authority), errors.As(err, &host), errors.As(err, &invalid):
		what = "its certificate is not trusted (" + what + "); set the option \"Ignore SSL Issues\" if the server can be"
	case errors.As(err, &record):
		what = "it does not speak TLS on this port; switch SSL/TLS off in the credential, or use another port"
	case isTimeout(err):
		what = "it did not answer in time"
	}
	return s.serverError("ETLS", fmt.Sprintf("No encrypted connection to the mail server %s: %s", s.address(), what), nil)
}

func (s *server) refusedLogin(what string, err error) error {
	if err != nil && isConnectionError(err) {
		return s.lost(err)
	}
	if err != nil {
		what = "check user and password of the credential; the server said: " + s.said(err)
	}
	return s.serverError("EAUTH", fmt.Sprintf("Login at the mail server %s failed: %s", s.address(), what), nil)
}

func (s *server) refusedSender(from string, err error) error {
	if isConnectionError(err) {
		return s.lost(err)
	}
	return s.serverError("EENVELOPE", fmt.Sprintf("The mail server does not accept %s as sender: %s", from, s.said(err)), nil)
}

func (s *server) refusedRecipients(to []string, err error) error {
	who := strings.Join(to, ", ")
	if len(to) > 1 {
		who = "any of the recipients " + who
	} else {
		who = "the recipient " + who
	}
	return s.serverError("EENVELOPE", fmt.Sprintf("The mail server does not accept %s: %s", who, s.said(err)), nil)
}

func (s *server) refusedMail(err error) error {
	if isConnectionError(err) {
		return s.lost(err)
	}
	return s.serverError("EMESSAGE", "The mail server does not accept the mail: "+s.said(err), nil)
}

func (s *server) lost(err error) error {
	return s.serverError("ECONNECTION", fmt.Sprintf("The connection to the mail server %s was lost before it took the mail", s.address()), err)
}

// unconfirmed is the one failure after which a mail may have been sent.
func (s *server) unconfirmed(id string, err error) error {
	return s.serverError("ECONNECTION", fmt.Sprintf("The mail server %s got the mail and did not confirm it: it may have been sent. "+
		"Its Message-ID is %s, also when it is sent again", s.address(), id), err)
}

// isConnectionError tells a broken connection from an answer of the server.
func isConnectionError(err error) bool {
	var broken net.Error
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) || errors.As(err, &broken)
}

func isTimeout(err error) bool {
	var t net.Error
	return errors.Is(err, context.DeadlineExceeded) || errors.As(err, &t) && t.Timeout()
}
