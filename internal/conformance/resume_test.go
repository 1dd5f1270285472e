package conformance

import (
	"net/http"
	"strconv"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/queue"
)

func waitForCall(name string) object {
	return with(node(name, "n8n-nodes-base.wait", 1.1, `{"resume":"webhook","options":{}}`), "webhookId", "w-"+name)
}

// N 060: a call that would resume an execution that runs or is finished is a conflict, one that nobody knows is not found
func TestConformance060NothingToResume(t *testing.T) {
	t.Parallel()
	l := sharedLab(t)
	site := l.Site()
	hold := make(chan struct{})
	reached := make(chan struct{}, 1)
	site.Handle("/slow", func(w http.ResponseWriter, _ *http.Request) {
		reached <- struct{}{}
		<-hold
		w.WriteHeader(http.StatusNoContent)
	})
	resume := func(id engine.ExecutionID) error {
		_, err := l.Conn.Resume(t.Context(), queue.ResumeRequest{Execution: id, Data: []byte(`{}`)})
		return err
	}
	id := l.submit(t, queue.Submission{Workflow: flow("slow", nil, []object{trigger(), fetch("Slow", site.URL+"/slow")}, "Start -> Slow")})
	<-reached
	refused(t, resume(id), queue.CodeConflict)
	close(hold)
	l.finished(t, id)
	refused(t, resume(id), queue.CodeConflict)
	refused(t, resume("nobody"), queue.CodeNotFound)
}

// I 061: of several calls that come for one wait at the same time one resumes it, the others are told that they do not
func TestConformance061ResumedAtTheSameTime(t *testing.T) {
	t.Parallel()
	l := sharedLab(t)
	id := l.submit(t, queue.Submission{Workflow: flow("w", nil, []object{trigger(), waitForCall("Wait")}, "Start -> Wait")})
	l.becomes(t, id, engine.StatusWaiting)
	errs := make([]error, 8)
	var wg sync.WaitGroup
	for i := range errs {
		wg.Go(func() {
			_, errs[i] = l.Conn.Resume(t.Context(), queue.ResumeRequest{Execution: id, Data: []byte(`{"call":` + strconv.Itoa(i) + `}`)})
		})
	}
	wg.Wait()
	winner := -1
	for i, err := range errs {
		if err != nil {
			refused(t, err, queue.CodeConflict)
			continue
		}
		require.Equal(t, -1, winner, "two calls were told that they had resumed it")
		winner = i
	}
	require.NotEqual(t, -1, winner, "no call has resumed it: %v", errs)
	run := l.finished(t, id)
	assert.Equal(t, "success", run.Get("status").Str)
	require.Len(t, records(run, "Wait"), 1)
	assert.EqualValues(t, winner, records(run, "Wait")[0].Get("data.main.0.0.json.call").Int())
}

// N 059: after a webhook the children of a waiting node get its data
func TestConformance059ResumedByACall(t *testing.T) {
	t.Parallel()
	l := sharedLab(t)
	id := l.submit(t, queue.Submission{Workflow: flow("w", nil, []object{
		trigger(), waitForCall("Wait"),
		node("After", "n8n-nodes-base.set", 3.4, `{"assignments":{"assignments":[{"id":"a","name":"got","value":"={{ $json.body.x }}","type":"number"}]},"options":{}}`),
	}, "Start -> Wait", "Wait -> After")})
	l.becomes(t, id, engine.StatusWaiting)
	_, err := l.Conn.Resume(t.Context(), queue.ResumeRequest{Execution: id, Data: []byte(`{"body":{"x":42}}`)})
	require.NoError(t, err)
	run := l.finished(t, id)
	assert.JSONEq(t, `{"got":42}`, records(run, "After")[0].Get("data.main.0.0.json").Raw, run.Raw)
}
