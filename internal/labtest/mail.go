package labtest

import (
	"errors"
	"io"
	"log"
	"mime"
	"mime/multipart"
	"mime/quotedprintable"
	"net"
	"net/mail"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/emersion/go-smtp"
)

// SMTPCredential is the id of the smtp credential that leads to the lab's mail
// server.
const SMTPCredential = "mail-of-the-lab"

// Mail is a mail that a site's mailbox got.
type Mail struct {
	To         []string
	Subject    string
	Text, HTML string
}

var address = regexp.MustCompile(`https?://[^\s"<>]+`)

// Links are the addresses in the text, in order.
func (m Mail) Links() []string { return address.FindAllString(m.Text, -1) }

// Link is the address in the text that ends so, "" for none.
func (m Mail) Link(end string) string {
	for _, link := range m.Links() {
		if strings.HasSuffix(link, end) {
			return link
		}
	}
	return ""
}

// mailServer takes every mail and keeps it.
type mailServer struct {
	listener net.Listener
	server   *smtp.Server
	done     chan struct{}

	mu    sync.Mutex
	mails []Mail
	onGet map[string]func(Mail) // by address
}

func startMailServer() (*mailServer, error) {
	m := &mailServer{done: make(chan struct{}), onGet: map[string]func(Mail){}}
	var err error
	if m.listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		return nil, err
	}
	m.server = smtp.NewServer(smtp.BackendFunc(func(*smtp.Conn) (smtp.Session, error) { return &mailSession{server: m}, nil }))
	m.server.Domain = "mail.lab.test"
	m.server.ErrorLog = log.New(io.Discard, "", 0)
	go func() {
		defer close(m.done)
		_ = m.server.Serve(m.listener)
	}()
	return m, nil
}

func (m *mailServer) close() {
	_ = m.server.Close()
	_ = m.listener.Close() // the server may not know it yet
	<-m.done
}

func (m *mailServer) credential() map[string]any {
	return map[string]any{
		"host": "127.0.0.1", "port": m.listener.Addr().(*net.TCPAddr).Port,
		"secure": false, "disableStartTls": true, "user": "", "password": "",
	}
}

// to returns the mails that an address got, oldest first.
func (m *mailServer) to(address string) []Mail {
	m.mu.Lock()
	defer m.mu.Unlock()
	var found []Mail
	for _, one := range m.mails {
		if slices.Contains(one.To, address) {
			found = append(found, one)
		}
	}
	return found
}

type mailSession struct {
	server *mailServer
	to     []string
}

func (s *mailSession) Mail(string, *smtp.MailOptions) error { return nil }

func (s *mailSession) Rcpt(to string, _ *smtp.RcptOptions) error {
	s.to = append(s.to, to)
	return nil
}

func (s *mailSession) Data(r io.Reader) error {
	one, err := readMail(r)
	if err != nil {
		return &smtp.SMTPError{Code: 554, EnhancedCode: smtp.EnhancedCode{5, 6, 0}, Message: err.Error()}
	}
	one.To = s.to
	s.server.mu.Lock()
	s.server.mails = append(s.server.mails, one)
	var told []func(Mail)
	for _, to := range one.To {
		if f := s.server.onGet[to]; f != nil {
			told = append(told, f)
		}
	}
	s.server.mu.Unlock()
	for _, f := range told {
		f(one)
	}
	return nil
}

func (s *mailSession) Reset()        { s.to = nil }
func (s *mailSession) Logout() error { return nil }

func readMail(r io.Reader) (Mail, error) {
	message, err := mail.ReadMessage(r)
	if err != nil {
		return Mail{}, err
	}
	var one Mail
	if one.Subject, err = new(mime.WordDecoder).DecodeHeader(message.Header.Get("Subject")); err != nil {
		return Mail{}, err
	}
	return one, one.readPart(message.Header, message.Body)
}

// readPart reads a text, or the parts of what has several.
func (m *Mail) readPart(header mail.Header, r io.Reader) error {
	kind, parameters, err := mime.ParseMediaType(header.Get("Content-Type"))
	if err != nil {
		return err
	}
	if strings.HasPrefix(kind, "multipart/") {
		for parts := multipart.NewReader(r, parameters["boundary"]); ; {
			part, err := parts.NextRawPart()
			if errors.Is(err, io.EOF) {
				return nil
			}
			if err == nil {
				err = m.readPart(mail.Header(part.Header), part)
			}
			if err != nil {
				return err
			}
		}
	}
	if header.Get("Content-Transfer-Encoding") == "quoted-printable" {
		r = quotedprintable.NewReader(r)
	}
	content, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	switch kind {
	case "text/plain":
		m.Text = string(content)
	case "text/html":
		m.HTML = string(content)
	}
	return nil
}
