package acceptance

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"github.com/reprise-engine/reprise/internal/labtest"
	"github.com/reprise-engine/reprise/internal/stack"
	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/queue"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// TestReport050AgentsThreeDeep: the tools of an agent's agent's agent run.
func TestReport050AgentsThreeDeep(t *testing.T) {
	t.Parallel()
	l := sharedLab(t)
	site := l.Site()
	converse(t, site,
		script("m", asks(free("Second", `{"task":"compute 6*7"}`)), says("First heard {{last}}")),
		script("second", asks(free("Third", `{"task":"compute 6*7, please"}`)), says("Second heard {{last}}")),
		script("third", asks(free("Calculator", `{"input":"6*7"}`)), says("It is {{last}}")))
	run := l.run(t, agentFlow(site, []labtest.Node{
		labtest.AgentTool("Second"), site.ModelNode("Second Model", "second"),
		labtest.AgentTool("Third"), site.ModelNode("Third Model", "third"), labtest.Calculator(),
	}, "Second ~ai_tool~> AI Agent", "Second Model ~ai_languageModel~> Second",
		"Third ~ai_tool~> Second", "Third Model ~ai_languageModel~> Third", "Calculator ~ai_tool~> Third"), nil)
	require.Equal(t, "success", run.Get("status").Str, run.Raw)
	assert.Contains(t, answersOf(run)[0], "First heard")
	assert.Contains(t, answersOf(run)[0], "Second heard")
	assert.Contains(t, answersOf(run)[0], "42")
	for _, name := range []string{"AI Agent", "Second", "Third", "Calculator"} {
		assert.Len(t, runDataOf(run)[name], 1, name)
	}
	assert.EqualValues(t, 6, site.ModelRequests())
}

// TestReport051SharedMemory: a sub-agent on its parent's memory works, and the memory
// holds each message once.
func TestReport051SharedMemory(t *testing.T) {
	t.Parallel()
	l := sharedLab(t)
	site := l.Site()
	model := converse(t, site,
		fmt.Sprintf(`"m": {"turns": [%s, %s], "variants": [{"match": "second question", "turns": [%s]}]}`,
			asks(free("Clerk", `{"task":"the task of the clerk"}`)), says("first answer"), says("second answer")),
		script("clerk", says("answer of the clerk")))
	document := agentFlow(site, []labtest.Node{
		labtest.AgentTool("Clerk"), site.ModelNode("Clerk Model", "clerk"), labtest.Memory("shared-session"),
	}, "Clerk ~ai_tool~> AI Agent", "Clerk Model ~ai_languageModel~> Clerk", "Memory ~ai_memory~> AI Agent", "Memory ~ai_memory~> Clerk")
	run := l.run(t, document, inputOf(`{"chatInput":"first question"}`))
	require.Equal(t, "success", run.Get("status").Str, run.Raw)
	assert.Equal(t, "first answer", answersOf(run)[0])
	run = l.run(t, document, inputOf(`{"chatInput":"second question"}`))
	require.Equal(t, "success", run.Get("status").Str, run.Raw)
	said := map[string]int{}
	for _, m := range model.request(t, 3).Get("messages").Array() {
		said[m.Get("role").Str+": "+m.Get("content").String()]++
	}
	for _, message := range []string{
		"user: first question", "assistant: first answer", "user: the task of the clerk", "assistant: answer of the clerk", "user: second question",
	} {
		assert.Equal(t, 1, said[message], "%s in %v", message, said)
	}
}

// waitingChild is a workflow that waits and then gives out x = 1, or fails.
func waitingChild(id string, fails bool) []byte {
	end := labtest.NewNode("End", "n8n-nodes-base.set", 3.4, `{"assignments":{"assignments":[{"id":"1","name":"x","value":1,"type":"number"}]},"options":{}}`)
	if fails {
		end = labtest.NewNode("End", "n8n-nodes-base.stopAndError", 1, `{"errorMessage":"broke after its wait"}`)
	}
	return labtest.Flow(id, nil, []labtest.Node{labtest.Called(), labtest.Wait("Wait", 0.3), end}, "Called -> Wait", "Wait -> End")
}

// callingTool is a workflow whose Agent has the workflow tool Helper.
func callingTool(site *labtest.Site, called string) []byte {
	return agentFlow(site, []labtest.Node{labtest.WorkflowTool("Helper", called)}, "Helper ~ai_tool~> AI Agent")
}

// callingNode is a workflow Start -> Call -> After, with the executions of a
// workflow started for each item.
func callingNode(called string, after labtest.Node) []byte {
	return labtest.Flow("calls-"+called, nil, []labtest.Node{
		labtest.NewNode("Start", "n8n-nodes-base.manualTrigger", 1, ""), labtest.ExecuteWorkflow("Call", called, "each"), after,
	}, "Start -> Call", "Call -> "+after["name"].(string))
}

// TestReport052ChildrenThatWait: three children of a node, or of three calls of a tool,
// wait; who started them goes on once, with what they gave out and not what they got.
func TestReport052ChildrenThatWait(t *testing.T) {
	t.Parallel()
	l := sharedLab(t)
	l.put(t, waitingChild("report-052", false))
	t.Run("called by a tool", func(t *testing.T) {
		t.Parallel()
		site := l.Site()
		model := converse(t, site, script("m", asks(free("Helper", `{"number":1}`), free("Helper", `{"number":2}`), free("Helper", `{"number":3}`)), says("{{results}}")))
		run := l.run(t, callingTool(site, "report-052"), nil)
		require.Equal(t, "success", run.Get("status").Str, run.Raw)
		assert.EqualValues(t, 2, site.ModelRequests(), "the Agent was resumed once")
		assert.Equal(t, []string{`[{"x":1}]`, `[{"x":1}]`, `[{"x":1}]`}, results(model.request(t, 1)))
		children := map[engine.ExecutionID]bool{}
		for _, r := range runDataOf(run)["Helper"] {
			children[child(t, r)] = true
		}
		assert.Len(t, children, 3)
	})
	t.Run("called by a node", func(t *testing.T) {
		t.Parallel()
		site := l.Site()
		ledger := site.Ledger("/after", nil)
		run := l.run(t, callingNode("report-052", labtest.Post("After", ledger.URL, "=x is {{ $json.x }}")), workflow.Items{
			{JSON: []byte(`{"x":10}`)}, {JSON: []byte(`{"x":20}`)}, {JSON: []byte(`{"x":30}`)},
		})
		require.Equal(t, "success", run.Get("status").Str, run.Raw)
		assert.Equal(t, []string{"x is 1", "x is 1", "x is 1"}, ledger.Texts())
		assert.Len(t, runDataOf(run)["Call"], 1)
		assert.Len(t, runDataOf(run)["After"], 1)
		assert.EqualValues(t, 3, runDataOf(run)["Call"][0].Get("metadata.subExecutionsCount").Int())
	})
}

// TestReport053ChildThatFailsAfterItsWait: an agent gets an error as the answer, a node
// fails.
func TestReport053ChildThatFailsAfterItsWait(t *testing.T) {
	t.Parallel()
	l := sharedLab(t)
	l.put(t, waitingChild("report-053", true))
	t.Run("called by a tool", func(t *testing.T) {
		t.Parallel()
		site := l.Site()
		model := converse(t, site, script("m", asks(free("Helper", `{"number":1}`)), says("{{results}}")))
		run := l.run(t, callingTool(site, "report-053"), nil)
		require.Equal(t, "success", run.Get("status").Str, run.Raw)
		require.Len(t, results(model.request(t, 1)), 1)
		assert.Contains(t, results(model.request(t, 1))[0], "broke after its wait")
		assert.Equal(t, "error", runDataOf(run)["Helper"][0].Get("executionStatus").Str)
		assert.Equal(t, "error", l.await(t, child(t, runDataOf(run)["Helper"][0])).Get("status").Str)
	})
	t.Run("called by a node", func(t *testing.T) {
		t.Parallel()
		site := l.Site()
		ledger := site.Ledger("/after", nil)
		run := l.run(t, callingNode("report-053", labtest.Post("After", ledger.URL, "never")), nil)
		assert.Equal(t, "error", run.Get("status").Str)
		failure := run.Get("data.resultData.error")
		assert.Contains(t, failure.Get("message").Str+failure.Get("description").Str, "broke after its wait")
		assert.Equal(t, "error", runDataOf(run)["Call"][0].Get("executionStatus").Str)
		assert.Empty(t, ledger.Texts())
	})
}

// TestReport055CancelReachesTheChild: stopped in its first step, the second never runs,
// and both stay canceled.
func TestReport055CancelReachesTheChild(t *testing.T) {
	t.Parallel()
	l := sharedLab(t)
	for name, calling := range map[string]func(site *labtest.Site, called string) []byte{
		"called by a tool": callingTool,
		"called by a node": func(_ *labtest.Site, called string) []byte {
			return callingNode(called, labtest.NewNode("After", "n8n-nodes-base.noOp", 1, ""))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			site := l.Site()
			converse(t, site, script("m", asks(free("Helper", `{"number":1}`)), says("never said")))
			ledger := site.Ledger("/second", nil)
			begun, gone := make(chan struct{}), make(chan struct{})
			site.Handle("/first", func(_ http.ResponseWriter, r *http.Request) {
				close(begun)
				hang(r, gone)
			})
			called := "report-055-" + site.Credential
			l.put(t, labtest.Flow(called, nil, []labtest.Node{
				labtest.Called(), labtest.Post("First", site.URL+"/first", "x"), labtest.Post("Second", ledger.URL, "x"),
			}, "Called -> First", "First -> Second"))
			id := l.submit(t, &queue.Submission{Workflow: calling(site, called)})
			await(t, begun, "the child does not run")
			before := time.Now()
			require.NoError(t, l.Conn.Cancel(t.Context(), id, "the test"))
			await(t, gone, "the child's step still runs")
			assert.Less(t, time.Since(before), 3*time.Second)
			assert.Equal(t, "canceled", l.await(t, id).Get("status").Str)
			page, err := l.Conn.List(t.Context(), queue.ListRequest{WorkflowID: called})
			require.NoError(t, err)
			require.Len(t, page.Executions, 1)
			run := l.await(t, page.Executions[0].ID)
			assert.Equal(t, "canceled", run.Get("status").Str)
			assert.Equal(t, string(id), run.Get("parent").Str)
			assert.Empty(t, runDataOf(run)["Second"])
			assert.Empty(t, ledger.Texts())
			x, err := l.Conn.Get(t.Context(), id, false)
			require.NoError(t, err)
			assert.Equal(t, engine.StatusCanceled, x.Status, "also after the child's end")
			assert.LessOrEqual(t, site.ModelRequests(), int64(1))
		})
	}
}

// TestReport056RecursionEnds: a workflow that runs itself ends with a clear error at the
// limit of depth, and needs one slot of a worker for it.
func TestReport056RecursionEnds(t *testing.T) {
	t.Parallel()
	l := startLab(t, func(c *stack.Config) { c.Concurrency = 1 })
	t.Run("by a tool", func(t *testing.T) {
		t.Parallel()
		site := l.Site()
		converse(t, site, script("m", asks(free("Helper", `{"number":1}`)), says("over")))
		l.put(t, labtest.Flow("report-056-tool", nil, []labtest.Node{
			labtest.Called(), labtest.Agent("AI Agent", "go"), site.ModelNode("Model", "m"), labtest.WorkflowTool("Helper", "report-056-tool"),
		}, "Called -> AI Agent", "Model ~ai_languageModel~> AI Agent", "Helper ~ai_tool~> AI Agent"))
		run := l.runOf(t, &queue.Submission{WorkflowID: "report-056-tool"})
		require.Equal(t, "success", run.Get("status").Str, run.Raw)
		depth := 0
		for record := runDataOf(run)["Helper"][0]; ; depth++ {
			if record.Get("executionStatus").Str == "error" {
				assert.Equal(t, "too_deep", record.Get("error.reason").Str)
				assert.Contains(t, messageOf(record.Get("error")), "20 levels below the first")
				break
			}
			record = runDataOf(l.await(t, child(t, record)))["Helper"][0]
		}
		assert.Equal(t, 20, depth)
	})
	t.Run("by a node", func(t *testing.T) {
		t.Parallel()
		l.put(t, labtest.Flow("report-056-node", nil, []labtest.Node{
			labtest.Called(), labtest.ExecuteWorkflow("Call", "report-056-node", "once"),
		}, "Called -> Call"))
		run := l.runOf(t, &queue.Submission{WorkflowID: "report-056-node"})
		assert.Equal(t, "error", run.Get("status").Str)
		assert.Contains(t, messageOf(run.Get("data.resultData.error")), "20 levels below the first")
	})
	t.Run("three deep", func(t *testing.T) {
		t.Parallel()
		site := l.Site()
		ledger := site.Ledger("/level", nil)
		l.put(t, labtest.Flow("report-056-three", nil, []labtest.Node{
			labtest.Called(), labtest.Post("Level", ledger.URL, "={{ $json.level ?? 1 }}"),
			labtest.NewNode("Next", "n8n-nodes-base.set", 3.4, `{"assignments":{"assignments":[{"id":"1","name":"level","value":"={{ Number($json.text) + 1 }}","type":"number"}]},"options":{}}`),
			labtest.NewNode("More?", "n8n-nodes-base.if", 2.2, `{"conditions":{"options":{"caseSensitive":true,"typeValidation":"loose","version":2},"combinator":"and","conditions":[{"id":"1","leftValue":"={{ $json.level }}","rightValue":3,"operator":{"type":"number","operation":"lte"}}]},"options":{}}`),
			labtest.ExecuteWorkflow("Call", "report-056-three", "once"),
		}, "Called -> Level", "Level -> Next", "Next -> More?", "More? -> Call"))
		run := l.runOf(t, &queue.Submission{WorkflowID: "report-056-three"})
		require.Equal(t, "success", run.Get("status").Str, run.Raw)
		assert.Equal(t, []string{"1", "2", "3"}, ledger.Texts())
	})
}

// TestReport057ChildThatTimesOut: the child's own limit holds, and that of the tool.
func TestReport057ChildThatTimesOut(t *testing.T) {
	t.Parallel()
	l := sharedLab(t)
	child10 := func(id string, settings map[string]any) []byte {
		return labtest.Flow(id, settings, []labtest.Node{labtest.Called(), labtest.Wait("Sleep", 10)}, "Called -> Sleep")
	}
	l.put(t, child10("report-057-limit", map[string]any{"executionTimeout": 1}))
	l.put(t, child10("report-057", nil))
	for name, c := range map[string]struct {
		called string
		tool   labtest.Node
		least  time.Duration
	}{
		"the child's": {"report-057-limit", labtest.WorkflowTool("Helper", "report-057-limit"), time.Second},
		"the tool's":  {"report-057", labtest.WorkflowTool("Helper", "report-057").With("timeout", 500), 500 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			site := l.Site()
			model := converse(t, site, script("m", asks(free("Helper", `{"number":1}`)), says("{{results}}")))
			before := time.Now()
			run := l.run(t, agentFlow(site, []labtest.Node{c.tool}, "Helper ~ai_tool~> AI Agent"), nil)
			took := time.Since(before)
			require.Equal(t, "success", run.Get("status").Str, run.Raw)
			assert.GreaterOrEqual(t, took, c.least)
			assert.Less(t, took, 6*time.Second, "a limit of %s", c.least)
			record := runDataOf(run)["Helper"][0]
			assert.Equal(t, "error", record.Get("executionStatus").Str)
			assert.Equal(t, "timeout", record.Get("error.reason").Str)
			require.Len(t, results(model.request(t, 1)), 1)
			assert.Contains(t, results(model.request(t, 1))[0], "timed out")
			var ended gjson.Result
			require.Eventually(t, func() bool {
				page, err := l.Conn.List(t.Context(), queue.ListRequest{WorkflowID: c.called})
				require.NoError(t, err)
				if len(page.Executions) == 0 {
					return false
				}
				x, err := l.Conn.Get(t.Context(), page.Executions[0].ID, true)
				require.NoError(t, err)
				ended = asRun(t, x)
				return x.Status.Finished()
			}, within, tick)
			assert.Equal(t, "canceled", ended.Get("status").Str)
			assert.Equal(t, run.Get("id").Str, ended.Get("parent").Str)
		})
	}
}
