package trigger

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"path"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"go.uber.org/zap"

	"github.com/reprise-engine/reprise/pkg/node"
	"github.com/reprise-engine/reprise/pkg/nodes/text"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// bodyTimeout is how long a caller may take to send a body.
const bodyTimeout = time.Minute

// content is what a call carries.
type content struct {
	body   json.RawMessage
	raw    []byte
	media  string // the media type
	files  []upload
	binary bool // raw is no text and no form
}

// upload is a file of a form.
type upload struct {
	field, name, media string
	data               []byte
}

// readContent reads the body of a call and takes it apart by its media type.
func (c *call) readContent() (*content, *problem) {
	data, p := c.readBody()
	if p != nil {
		return nil, p
	}
	body := &content{body: json.RawMessage("{}"), raw: data}
	media, options, err := mime.ParseMediaType(c.r.Header.Get("Content-Type"))
	if err != nil && !errors.Is(err, mime.ErrInvalidMediaParameter) {
		media = ""
	}
	body.media = media
	switch {
	case len(data) == 0:
	case media == "application/json" || strings.HasSuffix(media, "+json"):
		if !json.Valid(data) {
			return nil, &problem{status: http.StatusUnprocessableEntity, message: "the body is not valid JSON"}
		}
		body.body = bytes.TrimSpace(data)
	case media == "application/x-www-form-urlencoded":
		body.body = toJSON(fields(string(data)))
	case media == "multipart/form-data":
		return body, c.readForm(body, data, options["boundary"])
	case isXML(media) && utf8.Valid(data):
		if body.body, err = text.ParseBody(string(data)); err != nil {
			return nil, &problem{status: http.StatusUnprocessableEntity, message: "the body is not valid XML: " + err.Error()}
		}
	case isText(media) && utf8.Valid(data):
		body.body = toJSON(string(data))
	default:
		body.binary = true
	}
	return body, nil
}

func isXML(media string) bool {
	return media == "application/xml" || media == "text/xml" || strings.HasSuffix(media, "+xml")
}

func isText(media string) bool {
	return media == "" || strings.HasPrefix(media, "text/") || strings.HasSuffix(media, "xml") || media == "application/javascript"
}

func (c *call) readBody() ([]byte, *problem) {
	control := http.NewResponseController(c.w)
	// An error says that there is no connection, as in a test.
	_ = control.SetReadDeadline(time.Now().Add(bodyTimeout))
	defer func() { _ = control.SetReadDeadline(time.Time{}) }()
	limit := c.host.MaxBody
	var r io.Reader = http.MaxBytesReader(c.w, c.r.Body, limit)
	switch encoding := strings.ToLower(strings.TrimSpace(c.r.Header.Get("Content-Encoding"))); encoding {
	case "", "identity":
	case "gzip":
		unzipped, err := gzip.NewReader(r)
		if err != nil {
			return nil, &problem{status: http.StatusBadRequest, message: "the body is not gzip, as its Content-Encoding says"}
		}
		r = io.LimitReader(unzipped, limit+1) // what it becomes is bounded too
	default:
		return nil, &problem{status: http.StatusUnsupportedMediaType, message: "the body may be compressed with gzip only"}
	}
	data, err := io.ReadAll(r)
	tooLarge := (*http.MaxBytesError)(nil)
	switch {
	case errors.As(err, &tooLarge) || int64(len(data)) > limit:
		return nil, &problem{status: http.StatusRequestEntityTooLarge, message: fmt.Sprintf("the body is larger than %d bytes", limit)}
	case err != nil:
		return nil, &problem{status: http.StatusBadRequest, message: "the body was not sent in full"}
	}
	return data, nil
}

// maxParts bounds the fields and files of a form.
const maxParts = 1000

func (c *call) readForm(body *content, data []byte, boundary string) *problem {
	bad := &problem{status: http.StatusBadRequest, message: "the multipart form cannot be read"}
	values := newObject()
	reader := multipart.NewReader(bytes.NewReader(data), boundary)
	for n := 0; ; n++ {
		part, err := reader.NextPart()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil || n >= maxParts {
			return bad
		}
		content, err := io.ReadAll(part)
		if err != nil {
			return bad
		}
		if part.FileName() == "" {
			setField(values, part.FormName(), string(content))
			continue
		}
		media, _, err := mime.ParseMediaType(part.Header.Get("Content-Type"))
		if err != nil {
			media = "application/octet-stream"
		}
		body.files = append(body.files, upload{field: part.FormName(), name: part.FileName(), media: media, data: content})
	}
	body.body = toJSON(values)
	return nil
}

// keepFile makes the file of an item. All files that come with calls are made here, and kept
// where the execution's other files are.
func (c *call) keepFile(name, media string, data []byte) (workflow.Binary, *problem) {
	name = path.Base(strings.ReplaceAll(name, `\`, "/"))
	if name == "." || name == "/" {
		name = ""
	}
	file, err := c.keep().Save(c.r.Context(), workflow.Binary{MimeType: media, FileName: name}, bytes.NewReader(data))
	switch {
	case errors.Is(err, node.ErrFileTooLarge):
		return file, &problem{status: http.StatusRequestEntityTooLarge, message: "a file is too large"}
	case err != nil:
		c.host.log.Warn("file of a call was not kept", zap.String("workflow_id", c.hook.id), zap.Error(err))
		return file, &problem{status: http.StatusServiceUnavailable, message: "the file cannot be kept now: try again"}
	}
	return file, nil
}

func (c *call) keep() *node.Files { return &node.Files{Store: c.host.Files, Execution: c.id} }

func toJSON(value any) json.RawMessage {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(value) // texts, and maps and lists of them
	return bytes.TrimSpace(b.Bytes())
}

// headersOf gives the headers as Node.js has them, without those that are hidden.
func (c *call) headersOf() map[string]string {
	out := map[string]string{}
	for name, values := range c.r.Header {
		separator := ", "
		if name == "Cookie" {
			separator = "; "
		}
		out[strings.ToLower(name)] = strings.Join(values, separator)
	}
	// Go keeps these apart from the others.
	out["host"] = c.r.Host
	if n := c.r.ContentLength; n > 0 {
		out["content-length"] = strconv.FormatInt(n, 10)
	}
	if len(c.r.TransferEncoding) > 0 {
		out["transfer-encoding"] = strings.Join(c.r.TransferEncoding, ", ")
	}
	for _, name := range c.hidden {
		delete(out, name)
	}
	return out
}
