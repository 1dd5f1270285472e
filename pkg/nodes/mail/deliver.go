package mail

import (
	"bytes"
	"context"
	"net/mail"
	"strings"
	"time"

	gomail "github.com/wneessen/go-mail"
	"github.com/wneessen/go-mail/smtp"
)

// letter is a mail and who gets it.
type letter struct {
	id       string // Message-ID, with its angle brackets
	from     string
	to       []string // all recipients, also the hidden ones
	document *gomail.Msg
	hints    []string
}

// receipt is what became of a letter.
type receipt struct {
	accepted, rejected        []string
	envelopeTime, messageTime time.Duration
	messageBytes              int
	response                  string
}

// postman delivers letters, over one connection as long as the server is the
// same and keeps it open.
type postman struct {
	connection *connection
}

// deliver sends a letter; ctx must be the same for all letters.
func (p *postman) deliver(ctx context.Context, s *server, l *letter) (*receipt, error) {
	r, err := p.try(ctx, s, l)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return r, err
}

func (p *postman) try(ctx context.Context, s *server, l *letter) (*receipt, error) {
	var document bytes.Buffer
	if _, err := l.document.WriteTo(&document); err != nil {
		return nil, operationError("The mail cannot be put together: "+err.Error(), "")
	}
	if p.connection != nil && (*p.connection.server != *s || !p.connection.alive()) {
		p.close()
	}
	if p.connection == nil {
		c, err := connect(ctx, s)
		if err != nil {
			return nil, err
		}
		p.connection = c
	}
	r, err := p.connection.transfer(l, document.Bytes())
	if err != nil {
		p.close() // whatever state the conversation is in
	}
	return r, err
}

// transfer has the server take a letter for those recipients that it accepts.
func (c *connection) transfer(l *letter, document []byte) (*receipt, error) {
	s, start := c.server, time.Now()
	c.extend()
	if err := c.client.Mail(path(l.from)); err != nil {
		return nil, s.refusedSender(l.from, err)
	}
	r := &receipt{messageBytes: len(document)}
	var refusal error
	for _, address := range l.to {
		c.extend()
		if err := c.client.Rcpt(path(address)); err != nil {
			if isConnectionError(err) {
				return nil, s.lost(err)
			}
			r.rejected, refusal = append(r.rejected, address), err
			continue
		}
		r.accepted = append(r.accepted, address)
	}
	if len(r.accepted) == 0 {
		return nil, s.refusedRecipients(r.rejected, refusal)
	}
	r.envelopeTime = time.Since(start)

	start = time.Now()
	c.extend()
	w, err := c.client.Data()
	if err != nil {
		return nil, s.refusedMail(err)
	}
	for piece := document; len(piece) > 0; {
		n := min(len(piece), 64<<10)
		c.extend()
		if _, err := w.Write(piece[:n]); err != nil {
			return nil, s.lost(err)
		}
		piece = piece[n:]
	}
	c.extend()
	if err := w.Close(); err != nil {
		if isConnectionError(err) {
			return nil, s.unconfirmed(l.id, err)
		}
		return nil, s.refusedMail(err)
	}
	r.messageTime = time.Since(start)
	r.response = "250"
	if data, ok := w.(*smtp.DataCloser); ok {
		r.response += " " + strings.Join(strings.Fields(data.ServerResponse()), " ")
	}
	return r, nil
}

func (p *postman) close() {
	if p.connection != nil {
		p.connection.close()
		p.connection = nil
	}
}

// path is an address as SMTP's commands have it.
func path(address string) string { return (&mail.Address{Address: address}).String() }
