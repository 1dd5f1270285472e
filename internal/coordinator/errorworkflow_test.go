package coordinator_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/queue"
)

const errorStart = "Trouble: n8n-nodes-base.errorTrigger"

// failing runs nodes called Fail, which fail, and others, which pass on what they get.
func (f *fixture) failing() *ledger {
	return f.work(func(job *queue.Job, name string) (engine.Result, bool) {
		if name == "Fail" {
			r := failure("no luck")
			r.Error.Description = "the dice were wrong"
			return r, true
		}
		return engine.Result{Outputs: job.Inputs}, true
	})
}

// The error workflow is started once, with the failure in n8n's shape.
func TestErrorWorkflow(t *testing.T) {
	t.Parallel()
	f := start(t, 2)
	ran := f.failing()
	f.put(flow("rescue", nil, errorStart, "Tell: test.work"))
	f.begin(queue.Submission{ID: "bad", Workflow: flow("risky", object{"errorWorkflow": "rescue"}, "Start: test.trigger", "Fail: test.work")})
	x, _ := f.finished("bad")
	require.Equal(t, engine.StatusError, x.Status)
	var run map[string][]engine.Record
	require.Eventually(t, func() bool {
		x, err := f.conn.Get(t.Context(), "bad-error", false)
		return err == nil && x.Status == engine.StatusSuccess && x.Mode == "error" && x.WorkflowID == "rescue"
	}, within, 10*time.Millisecond)
	_, run = f.finished("bad-error")
	require.JSONEq(t, `{
		"execution": {
			"id": "bad", "mode": "trigger", "lastNodeExecuted": "Fail",
			"error": {"message": "no luck", "description": "the dice were wrong", "name": "NodeOperationError"}
		},
		"workflow": {"id": "risky", "name": "The risky"}
	}`, string(run["Trouble"][0].Data["main"][0][0].JSON))
	f.settled()
	require.Len(t, ran.of("", "Tell"), 1)
}

// A workflow with an error trigger of its own hears of its own failures. A failure in
// that run starts nothing more, nor does one of a run by hand, nor a missing workflow.
func TestErrorTriggerOfTheWorkflowItself(t *testing.T) {
	t.Parallel()
	f := start(t, 2)
	ran := f.failing()
	// Two starts, each with its own chain: what is tried, and what hears of it.
	document := []byte(strings.ReplaceAll(`{
		"id": "own", "name": "Own", "settings": {"executionOrder": "v1"},
		"nodes": [
			{"name": "Start", "type": "test.trigger", "typeVersion": 1, "position": [0, 0], "parameters": {}},
			{"name": "Fail", "type": "test.work", "typeVersion": 1, "position": [1, 0], "parameters": {}},
			{"name": "Trouble", "type": "n8n-nodes-base.errorTrigger", "typeVersion": 1, "position": [0, 9], "parameters": {}}
		],
		"connections": {
			"Start": {"main": [[{"node": "Fail", "type": "main", "index": 0}]]},
			"Trouble": {"main": [[{"node": "Fail", "type": "main", "index": 0}]]}
		}
	}`, "\n", " "))
	id := strings.Repeat("long-", 25) + "id"
	f.begin(queue.Submission{ID: engine.ExecutionID(id), Workflow: document})
	f.begin(queue.Submission{ID: "hand", Workflow: document, Mode: "manual"})
	f.begin(queue.Submission{ID: "lost", Workflow: flow("w", object{"errorWorkflow": "nowhere"}, "Start: test.trigger", "Fail: test.work")})
	f.begin(queue.Submission{ID: "none", Workflow: flow("w", object{"errorWorkflow": "DEFAULT"}, "Start: test.trigger", "Fail: test.work")})
	for _, id := range []string{id, "hand", "lost", "none"} {
		f.finished(id)
	}
	require.Eventually(t, func() bool { return len(ran.of("", "Fail")) == 5 }, within, 10*time.Millisecond)
	f.settled()
	page, err := f.conn.List(t.Context(), queue.ListRequest{Limit: 50})
	require.NoError(t, err)
	require.Len(t, page.Executions, 5, "four runs, and one that heard of a failure")
	heard := 0
	for _, x := range page.Executions {
		require.LessOrEqual(t, len(x.ID), 128)
		if strings.HasSuffix(string(x.ID), "-error") {
			heard++
			require.Equal(t, engine.StatusError, x.Status)
		}
	}
	require.Equal(t, 1, heard)
}

// An error workflow is started although the process that was to do it died.
func TestErrorWorkflowAfterTheProcessDied(t *testing.T) {
	t.Parallel()
	f := startWith(t, 1, breakCommits(func(id engine.ExecutionID) bool { return id == "bad-error" }))
	ran := f.failing()
	f.put(flow("rescue", nil, errorStart, "Tell: test.work"))
	f.begin(queue.Submission{ID: "bad", Workflow: flow("risky", object{"errorWorkflow": "rescue"}, "Start: test.trigger", "Fail: test.work")})
	f.finished("bad")
	f.stop()
	f.add(nil)
	require.Eventually(t, func() bool { return len(ran.of("bad-error", "Tell")) == 1 }, within, 10*time.Millisecond)
	x, _ := f.finished("bad-error")
	require.Equal(t, engine.StatusSuccess, x.Status, fmt.Sprint(x.Error))
	f.settled()
}
