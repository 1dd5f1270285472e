package flow

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/node"
	"github.com/reprise-engine/reprise/pkg/nodes/moment"
	"github.com/reprise-engine/reprise/pkg/nodes/web"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// Wait holds an execution up for a time, until its resume URL is called or until a form is sent.
// Its parameters are those of the first item.
func Wait() *node.Type {
	return &node.Type{
		Spec:    workflow.Spec{Type: base + "wait", Versions: []float64{1, 1.1}},
		Waits:   true,
		Inline:  true,
		Execute: executeWait,
	}
}

func executeWait(ctx context.Context, call *node.Call) (*node.Result, error) {
	if r := call.Resumption; r != nil {
		if r.Kind == engine.WaitWebhook && !r.Expired {
			return itemOf(ctx, call)
		}
		return passed(call), nil
	}
	resume, err := call.String(ctx, 0, "resume", "timeInterval")
	if err != nil {
		return nil, err
	}
	wait := engine.Wait{Kind: engine.WaitTime}
	var until time.Time
	switch resume {
	case "timeInterval":
		until, err = waitInterval(ctx, call)
	case "specificTime":
		until, err = moment.At(ctx, call, "dateTime")
	case "webhook":
		wait.Kind = engine.WaitWebhook
		if wait.Webhook, err = readWebhook(ctx, call); err == nil {
			until, err = moment.Limit(ctx, call)
		}
	case "form":
		wait.Kind = engine.WaitWebhook
		if wait.Webhook, err = readForm(ctx, call); err == nil {
			until, err = moment.Limit(ctx, call)
		}
	default:
		err = node.OperationError(-1, fmt.Sprintf("%q is not something to wait for", resume),
			"The parameter resume must be timeInterval, specificTime, webhook or form.")
	}
	if err != nil {
		return nil, err
	}
	if !until.IsZero() {
		if !until.After(call.Now()) {
			return passed(call), nil
		}
		// Rounded up, so that the wait is not shorter than asked for.
		wait.Until = until.Add(time.Millisecond - 1).UnixMilli()
	}
	return waiting(wait), nil
}

// itemOf gives out what ended the wait.
func itemOf(ctx context.Context, call *node.Call) (*node.Result, error) {
	resume, err := call.String(ctx, 0, "resume", "timeInterval")
	if err != nil {
		return nil, err
	}
	item := workflow.Item{JSON: call.Resumption.Data}
	if resume == "form" {
		if item, err = web.Submitted(call.Resumption); err != nil {
			return nil, err
		}
	}
	if len(item.JSON) == 0 {
		item.JSON = json.RawMessage(`{}`)
	}
	item.PairedItem = workflow.Paired(0)
	return output(workflow.Items{item}), nil
}

// waitInterval is the end of "After Time Interval", whose defaults differ by version.
func waitInterval(ctx context.Context, call *node.Call) (time.Time, error) {
	amount, unit := "1", "hours"
	if call.Node.TypeVersion >= 1.1 {
		amount, unit = "5", "seconds"
	}
	return moment.After(ctx, call, "amount", amount, "unit", unit)
}
