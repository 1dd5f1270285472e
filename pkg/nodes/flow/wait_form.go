package flow

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/node"
	"github.com/reprise-engine/reprise/pkg/nodes/web"
)

// readForm reads the form that ends a wait, and what the person who sends it is shown then.
func readForm(ctx context.Context, call *node.Call) (*engine.WebhookWait, error) {
	callers, err := readCallers(ctx, call)
	if err != nil {
		return nil, err
	}
	if callers != nil && callers.Type != basicAuth {
		return nil, node.OperationError(-1, "A form takes basic authentication or none",
			"Set “Authentication” to “Basic Auth”: a browser asks for user and password, and for nothing else.")
	}
	page, err := web.PageOf(ctx, call, "formTitle", "formDescription")
	if err != nil {
		return nil, err
	}
	page.After = &web.After{}
	const options = "options.respondWithOptions.values."
	for _, p := range []struct {
		path, fallback string
		to             *string
	}{
		{"responseMode", web.OnReceived, &page.After.Mode},
		{options + "respondWith", "text", &page.After.With},
		{options + "formSubmittedText", web.DefaultEnd, &page.After.Text},
		{options + "redirectUrl", "", &page.After.Redirect},
	} {
		if *p.to, err = call.String(ctx, 0, p.path, p.fallback); err != nil {
			return nil, err
		}
	}
	switch page.After.Mode {
	case web.OnReceived, web.LastNode, web.ResponseNode:
	default:
		return nil, node.OperationError(-1, fmt.Sprintf("The response mode %q is unknown", page.After.Mode),
			"The parameter responseMode must be onReceived, lastNode or responseNode.")
	}
	stored, err := json.Marshal(page)
	if err != nil {
		return nil, fmt.Errorf("write the form: %w", err)
	}
	return &engine.WebhookWait{Method: "POST", Suffix: web.FormSuffix, Form: stored, Linked: true, Callers: callers}, nil
}
