package crashtest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
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

func TestMain(m *testing.M) {
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

const script = `{"crash": {"turns": [
	{"tool_calls": [{"name": "Alpha", "args": {"text": "a"}}, {"name": "Beta", "args": {"text": "b"}}, {"name": "Gamma", "args": {"text": "c"}}]},
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

func startCluster(t *testing.T) *cluster {
	t.Helper()
	dir, err := programs()
	require.NoError(t, err)
	c := &cluster{t: t, nats: natstest.Start(t, natstest.Options{}), redis: redistest.Start(t), ledger: startLedger(t)}
	c.workflow = workflowFile(c.ledger.URL, tools)

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
		c.coordinators = append(c.coordinators, newProcess(t, fmt.Sprintf("coordinator%d", i), filepath.Join(dir, "coordinator"),
			append(common, "REPRISE_REDIS_URL="+c.redis.URL(), "REPRISE_SWEEP_AFTER="+sweepAfter.String())))
	}
	for i := range 3 {
		c.workers = append(c.workers, newProcess(t, fmt.Sprintf("worker%d", i), filepath.Join(dir, "worker"),
			append(common, "REPRISE_CREDENTIALS_FILE="+credentials, "REPRISE_JOB_LEASE="+lease.String(), "REPRISE_WORKER_CONCURRENCY=8")))
	}
	return c
}

// startAll starts all processes and connects a client.
func (c *cluster) startAll() {
	c.t.Helper()
	for _, p := range append(append([]*process{}, c.coordinators...), c.workers...) {
		p.start("")
	}
	c.connect()
}

func (c *cluster) connect() {
	c.t.Helper()
	for _, p := range append(append([]*process{}, c.coordinators...), c.workers...) {
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
	require.Eventually(c.t, func() bool {
		x, err := c.conn.Get(c.t.Context(), engine.ExecutionID(id), true)
		if err != nil {
			return false
		}
		var data struct {
			ResultData struct {
				RunData map[string][]engine.Record `json:"runData"`
			} `json:"resultData"`
		}
		require.NoError(c.t, json.Unmarshal(x.Data, &data))
		records := data.ResultData.RunData[tool]
		return len(records) == 1 && records[0].Status == engine.StatusSuccess
	}, within, 20*time.Millisecond, "%s of %s has no answer", tool, id)
}

// submit starts executions and returns their ids. It repeats a submission that
// got no answer, as a client does.
func (c *cluster) submit(n int) []string {
	c.t.Helper()
	ids := make([]string, n)
	for i := range ids {
		ids[i] = fmt.Sprintf("crash-%d-%d", time.Now().UnixNano(), i)
	}
	var wg sync.WaitGroup
	for _, id := range ids {
		wg.Go(func() {
			sub := &queue.Submission{Version: queue.Version, ID: engine.ExecutionID(id), Workflow: c.workflow}
			for deadline := time.Now().Add(within); ; {
				ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
				_, err := c.conn.Submit(ctx, sub)
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
	return ids
}

// await waits until executions are over and checks what must hold for each of
// them: the answer, one record of the Agent, one run of each tool.
func (c *cluster) await(ids []string) {
	c.t.Helper()
	deadline := time.Now().Add(within)
	for _, id := range ids {
		var x *queue.Execution
		for {
			ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
			got, err := c.conn.Get(ctx, engine.ExecutionID(id), true)
			cancel()
			if err == nil && got.Status.Finished() {
				x = got
				break
			}
			if time.Now().After(deadline) {
				c.dump()
				c.t.Fatalf("execution %s is not over after %s: %v %+v", id, within, err, got)
			}
			time.Sleep(20 * time.Millisecond) // between two looks at the condition
		}
		c.check(x)
	}
}

func (c *cluster) check(x *queue.Execution) {
	c.t.Helper()
	var data struct {
		ResultData struct {
			RunData map[string][]engine.Record `json:"runData"`
		} `json:"resultData"`
	}
	require.NoError(c.t, json.Unmarshal(x.Data, &data))
	require.Equal(c.t, engine.StatusSuccess, x.Status, "%s: %s", x.ID, x.Data)
	run := data.ResultData.RunData
	for _, name := range append([]string{"Start", "AI Agent"}, tools...) {
		require.Len(c.t, run[name], 1, "%s: runs of %s", x.ID, name)
		require.Equal(c.t, engine.StatusSuccess, run[name][0].Status, "%s: %s", x.ID, name)
	}
	require.Len(c.t, run["Model"], 2, "%s: runs of the model", x.ID)
	var out struct{ Output string }
	require.NoError(c.t, json.Unmarshal(run["AI Agent"][0].Data["main"][0][0].JSON, &out))
	require.Equal(c.t, answer, out.Output, "%s", x.ID)
}

// nothingLeft waits until no job is on the stream, and checks that no finished
// execution has anything open and that all their keys expire.
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
	for _, p := range append(append([]*process{}, c.coordinators...), c.workers...) {
		c.t.Logf("--- %s\n%s", p.name, p.tail())
	}
}

// process is a coordinator or worker that can be killed and started again.
type process struct {
	t       *testing.T
	name    string
	program string
	env     []string
	addr    string // of its health checks
	logFile string
	cmd     *exec.Cmd
	exited  chan struct{}
}

func newProcess(t *testing.T, name, program string, env []string) *process {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	addr := listener.Addr().String()
	require.NoError(t, listener.Close())
	return &process{
		t: t, name: name, program: program, addr: addr, logFile: filepath.Join(t.TempDir(), name+".log"),
		env: append(append([]string{}, env...), "REPRISE_METRICS_ADDR="+addr),
	}
}

// start runs the process, with failpoints ("name=nth", may be empty).
func (p *process) start(failpoints string) {
	p.t.Helper()
	log, err := os.OpenFile(p.logFile, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	require.NoError(p.t, err)
	p.cmd = exec.Command(p.program)
	p.cmd.Env = append(append(os.Environ(), p.env...), "REPRISE_FAILPOINTS="+failpoints)
	p.cmd.Stdout, p.cmd.Stderr = log, log
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	require.NoError(p.t, p.cmd.Start())
	p.exited = make(chan struct{})
	go func(cmd *exec.Cmd, exited chan struct{}) {
		_ = cmd.Wait()
		_ = log.Close()
		close(exited)
	}(p.cmd, p.exited)
	p.t.Cleanup(p.kill)
}

func (p *process) kill() {
	_ = p.cmd.Process.Signal(syscall.SIGKILL)
	<-p.exited
}

// awaitExit waits until the process has ended by itself.
func (p *process) awaitExit() {
	p.t.Helper()
	select {
	case <-p.exited:
	case <-time.After(within):
		p.t.Fatalf("%s did not end:\n%s", p.name, p.tail())
	}
}

func (p *process) awaitReady() {
	p.t.Helper()
	require.Eventually(p.t, func() bool {
		conn, err := net.DialTimeout("tcp", p.addr, time.Second)
		if err != nil {
			return false
		}
		_ = conn.Close()
		return true
	}, within, 20*time.Millisecond, "%s did not start:\n%s", p.name, p.tail())
}

func (p *process) tail() []byte {
	data, _ := os.ReadFile(p.logFile)
	lines := bytes.Split(data, []byte("\n"))
	return bytes.Join(lines[max(0, len(lines)-40):], []byte("\n"))
}
