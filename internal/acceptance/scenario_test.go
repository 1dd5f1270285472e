package acceptance

import (
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"github.com/reprise-engine/reprise/internal/labtest"
	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/queue"
)

// tick is how often a condition is looked at that is awaited.
const tick = 5 * time.Millisecond

// agentFlow is a workflow Start -> AI Agent with the site's model "m" and more nodes,
// connected as told (see labtest.Flow).
func agentFlow(site *labtest.Site, nodes []labtest.Node, connections ...string) []byte {
	return labtest.Flow("flow-of-"+site.Credential, nil, append([]labtest.Node{
		labtest.NewNode("Start", "n8n-nodes-base.manualTrigger", 1, ""),
		labtest.Agent("AI Agent", `={{ $json.chatInput || "go" }}`),
		site.ModelNode("Model", "m"),
	}, nodes...), append([]string{"Start -> AI Agent", "Model ~ai_languageModel~> AI Agent"}, connections...)...)
}

// gatedFlow is agentFlow with HTTP tools behind one gate.
func gatedFlow(site *labtest.Site, gate labtest.Node, url string, tools ...string) []byte {
	nodes, connections := []labtest.Node{gate}, []string{gate["name"].(string) + " ~ai_tool~> AI Agent"}
	for _, name := range tools {
		nodes = append(nodes, labtest.HTTPTool(name, url))
		connections = append(connections, name+" ~ai_tool~> "+gate["name"].(string))
	}
	return agentFlow(site, nodes, connections...)
}

// questions waits until an execution has n open questions, oldest first.
func (l *lab) questions(t *testing.T, id engine.ExecutionID, n int) []queue.Approval {
	t.Helper()
	var open []queue.Approval
	require.Eventually(t, func() bool {
		page, err := l.Conn.Approvals(t.Context(), queue.ApprovalsRequest{Execution: id})
		if err != nil {
			return false
		}
		open = page.Approvals
		return len(open) == n
	}, within, tick, "execution %s does not have %d open questions", id, n)
	return open
}

func (l *lab) question(t *testing.T, id engine.ExecutionID) queue.Approval {
	t.Helper()
	return l.questions(t, id, 1)[0]
}

// about is the question with a text among its arguments.
func about(t *testing.T, open []queue.Approval, text string) queue.Approval {
	t.Helper()
	for _, a := range open {
		if gjson.GetBytes(a.Arguments, "text").Str == text {
			return a
		}
	}
	require.Failf(t, "nobody asks about it", "%s: %v", text, open)
	return queue.Approval{}
}

// decide sends the form of a question's page.
func decide(t *testing.T, link, decision string) answer {
	t.Helper()
	return call(t, http.MethodPost, link, "application/x-www-form-urlencoded", url.Values{"decision": {decision}}.Encode())
}

func approve(t *testing.T, a queue.Approval) {
	t.Helper()
	got := decide(t, a.URL, "approve")
	require.Equal(t, http.StatusOK, got.status, got.body)
}

func deny(t *testing.T, a queue.Approval) {
	t.Helper()
	got := decide(t, a.URL, "deny")
	require.Equal(t, http.StatusOK, got.status, got.body)
}

// succeeded waits for the end of an execution that must be a success.
func (l *lab) succeeded(t *testing.T, id engine.ExecutionID) gjson.Result {
	t.Helper()
	run := l.await(t, id)
	require.Equal(t, "success", run.Get("status").Str, run.Raw)
	return run
}

// outcomes are how a gate's questions were decided, by run.
func outcomes(run gjson.Result, gate string) []string {
	var all []string
	for _, r := range runDataOf(run)[gate] {
		all = append(all, r.Get("metadata.outcome").Str)
	}
	return all
}

// put stores a workflow under its id.
func (l *lab) put(t *testing.T, document []byte) {
	t.Helper()
	_, err := l.Conn.PutWorkflow(t.Context(), queue.WorkflowPutRequest{Document: document})
	require.NoError(t, err)
}

// child is the execution that a record's run started.
func child(t *testing.T, record gjson.Result) engine.ExecutionID {
	t.Helper()
	id := record.Get("metadata.subExecution.executionId").Str
	require.NotEmpty(t, id, record.Raw)
	return engine.ExecutionID(id)
}

// refused checks that an error is the API's refusal with a code.
func refused(t *testing.T, err error, code string) {
	t.Helper()
	require.Error(t, err)
	assert.Equal(t, code, queue.ProblemOf(err).Code, "%v", err)
}
