package node

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-engine/reprise/pkg/workflow"
)

func TestByItem(t *testing.T) {
	failing := func(i int) (workflow.Items, error) {
		if i == 1 {
			return nil, OperationError(i, "<no>", "")
		}
		return workflow.Items{{JSON: json.RawMessage(`{}`)}}, nil
	}
	call := &Call{Node: &workflow.Node{}, Inputs: []workflow.Items{make(workflow.Items, 2)}}
	_, err := call.ByItem(t.Context(), failing)
	require.EqualError(t, err, "<no>", "a node that stops")

	call.Node.OnError = workflow.OnErrorContinue
	result, err := call.ByItem(t.Context(), failing)
	require.NoError(t, err)
	require.Equal(t, []workflow.Items{{
		{JSON: json.RawMessage(`{}`), PairedItem: workflow.Paired(0)},
		{JSON: json.RawMessage(`{"error":"<no>"}`), PairedItem: workflow.Paired(1)},
	}}, result.Outputs)

	_, err = call.ByItem(t.Context(), func(int) (workflow.Items, error) { return nil, errors.New("broken") })
	require.EqualError(t, err, "broken", "what is no failure of a node ends it")
	stopped, stop := context.WithCancel(t.Context())
	stop()
	_, err = call.ByItem(stopped, failing)
	require.ErrorIs(t, err, context.Canceled)
	call.ToolCallID = "call-1"
	_, err = call.ByItem(t.Context(), failing)
	require.EqualError(t, err, "<no>", "the model is told by the engine")
}
