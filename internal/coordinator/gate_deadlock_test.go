package coordinator_test

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/queue"
)

// circle stores workflows of limit 1, flow0 … flow<n-1>, each of which calls the next one, the last
// the first. Executions that were submitted call when all of them have begun.
func (f *fixture) circle(n, submitted int) {
	f.t.Helper()
	for i := range n {
		f.put(flow(fmt.Sprintf("flow%d", i), names{"maxConcurrency": 1}, childStart, "Call: test.wait"))
	}
	var begun atomic.Int32
	all := make(chan struct{})
	f.work(func(job *queue.Job, _ string) (engine.Result, bool) {
		from := 0
		if _, err := fmt.Sscanf(string(job.Execution), "root%d", &from); err != nil || strings.Contains(string(job.Execution), "-") || job.Resumption != nil {
			return outputs(`{"done":1}`), true
		}
		if begun.Add(1) == int32(submitted) {
			close(all)
		}
		select {
		case <-all:
		case <-f.t.Context().Done():
			return engine.Result{}, false
		}
		return wait(engine.Wait{Kind: engine.WaitChildren, Children: &engine.Children{Runs: runs(fmt.Sprintf("flow%d", (from+1)%n), `{}`)}}), true
	})
}

// Workflows at limit 1 that call each other, all at the same time, end.
func TestWorkflowsThatCallEachOtherDoNotDeadlock(t *testing.T) {
	t.Parallel()
	for _, n := range []int{2, 3, 4} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			f := startWith(t, 2, gated)
			f.circle(n, n)
			for i := range n {
				f.begin(queue.Submission{ID: engine.ExecutionID(fmt.Sprintf("root%d", i)), WorkflowID: fmt.Sprintf("flow%d", i)})
			}
			for i := range n {
				f.ended(engine.ExecutionID(fmt.Sprintf("root%d", i)), engine.StatusSuccess)
			}
			page, err := f.conn.List(t.Context(), queue.ListRequest{})
			require.NoError(t, err)
			require.Len(t, page.Executions, 2*n)
			f.emptyGates()
		})
	}
}

// A child whose place is held by an execution that will end by itself waits, also when that one
// waits for a person.
func TestNobodyIsLetThroughWithoutNeed(t *testing.T) {
	t.Parallel()
	f := startWith(t, 2, gated)
	f.put(flow("asks", names{"maxConcurrency": 1}, childStart, "Ask: test.wait"))
	f.put(flow("calls", names{"maxConcurrency": 1}, childStart, "Call: test.wait"))
	f.work(func(job *queue.Job, name string) (engine.Result, bool) {
		switch {
		case job.Resumption != nil || job.Execution != "asks" && name == "Ask":
			return outputs(`{}`), true
		case name == "Ask":
			return wait(engine.Wait{Kind: engine.WaitApproval, Question: &engine.Question{Title: "Well?"}}), true
		}
		return wait(engine.Wait{Kind: engine.WaitChildren, Children: &engine.Children{Runs: runs("asks", `{}`)}}), true
	})
	f.begin(queue.Submission{ID: "asks", WorkflowID: "asks"})
	question := f.waiting("asks", 1).Waiting[0]
	f.begin(queue.Submission{ID: "calls", WorkflowID: "calls"})
	f.begin(queue.Submission{ID: "calls2", WorkflowID: "calls"})
	child := func() *queue.Execution {
		page, err := f.conn.List(t.Context(), queue.ListRequest{WorkflowID: "asks", Status: engine.StatusNew})
		if err != nil || len(page.Executions) == 0 {
			return nil
		}
		return &page.Executions[0]
	}
	require.Eventually(t, func() bool { return child() != nil }, within, 10*time.Millisecond)
	require.Never(t, func() bool { return child() == nil }, 2*time.Second, 50*time.Millisecond, "in eight looks at the gates it has to wait for its turn")
	err := f.conn.Decide(t.Context(), queue.DecideRequest{ID: question.Token, Decision: engine.Decision{Approved: true, By: "test"}})
	require.NoError(t, err)
	for _, id := range []engine.ExecutionID{"asks", "calls", "calls2"} {
		f.ended(id, engine.StatusSuccess)
	}
	f.emptyGates()
}
