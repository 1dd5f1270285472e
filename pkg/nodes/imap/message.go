package imap

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"html"
	"io"
	"strings"

	goimap "github.com/emersion/go-imap/v2"
	"github.com/emersion/go-message"
	_ "github.com/emersion/go-message/charset" // texts in other character sets than UTF-8
	"github.com/emersion/go-message/mail"

	"github.com/reprise-engine/reprise/pkg/nodes/jsonobject"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// topHeaders are the headers that a simple item has beside its metadata.
var topHeaders = []string{"cc", "date", "from", "subject", "to"}

// letter is a mail that was taken apart.
type letter struct {
	header      mail.Header
	plain, html string
	files       map[string]workflow.Binary
}

// item makes an item of a mail, in the node's format.
func (m *mailbox) item(ctx context.Context, uid goimap.UID, raw []byte) (workflow.Item, error) {
	var o jsonobject.Object
	attributes := fmt.Sprintf(`{"uid":%d}`, uid)
	if m.format == "raw" {
		o.Set("raw", jsonobject.Quote(base64.URLEncoding.EncodeToString(raw)))
		o.Set("attributes", attributes)
		return workflow.Item{JSON: o.JSON()}, nil
	}
	l, err := m.read(ctx, raw)
	if err != nil {
		return workflow.Item{}, err
	}
	if m.format == "simple" {
		l.simple(&o)
	} else {
		l.resolved(&o)
	}
	o.Set("attributes", attributes)
	item := workflow.Item{JSON: o.JSON()}
	if len(l.files) > 0 {
		item.Binary = l.files
	}
	return item, nil
}

// read takes a mail apart. What of it cannot be read is left out: mails come from anybody.
func (m *mailbox) read(ctx context.Context, raw []byte) (*letter, error) {
	l := &letter{files: map[string]workflow.Binary{}}
	reader, err := mail.CreateReader(bytes.NewReader(raw))
	if reader == nil {
		l.plain = string(raw)
		return l, nil //nolint:nilerr // it is no mail, and what it is is shown
	}
	_ = err // an unknown character set: the reader gives the bytes as they are
	l.header = reader.Header
	for {
		part, err := reader.NextPart()
		if part == nil {
			if err != nil && !errors.Is(err, io.EOF) && l.plain == "" && l.html == "" {
				l.plain = "The mail cannot be read: " + err.Error()
			}
			return l, nil
		}
		media, options, _ := partHeader(part.Header).ContentType()
		name := fileName(part.Header)
		if name == "" {
			name = options["name"]
		}
		_, attached := part.Header.(*mail.AttachmentHeader)
		switch {
		case !attached && name == "" && (media == "text/plain" || media == "" || media == "text/html"):
			text, _ := io.ReadAll(part.Body) // as much of it as can be read
			if into := &l.plain; media != "text/html" {
				*into += string(text)
			} else {
				l.html += string(text)
			}
		case m.format == "resolved" || m.attachments:
			if err := m.attach(ctx, l, name, media, part.Body); err != nil {
				return nil, err
			}
		}
	}
}

// partHeader gives the kinds of headers that parts have one face.
func partHeader(h mail.PartHeader) *message.Header {
	switch h := h.(type) {
	case *mail.InlineHeader:
		return &h.Header
	case *mail.AttachmentHeader:
		return &h.Header
	}
	return &message.Header{}
}

func fileName(h mail.PartHeader) string {
	if h, ok := h.(*mail.AttachmentHeader); ok {
		name, _ := h.Filename()
		return name
	}
	_, options, _ := partHeader(h).ContentDisposition()
	return options["filename"]
}

func (m *mailbox) attach(ctx context.Context, l *letter, name, media string, body io.Reader) error {
	if name = name[strings.LastIndexAny(name, `/\`)+1:]; name == "" {
		name = fmt.Sprintf("attachment-%d", len(l.files))
	}
	file, err := m.call.Files.Save(ctx, workflow.Binary{FileName: name, MimeType: media}, body)
	if err != nil {
		return fmt.Errorf("keep attachment %q: %w", name, err)
	}
	l.files[fmt.Sprintf("%s%d", m.prefix, len(l.files))] = file
	return nil
}

// simple is {"textHtml", "textPlain", "metadata": {header: text}, "from", "to", "cc", "subject", "date"}.
func (l *letter) simple(o *jsonobject.Object) {
	if l.html != "" {
		o.Set("textHtml", jsonobject.Quote(l.html))
	}
	if l.plain != "" {
		o.Set("textPlain", jsonobject.Quote(l.plain))
	}
	var metadata jsonobject.Object
	top := map[string]string{}
	for fields := l.header.Fields(); fields.Next(); {
		name, text := strings.ToLower(fields.Key()), headerText(fields)
		isTop := false
		for _, one := range topHeaders {
			isTop = isTop || one == name
		}
		if isTop {
			top[name] = text
			continue
		}
		metadata.Set(name, jsonobject.Quote(text))
	}
	o.Set("metadata", metadata.String())
	for _, name := range topHeaders {
		if text, ok := top[name]; ok {
			o.Set(name, jsonobject.Quote(text))
		}
	}
}

func headerText(fields message.HeaderFields) string {
	text, err := fields.Text()
	if err != nil {
		return fields.Value()
	}
	return text
}

// resolved is the form of n8n's library (mailparser), without its attachments, which are files.
func (l *letter) resolved(o *jsonobject.Object) {
	var headers jsonobject.Object
	for fields := l.header.Fields(); fields.Next(); {
		headers.Set(strings.ToLower(fields.Key()), jsonobject.Quote(fields.Key()+": "+headerText(fields)))
	}
	o.Set("headers", headers.String())
	if l.html != "" {
		o.Set("html", jsonobject.Quote(l.html))
	}
	if l.plain != "" {
		o.Set("text", jsonobject.Quote(l.plain))
		o.Set("textAsHtml", jsonobject.Quote(textAsHTML(l.plain)))
	}
	if subject, err := l.header.Subject(); err == nil && subject != "" {
		o.Set("subject", jsonobject.Quote(subject))
	}
	if date, err := l.header.Date(); err == nil && !date.IsZero() {
		o.Set("date", jsonobject.Quote(date.UTC().Format("2006-01-02T15:04:05.000Z")))
	}
	for _, key := range []string{"to", "from", "cc", "bcc", "reply-to"} {
		if list, err := l.header.AddressList(key); err == nil && len(list) > 0 {
			o.Set(strings.Replace(key, "-to", "To", 1), addresses(list))
		}
	}
	if id, err := l.header.MessageID(); err == nil && id != "" {
		o.Set("messageId", jsonobject.Quote("<"+id+">"))
	}
	if ids, err := l.header.MsgIDList("In-Reply-To"); err == nil && len(ids) > 0 {
		o.Set("inReplyTo", jsonobject.Quote("<"+ids[0]+">"))
	}
}

// addresses is {"value": [{"address", "name"}], "html", "text"}.
func addresses(list []*mail.Address) string {
	var value, texts, links []string
	for _, a := range list {
		var one jsonobject.Object
		one.Set("address", jsonobject.Quote(a.Address))
		one.Set("name", jsonobject.Quote(a.Name))
		value = append(value, one.String())
		link := `<a href="mailto:` + html.EscapeString(a.Address) + `">` + html.EscapeString(a.Address) + `</a>`
		if a.Name == "" {
			texts, links = append(texts, a.Address), append(links, link)
			continue
		}
		texts = append(texts, `"`+a.Name+`" <`+a.Address+`>`)
		links = append(links, html.EscapeString(a.Name)+" &lt;"+link+"&gt;")
	}
	var o jsonobject.Object
	o.Set("value", "["+strings.Join(value, ",")+"]")
	o.Set("html", jsonobject.Quote(strings.Join(links, ", ")))
	o.Set("text", jsonobject.Quote(strings.Join(texts, ", ")))
	return o.String()
}

// textAsHTML shows a plain text: a paragraph for each that an empty line ends.
func textAsHTML(text string) string {
	text = strings.TrimSpace(strings.ReplaceAll(text, "\r\n", "\n"))
	paragraphs := strings.Split(html.EscapeString(text), "\n\n")
	return "<p>" + strings.ReplaceAll(strings.Join(paragraphs, "</p><p>"), "\n", "<br/>") + "</p>"
}
