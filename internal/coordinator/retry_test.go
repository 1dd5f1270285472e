package coordinator_test

import (
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/queue"
)

// Report 92: a failed execution is retried from where it failed or from the start, on
// the document it had or on the latest; what has ended is not run again.
func TestReport92Retry(t *testing.T) {
	t.Parallel()
	f := start(t, 2)
	var broken atomic.Bool
	broken.Store(true)
	ran := f.work(func(job *queue.Job, name string) (engine.Result, bool) {
		if name == "Shaky" && broken.Load() {
			return failure("no luck"), true
		}
		return outputs(fmt.Sprintf(`{"was":%s,"by":%q}`, job.Inputs[0][0].JSON, name)), true
	})
	document := flow("retried", nil, "Start: test.trigger", "Pay: test.work", "Shaky: test.work")
	f.begin(queue.Submission{ID: "first", Workflow: document, Input: items(`{"order":7}`)})
	x, _ := f.finished("first")
	require.Equal(t, engine.StatusError, x.Status)

	retry := func(r queue.RetryRequest) (engine.ExecutionID, error) { return f.conn.Retry(t.Context(), r) }

	// From where it failed, which fails again: that execution can be retried as well.
	id, err := retry(queue.RetryRequest{ID: "first", NewID: "second"})
	require.NoError(t, err)
	require.Equal(t, engine.ExecutionID("second"), id)
	x, _ = f.finished("second")
	require.Equal(t, engine.StatusError, x.Status)
	require.Equal(t, engine.ExecutionID("first"), x.RetryOf)
	require.Equal(t, "retry", x.Mode)
	broken.Store(false)
	id, err = retry(queue.RetryRequest{ID: "second", NewID: "third"})
	require.NoError(t, err)
	again, err := retry(queue.RetryRequest{ID: "second", NewID: "third"})
	require.NoError(t, err, "the same request again is answered like the first")
	require.Equal(t, id, again)
	x, run := f.finished("third")
	require.Equal(t, engine.StatusSuccess, x.Status)
	require.Len(t, ran.of("", "Pay"), 1, "what has ended is not run again")
	require.JSONEq(t, `{"was":{"was":{"order":7},"by":"Pay"},"by":"Shaky"}`, string(run["Shaky"][0].Data["main"][0][0].JSON))
	first, third := ran.of("first", "Shaky")[0], ran.of("third", "Shaky")[0]
	require.Equal(t, first.IdempotencyKey, third.IdempotencyKey, "a repeat carries the same key")
	unchanged, err := f.conn.Get(t.Context(), "first", false)
	require.NoError(t, err)
	require.Equal(t, engine.StatusError, unchanged.Status)

	// From the start, with the same input; also one that ended well.
	_, err = retry(queue.RetryRequest{ID: "third"})
	f.refused(err, queue.CodeConflict, "ended well", "from the start")
	id, err = retry(queue.RetryRequest{ID: "first", FromStart: true})
	require.NoError(t, err)
	x, run = f.finished(string(id))
	require.Equal(t, engine.StatusSuccess, x.Status)
	require.JSONEq(t, `{"was":{"was":{"order":7},"by":"Pay"},"by":"Shaky"}`, string(run["Shaky"][0].Data["main"][0][0].JSON))
	require.Len(t, ran.of("", "Pay"), 2)

	// On the latest document.
	_, err = retry(queue.RetryRequest{ID: "first", Latest: true})
	f.refused(err, queue.CodeNotFound, "retried", "workflows put")
	f.put(flow("retried", nil, "Start: test.trigger", "Pay: test.work", "Other: test.work"))
	_, err = retry(queue.RetryRequest{ID: "first", Latest: true})
	f.refused(err, queue.CodeConflict, `"Shaky"`, "from the start")
	f.put(flow("retried", nil, "Start: test.trigger", "Pay: test.work", "Shaky: test.work", "More: test.work"))
	id, err = retry(queue.RetryRequest{ID: "first", Latest: true})
	require.NoError(t, err)
	x, run = f.finished(string(id))
	require.Equal(t, engine.StatusSuccess, x.Status)
	require.Len(t, run["More"], 1)
	require.Len(t, ran.of("", "Pay"), 2)

	// What stands against it is said.
	_, err = retry(queue.RetryRequest{ID: "nobody"})
	f.refused(err, queue.CodeNotFound)
	_, err = retry(queue.RetryRequest{ID: "first", NewID: "first"})
	f.refused(err, queue.CodeBadRequest)
	_, err = retry(queue.RetryRequest{ID: "first", NewID: "third"})
	f.refused(err, queue.CodeConflict, "taken")
	_, err = retry(queue.RetryRequest{ID: "first", NewID: "no good"})
	f.refused(err, queue.CodeBadRequest)
}

func TestRetryOfWhatIsNotOverOrCancelled(t *testing.T) {
	t.Parallel()
	f := start(t, 1)
	f.submit("run", 1)
	f.next()
	_, err := f.conn.Retry(t.Context(), queue.RetryRequest{ID: "run", FromStart: true})
	f.refused(err, queue.CodeConflict, "not over", "running")
	require.NoError(t, f.conn.Cancel(t.Context(), "run", ""))
	_, err = f.conn.Retry(t.Context(), queue.RetryRequest{ID: "run"})
	f.refused(err, queue.CodeConflict, "cancelled", "from the start")
	id, err := f.conn.Retry(t.Context(), queue.RetryRequest{ID: "run", FromStart: true})
	require.NoError(t, err)
	d := f.next()
	require.Equal(t, id, d.Job().Execution)
}

// An execution that began at a node which is no trigger begins there again, with what
// it was given and not with what that node made of it.
func TestRetryFromAStartThatIsNoTrigger(t *testing.T) {
	t.Parallel()
	f := start(t, 1)
	ran := f.work(func(*queue.Job, string) (engine.Result, bool) { return outputs(`{"made":true}`), true })
	document := flow("w", nil, "Start: test.trigger", "Middle: test.work", "End: test.work")
	f.begin(queue.Submission{ID: "mid", Workflow: document, Start: "Middle", Input: items(`{"given":1}`)})
	f.finished("mid")
	id, err := f.conn.Retry(t.Context(), queue.RetryRequest{ID: "mid", FromStart: true})
	require.NoError(t, err)
	_, run := f.finished(string(id))
	require.NotContains(t, run, "Start")
	require.JSONEq(t, `{"given":1}`, string(ran.of(id, "Middle")[0].Inputs[0][0].JSON))
}

// Workflows are stored under ids, to be started, called and looked at by them.
func TestStoredWorkflows(t *testing.T) {
	t.Parallel()
	f := start(t, 2)
	f.work(func(job *queue.Job, _ string) (engine.Result, bool) { return engine.Result{Outputs: job.Inputs}, true })
	_, err := f.conn.Workflow(t.Context(), "w1")
	f.refused(err, queue.CodeNotFound, "w1")
	_, err = f.conn.Submit(t.Context(), &queue.Submission{WorkflowID: "w1"})
	f.refused(err, queue.CodeNotFound, "workflows put")
	_, err = f.conn.PutWorkflow(t.Context(), queue.WorkflowPutRequest{Document: flow("", nil, "Start: test.trigger")})
	f.refused(err, queue.CodeBadRequest, "no id")
	_, err = f.conn.PutWorkflow(t.Context(), queue.WorkflowPutRequest{Document: flow("w1", nil, "Start: test.trigger", "A: test.unknown")})
	f.refused(err, queue.CodeInvalidWorkflow, "test.unknown")

	old := f.put(flow("w1", nil, "Start: test.trigger", "A: test.work"))
	stored := f.put(flow("w1", nil, "Start: test.trigger", "B: test.work"))
	require.NotEqual(t, old.Hash, stored.Hash)
	named, err := f.conn.PutWorkflow(t.Context(), queue.WorkflowPutRequest{ID: "other", Document: flow("w1", nil, "Start: test.trigger", "B: test.work")})
	require.NoError(t, err)
	require.Equal(t, stored.Hash, named.Hash)
	got, err := f.conn.Workflow(t.Context(), "w1")
	require.NoError(t, err)
	require.Equal(t, "The w1", got.Name)
	require.JSONEq(t, string(flow("w1", nil, "Start: test.trigger", "B: test.work")), string(got.Document))
	list, err := f.conn.Workflows(t.Context())
	require.NoError(t, err)
	require.Len(t, list, 2)
	require.Equal(t, []string{"other", "w1"}, []string{list[0].ID, list[1].ID})

	f.begin(queue.Submission{ID: "by-id", WorkflowID: "other"})
	x, run := f.finished("by-id")
	require.Equal(t, "other", x.WorkflowID)
	require.Len(t, run["B"], 1)
	require.NoError(t, f.conn.DeleteWorkflow(t.Context(), "other"))
	f.refused(f.conn.DeleteWorkflow(t.Context(), "other"), queue.CodeNotFound)
	_, err = f.conn.Submit(t.Context(), &queue.Submission{WorkflowID: "other"})
	f.refused(err, queue.CodeNotFound)
}

// A run up to a node, with what an earlier run has: only what is missing is run.
func TestRunUpToANode(t *testing.T) {
	t.Parallel()
	f := start(t, 1)
	ran := f.work(func(_ *queue.Job, name string) (engine.Result, bool) {
		return outputs(fmt.Sprintf(`{"by":%q}`, name)), true
	})
	document := flow("w", nil, "Start: test.trigger", "A: test.work", "B: test.work", "C: test.work", "D: test.work")
	f.begin(queue.Submission{ID: "part", Workflow: document, Destination: &engine.Destination{Node: "B"}})
	_, run := f.finished("part")
	require.Contains(t, run, "B")
	require.NotContains(t, run, "C")

	earlier := map[string][]*engine.Record{}
	for name, records := range run {
		for i := range records {
			earlier[name] = append(earlier[name], &records[i])
		}
	}
	f.begin(queue.Submission{ID: "rest", Workflow: document, Destination: &engine.Destination{Node: "C"}, RunData: earlier})
	_, run = f.finished("rest")
	require.JSONEq(t, `{"by":"A"}`, string(run["A"][0].Data["main"][0][0].JSON))
	require.Len(t, run["C"], 1)
	require.NotContains(t, run, "D")
	require.Len(t, ran.of("", "A"), 1)
	require.Len(t, ran.of("", "B"), 1)

	_, err := f.conn.Submit(t.Context(), &queue.Submission{Workflow: document, RunData: earlier})
	f.refused(err, queue.CodeBadRequest, "destination")
	_, err = f.conn.Submit(t.Context(), &queue.Submission{Workflow: document, Destination: &engine.Destination{Node: "Nowhere"}})
	f.refused(err, queue.CodeBadRequest, "Nowhere")
}
