package crashtest

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/queue"
)

// An execution fails because a worker died in the middle of a node that is not given
// to another one. Its retry goes on there, under the same key, and repeats nothing that was done.
func TestRetryAfterALostWorker(t *testing.T) {
	t.Parallel()
	c := startClusterOf(t, 2)
	for _, p := range c.coordinators {
		p.env = append(p.env, "REPRISE_DELIVERY_LIMIT=1")
		p.start("")
	}
	c.workers[0].start("")
	for _, p := range append(c.coordinators, c.workers[0]) {
		p.awaitReady()
	}
	c.connectOnly()
	nodes := append(agent("crash"), trigger(), c.ledger.step("Pay"), c.ledger.step("Ship"))
	links := []string{"Start -> AI Agent", "Model ~ai_languageModel~> AI Agent", "AI Agent -> Pay", "Pay -> Ship"}
	for _, name := range tools {
		nodes = append(nodes, c.ledger.tool(name))
		links = append(links, name+" ~ai_tool~> AI Agent")
	}
	arrived, open := c.ledger.hold("Pay")
	ids := newIDs(1)
	failed := ids[0]
	c.begin(ids, queue.Submission{Workflow: document("order", nil, nodes, links...)})
	select {
	case <-arrived:
	case <-time.After(within):
		c.dump()
		t.Fatal("the node was not called")
	}
	c.workers[0].kill()
	c.workers[1].start("")
	x := c.finished(failed)
	require.Equal(t, engine.StatusError, x.Status)
	require.Equal(t, engine.ReasonWorkerLost, x.Error.Reason)
	require.Equal(t, "Pay", x.LastNode)
	open()

	retry := newIDs(1)[0]
	for range 2 { // a repeated request is no second retry
		id, err := c.conn.Retry(t.Context(), queue.RetryRequest{ID: engine.ExecutionID(failed), NewID: engine.ExecutionID(retry)})
		require.NoError(t, err)
		require.Equal(t, engine.ExecutionID(retry), id)
	}
	y := c.finished(retry)
	require.Equal(t, engine.ExecutionID(failed), y.RetryOf)
	c.check(y) // the Agent, the model and the tools have their records
	for _, name := range []string{"Pay", "Ship"} {
		require.Len(t, y.records[name], 1, "runs of %s", name)
		require.Equal(t, engine.StatusSuccess, y.records[name][0].Status, name)
	}
	for _, tool := range tools {
		require.Len(t, c.ledger.keysOf(failed, tool), 1, "%s was done before", tool)
		require.Empty(t, c.ledger.keysOf(retry, tool), "%s was done before", tool)
	}
	first, second := c.ledger.keysOf(failed, "Pay"), c.ledger.keysOf(retry, "Pay")
	require.Len(t, first, 1)
	require.Equal(t, first, second, "the repeated node has the key of the lost one")
	require.NotEmpty(t, first[0])
	require.Len(t, c.ledger.keysOf(retry, "Ship"), 1)
	require.Empty(t, c.ledger.keysOf(failed, "Ship"))
	c.nothingLeft()
}
