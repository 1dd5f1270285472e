package mail

import (
	"context"
	"fmt"
	"strings"

	"github.com/reprise-engine/reprise/pkg/node"
	"github.com/reprise-engine/reprise/pkg/nodes/approval"
)

// gate asks by mail before a tool is run.
func gate(ctx context.Context, call *node.Call) (*node.Result, error) {
	if call.Resumption != nil {
		return approval.Answer(call, false)
	}
	about, err := approval.GatedCall(ctx, call)
	if err != nil {
		return nil, err
	}
	return askByMail(ctx, call, about)
}

// sendAndWait asks once for all items, with the parameters of the first.
func sendAndWait(ctx context.Context, call *node.Call) (*node.Result, error) {
	if call.Resumption != nil {
		kind, err := responseType(ctx, call, false)
		if err != nil {
			return nil, err
		}
		return approval.Answer(call, kind == freeText)
	}
	if len(call.Inputs) == 0 || len(call.Inputs[0]) == 0 {
		return &node.Result{}, nil // nothing to ask about
	}
	return askByMail(ctx, call, nil)
}

const freeText = "freeText"

// responseType is how a person answers: "approval" or "freeText".
func responseType(ctx context.Context, call *node.Call, gated bool) (string, error) {
	kind, err := call.String(ctx, 0, "responseType", "approval")
	switch {
	case err != nil || kind == "approval" || kind == freeText && !gated:
		return kind, err
	case gated:
		return "", operationError(fmt.Sprintf("The response type %q cannot allow a tool; want approval", kind), "parameter responseType")
	case kind == "customForm":
		return "", operationError("Forms as answers to a mail are not supported here; want approval or freeText", "parameter responseType")
	}
	return "", operationError(fmt.Sprintf("The response type %q is not known here; want approval or freeText", kind), "parameter responseType")
}

// askByMail sends the question and waits. The mail goes out only when everything about
// the question is known to be right.
func askByMail(ctx context.Context, call *node.Call, about *approval.ToolCall) (*node.Result, error) {
	page := call.Execution.ApprovalURL
	if page == "" {
		return nil, operationError("There is no page on which a person could answer the mail",
			"Set REPRISE_HTTP_ADDR and REPRISE_PUBLIC_URL (the address at which people reach it) on the coordinators; for \"reprise run\" give --http.")
	}
	kind, err := responseType(ctx, call, about != nil)
	if err != nil {
		return nil, err
	}
	q, in, err := question(ctx, call, about, kind)
	if err != nil {
		return nil, err
	}
	html, text, err := in.write()
	if err != nil {
		return nil, err
	}
	l, err := compose(ctx, call, 0, body{text: &text, html: &html})
	if err != nil {
		return nil, err
	}
	var p postman
	defer p.close()
	r, err := post(ctx, call, &p, 0, l)
	if err != nil {
		return nil, err
	}
	result := q.Wait()
	result.Hints = r.hints(l)
	return result, nil
}

// question reads what is asked, for the page and for the mail.
func question(ctx context.Context, call *node.Call, about *approval.ToolCall, kind string) (q approval.Question, in invitation, err error) {
	read := func(path, fallback string) string {
		if err != nil {
			return ""
		}
		var text string
		if text, err = call.String(ctx, 0, path, fallback); strings.TrimSpace(text) == "" {
			return fallback
		}
		return text
	}
	q = approval.Question{
		Title: read("subject", ""), Text: read("message", ""),
		FreeText: kind == freeText, About: about,
	}
	page := call.Execution.ApprovalURL
	if q.FreeText {
		in.Buttons = []button{{read("options.messageButtonLabel", "Respond"), page, true}}
		q.Title = read("options.responseFormTitle", q.Title)
		q.Approve = read("options.responseFormButtonLabel", "Submit")
	} else {
		// n8n leaves out what is as it was: one button for a step of a workflow. Who is asked
		// about a tool must be able to say no.
		fallback := "single"
		if about != nil {
			fallback = "double"
		}
		const options = "approvalOptions.values."
		q.Approve = read(options+"approveLabel", "Approve")
		in.Buttons = []button{{q.Approve, choose(page, "approve"), read(options+"buttonApprovalStyle", "primary") != "secondary"}}
		if read(options+"approvalType", fallback) == "double" {
			q.Deny = read(options+"disapproveLabel", "Decline")
			in.Buttons = append(in.Buttons, button{q.Deny, choose(page, "deny"), read(options+"buttonDisapprovalStyle", "secondary") == "primary"})
		}
	}
	if err != nil {
		return q, in, err
	}
	if q.Text == "" && about != nil {
		q.Text = fmt.Sprintf("An agent wants to run %q and needs your approval.", about.Node)
	}
	if q.Until, err = limit(ctx, call); err != nil {
		return q, in, err
	}
	in.Subject, in.Message = q.Title, q.Text
	in.show(about)
	if !q.Until.IsZero() {
		in.Until = q.Until.In(zone(call)).Format("Monday, 2 January 2006, 15:04 MST")
	}
	return q, in, nil
}

// choose is the link to the page with one answer marked. It leaves the signed part
// as it is.
func choose(page, choice string) string {
	separator := "?"
	if strings.Contains(page, "?") {
		separator = "&"
	}
	return page + separator + "choice=" + choice
}
