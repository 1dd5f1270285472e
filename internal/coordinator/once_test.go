package coordinator_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/sjson"

	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/queue"
)

// A node that must not be repeated runs for the worker that asked first. Its
// question may be repeated; after that worker is lost the outcome is unknown, for good.
func TestANodeThatMustNotRunTwice(t *testing.T) {
	t.Parallel()
	f := start(t, 2)
	document, err := sjson.SetBytes(chain(1), "nodes.1.onWorkerLost", "giveUp")
	require.NoError(t, err)
	document, err = sjson.SetBytes(document, "nodes.1.retryOnFail", true)
	require.NoError(t, err)
	_, err = f.conn.Submit(t.Context(), &queue.Submission{ID: "careful", Workflow: document})
	require.NoError(t, err)
	d := f.next()
	require.True(t, d.Job().Once)
	ask := func(asker string, deliveries int) string {
		reply, err := f.conn.AskRedelivery(t.Context(), &queue.Redelivery{
			Job: d.Job().ID, Execution: "careful", Deliveries: deliveries, Asker: asker,
		})
		require.NoError(t, err)
		return reply.Verdict
	}
	require.Equal(t, queue.VerdictRun, ask("a/1", 1))
	require.Equal(t, queue.VerdictRun, ask("a/1", 1), "the answer was lost, it asks again")

	// Handed back before it began it may run elsewhere.
	f.send(d.Job().Coordinator, &queue.Result{Job: d.Job().ID, Execution: "careful", HandedBack: true})
	require.Equal(t, queue.VerdictRun, ask("b/1", 2))

	require.Equal(t, queue.VerdictDrop, ask("c/1", 3))
	x, run := f.finished("careful")
	require.Equal(t, engine.StatusError, x.Status)
	require.Len(t, run["Work 0"], 1, "its retries are not for this")
	require.Equal(t, engine.ReasonWorkerLost, run["Work 0"][0].Error.Reason)
	require.Contains(t, run["Work 0"][0].Error.Message, "outcome is unknown")
	require.Equal(t, queue.VerdictDrop, ask("b/1", 2))
}

// Jobs that are handed back any number of times are not given up.
func TestHandingBackIsNoLoss(t *testing.T) {
	t.Parallel()
	f := start(t, 1)
	f.submit("rolling", 1)
	d := f.next()
	for n := 2; n < 12; n++ {
		f.send(d.Job().Coordinator, &queue.Result{Job: d.Job().ID, Execution: "rolling", HandedBack: true})
		require.NoError(t, d.Nak(0))
		d = f.next()
		reply, err := f.conn.AskRedelivery(t.Context(), &queue.Redelivery{Job: d.Job().ID, Execution: "rolling", Deliveries: n, Asker: d.Ack()})
		require.NoError(t, err)
		require.Equal(t, queue.VerdictRun, reply.Verdict, "delivery %d", n)
	}
	f.send(d.Job().Coordinator, answer(d, "last"))
	x, _ := f.finished("rolling")
	require.Equal(t, engine.StatusSuccess, x.Status)
}

// A worker asks whether a job that it runs still counts; that is no delivery.
func TestARunningJobIsAskedAbout(t *testing.T) {
	t.Parallel()
	f := start(t, 2)
	f.submit("long", 1)
	d := f.next()
	ask := func(job engine.JobID) string {
		reply, err := f.conn.AskRedelivery(t.Context(), &queue.Redelivery{Job: job, Execution: "long", Deliveries: 7, Running: true})
		require.NoError(t, err)
		return reply.Verdict
	}
	for range 20 {
		require.Equal(t, queue.VerdictRun, ask(d.Job().ID))
	}
	require.Equal(t, queue.VerdictDrop, ask("long_99"))
	f.send(d.Job().Coordinator, answer(d, "last"))
	x, _ := f.finished("long")
	require.Equal(t, engine.StatusSuccess, x.Status)
	require.Equal(t, queue.VerdictDrop, ask(d.Job().ID))
}
