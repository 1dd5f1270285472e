package flow

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/node"
	"github.com/reprise-engine/reprise/pkg/nodes/nodestest"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// recorded is one run of a node in n8n: what the child was given, how it ended and
// what the node gave out.
type recorded struct {
	Name, Workflow, Type string
	Version              float64
	Parameters           json.RawMessage
	OnError              workflow.OnError
	Items                workflow.Items
	Arguments            json.RawMessage
	Sent                 []workflow.Items
	Children             []*engine.ChildResult
	Output               json.RawMessage
	Error                string
}

// TestRecorded plays both calls of runs that n8n recorded.
func TestRecorded(t *testing.T) {
	raw, err := os.ReadFile("testdata/recorded.json")
	require.NoError(t, err)
	var runs []recorded
	require.NoError(t, json.Unmarshal(raw, &runs))
	require.Len(t, runs, 8)
	types := map[string]*node.Type{}
	for _, nodeType := range Types() {
		types[nodeType.Type] = nodeType
	}
	for _, run := range runs {
		t.Run(run.Name, func(t *testing.T) {
			nodeType := types[run.Type]
			require.NotNil(t, nodeType)
			c := nodestest.Call(nodeType, string(run.Parameters), run.Items)
			c.Node.TypeVersion, c.Node.OnError, c.Workflow.ID = run.Version, run.OnError, run.Workflow
			if run.Arguments != nil {
				c.ToolArguments, c.ToolCallID = run.Arguments, "call_1"
				c.Parameters = nodestest.Resolver{Values: map[string][]json.RawMessage{
					"={{ $fromAI('number', 'the number', 'number') }}": {json.RawMessage(`21`)},
				}}
			}
			result, err := nodeType.Execute(t.Context(), c)
			require.NoError(t, err)
			require.NotNil(t, result.Wait)
			require.Equal(t, engine.WaitChildren, result.Wait.Kind)
			require.Len(t, result.Wait.Children.Runs, len(run.Sent))
			for i, child := range result.Wait.Children.Runs {
				require.Equal(t, run.Children[i].WorkflowID, child.WorkflowID)
				require.Len(t, child.Input, len(run.Sent[i]))
				for k, item := range child.Input {
					require.JSONEq(t, string(run.Sent[i][k].JSON), string(item.JSON))
				}
			}
			require.Equal(t, run.Children[0].Status == engine.StatusRunning, result.Wait.Children.Detached)

			c.Resumption = &engine.Resumption{Kind: engine.WaitChildren, Children: run.Children}
			result, err = nodeType.Execute(t.Context(), c)
			if run.Error != "" {
				require.Equal(t, run.Error, failureOf(t, result, err).Message)
				return
			}
			require.NoError(t, err)
			require.Nil(t, result.Wait)
			require.Len(t, result.Outputs, 1)
			requireItems(t, string(run.Output), result.Outputs[0])
		})
	}
}
