package approval_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-engine/reprise/pkg/node"
	"github.com/reprise-engine/reprise/pkg/nodes/approval"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

const gated = `{
 "nodes": [
  {"name":"Start","type":"test.trigger","typeVersion":1},
  {"name":"Agent","type":"test.agent","typeVersion":1},
  {"name":"Gate","type":"reprise.approvalHitlTool","typeVersion":1,"parameters":{}},
  {"name":"Tool","type":"test.tool","typeVersion":1}],
 "connections": {
  "Start": {"main":[[{"node":"Agent","type":"main","index":0}]]},
  "Gate": {"ai_tool":[[{"node":"Agent","type":"ai_tool","index":0}]]},
  "Tool": {"ai_tool":[[{"node":"Gate","type":"ai_tool","index":0}]]}}}`

func TestValidateAcceptsAGate(t *testing.T) {
	require.Empty(t, validate(t, gated))
}

func TestValidateWantsAToolBehindAGate(t *testing.T) {
	problems := validate(t, strings.Replace(gated, `"Tool": {"ai_tool":[[{"node":"Gate"`, `"Tool": {"ai_tool":[[{"node":"Agent"`, 1))
	require.Len(t, problems, 1)
	require.Equal(t, workflow.SeverityError, problems[0].Severity)
	require.Equal(t, "Gate", problems[0].Node)
	require.Equal(t, "a Tool must be connected and enabled", problems[0].Message)
}

func TestValidateRemarksAModelBehindAGate(t *testing.T) {
	document := strings.Replace(gated, `"Tool": {`, `"Tool": {"ai_languageModel":[[{"node":"Gate","type":"ai_languageModel","index":0}]],`, 1)
	problems := validate(t, document)
	require.Len(t, problems, 1)
	require.Equal(t, `is attached to "Gate" (reprise.approvalHitlTool), which takes no ai_languageModel`, problems[0].Message)
}

func validate(tb testing.TB, document string) workflow.Problems {
	tb.Helper()
	registry := &node.Registry{}
	registry.Register(approval.Types()...)
	registry.Register(
		&node.Type{Spec: workflow.Spec{Type: "test.trigger", Versions: []float64{1}, Trigger: true}},
		&node.Type{Spec: workflow.Spec{Type: "test.agent", Versions: []float64{1}, Accepts: []string{workflow.Tool}}},
		&node.Type{Spec: workflow.Spec{Type: "test.tool", Versions: []float64{1}, ToolNode: true}},
	)
	w, err := workflow.Parse([]byte(document))
	require.NoError(tb, err)
	return workflow.Validate(w, registry)
}
