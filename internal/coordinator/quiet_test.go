package coordinator_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/queue"
)

// An execution whose trigger looked and found nothing is over and in no list; its id begins no other.
func TestWhatFindsNothingLeavesNoTrace(t *testing.T) {
	t.Parallel()
	f := start(t, 2)
	document := flow("looks", nil, "Feed: test.poll", "After: test.work")
	l := f.work(func(job *queue.Job, name string) (engine.Result, bool) {
		if job.Execution == "found" || name != "Feed" {
			return outputs(`{"n":1}`), true
		}
		return engine.Result{}, true
	})
	for _, id := range []engine.ExecutionID{"nothing", "found"} {
		f.begin(queue.Submission{ID: id, Workflow: document, Start: "Feed"})
		x, run := f.finished(string(id))
		require.Equal(t, engine.StatusSuccess, x.Status)
		require.Equal(t, id == "nothing", len(run) == 0, "%v", run)
	}
	f.begin(queue.Submission{ID: "by-hand", Workflow: document, Start: "Feed", Mode: "manual"})
	f.finished("by-hand")
	list, err := f.conn.List(t.Context(), queue.ListRequest{WorkflowID: "looks"})
	require.NoError(t, err)
	var seen []engine.ExecutionID
	for _, x := range list.Executions {
		seen = append(seen, x.ID)
	}
	require.ElementsMatch(t, []engine.ExecutionID{"found", "by-hand"}, seen)
	f.begin(queue.Submission{ID: "given", Workflow: document, Start: "Feed", Input: items(`{"n":2}`)})
	_, run := f.finished("given")
	require.JSONEq(t, `{"n":2}`, string(run["Feed"][0].Data["main"][0][0].JSON))
	require.Empty(t, l.of("given", "Feed"), "it was given what it would look for")
	f.begin(queue.Submission{ID: "nothing", Workflow: document, Start: "Feed"})
	require.Len(t, l.of("nothing", "Feed"), 1)
}
