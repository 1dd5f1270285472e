package telemetry_test

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/reprise-engine/reprise/internal/labtest"
	"github.com/reprise-engine/reprise/internal/mockllm"
	"github.com/reprise-engine/reprise/internal/service"
	"github.com/reprise-engine/reprise/internal/stack"
	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/queue"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

const twoTools = `{"m": {"turns": [
	{"tool_calls": [{"name": "Look_Up", "args": {"text": "wombat"}}, {"name": "Calculator", "args": {"input": "6*7"}}]},
	{"content": "{{results}}"}]}}`

func startStack(t *testing.T, lab *labtest.Lab, change func(*stack.Config)) *stack.Stack {
	t.Helper()
	config := stack.Config{CredentialsFile: lab.Credentials, Lease: lease}
	if change != nil {
		change(&config)
	}
	s, err := stack.Start(t.Context(), config)
	require.NoError(t, err)
	t.Cleanup(s.Stop)
	return s
}

func submit(t *testing.T, s *stack.Stack, sub *queue.Submission) engine.ExecutionID {
	t.Helper()
	sub.Version = queue.Version
	id, err := s.Conn.Submit(t.Context(), sub)
	require.NoError(t, err)
	return id
}

func awaitStatus(t *testing.T, s *stack.Stack, id engine.ExecutionID, want engine.Status) {
	t.Helper()
	require.Eventually(t, func() bool {
		x, err := s.Conn.Get(t.Context(), id, false)
		return err == nil && x.Status == want
	}, 30*time.Second, 20*time.Millisecond)
}

// The trace of a run with two tools has two model spans with token counts and two
// tool spans with the call ids, all of them below the execution's.
func TestReport117And118TraceOfAnAgentWithTools(t *testing.T) {
	got := startCollector(t)
	lab := labtest.Start(t)
	site := lab.Site()
	site.Script(t, twoTools)
	var asked atomic.Value
	site.Handle("/look", func(w http.ResponseWriter, r *http.Request) {
		asked.Store(r.Header.Get("traceparent"))
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"animal": "from the page"}`)
	})
	s := startStack(t, lab, func(c *stack.Config) { c.Coordinators = 2; c.Workers = 2 })
	const who = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	id := submit(t, s, &queue.Submission{
		Workflow: site.Agent("m", labtest.HTTPTool("Look_Up", site.URL+"/look?key=sk-in-the-url"), labtest.Calculator()), TraceParent: who,
		Input: workflow.Items{{JSON: []byte(`{"chatInput": "what of the secret prompt?"}`)}},
	})
	awaitStatus(t, s, id, engine.StatusSuccess)
	root := got.root(t, string(id))
	require.Equal(t, "reprise-coordinator", root.service)
	require.Empty(t, root.parent)
	require.Equal(t, "success", root.attribute("reprise.execution.status"))
	require.Len(t, root.Links, 1, "who asked for it is linked to")
	require.Equal(t, who[3:35], hex.EncodeToString(root.Links[0].TraceId))

	find := func(name string, n int) []*span {
		t.Helper()
		var found []*span
		require.Eventually(t, func() bool {
			found = got.named(root.traceID, name)
			return len(found) == n
		}, 10*time.Second, 20*time.Millisecond, name)
		for _, one := range found {
			got.below(t, one, root)
		}
		return found
	}
	agent := find("invoke_agent AI Agent", 2) // before the tools, and after
	for _, one := range agent {
		require.Equal(t, root.id, one.parent)
		require.Equal(t, "reprise-worker", one.service)
	}
	calls := map[string]bool{}
	for _, one := range append(find("execute_tool Look_Up", 1), find("execute_tool Calculator", 1)...) {
		require.Equal(t, "execute_tool", one.attribute("gen_ai.operation.name"))
		require.Equal(t, "AI Agent", one.attribute("reprise.requested_by"))
		require.NotEmpty(t, one.attribute("gen_ai.tool.call.id"))
		calls[one.attribute("gen_ai.tool.call.id")] = true
	}
	require.Len(t, calls, 2)
	for _, one := range find("chat m", 2) {
		require.Contains(t, []string{agent[0].id, agent[1].id}, one.parent)
		require.Equal(t, "openai", one.attribute("gen_ai.provider.name"))
		require.Equal(t, "m", one.attribute("gen_ai.request.model"))
		require.Equal(t, "m", one.attribute("gen_ai.response.model"))
		require.Regexp(t, `^[1-9]\d*$`, one.attribute("gen_ai.usage.input_tokens"))
		require.Regexp(t, `^[1-9]\d*$`, one.attribute("gen_ai.usage.output_tokens"))
		require.Equal(t, "127.0.0.1", one.attribute("server.address"))
	}
	tool := find("execute_tool Look_Up", 1)[0]
	requests := find("POST", 3) // of the model twice, and of the tool
	seen := ""
	for _, one := range requests {
		require.Equal(t, "200", one.attribute("http.response.status_code"))
		if one.parent == tool.id {
			seen = one.id
		}
	}
	require.Equal(t, "00-"+root.traceID+"-"+seen+"-01", asked.Load(), "the page is told of the request's span")

	for _, one := range got.of("") {
		all := one.String()
		for _, secret := range []string{"sk-secret-of-the-lab", "sk-in-the-url", "secret prompt", "wombat", "from the page", "6*7"} {
			require.NotContains(t, all, secret, one.Name)
		}
	}
}

// With the opt-in of the conventions, messages and arguments are attributes.
func TestContentIsAskedFor(t *testing.T) {
	got := startCollector(t)
	t.Setenv("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "true")
	lab := labtest.Start(t)
	site := lab.Site()
	site.Script(t, twoTools)
	s := startStack(t, lab, nil)
	id := submit(t, s, &queue.Submission{Workflow: site.Agent("m", labtest.HTTPTool("Look_Up", site.URL+"/shout"), labtest.Calculator())})
	root := got.root(t, string(id))
	require.Eventually(t, func() bool { return len(got.named(root.traceID, "chat m")) == 2 }, 10*time.Second, 20*time.Millisecond)
	said := ""
	for _, one := range got.named(root.traceID, "chat m") {
		for _, key := range []string{"gen_ai.input.messages", "gen_ai.output.messages"} {
			require.True(t, json.Valid([]byte(one.attribute(key))), one.attribute(key))
			said += one.attribute(key)
		}
	}
	require.Contains(t, said, `"type":"tool_call_response"`)
	require.Contains(t, said, "SHOUT WOMBAT")
	require.Contains(t, got.named(root.traceID, "execute_tool Look_Up")[0].attribute("gen_ai.tool.call.arguments"), "wombat")
	for _, one := range got.of("") {
		require.NotContains(t, one.String(), "sk-secret-of-the-lab")
	}
}

// What a worker wrote before it was killed is below the span of the job that another worker
// runs in its place.
func TestTraceSurvivesAKilledWorker(t *testing.T) {
	got := startCollector(t)
	lab := labtest.Start(t)
	site := lab.Site()
	model, asked := mockllm.New(mockllm.Config{}), make(chan struct{})
	var held atomic.Bool
	over := t.Context()
	site.Model(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if bytes.Contains(body, []byte("second question")) && held.CompareAndSwap(false, true) {
			close(asked)
			select { // its worker is killed meanwhile
			case <-r.Context().Done():
			case <-over.Done():
			}
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		model.ServeHTTP(w, r)
	}))
	s := startStack(t, lab, func(c *stack.Config) { c.Workers = -1 })
	kill := startChild(t, s.NATSURL, lab.Credentials)
	id := submit(t, s, &queue.Submission{
		Workflow: site.Agent("m"),
		Input:    workflow.Items{{JSON: []byte(`{"chatInput": "first question"}`)}, {JSON: []byte(`{"chatInput": "second question"}`)}},
	})
	<-asked
	var orphan *span
	require.Eventually(t, func() bool {
		for _, one := range got.of("") {
			if one.Name == "chat m" && one.service == "killed-worker" {
				orphan = one
			}
		}
		return orphan != nil
	}, 10*time.Second, 20*time.Millisecond, "the first item's call")
	kill()
	w, err := service.StartWorker(t.Context(), service.Worker{NATSURL: s.NATSURL, CredentialsFile: lab.Credentials, Egress: "any", Lease: lease}, zap.NewNop())
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		w.Stop(ctx)
	})
	awaitStatus(t, s, id, engine.StatusSuccess)
	root := got.root(t, string(id))
	require.Equal(t, root.traceID, orphan.traceID)
	require.Eventually(t, func() bool { return len(got.named(root.traceID, "invoke_agent AI Agent")) == 1 }, 10*time.Second, 20*time.Millisecond)
	for _, one := range got.of(root.traceID) {
		got.below(t, one, root)
	}
}

// A job that is given up because all its workers were killed has a span too: that of the coordinator.
func TestTraceOfAJobThatIsGivenUp(t *testing.T) {
	got := startCollector(t)
	lab := labtest.Start(t)
	site := lab.Site()
	asked, over := make(chan struct{}), t.Context()
	once := sync.OnceFunc(func() { close(asked) })
	site.Handle("/hang", func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		once()
		select {
		case <-r.Context().Done():
		case <-over.Done():
		}
	})
	s := startStack(t, lab, func(c *stack.Config) { c.Workers = -1 })
	kill := startChild(t, s.NATSURL, lab.Credentials)
	id := submit(t, s, &queue.Submission{Workflow: labtest.Flow("given-up", nil, []labtest.Node{
		labtest.NewNode("Start", "n8n-nodes-base.manualTrigger", 1, ""), labtest.Post("Once", site.URL+"/hang", "x"),
	}, "Start -> Once")})
	<-asked
	kill()
	startChild(t, s.NATSURL, lab.Credentials)
	awaitStatus(t, s, id, engine.StatusError)
	root := got.root(t, string(id))
	require.Equal(t, "worker_lost", root.attribute("error.type"))
	require.Eventually(t, func() bool { return len(got.named(root.traceID, "node Once")) == 1 }, 10*time.Second, 20*time.Millisecond)
	lost := got.named(root.traceID, "node Once")[0]
	require.Equal(t, "worker_lost", lost.attribute("error.type"))
	require.Equal(t, root.id, lost.parent)
}

// A sub-workflow is in the trace of the execution that called it.
func TestTraceOfSubWorkflows(t *testing.T) {
	got := startCollector(t)
	lab := labtest.Start(t)
	site := lab.Site()
	s := startStack(t, lab, nil)
	child := labtest.Flow("child", nil, []labtest.Node{labtest.Called(), labtest.Post("Fetch", site.URL+"/shout", "hello")}, "Called -> Fetch")
	_, err := s.Conn.PutWorkflow(t.Context(), queue.WorkflowPutRequest{ID: "child", Document: child})
	require.NoError(t, err)
	id := submit(t, s, &queue.Submission{Workflow: labtest.Flow("parent", nil, []labtest.Node{
		labtest.NewNode("Start", "n8n-nodes-base.manualTrigger", 1, ""), labtest.ExecuteWorkflow("Call", "child", "once"),
	}, "Start -> Call")})
	awaitStatus(t, s, id, engine.StatusSuccess)
	root := got.root(t, string(id))
	require.Eventually(t, func() bool { return len(got.named(root.traceID, "node Fetch")) == 1 }, 10*time.Second, 20*time.Millisecond)
	called := got.named(root.traceID, "execution The child")
	require.Len(t, called, 1)
	require.Equal(t, root.id, called[0].parent)
	require.Equal(t, called[0].id, got.named(root.traceID, "node Fetch")[0].parent)
}

// Where a failed node quotes what it was given, the trace does not.
func TestErrorsInTracesHaveNoText(t *testing.T) {
	got := startCollector(t)
	lab := labtest.Start(t)
	site := lab.Site()
	s := startStack(t, lab, nil)
	id := submit(t, s, &queue.Submission{Workflow: labtest.Flow("fails", nil, []labtest.Node{
		labtest.NewNode("Start", "n8n-nodes-base.manualTrigger", 1, ""), labtest.Post("Fail", site.URL+"/fail", "confidential"),
	}, "Start -> Fail")})
	awaitStatus(t, s, id, engine.StatusError)
	root := got.root(t, string(id))
	require.Eventually(t, func() bool { return len(got.named(root.traceID, "node Fail")) == 1 }, 10*time.Second, 20*time.Millisecond)
	require.Equal(t, "500", got.named(root.traceID, "node Fail")[0].attribute("error.type"))
	for _, one := range got.of("") {
		require.False(t, strings.Contains(one.String(), "always fails") || strings.Contains(one.String(), "confidential"), one.Name)
	}
}

// The trace context of a submission may be in its message's header, and a text that is none is not
// stored.
func TestTraceContextInTheHeader(t *testing.T) {
	got := startCollector(t)
	lab := labtest.Start(t)
	s := startStack(t, lab, nil)
	nc, err := nats.Connect(s.NATSURL)
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	document := labtest.Flow("short", nil, []labtest.Node{labtest.NewNode("Start", "n8n-nodes-base.manualTrigger", 1, "")})
	for id, header := range map[string]string{
		"with-context": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "with-nonsense": "00-0af7-<script>",
	} {
		body, err := json.Marshal(queue.Submission{Version: queue.Version, ID: engine.ExecutionID(id), Workflow: document})
		require.NoError(t, err)
		answer, err := nc.RequestMsg(&nats.Msg{Subject: "reprise.submit", Header: nats.Header{"traceparent": []string{header}}, Data: body}, 10*time.Second)
		require.NoError(t, err)
		require.JSONEq(t, `{"id":"`+id+`"}`, string(answer.Data))
	}
	require.Len(t, got.root(t, "with-context").Links, 1)
	require.Empty(t, got.root(t, "with-nonsense").Links)
}
