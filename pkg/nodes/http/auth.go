package http

import (
	"encoding/base64"
	"fmt"
	nethttp "net/http"
	"sort"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/reprise-engine/reprise/pkg/nodes/jsonobject"
)

// secrets is what a credential adds to a request, and what must not be seen.
type secrets struct {
	headers map[string]string
	query   jsonobject.Object
	body    jsonobject.Object
	hidden  []string
}

// credential is the data of a credential while its parts are read.
type credential struct {
	kind string
	data map[string]any
}

func (c *credential) text(names ...string) string {
	for _, name := range names {
		switch v := c.data[name].(type) {
		case string:
			if v != "" {
				return v
			}
		case float64, int, bool:
			return fmt.Sprint(v)
		}
	}
	return ""
}

// authenticate reads the credential that the node names, if any.
func (p *parameters) authenticate() (*secrets, error) {
	var kind string
	switch authentication := p.text("authentication", "none"); authentication {
	case "none", "":
	case "genericCredentialType":
		kind = p.text("genericAuthType", "")
	case "predefinedCredentialType":
		kind = p.text("nodeCredentialType", "")
	default: // versions 1 and 2 name the kind itself, "headerAuth"
		kind = authentication
		if !strings.HasPrefix(kind, "http") && !strings.HasSuffix(kind, "Api") {
			kind = "http" + strings.ToUpper(kind[:1]) + kind[1:]
		}
	}
	if p.err != nil || kind == "" {
		return &secrets{}, p.err
	}
	ref, ok := p.call.Node.Credentials[kind]
	if !ok {
		return nil, operationError(fmt.Sprintf("Node does not have any credentials set for %q", kind))
	}
	if p.call.Credentials == nil {
		return nil, operationError("credentials are not available here")
	}
	data, err := p.call.Credentials(p.ctx, kind, ref)
	if err != nil {
		return nil, fmt.Errorf("credential %q of type %s: %w", ref.Name, kind, err)
	}
	return newSecrets(&credential{kind, data})
}

// newSecrets tells what a kind of credential adds to requests.
func newSecrets(c *credential) (*secrets, error) {
	s := &secrets{headers: map[string]string{}}
	s.hide(c.data)
	switch c.kind {
	case "httpHeaderAuth":
		s.headers[c.text("name")] = c.text("value")
	case "httpBearerAuth":
		s.bearer(c.text("token"))
	case "httpBasicAuth":
		s.basic(c.text("user"), c.text("password"))
	case "httpQueryAuth":
		s.query.Set(c.text("name"), jsonobject.Quote(c.text("value")))
	case "httpCustomAuth":
		return s, s.custom(c)
	default:
		return s, s.predefined(c)
	}
	return s, nil
}

func (s *secrets) bearer(token string) { s.headers["Authorization"] = "Bearer " + token }

func (s *secrets) basic(user, password string) {
	encoded := base64.StdEncoding.EncodeToString([]byte(user + ":" + password))
	s.headers["Authorization"] = "Basic " + encoded
	s.hidden = append(s.hidden, encoded)
}

// custom reads {"headers": {}, "qs": {}, "body": {}}.
func (s *secrets) custom(c *credential) error {
	text := c.text("json")
	if !gjson.Valid(text) {
		return operationError("Invalid Custom Auth JSON")
	}
	custom := gjson.Parse(text)
	custom.Get("headers").ForEach(func(name, value gjson.Result) bool {
		s.headers[name.String()] = headerValue(value.Raw)
		return true
	})
	s.query = jsonobject.Parse(custom.Get("qs").Raw)
	s.body = jsonobject.Parse(custom.Get("body").Raw)
	s.hideJSON(custom)
	return nil
}

// ownHeaders are services whose key goes into a header of their own. The value
// is the header; extra headers follow it as name, value.
var ownHeaders = map[string][]string{
	"anthropicApi":          {"x-api-key", "anthropic-version", "2023-06-01"},
	"azureOpenAiApi":        {"api-key"},
	"n8nApi":                {"X-N8N-API-KEY"},
	"pineconeApi":           {"Api-Key"},
	"qdrantApi":             {"api-key"},
	"shopifyAccessTokenApi": {"X-Shopify-Access-Token"},
	"virusTotalApi":         {"x-apikey"},
}

// predefined covers the services that take a key as a bearer token, which most
// do, and those listed above.
func (s *secrets) predefined(c *credential) error {
	key := c.text("apiKey", "accessToken", "token", "apiToken", "appToken", "appAccessToken", "secretKey")
	if tokens, ok := c.data["oauthTokenData"].(map[string]any); ok {
		oauth := credential{data: tokens}
		key = oauth.text("access_token")
	}
	header := ownHeaders[c.kind]
	user, password := c.text("user", "username", "email"), c.text("password")
	switch {
	case c.kind == "googlePalmApi" && key != "":
		s.headers["x-goog-api-key"] = key
	case c.kind == "supabaseApi":
		key = c.text("serviceRole")
		s.headers["apikey"] = key
		s.bearer(key)
	case header != nil && key != "":
		s.headers[header[0]] = key
		for i := 1; i+1 < len(header); i += 2 {
			s.headers[header[i]] = header[i+1]
		}
	case key != "":
		s.bearer(key)
		if c.kind == "notionApi" {
			s.headers["Notion-Version"] = "2022-02-22"
		}
		if organization := c.text("organizationId"); c.kind == "openAiApi" && organization != "" {
			s.headers["OpenAI-Organization"] = organization
		}
		if name := c.text("headerName"); name != "" && c.text("headerValue") != "" {
			s.headers[name] = c.text("headerValue")
		}
	case user != "" && password != "":
		s.basic(user, password)
	default:
		return operationError(fmt.Sprintf("credentials of type %q are not supported by this node; use a generic credential (header, bearer, basic or query auth) instead", c.kind))
	}
	return nil
}

// hide notes every text of a credential that is long enough to be a secret.
func (s *secrets) hide(value any) {
	switch v := value.(type) {
	case string:
		s.hideText(v)
	case map[string]any:
		for name, inner := range v {
			switch name {
			case "name", "url", "host", "headerName": // needed to understand an error, and no secret
			default:
				s.hide(inner)
			}
		}
	case []any:
		for _, inner := range v {
			s.hide(inner)
		}
	}
}

func (s *secrets) hideJSON(v gjson.Result) {
	if v.Type == gjson.String {
		s.hideText(v.Str)
	}
	if v.IsObject() || v.IsArray() {
		v.ForEach(func(_, inner gjson.Result) bool {
			s.hideJSON(inner)
			return true
		})
	}
}

const minSecretBytes = 4

func (s *secrets) hideText(text string) {
	if len(text) < minSecretBytes {
		return
	}
	s.hidden = append(s.hidden, text)
	if escaped := escape(text); escaped != text {
		s.hidden = append(s.hidden, escaped)
	}
	// Longest first, so that no part of a secret is left of one that holds another.
	sort.Slice(s.hidden, func(i, j int) bool { return len(s.hidden[i]) > len(s.hidden[j]) })
}

const blank = "[secret]"

// redact blanks out every secret in a text.
func (s *secrets) redact(text string) string {
	if s == nil {
		return text
	}
	for _, secret := range s.hidden {
		text = strings.ReplaceAll(text, secret, blank)
	}
	return text
}

// redactJSON is redact for a text inside which secrets may be escaped.
func (s *secrets) redactJSON(text string) string {
	if s == nil {
		return text
	}
	for _, secret := range s.hidden {
		text = strings.ReplaceAll(text, secret, blank)
		quoted := jsonobject.Quote(secret)
		text = strings.ReplaceAll(text, quoted[1:len(quoted)-1], blank)
	}
	return text
}

// setHeaders adds the credential's headers; they win over the user's.
func (s *secrets) setHeaders(req *nethttp.Request) {
	for name, value := range s.headers {
		if name != "" {
			req.Header.Set(name, value)
		}
	}
}

// apply adds the query and body parts.
func (r *request) apply(s *secrets) {
	r.secrets = *s
	if s.query.Len() > 0 {
		r.query = r.query.Clone()
		for _, m := range s.query.Members() {
			r.query.Set(m.Key, m.Value)
		}
	}
	if s.body.Len() > 0 && r.body.contentType == "application/json" {
		o := jsonobject.Parse(r.body.bytes)
		for _, m := range s.body.Members() {
			o.Set(m.Key, m.Value)
		}
		r.body.bytes = o.JSON()
	}
}
