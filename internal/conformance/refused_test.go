package conformance

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/queue"
)

// N 002: what has nothing to execute is refused before anything is announced
// note: run data never comes without what is left to execute, as both are one state; what can be missing is the workflow, and that is said
func TestConformance002NothingToExecute(t *testing.T) {
	t.Parallel()
	l := sharedLab(t)
	id := newID("nothing")
	live := l.watch(t, id)
	_, err := l.Conn.Submit(t.Context(), &queue.Submission{ID: id})
	refused(t, err, queue.CodeBadRequest, "without workflow")
	l.neverWas(t, id, live)
	_, err = engine.Restore(engine.Tables{})
	assert.Error(t, err)
}

// N 003: a node on the way that cannot run makes the run fail up front; nothing is announced and nothing recorded
// note: what counts up front is what no data can mend: a type or version that is not known, a model that is missing. A parameter that is empty is the error of its node, when it runs
func TestConformance003NotReady(t *testing.T) {
	t.Parallel()
	l := sharedLab(t)
	for _, broken := range []object{
		node("After", "n8n-nodes-base.teleport", 1, `{}`),
		node("After", "@n8n/n8n-nodes-langchain.agent", 3, `{}`), // without a model
	} {
		id := newID("broken")
		live := l.watch(t, id)
		_, err := l.Conn.Submit(t.Context(), &queue.Submission{ID: id, Workflow: flow("broken", nil, []object{trigger(), broken}, "Start -> After")})
		refused(t, err, queue.CodeInvalidWorkflow, `"After"`)
		l.neverWas(t, id, live)
	}
}

// N 004: what is wrong with a node behind the destination of a run does not matter
func TestConformance004NotReadyBehindTheDestination(t *testing.T) {
	t.Parallel()
	l := sharedLab(t)
	document := flow("half", nil, []object{
		trigger(), node("Set", "n8n-nodes-base.set", 3.4, `{"assignments":{"assignments":[{"id":"a","name":"a","value":1,"type":"number"}]},"options":{}}`),
		node("After", "@n8n/n8n-nodes-langchain.agent", 3, `{}`), node("Beyond", "n8n-nodes-base.teleport", 1, `{}`),
	}, "Start -> Set", "Set -> After", "After -> Beyond")
	run := l.finished(t, l.submit(t, queue.Submission{Workflow: document, Destination: &engine.Destination{Node: "Set"}}))
	assert.Equal(t, "success", run.Get("status").Str, run.Raw)
	assert.Len(t, records(run, "Set"), 1)
	assert.Empty(t, records(run, "After"))

	_, err := l.Conn.Submit(t.Context(), &queue.Submission{Workflow: document, Destination: &engine.Destination{Node: "After"}})
	refused(t, err, queue.CodeInvalidWorkflow, `"After"`)
	assert.NotContains(t, err.Error(), `"Beyond"`)
	_, err = l.Conn.Submit(t.Context(), &queue.Submission{Workflow: document})
	refused(t, err, queue.CodeInvalidWorkflow)
}

// watch counts what is announced of an execution.
func (l *lab) watch(t *testing.T, id engine.ExecutionID) <-chan queue.Live {
	t.Helper()
	live := make(chan queue.Live, 100)
	stop, err := l.Conn.WatchLive(id, func(n queue.Live) { live <- n })
	require.NoError(t, err)
	t.Cleanup(stop)
	require.NoError(t, l.Conn.Flush(t.Context()))
	return live
}

// neverWas checks that there is nothing of an execution. What would have been
// announced comes before the answer to a later request.
func (l *lab) neverWas(t *testing.T, id engine.ExecutionID, live <-chan queue.Live) {
	t.Helper()
	_, err := l.Conn.Get(t.Context(), id, true)
	refused(t, err, queue.CodeNotFound)
	require.NoError(t, l.Conn.Flush(t.Context()))
	assert.Empty(t, live)
}
