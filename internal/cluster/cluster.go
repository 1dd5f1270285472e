package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/reprise-engine/reprise/internal/mockllm"
	"github.com/reprise-engine/reprise/internal/natstest"
	"github.com/reprise-engine/reprise/internal/redistest"
	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/queue"
	"github.com/reprise-engine/reprise/pkg/state"
)

// Options of New. The zero value is two coordinators and three workers with
// short times.
type Options struct {
	Coordinators, Workers int // 0: 2 and 3
	Concurrency           int // jobs that a worker runs at once; 0 is 8
	// Lease and SweepAfter; 0 are 3 s and 2 s, so that what they heal is healed in
	// test time. Defaults leaves both, and everything else, as an operator gets them.
	Lease, SweepAfter time.Duration
	Defaults          bool
	// Tools of the Agent, in the order its model asks for them; nil are Tools.
	Tools []string
	// RedisOptions and NATSArgs are further arguments of the servers.
	RedisOptions, NATSArgs []string
	// RedisVia and NATSVia put something between the processes and a server: they
	// get its address and return another one. The test's own connections are direct.
	RedisVia, NATSVia func(addr string) string
	// Env of all coordinators and workers.
	Env []string
	// Programs is the directory of the programs that all processes start as; "" are Programs(t).
	Programs string
	// Script adds scenarios of the mock model, by name.
	Script Object
}

// Tools of the workflow unless Options say otherwise.
var Tools = []string{"Alpha", "Beta", "Gamma"}

// What Lease and SweepAfter are unless Options say otherwise.
const (
	ShortLease = 3 * time.Second
	ShortSweep = 2 * time.Second
)

// Cluster is everything an operator runs. Servers run; coordinators and workers are
// started by the test.
type Cluster struct {
	NATS         *natstest.Server
	Redis        *redistest.Server
	Ledger       *Ledger
	Coordinators []*Process
	Workers      []*Process
	Conn         *queue.Conn // of the test, direct
	Store        *state.Store
	Tools        []string
	Workflow     []byte
	// Defaults says that all settings are those that an operator gets.
	Defaults bool

	t        testing.TB
	redisURL string
}

// New prepares a cluster that ends with the test.
func New(t testing.TB, o Options) *Cluster {
	t.Helper()
	dir := o.Programs
	if dir == "" {
		dir = Programs(t)
	}
	if o.Coordinators == 0 {
		o.Coordinators = 2
	}
	if o.Workers == 0 {
		o.Workers = 3
	}
	if o.Tools == nil {
		o.Tools = Tools
	}
	redisOptions := append([]string{"--appendonly", "yes", "--appendfsync", "always"}, o.RedisOptions...)
	c := &Cluster{
		t: t, Defaults: o.Defaults, Tools: o.Tools, Ledger: startLedger(t),
		NATS:  natstest.Start(t, natstest.Options{Port: FreePort(t), Args: o.NATSArgs}),
		Redis: redistest.Start(t, redisOptions...),
	}
	c.redisURL = c.Redis.URL()
	c.Workflow = c.Ledger.AgentDocument("agent", o.Tools)
	script := Object{"agent": Scenario(o.Tools)}
	for name, scenario := range o.Script {
		script[name] = scenario
	}
	credentials := c.startModel(script)

	natsURL, redisURL := c.NATS.URL, c.Redis.URL()
	if o.NATSVia != nil {
		natsURL = "nats://" + o.NATSVia(strings.TrimPrefix(c.NATS.URL, "nats://"))
	}
	if o.RedisVia != nil {
		redisURL = "redis://" + o.RedisVia(c.Redis.Addr()) + "/0"
	}
	common := append([]string{"REPRISE_NATS_URL=" + natsURL, "REPRISE_LOG_LEVEL=info"}, o.Env...)
	coordinator := append(append([]string{}, common...), "REPRISE_REDIS_URL="+redisURL)
	worker := append(append([]string{}, common...), "REPRISE_CREDENTIALS_FILE="+credentials, "REPRISE_EGRESS=any")
	if !o.Defaults {
		coordinator = append(coordinator, "REPRISE_SWEEP_AFTER="+or(o.SweepAfter, ShortSweep).String())
		worker = append(worker, "REPRISE_JOB_LEASE="+or(o.Lease, ShortLease).String())
		if o.Concurrency == 0 {
			o.Concurrency = 8
		}
	}
	if o.Concurrency > 0 {
		worker = append(worker, fmt.Sprintf("REPRISE_WORKER_CONCURRENCY=%d", o.Concurrency))
	}
	for i := range o.Coordinators {
		c.Coordinators = append(c.Coordinators, newProcess(t, fmt.Sprintf("coordinator%d", i), filepath.Join(dir, "coordinator"), coordinator))
	}
	for i := range o.Workers {
		c.Workers = append(c.Workers, newProcess(t, fmt.Sprintf("worker%d", i), filepath.Join(dir, "worker"), worker))
	}
	c.connect()
	return c
}

func or(d, otherwise time.Duration) time.Duration {
	if d == 0 {
		return otherwise
	}
	return d
}

// startModel serves a script and returns a file with the credentials for it.
func (c *Cluster) startModel(script Object) (credentials string) {
	c.t.Helper()
	text, err := json.Marshal(script)
	c.must(err)
	parsed, err := mockllm.ParseScript(text)
	c.must(err)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	c.must(err)
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- mockllm.New(mockllm.Config{Script: parsed}).ServeListener(ctx, listener) }()
	c.t.Cleanup(func() {
		cancel()
		if err := <-served; err != nil {
			c.t.Errorf("mock model: %v", err)
		}
	})
	credentials = filepath.Join(c.t.TempDir(), "credentials.json")
	c.must(os.WriteFile(credentials, fmt.Appendf(nil,
		`[{"id":"mock-llm","name":"Mock LLM","type":"openAiApi","data":{"apiKey":"mock","url":"http://%s/v1"}}]`, listener.Addr()), 0o600))
	return credentials
}

// connect opens the test's own connections.
func (c *Cluster) connect() {
	c.t.Helper()
	var err error
	c.Conn, err = queue.Connect(c.t.Context(), queue.Config{URL: c.NATS.URL, Name: "test", Log: zap.NewNop()})
	c.must(err)
	c.t.Cleanup(c.Conn.Close)
	c.UseRedis(c.redisURL)
}

// UseRedis has the test look at another Redis from now on.
func (c *Cluster) UseRedis(url string) {
	c.t.Helper()
	store, err := state.Open(c.t.Context(), state.Config{URL: url, Log: zap.NewNop()})
	c.must(err)
	c.t.Cleanup(func() { _ = store.Close() })
	c.Store, c.redisURL = store, url
}

func (c *Cluster) must(err error) {
	c.t.Helper()
	if err != nil {
		c.t.Fatal(err)
	}
}

// Processes are all coordinators and workers.
func (c *Cluster) Processes() []*Process {
	return append(append([]*Process{}, c.Coordinators...), c.Workers...)
}

// StartAll starts all processes and waits until they work.
func (c *Cluster) StartAll() {
	c.t.Helper()
	c.Start(c.Processes()...)
}

// Start starts processes and waits until they work.
func (c *Cluster) Start(processes ...*Process) {
	c.t.Helper()
	for _, p := range processes {
		p.Start("")
	}
	c.AwaitReady(processes...)
}

// AwaitReady waits until processes work.
func (c *Cluster) AwaitReady(processes ...*Process) {
	c.t.Helper()
	c.AwaitReadiness(true, startTimeout, processes...)
}

// AwaitReadiness waits until all of the processes are ready, or all say that they are not,
// and returns how long that took. They are asked at the same time.
func (c *Cluster) AwaitReadiness(ready bool, within time.Duration, processes ...*Process) time.Duration {
	c.t.Helper()
	start := time.Now()
	problems := make([]error, len(processes))
	var wg sync.WaitGroup
	for i, p := range processes {
		wg.Go(func() { problems[i] = p.becomes(ready, within) })
	}
	wg.Wait()
	if err := errors.Join(problems...); err != nil {
		c.t.Fatal(err)
	}
	return time.Since(start)
}

var serial atomic.Int64

// NewIDs are ids of executions that no other test has.
func NewIDs(n int) []string {
	ids := make([]string, n)
	for i := range ids {
		ids[i] = fmt.Sprintf("fault-%d-%d", os.Getpid(), serial.Add(1))
	}
	return ids
}

// Submit starts executions of the workflow and returns their ids.
func (c *Cluster) Submit(n int) []string {
	c.t.Helper()
	return c.SubmitOf(c.Workflow, n)
}

// SubmitOf starts executions of a document. A submission that gets no answer is
// repeated under its id, as a client does, for up to a minute.
func (c *Cluster) SubmitOf(document []byte, n int) []string {
	c.t.Helper()
	ids := NewIDs(n)
	var wg sync.WaitGroup
	for _, id := range ids {
		wg.Go(func() {
			for deadline := time.Now().Add(time.Minute); ; {
				err := c.SubmitOnce(document, id)
				if err == nil {
					return
				}
				if time.Now().After(deadline) {
					c.t.Errorf("submit %s: %v", id, err)
					return
				}
				time.Sleep(50 * time.Millisecond) // between two tries
			}
		})
	}
	wg.Wait()
	if c.t.Failed() {
		c.Dump()
		c.t.FailNow()
	}
	return ids
}

// SubmitOnce tries once to start an execution.
func (c *Cluster) SubmitOnce(document []byte, id string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	_, err := c.Conn.Submit(ctx, &queue.Submission{ID: engine.ExecutionID(id), Workflow: document})
	return err
}

// Dump logs the end of all processes' logs.
func (c *Cluster) Dump() {
	for _, p := range c.Processes() {
		c.t.Logf("--- %s\n%s", p.Name, p.Tail())
	}
}
