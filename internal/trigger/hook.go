package trigger

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/reprise-engine/reprise/pkg/workflow"
)

// The trigger types that are hosted.
const (
	typeWebhook  = "n8n-nodes-base.webhook"
	typeForm     = "n8n-nodes-base.formTrigger"
	typeChat     = "@n8n/n8n-nodes-langchain.chatTrigger"
	typeSchedule = "n8n-nodes-base.scheduleTrigger"
	typeCron     = "n8n-nodes-base.cron"
	typeInterval = "n8n-nodes-base.interval"
	typeFeed     = "n8n-nodes-base.rssFeedReadTrigger"
	typeStream   = "n8n-nodes-base.sseTrigger"
	typeMailbox  = "n8n-nodes-base.emailReadImap"
	typeRespond  = "n8n-nodes-base.respondToWebhook"
)

// called are begun by other executions, not from here; a workflow may be active for them.
var called = []string{
	"n8n-nodes-base.errorTrigger", "n8n-nodes-base.executeWorkflowTrigger", "n8n-nodes-base.workflowTrigger",
}

// The beginnings of the paths that triggers are called at.
const (
	WebhookPath = "/webhook/"
	FormPath    = "/form/"
)

// source is an active workflow.
type source struct {
	id          string
	hash        string
	activatedAt int64 // ms
	changedAt   int64 // ms: since then the triggers are as they are now
	workflow    *workflow.Workflow
}

// hook is one trigger that is called over HTTP.
type hook struct {
	*source
	node     *workflow.Node
	kind     string   // the node's type
	base     string   // WebhookPath or FormPath
	methods  []string // upper case
	path     string   // below base, as webhookUrl shows it
	segments []string // of path; those that begin with ":" are parameters
	dynamic  bool
}

// hooksOf reads the HTTP triggers of a workflow.
func hooksOf(ctx context.Context, e Evaluator, s *source) ([]*hook, error) {
	var hooks []*hook
	for _, n := range s.workflow.Nodes {
		if n.Disabled {
			continue
		}
		var h *hook
		var err error
		switch n.Type {
		case typeWebhook:
			h, err = webhookOf(ctx, e, s, n)
		case typeForm:
			h, err = formHookOf(ctx, e, s, n)
		case typeChat:
			h, err = chatHookOf(ctx, e, s, n)
		}
		if err != nil {
			return nil, err
		}
		if h == nil {
			continue
		}
		h.source, h.node, h.kind = s, n, n.Type
		h.segments = strings.Split(h.path, "/")
		h.dynamic = slices.ContainsFunc(h.segments, isParameter)
		hooks = append(hooks, h)
	}
	return hooks, nil
}

func isParameter(segment string) bool { return len(segment) > 1 && segment[0] == ':' }

var webhookMethods = []string{"DELETE", "GET", "HEAD", "PATCH", "POST", "PUT", "OPTIONS"}

// webhookOf reads a Webhook node. A path with parameters begins with the node's webhookId, as
// in n8n, so that it cannot take the calls of other workflows.
func webhookOf(ctx context.Context, e Evaluator, s *source, n *workflow.Node) (*hook, error) {
	p := parametersOf(ctx, e, s.workflow, n, nil)
	h := &hook{base: WebhookPath, path: strings.Trim(p.text("path", ""), "/ ")}
	if h.path == "" {
		h.path = n.WebhookID
	}
	if strings.Contains(h.path, "/:") || strings.HasPrefix(h.path, ":") {
		if n.WebhookID != "" {
			h.path = n.WebhookID + "/" + h.path
		}
	}
	method := p.get("httpMethod")
	switch {
	case p.flag("multipleMethods") || method.IsArray():
		for _, one := range method.Array() {
			h.methods = append(h.methods, strings.ToUpper(one.String()))
		}
		if len(h.methods) == 0 {
			h.methods = []string{"GET", "POST"}
		}
	default:
		h.methods = []string{strings.ToUpper(p.text("httpMethod", "GET"))}
	}
	switch {
	case p.err != nil:
		return nil, p.err
	case h.path == "":
		return nil, fmt.Errorf("node %q has no path", n.Name)
	}
	for _, m := range h.methods {
		if !slices.Contains(webhookMethods, m) {
			return nil, fmt.Errorf("node %q: the HTTP method %q cannot be served; use one of %s", n.Name, m, strings.Join(webhookMethods, ", "))
		}
	}
	if p.text("responseMode", "onReceived") == "responseNode" && len(respondNodes(s.workflow)) == 0 {
		return nil, fmt.Errorf("node %q is answered by a Respond to Webhook node, and the workflow has none", n.Name)
	}
	return h, nil
}

// respondNodes are the names of the nodes that may answer a call.
func respondNodes(w *workflow.Workflow) []string {
	var names []string
	for _, n := range w.Nodes {
		if n.Type == typeRespond && !n.Disabled {
			names = append(names, n.Name)
		}
	}
	return names
}

// Check says what keeps a workflow from being active: it has no trigger, or one that cannot be
// hosted as it is. e may be nil when no parameter is an expression.
func Check(ctx context.Context, e Evaluator, w *workflow.Workflow) error {
	s := &source{id: w.ID, workflow: w}
	hooks, err := hooksOf(ctx, e, s)
	if err != nil {
		return err
	}
	schedules, err := schedulesOf(ctx, e, s)
	if err != nil {
		return err
	}
	streams, err := streamsOf(ctx, e, s)
	if err != nil {
		return err
	}
	if _, clashes := newTable(hooks); len(clashes) > 0 {
		return errors.New(clashes[0])
	}
	if len(hooks)+len(schedules)+len(streams) > 0 {
		return nil
	}
	for _, n := range w.Nodes {
		if !n.Disabled && slices.Contains(called, n.Type) {
			return nil
		}
	}
	return errors.New("it has no trigger that begins it: add a Webhook, Schedule, Form or Chat trigger, or submit it by hand")
}
