package crashtest

import (
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/queue"
)

// gatedDocument is an Agent with the tool Alpha, and Beta behind an approval.
func (l *ledger) gatedDocument() []byte {
	nodes := append(agent("gated"), trigger(), l.tool("Alpha"), l.tool("Beta"), node("Gate", "reprise.approvalHitlTool", 1, object{"message": "May I?"}))
	return document("gated", nil, nodes, "Start -> AI Agent", "Model ~ai_languageModel~> AI Agent",
		"Alpha ~ai_tool~> AI Agent", "Beta ~ai_tool~> Gate", "Gate ~ai_tool~> AI Agent")
}

// gatedAnswer is what the Agent says after both tools were run.
const gatedAnswer = `{"output": "All done: Alpha returned [{\"done\":\"Alpha\"}]; Beta returned [{\"done\":\"Beta\"}]."}`

// link is the link of the only question of an execution.
func (c *cluster) link(id string) string {
	c.t.Helper()
	w := c.waits(id)
	require.Equal(c.t, engine.WaitApproval, w.Kind)
	require.True(c.t, strings.HasPrefix(w.URL, publicURL+"/approval/"+w.Token), w.URL)
	return w.URL
}

// call requests a link from a coordinator, which the public URL would lead to; a
// decision is posted. It returns the status, 0 when the coordinator did not answer.
func call(p *process, link, decision string) int {
	client := &http.Client{Timeout: 10 * time.Second}
	address := "http://" + p.http + strings.TrimPrefix(link, publicURL)
	var answer *http.Response
	var err error
	if decision == "" {
		answer, err = client.Get(address)
	} else {
		answer, err = client.PostForm(address, url.Values{"decision": {decision}})
	}
	if err != nil {
		return 0
	}
	_ = answer.Body.Close()
	return answer.StatusCode
}

// Report 45: while a question is open, or a webhook awaited, everything is killed, servers
// included. The links work at another coordinator, started later, and what it was told
// counts even when that is killed at once. The approved tool is run once, and nothing
// that was done before is repeated.
func TestApprovalOutlivesEverything(t *testing.T) {
	t.Parallel()
	c := startClusterOf(t, 2, appendOnly...)
	c.coordinators[0].start("")
	c.workers[0].start("")
	c.coordinators[0].awaitReady()
	c.workers[0].awaitReady()
	c.connectOnly()
	ids := newIDs(3)
	c.begin(ids, queue.Submission{Workflow: c.ledger.gatedDocument()})
	hooks := newIDs(2)
	c.begin(hooks, queue.Submission{Workflow: document("hook", nil, []object{
		trigger(), c.ledger.step("Before"), c.ledger.step("After"),
		node("Hook", "n8n-nodes-base.wait", 1.1, object{"resume": "webhook", "httpMethod": "POST", "options": object{}}),
	}, "Start -> Before", "Before -> Hook", "Hook -> After")})
	links := map[string]string{}
	for _, id := range ids {
		links[id] = c.link(id)
		c.awaitToolDone(id, "Alpha")
	}
	for _, id := range hooks {
		links[id] = c.waits(id).URL
	}
	c.coordinators[0].kill()
	c.workers[0].kill()
	c.nats.Kill()
	c.redis.Kill()
	c.redis.Restart(t)
	c.nats.Restart()

	other := c.coordinators[1]
	other.start("")
	other.awaitReady()
	for _, id := range ids {
		require.Equal(t, http.StatusOK, call(other, links[id], ""), "the question is shown")
		require.Equal(t, http.StatusForbidden, call(other, links[id]+"0", "approve"), "an altered link")
		require.Empty(t, c.ledger.keysOf(id, "Beta"), "not before it is approved")
		require.Equal(t, http.StatusOK, call(other, links[id], "approve"))
	}
	for _, id := range hooks {
		require.Equal(t, http.StatusForbidden, call(other, links[id]+"0", "resume"), "an altered link")
		require.Equal(t, http.StatusOK, call(other, links[id], "resume"))
	}
	other.kill() // no worker has seen the jobs that follow
	c.startProcesses()
	for _, id := range ids {
		x := c.finished(id)
		require.Equal(t, engine.StatusSuccess, x.Status, "%s", x.Data)
		for _, name := range []string{"AI Agent", "Gate", "Alpha", "Beta"} {
			require.Len(t, x.records[name], 1, "%s: runs of %s", id, name)
		}
		require.Equal(t, engine.OutcomeApproved, x.records["Gate"][0].Metadata.Outcome)
		require.JSONEq(t, gatedAnswer, x.output(t, "AI Agent"), "%s: %s", id, x.Data)
		for _, p := range c.coordinators {
			require.Equal(t, http.StatusConflict, call(p, links[id], "approve"))
			require.Equal(t, http.StatusConflict, call(p, links[id], "deny"))
		}
	}
	for _, id := range hooks {
		x := c.finished(id)
		require.Equal(t, engine.StatusSuccess, x.Status, "%s", x.Data)
		require.Equal(t, "resume", gjson.Get(x.output(t, "Hook"), "body.decision").Str)
		for _, p := range c.coordinators {
			require.Equal(t, http.StatusConflict, call(p, links[id], "resume"))
		}
	}
	c.ledger.check(t, ids, []string{"Alpha", "Beta"}, never)
	c.ledger.check(t, hooks, []string{"Before", "After"}, never)
	c.nothingLeft()
}

// An approved tool whose worker is killed is run again under the same key, and
// nobody is asked again.
func TestWorkerKilledInTheMiddleOfAnApprovedTool(t *testing.T) {
	t.Parallel()
	c := startClusterOf(t, 2)
	for _, p := range append(c.coordinators, c.workers[0]) {
		p.start("")
	}
	for _, p := range append(c.coordinators, c.workers[0]) {
		p.awaitReady()
	}
	c.connectOnly()
	arrived, open := c.ledger.hold("Beta")
	ids := newIDs(1)
	c.begin(ids, queue.Submission{Workflow: c.ledger.gatedDocument()})
	link := c.link(ids[0])
	require.Equal(t, http.StatusOK, call(c.coordinators[0], link, "approve"))
	select {
	case <-arrived:
	case <-time.After(within):
		t.Fatal("the tool was not called")
	}
	c.workers[0].kill()
	open()
	c.workers[1].start("")
	x := c.finished(ids[0])
	require.Equal(t, engine.StatusSuccess, x.Status, "%s", x.Data)
	for _, name := range []string{"AI Agent", "Gate", "Alpha", "Beta"} {
		require.Len(t, x.records[name], 1, "runs of %s", name)
	}
	require.JSONEq(t, gatedAnswer, x.output(t, "AI Agent"), "%s", x.Data)
	require.Equal(t, http.StatusConflict, call(c.coordinators[1], link, "deny"))
	c.ledger.check(t, ids, []string{"Alpha", "Beta"}, func(e effect) bool { return e.tool == "Beta" })
	c.nothingLeft()
}

// The same decision and a contrary one reach two coordinators at the same instant: one
// wins, the others are told that they do not, and the tool is run if yes has won.
func TestContraryDecisionsAtTheSameInstant(t *testing.T) {
	t.Parallel()
	c := startClusterOf(t, 1)
	c.startAll()
	ids := newIDs(20)
	c.begin(ids, queue.Submission{Workflow: c.ledger.gatedDocument()})
	links := map[string]string{}
	for _, id := range ids {
		links[id] = c.link(id)
	}
	approved := map[string]bool{}
	for _, id := range ids {
		decisions := []string{"approve", "deny", "deny", "approve"}
		statuses := make([]int, len(decisions))
		ready := make(chan struct{})
		var wg sync.WaitGroup
		for i, decision := range decisions {
			wg.Go(func() {
				<-ready
				statuses[i] = call(c.coordinators[i%2], links[id], decision)
			})
		}
		close(ready)
		wg.Wait()
		winner := -1
		for i, status := range statuses {
			if status == http.StatusConflict {
				continue
			}
			require.Equal(t, http.StatusOK, status, "%s: %v", id, statuses)
			require.Equal(t, -1, winner, "%s: two were told that they had decided: %v", id, statuses)
			winner = i
		}
		require.NotEqual(t, -1, winner, "%s: nobody has decided: %v", id, statuses)
		approved[id] = decisions[winner] == "approve"
	}
	for _, id := range ids {
		x := c.finished(id)
		require.Equal(t, engine.StatusSuccess, x.Status, "%s", x.Data)
		require.Len(t, x.records["Gate"], 1)
		require.Len(t, x.records["Alpha"], 1)
		require.Equal(t, approved[id], x.records["Gate"][0].Metadata.Decision.Approved)
		if approved[id] {
			require.Equal(t, engine.OutcomeApproved, x.records["Gate"][0].Metadata.Outcome)
			require.Len(t, c.ledger.keysOf(id, "Beta"), 1, "%s was approved", id)
			require.Len(t, x.records["Beta"], 1)
			require.JSONEq(t, gatedAnswer, x.output(t, "AI Agent"), "%s: %s", id, x.Data)
		} else {
			require.Equal(t, engine.OutcomeDenied, x.records["Gate"][0].Metadata.Outcome)
			require.Empty(t, c.ledger.keysOf(id, "Beta"), "%s was denied", id)
		}
	}
	// Otherwise they have not met.
	for _, p := range c.coordinators {
		log, err := os.ReadFile(p.logFile)
		require.NoError(t, err)
		require.Contains(t, string(log), `"question decided"`, "%s has won nothing", p.name)
	}
	c.ledger.check(t, ids, []string{"Alpha"}, never)
	c.nothingLeft()
}
