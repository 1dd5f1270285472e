package crashtest

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/reprise-engine/reprise/internal/mockllm"
	"github.com/reprise-engine/reprise/internal/natstest"
	"github.com/reprise-engine/reprise/internal/redistest"
	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/queue"
	"github.com/reprise-engine/reprise/pkg/state"
)

// programs are the coordinator and the worker, built with failpoints.
var programs = sync.OnceValues(func() (dir string, err error) {
	dir, err = os.MkdirTemp("", "reprise-crashtest-")
	if err != nil {
		return "", err
	}
	out, err := exec.Command("go", "build", "-tags", "failpoints", "-o", dir,
		"github.com/reprise-engine/reprise/cmd/coordinator", "github.com/reprise-engine/reprise/cmd/worker").CombinedOutput()
	if err != nil {
		return dir, fmt.Errorf("build programs: %w: %s", err, out)
	}
	return dir, nil
})

// atOnce is how many tests run at the same time: they wait more than they work.
const atOnce = 4

func TestMain(m *testing.M) {
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if !given {
		if err := flag.Set("test.parallel", strconv.Itoa(max(atOnce, runtime.GOMAXPROCS(0)))); err != nil {
			panic(err) // the flag is one of package testing
		}
	}
	code := m.Run()
	if dir, _ := programs(); dir != "" {
		_ = os.RemoveAll(dir)
	}
	os.Exit(code)
}

const (
	// within is how long anything may take; a test that waits longer has failed.
	within = 60 * time.Second
	// sweepAfter and lease are short, so that what they heal is healed in test time.
	sweepAfter = 2 * time.Second
	lease      = 3 * time.Second
)

// tools of the workflow, in the order the model asks for them.
var tools = []string{"Alpha", "Beta", "Gamma"}

// answer is what every execution must end with.
const answer = `All done: Alpha returned [{"done":"Alpha"}]; Beta returned [{"done":"Beta"}]; Gamma returned [{"done":"Gamma"}].`

const script = `{
"crash": {"turns": [
	{"tool_calls": [{"name": "Alpha", "args": {"text": "a"}}, {"name": "Beta", "args": {"text": "b"}}, {"name": "Gamma", "args": {"text": "c"}}]},
	{"content": "All done: {{results}}."}]},
"gated": {"turns": [
	{"tool_calls": [{"name": "Alpha", "args": {"text": "a"}}, {"name": "Beta", "args": {"toolParameters": {"text": "b"}}}]},
	{"content": "All done: {{results}}."}]}}`

// cluster is everything an operator runs.
type cluster struct {
	t            *testing.T
	nats         *natstest.Server
	redis        *redistest.Server
	ledger       *ledger
	coordinators []*process
	workers      []*process
	conn         *queue.Conn
	workflow     []byte
}

// publicURL is the beginning of all links. Tests that follow one choose the
// coordinator, as a load balancer would.
const publicURL = "https://flows.example.com"

func startCluster(t *testing.T) *cluster {
	t.Helper()
	return startClusterOf(t, 3)
}

// startClusterOf prepares two coordinators and some workers, which the test
// starts; servers are started. redisOptions are those of redis-server.
func startClusterOf(t *testing.T, workers int, redisOptions ...string) *cluster {
	t.Helper()
	dir, err := programs()
	require.NoError(t, err)
	c := &cluster{t: t, nats: natstest.Start(t, natstest.Options{Port: freePort(t)}), redis: redistest.Start(t, redisOptions...), ledger: startLedger(t)}
	c.workflow = c.ledger.agentDocument(tools)

	parsed, err := mockllm.ParseScript([]byte(script))
	require.NoError(t, err)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- mockllm.New(mockllm.Config{Script: parsed}).ServeListener(ctx, listener) }()
	t.Cleanup(func() { cancel(); require.NoError(t, <-served) })
	credentials := filepath.Join(t.TempDir(), "credentials.json")
	require.NoError(t, os.WriteFile(credentials, fmt.Appendf(nil,
		`[{"id":"mock-llm","name":"Mock LLM","type":"openAiApi","data":{"apiKey":"mock","url":"http://%s/v1"}}]`, listener.Addr()), 0o600))

	common := []string{"REPRISE_NATS_URL=" + c.nats.URL, "REPRISE_LOG_LEVEL=info", "REPRISE_DRAIN_TIMEOUT=10s"}
	for i := range 2 {
		http := freeAddr(t)
		p := newProcess(t, fmt.Sprintf("coordinator%d", i), filepath.Join(dir, "coordinator"),
			append(common, "REPRISE_REDIS_URL="+c.redis.URL(), "REPRISE_SWEEP_AFTER="+sweepAfter.String(),
				"REPRISE_HTTP_ADDR="+http, "REPRISE_PUBLIC_URL="+publicURL))
		p.http = http
		c.coordinators = append(c.coordinators, p)
	}
	for i := range workers {
		c.workers = append(c.workers, newProcess(t, fmt.Sprintf("worker%d", i), filepath.Join(dir, "worker"),
			append(common, "REPRISE_CREDENTIALS_FILE="+credentials, "REPRISE_EGRESS=any", "REPRISE_JOB_LEASE="+lease.String(), "REPRISE_WORKER_CONCURRENCY=8")))
	}
	return c
}

// startAll starts all processes and connects a client.
func (c *cluster) startAll() {
	c.t.Helper()
	c.startProcesses()
	c.connectOnly()
}

// startProcesses starts all processes and waits until they work.
func (c *cluster) startProcesses() {
	c.t.Helper()
	for _, p := range c.processes() {
		p.start("")
	}
	for _, p := range c.processes() {
		p.awaitReady()
	}
}

// killProcesses kills all coordinators and workers.
func (c *cluster) killProcesses() {
	for _, p := range c.processes() {
		p.kill()
	}
}

func (c *cluster) processes() []*process {
	return append(append([]*process{}, c.coordinators...), c.workers...)
}

func (c *cluster) connect() {
	c.t.Helper()
	for _, p := range c.processes() {
		p.awaitReady()
	}
	c.connectOnly()
}

// connectOnly connects the client; the caller has waited for the processes it needs.
func (c *cluster) connectOnly() {
	c.t.Helper()
	var err error
	c.conn, err = queue.Connect(c.t.Context(), queue.Config{URL: c.nats.URL, Name: "crashtest", Log: zap.NewNop()})
	require.NoError(c.t, err)
	c.t.Cleanup(c.conn.Close)
}

// awaitToolDone waits until a tool's answer is stored.
func (c *cluster) awaitToolDone(id, tool string) {
	c.t.Helper()
	c.becomes(id, "done with "+tool, func(x *run) bool {
		records := x.records[tool]
		return len(records) == 1 && records[0].Status == engine.StatusSuccess
	})
}

// submit starts executions and returns their ids.
func (c *cluster) submit(n int) []string {
	c.t.Helper()
	ids := newIDs(n)
	c.begin(ids, queue.Submission{Workflow: c.workflow})
	return ids
}

// newIDs are ids of executions that no other test has.
func newIDs(n int) []string {
	ids := make([]string, n)
	for i := range ids {
		ids[i] = fmt.Sprintf("crash-%d-%d", time.Now().UnixNano(), i)
	}
	return ids
}

// begin starts executions. It repeats a submission that got no answer, as a
// client does.
func (c *cluster) begin(ids []string, sub queue.Submission) {
	c.t.Helper()
	var wg sync.WaitGroup
	for _, id := range ids {
		wg.Go(func() {
			sub := sub
			sub.ID = engine.ExecutionID(id)
			for deadline := time.Now().Add(within); ; {
				ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
				_, err := c.conn.Submit(ctx, &sub)
				cancel()
				if err == nil {
					return
				}
				if time.Now().After(deadline) {
					c.t.Errorf("submit %s: %v", id, err)
					return
				}
			}
		})
	}
	wg.Wait()
}

// run is an execution with its records.
type run struct {
	*queue.Execution
	records map[string][]engine.Record
}

// output is the JSON of the first item that a node gave out, in its only run.
func (r *run) output(t *testing.T, name string) string {
	t.Helper()
	require.Len(t, r.records[name], 1, "%s: runs of %s", r.ID, name)
	main := r.records[name][0].Data["main"]
	require.NotEmpty(t, main, "%s: %s", r.ID, name)
	require.NotEmpty(t, main[0], "%s: %s", r.ID, name)
	return string(main[0][0].JSON)
}

// becomes waits until an execution is as a condition says, and returns it with its
// records. Coordinators may be away meanwhile.
func (c *cluster) becomes(id, what string, is func(*run) bool) *run {
	c.t.Helper()
	deadline := time.Now().Add(within)
	for {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		x, err := c.conn.Get(ctx, engine.ExecutionID(id), true)
		cancel()
		if err == nil {
			var data struct {
				ResultData struct {
					RunData map[string][]engine.Record `json:"runData"`
				} `json:"resultData"`
			}
			require.NoError(c.t, json.Unmarshal(x.Data, &data))
			if r := (&run{x, data.ResultData.RunData}); is(r) {
				return r
			}
		}
		if time.Now().After(deadline) {
			c.dump()
			c.t.Fatalf("execution %s is not %s after %s: %v %+v", id, what, within, err, x)
		}
		time.Sleep(20 * time.Millisecond) // between two looks at the condition
	}
}

// finished waits for the end of an execution.
func (c *cluster) finished(id string) *run {
	c.t.Helper()
	return c.becomes(id, "over", func(x *run) bool { return x.Status.Finished() })
}

// waits waits until an execution waits for one thing and for nothing else.
func (c *cluster) waits(id string) queue.Waiting {
	c.t.Helper()
	x := c.becomes(id, "waiting", func(x *run) bool { return x.Status == engine.StatusWaiting })
	require.Len(c.t, x.Waiting, 1, "%s waits for one thing", id)
	return x.Waiting[0]
}

// await waits until executions are over and checks what must hold for each of
// them: the answer, one record of the Agent, one run of each tool.
func (c *cluster) await(ids []string) {
	c.t.Helper()
	for _, id := range ids {
		c.check(c.finished(id))
	}
}

func (c *cluster) check(x *run) {
	c.t.Helper()
	require.Equal(c.t, engine.StatusSuccess, x.Status, "%s: %s", x.ID, x.Data)
	for _, name := range append([]string{"Start", "AI Agent"}, tools...) {
		require.Len(c.t, x.records[name], 1, "%s: runs of %s", x.ID, name)
		require.Equal(c.t, engine.StatusSuccess, x.records[name][0].Status, "%s: %s", x.ID, name)
	}
	require.Len(c.t, x.records["Model"], 2, "%s: runs of the model", x.ID)
	var out struct{ Output string }
	require.NoError(c.t, json.Unmarshal([]byte(x.output(c.t, "AI Agent")), &out))
	require.Equal(c.t, answer, out.Output, "%s", x.ID)
}

// nothingLeft waits until no job is on the stream, no timer is set and nobody
// owes others anything, and checks that no finished execution has anything open and that
// all their keys expire.
func (c *cluster) nothingLeft() {
	c.t.Helper()
	nc, err := nats.Connect(c.nats.URL)
	require.NoError(c.t, err)
	defer nc.Close()
	js, err := jetstream.New(nc)
	require.NoError(c.t, err)
	require.Eventually(c.t, func() bool {
		stream, err := js.Stream(c.t.Context(), queue.StreamJobs)
		return err == nil && stream.CachedInfo().State.Msgs == 0
	}, within, 50*time.Millisecond, "jobs are left on the stream")
	store, err := state.Open(c.t.Context(), state.Config{URL: c.redis.URL(), Log: zap.NewNop()})
	require.NoError(c.t, err)
	defer func() { _ = store.Close() }()
	require.Eventually(c.t, func() bool {
		timer, sweep, err := store.NextDue(c.t.Context())
		return err == nil && timer == 0 && sweep == 0
	}, within, 50*time.Millisecond, "timers or sweeps are left")
	options, err := redis.ParseURL(c.redis.URL())
	require.NoError(c.t, err)
	rdb := redis.NewClient(options)
	defer func() { _ = rdb.Close() }()
	keys, err := rdb.Keys(c.t.Context(), "*crash-*").Result()
	require.NoError(c.t, err)
	require.NotEmpty(c.t, keys)
	for _, key := range keys {
		if strings.HasSuffix(key, ":open") {
			c.t.Errorf("%s is left", key)
		}
		ttl, err := rdb.TTL(c.t.Context(), key).Result()
		require.NoError(c.t, err)
		if ttl <= 0 {
			c.t.Errorf("%s of a finished execution has no expiry", key)
		}
	}
}

func (c *cluster) dump() {
	for _, p := range c.processes() {
		c.t.Logf("--- %s\n%s", p.name, p.tail())
	}
}
