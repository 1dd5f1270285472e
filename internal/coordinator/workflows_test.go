package coordinator_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/queue"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// A document that is stored again is a new version, and leaves a workflow active.
func TestWorkflowVersionsAndActivation(t *testing.T) {
	f := start(t, 2)
	first := f.put(flow("active-one", nil, "Start: test.trigger"))
	require.Equal(t, 1, first.Version)
	require.False(t, first.Active)
	active, err := f.conn.ActivateWorkflow(t.Context(), "active-one", true)
	require.NoError(t, err)
	require.True(t, active.Active)
	require.NotZero(t, active.ActivatedAt)
	same := f.put(flow("active-one", nil, "Start: test.trigger"))
	require.Equal(t, 1, same.Version, "the same document is no new version")
	again := f.put(flow("active-one", nil, "Begin: test.trigger"))
	require.Equal(t, 2, again.Version)
	require.Equal(t, active.ActivatedAt, again.ActivatedAt)
	off, err := f.conn.ActivateWorkflow(t.Context(), "active-one", false)
	require.NoError(t, err)
	require.False(t, off.Active)
	require.Zero(t, off.ActivatedAt)
	_, err = f.conn.ActivateWorkflow(t.Context(), "nobody", true)
	f.refused(err, queue.CodeNotFound, "nobody")
}

// The answer that a node gave is in the stored execution; of two the first counts.
func TestResponseIsStored(t *testing.T) {
	f := start(t, 2)
	f.work(func(_ *queue.Job, name string) (engine.Result, bool) {
		r := outputs(`{"n":1}`)
		r.Response = &engine.WebhookResponse{Status: 201, Body: name}
		return r, true
	})
	id := f.begin(queue.Submission{Workflow: flow("responds", nil, "Start: test.trigger", "First: test.work", "Second: test.work")})
	answer, err := f.conn.WaitResponse(t.Context(), id, queue.Awaited{Nodes: []string{"First", "Second"}})
	require.NoError(t, err)
	require.Equal(t, &engine.WebhookResponse{Status: 201, Body: "First"}, answer.Response)
	answer, err = f.conn.WaitResponse(t.Context(), id, queue.Awaited{Outputs: true})
	require.NoError(t, err)
	require.Equal(t, engine.StatusSuccess, answer.Status)
	require.Equal(t, "First", answer.Response.Body)
	require.Equal(t, workflow.Items{{JSON: []byte(`{"n":1}`), PairedItem: workflow.Paired(0)}}, answer.Outputs[0])
	_, err = f.conn.WaitResponse(t.Context(), "never-submitted", queue.Awaited{})
	f.refused(err, queue.CodeNotFound)
}
