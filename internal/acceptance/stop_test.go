package acceptance

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/reprise-engine/reprise/internal/labtest"
	"github.com/reprise-engine/reprise/internal/stack"
	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/queue"
)

// stopWithin is how long a stop may take to reach what runs.
const stopWithin = 3 * time.Second

// hanging is a page whose requests hang until their clients go.
type hanging struct{ begun, open atomic.Int64 }

func hangingPage(site *labtest.Site, path string) *hanging {
	h := &hanging{}
	site.Handle(path, func(_ http.ResponseWriter, r *http.Request) {
		h.open.Add(1)
		h.begun.Add(1)
		defer h.open.Add(-1)
		hang(r, make(chan struct{}))
	})
	return h
}

// await waits until n requests hang.
func (h *hanging) await(t *testing.T, n int64) {
	t.Helper()
	require.Eventually(t, func() bool { return h.open.Load() == n }, within, tick, "requests that hang")
}

// closed waits until no request hangs and returns how long that took.
func (h *hanging) closed(t *testing.T, since time.Time) time.Duration {
	t.Helper()
	h.await(t, 0)
	return time.Since(since)
}

// slotsFree checks that n steps can run at once, so that nothing is left in the worker's slots.
func (l *lab) slotsFree(t *testing.T, site *labtest.Site, path string, n int) {
	t.Helper()
	var at atomic.Int64
	all := make(chan struct{})
	site.Handle(path, func(w http.ResponseWriter, r *http.Request) {
		if at.Add(1) == int64(n) {
			close(all)
		}
		select {
		case <-all:
		case <-r.Context().Done():
		}
		fmt.Fprint(w, `{}`)
	})
	var ids []engine.ExecutionID
	for range n {
		ids = append(ids, l.submit(t, &queue.Submission{Workflow: oneStep("free", nil, labtest.Post("Step", site.URL+path, "x"))}))
	}
	await(t, all, "a slot is still taken")
	for _, id := range ids {
		l.succeeded(t, id)
	}
}

// TestReports083And085StopReachesWhatRuns: cancel closes the connections of everything that an execution and
// its children run, a model's included, within 3 s; the slots are free; and it stays canceled.
func TestReports083And085StopReachesWhatRuns(t *testing.T) {
	t.Parallel()
	const slots = 4
	l := startLab(t, func(c *stack.Config) { c.Concurrency = slots })
	t.Run("tools and a child", func(t *testing.T) {
		site := l.Site()
		h, childs := hangingPage(site, "/hang"), hangingPage(site, "/child")
		called := "stop-child"
		l.put(t, labtest.Flow(called, nil, []labtest.Node{labtest.Called(), labtest.Post("Step", site.URL+"/child", "x")}, "Called -> Step"))
		converse(t, site, script("m", asks(free("A", `{"text":"a"}`), free("B", `{"text":"b"}`), free("Helper", `{"number":1}`)), says("never")))
		id := l.submit(t, &queue.Submission{Workflow: agentFlow(site,
			[]labtest.Node{labtest.HTTPTool("A", site.URL+"/hang"), labtest.HTTPTool("B", site.URL+"/hang"), labtest.WorkflowTool("Helper", called)},
			"A ~ai_tool~> AI Agent", "B ~ai_tool~> AI Agent", "Helper ~ai_tool~> AI Agent")})
		h.await(t, 2)
		childs.await(t, 1)
		before := time.Now()
		require.NoError(t, l.Conn.Cancel(t.Context(), id, "the test"))
		assert.Less(t, h.closed(t, before), stopWithin)
		assert.Less(t, childs.closed(t, before), stopWithin)
		l.slotsFree(t, site, "/free", slots)
		run := l.await(t, id)
		assert.Equal(t, "canceled", run.Get("status").Str)
		assert.Equal(t, "canceled", run.Get("error.reason").Str)
		page, err := l.Conn.List(t.Context(), queue.ListRequest{WorkflowID: called})
		require.NoError(t, err)
		require.Len(t, page.Executions, 1)
		assert.Equal(t, "canceled", l.await(t, page.Executions[0].ID).Get("status").Str)
		x, err := l.Conn.Get(t.Context(), id, false)
		require.NoError(t, err)
		assert.Equal(t, engine.StatusCanceled, x.Status, "for good")
		assert.EqualValues(t, 1, site.ModelRequests())
		assert.EqualValues(t, 3, h.begun.Load()+childs.begun.Load(), "nothing was run again")
	})
	t.Run("a model's answer", func(t *testing.T) {
		site := l.Site()
		h := &hanging{}
		site.Model(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			h.open.Add(1)
			defer h.open.Add(-1)
			hang(r, make(chan struct{}))
		}))
		id := l.submit(t, &queue.Submission{Workflow: site.Agent("m")})
		h.await(t, 1)
		before := time.Now()
		require.NoError(t, l.Conn.Cancel(t.Context(), id, "the test"))
		assert.Less(t, h.closed(t, before), stopWithin)
		assert.Equal(t, "canceled", l.await(t, id).Get("status").Str)
		l.slotsFree(t, site, "/free", slots)
		assert.EqualValues(t, 1, site.ModelRequests(), "the request is not tried again")
	})
}

// TestReport084ExecutionTimeout: a workflow's limit ends it in time, whatever it does, with a reason.
func TestReport084ExecutionTimeout(t *testing.T) {
	t.Parallel()
	l := startLab(t, func(c *stack.Config) { c.Concurrency = 1 })
	site := l.Site()
	h := hangingPage(site, "/hang")
	before := time.Now()
	id := l.submit(t, &queue.Submission{Workflow: oneStep("late", map[string]any{"executionTimeout": 2}, labtest.Post("Step", site.URL+"/hang", "x"))})
	run := l.await(t, id)
	took := time.Since(before)
	assert.GreaterOrEqual(t, took, 2*time.Second)
	assert.Less(t, took, 4*time.Second)
	assert.Equal(t, "timeout", run.Get("error.reason").Str)
	assert.Less(t, h.closed(t, before), 2*time.Second+stopWithin)
	l.slotsFree(t, site, "/free", 1)
}

// TestReport032ToolTimeout: a tool that hangs, and one that computes for ever and heeds no context, are
// answered when their time is up; the model goes on, and no slot stays taken.
func TestReport032ToolTimeout(t *testing.T) {
	t.Parallel()
	l := startLab(t, func(c *stack.Config) { c.Concurrency = 2 })
	for name, c := range map[string]struct {
		tool      func(site *labtest.Site) labtest.Node
		arguments string
	}{
		"hangs":             {func(site *labtest.Site) labtest.Node { return labtest.HTTPTool("Tool", site.URL+"/hang") }, `{"text":"x"}`},
		"computes for ever": {func(*labtest.Site) labtest.Node { return labtest.CodeTool("Tool", "for (;;) {}") }, `{"input":"x"}`},
	} {
		t.Run(name, func(t *testing.T) {
			site := l.Site()
			h := hangingPage(site, "/hang")
			model := converse(t, site, script("m", asks(free("Tool", c.arguments)), says("{{results}}")))
			document := agentFlow(site, []labtest.Node{c.tool(site).With("timeout", 2000)}, "Tool ~ai_tool~> AI Agent")
			before := time.Now()
			run := l.run(t, document, nil)
			took := time.Since(before)
			require.Equal(t, "success", run.Get("status").Str, run.Raw)
			record := runDataOf(run)["Tool"][0]
			assert.Equal(t, "timeout", record.Get("error.reason").Str)
			answered := time.Duration(record.Get("executionTime").Int()) * time.Millisecond
			assert.GreaterOrEqual(t, answered, 2*time.Second)
			assert.Less(t, answered, 3*time.Second, "of %s in all", took)
			require.Len(t, results(model.request(t, 1)), 1)
			assert.Contains(t, strings.ToLower(results(model.request(t, 1))[0]), "timed out")
			h.closed(t, before)
			l.slotsFree(t, site, "/free", 2)
		})
	}
}
