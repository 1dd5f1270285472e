package items

import (
	"context"
	"encoding/json"
	"slices"
	"testing"

	"github.com/reprise-engine/reprise/pkg/node"
	"github.com/reprise-engine/reprise/pkg/nodes/nodestest"
)

func TestRecordedRuns(t *testing.T) {
	nodestest.RunRecordings(t, Types(), func(call *node.Call) { call.RunScript = byDescendingID })
}

// byDescendingID stands in for the JavaScript of the recorded sorting.
func byDescendingID(_ context.Context, call *node.Call, _ node.Script) (*node.ScriptResult, error) {
	var order []int
	for i := range call.Inputs[0] {
		order = append(order, i)
	}
	slices.Reverse(order)
	value, err := json.Marshal(order)
	return &node.ScriptResult{Value: value, Type: "array"}, err
}
