package mail

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"mime"
	"net/mail"
	"strconv"
	"strings"

	gomail "github.com/wneessen/go-mail"

	"github.com/reprise-engine/reprise/pkg/node"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// body is what a mail says, in one form or both. A nil form is left out.
type body struct {
	text, html *string
}

// compose makes a letter of the addresses, the subject and the options in the node's
// parameters. Its text is the caller's.
func compose(ctx context.Context, call *node.Call, item int, b body) (*letter, error) {
	l := &letter{document: gomail.NewMsg(gomail.WithNoDefaultUserAgent())}
	options := "options."
	if call.Node.TypeVersion < 2 {
		options = "" // version 1 has what are options now beside the others
	}
	if err := l.address(ctx, call, item, options); err != nil {
		return nil, err
	}
	subject, err := call.String(ctx, item, "subject", "")
	if err != nil {
		return nil, err
	}
	l.id = messageID(call.IdempotencyKey, item, l.from)
	l.document.SetGenHeader(gomail.HeaderMessageID, l.id)
	l.document.SetDateWithValue(call.Now())
	l.document.Subject(strings.Join(strings.Fields(subject), " "))

	var html string
	switch {
	case b.html == nil:
		text := ""
		if b.text != nil {
			text = *b.text
		}
		l.document.SetBodyString(gomail.TypeTextPlain, text)
	case b.text == nil:
		html = *b.html
		l.document.SetBodyString(gomail.TypeTextHTML, html)
	default:
		html = *b.html
		l.document.SetBodyString(gomail.TypeTextPlain, *b.text)
		l.document.AddAlternativeString(gomail.TypeTextHTML, html)
	}
	return l, l.attach(ctx, call, item, options+"attachments", html)
}

// address fills in who sends the letter and who gets it.
func (l *letter) address(ctx context.Context, call *node.Call, item int, options string) error {
	from, err := addresses(ctx, call, item, "fromEmail", "From Email")
	if err != nil {
		return err
	}
	if len(from) != 1 {
		return operationError(fmt.Sprintf("The mail needs one sender and has %d", len(from)), "parameter fromEmail")
	}
	l.from = from[0].Address
	l.document.FromMailAddress(from[0])
	seen := map[string]bool{}
	for _, field := range []struct {
		path, what string
		set        func(...*mail.Address)
		recipients bool
	}{
		{"toEmail", "To Email", l.document.ToMailAddress, true},
		{options + "ccEmail", "CC Email", l.document.CcMailAddress, true},
		{options + "bccEmail", "BCC Email", l.document.BccMailAddress, true},
		{"options.replyTo", "Reply To", func(list ...*mail.Address) { l.document.ReplyToMailAddress(list...) }, false},
	} {
		list, err := addresses(ctx, call, item, field.path, field.what)
		if err != nil {
			return err
		}
		if len(list) == 0 {
			continue
		}
		field.set(list...)
		for _, a := range list {
			if field.recipients && !seen[a.Address] {
				seen[a.Address] = true
				l.to = append(l.to, a.Address)
			}
		}
	}
	if len(l.to) == 0 {
		return operationError("The mail has no recipient", "parameter toEmail")
	}
	return nil
}

// maxAttachmentBytes bounds one attachment, which is held in memory: mail servers take less.
const maxAttachmentBytes = 32 << 20

// attach adds the files that a parameter names by their property in the item. One that the
// text shows ("cid:property") goes into it.
func (l *letter) attach(ctx context.Context, call *node.Call, item int, path, html string) error {
	list, err := texts(ctx, call, item, path)
	if err != nil {
		return err
	}
	var files map[string]workflow.Binary
	if len(call.Inputs) > 0 && item < len(call.Inputs[0]) {
		files = call.Inputs[0][item].Binary
	}
	for _, property := range strings.Split(strings.Join(list, ","), ",") {
		property = strings.TrimSpace(property)
		switch {
		case property == "":
			continue
		case len(files) == 0: // n8n sends such a mail too
			l.hints = append(l.hints, fmt.Sprintf("Item %d has no files, so %q was not attached", item, property))
			continue
		}
		file, ok := files[property]
		if !ok {
			return operationError(fmt.Sprintf("This operation expects the node's input data to contain a binary file '%s', but none was found [item %d]", property, item), "parameter "+path)
		}
		data, err := call.Files.Read(ctx, file, maxAttachmentBytes)
		if err != nil {
			return operationError(fmt.Sprintf("File %q cannot be attached: %v", property, err), "parameter "+path)
		}
		name := file.FileName
		if name == "" {
			name = property
		}
		kind := gomail.WithFileContentType(gomail.ContentType(mediaType(file.MimeType)))
		if strings.Contains(html, "cid:"+property) {
			l.document.EmbedReadSeeker(name, bytes.NewReader(data), kind, gomail.WithFileContentID("<"+headerWord(property)+">"))
		} else {
			l.document.AttachReadSeeker(name, bytes.NewReader(data), kind)
		}
	}
	return nil
}

// mediaType is a MIME type that can be written into a header.
func mediaType(given string) string {
	kind, _, err := mime.ParseMediaType(given)
	if err != nil || !strings.Contains(kind, "/") {
		return "application/octet-stream"
	}
	return kind
}

// headerWord replaces what would end a header or a bracketed word.
func headerWord(text string) string {
	return strings.Map(func(r rune) rune {
		if r <= ' ' || r > '~' || r == '<' || r == '>' {
			return '_'
		}
		return r
	}, text)
}

// messageID is the same for every attempt of a run's slice. It shows nothing of the
// execution, for mails leave the house.
func messageID(key string, item int, from string) string {
	sum := sha256.Sum256([]byte(key + "\x00" + strconv.Itoa(item)))
	return "<" + hex.EncodeToString(sum[:16]) + from[strings.LastIndexByte(from, '@'):] + ">"
}
