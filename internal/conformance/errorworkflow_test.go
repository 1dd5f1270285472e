package conformance

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/queue"
)

// N 056: a failed run starts its error workflow with {execution: {id, error, lastNodeExecuted, mode}, workflow: {id, name}}; the failure of that one starts none
func TestConformance056ErrorWorkflow(t *testing.T) {
	t.Parallel()
	l := sharedLab(t)
	site := l.Site()
	reporter := string(newID("reporter"))
	_, err := l.Conn.PutWorkflow(t.Context(), queue.WorkflowPutRequest{Document: flow(reporter, object{"errorWorkflow": reporter}, []object{
		node("Trigger", "n8n-nodes-base.errorTrigger", 1, `{}`), fetch("Tell", site.URL+"/fail"),
	}, "Trigger -> Tell")})
	require.NoError(t, err)

	broken := flow("broken", object{"errorWorkflow": reporter}, []object{trigger(), fetch("Fetch", site.URL+"/fail")}, "Start -> Fetch")
	id := l.submit(t, queue.Submission{ID: newID("failing"), Workflow: broken})
	failed := l.finished(t, id)
	require.Equal(t, "error", failed.Get("status").Str)
	l.becomes(t, id+"-error", engine.StatusError)
	told := l.finished(t, id+"-error")
	assert.Equal(t, "error", told.Get("mode").Str)
	item := records(told, "Trigger")[0].Get("data.main.0.0.json")
	assert.Equal(t, string(id), item.Get("execution.id").Str)
	assert.Equal(t, failed.Get("error.message").Str, item.Get("execution.error.message").Str)
	assert.NotEmpty(t, item.Get("execution.error.message").Str)
	assert.Equal(t, "Fetch", item.Get("execution.lastNodeExecuted").Str)
	assert.Equal(t, "trigger", item.Get("execution.mode").Str)
	assert.JSONEq(t, `{"id":"broken","name":"The broken"}`, item.Get("workflow").Raw)

	// The error workflow failed too and names itself as its error workflow. That it has
	// started nothing shows when a later failure has been told.
	later := l.submit(t, queue.Submission{ID: newID("failing"), Workflow: broken})
	l.becomes(t, later+"-error", engine.StatusError)
	_, err = l.Conn.Get(t.Context(), id+"-error-error", false)
	refused(t, err, queue.CodeNotFound)

	// A run by hand starts none, so that trying a workflow alarms nobody.
	byHand := l.submit(t, queue.Submission{ID: newID("failing"), Workflow: broken, Mode: "manual"})
	require.Equal(t, "error", l.finished(t, byHand).Get("status").Str)
	later = l.submit(t, queue.Submission{ID: newID("failing"), Workflow: broken})
	l.becomes(t, later+"-error", engine.StatusError)
	_, err = l.Conn.Get(t.Context(), byHand+"-error", false)
	refused(t, err, queue.CodeNotFound)
}
