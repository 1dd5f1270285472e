package trigger

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"html/template"
	"net/http"
	"slices"
	"strings"

	"github.com/google/uuid"
	"github.com/tidwall/gjson"

	"github.com/reprise-engine/reprise/pkg/workflow"
)

//go:embed chat.html
var chatText string

var chatPage = template.Must(template.New("chat").Parse(chatText))

// chatHookOf reads a Chat Trigger; nil when it is not public.
func chatHookOf(ctx context.Context, e Evaluator, s *source, n *workflow.Node) (*hook, error) {
	p := parametersOf(ctx, e, s.workflow, n, nil)
	if !p.flag("public") {
		return nil, p.err
	}
	if n.WebhookID == "" {
		return nil, fmt.Errorf("node %q is public and has no webhookId, which its address is made of", n.Name)
	}
	methods := []string{http.MethodPost}
	if p.text("mode", "hostedChat") == "hostedChat" {
		methods = append(methods, http.MethodGet)
	}
	return &hook{base: WebhookPath, path: n.WebhookID + "/chat", methods: methods}, p.err
}

// chat shows the page of a chat, or takes a message of it.
func (c *call) chat() {
	p := parametersOf(c.r.Context(), c.host.Evaluator, c.hook.workflow, c.hook.node, nil)
	allowOrigin(c.w, c.r, p.text("options.allowedOrigins", ""))
	if problem := c.admit(p); problem != nil {
		problem.write(c.w, "")
		return
	}
	if c.r.Method == http.MethodGet {
		c.chatPage(p)
		return
	}
	body, problem := c.readContent()
	if problem != nil {
		problem.write(c.w, "")
		return
	}
	message := gjson.ParseBytes(body.body)
	switch action := message.Get("action").String(); {
	case !message.IsObject():
		problem = &problem400
	case action == "loadPreviousSession" && p.text("options.loadPreviousSession", "") != "manually":
		c.previousSession(p, body.body)
		return
	case action == "loadPreviousSession": // the workflow gives the messages
	case action != "" && action != "sendMessage" || !message.Get("chatInput").Exists():
		problem = &problem400
	}
	if problem != nil {
		problem.write(c.w, "")
		return
	}
	item := workflow.Item{JSON: body.body}
	if !message.Get("sessionId").Exists() {
		fields := map[string]json.RawMessage{}
		_ = json.Unmarshal(body.body, &fields) // it is an object
		fields["sessionId"] = toJSON(uuid.NewString())
		item.JSON = toJSON(fields)
	}
	if p.flag("options.allowFileUploads") {
		for i, f := range body.files {
			if item.Binary == nil {
				item.Binary = map[string]workflow.Binary{}
			}
			file, problem := c.keepFile(f.name, f.media, f.data)
			if problem != nil {
				problem.write(c.w, "")
				return
			}
			item.Binary[fmt.Sprintf("data%d", i)] = file
		}
	}
	mode := p.text("options.responseMode", "lastNode")
	if p.err != nil {
		c.broken(p.err).write(c.w, "")
		return
	}
	id, problem := c.begin(workflow.Items{item}, "webhook")
	if problem != nil {
		problem.write(c.w, id)
		return
	}
	a := &answer{mode: "lastNode", data: "firstEntryJson", nodes: respondNodes(c.hook.workflow)}
	a.response.Headers = map[string]string{}
	if mode == "responseNode" {
		a.mode = mode
	}
	c.answer(id, a)
}

var problem400 = problem{status: http.StatusBadRequest, message: `the message cannot be read: send {"action":"sendMessage","sessionId":"…","chatInput":"…"}`}

func (c *call) writeJSON(text string) {
	c.w.Header().Set("Content-Type", "application/json; charset=utf-8")
	_, _ = c.w.Write([]byte(text))
}

func (c *call) chatPage(p *parameters) {
	nonce := strings.ReplaceAll(uuid.NewString(), "-", "")
	data := struct {
		Title, Subtitle, Placeholder, Nonce string
		Messages                            []string
		Previous                            bool // earlier messages are shown
	}{
		Previous: !slices.Contains([]string{"", "notSupported"}, p.text("options.loadPreviousSession", "")),
		Title:    p.text("options.title", "Hi there! 👋"), Subtitle: p.text("options.subtitle", ""),
		Placeholder: p.text("options.inputPlaceholder", "Type your question.."), Nonce: nonce,
	}
	for _, line := range strings.Split(p.text("initialMessages", ""), "\n") {
		if line = strings.TrimSpace(line); line != "" {
			data.Messages = append(data.Messages, line)
		}
	}
	if p.err != nil {
		c.broken(p.err).write(c.w, "")
		return
	}
	writePage(c.w, http.StatusOK, chatPage, data, "script-src 'nonce-"+nonce+"'; connect-src 'self'")
}

// writePage writes a page of ours. Nothing of another origin is loaded, and no script but what
// more allows.
func writePage(w http.ResponseWriter, status int, page *template.Template, data any, more string) {
	var b strings.Builder
	if err := page.Execute(&b, data); err != nil { // our own templates: it does not happen
		(&problem{status: http.StatusInternalServerError, message: "the page cannot be shown"}).write(w, "")
		return
	}
	policy := "default-src 'none'; style-src 'unsafe-inline'; img-src https: data:; base-uri 'none'"
	if more != "" {
		policy += "; " + more
	}
	w.Header().Set("Content-Security-Policy", policy)
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Referrer-Policy", "no-referrer")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(b.String()))
}
