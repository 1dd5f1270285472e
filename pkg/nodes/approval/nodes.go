package approval

import (
	"context"
	"fmt"

	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/node"
	"github.com/reprise-engine/reprise/pkg/nodes/jsonobject"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// gate asks before a tool is run.
func gate(ctx context.Context, call *node.Call) (*node.Result, error) {
	if call.Resumption != nil {
		return Answer(call, false)
	}
	about, err := GatedCall(ctx, call)
	if err != nil {
		return nil, err
	}
	q, err := question(ctx, call)
	if err != nil {
		return nil, err
	}
	q.Title, q.About = fmt.Sprintf("Run %q?", about.Node), about
	return q.Wait(), nil
}

// ask asks once for all items of the main flow.
func ask(ctx context.Context, call *node.Call) (*node.Result, error) {
	var items workflow.Items
	if len(call.Inputs) > 0 {
		items = call.Inputs[0]
	}
	switch {
	case len(items) == 0: // nothing to ask about
		return &node.Result{Result: engine.Result{Outputs: []workflow.Items{{}, {}}}}, nil
	case call.Resumption != nil:
		return pass(call, items)
	}
	q, err := question(ctx, call)
	if err != nil {
		return nil, err
	}
	q.Title = call.Node.Name
	return q.Wait(), nil
}

// question reads the parameters that both nodes have.
func question(ctx context.Context, call *node.Call) (q Question, err error) {
	for _, p := range []struct {
		path, fallback string
		into           *string
	}{
		{"message", "", &q.Text},
		{"approveLabel", "Approve", &q.Approve},
		{"denyLabel", "Deny", &q.Deny},
	} {
		if *p.into, err = call.String(ctx, 0, p.path, p.fallback); err != nil {
			return q, err
		}
		if *p.into == "" {
			*p.into = p.fallback
		}
	}
	q.Until, err = until(ctx, call, "timeout")
	return q, err
}

// pass sends the items to the output of the decision, each with how it was
// decided.
func pass(call *node.Call, items workflow.Items) (*node.Result, error) {
	decision, err := decided(call)
	if err != nil {
		return nil, err
	}
	var how jsonobject.Object
	output := 1
	if decision == nil {
		how.Set("approved", "false")
		how.Set("expired", "true")
	} else {
		if decision.Approved {
			output = 0
		}
		how.Set("approved", fmt.Sprint(decision.Approved))
		if decision.Feedback != "" {
			how.Set("feedback", jsonobject.Quote(decision.Feedback))
		}
		if decision.By != "" {
			how.Set("by", jsonobject.Quote(decision.By))
		}
		how.Set("respondedAt", jsonobject.Quote(isoTime(decision.At)))
	}
	outputs := []workflow.Items{{}, {}}
	for i, item := range items {
		o := jsonobject.Parse(item.JSON)
		o.Set("approval", how.String())
		item.JSON, item.PairedItem = o.JSON(), workflow.Paired(i)
		outputs[output] = append(outputs[output], item)
	}
	return &node.Result{Result: engine.Result{Outputs: outputs}}, nil
}
