package crashtest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reprise-engine/reprise/internal/cli"
	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/queue"
)

// reprise runs a command line on the cluster's NATS and returns what it printed.
func (c *cluster) reprise(args ...string) (stdout, stderr string, err error) {
	var out, errs bytes.Buffer
	root := cli.Root()
	root.SetArgs(append(args, "--nats", c.nats.URL))
	root.SetOut(&out)
	root.SetErr(&errs)
	err = root.ExecuteContext(c.t.Context())
	return out.String(), errs.String(), err
}

func (c *cluster) letters(args ...string) (letters []queue.StoredDeadLetter) {
	c.t.Helper()
	out, _, err := c.reprise(append([]string{"dead", "list", "--output", "json"}, args...)...)
	require.NoError(c.t, err)
	require.NoError(c.t, json.Unmarshal([]byte(out), &letters))
	return letters
}

// killEach kills the worker that runs a node, as often as the delivery limit; others are done
// before.
func (c *cluster) killEach(arrived <-chan string, others func()) {
	c.t.Helper()
	for i, w := range c.workers {
		select {
		case <-arrived:
		case <-time.After(within):
			c.dump()
			c.t.Fatalf("the node was not called by worker %d", i)
		}
		others()
		w.kill()
		if i+1 < len(c.workers) {
			c.workers[i+1].start("")
		}
	}
}

// A node and a tool that kill their worker each time become dead letters. The execution that failed is
// replayed from there and does nothing again that was done; the one that went on is not.
func TestDeadLetters(t *testing.T) {
	t.Parallel()
	c := startClusterOf(t, 2)
	for _, p := range c.coordinators {
		p.env = append(p.env, "REPRISE_DELIVERY_LIMIT=2")
		p.start("")
	}
	c.workers[0].start("")
	for _, p := range append(c.coordinators, c.workers[0]) {
		p.awaitReady()
	}
	c.connectOnly()
	require.Empty(t, c.letters())

	// A step of a chain: its execution fails.
	arrived, open := c.ledger.hold("Pay")
	chain := newIDs(1)[0]
	c.begin([]string{chain}, queue.Submission{Workflow: document("order", nil, []object{trigger(), c.ledger.step("Check"), c.ledger.step("Pay"), c.ledger.step("Ship")},
		"Start -> Check", "Check -> Pay", "Pay -> Ship")})
	c.killEach(arrived, func() {})
	c.workers[0].start("")
	require.Equal(t, engine.ReasonWorkerLost, c.finished(chain).Error.Reason)
	open()
	letters := c.letters("--execution", chain)
	require.Len(t, letters, 1)
	l := letters[0]
	require.Equal(t, "Pay", l.Node)
	require.Equal(t, "order", l.WorkflowID)
	require.NotEmpty(t, l.WorkflowName)
	require.Equal(t, engine.ReasonWorkerLost, l.Reason)
	require.Equal(t, 1, l.Attempts)
	require.GreaterOrEqual(t, l.Deliveries, 2)
	require.WithinDuration(t, time.Now(), time.UnixMilli(l.At), within)
	id := fmt.Sprint(l.Sequence)
	text, _, err := c.reprise("dead", "show", id)
	require.NoError(t, err)
	for _, want := range []string{chain, "Pay", "worker_lost", "now         error"} {
		require.Contains(t, text, want)
	}
	text, _, err = c.reprise("dead", "list")
	require.NoError(t, err)
	require.Contains(t, text, chain)

	out, _, err := c.reprise("dead", "replay", id, "--output", "json")
	require.NoError(t, err)
	var outcomes []struct{ Execution, Replayed, Error string }
	require.NoError(t, json.Unmarshal([]byte(out), &outcomes))
	require.Len(t, outcomes, 1)
	require.Equal(t, chain+"-replay", outcomes[0].Replayed)
	y := c.finished(outcomes[0].Replayed)
	require.Equal(t, engine.StatusSuccess, y.Status)
	require.Equal(t, engine.ExecutionID(chain), y.RetryOf)
	require.Empty(t, c.ledger.keysOf(outcomes[0].Replayed, "Check"), "it was done before")
	require.Equal(t, c.ledger.keysOf(chain, "Pay")[0], c.ledger.keysOf(outcomes[0].Replayed, "Pay")[0], "a repeat carries the same key")
	require.Empty(t, c.letters(), "it is dealt with")
	_, stderr, err := c.reprise("dead", "replay", id)
	require.Error(t, err)
	require.Contains(t, stderr, "no dead letter "+id)

	// A tool of an Agent: its execution goes on.
	arrived, open = c.ledger.hold("Beta")
	agent := c.submit(1)[0]
	c.killEach(arrived, func() {
		c.awaitToolDone(agent, "Alpha")
		c.awaitToolDone(agent, "Gamma")
	})
	c.workers[0].start("")
	require.Equal(t, engine.StatusSuccess, c.finished(agent).Status)
	open()
	letters = c.letters()
	require.Len(t, letters, 1)
	id = fmt.Sprint(letters[0].Sequence)
	_, stderr, err = c.reprise("dead", "replay", id)
	require.Error(t, err)
	require.Contains(t, stderr, "executions retry "+agent+" --from-start")
	require.Len(t, c.letters(), 1, "it is still there")
	text, _, err = c.reprise("dead", "drop", id)
	require.NoError(t, err)
	require.Contains(t, text, "dropped "+id)
	require.Empty(t, c.letters())
	c.nothingLeft()
}
