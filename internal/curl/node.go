package curl

import (
	"encoding/json"
	"net/url"
	"strings"
)

// Node is an HTTP Request node as n8n writes it.
type Node struct {
	Parameters  map[string]any `json:"parameters"`
	Name        string         `json:"name"`
	Type        string         `json:"type"`
	TypeVersion float64        `json:"typeVersion"`
	Position    [2]int         `json:"position"`
	RetryOnFail bool           `json:"retryOnFail,omitempty"`
	MaxTries    int            `json:"maxTries,omitempty"`
}

// Node makes a node of the request.
func (r *Request) Node() Node {
	p := map[string]any{"method": r.Method, "url": literal(r.URL)}
	if len(r.Query) > 0 {
		p["sendQuery"], p["queryParameters"] = true, list(r.Query)
	}
	headers := r.Headers
	if body := r.body(); body != nil {
		for key, value := range body {
			p[key] = value
		}
		headers = without(headers, "Content-Type")
		if kind := r.Header("Content-Type"); body["contentType"] == "json" && !strings.EqualFold(kind, "application/json") {
			headers = append(headers, Pair{"Content-Type", kind}) // application/vnd.api+json and the like
		}
	}
	if len(headers) > 0 {
		p["sendHeaders"], p["headerParameters"] = true, list(headers)
	}
	p["options"] = r.options()
	n := Node{Parameters: p, Name: "HTTP Request", Type: "n8n-nodes-base.httpRequest", TypeVersion: 4.2}
	if r.Retries > 0 {
		n.RetryOnFail, n.MaxTries = true, r.Retries+1
	}
	return n
}

func (r *Request) options() map[string]any {
	o := map[string]any{}
	redirect := map[string]any{}
	if !r.Follow {
		redirect["followRedirects"] = false
	} else if r.MaxRedirects > 0 {
		redirect["followRedirects"], redirect["maxRedirects"] = true, r.MaxRedirects
	}
	if len(redirect) > 0 {
		o["redirect"] = map[string]any{"redirect": redirect}
	}
	if r.Insecure {
		o["allowUnauthorizedCerts"] = true
	}
	if r.Proxy != "" {
		o["proxy"] = literal(r.Proxy)
	}
	if r.TimeoutMS > 0 {
		o["timeout"] = r.TimeoutMS
	}
	return o
}

// body are the parameters that say what is sent, nil for nothing.
func (r *Request) body() map[string]any {
	kind := r.Header("Content-Type")
	base, _, _ := strings.Cut(strings.ToLower(kind), ";")
	base = strings.TrimSpace(base)
	switch {
	case len(r.Body.Parts) == 1 && r.Body.Parts[0].Name == "":
		return map[string]any{"sendBody": true, "contentType": "binaryData", "inputDataFieldName": "data"}
	case len(r.Body.Parts) > 0:
		return map[string]any{"sendBody": true, "contentType": "multipart-form-data", "bodyParameters": map[string]any{"parameters": parts(r.Body.Parts)}}
	case !r.Body.Given:
		return nil
	case base == "application/json" || strings.HasSuffix(base, "+json"):
		if json.Valid([]byte(r.Body.Text)) {
			return map[string]any{"sendBody": true, "specifyBody": "json", "jsonBody": literal(r.Body.Text), "contentType": "json"}
		}
	case base == "" || base == "application/x-www-form-urlencoded":
		if fields, ok := formFields(r.Body.Text); ok {
			return map[string]any{"sendBody": true, "contentType": "form-urlencoded", "bodyParameters": list(fields)}
		}
	}
	if kind == "" {
		kind = "application/x-www-form-urlencoded"
	}
	return map[string]any{"sendBody": true, "contentType": "raw", "rawContentType": kind, "body": literal(r.Body.Text)}
}

// formFields are the fields of a form; ok is false for a text that would not come out the
// same when it is put together again.
func formFields(text string) (fields []Pair, ok bool) {
	if text == "" {
		return nil, false
	}
	for piece := range strings.SplitSeq(text, "&") {
		name, value, found := strings.Cut(piece, "=")
		n, err := url.QueryUnescape(name)
		v, err2 := url.QueryUnescape(value)
		if !found || name == "" || err != nil || err2 != nil || strings.ContainsAny(name, "{[\"\n") && name == n {
			return nil, false
		}
		fields = append(fields, Pair{n, v})
	}
	return fields, true
}

func parts(all []Part) []map[string]any {
	var found []map[string]any
	for _, part := range all {
		if part.File != "" {
			found = append(found, map[string]any{"parameterType": "formBinaryData", "name": literal(part.Name), "inputDataFieldName": literal(part.Name)})
			continue
		}
		found = append(found, map[string]any{"parameterType": "formData", "name": literal(part.Name), "value": literal(part.Value)})
	}
	return found
}

func list(pairs []Pair) map[string]any {
	all := make([]map[string]any, len(pairs))
	for i, p := range pairs {
		all[i] = map[string]any{"name": literal(p.Name), "value": literal(p.Value)}
	}
	return map[string]any{"parameters": all}
}

func without(pairs []Pair, name string) []Pair {
	var kept []Pair
	for _, p := range pairs {
		if !strings.EqualFold(p.Name, name) {
			kept = append(kept, p)
		}
	}
	return kept
}

// literal is a text as a parameter: one that begins with "=" would be an expression.
func literal(text string) string {
	if !strings.HasPrefix(text, "=") {
		return text
	}
	quoted, _ := json.Marshal(text) // a string always encodes
	return "={{ " + strings.ReplaceAll(string(quoted), "}}", `}\u007d`) + " }}"
}
