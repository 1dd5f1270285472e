package flow

import (
	"context"
	"errors"

	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/node"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// survivable returns the failure in err that a node which continues on errors may
// turn into data.
func survivable(ctx context.Context, call *node.Call, err error) (*engine.NodeError, bool) {
	var failure *engine.NodeError
	errors.As(err, &failure)
	return failure, call.Survives(ctx, err)
}

func output(items workflow.Items) *node.Result {
	if items == nil {
		items = workflow.Items{}
	}
	return &node.Result{Result: engine.Result{Outputs: []workflow.Items{items}}}
}

// passed gives out the input. Items that come with no lineage are linked to
// themselves.
func passed(call *node.Call) *node.Result {
	items := append(workflow.Items{}, call.Input(0)...)
	for i := range items {
		if len(items[i].PairedItem) == 0 {
			items[i].PairedItem = workflow.Paired(i)
		}
	}
	return output(items)
}

func waiting(wait engine.Wait) *node.Result {
	return &node.Result{Result: engine.Result{Wait: &wait}}
}
