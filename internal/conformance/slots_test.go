package conformance

import (
	"net/http"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/reprise-engine/reprise/internal/stack"
	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/queue"
)

// A worker with one slot: what waits does not hold it, what runs does.
func TestReport090WaitingHoldsNoSlot(t *testing.T) {
	t.Parallel()
	l := startLab(t, stack.Config{Workers: 1, Concurrency: 1})
	site := l.Site()
	var now, most atomic.Int32
	site.Handle("/work", func(w http.ResponseWriter, _ *http.Request) {
		if n := now.Add(1); n > most.Load() {
			most.Store(n)
		}
		now.Add(-1)
		w.WriteHeader(http.StatusNoContent)
	})
	var waiting []engine.ExecutionID
	for range 3 {
		id := l.submit(t, queue.Submission{Workflow: flow("w", nil, []object{
			trigger(), fetch("Before", site.URL+"/work"), waitForCall("Wait"), fetch("After", site.URL+"/work"),
		}, "Start -> Before", "Before -> Wait", "Wait -> After")})
		l.becomes(t, id, engine.StatusWaiting)
		waiting = append(waiting, id)
	}
	run := l.finished(t, l.submit(t, queue.Submission{Workflow: flow("other", nil, []object{trigger(), fetch("Work", site.URL+"/work")}, "Start -> Work")}))
	assert.Equal(t, "success", run.Get("status").Str, "it runs although three wait")
	for _, id := range waiting {
		_, err := l.Conn.Resume(t.Context(), queue.ResumeRequest{Execution: id, Data: []byte(`{}`)})
		require.NoError(t, err)
	}
	for _, id := range waiting {
		assert.Equal(t, "success", l.finished(t, id).Get("status").Str)
	}
	assert.EqualValues(t, 1, most.Load(), "at the same time in the one slot")
}

// Several that start the same thing at the same moment, each through any coordinator:
// the id they agree on makes it one execution.
func TestReport091StartedOnce(t *testing.T) {
	t.Parallel()
	l := sharedLab(t)
	site := l.Site()
	var ran atomic.Int32
	site.Handle("/work", func(w http.ResponseWriter, _ *http.Request) {
		ran.Add(1)
		w.WriteHeader(http.StatusNoContent)
	})
	slot := queue.Submission{
		ID:       newID("every-5s-1700000005"),
		Workflow: flow("scheduled", nil, []object{trigger(), fetch("Work", site.URL+"/work")}, "Start -> Work"),
	}
	var wg sync.WaitGroup
	errs := make([]error, 6)
	for i := range errs {
		wg.Go(func() {
			copied := slot
			_, errs[i] = l.Conn.Submit(t.Context(), &copied)
		})
	}
	wg.Wait()
	for _, err := range errs {
		require.NoError(t, err)
	}
	run := l.finished(t, slot.ID)
	assert.Equal(t, "success", run.Get("status").Str)
	_, err := l.Conn.Submit(t.Context(), &slot) // a late one, when it is over
	require.NoError(t, err)
	assert.Len(t, records(l.finished(t, slot.ID), "Work"), 1)
	assert.EqualValues(t, 1, ran.Load())
}
