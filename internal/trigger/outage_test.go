package trigger_test

import (
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"github.com/reprise-engine/reprise/internal/cluster"
	"github.com/reprise-engine/reprise/internal/stack"
	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/queue"
)

// startTwo starts two coordinators, as processes with an HTTP address each, and a worker.
func startTwo(t *testing.T) (c *cluster.Cluster, labs [2]*lab) {
	t.Helper()
	c, labs = newTwo(t)
	c.StartAll()
	return c, labs
}

// newTwo are those of startTwo, not started.
func newTwo(t *testing.T) (c *cluster.Cluster, labs [2]*lab) {
	t.Helper()
	c = cluster.New(t, cluster.Options{Coordinators: 2, Workers: 1})
	for i, p := range c.Coordinators {
		addr := fmt.Sprintf("127.0.0.1:%d", cluster.FreePort(t))
		p.Env = append(p.Env, "REPRISE_HTTP_ADDR="+addr, "REPRISE_WEBHOOK_TIMEOUT=40s", "REPRISE_SIGNING_KEY=a key that is as long as keys must be")
		labs[i] = &lab{&stack.Stack{Conn: c.Conn, PublicURL: "http://" + addr}}
	}
	return c, labs
}

// Callers are answered though the coordinator that has their executions is killed while they
// wait; one whose own coordinator is killed gets the same execution's answer from the other one, with
// the key that it called with.
func TestCallersOutliveCoordinators(t *testing.T) {
	c, labs := startTwo(t)
	document := flow("waits", node("Hook", webhook, 2, object{"path": "waits", "httpMethod": "POST", "responseMode": "responseNode"}),
		node("Wait", "n8n-nodes-base.wait", 1.1, object{"amount": 4, "unit": "seconds"}),
		node("Answer", respond, 1.4, object{"respondWith": "json", "responseBody": "={{ $('Hook').item.json.body }}"}))
	labs[0].activate(t, document)
	labs[1].hosted(t, "/webhook/waits")

	call := func(at, i int) (int, string, http.Header) {
		r := request(t, "POST", labs[at].PublicURL+"/webhook/waits", fmt.Sprintf(`{"n":%d}`, i), "Content-Type", "application/json", "Idempotency-Key", fmt.Sprint("call-", i))
		status, header, body := labs[at].do(t, r)
		return status, body, header
	}
	const callers = 6
	var wg sync.WaitGroup
	statuses, bodies := [callers]int{}, [callers]string{}
	for i := range callers {
		wg.Go(func() { statuses[i], bodies[i], _ = call(0, i) })
	}
	running := func(n int) func() bool {
		return func() bool {
			list, err := c.Conn.List(t.Context(), queue.ListRequest{WorkflowID: "waits", Status: engine.StatusWaiting})
			return err == nil && len(list.Executions) == n
		}
	}
	require.Eventually(t, running(callers), within, 20*time.Millisecond)
	c.Coordinators[1].Kill()
	wg.Wait()
	for i := range callers {
		if statuses[i] != 200 {
			c.Dump()
		}
		require.Equal(t, 200, statuses[i], bodies[i])
		require.Equal(t, fmt.Sprintf(`{"n":%d}`, i), bodies[i])
	}

	c.Start(c.Coordinators[1])
	labs[1].hosted(t, "/webhook/waits")
	broken := make(chan error, 1)
	go func() {
		r := request(t, "POST", labs[0].PublicURL+"/webhook/waits", `{"n":77}`, "Content-Type", "application/json", "Idempotency-Key", "call-77")
		answer, err := http.DefaultClient.Do(r)
		if err == nil {
			_ = answer.Body.Close()
		}
		broken <- err
	}()
	require.Eventually(t, running(1), within, 20*time.Millisecond)
	c.Coordinators[0].Kill()
	err := <-broken
	require.Error(t, err, "its connection broke")
	status, body, _ := call(1, 77)
	require.Equal(t, 200, status)
	require.Equal(t, `{"n":77}`, body)
	list, err := c.Conn.List(t.Context(), queue.ListRequest{WorkflowID: "waits"})
	require.NoError(t, err)
	require.Len(t, list.Executions, callers+1, "the repeated call began no other execution")
}

// With two coordinators each moment of a schedule begins one execution, also when one of them is
// killed and comes back.
func TestEachSlotOnceWithTwoCoordinators(t *testing.T) {
	c, labs := startTwo(t)
	labs[0].activate(t, flow("clock", node("Clock", "n8n-nodes-base.scheduleTrigger", 1.2,
		object{"rule": object{"interval": []object{{"field": "seconds", "secondsInterval": 1}}}})))
	moments := func() map[string]int {
		seen := map[string]int{}
		list, err := c.Conn.List(t.Context(), queue.ListRequest{WorkflowID: "clock", Limit: 100})
		if err != nil {
			return seen
		}
		for _, x := range list.Executions {
			if full, err := c.Conn.Get(t.Context(), x.ID, true); err == nil && full.Mode == "trigger" {
				seen[gjson.GetBytes(full.Data, "resultData.runData.Clock.0.data.main.0.0.json.timestamp").Str]++
			}
		}
		return seen
	}
	atLeast := func(n int) {
		t.Helper()
		require.Eventually(t, func() bool { return len(moments()) >= n }, within, 100*time.Millisecond)
	}
	atLeast(3)
	c.Coordinators[0].Kill()
	n := len(moments())
	atLeast(n + 3)
	c.Start(c.Coordinators[0])
	c.AwaitReady(c.Coordinators[0])
	n = len(moments())
	atLeast(n + 2)
	_, err := c.Conn.ActivateWorkflow(t.Context(), "clock", false)
	require.NoError(t, err)
	var times []time.Time
	for text, count := range moments() {
		require.Equal(t, 1, count, text)
		at, err := time.Parse(time.RFC3339, text)
		require.NoError(t, err, text)
		require.Zero(t, at.Nanosecond(), "a moment of the schedule, not when it was noticed")
		times = append(times, at)
	}
	require.GreaterOrEqual(t, len(times), 8)
}

// Both coordinators refuse what the other has been told to forget.
func TestBothCoordinatorsFollowChanges(t *testing.T) {
	_, labs := startTwo(t)
	w := labs[1].activate(t, flow("changes", node("Hook", webhook, 2, object{"path": "first"})))
	labs[0].hosted(t, "/webhook/first")
	_, err := labs[0].Conn.PutWorkflow(t.Context(), queue.WorkflowPutRequest{ID: w.ID, Document: flow("changes", node("Hook", webhook, 2, object{"path": "second"}))})
	require.NoError(t, err)
	for _, l := range labs {
		l.hosted(t, "/webhook/second")
		status, _, _ := l.do(t, request(t, "GET", l.PublicURL+"/webhook/first", ""))
		require.Equal(t, 404, status)
	}
}
