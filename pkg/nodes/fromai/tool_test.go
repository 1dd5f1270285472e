package fromai

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-engine/reprise/pkg/node"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

func TestWithTools(t *testing.T) {
	once := func(*workflow.Node) bool { return true }
	types := []*node.Type{
		{Spec: workflow.Spec{Type: "x.a", Versions: []float64{1}}, Inline: true},
		{Spec: workflow.Spec{Type: "x.a", Versions: []float64{2, 3, 4}}, Inline: true, Once: once, Support: node.Support{Note: "so"}},
		{Spec: workflow.Spec{Type: "x.b", Versions: []float64{1}}},
	}
	all := WithTools(types, map[string]Variant{"x.a": {Description: "Does a", Versions: []float64{2, 4}}})
	require.Equal(t, types, all[:3])
	require.Len(t, all, 4, "the older type has no version that is a tool")
	tool := all[3]
	require.Equal(t, workflow.Spec{Type: "x.aTool", Versions: []float64{2, 4}, ToolNode: true}, tool.Spec)
	require.False(t, tool.Inline)
	require.NotNil(t, tool.Once)
	require.Equal(t, "so", tool.Support.Note)
	require.Equal(t, []float64{2, 3, 4}, types[1].Versions)
	require.True(t, types[1].Inline)
	require.Nil(t, types[1].Describe)
	require.Len(t, WithTools(types, map[string]Variant{"x.a": {}}), 5)
	require.Panics(t, func() { WithTools(types, map[string]Variant{"x.c": {}}) })
}
