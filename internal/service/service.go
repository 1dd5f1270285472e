// Package service joins the parts into the two processes that are operated:
// the coordinator and the worker. The command line's in-process stack uses the
// same functions, so there is no second way to run anything.
package service

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"time"

	"github.com/google/uuid"
	"go.uber.org/zap"

	"github.com/reprise-engine/reprise/internal/config"
	"github.com/reprise-engine/reprise/internal/coordinator"
	"github.com/reprise-engine/reprise/internal/credentials"
	"github.com/reprise-engine/reprise/internal/health"
	"github.com/reprise-engine/reprise/internal/nodetypes"
	"github.com/reprise-engine/reprise/internal/runner"
	"github.com/reprise-engine/reprise/internal/telemetry"
	"github.com/reprise-engine/reprise/internal/trigger"
	"github.com/reprise-engine/reprise/internal/worker"
	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/expression"
	"github.com/reprise-engine/reprise/pkg/queue"
	"github.com/reprise-engine/reprise/pkg/state"
	"github.com/reprise-engine/reprise/pkg/table"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// Coordinator are the settings of the coordinator process.
type Coordinator struct {
	NATSURL       string        `env:"REPRISE_NATS_URL" envDefault:"nats://127.0.0.1:4222" help:"NATS server with JetStream"`
	RedisURL      string        `env:"REPRISE_REDIS_URL" envDefault:"redis://127.0.0.1:6379/0" help:"Redis, or a comma list of Redis Cluster nodes"`
	LogLevel      string        `env:"REPRISE_LOG_LEVEL" envDefault:"info" help:"debug, info, warn or error"`
	MetricsAddr   string        `env:"REPRISE_METRICS_ADDR" help:"address for /metrics, /healthz and /readyz, such as 127.0.0.1:9090; empty is off"`
	Retention     time.Duration `env:"REPRISE_RETENTION" envDefault:"24h" help:"how long finished executions are kept"`
	DeliveryLimit int           `env:"REPRISE_DELIVERY_LIMIT" envDefault:"3" help:"how often a job is given to a worker before it is given up"`
	SweepAfter    time.Duration `env:"REPRISE_SWEEP_AFTER" envDefault:"5s" help:"how long an execution may be without any event before its open jobs are published again; after that it is looked at half as often"`
	DrainTimeout  time.Duration `env:"REPRISE_DRAIN_TIMEOUT" envDefault:"20s" help:"how long a stopping process may take to finish what it has begun"`
	StreamReplica int           `env:"REPRISE_STREAM_REPLICAS" envDefault:"1" help:"replicas of the NATS streams (1, 3 or 5)"`

	HTTPAddr               string        `env:"REPRISE_HTTP_ADDR" help:"address where approvals, webhooks, forms and chats are answered, such as 127.0.0.1:8484; empty is off"`
	PublicURL              string        `env:"REPRISE_PUBLIC_URL" help:"how people and other systems reach the HTTP address, the beginning of all links; empty is http://<http addr>"`
	SigningKey             string        `env:"REPRISE_SIGNING_KEY" help:"key that signs the links, the same for all coordinators: hex, or any text of at least 32 bytes; empty is one that is made once and kept in Redis"`
	WebhookCredentialsFile string        `env:"REPRISE_WEBHOOK_CREDENTIALS_FILE" help:"credentials that callers of webhooks, forms and chats are checked against (httpBasicAuth, httpHeaderAuth, jwtAuth; others are not read), in the form of REPRISE_CREDENTIALS_FILE"`
	WebhookCredentialsKey  string        `env:"REPRISE_WEBHOOK_CREDENTIALS_KEY" help:"keys that open these credentials when they are encrypted"`
	WebhookMaxBody         int           `env:"REPRISE_WEBHOOK_MAX_BODY_BYTES" envDefault:"10485760" help:"greatest size of what a caller of a trigger sends"`
	WebhookTimeout         time.Duration `env:"REPRISE_WEBHOOK_TIMEOUT" envDefault:"5m" help:"how long a caller of a trigger waits for the answer of its execution before it is told 504 and the execution's id"`
	WebhookRate            string        `env:"REPRISE_WEBHOOK_RATE" help:"calls that one trigger takes, per coordinator, such as 100/second; empty is any number"`
	WebhookRatePerIP       string        `env:"REPRISE_WEBHOOK_RATE_PER_IP" envDefault:"600/minute" help:"calls of triggers from one address, per coordinator; off is any number"`
	TrustedProxies         []string      `env:"REPRISE_TRUSTED_PROXIES" help:"addresses and ranges of proxies whose X-Forwarded-For is believed, such as 10.0.0.0/8"`
	ScheduleWindow         time.Duration `env:"REPRISE_SCHEDULE_WINDOW" envDefault:"10m" help:"how late the latest moment of a schedule is made up for when no coordinator was there"`
	Egress                 string        `env:"REPRISE_EGRESS" envDefault:"public" help:"which addresses the streams of SSE triggers may have: public, or any"`
	EgressAllow            []string      `env:"REPRISE_EGRESS_ALLOW" help:"what they may have besides public addresses: names, addresses and ranges, such as events.corp.example,10.1.0.0/16"`
	NoTriggers             bool          `env:"REPRISE_NO_TRIGGERS" help:"begin no executions by the triggers of active workflows: another coordinator does"`

	JobKey          string `env:"REPRISE_JOB_KEY" help:"key of the tokens that come with jobs and that results must bring back, the same for all coordinators: hex, or any text of at least 32 bytes; empty asks for none"`
	MaxRunsPerNode  int    `env:"REPRISE_MAX_RUNS_PER_NODE" envDefault:"10000" help:"how often one node may run in an execution, unless its workflow's settings say maxRunsPerNode"`
	MaxBacklog      int    `env:"REPRISE_MAX_BACKLOG" envDefault:"20000" help:"how many jobs a coordinator holds back for busy workers before it refuses new executions as overloaded"`
	MaxBacklogBytes int    `env:"REPRISE_MAX_BACKLOG_BYTES" envDefault:"268435456" help:"how much data the jobs may carry that a coordinator holds back, before it refuses new executions as overloaded"`
	CacheBytes      int    `env:"REPRISE_CACHE_BYTES" envDefault:"268435456" help:"how much run data of running executions a coordinator keeps in memory between their events; what is beyond it is read from Redis again"`
	MaxSubmission   int    `env:"REPRISE_MAX_SUBMISSION_BYTES" envDefault:"16777216" help:"greatest size of a submission"`
	MaxRunData      int    `env:"REPRISE_MAX_RUN_DATA_BYTES" envDefault:"268435456" help:"greatest size of the run data of one execution; beyond it the execution fails"`
	MaxFiles        int    `env:"REPRISE_FILES_MAX_BYTES" envDefault:"0" help:"greatest size of the files of all executions together; beyond it workers cannot keep further ones. 0 is unlimited"`
	TableRows       int    `env:"REPRISE_TABLE_MAX_ROWS" envDefault:"50000" help:"greatest number of rows of a data table"`
	TableBytes      int    `env:"REPRISE_TABLE_MAX_BYTES" envDefault:"33554432" help:"greatest size of the rows of a data table"`
	MaxDepth        int    `env:"REPRISE_MAX_DEPTH" envDefault:"20" help:"how deep workflows may start one another"`

	StuckAfter          time.Duration `env:"REPRISE_STUCK_AFTER" envDefault:"15m" help:"how long a running execution may make no progress before the log names it, once a minute"`
	WorkflowConcurrency int           `env:"REPRISE_WORKFLOW_CONCURRENCY" envDefault:"0" help:"how many executions of one workflow may be unfinished, running or waiting; others queue. The workflow's setting maxConcurrency goes before it; 0 is any number"`

	NATSAccess
	RedisAccess
	Traces

	OnLive func(engine.ExecutionID, []engine.Live) `env:"-"`
}

// Worker are the settings of the worker process.
type Worker struct {
	NATSURL         string        `env:"REPRISE_NATS_URL" envDefault:"nats://127.0.0.1:4222" help:"NATS server with JetStream"`
	LogLevel        string        `env:"REPRISE_LOG_LEVEL" envDefault:"info" help:"debug, info, warn or error"`
	MetricsAddr     string        `env:"REPRISE_METRICS_ADDR" help:"address for /metrics, /healthz and /readyz, such as 127.0.0.1:9091; empty is off"`
	Pools           []string      `env:"REPRISE_WORKER_POOLS" envDefault:"default" help:"pools whose jobs this worker runs; gpu:2 runs two jobs of the pool gpu at once"`
	Concurrency     int           `env:"REPRISE_WORKER_CONCURRENCY" envDefault:"32" help:"jobs that run at once"`
	Lease           time.Duration `env:"REPRISE_JOB_LEASE" envDefault:"6s" help:"how long a job may be without a sign of life, which workers give three times as often, before another worker gets it (ack wait)"`
	CredentialsFile string        `env:"REPRISE_CREDENTIALS_FILE" help:"credentials in the format of n8n's decrypted export, or encrypted with reprise credentials encrypt"`
	CredentialsKey  string        `env:"REPRISE_CREDENTIALS_KEY" help:"keys that open encrypted credentials, from reprise credentials keygen; REPRISE_CREDENTIALS_KEY_FILE names a file with them"`
	Egress          string        `env:"REPRISE_EGRESS" envDefault:"public" help:"which addresses the HTTP requests of workflows reach: public, or any"`
	EgressAllow     []string      `env:"REPRISE_EGRESS_ALLOW" help:"what they reach besides public addresses: names, addresses and ranges, such as ollama:11434,*.corp.example,10.1.0.0/16"`
	MaxResponse     int           `env:"REPRISE_MAX_RESPONSE_BYTES" envDefault:"67108864" help:"greatest size of the answers that one run of an HTTP Request node gets"`
	MaxFile         int           `env:"REPRISE_MAX_FILE_BYTES" envDefault:"268435456" help:"greatest size of one file that travels with an item"`
	InlineFile      int           `env:"REPRISE_INLINE_FILE_BYTES" envDefault:"8192" help:"size up to which a file travels inside its item; larger ones are kept in NATS and removed with their execution"`
	DrainTimeout    time.Duration `env:"REPRISE_DRAIN_TIMEOUT" envDefault:"20s" help:"how long running jobs may take after SIGTERM before they are handed back"`
	// Warm starts the JavaScript engine in the background, so that the first
	// expression that needs it does not wait for it.
	Warm bool `env:"-"`
	// Credentials, when not nil, is used instead of CredentialsFile.
	Credentials *credentials.Store `env:"-"`
	// HTTP, when not nil, carries the HTTP requests of nodes instead of the network.
	HTTP           http.RoundTripper `env:"-"`
	MaxResultBytes int               `env:"REPRISE_MAX_RESULT_BYTES" envDefault:"67108864" help:"greatest size of one node's output"`

	Code
	Disk
	NATSAccess
	Traces
}

// Process is a running service.
type Process struct {
	// Stop ends it gracefully; when ctx ends first, at once.
	Stop func(ctx context.Context)
	// MetricsAddr is where metrics and health are read, "" when nowhere.
	MetricsAddr string
	// Healthy says whether it can work.
	Healthy func(ctx context.Context) error
	// Stats of its connections; nil where there is none.
	Queue *queue.Conn
	Store *state.Store
}

// lookEvery is how often a coordinator looks for timers and sweeps that others have set. Sweeps are set
// SweepAfter ahead, so nearly all are seen before they are due; short timers of a coordinator that
// died are late by as much. The six seconds at most keep an idle coordinator below 100
// commands a second.
func lookEvery(sweepAfter time.Duration) time.Duration {
	return min(sweepAfter*6/5, 6*time.Second)
}

// StartCoordinator connects to Redis and NATS and starts a coordinator. Settings that are zero have
// their defaults.
func StartCoordinator(ctx context.Context, s Coordinator, log *zap.Logger) (*Process, error) {
	if err := config.Default(&s); err != nil {
		return nil, err
	}
	tls, err := s.RedisAccess.TLS(s.RedisURL)
	if err != nil {
		return nil, err
	}
	store, err := state.Open(ctx, state.Config{URL: s.RedisURL, TLS: tls, Retention: s.Retention, LookEvery: lookEvery(s.SweepAfter), Log: log,
		TableLimits: table.Limits{Rows: s.TableRows, Bytes: int64(s.TableBytes)}})
	if err != nil {
		return nil, err
	}
	closers := []func(){func() { _ = store.Close() }}
	closeAll := func() {
		for i := len(closers) - 1; i >= 0; i-- {
			closers[i]()
		}
	}
	warnAboutRedis(ctx, store, log)
	conn, err := queue.Connect(ctx, s.NATSAccess.Config(s.NATSURL, "reprise-coordinator", log))
	if err != nil {
		closeAll()
		return nil, err
	}
	closers = append(closers, conn.Close)
	if err := conn.EnsureStreams(ctx, queue.Streams{Replicas: s.StreamReplica, MaxFileBytes: int64(s.MaxFiles)}); err != nil {
		closeAll()
		return nil, err
	}
	evaluator, err := expression.New()
	if err != nil {
		closeAll()
		return nil, err
	}
	closers = append(closers, func() { _ = evaluator.Close() })
	signer, err := linkSigner(ctx, s, store)
	if err != nil {
		closeAll()
		return nil, err
	}
	proof, err := newProof(s.JobKey, log)
	if err != nil {
		closeAll()
		return nil, err
	}
	config := coordinator.Config{
		Files: conn.Files(), Kept: store.Kept,
		Gates: store, WorkflowConcurrency: s.WorkflowConcurrency, StuckAfter: s.StuckAfter,
		Store: store, Transport: transport{Conn: conn, proof: proof}, Registry: nodetypes.Registry(), Evaluator: evaluator, Log: log,
		Limits:     engine.Limits{RunsPerNode: s.MaxRunsPerNode, Depth: s.MaxDepth, RunDataBytes: int64(s.MaxRunData)},
		MaxBacklog: s.MaxBacklog, MaxBacklogBytes: s.MaxBacklogBytes, CacheBytes: s.CacheBytes, MaxSubmissionBytes: s.MaxSubmission,
		DeliveryLimit: s.DeliveryLimit, SweepAfter: s.SweepAfter, OnLive: s.OnLive,
		ID: uuid.NewString(),
	}
	watch, err := observeCoordinator(ctx, s, config.ID, log)
	if err != nil {
		closeAll()
		return nil, err
	}
	closers = append(closers, watch.tracing.Stop)
	config.Telemetry = watch.coordinator
	if signer != nil {
		config.Links = signer
	}
	config.CheckTriggers = func(ctx context.Context, id string, w *workflow.Workflow) error {
		if err := trigger.Check(ctx, evaluator, w); err != nil {
			return err
		}
		return trigger.CheckClashes(ctx, evaluator, store, id, w)
	}
	host, err := triggerHost(s, conn, store, evaluator, signer, log)
	if err != nil {
		closeAll()
		return nil, err
	}
	c, err := coordinator.New(config)
	if err != nil {
		closeAll()
		return nil, err
	}
	if err := c.Start(ctx); err != nil {
		closeAll()
		return nil, err
	}
	// The subscriptions have reached the server before anyone is told that we run.
	if err := conn.Flush(ctx); err != nil {
		c.Stop(ctx)
		closeAll()
		return nil, err
	}
	p := &Process{Healthy: c.Healthy, Queue: conn, Store: store}
	stopHTTP, err := serveHTTP(s.HTTPAddr, conn, signer, host, log)
	if err != nil {
		c.Stop(ctx)
		closeAll()
		return nil, err
	}
	if !s.NoTriggers {
		host.Start()
	}
	watch.figures(c, store, conn, s.StuckAfter)
	stopHealth, err := serveHealth(p, s.MetricsAddr, watch.handler(log), log)
	if err != nil {
		stopHTTP(ctx)
		host.Stop()
		c.Stop(ctx)
		closeAll()
		return nil, err
	}
	p.Stop = func(ctx context.Context) {
		stopHTTP(ctx)
		host.Stop()
		c.Stop(ctx)
		stopHealth()
		closeAll()
	}
	return p, nil
}

// StartWorker connects to NATS and starts a worker. Settings that are zero have their defaults.
func StartWorker(ctx context.Context, s Worker, log *zap.Logger) (*Process, error) {
	if err := config.Default(&s); err != nil {
		return nil, err
	}
	secrets, log, err := openCredentials(&s, log)
	if err != nil {
		return nil, err
	}
	client, err := outgoing(&s, log)
	if err != nil {
		return nil, err
	}
	pools, slots, err := parsePools(s.Pools, s.Concurrency)
	if err != nil {
		return nil, err
	}
	slotsOf := poolSlots(pools, slots, s.Concurrency)
	name, _ := os.Hostname()
	name = fmt.Sprintf("%s-%d", name, os.Getpid())
	watch, err := observeWorker(ctx, s, name, log)
	if err != nil {
		return nil, err
	}
	conn, err := queue.Connect(ctx, s.NATSAccess.Config(s.NATSURL, "reprise-worker", log))
	if err != nil {
		return nil, err
	}
	code, err := openCode(s.Code, log)
	if err != nil {
		conn.Close()
		return nil, err
	}
	evaluator, err := expression.NewWithConfig(code.evaluator)
	if err != nil {
		conn.Close()
		return nil, err
	}
	warmed := make(chan struct{})
	go func() {
		defer close(warmed)
		if s.Warm {
			if _, err := evaluator.Evaluate(ctx, &expression.Scope{}, 0, "={{ 1 + 1 }}"); err != nil {
				log.Warn("JavaScript engine cannot be started", zap.Error(err))
			}
		}
	}()
	var web http.RoundTripper = client
	if s.HTTP != nil {
		web = s.HTTP
	}
	closeAll := func() {
		client.CloseIdleConnections()
		<-warmed
		_ = evaluator.Close()
		code.close()
		conn.Close()
		watch.tracing.Stop()
	}
	jobs, err := conn.Jobs(ctx, pools, queue.WorkerConfig{Slots: s.Concurrency, AckWait: s.Lease, PoolSlots: slots})
	if err != nil {
		closeAll()
		return nil, err
	}
	w := worker.New(worker.Config{
		Name: name, Source: source{jobs}, Transport: conn, Log: log, Lease: s.Lease,
		Announce: conn.AnnounceWorker, Slots: s.Concurrency, PoolSlots: slotsOf, Telemetry: watch.worker,
		Runner: runner.New(runner.Config{
			Registry:  nodetypes.RegistryWith(nodetypes.Config{MaxResponseBytes: int64(s.MaxResponse), Folders: s.FilesDirs}),
			Evaluator: evaluator, Log: log, HTTP: &http.Client{Transport: watch.worker.RoundTripper(web)},
			ObserveJob: watch.worker.Job, ObserveModel: watch.worker.ObserveModel,
			Python:      code.python,
			Credentials: secrets.Get, MaxResultBytes: s.MaxResultBytes,
			Files: conn.Files(), MaxFileBytes: int64(s.MaxFile), InlineFileBytes: int64(s.InlineFile),
			Tables: conn.ApplyTable,
			LoadMemory: func(ctx context.Context, session string, n int) ([]json.RawMessage, error) {
				return conn.LoadMemory(ctx, session, n)
			},
		}),
	})
	unsubscribe, err := conn.SubscribeControl(func(m queue.Control) { w.Drop(m.Drop) })
	if err != nil {
		jobs.Stop()
		closeAll()
		return nil, err
	}
	unserve, err := conn.ServeHolder(w.Holds)
	if err != nil {
		unsubscribe()
		jobs.Stop()
		closeAll()
		return nil, err
	}
	w.Start()
	healthy := func(context.Context) error { return conn.Healthy() }
	watch.worker.Watch(telemetry.WorkerFigures{Slots: slotsOf, Busy: w.BusyByPool, NATS: conn.Stats})
	p := &Process{Healthy: healthy, Queue: conn}
	stopHealth, err := serveHealth(p, s.MetricsAddr, watch.handler(log), log)
	stop := func(ctx context.Context) {
		w.Stop(ctx)
		jobs.Stop()
		unsubscribe()
		unserve()
		closeAll()
	}
	if err != nil {
		stop(ctx)
		return nil, err
	}
	p.Stop = func(ctx context.Context) {
		stop(ctx)
		stopHealth()
	}
	return p, nil
}

type submission struct{ *queue.SubmitMsg }

// Submitted implements coordinator.DurableSubmission.
func (s submission) Submitted() *queue.Submission { return &s.Submission }

// source makes the queue's jobs the worker's.
type source struct{ *queue.JobConsumer }

// Next implements worker.Source.
func (s source) Next(ctx context.Context) (worker.Delivery, error) {
	d, err := s.JobConsumer.Next(ctx)
	if err != nil {
		return nil, err
	}
	return d, nil
}

// serveHealth serves a process's health and metrics, and notes where.
func serveHealth(p *Process, addr string, metrics http.Handler, log *zap.Logger) (stop func(), err error) {
	if addr == "" {
		return func() {}, nil
	}
	server, err := health.Serve(addr, p.Healthy, health.Page{Path: "/metrics", Handler: metrics})
	if err != nil {
		return nil, err
	}
	p.MetricsAddr = server.Addr()
	log.Info("health checks and metrics are served", zap.String("addr", server.Addr()))
	return func() { _ = server.Close() }, nil
}

// warnAboutRedis says loudly what would lose executions.
func warnAboutRedis(ctx context.Context, store *state.Store, log *zap.Logger) {
	info, err := store.Inspect(ctx)
	if err != nil {
		log.Warn("redis settings cannot be read", zap.Error(err))
		return
	}
	if !info.AppendOnly {
		log.Warn("redis runs without append-only file: a restart of redis loses all executions; set appendonly yes")
	}
	if info.MaxmemoryPolicy != "" && info.MaxmemoryPolicy != "noeviction" {
		log.Warn("redis may evict keys of running executions; set maxmemory-policy noeviction", zap.String("policy", info.MaxmemoryPolicy))
	}
}
