package web

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/tidwall/gjson"

	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/node"
	"github.com/reprise-engine/reprise/pkg/nodes/moment"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// FormSuffix is the path suffix of the waits of forms, which sets them apart from those for
// a call.
const FormSuffix = "form-page"

// Form is the Form node: a further page of a form, which waits until it is sent, or its end.
func Form() *node.Type {
	return &node.Type{
		Spec: workflow.Spec{Type: base + "form", Versions: []float64{1, 2, 2.3, 2.4, 2.5}}, Waits: true,
		Execute: form,
	}
}

func form(ctx context.Context, call *node.Call) (*node.Result, error) {
	operation, err := call.String(ctx, 0, "operation", "page")
	switch {
	case err != nil:
		return nil, err
	case operation == "completion":
		return completion(ctx, call)
	case operation != "page":
		return nil, node.OperationError(-1, fmt.Sprintf("The operation %q is not known", operation), "")
	case call.Resumption != nil && call.Resumption.Expired:
		return given(passed(call.Input(0))), nil
	case call.Resumption != nil:
		item, err := Submitted(call.Resumption)
		if err != nil {
			return nil, err
		}
		item.PairedItem = workflow.Paired(0)
		return given(workflow.Items{item}), nil
	}
	page, err := PageOf(ctx, call, "options.formTitle", "options.formDescription")
	if err != nil {
		return nil, err
	}
	wait := &engine.Wait{Kind: engine.WaitWebhook, Webhook: &engine.WebhookWait{Method: "POST", Suffix: FormSuffix}}
	if wait.Webhook.Form, err = json.Marshal(page); err != nil {
		return nil, fmt.Errorf("write the form: %w", err)
	}
	limit, err := moment.Limit(ctx, call)
	switch {
	case err != nil:
		return nil, err
	case !limit.IsZero() && !limit.After(call.Now()):
		return given(passed(call.Input(0))), nil
	case !limit.IsZero():
		wait.Until = limit.UnixMilli()
	}
	return &node.Result{Result: engine.Result{Wait: wait}}, nil
}

func given(items workflow.Items) *node.Result {
	return &node.Result{Result: engine.Result{Outputs: []workflow.Items{items}}}
}

// Submitted is the item of what was sent with a form.
func Submitted(r *engine.Resumption) (workflow.Item, error) {
	var item workflow.Item
	if err := json.Unmarshal(r.Data, &item); err != nil || len(item.JSON) == 0 {
		return item, node.OperationError(-1, "What was sent with the form cannot be read", "")
	}
	return item, nil
}

// PageOf reads the form of a node; title and description are the paths of two of its parameters.
func PageOf(ctx context.Context, call *node.Call, title, description string) (*Page, error) {
	fields, err := formFields(ctx, call)
	if err != nil {
		return nil, err
	}
	var texts [3]string
	for i, name := range []string{title, description, "options.buttonLabel"} {
		if texts[i], err = call.String(ctx, 0, name, ""); err != nil {
			return nil, err
		}
	}
	page, err := ReadPage(texts[0], texts[1], texts[2], fields)
	if err != nil {
		return nil, node.OperationError(-1, err.Error(), "")
	}
	page.Zone = call.Workflow.Timezone
	return page, nil
}

// formFields are given as a list, or as JSON.
func formFields(ctx context.Context, call *node.Call) (gjson.Result, error) {
	define, err := call.String(ctx, 0, "defineForm", "fields")
	if err != nil {
		return gjson.Result{}, err
	}
	path := "formFields.values"
	if define == "json" {
		path = "jsonOutput"
	}
	value, err := call.Param(ctx, 0, path)
	if err != nil {
		return gjson.Result{}, err
	}
	fields := gjson.ParseBytes(value)
	if fields.Type == gjson.String {
		if !gjson.Valid(fields.Str) {
			return fields, node.OperationError(-1, "The fields of the form are not valid JSON", "Check the parameter "+path+".")
		}
		fields = gjson.Parse(fields.Str)
	}
	return fields, nil
}

// completion is the end of a form: what the person sees last.
func completion(ctx context.Context, call *node.Call) (*node.Result, error) {
	items := call.Input(0)
	with, err := call.String(ctx, 0, "respondWith", "text")
	if err != nil {
		return nil, err
	}
	read := func(name, fallback string) string {
		text := fallback
		if err == nil {
			text, err = call.String(ctx, 0, name, fallback)
		}
		return text
	}
	r := &engine.WebhookResponse{Status: 200, Headers: map[string]string{"Content-Type": textType}}
	switch with {
	case "text":
		title := read("completionTitle", "Form Submitted")
		r.Body = Shown{Page: &Page{Title: title}, Message: read("completionMessage", DefaultEnd)}.Render()
	case "showText":
		r.Body = read("responseText", "")
	case "redirect":
		r.Status, r.Headers["Location"] = 303, read("redirectUrl", "")
	case "returnBinary":
		name := read("inputDataFieldName", "data")
		if len(items) == 0 || items[0].Binary[name].MimeType == "" && items[0].Binary[name].Data == "" && items[0].Binary[name].ID == "" {
			return nil, node.OperationError(0, fmt.Sprintf("The binary property %q does not exist", name), "")
		}
		file := items[0].Binary[name]
		r.Binary, r.Headers = &file, map[string]string{"Content-Disposition": fmt.Sprintf("attachment; filename=%q", file.FileName)}
	default:
		return nil, node.OperationError(-1, fmt.Sprintf("The kind of end %q is not known", with), "")
	}
	if err != nil {
		return nil, err
	}
	result := given(passed(items))
	result.Response = r
	return result, nil
}
