package coordinator_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reprise-engine/reprise/internal/coordinator"
	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/queue"
)

// steady runs a worker each job of which takes some time, as busy workers do.
func (f *fixture) steady(took time.Duration) *ledger {
	return f.work(func(*queue.Job, string) (engine.Result, bool) {
		select {
		case <-time.After(took):
			return outputs(`{}`), true
		case <-f.t.Context().Done():
			return engine.Result{}, false
		}
	})
}

// One workflow floods the workers with thousands of jobs, of the same tenant and priority: another
// one's execution, which comes behind all of them, ends within a second.
func TestFloodOfOneWorkflowDoesNotDelayAnother(t *testing.T) {
	t.Parallel()
	f := start(t, 1)
	f.announce(4)
	l := f.steady(10 * time.Millisecond)
	const jobs = 6000 // 15 s of work
	f.flood(jobs, "flood", queue.Submission{Workflow: flow("flood", nil, "Start: test.trigger", "Work: test.work")})
	other := flow("other", nil, "Start: test.trigger", "One: test.work", "Two: test.work")
	var took []time.Duration
	for i := range 7 {
		id := engine.ExecutionID(fmt.Sprintf("other-%d", i))
		begun := time.Now()
		f.begin(queue.Submission{ID: id, Workflow: other})
		f.ended(id, engine.StatusSuccess)
		took = append(took, time.Since(begun))
	}
	done := len(l.of("", "Work"))
	require.Less(t, done, jobs-1000, "the flood is not over")
	slices.Sort(took)
	t.Logf("%d of %d jobs of the flood had begun; the others took %s", done, jobs, took)
	require.Less(t, took[len(took)/2], time.Second, "all: %s", took)
	require.Less(t, took[len(took)-1], 3*time.Second, "all: %s", took)
}

// agentOfTools is an agent with two tools.
func agentOfTools() []byte {
	list := []object{{"name": "Start", "type": "test.trigger"}, {"name": "Agent", "type": "test.agent"}, {"name": "A", "type": "test.wait"}, {"name": "B", "type": "test.wait"}}
	for i, n := range list {
		n["typeVersion"], n["position"], n["parameters"] = 1, []int{100 * i, 0}, object{}
	}
	tool := object{"ai_tool": [][]object{{{"node": "Agent", "type": "ai_tool", "index": 0}}}}
	data, _ := json.Marshal(object{
		"id": "agent", "name": "The agent", "nodes": list, "settings": object{"executionOrder": "v1"},
		"connections": object{"Start": object{"main": [][]object{{{"node": "Agent", "type": "main", "index": 0}}}}, "A": tool, "B": tool},
	})
	return data
}

// An Agent that waits for its tools takes no place of those that are handed to workers: more Agents
// than there are places come to their end, and leave none taken.
func TestAgentsHoldNoPlaceBetweenTheirRounds(t *testing.T) {
	t.Parallel()
	f := start(t, 2)
	f.announce(1)
	const rounds = 3
	f.work(func(job *queue.Job, name string) (engine.Result, bool) {
		if name != "Agent" || len(job.Rounds) == rounds {
			return outputs(`{}`), true
		}
		request := &engine.Request{}
		for _, tool := range []string{"A", "B"} {
			request.Actions = append(request.Actions, engine.Action{
				ActionType: "ExecutionNodeAction", NodeName: tool, Type: "ai_tool", ID: fmt.Sprint(tool, len(job.Rounds)), Input: json.RawMessage(`{}`),
			})
		}
		return engine.Result{Request: request}, true
	})
	const agents = 100
	f.flood(agents, "agent", queue.Submission{Workflow: agentOfTools()})
	for i := 1; i <= agents; i++ {
		f.ended(engine.ExecutionID(fmt.Sprintf("agent-%d", i)), engine.StatusSuccess)
	}
	over := time.Now()
	f.pool(func(p queue.QueuePool) bool { return time.Since(over) > queue.AnnounceEvery+time.Second && idle(p) })
}

// A job whose workers were lost gives its place to the next one, and its execution's place among those of
// its workflow too.
func TestLossOfAWorkerFreesThePlaces(t *testing.T) {
	t.Parallel()
	f := startWith(t, 1, func(c *coordinator.Config) { gated(c); c.DeliveryLimit = 2 })
	f.announce(4)
	f.flood(16, "lost", queue.Submission{Workflow: chain(1)})
	f.begin(queue.Submission{ID: "serial-1", Workflow: atMost(1)})
	f.begin(queue.Submission{ID: "serial-2", Workflow: atMost(1)})
	f.pool(func(p queue.QueuePool) bool { return p.Published == 16 && p.Waiting == 1 })
	require.Equal(t, engine.StatusNew, f.status("serial-2"))
	// Their workers vanish: whoever gets a job next asks, and is told that it is given up.
	lose := func(id engine.ExecutionID) {
		for try := 0; try < 2; try++ {
			_, err := f.conn.AskRedelivery(t.Context(), &queue.Redelivery{
				Job: engine.JobID(id + "_0"), Execution: id, Deliveries: 2, Asker: fmt.Sprint("worker-", try),
			})
			require.NoError(t, err)
		}
		x := f.ended(id, engine.StatusError)
		require.Equal(t, engine.ReasonWorkerLost, x.Error.Reason)
	}
	lose("lost-1")
	f.pool(func(p queue.QueuePool) bool { return p.Published == 16 && p.Waiting == 0 })
	lose("serial-1")
	f.pool(func(p queue.QueuePool) bool { return p.Published == 16 && p.Waiting == 0 })
	require.Eventually(t, func() bool { return f.status("serial-2") == engine.StatusRunning }, within, 10*time.Millisecond)
	for i := 2; i <= 16; i++ {
		lose(engine.ExecutionID(fmt.Sprintf("lost-%d", i)))
	}
	lose("serial-2")
	f.pool(idle)
	f.emptyGates()
}

// What operators are shown is right while there is much to do.
func TestQueueFiguresUnderLoad(t *testing.T) {
	t.Parallel()
	f := startWith(t, 1, func(c *coordinator.Config) { gated(c); c.StuckAfter = time.Second })
	f.announce(4)
	const jobs = 200
	l, open := f.gated()
	begun := time.Now()
	f.flood(jobs, "x", queue.Submission{Workflow: chain(1)})
	submitted := time.Since(begun)
	require.Eventually(t, func() bool { return len(l.of("", "Work 0")) == 4 }, within, 10*time.Millisecond)
	require.Eventually(t, func() bool { return time.Since(begun) > 1500*time.Millisecond }, within, 10*time.Millisecond)
	view, err := f.conn.Queue(t.Context(), true)
	require.NoError(t, err)
	age := time.Since(begun)
	require.Len(t, view.Pools, 1)
	p := view.Pools[0]
	require.Equal(t, []int{jobs - 16, 0, 16, 1, 4, 0}, []int{p.Waiting, p.Limited, p.Published, p.Workers, p.Slots, p.Old})
	require.InDelta(t, age.Milliseconds(), p.OldestMillis, float64(submitted.Milliseconds()+500), "since the first was submitted")
	require.EqualValues(t, jobs, view.Executions[engine.StatusRunning])
	require.False(t, p.Stuck)
	require.Positive(t, view.StuckExecutions, "nothing has happened for more than a second")
	require.Len(t, view.Stuck, 10)
	open()
	f.pool(idle)
	require.Eventually(t, func() bool {
		view, err = f.conn.Queue(t.Context(), true)
		return err == nil && view.Executions[engine.StatusSuccess] == jobs
	}, within, 20*time.Millisecond)
	require.Zero(t, view.StuckExecutions)
}
