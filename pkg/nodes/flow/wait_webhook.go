package flow

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/node"
)

// startedBody is n8n's answer to a webhook whose node does not say another.
const startedBody = `{"message":"Workflow was started"}`

var methods = []string{"DELETE", "GET", "HEAD", "PATCH", "POST", "PUT"}

// readWebhook reads the call that ends a wait and its answer. What would make the
// call less safe than the workflow says, or the answer another one, is an error.
func readWebhook(ctx context.Context, call *node.Call) (*engine.WebhookWait, error) {
	if err := refuseUnsupported(ctx, call); err != nil {
		return nil, err
	}
	w := &engine.WebhookWait{}
	var err error
	if w.Callers, err = readCallers(ctx, call); err != nil {
		return nil, err
	}
	method, err := call.String(ctx, 0, "httpMethod", "GET")
	if err != nil {
		return nil, err
	}
	w.Method = strings.ToUpper(method)
	if !slices.Contains(methods, w.Method) {
		return nil, node.OperationError(-1, fmt.Sprintf("The HTTP method %q is not supported", method),
			"The parameter httpMethod must be one of "+strings.Join(methods, ", ")+".")
	}
	if w.Suffix, err = call.String(ctx, 0, "options.webhookSuffix", ""); err != nil {
		return nil, err
	}
	w.Suffix = strings.Trim(w.Suffix, "/ ")
	mode, err := call.String(ctx, 0, "responseMode", "onReceived")
	if err != nil {
		return nil, err
	}
	switch mode {
	case "onReceived":
	case "lastNode":
		w.AfterEnd = true
		data, err := call.String(ctx, 0, "responseData", "firstEntryJson")
		if err != nil {
			return nil, err
		}
		if data != "firstEntryJson" {
			return nil, node.OperationError(-1, fmt.Sprintf("The response data %q is not supported", data),
				"Only the first item's JSON can be sent when the last node has finished.")
		}
	case "responseNode":
		return nil, node.OperationError(-1, "Answering with a Respond to Webhook node is not supported",
			"Set “Respond” to “Immediately” or “When Last Node Finishes”.")
	default:
		return nil, node.OperationError(-1, fmt.Sprintf("The response mode %q is unknown", mode),
			"The parameter responseMode must be onReceived or lastNode.")
	}
	w.Response, err = readResponse(ctx, call, w.AfterEnd)
	return w, err
}

func refuseUnsupported(ctx context.Context, call *node.Call) error {
	addresses, err := call.String(ctx, 0, "options.ipWhitelist", "")
	if err != nil {
		return err
	}
	if addresses != "" {
		return node.OperationError(-1, "Limiting resume calls to IP addresses is not supported",
			"Remove the option “IP(s) Whitelist” and limit access in front of the server.")
	}
	bots, err := call.Bool(ctx, 0, "options.ignoreBots", false)
	if err == nil && bots {
		err = node.OperationError(-1, "Ignoring bots in resume calls is not supported",
			"Remove the option “Ignore Bots”. With the method POST link previews do not resume the execution.")
	}
	return err
}

var (
	headerName  = regexp.MustCompile("^[!#$%&'*+.^_`|~0-9A-Za-z-]+$")
	headerValue = regexp.MustCompile(`^[^\x00-\x08\x0A-\x1F\x7F]*$`)
)

// readResponse reads the answer to the call. Its body stays empty when the
// execution's output is the answer.
func readResponse(ctx context.Context, call *node.Call, afterEnd bool) (engine.WebhookResponse, error) {
	var r engine.WebhookResponse
	var err error
	if r.Status, err = readStatus(ctx, call); err != nil {
		return r, err
	}
	var headers []struct{ Name, Value string }
	if err := call.ParamInto(ctx, 0, "options.responseHeaders.entries", &headers); err != nil {
		return r, err
	}
	r.Headers = map[string]string{}
	for _, h := range headers {
		if !headerName.MatchString(h.Name) || !headerValue.MatchString(h.Value) {
			return r, node.OperationError(-1, fmt.Sprintf("The response header %q is not valid", h.Name),
				"A header's name holds letters, digits and hyphens, and its value is one line.")
		}
		r.Headers[http.CanonicalHeaderKey(h.Name)] = h.Value
	}
	if afterEnd {
		return r, nil
	}
	none, err := call.Bool(ctx, 0, "options.noResponseBody", false)
	if err != nil || none {
		return r, err
	}
	if r.Body, err = call.String(ctx, 0, "options.responseData", ""); err != nil {
		return r, err
	}
	if r.Body == "" {
		r.Body = startedBody
	}
	if r.Headers["Content-Type"] == "" {
		// Never HTML: the text may hold what somebody sent to the workflow.
		r.Headers["Content-Type"] = "text/plain; charset=utf-8"
		if json.Valid([]byte(r.Body)) {
			r.Headers["Content-Type"] = "application/json; charset=utf-8"
		}
	}
	return r, nil
}

// readStatus reads the response code: a parameter of its own, or an option in files
// that follow the Webhook node's second version.
func readStatus(ctx context.Context, call *node.Call) (int, error) {
	status, err := call.Int(ctx, 0, "responseCode", http.StatusOK)
	if err != nil {
		return 0, err
	}
	path := "options.responseCode.values.responseCode"
	chosen, err := call.String(ctx, 0, path, "")
	if err != nil {
		return 0, err
	}
	if chosen == "customCode" {
		path = "options.responseCode.values.customCode"
	}
	if chosen != "" {
		if status, err = call.Int(ctx, 0, path, status); err != nil {
			return 0, err
		}
	}
	if status < 200 || status > 599 {
		return 0, node.OperationError(-1, fmt.Sprintf("%d is not a response code", status), "HTTP response codes are 200 to 599.")
	}
	return status, nil
}
