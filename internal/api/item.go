package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/reprise-engine/reprise/pkg/queue"
)

// item is what the waiting node gives out, in the shape of n8n's webhooks.
type item struct {
	Headers       map[string]string `json:"headers"` // names in lower case
	Params        struct{}          `json:"params"`
	Query         map[string]any    `json:"query"` // strings, lists of strings for what comes twice
	Body          json.RawMessage   `json:"body"`
	WebhookURL    string            `json:"webhookUrl"`
	ExecutionMode string            `json:"executionMode"`
	JWTPayload    json.RawMessage   `json:"jwtPayload,omitempty"` // when a token proved who calls
}

// refused is an answer to a call that cannot be taken as it is.
type refused struct {
	status        int
	code, message string
}

// readItem makes an item of a call.
func (h *handler) readItem(w http.ResponseWriter, r *http.Request, address string, query url.Values) (*item, *refused) {
	data, problem := readBody(w, r, h.MaxBody)
	if problem != nil {
		return nil, problem
	}
	body, problem := parseBody(r.Header, data)
	if problem != nil {
		return nil, problem
	}
	return &item{Headers: headersOf(r), Query: fields(query), Body: body, WebhookURL: address, ExecutionMode: "production"}, nil
}

func readBody(w http.ResponseWriter, r *http.Request, limit int64) ([]byte, *refused) {
	defer limitReading(w)()
	data, err := io.ReadAll(http.MaxBytesReader(w, r.Body, limit))
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return nil, &refused{http.StatusRequestEntityTooLarge, queue.CodeTooLarge,
			"the body is larger than " + strconv.FormatInt(limit, 10) + " bytes"}
	case err != nil:
		return nil, &refused{http.StatusBadRequest, queue.CodeBadRequest, "the body was not sent in full"}
	}
	return data, nil
}

// limitReading bounds the time for a body until done is called. The server has no
// deadline for a whole call, because the answer may take minutes.
func limitReading(w http.ResponseWriter) (done func()) {
	control := http.NewResponseController(w)
	// An error says that there is no connection, as in a test.
	_ = control.SetReadDeadline(time.Now().Add(bodyTimeout))
	return func() { _ = control.SetReadDeadline(time.Time{}) }
}

// parseBody reads a body by its content type. What is no text is refused, because an
// item would not keep it.
func parseBody(header http.Header, data []byte) (json.RawMessage, *refused) {
	unsupported := func(message string) (json.RawMessage, *refused) {
		return nil, &refused{http.StatusUnsupportedMediaType, queue.CodeBadRequest, message}
	}
	encoding := strings.ToLower(strings.TrimSpace(header.Get("Content-Encoding")))
	if encoding != "" && encoding != "identity" {
		return unsupported("a compressed body is not taken; send it without Content-Encoding")
	}
	contentType, _, err := mime.ParseMediaType(header.Get("Content-Type"))
	if err != nil && header.Get("Content-Type") != "" && !errors.Is(err, mime.ErrInvalidMediaParameter) {
		return unsupported("the Content-Type cannot be read")
	}
	if strings.HasPrefix(contentType, "multipart/") {
		return unsupported("files and multipart forms are not taken here; send JSON, a form (application/x-www-form-urlencoded) or text")
	}
	if len(data) == 0 {
		return json.RawMessage("{}"), nil
	}
	if !utf8.Valid(data) {
		return unsupported("the body is not text in UTF-8; send JSON, a form or text in UTF-8")
	}
	switch {
	case contentType == "application/json" || strings.HasSuffix(contentType, "+json"):
		if !json.Valid(data) {
			return nil, &refused{http.StatusUnprocessableEntity, queue.CodeBadRequest, "the body is not valid JSON"}
		}
		return bytes.TrimSpace(data), nil
	case contentType == "application/x-www-form-urlencoded":
		form, err := url.ParseQuery(string(data))
		if err != nil {
			return nil, &refused{http.StatusUnprocessableEntity, queue.CodeBadRequest, "the body is not a valid form"}
		}
		return toJSON(fields(form)), nil
	}
	return toJSON(string(data)), nil
}

func toJSON(value any) json.RawMessage {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(value) // strings and maps of them
	return bytes.TrimSpace(b.Bytes())
}

// fields gives a list to a name that comes more than once.
func fields(values url.Values) map[string]any {
	out := map[string]any{}
	for name, all := range values {
		if len(all) == 1 {
			out[name] = all[0]
		} else {
			out[name] = all
		}
	}
	return out
}

// headersOf gives the headers as Node.js has them.
func headersOf(r *http.Request) map[string]string {
	out := map[string]string{}
	for name, values := range r.Header {
		separator := ", "
		if name == "Cookie" {
			separator = "; "
		}
		out[strings.ToLower(name)] = strings.Join(values, separator)
	}
	// Go keeps these apart from the others.
	if r.Host != "" {
		out["host"] = r.Host
	}
	if len(r.TransferEncoding) > 0 {
		out["transfer-encoding"] = strings.Join(r.TransferEncoding, ", ")
	}
	return out
}
