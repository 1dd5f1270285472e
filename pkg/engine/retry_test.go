package engine_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// A job that must not run twice is given to a worker on record. When its node is
// tried again, the next attempt has not been given to anybody.
func TestNextAttemptWasGivenToNobody(t *testing.T) {
	w, err := sketch(`
		Start: trigger
		A: node
		Start -> A`)
	require.NoError(t, err)
	w.Node("A").RetryOnFail = true
	x := newExecution(w)
	x.must(t, engine.Started{At: x.now})
	first := x.mustJob(t, "A")
	x.must(t, engine.GivenAgain{At: x.now, Job: first, To: "worker/1"})
	require.Equal(t, 1, x.state.Jobs[first].GivenAgain)
	x.must(t, engine.NodeFinished{At: x.now, Job: first, Result: engine.Result{Error: &engine.NodeError{Message: "not now"}}})
	require.Len(t, x.state.Timers, 1)
	for id, at := range x.state.Timers {
		x.must(t, engine.TimerFired{At: at, Timer: id})
	}
	second := x.mustJob(t, "A")
	require.NotEqual(t, first, second)
	require.Zero(t, x.state.Jobs[second].GivenAgain)
	require.Empty(t, x.state.Jobs[second].GivenTo)
	x.must(t, engine.GivenAgain{At: x.now, Job: second, To: "worker/2"})
	x.must(t, engine.NodeFinished{At: x.now, Job: second, Result: engine.Result{Outputs: []workflow.Items{{{JSON: []byte(`{}`)}}}}})
	require.Equal(t, engine.StatusSuccess, x.state.Meta.Status)
}
