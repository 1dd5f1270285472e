package http

import (
	"fmt"
	nethttp "net/http"
	"net/url"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"github.com/reprise-engine/reprise/pkg/nodes/jsonobject"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// request is what one item asks for, with everything evaluated.
type request struct {
	method  string
	url     string
	query   jsonobject.Object
	headers jsonobject.Object
	body    body
	secrets secrets
	options options
	// mayRefuse: a refusal will be answered, so its body is no file.
	mayRefuse bool
}

// body is what is sent: bytes, or parts where files are among them that are not held in memory.
type body struct {
	bytes       []byte
	contentType string
	parts       []part
}

// part is a piece of a body: bytes, or a file that is read while it is sent.
type part struct {
	bytes []byte
	file  *workflow.Binary
}

type options struct {
	timeout         time.Duration
	follow          bool
	maxRedirects    int
	insecure        bool
	proxy           string
	arrays          string // how lists are written in the query: "", "brackets", "indices" or "repeat"
	keepHeaderCase  bool
	format          string // autodetect, json, text or file
	property        string // where text and files go
	full            bool   // tell status and headers too
	neverError      bool
	splitLists      bool // a list becomes an item per element
	legacyErrorBody bool // version 1 and 2 quote a JSON body as it is
	// optimize shortens the answer of a tool; nil leaves it.
	optimize *optimization
	// certificate is shown to servers that ask for one; nil is none.
	certificate *certificate
}

const (
	defaultTimeout      = 5 * time.Minute
	defaultMaxRedirects = 21

	acceptAny  = "application/json,text/html,application/xhtml+xml,application/xml,text/*;q=0.9, image/*;q=0.8, */*;q=0.7"
	acceptJSON = "application/json,text/*;q=0.99"
	acceptText = "application/json,text/html,application/xhtml+xml,application/xml,text/*;q=0.9, */*;q=0.1"
)

// readRequest evaluates the parameters of versions 3 and later for an item.
func (p *parameters) readRequest() *request {
	r := &request{
		method:  strings.ToUpper(p.text("method", nethttp.MethodGet)),
		url:     p.url(),
		options: p.readOptions(),
	}
	if p.flag("sendQuery", false) {
		if p.text("specifyQuery", "keypair") == "json" {
			r.query = p.object("jsonQuery", "JSON Query")
		} else {
			r.query = p.pairs("queryParameters.parameters")
		}
	}
	if p.flag("sendHeaders", false) {
		if p.text("specifyHeaders", "keypair") == "json" {
			r.headers = p.object("jsonHeaders", "JSON Headers")
		} else {
			r.headers = p.pairs("headerParameters.parameters")
		}
	}
	if p.flag("sendBody", false) {
		r.body = p.readBody()
	}
	return r
}

func (p *parameters) url() string { return p.address("url") }

// address is a parameter that holds a URL.
func (p *parameters) address(path string) string {
	v := p.value(path)
	if p.err != nil {
		return ""
	}
	if v.Type != gjson.String {
		got := "undefined"
		if v.Exists() {
			got = v.Raw
		}
		p.err = operationError("URL parameter must be a string, got " + got)
		return ""
	}
	u := strings.TrimSpace(v.Str)
	lower := strings.ToLower(u)
	if !strings.HasPrefix(lower, "http://") && !strings.HasPrefix(lower, "https://") {
		p.err = operationError(fmt.Sprintf(`Invalid URL: %s. URL must start with "http" or "https".`, u))
	}
	return u
}

func (p *parameters) readOptions() options {
	o := options{
		timeout:        time.Duration(p.number("options.timeout", 0)) * time.Millisecond,
		follow:         p.flag("options.redirect.redirect.followRedirects", true),
		maxRedirects:   int(p.number("options.redirect.redirect.maxRedirects", defaultMaxRedirects)),
		insecure:       p.flag("options.allowUnauthorizedCerts", false),
		proxy:          p.text("options.proxy", ""),
		arrays:         p.text("options.queryParameterArrays", ""),
		keepHeaderCase: !p.flag("options.lowercaseHeaders", true),
		format:         p.text("options.response.response.responseFormat", "autodetect"),
		property:       p.text("options.response.response.outputPropertyName", "data"),
		full:           p.flag("options.response.response.fullResponse", false),
		neverError:     p.flag("options.response.response.neverError", false),
		splitLists:     true,
	}
	if o.timeout <= 0 {
		o.timeout = defaultTimeout
	}
	if p.call.Node.Type == TypeTool {
		o.optimize = p.readOptimization()
	}
	if p.flag("provideSslCertificates", false) {
		o.certificate = p.certificate()
	}
	return o
}

// readBody builds the body. Keys keep their order, since some services sign or
// compare bodies as text.
func (p *parameters) readBody() body {
	switch kind := p.text("contentType", "json"); kind {
	case "json":
		if p.text("specifyBody", "keypair") == "json" {
			return plainBody(compact(p.json("jsonBody", "JSON Body")), "application/json")
		}
		return plainBody(compact(p.pairs("bodyParameters.parameters").String()), "application/json")
	case "form-urlencoded":
		const contentType = "application/x-www-form-urlencoded"
		if p.text("specifyBody", "keypair") == "string" {
			return plainBody([]byte(p.text("body", "")), contentType)
		}
		return plainBody([]byte(encodeQuery(p.pairs("bodyParameters.parameters"), "indices")), contentType)
	case "multipart-form-data":
		return p.multipart("bodyParameters.parameters")
	case "binaryData":
		return p.fileBody(p.text("inputDataFieldName", "data"))
	case "raw":
		return plainBody([]byte(p.text("body", "")), p.text("rawContentType", ""))
	default:
		if p.err == nil {
			p.err = operationError(fmt.Sprintf("body content type %q is not supported", kind))
		}
		return body{}
	}
}

// target is the URL with the query parameters added to those it has.
func (r *request) target() (*url.URL, error) {
	u, err := url.Parse(r.url)
	if err != nil || u.Host == "" {
		return nil, operationError("Invalid URL: " + r.secrets.redact(r.url))
	}
	u.RawQuery = escapeQuery(u.RawQuery)
	if more := encodeQuery(r.query, r.options.arrays); more != "" {
		if u.RawQuery != "" {
			u.RawQuery += "&"
		}
		u.RawQuery += more
	}
	u.Fragment = ""
	return u, nil
}

// setHeaders writes the headers of the user, then those that are still missing.
// HTTP does not tell upper and lower case apart; users of keepHeaderCase have
// servers that do.
func (r *request) setHeaders(req *nethttp.Request, idempotencyKey string) {
	for _, m := range r.headers.Members() {
		name, value := strings.TrimSpace(m.Key), headerValue(m.Value)
		switch {
		case name == "":
		case strings.EqualFold(name, "host"):
			req.Host = value
		case strings.EqualFold(name, "content-length"): // follows from the body
		case r.options.keepHeaderCase:
			req.Header[name] = []string{value}
		default:
			req.Header.Set(name, value)
		}
	}
	accept := acceptAny
	switch r.options.format {
	case "json":
		accept = acceptJSON
	case "text":
		accept = acceptText
	}
	setMissing(req.Header, "Accept", accept)
	setMissing(req.Header, "User-Agent", "reprise")
	setMissing(req.Header, "Content-Type", r.body.contentType)
	if !reads(r.method) {
		setMissing(req.Header, "Idempotency-Key", idempotencyKey)
	}
	r.secrets.setHeaders(req)
}

func setMissing(h nethttp.Header, name, value string) {
	if value == "" {
		return
	}
	for key := range h {
		if strings.EqualFold(key, name) {
			return
		}
	}
	h.Set(name, value)
}

func headerValue(raw string) string {
	text := gjson.Parse(raw).String()
	return strings.TrimSpace(strings.NewReplacer("\r", "", "\n", " ").Replace(text))
}

// encodeQuery writes an object the way n8n does: RFC 3986 escapes, nested
// values in brackets, null as an empty value.
func encodeQuery(o jsonobject.Object, arrays string) string {
	var b strings.Builder
	for _, m := range o.Members() {
		appendQuery(&b, escape(m.Key), gjson.Parse(m.Value), arrays)
	}
	return b.String()
}

func appendQuery(b *strings.Builder, key string, value gjson.Result, arrays string) {
	switch {
	case value.IsArray():
		for i, element := range value.Array() {
			switch arrays {
			case "repeat":
				appendQuery(b, key, element, arrays)
			case "brackets":
				appendQuery(b, key+escape("[]"), element, arrays)
			default:
				appendQuery(b, key+escape(fmt.Sprintf("[%d]", i)), element, arrays)
			}
		}
	case value.IsObject():
		value.ForEach(func(name, inner gjson.Result) bool {
			appendQuery(b, key+escape("["+name.String()+"]"), inner, arrays)
			return true
		})
	default:
		if b.Len() > 0 {
			b.WriteByte('&')
		}
		b.WriteString(key)
		b.WriteByte('=')
		b.WriteString(escape(value.String()))
	}
}

const upperHex = "0123456789ABCDEF"

// escape leaves RFC 3986's unreserved characters alone (url.QueryEscape writes
// a space as "+", which not every server reads back).
func escape(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("-._~", c) >= 0 {
			b.WriteByte(c)
			continue
		}
		b.WriteByte('%')
		b.WriteByte(upperHex[c>>4])
		b.WriteByte(upperHex[c&15])
	}
	return b.String()
}

// escapeQuery escapes only what may not stand in a URL at all: a user's query is
// otherwise taken as written.
func escapeQuery(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if c := s[i]; c <= ' ' || c >= 0x7f || strings.IndexByte(`"<>`, c) >= 0 {
			b.WriteByte('%')
			b.WriteByte(upperHex[c>>4])
			b.WriteByte(upperHex[c&15])
			continue
		}
		b.WriteByte(s[i])
	}
	return b.String()
}
