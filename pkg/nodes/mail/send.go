package mail

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/node"
	"github.com/reprise-engine/reprise/pkg/nodes/jsonobject"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// execute runs emailSend.
func execute(ctx context.Context, call *node.Call) (*node.Result, error) {
	operation := "send"
	if call.Node.TypeVersion >= 2 {
		var err error
		if operation, err = call.String(ctx, 0, "operation", operation); err != nil {
			return nil, err
		}
	}
	switch operation {
	case "send":
		return send(ctx, call)
	case "sendAndWait":
		return sendAndWait(ctx, call)
	}
	return nil, operationError(fmt.Sprintf("The operation %q is not known here; want send or sendAndWait", operation), "")
}

// send sends a mail for every item.
func send(ctx context.Context, call *node.Call) (*node.Result, error) {
	result := &node.Result{Result: engine.Result{Outputs: []workflow.Items{{}}}}
	if len(call.Inputs) == 0 {
		return result, nil
	}
	var p postman
	defer p.close()
	for i := range call.Inputs[0] {
		out := workflow.Item{PairedItem: workflow.Paired(i)}
		l, r, err := sendItem(ctx, call, &p, i)
		var failure *engine.NodeError
		switch {
		case err == nil:
			out.JSON = r.item(l)
			result.Hints = append(result.Hints, r.hints(l)...)
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case !errors.As(err, &failure):
			return nil, err
		case !call.Node.Continues():
			if failure.ItemIndex == nil {
				failure.ItemIndex = &i
			}
			return nil, failure
		default:
			out.JSON = json.RawMessage(`{"error":` + jsonobject.Quote(failure.Message) + `}`)
		}
		result.Outputs[0] = append(result.Outputs[0], out)
	}
	return result, nil
}

func sendItem(ctx context.Context, call *node.Call, p *postman, item int) (*letter, *receipt, error) {
	b, err := written(ctx, call, item)
	if err != nil {
		return nil, nil, err
	}
	l, err := compose(ctx, call, item, b)
	if err != nil {
		return nil, nil, err
	}
	r, err := post(ctx, call, p, item, l)
	return l, r, err
}

// post delivers a letter through the server of the node's credential.
func post(ctx context.Context, call *node.Call, p *postman, item int, l *letter) (*receipt, error) {
	s, err := findServer(ctx, call)
	if err != nil {
		return nil, err
	}
	if s.trustAny, err = call.Bool(ctx, item, "options.allowUnauthorizedCerts", false); err != nil {
		return nil, err
	}
	return p.deliver(ctx, s, l)
}

// written is the body in the node's parameters.
func written(ctx context.Context, call *node.Call, item int) (b body, err error) {
	format := "both" // version 1 sends what there is
	if call.Node.TypeVersion >= 2 {
		fallback := "html"
		if call.Node.TypeVersion == 2 {
			fallback = "text"
		}
		if format, err = call.String(ctx, item, "emailFormat", fallback); err != nil {
			return b, err
		}
	}
	switch format {
	case "text", "html", "both":
	default:
		return b, operationError(fmt.Sprintf("The email format %q is not known here; want text, html or both", format), "parameter emailFormat")
	}
	for _, form := range []struct {
		name string
		into **string
	}{{"text", &b.text}, {"html", &b.html}} {
		if format != "both" && format != form.name {
			continue
		}
		said, err := call.String(ctx, item, form.name, "")
		if err != nil {
			return b, err
		}
		if said != "" || format == form.name {
			*form.into = &said
		}
	}
	return b, nil
}

// item is the receipt in the shape of nodemailer's.
func (r *receipt) item(l *letter) json.RawMessage {
	list := func(texts []string) string {
		var b []byte
		for i, text := range texts {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(b, jsonobject.Quote(text)...)
		}
		return "[" + string(b) + "]"
	}
	var envelope, o jsonobject.Object
	envelope.Set("from", jsonobject.Quote(l.from))
	envelope.Set("to", list(l.to))
	o.Set("accepted", list(r.accepted))
	o.Set("rejected", list(r.rejected))
	o.Set("envelopeTime", fmt.Sprint(r.envelopeTime.Milliseconds()))
	o.Set("messageTime", fmt.Sprint(r.messageTime.Milliseconds()))
	o.Set("messageSize", fmt.Sprint(r.messageBytes))
	o.Set("response", jsonobject.Quote(r.response))
	o.Set("envelope", envelope.String())
	o.Set("messageId", jsonobject.Quote(l.id))
	return o.JSON()
}

// hints are what a person should know of a mail that was sent.
func (r *receipt) hints(l *letter) []engine.Hint {
	var hints []engine.Hint
	for _, hint := range l.hints {
		hints = append(hints, engine.Hint{Message: hint})
	}
	for _, address := range r.rejected {
		hints = append(hints, engine.Hint{Message: "The mail server did not accept the recipient " + address + "; the others were sent the mail"})
	}
	return hints
}
