package values

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-engine/reprise/pkg/node"
	"github.com/reprise-engine/reprise/pkg/nodes/nodestest"
)

func find(t *testing.T, name string) *node.Type {
	t.Helper()
	for _, kind := range Types() {
		if kind.Type == base+name {
			return kind
		}
	}
	t.Fatalf("no type %s", name)
	return nil
}

func TestTools(t *testing.T) {
	tool := find(t, "dateTimeTool")
	require.True(t, tool.ToolNode)
	require.Equal(t, find(t, "dateTime").Support, tool.Support)
	const parameters = `{"operation":"formatDate","date":"={{ $fromAI('date', 'An ISO date') }}","format":"custom","customFormat":"dd.MM.yyyy","outputFieldName":"d"}`
	call := nodestest.Call(tool, parameters)
	face, err := tool.Describe(t.Context(), call)
	require.NoError(t, err)
	require.Equal(t, "Node", face.Name)
	require.NotEmpty(t, face.Description)
	require.JSONEq(t, `{"type":"object","properties":{"date":{"type":"string","description":"An ISO date"}},"required":["date"],"additionalProperties":false}`, string(face.Schema))

	call = nodestest.Call(tool, parameters, nodestest.Items(`{}`))
	call.Parameters = nodestest.Resolver{Values: map[string][]json.RawMessage{
		"={{ $fromAI('date', 'An ISO date') }}": {json.RawMessage(`"2026-03-01T10:00:00Z"`)},
	}}
	result, err := tool.Execute(t.Context(), call)
	require.NoError(t, err)
	require.JSONEq(t, `{"d":"01.03.2026"}`, string(result.Outputs[0][0].JSON))

	call = nodestest.Call(find(t, "cryptoTool"), `{"toolDescription":"Makes ids","action":"generate"}`)
	face, err = call.Type.Describe(t.Context(), call)
	require.NoError(t, err)
	require.Equal(t, "Makes ids", face.Description)

	call = nodestest.Call(tool, `{"date":"={{ $fromAI('no good') }}"}`)
	_, err = tool.Describe(t.Context(), call)
	require.ErrorContains(t, err, `arguments of tool "Node"`)
}
