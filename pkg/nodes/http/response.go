package http

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"path"
	"sort"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/reprise-engine/reprise/pkg/node"
	"github.com/reprise-engine/reprise/pkg/nodes/jsonobject"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// items turns an answer into output items of one input item.
func (resp *response) items(o options, input workflow.Item, index int) (workflow.Items, error) {
	if !o.neverError && (resp.status < 200 || resp.status > 299) {
		return nil, statusFailure(resp.status, resp.body, o)
	}
	paired := workflow.Paired(index)
	kind := resp.kind(o.format)
	if kind == "file" {
		item := workflow.Item{JSON: input.JSON, PairedItem: paired}
		if o.full {
			item.JSON = resp.envelope("")
		}
		if len(item.JSON) == 0 {
			item.JSON = json.RawMessage("{}")
		}
		item.Binary = map[string]workflow.Binary{o.property: resp.file}
		return workflow.Items{item}, nil
	}
	var body string
	var err error
	if o.optimize != nil {
		kind, body, err = o.optimize.shorten(resp)
	} else {
		body, err = resp.value(kind, o)
	}
	if err != nil {
		return nil, err
	}
	switch {
	case o.full && kind == "text":
		var wrapped jsonobject.Object
		wrapped.Set(o.property, body)
		return workflow.Items{{JSON: resp.envelopeWith(wrapped), PairedItem: paired}}, nil
	case o.full:
		return workflow.Items{{JSON: resp.envelope(body), PairedItem: paired}}, nil
	case kind == "text":
		var wrapped jsonobject.Object
		wrapped.Set(o.property, body)
		return workflow.Items{{JSON: wrapped.JSON(), PairedItem: paired}}, nil
	case strings.HasPrefix(body, "[") && o.splitLists:
		items := workflow.Items{}
		gjson.Parse(body).ForEach(func(_, element gjson.Result) bool {
			items = append(items, workflow.Item{JSON: json.RawMessage(element.Raw), PairedItem: paired})
			return true
		})
		return items, nil
	}
	return workflow.Items{{JSON: json.RawMessage(body), PairedItem: paired}}, nil
}

// kind is what the body is read as: json, text or file.
func (resp *response) kind(format string) string {
	if format != "autodetect" {
		if format == "string" { // the word of versions 1 and 2
			return "text"
		}
		return format
	}
	switch mediaType := resp.mediaType(); {
	case resp.empty && (mediaType == "" || isJSON(mediaType)):
		return "json"
	case isJSON(mediaType):
		return "json"
	case isBinary(mediaType):
		return "file"
	}
	return "text"
}

// value is the body as JSON: parsed, or quoted.
func (resp *response) value(kind string, o options) (string, error) {
	if kind == "text" {
		return jsonobject.Quote(resp.decoded()), nil
	}
	body := bytes.TrimSpace(bytes.TrimPrefix(resp.body, []byte("\xef\xbb\xbf")))
	switch {
	case len(body) == 0:
		return "{}", nil
	case gjson.ValidBytes(body):
		return string(body), nil
	case o.format == "autodetect":
		return "", operationError("Invalid JSON in response body")
	}
	return "", operationError(`Response body is not valid JSON. Change "Response Format" to "Text"`)
}

// envelope is the full response around a body; "" leaves the body out.
func (resp *response) envelope(body string) json.RawMessage {
	var o jsonobject.Object
	o.Set("body", body)
	return resp.envelopeWith(o)
}

func (resp *response) envelopeWith(o jsonobject.Object) json.RawMessage {
	o.Set("headers", resp.headersJSON())
	o.Set("statusCode", strconv.Itoa(resp.status))
	o.Set("statusMessage", jsonobject.Quote(resp.text))
	return o.JSON()
}

// headersJSON writes names in lower case, as Node.js has them.
func (resp *response) headersJSON() string {
	names := make([]string, 0, len(resp.headers))
	for name := range resp.headers {
		names = append(names, name)
	}
	sort.Strings(names)
	var o jsonobject.Object
	for _, name := range names {
		values := resp.headers[name]
		text := jsonobject.Quote(strings.Join(values, ", "))
		if name == "Set-Cookie" { // the one header whose values must stay apart
			quoted := make([]string, len(values))
			for i, v := range values {
				quoted[i] = jsonobject.Quote(v)
			}
			text = "[" + strings.Join(quoted, ",") + "]"
		}
		o.Set(strings.ToLower(name), text)
	}
	return o.String()
}

func (resp *response) mediaType() string {
	mediaType, _, err := mime.ParseMediaType(resp.headers.Get("Content-Type"))
	if err != nil {
		mediaType, _, _ = strings.Cut(resp.headers.Get("Content-Type"), ";")
		mediaType = strings.ToLower(strings.TrimSpace(mediaType))
	}
	return mediaType
}

// decoded is the body as UTF-8 text.
func (resp *response) decoded() string {
	_, parameters, _ := mime.ParseMediaType(resp.headers.Get("Content-Type"))
	switch strings.ToLower(parameters["charset"]) {
	case "iso-8859-1", "latin1", "us-ascii":
		runes := make([]rune, len(resp.body)) // Latin-1 is the first 256 code points
		for i, c := range resp.body {
			runes[i] = rune(c)
		}
		return string(runes)
	}
	return strings.ToValidUTF8(string(resp.body), "\uFFFD")
}

func isJSON(mediaType string) bool {
	return mediaType == "application/json" || strings.HasPrefix(mediaType, "application/") && strings.HasSuffix(mediaType, "+json")
}

// binaryTypes are the beginnings of media types that are files.
var binaryTypes = []string{
	"image/", "audio/", "video/", "font/", "application/octet-stream", "application/pdf", "application/zip",
	"application/gzip", "application/x-gzip", "application/x-tar", "application/x-bzip", "application/x-7z-compressed",
	"application/vnd.rar", "application/x-rar", "application/epub+zip", "application/msword", "application/vnd.ms-",
	"application/vnd.openxmlformats-", "application/vnd.oasis.opendocument.", "application/vnd.apple.", "application/java-archive",
	"application/x-msdownload", "application/wasm", "application/x-sqlite3", "application/parquet", "application/vnd.apache.parquet",
}

func isBinary(mediaType string) bool {
	for _, prefix := range binaryTypes {
		if strings.HasPrefix(mediaType, prefix) {
			return true
		}
	}
	return false
}

// keep makes the rest of the body a file, as it arrives.
func (x *execution) keep(ctx context.Context, resp *response, body io.Reader) (err error) {
	resp.file, err = x.call.Files.Save(ctx, workflow.Binary{MimeType: resp.mediaType(), FileName: resp.fileName()}, body)
	if errors.Is(err, node.ErrFileTooLarge) {
		return x.fileTooLarge()
	}
	return err
}

func (resp *response) fileName() string {
	if _, parameters, err := mime.ParseMediaType(resp.headers.Get("Content-Disposition")); err == nil && parameters["filename"] != "" {
		return path.Base(strings.ReplaceAll(parameters["filename"], `\`, "/"))
	}
	if resp.url == nil {
		return ""
	}
	if name := path.Base(resp.url.Path); name != "/" && name != "." {
		return name
	}
	return ""
}
