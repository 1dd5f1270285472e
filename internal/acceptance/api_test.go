package acceptance

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"
	"go.uber.org/zap"

	"github.com/reprise-engine/reprise/internal/embedded"
	"github.com/reprise-engine/reprise/internal/labtest"
	"github.com/reprise-engine/reprise/internal/service"
	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/queue"
)

// TestBadSubmissions: what is wrong with a submission is said in one answer,
// with its code, in the header that NATS clients read and in the body.
func TestBadSubmissions(t *testing.T) {
	t.Parallel()
	l := sharedLab(t)
	site := l.Site()
	nc, err := nats.Connect(l.NATSURL)
	require.NoError(t, err)
	t.Cleanup(nc.Close)

	good := site.AgentNodes("m", labtest.Calculator())
	document := func(change func(nodes []labtest.Node) []labtest.Node) string {
		nodes := make([]labtest.Node, len(good))
		for i := range good {
			nodes[i] = good[i].With("name", good[i]["name"])
		}
		return string(labtest.Document(change(nodes), nil))
	}
	submission := func(document string, more ...string) string {
		fields := append([]string{`"v":1`, `"workflow":` + document}, more...)
		return "{" + strings.Join(fields, ",") + "}"
	}
	for _, c := range []struct {
		name, request, code, status, text string
	}{
		{"garbage", "\x00\xff{not json", "bad_request", "400", "submission cannot be read"},
		{"empty", "", "bad_request", "400", "submission"},
		{"an array", "[]", "bad_request", "400", "submission cannot be read"},
		{"no workflow", `{"v":1}`, "bad_request", "400", "without workflow"},
		{"newer version", `{"v":99,"workflow":{}}`, "bad_version", "400", "version 99"},
		{"workflow is a text", submission(`"hello"`), "invalid_workflow", "422", "workflow"},
		{"workflow without nodes", submission(`{}`), "invalid_workflow", "422", "nodes"},
		{"execution id with a dot", submission(string(site.Agent("m")), `"id":"a.b"`), "bad_request", "400", `"a.b"`},
		{"unknown hash", `{"v":1,"workflowHash":"0123"}`, "not_found", "404", "0123"},
		{"input that is no object", submission(string(site.Agent("m")), `"input":[{"json":[1]}]`), "bad_request", "400", "item 0"},
		{"unknown start node", submission(string(site.Agent("m")), `"start":"Nowhere"`), "invalid_workflow", "422", "Nowhere"},
		{"unknown node type", submission(document(func(nodes []labtest.Node) []labtest.Node {
			nodes[3] = nodes[3].With("type", "n8n-nodes-base.teleport")
			return nodes
		})), "invalid_workflow", "422", "n8n-nodes-base.teleport"},
		{"unknown version of a node", submission(document(func(nodes []labtest.Node) []labtest.Node {
			nodes[3] = nodes[3].With("typeVersion", 77)
			return nodes
		})), "invalid_workflow", "422", "77"},
		{"no model", submission(document(func(nodes []labtest.Node) []labtest.Node {
			return append(nodes[:2:2], nodes[3:]...)
		})), "invalid_workflow", "422", "AI Agent"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			answer, err := nc.Request("reprise.submit", []byte(c.request), 20*time.Second)
			require.NoError(t, err)
			problem := gjson.ParseBytes(answer.Data)
			assert.Equal(t, c.code, problem.Get("code").Str, "%s", answer.Data)
			assert.Contains(t, problem.Get("message").Str, c.text)
			assert.Equal(t, c.status, answer.Header.Get("Nats-Service-Error-Code"))
			assert.NotEmpty(t, answer.Header.Get("Nats-Service-Error"))
			assert.NotContains(t, string(answer.Data), "sk-secret")
		})
	}
}

// TestOtherRequests: the other endpoints answer nonsense likewise.
func TestOtherRequests(t *testing.T) {
	t.Parallel()
	l := sharedLab(t)
	nc, err := nats.Connect(l.NATSURL)
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	for _, c := range []struct{ subject, request, code, text string }{
		{"reprise.get", "garbage", "bad_request", "cannot be read"},
		{"reprise.get", `{"v":1,"id":"a.b"}`, "bad_request", `"a.b"`},
		{"reprise.get", `{"v":1,"id":"nobody"}`, "not_found", "nobody"},
		{"reprise.cancel", `{"v":1,"id":"nobody"}`, "not_found", "nobody"},
		{"reprise.cancel", `{"v":1,"id":""}`, "bad_request", "1 to 128"},
		{"reprise.list", `{"v":1,"cursor":"nonsense"}`, "bad_request", "cursor"},
		{"reprise.list", `{"v":1,"status":"sleeping"}`, "bad_request", "sleeping"},
		{"reprise.get", `{"v":99,"id":"nobody"}`, "bad_version", "99"},
	} {
		answer, err := nc.Request(c.subject, []byte(c.request), 20*time.Second)
		require.NoError(t, err, c.request)
		assert.Equal(t, c.code, gjson.GetBytes(answer.Data, "code").Str, "%s %s: %s", c.subject, c.request, answer.Data)
		assert.Contains(t, gjson.GetBytes(answer.Data, "message").Str, c.text, "%s %s", c.subject, c.request)
	}
}

// TestSubmitTwice: the execution id is the key under which a submission counts once.
func TestSubmitTwice(t *testing.T) {
	t.Parallel()
	l := sharedLab(t)
	site := l.Site()
	submission := &queue.Submission{ID: engine.ExecutionID("twice-" + uuid.NewString()), Workflow: site.Agent("m")}
	for range 3 {
		id, err := l.Conn.Submit(t.Context(), submission)
		require.NoError(t, err)
		assert.Equal(t, submission.ID, id)
	}
	l.await(t, submission.ID)
	id, err := l.Conn.Submit(t.Context(), submission) // also when it is over
	require.NoError(t, err)
	l.await(t, id)
	assert.EqualValues(t, 1, site.ModelRequests())
}

// TestDurableSubmission: a submission rests in NATS until a coordinator comes.
func TestDurableSubmission(t *testing.T) {
	t.Parallel()
	natsServer, err := embedded.StartNATS(t.TempDir(), embedded.NATSOptions{})
	require.NoError(t, err)
	t.Cleanup(natsServer.Shutdown)
	redis, err := embedded.StartRedis(t.TempDir(), embedded.RedisOptions{TCP: true})
	require.NoError(t, err)
	t.Cleanup(redis.Shutdown)
	lab := labtest.Start(t)
	site := lab.Site()
	ctx := t.Context()

	settings := service.Coordinator{NATSURL: natsServer.URL, RedisURL: redis.URL, Retention: time.Hour, DeliveryLimit: 3, StreamReplica: 1}
	first, err := service.StartCoordinator(ctx, settings, zap.NewNop())
	require.NoError(t, err)
	stop(first) // it has created the streams

	conn, err := queue.Connect(ctx, queue.Config{URL: natsServer.URL, Log: zap.NewNop()})
	require.NoError(t, err)
	t.Cleanup(conn.Close)
	submission := &queue.Submission{ID: "durable-1", Workflow: site.Agent("m", labtest.Calculator()), Input: inputOf(`{"chatInput":"compute 6 * 7"}`)}
	_, err = conn.Submit(ctx, submission)
	require.ErrorIs(t, err, queue.ErrNoCoordinator, "a request needs a coordinator")
	require.NoError(t, conn.SubmitDurable(ctx, submission))
	require.NoError(t, conn.SubmitDurable(ctx, submission), "it may be repeated")
	refused := &queue.Submission{ID: "durable-2", Workflow: json.RawMessage(`{"nodes":[]}`)}
	require.NoError(t, conn.SubmitDurable(ctx, refused))

	second, err := service.StartCoordinator(ctx, settings, zap.NewNop())
	require.NoError(t, err)
	t.Cleanup(func() { stop(second) })
	worker, err := service.StartWorker(ctx, service.Worker{
		NATSURL: natsServer.URL, Pools: []string{"default"}, Concurrency: 4, Lease: 30 * time.Second,
		CredentialsFile: lab.Credentials, MaxResultBytes: 1 << 20, Egress: "any",
	}, zap.NewNop())
	require.NoError(t, err)
	t.Cleanup(func() { stop(worker) })
	var x *queue.Execution
	require.Eventually(t, func() bool {
		x, err = conn.Get(ctx, submission.ID, true)
		return err == nil && x.Status.Finished()
	}, within, 20*time.Millisecond)
	assert.Equal(t, engine.StatusSuccess, x.Status)
	assert.Contains(t, string(x.Data), "Calculator returned 42")
	assert.EqualValues(t, 2, site.ModelRequests())
	require.Eventually(t, func() bool { return len(deadLetters(t, natsServer.URL)) > 0 }, within, 20*time.Millisecond,
		"a durable submission that is refused must become a dead letter")
	assert.Contains(t, deadLetters(t, natsServer.URL)[0], "durable-2")
}

// deadLetters are the messages of the stream of what was given up.
func deadLetters(t *testing.T, url string) []string {
	t.Helper()
	nc, err := nats.Connect(url)
	require.NoError(t, err)
	defer nc.Close()
	js, err := nc.JetStream()
	require.NoError(t, err)
	info, err := js.StreamInfo(queue.StreamDead)
	require.NoError(t, err)
	var letters []string
	for seq := info.State.FirstSeq; info.State.Msgs > 0 && seq <= info.State.LastSeq; seq++ {
		m, err := js.GetMsg(queue.StreamDead, seq)
		require.NoError(t, err)
		letters = append(letters, string(m.Data))
	}
	return letters
}

func stop(p *service.Process) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	p.Stop(ctx)
}
