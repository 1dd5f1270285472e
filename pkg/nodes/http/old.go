package http

import (
	nethttp "net/http"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"github.com/reprise-engine/reprise/pkg/nodes/jsonobject"
)

// readOldRequest evaluates the parameters of versions 1 and 2, which have other
// names for the same things.
func (p *parameters) readOldRequest() *request {
	r := &request{
		method: strings.ToUpper(p.text("requestMethod", nethttp.MethodGet)),
		url:    p.url(),
		options: options{
			timeout:         time.Duration(p.number("options.timeout", 0)) * time.Millisecond,
			follow:          p.flag("options.followRedirect", true),
			maxRedirects:    defaultMaxRedirects,
			insecure:        p.flag("allowUnauthorizedCerts", false),
			proxy:           p.text("options.proxy", ""),
			format:          p.text("responseFormat", "json"),
			property:        p.text("dataPropertyName", "data"),
			full:            p.flag("options.fullResponse", false),
			neverError:      p.flag("options.ignoreResponseCode", false),
			splitLists:      p.flag("options.splitIntoItems", false),
			legacyErrorBody: true,
		},
	}
	if r.options.timeout <= 0 {
		r.options.timeout = defaultTimeout
	}
	asJSON := p.flag("jsonParameters", false)
	read := func(name, label string) jsonobject.Object {
		if asJSON {
			if raw := gjson.GetBytes(p.call.Node.Parameters, name+"Json"); !raw.Exists() || raw.Str == "" && raw.Type == gjson.String {
				return jsonobject.Object{}
			}
			return p.object(name+"Json", label)
		}
		return p.pairs(name + "Ui.parameter")
	}
	r.query = read("queryParameters", "Query Parameters")
	r.headers = read("headerParameters", "Headers")
	if r.method == nethttp.MethodGet || r.method == nethttp.MethodHead || r.method == nethttp.MethodOptions {
		return r
	}
	switch kind := p.text("options.bodyContentType", "json"); {
	case asJSON && p.flag("sendBinaryData", false):
		r.body = p.fileBody(p.text("binaryPropertyName", "data"))
	case kind == "form-urlencoded":
		r.body = plainBody([]byte(encodeQuery(read("bodyParameters", "Body Parameters"), "indices")), "application/x-www-form-urlencoded")
	case kind == "multipart-form-data":
		r.body = p.multipart("bodyParametersUi.parameter")
	case strings.HasPrefix(kind, "raw"):
		r.body = plainBody([]byte(p.text("bodyParametersJson", "")), p.text("options.bodyContentCustomMimeType", "text/plain"))
	default:
		if o := p.oldJSONBody(asJSON); o != "" {
			r.body = plainBody(compact(o), "application/json")
		}
	}
	return r
}

// oldJSONBody is the body as JSON, which need not be an object; "" is none.
func (p *parameters) oldJSONBody(asJSON bool) string {
	if asJSON {
		return p.json("bodyParametersJson", "Body Parameters")
	}
	if o := p.pairs("bodyParametersUi.parameter"); o.Len() > 0 {
		return o.String()
	}
	return ""
}
