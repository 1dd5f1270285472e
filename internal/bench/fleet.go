package bench

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reprise-engine/reprise/internal/embedded"
	"github.com/reprise-engine/reprise/internal/loopback"
	"github.com/reprise-engine/reprise/pkg/queue"
)

// childTimeout is how long a child may take to start or to answer.
const childTimeout = 30 * time.Second

// child is a running process of a fleet.
type child struct {
	name string
	cmd  *exec.Cmd
	in   io.WriteCloser
	out  *json.Decoder

	mu     sync.Mutex // one question at a time
	stderr lastLines
}

// startChild starts a process; hello waits until it works.
func startChild(program []string, name, role string, env []string) (*child, error) {
	if len(program) == 0 {
		return nil, errors.New("this scenario starts processes, and needs the program that they are")
	}
	args := append(append([]string{}, program[1:]...), role)
	c := &child{name: name, cmd: exec.Command(program[0], args...)}
	for _, v := range os.Environ() {
		// Settings are those of the scenario; by REPRISE_TEST_ tests have their own program be ours.
		if !strings.HasPrefix(v, "REPRISE_") || strings.HasPrefix(v, "REPRISE_TEST_") {
			c.cmd.Env = append(c.cmd.Env, v)
		}
	}
	c.cmd.Env = append(append(c.cmd.Env, "REPRISE_LOG_LEVEL=error"), env...)
	c.cmd.Stderr = &c.stderr
	in, err := c.cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	c.in, c.out = in, json.NewDecoder(bufio.NewReader(out))
	if err := c.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	return c, nil
}

// hello waits until the process works.
func (c *child) hello(ctx context.Context) (childUsage, error) { return c.receive(ctx) }

// ask asks a question and returns the answer.
func (c *child) ask(ctx context.Context, question string) (childUsage, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, err := fmt.Fprintln(c.in, question); err != nil {
		return childUsage{}, fmt.Errorf("ask %s: %w: %s", c.name, err, &c.stderr)
	}
	return c.receive(ctx)
}

func (c *child) receive(ctx context.Context) (u childUsage, err error) {
	ctx, cancel := context.WithTimeout(ctx, childTimeout)
	defer cancel()
	// A process that hangs is killed, which ends the read.
	stop := context.AfterFunc(ctx, func() { _ = c.cmd.Process.Kill() })
	defer stop()
	if err := c.out.Decode(&u); err != nil {
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return u, fmt.Errorf("%s does not answer: %w: %s", c.name, err, &c.stderr)
	}
	if u.Error != "" {
		return u, fmt.Errorf("%s: %s", c.name, u.Error)
	}
	return u, nil
}

// stop ends the process in order, or at once after a while.
func (c *child) stop() {
	_ = c.in.Close()
	kill := time.AfterFunc(5*time.Second, func() { _ = c.cmd.Process.Kill() })
	defer kill.Stop()
	_ = c.cmd.Wait()
}

// lastLines keeps the end of what a process printed.
type lastLines struct {
	mu   sync.Mutex
	last []byte
}

func (l *lastLines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last = append(l.last, p...)
	if over := len(l.last) - 1000; over > 0 {
		l.last = l.last[over:]
	}
	return len(p), nil
}

// String is what was printed last.
func (l *lastLines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.TrimSpace(string(l.last))
}

// fleetConfig says what a fleet consists of.
type fleetConfig struct {
	coordinators, workers, slots int
	script                       []byte   // of the model
	held                         bool     // the model answers only after open
	pools                        bool     // each worker serves a pool of its own, see poolName
	env                          []string // of all processes
	coordinatorEnv, workerEnv    []string
}

// fleet is everything an operator runs, as processes of their own, and the connections of
// this one.
type fleet struct {
	nats, redisURL string
	redisKind      string
	conn           *queue.Conn
	rdb            redis.UniversalClient
	server         *child // NATS; nil when it was given
	coordinators   []*child
	workers        []*child

	c     *Config
	dir   string
	stops []func()
}

// poolName of the i-th worker when each has its own.
func poolName(i int) string { return "bench-" + strconv.Itoa(i) }

// openServers starts, or connects to, NATS and Redis.
func openServers(ctx context.Context, c *Config) (_ *fleet, err error) {
	f := &fleet{c: c, nats: c.NATSURL, redisURL: c.RedisURL}
	defer func() {
		if err != nil {
			f.close()
		}
	}()
	if f.dir, err = os.MkdirTemp("", "reprise-bench-"); err != nil {
		return nil, fmt.Errorf("create directory: %w", err)
	}
	f.stops = append(f.stops, func() { _ = os.RemoveAll(f.dir) })
	if f.redisURL == "" {
		server, err := embedded.StartRedis(filepath.Join(f.dir, "redis"), embedded.RedisOptions{AppendOnly: true, TCP: true, Logger: c.Log})
		if err != nil {
			return nil, err
		}
		f.stops = append(f.stops, server.Shutdown)
		f.redisURL, f.redisKind = server.URL, server.Kind
	}
	if f.nats == "" {
		f.server, err = startChild(c.Program, "the NATS server", roleNATS, []string{envNATSDir + "=" + filepath.Join(f.dir, "nats")})
		if err != nil {
			return nil, err
		}
		f.stops = append(f.stops, f.server.stop)
		hello, err := f.server.hello(ctx)
		if err != nil {
			return nil, err
		}
		f.nats = hello.URL
	}
	if f.rdb, err = loopback.OpenRedis(ctx, f.redisURL); err != nil {
		return nil, err
	}
	f.stops = append(f.stops, func() { _ = f.rdb.Close() })
	if f.conn, err = queue.Connect(ctx, queue.Config{URL: f.nats, Name: "reprise-bench", Log: c.Log}); err != nil {
		return nil, err
	}
	f.stops = append(f.stops, f.conn.Close)
	return f, nil
}

// openFleet starts servers, coordinators and workers.
func openFleet(ctx context.Context, c *Config, fc fleetConfig) (*fleet, error) {
	f, err := openServers(ctx, c)
	if err != nil {
		return nil, err
	}
	if err := f.start(ctx, fc); err != nil {
		f.close()
		return nil, err
	}
	return f, nil
}

// start adds coordinators and workers and waits until they work.
func (f *fleet) start(ctx context.Context, fc fleetConfig) error {
	for i := range fc.coordinators {
		env := append([]string{"REPRISE_NATS_URL=" + f.nats, "REPRISE_REDIS_URL=" + f.redisURL}, fc.env...)
		one, err := startChild(f.c.Program, "coordinator "+strconv.Itoa(i+1), roleCoordinator, append(env, fc.coordinatorEnv...))
		if err != nil {
			return err
		}
		f.coordinators = append(f.coordinators, one)
	}
	env, err := f.workerEnv(fc)
	if err != nil {
		return err
	}
	for i := range fc.workers {
		own := env
		if fc.pools {
			own = append(append([]string{}, env...), "REPRISE_WORKER_POOLS="+poolName(i))
		}
		one, err := startChild(f.c.Program, "worker "+strconv.Itoa(i+1), roleWorker, own)
		if err != nil {
			return err
		}
		f.workers = append(f.workers, one)
	}
	for _, one := range append(append([]*child{}, f.coordinators...), f.workers...) {
		if _, err := one.hello(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (f *fleet) workerEnv(fc fleetConfig) ([]string, error) {
	env := append([]string{
		"REPRISE_NATS_URL=" + f.nats, "REPRISE_EGRESS=any", "REPRISE_WORKER_CONCURRENCY=" + strconv.Itoa(max(fc.slots, 1)),
	}, fc.env...)
	if fc.script != nil {
		path := filepath.Join(f.dir, "model.json")
		if err := os.WriteFile(path, fc.script, 0o600); err != nil {
			return nil, fmt.Errorf("write the model's script: %w", err)
		}
		env = append(env, envScript+"="+path)
	}
	if f.c.Think > 0 {
		env = append(env, envThink+"="+f.c.Think.String())
	}
	if fc.held {
		env = append(env, envHeld+"=1")
	}
	return append(env, fc.workerEnv...), nil
}

// stopServices ends coordinators and workers; the servers go on.
func (f *fleet) stopServices() {
	for _, one := range append(append([]*child{}, f.workers...), f.coordinators...) {
		one.stop()
	}
	f.workers, f.coordinators = nil, nil
}

func (f *fleet) close() {
	f.stopServices()
	for i := len(f.stops) - 1; i >= 0; i-- {
		f.stops[i]()
	}
}

// spent is what the parts of a fleet have used. Sums are over all processes of a role.
type spent struct {
	Coordinators, Workers, NATS, Redis, Client time.Duration
	CoordinatorHeap, WorkerHeap                int64
	CoordinatorRSS, WorkerRSS                  int64
	Thinking                                   int64
	RedisBytes                                 uint64
	Commits, RoundTrips, Jobs                  uint64
}

// total is the CPU time of all that is not the client.
func (s spent) total() time.Duration { return s.Coordinators + s.Workers + s.NATS + s.Redis }

func (s spent) minus(o spent) spent {
	s.Coordinators -= o.Coordinators
	s.Workers -= o.Workers
	s.NATS -= o.NATS
	s.Redis -= o.Redis
	s.Client -= o.Client
	s.RedisBytes -= o.RedisBytes
	s.Commits -= o.Commits
	s.RoundTrips -= o.RoundTrips
	s.Jobs -= o.Jobs
	return s
}

// spent asks all processes; question is askUsage or askHeap.
func (f *fleet) spent(ctx context.Context, question string) (s spent, err error) {
	for _, one := range f.coordinators {
		u, err := one.ask(ctx, question)
		if err != nil {
			return s, err
		}
		s.Coordinators += time.Duration(u.CPU)
		s.CoordinatorHeap += u.Heap
		s.CoordinatorRSS += u.RSS
		s.RedisBytes += u.Store.Bytes
		s.Commits += u.Store.Commits
		s.RoundTrips += u.Store.RoundTrips
		s.Jobs += u.Queue.Published
	}
	for _, one := range f.workers {
		u, err := one.ask(ctx, question)
		if err != nil {
			return s, err
		}
		s.Workers += time.Duration(u.CPU)
		s.WorkerHeap += u.Heap
		s.WorkerRSS += u.RSS
		s.Thinking += u.Thinking
	}
	if f.server != nil {
		u, err := f.server.ask(ctx, askUsage)
		if err != nil {
			return s, err
		}
		s.NATS = time.Duration(u.CPU)
	}
	s.Redis, _ = redisCPU(ctx, f.rdb)
	s.Client = processCPU()
	return s, nil
}

// open lets the models of all workers answer.
func (f *fleet) open(ctx context.Context) error {
	for _, one := range f.workers {
		if _, err := one.ask(ctx, askOpen); err != nil {
			return err
		}
	}
	return nil
}

// profile begins CPU profiles of coordinators and workers in files named after base, and
// returns what ends them. Without a name it does nothing.
func (f *fleet) profile(ctx context.Context) (stop func(), err error) {
	if f.c.ProfileFile == "" {
		return func() {}, nil
	}
	all := append(append([]*child{}, f.coordinators...), f.workers...)
	for _, one := range all {
		if _, err := one.ask(ctx, askProfile+" "+f.c.ProfileFile+"."+strings.ReplaceAll(one.name, " ", "")); err != nil {
			return nil, err
		}
	}
	return func() {
		for _, one := range all {
			_, _ = one.ask(ctx, askProfEnd)
		}
	}, nil
}

// client is one that submits a document to the fleet.
func (f *fleet) client(document []byte) (*client, error) {
	c, stop, err := newClient(f.conn, document, 0)
	if err != nil {
		return nil, err
	}
	f.stops = append(f.stops, stop)
	return c, f.conn.Flush(context.Background())
}

// describe fills an environment.
func (f *fleet) describe(ctx context.Context, e *Environment) {
	e.servers(ctx, f.rdb, f.redisKind, f.server != nil)
}
