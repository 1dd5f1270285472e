// Package links makes and checks the signed links that executions hand out: the
// resume URL of a wait and the URL that shows and decides a question.
//
//	<public>/webhook-waiting/<execution>?signature=<link>.<mac>
//	<public>/approval/<token>?signature=<bind>.<mac>
//	<public>/form-waiting/<execution>?signature=f.<mac>        of the person who began it
//	<public>/form-waiting/<execution>?signature=<link>.<mac>   of a Wait node's form
//
// A link is a capability: whoever has it may use it, so it is bound to as little
// as possible. A resume URL carries the number of the job it was made in, so it
// does not fit waits that were over before; an approval carries a digest of the
// very question (Bind), so it does not fit another call or other arguments. All
// that varies is under the MAC, and what is altered is refused. Whether a link is still
// of use (open, decided, expired) is the execution's to say, not the link's.
package links

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/reprise-engine/reprise/pkg/engine"
)

// The paths of the links below the public URL.
const (
	ResumePath   = "/webhook-waiting/"
	ApprovalPath = "/approval/"
	FormPath     = "/form-waiting/"
	// Parameter of the query that holds the signature.
	Parameter = "signature"
)

// MinKeyBytes is the least length of a signing key.
const MinKeyBytes = 32

// macBytes of HMAC-SHA256 are kept: 128 bits cannot be guessed, and the links
// stay short enough for a mail.
const macBytes = 16

// Signer makes and checks links. Goroutines may share it.
type Signer struct {
	key    []byte
	public string
}

// New returns a Signer. All processes that make or check the links of one system
// need the same key, of at least MinKeyBytes random bytes; a shorter one panics, for
// it would make links that can be forged. publicURL is where people reach the
// HTTP side, perhaps with a path; with "" no links are made, but those that exist are
// still checked.
func New(key []byte, publicURL string) *Signer {
	if len(key) < MinKeyBytes {
		panic(fmt.Sprintf("links: the signing key has %d bytes, at least %d are needed", len(key), MinKeyBytes))
	}
	return &Signer{key: append([]byte(nil), key...), public: strings.TrimRight(publicURL, "/")}
}

// PublicURL is where people reach the HTTP side, without a slash at its end; "" when
// that is not known.
func (s *Signer) PublicURL() string { return s.public }

// ResumeURL is the link that resumes a webhook wait of an execution; link is the
// number of the job it is made in. A path suffix and other query parameters may
// be added to it. It is "" without a public URL.
func (s *Signer) ResumeURL(execution engine.ExecutionID, link int) string {
	if s.public == "" || link < 0 {
		return ""
	}
	number := strconv.Itoa(link)
	return s.public + ResumePath + url.PathEscape(string(execution)) +
		"?" + Parameter + "=" + number + "." + s.mac("resume", string(execution), number)
}

// ApprovalURL is the link that shows and decides the question of a wait; bind is
// what Bind made of the question. It is "" without a public URL.
func (s *Signer) ApprovalURL(token, bind string) string {
	if s.public == "" {
		return ""
	}
	return s.public + ApprovalPath + url.PathEscape(token) +
		"?" + Parameter + "=" + url.QueryEscape(bind) + "." + s.mac("approval", token, bind)
}

// FormURL is where the person who began an execution with a form goes on with its next pages. It is
// "" without a public URL.
func (s *Signer) FormURL(execution engine.ExecutionID) string {
	if s.public == "" {
		return ""
	}
	return s.public + FormPath + url.PathEscape(string(execution)) + "?" + Parameter + "=f." + s.mac("form", string(execution), "f")
}

// ResumeFormURL is where the form of a Wait node is filled in; link is as for ResumeURL. Neither
// of the two resumes what the other does. It is "" without a public URL.
func (s *Signer) ResumeFormURL(execution engine.ExecutionID, link int) string {
	if s.public == "" || link < 0 {
		return ""
	}
	number := strconv.Itoa(link)
	return s.public + FormPath + url.PathEscape(string(execution)) + "?" + Parameter + "=" + number + "." + s.mac("form", string(execution), number)
}

// CheckForm checks the signature of a form's URL and returns the number of the job that
// a ResumeFormURL was made in; it is nil for a FormURL.
func (s *Signer) CheckForm(execution engine.ExecutionID, signature string) (link *int, ok bool) {
	value, ok := s.check("form", string(execution), signature)
	if !ok || value == "f" {
		return nil, ok
	}
	number, err := strconv.Atoi(value)
	return &number, err == nil
}

// CheckResume checks the signature of a resume URL and returns the number of the job it
// was made in.
func (s *Signer) CheckResume(execution engine.ExecutionID, signature string) (link int, ok bool) {
	number, ok := s.check("resume", string(execution), signature)
	if !ok {
		return 0, false
	}
	link, err := strconv.Atoi(number)
	return link, err == nil
}

// CheckApproval checks the signature of an approval's URL and returns the
// digest of the question that it was made for.
func (s *Signer) CheckApproval(token, signature string) (bind string, ok bool) {
	return s.check("approval", token, signature)
}

// check compares text with text: decoding the hex first would let the same MAC be
// written in several ways.
func (s *Signer) check(kind, subject, signature string) (value string, ok bool) {
	dot := strings.LastIndexByte(signature, '.')
	if dot < 0 {
		return "", false
	}
	value = signature[:dot]
	if !hmac.Equal([]byte(s.mac(kind, subject, value)), []byte(signature[dot+1:])) {
		return "", false
	}
	return value, true
}

func (s *Signer) mac(fields ...string) string {
	h := hmac.New(sha256.New, s.key)
	h.Write(encode("reprise link 1", fields...))
	return hex.EncodeToString(h.Sum(nil)[:macBytes])
}

// Bind digests what a question is about: the call of a node and the arguments as
// they are shown, byte for byte. Questions that differ in any of these have
// different digests.
func Bind(execution engine.ExecutionID, node string, run int, callID string, arguments []byte) string {
	sum := sha256.Sum256(encode("reprise question 1", string(execution), node, strconv.Itoa(run), callID, string(arguments)))
	return hex.EncodeToString(sum[:])
}

// encode writes each field behind its length, so that no two lists of fields
// have the same bytes; purpose comes first, so that those of one purpose are never
// those of another.
func encode(purpose string, fields ...string) []byte {
	var b []byte
	for _, field := range append([]string{purpose}, fields...) {
		b = binary.BigEndian.AppendUint64(b, uint64(len(field)))
		b = append(b, field...)
	}
	return b
}
