package acceptance

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/reprise-engine/reprise/internal/credentials"
	"github.com/reprise-engine/reprise/internal/labtest"
	"github.com/reprise-engine/reprise/internal/service"
	"github.com/reprise-engine/reprise/internal/stack"
	"github.com/reprise-engine/reprise/pkg/queue"
)

// startWorker adds a worker to a lab.
func (l *lab) startWorker(t *testing.T, change func(*service.Worker)) *service.Process {
	t.Helper()
	secrets, err := credentials.Load(l.Credentials)
	require.NoError(t, err)
	settings := service.Worker{
		NATSURL: l.NATSURL, Pools: []string{"default"}, Concurrency: 8, Lease: time.Second, Credentials: secrets, MaxResultBytes: 64 << 20, Egress: "any",
	}
	if change != nil {
		change(&settings)
	}
	p, err := service.StartWorker(context.Background(), settings, zap.NewNop())
	require.NoError(t, err)
	t.Cleanup(func() { stop(p) })
	return p
}

// oneStep is a workflow Start -> Step.
func oneStep(id string, settings map[string]any, step labtest.Node) []byte {
	return labtest.Flow(id, settings, []labtest.Node{labtest.NewNode("Start", "n8n-nodes-base.manualTrigger", 1, ""), step},
		fmt.Sprintf("Start -> %s", step["name"]))
}

// TestReport121ReasonsAreTold: whatever ends an execution or a tool has a reason of its own that
// programs can read, in the execution, its record, and what an Agent's tool gave.
func TestReport121ReasonsAreTold(t *testing.T) {
	t.Parallel()
	l := startLab(t, func(c *stack.Config) { c.Workers = -1; c.SweepAfter = time.Second })

	// worker_lost comes first: the worker that vanishes is this test.
	site := l.Site()
	ledger := site.Ledger("/once", nil)
	id := l.submit(t, &queue.Submission{Workflow: oneStep("lost", nil, labtest.Post("Step", ledger.URL, "x").With("onWorkerLost", "giveUp"))})
	jobs, err := l.Conn.Jobs(t.Context(), []string{"default"}, queue.WorkerConfig{Slots: 1, AckWait: time.Second})
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	d, err := jobs.Next(ctx)
	require.NoError(t, err)
	require.True(t, d.Job().Once)
	reply, err := l.Conn.AskRedelivery(ctx, &queue.Redelivery{Job: d.Job().ID, Execution: id, Deliveries: 1, Asker: "gone"})
	require.NoError(t, err)
	require.Equal(t, queue.VerdictRun, reply.Verdict)
	jobs.Stop()
	l.startWorker(t, func(w *service.Worker) { w.MaxResultBytes = 10_000 })
	reasons := map[string]string{}
	lost := l.await(t, id)
	assert.Equal(t, "error", lost.Get("status").Str)
	assert.Equal(t, "worker_lost", runDataOf(lost)["Step"][0].Get("error.reason").Str)
	reasons["worker lost"] = lost.Get("error.reason").Str
	assert.Empty(t, ledger.Texts(), "it is not run a second time")

	site.Model(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprint(w, `{"error":{"message":"no such model","type":"invalid_request_error"}}`)
	}))
	run := l.run(t, site.Agent("m"), nil)
	assert.Equal(t, "error", run.Get("status").Str)
	assert.Equal(t, "model_error", runDataOf(run)["AI Agent"][0].Get("error.reason").Str)
	reasons["model error"] = run.Get("error.reason").Str

	site.Handle("/large", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"text":%q}`, strings.Repeat("x", 20_000))
	})
	run = l.run(t, oneStep("large", nil, labtest.Post("Step", site.URL+"/large", "x")), nil)
	assert.Equal(t, "error", run.Get("status").Str)
	assert.Equal(t, "too_large", runDataOf(run)["Step"][0].Get("error.reason").Str)
	reasons["size limit"] = run.Get("error.reason").Str

	site.Handle("/hang", func(_ http.ResponseWriter, r *http.Request) { hang(r, make(chan struct{})) })
	run = l.run(t, oneStep("late", map[string]any{"executionTimeout": 1}, labtest.Post("Step", site.URL+"/hang", "x")), nil)
	assert.Equal(t, "canceled", run.Get("status").Str, "as in n8n")
	reasons["timeout"] = run.Get("error.reason").Str

	begun := make(chan struct{})
	site.Handle("/long", func(_ http.ResponseWriter, r *http.Request) {
		close(begun)
		hang(r, make(chan struct{}))
	})
	id = l.submit(t, &queue.Submission{Workflow: oneStep("stopped", nil, labtest.Post("Step", site.URL+"/long", "x"))})
	await(t, begun, "the step was not run")
	require.NoError(t, l.Conn.Cancel(t.Context(), id, "not needed"))
	run = l.await(t, id)
	assert.Equal(t, "canceled", run.Get("status").Str)
	assert.Equal(t, "not needed", run.Get("error.message").Str)
	reasons["cancel"] = run.Get("error.reason").Str

	assert.Equal(t, map[string]string{
		"worker lost": "worker_lost", "model error": "model_error", "size limit": "too_large", "timeout": "timeout", "cancel": "canceled",
	}, reasons)
	for name := range reasons {
		assert.NotContains(t, name, "memory")
	}
}
