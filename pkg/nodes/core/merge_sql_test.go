package core

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/expression"
	"github.com/reprise-engine/reprise/pkg/node"
	"github.com/reprise-engine/reprise/pkg/nodes/nodestest"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// closedScripts runs scripts as workers do; those of this test must be closed.
func closedScripts(t *testing.T) func(context.Context, *node.Call, node.Script) (*node.ScriptResult, error) {
	evaluator, err := expression.NewWithConfig(expression.Config{CodeMemoryBytes: 64 << 20})
	require.NoError(t, err)
	t.Cleanup(func() { _ = evaluator.Close() })
	return func(ctx context.Context, _ *node.Call, s node.Script) (*node.ScriptResult, error) {
		require.True(t, s.Closed)
		result, err := evaluator.RunCode(ctx, &expression.Scope{}, expression.Code{Source: s.Code, Item: s.Item, Globals: s.Globals, Timeout: 5 * time.Second})
		var failed *expression.Error
		if errors.As(err, &failed) {
			failure := &engine.NodeError{Name: failed.Name, Message: failed.Message}
			if failed.Type == "timeout" {
				failure.Reason = engine.ReasonTimeout
			}
			return nil, failure
		}
		return &node.ScriptResult{Value: result.JSON, Type: result.Type}, err
	}
}

func TestMergeBySQL(t *testing.T) {
	run := closedScripts(t)
	people := nodestest.Items(`{"id":1,"name":"Ada","tags":["a","b"],"o":{"x":{"y":5}}}`, `{"id":2,"name":"Bob","o":null}`, `{"id":3,"name":"it's"}`)
	orders := nodestest.Items(`{"name":"Ada","price":10}`, `{"name":"Ada","price":32.5}`, `{"name":"Eve","price":1}`)
	for _, row := range []struct{ name, query, options, want, fails string }{
		{"the query that comes with the node", ``, ``, `{"id":1,"name":"Ada","tags":["a","b"],"o":{"x":{"y":5}}} {"id":2,"name":"Bob","o":null} {"id":3,"name":"it's"}`, ""},
		{"a join", `SELECT input1.id, input2.* FROM input1 JOIN input2 ON input1.name = input2.name`, ``, `{"id":1,"name":"Ada","price":10} {"id":1,"name":"Ada","price":32.5}`, ""},
		{"groups", `SELECT p.id, SUM(o.price) AS amount, COUNT(*) AS n FROM input1 AS p JOIN input2 AS o ON p.name = o.name GROUP BY p.id`, ``, `{"id":1,"amount":42.5,"n":2}`, ""},
		{"nested values", `SELECT id, o->x->y AS y, tags->0 AS first FROM input1 WHERE id = 1`, ``, `{"id":1,"y":5,"first":"a"}`, ""},
		{"order and limit", `SELECT id FROM input1 ORDER BY id DESC LIMIT 2`, ``, `{"id":3} {"id":2}`, ""},
		{"several statements", `DELETE FROM input1 WHERE id > 1; SELECT id FROM input1`, ``, `{"id":1}`, ""},
		{"a third input", `SELECT COUNT(*) AS n FROM input3`, ``, `{"n":0}`, ""},
		{"single values", `SELECT COLUMN id FROM input1`, ``, `{"value":1} {"value":2} {"value":3}`, ""},
		{"no rows", `SELECT * FROM input1 WHERE id > 9`, ``, ``, ""},
		{"no rows, but a success", `SELECT * FROM input1 WHERE id > 9`, `{"emptyQueryResult":"success"}`, `{"success":true}`, ""},
		{"no query", `DELETE FROM input1`, ``, `{"success":true}`, ""},
		{"not SQL", `SELEC * FROM input1`, ``, "", "The SQL query failed: Parse error"},
		{"no such table", `SELECT * FROM input9`, ``, "", "The SQL query failed: "},
		{"a file", `SELECT * FROM CSV('/etc/passwd')`, ``, "", "The SQL query failed: "},
		{"the network", `SELECT * FROM JSON('http://127.0.0.1:1/')`, ``, "", "The SQL query failed: "},
	} {
		t.Run(row.name, func(t *testing.T) {
			parameters := map[string]any{"mode": "combineBySql", "numberInputs": 3}
			if row.query != "" {
				parameters["query"] = row.query
			}
			if row.options != "" {
				parameters["options"] = json.RawMessage(row.options)
			}
			raw, err := json.Marshal(parameters)
			require.NoError(t, err)
			call := nodestest.Call(Merge(), string(raw), people, orders)
			call.RunScript = run
			result, err := call.Type.Execute(t.Context(), call)
			if row.fails != "" {
				require.ErrorContains(t, err, row.fails)
				return
			}
			require.NoError(t, err)
			var got []string
			for _, item := range result.Outputs[0] {
				got = append(got, string(item.JSON))
			}
			require.Equal(t, row.want, strings.Join(got, " "))
		})
	}
}

func TestMergeBySQLIsNoWorkForTheCoordinator(t *testing.T) {
	for parameters, want := range map[string]bool{
		`{"mode":"combine"}`: false, `{}`: false, `{"mode":"combineBySql"}`: true, `{"mode":"={{ $json.mode }}"}`: true,
	} {
		require.Equal(t, want, Merge().Apart(&workflow.Node{Parameters: json.RawMessage(parameters)}), parameters)
	}
}
