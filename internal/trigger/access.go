package trigger

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"github.com/golang-jwt/jwt/v5"
	"go.uber.org/zap"
)

// admit checks what a trigger asks of its callers: their address, that they are no robot,
// and who they are. It returns what a caller is told that is not let in.
func (c *call) admit(p *parameters) *problem {
	if list := p.text("options.ipWhitelist", ""); strings.TrimSpace(list) != "" && !listed(list, c.ip) {
		return &problem{status: http.StatusForbidden, message: "calls from this address are not allowed"}
	}
	if p.flag("options.ignoreBots") && isBot(c.r.UserAgent()) {
		return &problem{status: http.StatusForbidden, message: "calls of robots are not taken"}
	}
	kind := p.text("authentication", "none")
	if p.err != nil {
		return c.broken(p.err)
	}
	switch kind {
	case "", "none":
		return nil
	case "basicAuth":
		return c.basic()
	case "headerAuth":
		return c.header()
	case "jwtAuth":
		return c.jwt()
	}
	c.host.log.Warn("trigger asks for an authentication that cannot be checked; its calls are refused",
		zap.String("workflow_id", c.hook.id), zap.String("node", c.hook.node.Name), zap.String("authentication", kind))
	return &problem{status: http.StatusForbidden, message: "this trigger asks for an authentication that is not supported here"}
}

// broken is for what the author of the workflow must mend: the log says it, not the answer.
func (c *call) broken(err error) *problem {
	c.host.log.Warn("call cannot be handled", zap.String("workflow_id", c.hook.id), zap.String("node", c.hook.node.Name), zap.Error(err))
	return &problem{status: http.StatusInternalServerError, message: "the trigger is not set up correctly; the log of the coordinator says what is wrong"}
}

// listed reports whether an address is in a list of addresses and ranges. Nothing in it that
// cannot be read lets anybody in.
func listed(list string, ip netip.Addr) bool {
	for _, text := range strings.Split(list, ",") {
		text = strings.TrimSpace(text)
		if prefix, err := netip.ParsePrefix(text); err == nil && prefix.Contains(ip) {
			return true
		}
		if one, err := netip.ParseAddr(text); err == nil && one.Unmap() == ip {
			return true
		}
	}
	return false
}

// robots are words in the User-Agent of crawlers and of programs that show previews of links.
var robots = []string{
	"bot", "crawler", "spider", "slurp", "facebookexternalhit", "facebookcatalog", "whatsapp", "embedly", "preview",
	"skypeuripreview", "vkshare", "pinterest", "mediapartners-google", "headlesschrome", "lighthouse", "ia_archiver", "scrapy",
}

func isBot(agent string) bool {
	agent = strings.ToLower(agent)
	return slices.ContainsFunc(robots, func(word string) bool { return strings.Contains(agent, word) })
}

// secret returns the credential that callers are checked against.
func (c *call) secret(kind string) (map[string]any, *problem) {
	ref, ok := c.hook.node.Credentials[kind]
	var data map[string]any
	var err error
	if ok && c.host.Credentials != nil {
		data, err = c.host.Credentials(c.r.Context(), kind, ref)
	}
	if err != nil || data == nil {
		c.host.log.Warn("calls of a trigger are refused: its credential is not in REPRISE_WEBHOOK_CREDENTIALS_FILE",
			zap.String("workflow_id", c.hook.id), zap.String("node", c.hook.node.Name), zap.String("credential_type", kind), zap.Error(err))
		return nil, &problem{status: http.StatusInternalServerError, message: "callers cannot be checked: no authentication data is there"}
	}
	return data, nil
}

func equal(a, b string) bool {
	x, y := sha256.Sum256([]byte(a)), sha256.Sum256([]byte(b)) // so that lengths do not show
	return subtle.ConstantTimeCompare(x[:], y[:]) == 1
}

func textOf(data map[string]any, name string) string {
	text, _ := data[name].(string)
	return text
}

var wrongCredentials = &problem{status: http.StatusForbidden, message: "the authorization data is wrong"}

func (c *call) basic() *problem {
	data, p := c.secret("httpBasicAuth")
	if p != nil {
		return p
	}
	user, password, ok := c.r.BasicAuth()
	if !ok {
		c.w.Header().Set("WWW-Authenticate", `Basic realm="Webhook"`)
		return &problem{status: http.StatusUnauthorized, message: "authorization is required"}
	}
	want := textOf(data, "password")
	right := equal(user, textOf(data, "user"))
	if !equal(password, want) || !right || want == "" {
		return wrongCredentials
	}
	c.hidden = append(c.hidden, "authorization")
	return nil
}

func (c *call) header() *problem {
	data, p := c.secret("httpHeaderAuth")
	if p != nil {
		return p
	}
	name, want := textOf(data, "name"), textOf(data, "value")
	if name == "" || want == "" || !equal(c.r.Header.Get(name), want) {
		return wrongCredentials
	}
	c.hidden = append(c.hidden, strings.ToLower(name))
	return nil
}

// jwt checks a bearer token with the algorithm of the credential and no other.
func (c *call) jwt() *problem {
	data, p := c.secret("jwtAuth")
	if p != nil {
		return p
	}
	token, ok := strings.CutPrefix(c.r.Header.Get("Authorization"), "Bearer ")
	if !ok {
		c.w.Header().Set("WWW-Authenticate", "Bearer")
		return &problem{status: http.StatusUnauthorized, message: "a bearer token is required"}
	}
	algorithm := textOf(data, "algorithm")
	if algorithm == "" {
		algorithm = "HS256"
	}
	claims := jwt.MapClaims{}
	_, err := jwt.ParseWithClaims(strings.TrimSpace(token), claims, func(t *jwt.Token) (any, error) {
		return verificationKey(t.Method, data)
	}, jwt.WithValidMethods([]string{algorithm}))
	if err != nil {
		return &problem{status: http.StatusForbidden, message: "the token is not valid"}
	}
	c.hidden = append(c.hidden, "authorization")
	c.claims, _ = json.Marshal(claims) // came from JSON
	return nil
}

func verificationKey(method jwt.SigningMethod, data map[string]any) (any, error) {
	pem := []byte(textOf(data, "publicKey"))
	switch method.(type) {
	case *jwt.SigningMethodHMAC:
		if textOf(data, "secret") == "" {
			return nil, jwt.ErrInvalidKey
		}
		return []byte(textOf(data, "secret")), nil
	case *jwt.SigningMethodRSA, *jwt.SigningMethodRSAPSS:
		return jwt.ParseRSAPublicKeyFromPEM(pem)
	case *jwt.SigningMethodECDSA:
		return jwt.ParseECPublicKeyFromPEM(pem)
	case *jwt.SigningMethodEd25519:
		return jwt.ParseEdPublicKeyFromPEM(pem)
	}
	return nil, jwt.ErrInvalidKeyType
}

// cors answers the question of a browser whether a page of another origin may see the answer.
func (c *call) cors(p *parameters) {
	allowOrigin(c.w, c.r, p.text("options.allowedOrigins", "*"))
}

func allowOrigin(w http.ResponseWriter, r *http.Request, allowed string) bool {
	origin := r.Header.Get("Origin")
	if origin == "" {
		return false
	}
	for _, one := range strings.Split(allowed, ",") {
		switch one = strings.TrimSpace(one); {
		case one == "*":
			w.Header().Set("Access-Control-Allow-Origin", "*")
			return true
		case strings.EqualFold(strings.TrimRight(one, "/"), origin):
			w.Header().Set("Access-Control-Allow-Origin", origin)
			w.Header().Add("Vary", "Origin")
			return true
		}
	}
	return false
}

// preflight answers a browser that asks before it calls.
func (h *Host) preflight(w http.ResponseWriter, r *http.Request, found *hook, methods []string) {
	p := parametersOf(r.Context(), h.Evaluator, found.workflow, found.node, nil)
	allowed := p.text("options.allowedOrigins", "*")
	if found.kind == typeChat {
		allowed = p.text("options.allowedOrigins", "")
	}
	if allowOrigin(w, r, allowed) {
		w.Header().Set("Access-Control-Allow-Methods", strings.Join(append([]string{"OPTIONS"}, methods...), ", "))
		if headers := r.Header.Get("Access-Control-Request-Headers"); headers != "" {
			w.Header().Set("Access-Control-Allow-Headers", headers)
		}
		w.Header().Set("Access-Control-Max-Age", "300")
	}
	w.WriteHeader(http.StatusNoContent)
}
