package conformance

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/reprise-engine/reprise/internal/labtest"
	"github.com/reprise-engine/reprise/internal/service"
	"github.com/reprise-engine/reprise/internal/stack"
	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/queue"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// hand is a worker whose jobs are answered by the test.
type hand struct {
	*lab
	jobs *queue.JobConsumer
	t    *testing.T
}

func startHand(t *testing.T) *hand {
	t.Helper()
	h := &hand{lab: startLab(t, stack.Config{Workers: -1, SweepAfter: 500 * time.Millisecond}), t: t}
	var err error
	h.jobs, err = h.Conn.Jobs(t.Context(), []string{"default"}, queue.WorkerConfig{Slots: 4, AckWait: 30 * time.Second})
	require.NoError(t, err)
	t.Cleanup(h.jobs.Stop)
	return h
}

// next is the next job, and the node it is for.
func (h *hand) next() (*queue.JobDelivery, string) {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(h.t.Context(), within)
	defer cancel()
	for {
		d, err := h.jobs.Next(ctx)
		require.NoError(h.t, err)
		d.Done()
		if d.Job().Confirm && h.ask(d) != queue.VerdictRun {
			continue // published again by the sweeper, while it was answered
		}
		var plan queue.Plan
		require.NoError(h.t, json.Unmarshal(d.Job().Plan, &plan))
		return d, plan.Node
	}
}

// ask is what a coordinator says about a job that is delivered again.
func (h *hand) ask(d *queue.JobDelivery) string {
	h.t.Helper()
	reply, err := h.Conn.AskRedelivery(h.t.Context(), &queue.Redelivery{Job: d.Job().ID, Execution: d.Job().Execution, Deliveries: 2})
	require.NoError(h.t, err)
	return reply.Verdict
}

// answer sends a result to the coordinator of the job, or to another when that is gone.
func (h *hand) answer(d *queue.JobDelivery, result engine.Result) {
	h.t.Helper()
	r := &queue.Result{Job: d.Job().ID, Execution: d.Job().Execution, Ack: d.Ack()}
	r.Result.Result = result
	reply, err := h.Conn.SendResult(h.t.Context(), d.Job().Coordinator, r)
	require.NoError(h.t, err)
	require.Equal(h.t, queue.VerdictOK, reply.Verdict, reply.Error)
}

func items(text string) engine.Result {
	return engine.Result{Outputs: []workflow.Items{{{JSON: json.RawMessage(text)}}}}
}

func asks(calls ...engine.Action) engine.Result {
	return engine.Result{Request: &engine.Request{Actions: calls}}
}

func call(id, tool string) engine.Action {
	return engine.Action{ID: id, NodeName: tool, Input: json.RawMessage(`{"query":"x"}`)}
}

// I 095: once a tool's result is stored it is not run again: not after its coordinator is gone, and a job for it that is delivered again is dropped
func TestConformance095CoordinatorGoneAfterAResult(t *testing.T) {
	t.Parallel()
	h := startHand(t)
	site := h.Site()
	id := h.submit(t, queue.Submission{Workflow: site.Agent("m", labtest.CodeTool("A", "return 1"), labtest.CodeTool("B", "return 1"))})
	agent, name := h.next()
	require.Equal(t, "AI Agent", name)
	h.answer(agent, asks(call("1", "A"), call("2", "B")))
	tools := map[string]*queue.JobDelivery{}
	for range 2 {
		d, name := h.next()
		tools[name] = d
	}
	h.answer(tools["A"], items(`{"a":"first"}`))

	// Nobody has the execution in memory any more.
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	for _, c := range h.Coordinators {
		c.Stop(ctx)
	}
	other, err := service.StartCoordinator(t.Context(), service.Coordinator{
		NATSURL: h.NATSURL, RedisURL: h.RedisURL, Retention: time.Hour, DeliveryLimit: 3, SweepAfter: 500 * time.Millisecond, StreamReplica: 1,
	}, zap.NewNop())
	require.NoError(t, err)
	t.Cleanup(func() { other.Stop(context.Background()) })
	require.Equal(t, queue.VerdictDrop, h.ask(tools["A"]))
	require.Equal(t, queue.VerdictRun, h.ask(tools["B"]))
	h.answer(tools["A"], items(`{"a":"again"}`))
	h.answer(tools["B"], items(`{"b":"first"}`))

	resumed, name := h.next()
	require.Equal(t, "AI Agent", name, "no tool is run again")
	require.Len(t, resumed.Job().Rounds, 1)
	results := resumed.Job().Rounds[0].Results
	require.Len(t, results, 2)
	assert.JSONEq(t, `{"a":"first"}`, string(results[0].Record.Data[workflow.Tool][0][0].JSON))
	assert.JSONEq(t, `{"b":"first"}`, string(results[1].Record.Data[workflow.Tool][0][0].JSON))
	h.answer(resumed, items(`{"output":"done"}`))
	run := h.finished(t, id)
	assert.Equal(t, "success", run.Get("status").Str)
	for _, name := range []string{"A", "B", "AI Agent"} {
		assert.Len(t, records(run, name), 1, name)
	}
}

// I 096: a tool's result that comes twice, from whoever, or after a cancel, changes nothing
func TestConformance096ResultsThatComeAgain(t *testing.T) {
	t.Parallel()
	h := startHand(t)
	site := h.Site()
	id := h.submit(t, queue.Submission{Workflow: site.Agent("m", labtest.CodeTool("A", "return 1"))})
	agent, _ := h.next()
	h.answer(agent, asks(call("1", "A")))
	tool, _ := h.next()
	h.answer(tool, items(`{"a":"right"}`))
	h.answer(tool, items(`{"a":"wrong"}`))
	h.answer(tool, engine.Result{Error: &engine.NodeError{Message: "wrong"}})
	resumed, name := h.next()
	require.Equal(t, "AI Agent", name)
	assert.JSONEq(t, `{"a":"right"}`, string(resumed.Job().Rounds[0].Results[0].Record.Data[workflow.Tool][0][0].JSON))
	h.answer(resumed, asks(call("2", "A")))
	tool, _ = h.next()
	require.NoError(t, h.Conn.Cancel(t.Context(), id, "enough"))
	h.becomes(t, id, engine.StatusCanceled)
	h.answer(tool, items(`{"a":"late"}`))
	run := h.finished(t, id)
	assert.Equal(t, "canceled", run.Get("status").Str)
	require.Len(t, records(run, "A"), 2)
	assert.Equal(t, "canceled", records(run, "A")[1].Get("executionStatus").Str)
	assert.False(t, records(run, "A")[1].Get("data").Exists())
}
