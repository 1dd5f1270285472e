package http

import (
	"context"
	"errors"
	"fmt"
	nethttp "net/http"
	"sort"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"github.com/reprise-engine/reprise/pkg/credential"
	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/node"
	"github.com/reprise-engine/reprise/pkg/nodes/jsonobject"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// secrets is what a credential adds to a request, and what must not be seen.
type secrets struct {
	headers map[string]string
	query   jsonobject.Object
	body    jsonobject.Object
	hidden  []string

	sign   func(req *nethttp.Request, body []byte, now time.Time) error
	digest *credential.Digest
	// token of OAuth2, and renew, which gets another one.
	token string
	renew func(ctx context.Context) (*secrets, error)
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
		switch {
		case kind == "oAuth1" || kind == "oAuth2":
			kind += "Api"
		case !strings.HasPrefix(kind, "http") && !strings.HasSuffix(kind, "Api"):
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
	return loadSecrets(p.ctx, p.call, kind, ref)
}

// loadSecrets reads a credential.
func loadSecrets(ctx context.Context, call *node.Call, kind string, ref workflow.CredentialRef) (*secrets, error) {
	data, err := call.Credentials(ctx, kind, ref)
	if err != nil {
		var known *engine.NodeError
		if errors.As(err, &known) {
			return nil, err
		}
		return nil, fmt.Errorf("credential %q of type %s: %w", ref.Name, kind, err)
	}
	s, err := newSecrets(kind, data)
	if err != nil {
		return nil, err
	}
	if credential.IsOAuth2(kind, data) {
		s.token = credential.AccessToken(data)
		s.renew = func(ctx context.Context) (*secrets, error) {
			return loadSecrets(node.WithRefusedToken(ctx, s.token), call, kind, ref)
		}
	}
	return s, nil
}

// newSecrets tells what a kind of credential adds to requests.
func newSecrets(kind string, data map[string]any) (*secrets, error) {
	s := &secrets{headers: map[string]string{}}
	s.hide(data)
	if kind == "httpCustomAuth" {
		return s, s.custom(credential.Data(data))
	}
	grant, err := credential.New(kind, data)
	if err != nil {
		return nil, operationError(err.Error())
	}
	if grant.Headers != nil {
		s.headers = grant.Headers
	}
	for _, p := range grant.Query {
		s.query.Set(p.Name, jsonobject.Quote(p.Value))
	}
	for _, hidden := range grant.Hidden {
		s.hideText(hidden)
	}
	s.sign, s.digest = grant.Sign, grant.Digest
	return s, nil
}

// custom reads {"headers": {}, "qs": {}, "body": {}}.
func (s *secrets) custom(data credential.Data) error {
	text := data.Text("json")
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

// hide notes every text of a credential that is long enough to be a secret.
func (s *secrets) hide(value any) {
	switch v := value.(type) {
	case string:
		s.hideText(v)
	case map[string]any:
		for name, inner := range v {
			switch name {
			case "name", "url", "host", "headerName", "grantType", "accessTokenUrl", "authUrl", "scope", "scopes", "authentication", "token_type", "region", "signatureMethod": // needed to understand an error, and no secret
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
