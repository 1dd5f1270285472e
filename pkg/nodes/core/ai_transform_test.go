package core

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/node"
	"github.com/reprise-engine/reprise/pkg/nodes/nodestest"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

func TestAITransform(t *testing.T) {
	boom := &engine.NodeError{Name: "WrappedExecutionError", Message: "boom [line 1]"}
	for name, row := range map[string]struct {
		answer    script
		onError   workflow.OnError
		want, err string
	}{
		"items":                {answer: script{"array", `[{"json":{"sum":3}}]`, nil}, want: "\n  output 0\n    {\"sum\":3} null"},
		"plain object":         {answer: script{"object", `{"sum":3}`, nil}, want: "\n  output 0\n    {\"sum\":3} null"},
		"nothing returned":     {answer: script{"undefined", ``, nil}, err: "Code doesn't return items properly"},
		"throws":               {answer: script{err: boom}, err: "boom [line 1]"},
		"throws and continues": {answer: script{err: boom}, onError: workflow.OnErrorContinue, want: "\n  output 0\n    {\"error\":\"boom [line 1]\"} null"},
	} {
		t.Run(name, func(t *testing.T) {
			call := nodestest.Call(AITransform(), `{"instructions":"sum up","codeGeneratedForPrompt":"sum up","jsCode":"return sum;"}`, nodestest.Items(`{"n":1}`, `{"n":2}`))
			call.Node.OnError = row.onError
			call.RunScript = func(ctx context.Context, call *node.Call, s node.Script) (*node.ScriptResult, error) {
				require.Equal(t, node.Script{Code: "return sum;", Item: node.AllItems}, s)
				return row.answer.run(ctx, call, s)
			}
			checkCode(t, call, row.want, row.err)
		})
	}
}

func TestAITransformWithoutCode(t *testing.T) {
	for _, parameters := range []string{``, `{}`, `{"instructions":"sum up"}`, `{"jsCode":""}`} {
		call := nodestest.Call(AITransform(), parameters, nodestest.Items(`{}`))
		call.RunScript = func(context.Context, *node.Call, node.Script) (*node.ScriptResult, error) {
			t.Error("a script ran")
			return nil, nil
		}
		result, err := call.Type.Execute(t.Context(), call)
		require.Nil(t, result)
		var failure *engine.NodeError
		require.ErrorAs(t, err, &failure, parameters)
		require.Equal(t, "The node has no code", failure.Message)
		require.Contains(t, failure.Description, "Code node")
		require.True(t, failure.NotRetryable)
	}
}

func TestAITransformThatSendsIsNotRepeated(t *testing.T) {
	once := func(parameters string) bool {
		return AITransform().Once(nodestest.Call(AITransform(), parameters).Node)
	}
	require.True(t, once(`{"jsCode":"return await this.helpers.httpRequest({ url: 'http://x' })"}`))
	require.False(t, once(`{"jsCode":"return items"}`))
	require.False(t, once(`{}`))
}
