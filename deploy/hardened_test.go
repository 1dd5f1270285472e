package deploy_test

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	natsserver "github.com/nats-io/nats-server/v2/server"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/reprise-engine/reprise/internal/credentials"
	"github.com/reprise-engine/reprise/internal/mockllm"
	"github.com/reprise-engine/reprise/internal/redistest"
	"github.com/reprise-engine/reprise/internal/service"
	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/queue"
	"github.com/reprise-engine/reprise/pkg/state"
)

// hardened are servers with the configuration of docker-compose.hardened.yml: TLS, users and
// permissions, with secrets made by secrets.sh.
type hardened struct {
	t       *testing.T
	secrets string
	nats    string // host:port
	redis   string
	server  *redistest.Server // of Redis
	log     *zap.Logger
	warned  *observer.ObservedLogs
}

func startHardened(t *testing.T) *hardened {
	t.Helper()
	h := &hardened{t: t, secrets: filepath.Join(t.TempDir(), "secrets")}
	out, err := exec.Command("./secrets.sh", h.secrets).CombinedOutput()
	require.NoError(t, err, string(out))
	core, warned := observer.New(zapcore.WarnLevel)
	h.log, h.warned = zap.New(core), warned

	// The files that are deployed, with the paths and ports of this machine.
	config := read(t, "nats/hardened.conf")
	for old, now := range map[string]string{
		"port: 4222": "listen: \"127.0.0.1:-1\"", "http: \"127.0.0.1:8222\"": "", "store_dir: /data": "store_dir: \"" + t.TempDir() + "\"",
		"\"/run/secrets/": "\"" + h.secrets + "/",
	} {
		require.Contains(t, config, old)
		config = strings.ReplaceAll(config, old, now)
	}
	dir := filepath.Dir(h.secrets)
	require.NoError(t, os.Symlink(filepath.Join(h.secrets, "nats_passwords.conf"), filepath.Join(dir, "nats_passwords.conf")))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "permissions.conf"), []byte(read(t, "nats/permissions.conf")), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "nats.conf"), []byte(config), 0o600))
	options, err := natsserver.ProcessConfigFile(filepath.Join(dir, "nats.conf"))
	require.NoError(t, err)
	options.NoSigs, options.NoLog = true, true
	server, err := natsserver.NewServer(options)
	require.NoError(t, err)
	server.Start()
	t.Cleanup(func() { server.Shutdown(); server.WaitForShutdown() })
	require.True(t, server.ReadyForConnections(20*time.Second))
	h.nats = server.Addr().String()

	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	port := strconv.Itoa(listener.Addr().(*net.TCPAddr).Port)
	require.NoError(t, listener.Close())
	file := func(name string) string { return filepath.Join(h.secrets, name) }
	// The open port is for the helper, which is told there that a password is missing.
	h.server = redistest.Start(t, "--appendonly", "yes", "--tls-port", port, "--tls-auth-clients", "no", "--tls-cert-file", file("redis_cert.pem"),
		"--tls-key-file", file("redis_key.pem"), "--tls-ca-cert-file", file("ca.pem"), "--aclfile", file("redis_users.acl"))
	h.redis = "127.0.0.1:" + port
	return h
}

func (h *hardened) secret(name string) string {
	h.t.Helper()
	return strings.TrimSpace(read(h.t, filepath.Join(h.secrets, name)))
}

func (h *hardened) natsURL(user string) string {
	url := h.secret(user + "_nats_url")
	require.Contains(h.t, url, "@nats:4222")
	return strings.Replace(url, "nats:4222", h.nats, 1)
}

func (h *hardened) redisURL() string {
	return strings.Replace(h.secret("redis_url"), "redis:6379", h.redis, 1)
}

func (h *hardened) access(user string) service.NATSAccess {
	return service.NATSAccess{NATSCAFile: filepath.Join(h.secrets, "ca.pem"), NATSInbox: "_INBOX." + user}
}

func (h *hardened) connect(user string) *queue.Conn {
	h.t.Helper()
	conn, err := queue.Connect(h.t.Context(), h.access(user).Config(h.natsURL(user), "test-"+user, h.log))
	require.NoError(h.t, err)
	h.t.Cleanup(conn.Close)
	return conn
}

func (h *hardened) coordinator() {
	h.t.Helper()
	p, err := service.StartCoordinator(h.t.Context(), service.Coordinator{
		NATSURL: h.natsURL("coordinator"), NATSAccess: h.access("coordinator"), RedisURL: h.redisURL(),
		RedisAccess: service.RedisAccess{RedisCAFile: filepath.Join(h.secrets, "ca.pem")}, JobKey: h.secret("job_key"),
		Retention: time.Hour, DeliveryLimit: 3, SweepAfter: time.Second, StreamReplica: 1, MaxRunsPerNode: 100, MaxBacklog: 1000,
		MaxSubmission: 16 << 20, MaxRunData: 256 << 20, MaxDepth: 5, StuckAfter: time.Minute,
	}, h.log.Named("coordinator"))
	require.NoError(h.t, err)
	h.stop(p)
}

func (h *hardened) worker(user, pool, model string) {
	h.t.Helper()
	store := &credentials.Store{}
	store.Add("mock-llm", "Mock LLM", "openAiApi", map[string]any{"apiKey": "mock", "url": model})
	p, err := service.StartWorker(h.t.Context(), service.Worker{
		NATSURL: h.natsURL(user), NATSAccess: h.access(user), Pools: []string{pool}, Concurrency: 4, Lease: 3 * time.Second,
		MaxResultBytes: 64 << 20, Credentials: store, Egress: "any",
	}, h.log.Named(user))
	require.NoError(h.t, err)
	h.stop(p)
}

func (h *hardened) stop(p *service.Process) {
	h.t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		p.Stop(ctx)
	})
}

func (h *hardened) finish(conn *queue.Conn, s *queue.Submission) *queue.Execution {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(h.t.Context(), 60*time.Second)
	defer cancel()
	id, err := conn.Submit(ctx, s)
	require.NoError(h.t, err)
	x, err := conn.WaitFinished(ctx, id, true, false)
	require.NoError(h.t, err)
	return x
}

// violations are the permissions that somebody ran into.
func (h *hardened) violations() []string {
	var found []string
	for _, entry := range h.warned.All() {
		for _, field := range entry.Context {
			if err, ok := field.Interface.(error); ok && strings.Contains(strings.ToLower(err.Error()), "permissions violation") {
				found = append(found, entry.LoggerName+": "+err.Error())
			}
		}
	}
	return found
}

const poolWorkflow = `{"name":"pools","nodes":[
	{"id":"1","name":"Start","type":"n8n-nodes-base.manualTrigger","typeVersion":1,"position":[0,0],"parameters":{}},
	{"id":"2","name":"Default","type":"n8n-nodes-base.code","typeVersion":2,"position":[1,0],"parameters":{"jsCode":"return $input.all();"}},
	{"id":"3","name":"GPU","type":"n8n-nodes-base.code","typeVersion":2,"position":[2,0],"pool":"gpu","parameters":{"jsCode":"return $input.all();"}}],
	"connections":{"Start":{"main":[[{"node":"Default","type":"main","index":0}]]},"Default":{"main":[[{"node":"GPU","type":"main","index":0}]]}}}`

// All that coordinators, workers and clients do is allowed, over TLS.
func TestHardenedStackWorks(t *testing.T) {
	h := startHardened(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, stop := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- mockllm.New(mockllm.Config{}).ServeListener(ctx, listener) }()
	t.Cleanup(func() {
		stop()
		if err := <-served; err != nil {
			t.Log(err)
		}
	})
	model := "http://" + listener.Addr().String() + "/v1"
	h.coordinator()
	h.coordinator()
	h.worker("worker", "default", model)
	h.worker("worker", "default", model)
	h.worker("worker_gpu", "gpu", model)
	client := h.connect("client")

	x := h.finish(client, &queue.Submission{Workflow: json.RawMessage(read(t, "../examples/agent-parallel-tools.json"))})
	assert.Equal(t, engine.StatusSuccess, x.Status, "an Agent with tools: %+v", x.Error)

	x = h.finish(client, &queue.Submission{Workflow: json.RawMessage(poolWorkflow)})
	assert.Equal(t, engine.StatusSuccess, x.Status, "two pools: %+v", x.Error)

	// Larger than three quarters of max_payload: submission, jobs, results and the answer all go
	// through the object store.
	large, err := json.Marshal(strings.Repeat("x", 7<<20))
	require.NoError(t, err)
	input := json.RawMessage(`[{"json":{"large":` + string(large) + `}}]`)
	s := &queue.Submission{Workflow: json.RawMessage(poolWorkflow)}
	require.NoError(t, json.Unmarshal(input, &s.Input))
	x = h.finish(client, s)
	assert.Equal(t, engine.StatusSuccess, x.Status, "large payloads: %+v", x.Error)

	durable := &queue.Submission{ID: "durable-1", Workflow: json.RawMessage(poolWorkflow)}
	require.NoError(t, client.SubmitDurable(t.Context(), durable))
	require.Eventually(t, func() bool {
		x, err := client.Get(t.Context(), "durable-1", false)
		return err == nil && x.Status == engine.StatusSuccess
	}, 30*time.Second, 50*time.Millisecond)

	// A worker asks who holds a job, another one answers.
	held, err := h.connect("worker").AskHolder(t.Context(), "nobody_1")
	require.NoError(t, err)
	assert.False(t, held)

	// Every endpoint can be asked; what it answers is its own matter.
	for _, endpoint := range []string{
		queue.EndpointGet, queue.EndpointList, queue.EndpointCancel, queue.EndpointQueue, queue.EndpointResume, queue.EndpointApprovals,
		queue.EndpointApproval, queue.EndpointDecide, queue.EndpointRetry, queue.EndpointWorkflowPut, queue.EndpointWorkflowGet,
		queue.EndpointWorkflowList, queue.EndpointWorkflowDelete, queue.EndpointWorkflowActive, queue.EndpointResponse, queue.EndpointSubmit,
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		_, err := queue.Call[json.RawMessage](ctx, client, endpoint, map[string]any{"v": 1, "id": "none"})
		cancel()
		if problem := (*queue.Problem)(nil); err != nil {
			assert.True(t, errors.As(err, &problem), "%s: %v", endpoint, err)
		}
	}
	operator := h.connect("operator")
	_, err = operator.Inspect(t.Context())
	assert.NoError(t, err, "reprise doctor")
	assert.Empty(t, h.violations())

	// Redis loads all that was committed, though nobody can be its user "default".
	h.server.Restart(t)
	require.Eventually(t, func() bool {
		x, err := client.Get(t.Context(), "durable-1", true)
		return err == nil && x.Status == engine.StatusSuccess && len(x.Data) > 100
	}, 30*time.Second, 50*time.Millisecond)
	id, err := client.SubmitPatiently(t.Context(), &queue.Submission{Workflow: json.RawMessage(poolWorkflow)}, time.Minute, nil)
	require.NoError(t, err)
	x, err = client.WaitFinished(t.Context(), id, false, false)
	require.NoError(t, err)
	assert.Equal(t, engine.StatusSuccess, x.Status, "after a restart of Redis: %+v", x.Error)
}

// Who has no password reaches nothing; who has a plain connection neither.
func TestHardenedServersAskForProof(t *testing.T) {
	h := startHardened(t)
	_, err := queue.Connect(t.Context(), queue.Config{URL: "tls://" + h.nats, CAFile: filepath.Join(h.secrets, "ca.pem")})
	require.ErrorIs(t, err, queue.ErrCredentials)
	_, err = queue.Connect(t.Context(), queue.Config{URL: strings.Replace(h.natsURL("client"), "tls://", "nats://", 1)})
	require.ErrorIs(t, err, queue.ErrUnavailable, "the certificate's authority is unknown")
	_, err = queue.Connect(t.Context(), queue.Config{URL: h.natsURL("client"), CAFile: filepath.Join(h.secrets, "redis_cert.pem")})
	require.ErrorIs(t, err, queue.ErrUnavailable, "of another authority")

	tls, err := service.RedisAccess{RedisCAFile: filepath.Join(h.secrets, "ca.pem")}.TLS(h.redisURL())
	require.NoError(t, err)
	_, err = state.Open(t.Context(), state.Config{URL: h.redisURL()})
	require.ErrorIs(t, err, state.ErrUnavailable, "the certificate's authority is unknown")
	_, err = state.Open(t.Context(), state.Config{URL: "rediss://" + h.redis, TLS: tls})
	require.ErrorIs(t, err, state.ErrCredentials, "the user default is off")
	_, err = service.RedisAccess{RedisCAFile: "ca.pem"}.TLS("redis://127.0.0.1:6379")
	require.ErrorContains(t, err, "rediss://")

	options, err := redis.ParseURL(h.redisURL())
	require.NoError(t, err)
	options.TLSConfig = tls
	client := redis.NewClient(options)
	t.Cleanup(func() { _ = client.Close() })
	health := redis.NewClient(&redis.Options{Addr: h.redis, TLSConfig: tls, Username: "health", Password: "any", DisableIdentity: true})
	t.Cleanup(func() { _ = health.Close() })
	require.NoError(t, health.Ping(t.Context()).Err())
	require.ErrorContains(t, health.Info(t.Context()).Err(), "NOPERM")
	for _, command := range [][]any{{"flushall"}, {"config", "set", "appendonly", "no"}, {"set", "other", "1"}, {"acl", "list"}, {"shutdown"}, {"keys", "*"}} {
		assert.ErrorContains(t, client.Do(t.Context(), command...).Err(), "NOPERM", "%v", command)
	}
}
