package deploy_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/node"
	"github.com/reprise-engine/reprise/pkg/queue"
	"github.com/reprise-engine/reprise/pkg/table"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// raw is a connection of a user who keeps to nothing but what the server enforces. refused
// gets what the server refuses.
func (h *hardened) raw(user string) (nc *nats.Conn, refused chan error) {
	h.t.Helper()
	refused = make(chan error, 100)
	nc, err := nats.Connect(h.natsURL(user), nats.RootCAs(filepath.Join(h.secrets, "ca.pem")), nats.CustomInboxPrefix("_INBOX."+user),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { refused <- err }))
	require.NoError(h.t, err)
	h.t.Cleanup(nc.Close)
	return nc, refused
}

// What each user must not do.
func TestPermissionsRefuse(t *testing.T) {
	h := startHardened(t)
	h.coordinator()
	everybodysSecrets := []string{
		">", "_INBOX.>", "_INBOX.coordinator.>", "reprise.>", "reprise.result.*", "reprise.result", "reprise.results", "reprise.job.>",
		"reprise.submission", "reprise.dead.*", "$JS.ACK.>", "$JS.API.>", "$O.>",
	}
	streams := []string{
		"$JS.API.STREAM.CREATE.X", "$JS.API.STREAM.UPDATE.REPRISE_JOBS", "$JS.API.STREAM.DELETE.REPRISE_JOBS", "$JS.API.STREAM.PURGE.REPRISE_JOBS",
		"$JS.API.STREAM.MSG.GET.REPRISE_JOBS", "$JS.API.DIRECT.GET.REPRISE_JOBS", "$JS.API.STREAM.MSG.DELETE.REPRISE_JOBS",
		"$JS.API.STREAM.MSG.GET.REPRISE_SUBMIT", "$JS.API.STREAM.MSG.GET.REPRISE_DEAD", "$JS.API.STREAM.DELETE.OBJ_reprise-blobs",
		"$JS.API.STREAM.DELETE.REPRISE_FILES", "$JS.API.STREAM.MSG.GET.REPRISE_FILES", "$JS.API.STREAM.INFO.REPRISE_FILES", "$JS.API.CONSUMER.CREATE.REPRISE_FILES",
		"$JS.API.CONSUMER.CREATE.REPRISE_JOBS", "$JS.API.CONSUMER.CREATE.REPRISE_JOBS.mine", "$JS.API.CONSUMER.CREATE.REPRISE_JOBS.mine.reprise.job.>",
		"$JS.API.CONSUMER.DURABLE.CREATE.REPRISE_JOBS.mine", "$JS.API.CONSUMER.DELETE.REPRISE_JOBS.pool-gpu",
		"$JS.API.CONSUMER.MSG.NEXT.REPRISE_SUBMIT.coordinators", "$JS.ACK.REPRISE_SUBMIT.coordinators.1.1.1.1.0",
	}
	worker := append([]string{
		"reprise.submit", "reprise.submission", "reprise.get", "reprise.list", "reprise.cancel", "reprise.decide", "reprise.retry", "reprise.queue",
		"reprise.workflow-put", "reprise.job.default.x_1", "reprise.job.gpu.x_1", "reprise.control", "reprise.coordinator", "reprise.settled",
		"reprise.live.x", "reprise.dead.x", "_INBOX.client.x", "_INBOX.coordinator.x", "$SRV.INFO",
	}, streams...)
	others := func(mine, other string) []string {
		return []string{
			"$JS.API.CONSUMER.CREATE.REPRISE_JOBS.pool-" + other + ".reprise.job." + other + ".*",
			"$JS.API.CONSUMER.CREATE.REPRISE_JOBS.pool-" + mine + ".reprise.job." + other + ".*",
			"$JS.API.CONSUMER.CREATE.REPRISE_JOBS.pool-" + mine + ".reprise.job.*.*",
			"$JS.API.CONSUMER.MSG.NEXT.REPRISE_JOBS.pool-" + other, "$JS.ACK.REPRISE_JOBS.pool-" + other + ".1.1.1.1.0",
			"$JS.ACK.d.a.REPRISE_JOBS.pool-" + other + ".1.1.1.1.0.x",
		}
	}
	for user, may := range map[string]struct{ publish, subscribe []string }{
		"worker":     {append(others("default", "gpu"), worker...), append([]string{"reprise.live.*", "_INBOX.worker_gpu.>", "_INBOX.client.>"}, everybodysSecrets...)},
		"worker_gpu": {append(others("gpu", "default"), worker...), append([]string{"reprise.live.*", "_INBOX.worker.>", "_INBOX.client.>"}, everybodysSecrets...)},
		"client": {append([]string{
			"reprise.result", "reprise.result.x", "reprise.results", "reprise.redelivery", "reprise.memory", "reprise.table", "reprise.holder", "reprise.worker",
			"reprise.file.x.y", "$JS.API.DIRECT.GET.REPRISE_FILES", "$JS.API.STREAM.PURGE.REPRISE_FILES",
			"reprise.job.default.x_1", "reprise.control", "reprise.live.x", "reprise.dead.x", "$JS.API.CONSUMER.MSG.NEXT.REPRISE_JOBS.pool-default",
			"$JS.ACK.REPRISE_JOBS.pool-default.1.1.1.1.0", "_INBOX.worker.x",
		}, streams...), append([]string{"_INBOX.worker.>", "reprise.control", "reprise.holder"}, everybodysSecrets...)},
		"operator": {[]string{"reprise.result", "reprise.result.x", "reprise.results", "reprise.job.default.x_1"}, []string{"_INBOX.client.>", "_INBOX.worker.>", "reprise.result.*"}},
	} {
		t.Run(user, func(t *testing.T) {
			nc, refused := h.raw(user)
			expect := func(what string) {
				t.Helper()
				require.NoError(t, nc.Flush())
				select {
				case err := <-refused:
					assert.ErrorIs(t, err, nats.ErrPermissionViolation, what)
				case <-time.After(5 * time.Second):
					assert.Fail(t, "not refused", what)
				}
			}
			for _, subject := range may.publish {
				require.NoError(t, nc.PublishRequest(subject, "_INBOX."+user+".x", []byte("{}")))
				expect("publish to " + subject)
			}
			for _, subject := range may.subscribe {
				_, err := nc.SubscribeSync(subject)
				require.NoError(t, err)
				expect("subscribe to " + subject)
			}
		})
	}
}

// Workers of all pools share the files of an execution, and remove those that no result names.
func TestWorkersKeepFiles(t *testing.T) {
	h := startHardened(t)
	h.coordinator()
	content := bytes.Repeat([]byte("file"), 1<<20)
	id, err := h.connect("worker").Files().Put(t.Context(), "exec-1", bytes.NewReader(content))
	require.NoError(t, err)
	other := h.connect("worker_gpu").Files()
	r, err := other.Get(t.Context(), id)
	require.NoError(t, err)
	got, err := io.ReadAll(r)
	require.NoError(t, err)
	require.Equal(t, sha256.Sum256(content), sha256.Sum256(got))
	require.NoError(t, other.Remove(t.Context(), id))
	_, err = other.Get(t.Context(), id)
	require.ErrorIs(t, err, node.ErrFileGone)
}

// Workers of all pools reach the data tables, and people who run it; clients do so by workflows only.
func TestWorkersReachTables(t *testing.T) {
	h := startHardened(t)
	h.coordinator()
	create := &table.Request{Key: "create", Do: table.Create, Name: "people", Columns: []table.Column{{Name: "name", Type: table.String}}}
	_, err := h.connect("operator").ApplyTable(t.Context(), create)
	require.NoError(t, err)
	for i, user := range []string{"worker", "worker_gpu"} {
		answer, err := h.connect(user).ApplyTable(t.Context(), &table.Request{
			Key: user, Do: table.Rows, Table: table.Ref{Name: "people"},
			Operations: []table.Operation{{Do: table.Insert, Values: json.RawMessage(`{"name":"Ada"}`)}, {Do: table.Get}},
		})
		require.NoError(t, err)
		require.Equal(t, i+1, answer.Results[1].Count)
	}
}

// The server holds a request to the filter that its subject names.
func TestWorkerCannotWidenItsConsumer(t *testing.T) {
	h := startHardened(t)
	h.coordinator()
	nc, _ := h.raw("worker")
	for _, filter := range []string{`"filter_subject":"reprise.job.gpu.*"`, `"filter_subject":"reprise.job.>"`, `"filter_subjects":["reprise.job.gpu.*"]`, `"filter_subject":""`} {
		body := `{"stream_name":"REPRISE_JOBS","config":{"name":"pool-default","durable_name":"pool-default","ack_policy":"explicit",` + filter + `}}`
		answer, err := nc.Request("$JS.API.CONSUMER.CREATE.REPRISE_JOBS.pool-default.reprise.job.default.*", []byte(body), 5*time.Second)
		require.NoError(t, err)
		var response struct {
			Error *jetstream.APIError `json:"error"`
		}
		require.NoError(t, json.Unmarshal(answer.Data, &response))
		assert.NotNil(t, response.Error, "%s: %s", filter, answer.Data)
	}
}

// Subjects let any worker send results. Only who was given a job can answer for it.
func TestForgedResultsAreRefused(t *testing.T) {
	h := startHardened(t)
	h.coordinator()
	client := h.connect("client")
	id, err := client.Submit(t.Context(), &queue.Submission{Workflow: json.RawMessage(poolWorkflow)})
	require.NoError(t, err)
	honest := h.connect("worker")
	jobs, err := honest.Jobs(t.Context(), []string{"default"}, queue.WorkerConfig{Slots: 1, AckWait: 30 * time.Second})
	require.NoError(t, err)
	t.Cleanup(jobs.Stop)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	d, err := jobs.Next(ctx)
	require.NoError(t, err)
	t.Cleanup(d.Done)
	job := d.Job()
	require.NotEmpty(t, job.Token)

	outputs := []workflow.Items{{{JSON: json.RawMessage(`{"forged":true}`)}}}
	thief := h.connect("worker_gpu")
	for name, token := range map[string]string{"no token": "", "of another pool": "gpu" + job.Token[len("default"):], "guessed": "default.AAAAAAAAAAAAAAAAAAAAAA"} {
		reply, err := thief.SendResult(ctx, job.Coordinator, &queue.Result{
			Version: queue.Version, Job: job.ID, Execution: id, Ack: d.Ack(), Token: token, Result: node.Result{Result: engine.Result{Outputs: outputs}},
		})
		require.NoError(t, err, name)
		assert.Equal(t, queue.VerdictDrop, reply.Verdict, name)
		reply, err = thief.AskRedelivery(ctx, &queue.Redelivery{Version: queue.Version, Job: job.ID, Execution: id, Deliveries: 99, Token: token})
		require.NoError(t, err, name)
		assert.Equal(t, queue.VerdictDrop, reply.Verdict, name)
	}
	// With a token that is right it still cannot have another pool's job acknowledged.
	reply, err := honest.SendResult(ctx, job.Coordinator, &queue.Result{
		Version: queue.Version, Job: job.ID, Execution: id, Ack: "$JS.ACK.REPRISE_JOBS.pool-gpu.1.1.1.1.0", Token: job.Token, Result: node.Result{Result: engine.Result{Outputs: outputs}},
	})
	require.NoError(t, err)
	assert.Equal(t, queue.VerdictDrop, reply.Verdict)

	x, err := client.Get(ctx, id, false)
	require.NoError(t, err)
	assert.Equal(t, engine.StatusRunning, x.Status, "nothing of this had an effect")
	reply, err = honest.SendResult(ctx, job.Coordinator, &queue.Result{
		Version: queue.Version, Job: job.ID, Execution: id, Ack: d.Ack(), Token: job.Token, Result: node.Result{Result: engine.Result{Outputs: outputs}},
	})
	require.NoError(t, err)
	assert.Equal(t, queue.VerdictOK, reply.Verdict, fmt.Sprint(reply.Error))
}
