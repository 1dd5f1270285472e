package trigger

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// webhook handles a call of a Webhook node.
func (c *call) webhook() {
	p := parametersOf(c.r.Context(), c.host.Evaluator, c.hook.workflow, c.hook.node, nil)
	c.cors(p)
	if problem := c.admit(p); problem != nil {
		problem.write(c.w, "")
		return
	}
	body, problem := c.readContent()
	if problem != nil {
		problem.write(c.w, "")
		return
	}
	item, problem := c.item(p, body)
	switch {
	case problem != nil:
		problem.write(c.w, "")
		return
	case p.err != nil:
		c.broken(p.err).write(c.w, "")
		return
	}
	items := workflow.Items{item}
	// What is answered may be an expression about the call.
	answer := readAnswer(parametersOf(c.r.Context(), c.host.Evaluator, c.hook.workflow, c.hook.node, items), c.hook)
	if answer.err != nil {
		c.broken(answer.err).write(c.w, "")
		return
	}
	id, problem := c.begin(items, "webhook")
	if problem != nil {
		problem.write(c.w, id)
		return
	}
	c.answer(id, answer)
}

// item is what the Webhook node gives out.
func (c *call) item(p *parameters, body *content) (workflow.Item, *problem) {
	query := fields(c.r.URL.RawQuery)
	params := newObject()
	for _, s := range c.hook.segments {
		if isParameter(s) {
			params.set(s[1:], c.params[s[1:]])
		}
	}
	out := struct {
		Headers    map[string]string `json:"headers"`
		Params     *object           `json:"params"`
		Query      *object           `json:"query"`
		Body       json.RawMessage   `json:"body"`
		WebhookURL string            `json:"webhookUrl"`
		Mode       string            `json:"executionMode"`
		Claims     json.RawMessage   `json:"jwtPayload,omitempty"`
	}{c.headersOf(), params, query, body.body, c.address(), "production", c.claims}
	item := workflow.Item{JSON: toJSON(out)}
	prefix := p.text("options.binaryPropertyName", "")
	if prefix == "" {
		prefix = p.text("binaryPropertyName", "")
	}
	files := map[string]workflow.Binary{}
	counts := map[string]int{}
	for _, f := range body.files {
		counts[f.field]++
	}
	seen := map[string]int{}
	for i, f := range body.files {
		name := strings.TrimSuffix(f.field, "[]")
		switch {
		case prefix != "":
			name = fmt.Sprintf("%s%d", prefix, i)
		case counts[f.field] > 1:
			name = fmt.Sprintf("%s%d", name, seen[f.field])
			seen[f.field]++
		}
		file, problem := c.keepFile(f.name, f.media, f.data)
		if problem != nil {
			return item, problem
		}
		files[name] = file
	}
	if prefix == "" {
		prefix = "data"
	}
	if body.binary || (p.flag("options.rawBody") || p.flag("options.binaryData")) && len(body.raw) > 0 && len(body.files) == 0 {
		media := body.media
		if media == "" {
			media = "application/octet-stream"
		}
		file, problem := c.keepFile("", media, body.raw)
		if problem != nil {
			return item, problem
		}
		files[prefix] = file
	}
	if len(files) > 0 {
		item.Binary = files
	}
	return item, nil
}

// answer is how a call is to be answered.
type answer struct {
	mode     string // onReceived, lastNode, responseNode
	data     string // of lastNode
	response engine.WebhookResponse
	none     bool
	// property of the first item's JSON that is sent instead of all, and file that is.
	property, contentType, file string
	nodes                       []string
	err                         error
}

const startedText = `{"message":"Workflow was started"}`

// readAnswer reads how a Webhook node answers.
func readAnswer(p *parameters, h *hook) *answer {
	a := &answer{mode: p.text("responseMode", "onReceived"), nodes: respondNodes(h.workflow)}
	a.response.Status = readStatus(p)
	a.response.Headers = map[string]string{}
	for _, entry := range p.get("options.responseHeaders.entries").Array() {
		a.response.Headers[entry.Get("name").String()] = entry.Get("value").String()
	}
	switch a.mode {
	case "onReceived":
		a.none = p.flag("options.noResponseBody")
		text := p.get("options.responseData")
		a.response.Body = text.String()
		if a.response.Body == "" {
			a.response.Body = startedText
		}
	case "lastNode", "streaming":
		a.mode = "lastNode"
		a.data = p.text("responseData", "firstEntryJson")
		a.property = p.text("options.responsePropertyName", "")
		a.contentType = p.text("options.responseContentType", "")
		a.file = p.text("responseBinaryPropertyName", "data")
	case "responseNode":
	default:
		a.err = fmt.Errorf("node %q: the response mode %q is unknown", h.node.Name, a.mode)
	}
	if a.err == nil {
		a.err = p.err
	}
	return a
}

func readStatus(p *parameters) int {
	status := http.StatusOK
	if old := p.get("responseCode"); old.Type == gjson.Number || old.Type == gjson.String {
		status = p.number("responseCode", status)
	}
	if chosen := p.get("options.responseCode.values.responseCode"); chosen.Exists() {
		if chosen.String() == "customCode" {
			return p.number("options.responseCode.values.customCode", status)
		}
		return p.number("options.responseCode.values.responseCode", status)
	}
	return status
}
