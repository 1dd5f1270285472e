package trigger

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"

	"github.com/google/uuid"
	"go.uber.org/zap"

	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/queue"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// ExecutionHeader of an answer names the execution that the call began.
const ExecutionHeader = "X-Reprise-Execution"

// call is one HTTP call of a hook on its way.
type call struct {
	host   *Host
	hook   *hook
	id     engine.ExecutionID // of the execution that it begins, or belongs to
	w      http.ResponseWriter
	r      *http.Request
	ip     netip.Addr
	params map[string]string
	// hidden are the headers, in lower case, that proved who calls: they are no part of the item.
	hidden []string
	claims json.RawMessage // of a JWT
}

// problem is what a caller is told instead of an answer.
type problem struct {
	status  int
	message string
	hint    string
}

func (p *problem) write(w http.ResponseWriter, id engine.ExecutionID) {
	body := struct {
		Code      int                `json:"code"`
		Message   string             `json:"message"`
		Hint      string             `json:"hint,omitempty"`
		Execution engine.ExecutionID `json:"executionId,omitempty"`
	}{p.status, p.message, p.hint, id}
	data, _ := json.Marshal(body) // texts always encode
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(p.status)
	_, _ = w.Write(data)
}

// Serves reports whether a path, below that of the public URL, is one of a Host.
func Serves(path string) bool {
	for _, base := range []string{WebhookPath, FormPath, FormWaitingPath} {
		if strings.HasPrefix(path, base) {
			return true
		}
	}
	return false
}

// ServeHTTP answers calls of triggers. r.URL.Path is below the public URL's own path.
func (h *Host) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("X-Content-Type-Options", "nosniff")
	ip := h.clientIP(r)
	if after, ok := h.ips.allow(ip.String(), h.Now()); !ok {
		tooMany(w, after)
		return
	}
	if strings.HasPrefix(r.URL.Path, FormWaitingPath) {
		h.formWaiting(w, r)
		return
	}
	base := WebhookPath
	if strings.HasPrefix(r.URL.Path, FormPath) {
		base = FormPath
	}
	// Split before it is decoded: an escaped slash is part of a value.
	segments := strings.Split(strings.Trim(strings.TrimPrefix(r.URL.EscapedPath(), base), "/"), "/")
	for i, s := range segments {
		if plain, err := url.PathUnescape(s); err == nil {
			segments[i] = plain
		}
	}
	t := h.table.Load()
	found, params, methods := t.find(r.Method, base, segments)
	asked := r.Header.Get("Access-Control-Request-Method")
	if found == nil && r.Method == http.MethodOptions && asked != "" {
		if found, _, _ = t.find(asked, base, segments); found != nil {
			h.preflight(w, r, found, methods)
			return
		}
	}
	if found == nil {
		unknown(w, r, methods)
		return
	}
	if after, ok := h.hooks.allow(found.id+"\x00"+found.node.Name, h.Now()); !ok {
		tooMany(w, after)
		return
	}
	c := &call{host: h, hook: found, w: w, r: r, ip: ip, params: params}
	c.id = c.executionID()
	switch found.kind {
	case typeForm:
		c.form()
	case typeChat:
		c.chat()
	default:
		c.webhook()
	}
}

func tooMany(w http.ResponseWriter, after int) {
	w.Header().Set("Retry-After", strconv.Itoa(after))
	(&problem{status: http.StatusTooManyRequests, message: "too many calls: try again later"}).write(w, "")
}

func unknown(w http.ResponseWriter, r *http.Request, methods []string) {
	p := &problem{
		status: http.StatusNotFound, message: fmt.Sprintf("nothing is registered for %s at this address", r.Method),
		hint: "The workflow must be active: reprise workflows activate ID.",
	}
	if len(methods) > 0 {
		p.hint = "This address takes " + strings.Join(methods, ", ") + "."
		w.Header().Set("Allow", strings.Join(methods, ", "))
	}
	p.write(w, "")
}

// clientIP is the address of the caller: the last one in X-Forwarded-For that is no proxy of
// ours when the connection comes from such a proxy.
func (h *Host) clientIP(r *http.Request) netip.Addr {
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{}
	}
	ip := peer.Addr().Unmap()
	hops := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	for i := len(hops) - 1; i >= 0 && h.isProxy(ip); i-- {
		next, err := netip.ParseAddr(strings.TrimSpace(hops[i]))
		if err != nil {
			break
		}
		ip = next.Unmap()
	}
	return ip
}

func (h *Host) isProxy(ip netip.Addr) bool {
	for _, prefix := range h.Proxies {
		if prefix.Contains(ip) {
			return true
		}
	}
	return false
}

// address is where the hook is called, as the outside knows it.
func (c *call) address() string {
	base := ""
	if c.host.Signer != nil {
		base = c.host.Signer.PublicURL()
	}
	if base == "" {
		base = "http://" + c.r.Host
	}
	return base + c.hook.base + c.hook.path
}

// executionID chooses the id of the execution that a call begins. A caller that sends an
// Idempotency-Key gets the same one again.
func (c *call) executionID() engine.ExecutionID {
	key := c.r.Header.Get("Idempotency-Key")
	if key == "" || len(key) > 255 {
		return engine.ExecutionID(uuid.NewString())
	}
	return engine.ExecutionID("call-" + digest(c.hook.id, c.hook.node.Name, key))
}

// digest names a list of texts.
func digest(texts ...string) string {
	sum := sha256.New()
	for _, t := range texts {
		fmt.Fprintf(sum, "%d:%s", len(t), t)
	}
	return hex.EncodeToString(sum.Sum(nil)[:16])
}

// begin submits the execution. What it returns besides the id is for the caller.
func (c *call) begin(items workflow.Items, mode string) (engine.ExecutionID, *problem) {
	id := c.id
	c.w.Header().Set(ExecutionHeader, string(id))
	_, err := c.host.Backend.Submit(c.r.Context(), &queue.Submission{
		ID: id, WorkflowID: c.hook.id, WorkflowHash: c.hook.hash, Start: c.hook.node.Name, Input: items, Mode: mode,
	})
	if err == nil {
		return id, nil
	}
	p := queue.ProblemOf(err)
	c.host.log.Warn("call did not begin an execution", zap.String("workflow_id", c.hook.id), zap.String("node", c.hook.node.Name), zap.Error(err))
	switch p.Code {
	case queue.CodeTooLarge:
		return id, &problem{status: http.StatusRequestEntityTooLarge, message: "the call is too large"}
	case queue.CodeUnavailable, queue.CodeFull, queue.CodeOverloaded:
		c.w.Header().Set("Retry-After", "3")
		return id, &problem{status: http.StatusServiceUnavailable, message: "the execution cannot be started now; it may have begun if this takes long. " +
			"Call again with the same Idempotency-Key to be safe"}
	}
	return id, &problem{status: http.StatusInternalServerError, message: "the execution cannot be started; the log of the coordinator says why"}
}
