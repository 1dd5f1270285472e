package http

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/tidwall/gjson"

	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/node"
	"github.com/reprise-engine/reprise/pkg/nodes/httpstatus"
	"github.com/reprise-engine/reprise/pkg/nodes/jsonobject"
)

// failure is one item's failure in its two shapes: what the node fails with,
// and the value of "error" in an item when the node goes on.
type failure struct {
	node *engine.NodeError
	item string // JSON
}

func (f *failure) Error() string { return f.node.Message }

// operationError is a failure before anything was sent, or of an answer that
// cannot be read.
func operationError(message string) error {
	return &failure{
		node: &engine.NodeError{Name: "NodeOperationError", Message: message},
		item: jsonobject.Quote(message),
	}
}

// asFailure makes any error the failure of an item, without its secrets.
func asFailure(err error, item int, s *secrets) *failure {
	var f *failure
	if !errors.As(err, &f) {
		var ne *engine.NodeError
		if !errors.As(err, &ne) {
			ne = &engine.NodeError{Name: "NodeOperationError", Message: err.Error()}
		}
		f = &failure{node: ne, item: jsonobject.Quote(ne.Message)}
	}
	ne := *f.node
	ne.Message, ne.Description = s.redact(ne.Message), s.redact(ne.Description)
	if ne.ItemIndex == nil {
		ne.ItemIndex = &item
	}
	return &failure{node: &ne, item: s.redactJSON(f.item)}
}

func statusMessage(status int) string {
	if m, ok := httpstatus.Messages[status]; ok {
		return m
	}
	switch {
	case status >= 500:
		return httpstatus.Messages[500]
	case status >= 400:
		return "Your request is invalid or could not be processed by the service"
	}
	return "UNKNOWN ERROR - check the detailed error for more information"
}

// statusFailure is an answer whose status is not 2xx.
func statusFailure(status int, body []byte, o options) error {
	code := "ERR_BAD_RESPONSE"
	if status >= 400 && status < 500 {
		code = "ERR_BAD_REQUEST"
	}
	quoted := stringify(strings.ToValidUTF8(string(body), "\uFFFD"))
	if o.legacyErrorBody && gjson.ValidBytes(body) {
		quoted = string(compact(string(body)))
	}
	return &failure{
		node: &engine.NodeError{
			Name: "NodeApiError", HTTPCode: strconv.Itoa(status),
			Message: statusMessage(status), Description: describeBody(body),
		},
		item: libraryError(fmt.Sprintf("%d - %s", status, quoted), "AxiosError", code, status),
	}
}

// stringify is JSON.stringify of a text: people see the result, so <, > and &
// must stay as they are.
func stringify(text string) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(text) // a string always encodes
	return strings.TrimSuffix(b.String(), "\n")
}

// libraryError is the error object that items carry; its shape is that of the
// library n8n uses, which workflows look into.
func libraryError(message, name, code string, status int) string {
	var o jsonobject.Object
	o.Set("message", stringify(message))
	o.Set("name", jsonobject.Quote(name))
	if code != "" {
		o.Set("code", jsonobject.Quote(code))
	}
	if status != 0 {
		o.Set("status", strconv.Itoa(status))
	}
	return o.String()
}

// maxDescriptionBytes bounds what an error tells of a body.
const maxDescriptionBytes = 1000

// messageKeys are the members in which services explain an error, in the order
// they are looked for.
var messageKeys = []string{
	"error", "message", "Message", "msg", "errorMessage", "error_message", "error_description",
	"errorDescription", "description", "detail", "details", "reason", "errors", "title", "text",
}

// describeBody finds the words in an error body: the text itself, or the first
// text under one of the usual names.
func describeBody(body []byte) string {
	text := strings.ToValidUTF8(string(body), "\uFFFD")
	if gjson.Valid(text) {
		if found := findMessage(gjson.Parse(text), 0); found != "" {
			text = found
		}
	}
	if len(text) > maxDescriptionBytes {
		cut := maxDescriptionBytes
		for !utf8.RuneStart(text[cut]) {
			cut--
		}
		text = text[:cut] + "…"
	}
	return text
}

func findMessage(v gjson.Result, depth int) string {
	switch {
	case depth > 5:
		return ""
	case v.Type == gjson.String:
		return v.Str
	case v.IsArray():
		for _, element := range v.Array() {
			if found := findMessage(element, depth+1); found != "" {
				return found
			}
		}
	case v.IsObject():
		members := v.Map()
		for _, key := range messageKeys {
			if found := findMessage(members[key], depth+1); found != "" {
				return found
			}
		}
	}
	return ""
}

// networkMessages are n8n's words for the codes under which Node.js reports
// that there was no answer.
var networkMessages = map[string]string{
	"ECONNREFUSED": "The service refused the connection - perhaps it is offline",
	"ECONNRESET":   "The connection to the server was closed unexpectedly, perhaps it is offline. You can retry the request immediately or wait and retry later.",
	"ECONNABORTED": "The connection was aborted, perhaps the server is offline",
	"ENOTFOUND":    "The connection cannot be established, this usually occurs due to an incorrect host (domain) value",
	"EAI_AGAIN":    "The DNS server returned an error, perhaps the server is offline",
	"ETIMEDOUT":    "The connection timed out, consider setting the 'Retry on Fail' option in the node settings",
	"EHOSTUNREACH": "The host is unreachable, perhaps the server is offline",
	"ENETUNREACH":  "The host is unreachable, perhaps the server is offline",
}

// errorNumbers names the system errors of a connection.
var errorNumbers = []struct {
	number syscall.Errno
	code   string
}{
	{syscall.ECONNREFUSED, "ECONNREFUSED"}, {syscall.ECONNRESET, "ECONNRESET"}, {syscall.EPIPE, "ECONNRESET"},
	{syscall.ETIMEDOUT, "ETIMEDOUT"}, {syscall.EHOSTUNREACH, "EHOSTUNREACH"}, {syscall.ENETUNREACH, "ENETUNREACH"},
}

// timeoutFailure is a request that took longer than its timeout option.
func timeoutFailure(timeout time.Duration) error {
	f := networkFailure("ECONNABORTED", fmt.Sprintf("timeout of %dms exceeded", timeout.Milliseconds()), "AxiosError")
	f.node.Reason = engine.ReasonTimeout
	return f
}

func networkFailure(code, detail, name string) *failure {
	return &failure{
		node: &engine.NodeError{Name: "NodeApiError", HTTPCode: code, Message: networkMessages[code]},
		item: libraryError(detail, name, code, 0),
	}
}

// transportFailure translates what Go says of a request without an answer. The
// URL that Go puts into its errors is left out: it may hold a key.
func transportFailure(err error) error {
	var f *failure
	if errors.As(err, &f) {
		return f
	}
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		err = wrapped.Err
	}
	var refused *node.AddressRefusedError
	if errors.As(err, &refused) {
		return &failure{
			node: &engine.NodeError{Name: "NodeApiError", Message: sentence(refused.Error()), Description: refused.Hint, NotRetryable: true},
			item: libraryError(refused.Error(), "Error", "EACCES", 0),
		}
	}
	var dns *net.DNSError
	if errors.As(err, &dns) {
		code := "EAI_AGAIN"
		if dns.IsNotFound {
			code = "ENOTFOUND"
		}
		return networkFailure(code, "getaddrinfo "+code+" "+dns.Name, "Error")
	}
	for _, e := range errorNumbers {
		if !errors.Is(err, e.number) {
			continue
		}
		detail := e.code
		var op *net.OpError
		if errors.As(err, &op) && op.Op == "dial" && op.Addr != nil {
			detail = "connect " + e.code + " " + op.Addr.String()
		} else if e.code == "ECONNRESET" {
			detail = "read ECONNRESET"
		}
		return networkFailure(e.code, detail, "Error")
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return networkFailure("ECONNRESET", "socket hang up", "Error")
	}
	if errors.Is(err, context.DeadlineExceeded) || isTimeout(err) { // of the client or its transport
		return networkFailure("ETIMEDOUT", "connect ETIMEDOUT", "Error")
	}
	message := err.Error()
	var authority x509.UnknownAuthorityError
	if errors.As(err, &authority) {
		message += `; set the option "Ignore SSL Issues" if the server can be trusted`
	}
	return &failure{
		node: &engine.NodeError{Name: "NodeApiError", Message: message},
		item: libraryError(message, "Error", "", 0),
	}
}

// sentence begins a text with a capital letter.
func sentence(text string) string { return strings.ToUpper(text[:1]) + text[1:] }

func isTimeout(err error) bool {
	var t net.Error
	return errors.As(err, &t) && t.Timeout()
}

// tooLarge is a response beyond the limit.
func tooLarge(limit int64) error {
	message := fmt.Sprintf("The response is larger than %s; ask for less, or for a page at a time. Whoever runs the workers can raise REPRISE_MAX_RESPONSE_BYTES", node.FileSize(limit))
	return &failure{
		node: &engine.NodeError{Name: "NodeApiError", Reason: engine.ReasonTooLarge, Message: message, NotRetryable: true},
		item: jsonobject.Quote(message),
	}
}

// fileTooLarge is a file beyond the limit of one.
func (x *execution) fileTooLarge() error {
	message := "The file is larger than allowed; ask for a part of it. Whoever runs the workers can raise REPRISE_MAX_FILE_BYTES"
	return &failure{
		node: &engine.NodeError{Name: "NodeApiError", Reason: engine.ReasonTooLarge, Message: message, NotRetryable: true},
		item: jsonobject.Quote(message),
	}
}
