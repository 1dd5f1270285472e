package isolation

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-engine/reprise/pkg/expression"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

func newEvaluator(tb testing.TB, config Config) (*expression.Evaluator, *Pool) {
	tb.Helper()
	pool, err := NewPool(config)
	require.NoError(tb, err)
	e, err := expression.NewWithConfig(expression.Config{Scripts: pool})
	require.NoError(tb, err)
	tb.Cleanup(func() {
		require.NoError(tb, e.Close())
		pool.Close()
	})
	return e, pool
}

func scopeOf(n int, size int) *expression.Scope {
	items := make(workflow.Items, n)
	for i := range items {
		raw, _ := json.Marshal(map[string]any{"n": i, "text": strings.Repeat("x", size)})
		items[i] = workflow.Item{JSON: raw, PairedItem: workflow.Paired(i)}
	}
	s := &expression.Scope{Inputs: []workflow.Items{items}, Timezone: "Europe/Berlin"}
	s.Execution.ID = "1"
	return s
}

func TestScriptsInAnotherProcess(t *testing.T) {
	e, _ := newEvaluator(t, Config{})
	got, err := e.RunCode(t.Context(), scopeOf(2, 1), expression.Code{
		Source: "console.log('hi'); return [$input.all().length, $now.zoneName, $execution.id]", Item: expression.AllItems,
	})
	require.NoError(t, err)
	require.Equal(t, `[2,"Europe/Berlin","1"]`, string(got.JSON))
	require.Equal(t, []string{"hi"}, got.Logs)
	got, err = e.RunCode(t.Context(), scopeOf(1203, 1), expression.Code{Source: "if ($json.n === 7) throw new Error('no'); return {i: $itemIndex, n: $json.n}", Item: expression.EachItem, GoOn: true})
	require.NoError(t, err)
	require.Len(t, got.Each, 1203)
	require.Equal(t, `{"i":1202,"n":1202}`, string(got.Each[1202].JSON))
	require.Equal(t, "no [line 1]", got.Each[7].Err.Message)
}
