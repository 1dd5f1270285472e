package trigger

import (
	"errors"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"go.uber.org/zap"

	"github.com/reprise-engine/reprise/internal/callers"
	"github.com/reprise-engine/reprise/pkg/workflow"
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
		return c.check(callers.Basic, c.hook.node.Credentials[callers.Basic])
	case "headerAuth":
		return c.check(callers.Header, c.hook.node.Credentials[callers.Header])
	case "jwtAuth":
		return c.check(callers.JWT, c.hook.node.Credentials[callers.JWT])
	}
	c.log().Warn("trigger asks for an authentication that cannot be checked; its calls are refused", zap.String("authentication", kind))
	return &problem{status: http.StatusForbidden, message: "this trigger asks for an authentication that is not supported here"}
}

// broken is for what the author of the workflow must mend: the log says it, not the answer.
func (c *call) broken(err error) *problem {
	c.log().Warn("call cannot be handled", zap.Error(err))
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

// check checks the caller against a credential.
func (c *call) check(credentialType string, ref workflow.CredentialRef) *problem {
	caller, err := callers.Check(c.r, c.host.Credentials, credentialType, ref)
	var refusal *callers.Refusal
	switch {
	case errors.As(err, &refusal):
		if refusal.Challenge != "" {
			c.w.Header().Set("WWW-Authenticate", refusal.Challenge)
		}
		return &problem{status: refusal.Status, message: refusal.Message}
	case err != nil:
		c.log().Warn("calls are refused: their callers cannot be checked", zap.String("credential_type", credentialType), zap.Error(err))
		return &problem{status: http.StatusInternalServerError, message: "callers cannot be checked: no authentication data is there"}
	}
	c.hidden, c.claims = append(c.hidden, caller.Hidden), caller.Claims
	return nil
}

// log names what is called.
func (c *call) log() *zap.Logger {
	if c.hook.node == nil { // a form that waits
		return c.host.log.With(zap.String("execution_id", string(c.id)))
	}
	return c.host.log.With(zap.String("workflow_id", c.hook.id), zap.String("node", c.hook.node.Name))
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
