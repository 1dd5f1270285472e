package approval

import (
	"fmt"
	"time"

	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/node"
	"github.com/reprise-engine/reprise/pkg/nodes/jsonobject"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// Answer is the result of a node whose question is over (call.Resumption): one
// item, in n8n's shape, made from the first input item. freeText says that the question
// asked for a text.
func Answer(call *node.Call, freeText bool) (*node.Result, error) {
	data, err := answer(call, freeText)
	if err != nil {
		return nil, err
	}
	var o jsonobject.Object
	o.Set("data", data.String())
	item := workflow.Item{JSON: o.JSON(), PairedItem: workflow.Paired(0)}
	if len(call.Inputs) > 0 && len(call.Inputs[0]) > 0 && len(call.Inputs[0][0].PairedItem) > 0 {
		item.PairedItem = call.Inputs[0][0].PairedItem // also the lineage of a tool
	}
	return &node.Result{Result: engine.Result{Outputs: []workflow.Items{{item}}}}, nil
}

func answer(call *node.Call, freeText bool) (o jsonobject.Object, err error) {
	decision, err := decided(call)
	switch {
	case err != nil:
	case decision == nil:
		o.Set("approved", "false")
		o.Set("expired", "true")
	case freeText:
		o.Set("text", jsonobject.Quote(decision.Feedback))
	default:
		o.Set("approved", fmt.Sprint(decision.Approved))
		o.Set("respondedAt", jsonobject.Quote(isoTime(decision.At)))
		if decision.Feedback != "" {
			o.Set("chatInput", jsonobject.Quote(decision.Feedback))
		}
	}
	return o, err
}

// decided is the decision that ended the wait, nil when the question expired. Silence
// is never a yes: a resumption with neither is an error.
func decided(call *node.Call) (*engine.Decision, error) {
	r := call.Resumption
	switch {
	case r == nil || r.Kind != engine.WaitApproval || !r.Expired && r.Decision == nil:
		return nil, fmt.Errorf("run %d of %q was resumed without a decision", call.RunIndex, call.Node.Name)
	case r.Expired:
		return nil, nil
	}
	return r.Decision, nil
}

// isoTime writes milliseconds since 1970 as JavaScript does.
func isoTime(ms int64) string {
	return time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.000Z")
}
