package chaos

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/reprise-engine/reprise/internal/embedded"
)

// assembleTimeout is how long the fleet may take to work at first.
const assembleTimeout = 60 * time.Second

// fleet is everything that can be killed.
type fleet struct {
	config    Config
	dir       string // of the servers' data and the credentials
	natsURL   string
	redisURL  string
	redisKind string // "" for a given one
	pool      string // that the workers serve
	units     []*unit
	logs      map[string]*os.File
	miniredis *embedded.Redis

	cancel context.CancelFunc
	group  sync.WaitGroup
}

// startFleet starts servers, coordinators and workers and waits until they work.
// mockURL is where the workers' model is.
func startFleet(ctx context.Context, c Config, pool, mockURL string) (*fleet, error) {
	dir, err := os.MkdirTemp("", "reprise-chaos-")
	if err != nil {
		return nil, fmt.Errorf("create data directory: %w", err)
	}
	f := &fleet{config: c, dir: dir, natsURL: c.NATSURL, redisURL: c.RedisURL, pool: pool, logs: map[string]*os.File{}}
	// What was started ends with close, also when ctx has ended by then.
	supervising, cancel := context.WithCancel(context.WithoutCancel(ctx))
	f.cancel = cancel
	if err := f.assemble(ctx, supervising, mockURL); err != nil {
		f.close()
		return nil, err
	}
	return f, nil
}

func (f *fleet) assemble(ctx, supervising context.Context, mockURL string) error {
	ctx, cancel := context.WithTimeout(ctx, assembleTimeout)
	defer cancel()
	begin := func(units ...*unit) error {
		f.units = append(f.units, units...)
		for _, u := range units {
			f.group.Go(func() { u.supervise(supervising) })
		}
		for _, u := range units {
			if err := u.await(ctx); err != nil {
				return fmt.Errorf("start %s: %w", u.name, err)
			}
		}
		return nil
	}
	if !f.config.given() {
		servers, err := f.servers()
		if err != nil {
			return err
		}
		if err := begin(servers...); err != nil {
			return err
		}
	}
	credentials := filepath.Join(f.dir, "credentials.json")
	if err := os.WriteFile(credentials, fmt.Appendf(nil,
		`[{"id":%q,"name":"Mock LLM","type":"openAiApi","data":{"apiKey":"mock","url":%q}}]`, modelCredential, mockURL), 0o600); err != nil {
		return fmt.Errorf("write credentials: %w", err)
	}
	var coordinators, workers []*unit
	for i := range f.config.Coordinators {
		u, err := f.child(KillCoordinator, fmt.Sprintf("coordinator %d", i+1), "REPRISE_REDIS_URL="+f.redisURL)
		if err != nil {
			return err
		}
		coordinators = append(coordinators, u)
	}
	for i := range f.config.Workers {
		u, err := f.child(KillWorker, fmt.Sprintf("worker %d", i+1), "REPRISE_CREDENTIALS_FILE="+credentials, "REPRISE_EGRESS=any",
			"REPRISE_JOB_LEASE="+f.config.Lease.String(), "REPRISE_WORKER_POOLS="+f.pool)
		if err != nil {
			return err
		}
		workers = append(workers, u)
	}
	if err := begin(coordinators...); err != nil {
		return err
	}
	return begin(workers...) // coordinators create the streams that workers need
}

// servers are NATS and, when there is one, a redis-server, on ports and directories
// that stay the same.
func (f *fleet) servers() ([]*unit, error) {
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	f.natsURL = fmt.Sprintf("nats://127.0.0.1:%d", port)
	nats, err := f.child(KillNATS, "NATS", envNATSDir+"="+filepath.Join(f.dir, "nats"), envNATSPort+"="+strconv.Itoa(port))
	if err != nil {
		return nil, err
	}
	if port, err = freePort(); err != nil {
		return nil, err
	}
	f.redisURL = fmt.Sprintf("redis://127.0.0.1:%d", port)
	options := embedded.RedisOptions{AppendOnly: true, TCP: true, Port: port}
	dir := filepath.Join(f.dir, "redis")
	first, err := embedded.StartRedis(dir, options)
	if err != nil {
		return nil, err
	}
	f.redisKind = first.Kind
	if first.Kind != embedded.KindRedisServer {
		f.miniredis = first
		return []*unit{nats}, nil
	}
	redis := newUnit(KillRedis, "Redis", func(context.Context) (running, error) {
		server := first
		if first = nil; server == nil {
			var err error
			if server, err = embedded.StartRedis(dir, options); err != nil {
				return nil, err
			}
		}
		return newRedis(server)
	})
	return []*unit{nats, redis}, nil
}

// child is a unit that runs Child in a role.
func (f *fleet) child(role, name string, settings ...string) (*unit, error) {
	var log io.Writer
	level := "error"
	if f.config.LogDir != "" {
		if err := os.MkdirAll(f.config.LogDir, 0o700); err != nil {
			return nil, fmt.Errorf("log directory: %w", err)
		}
		file, err := os.OpenFile(filepath.Join(f.config.LogDir, strings.ReplaceAll(name, " ", "-")+".log"),
			os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
		if err != nil {
			return nil, fmt.Errorf("log of %s: %w", name, err)
		}
		f.logs[name] = file
		log, level = file, "debug"
	}
	// Settings in the environment are those of another fleet.
	env := slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "REPRISE_") })
	env = append(append(env, "REPRISE_NATS_URL="+f.natsURL, "REPRISE_LOG_LEVEL="+level), settings...)
	program := append(slices.Clone(f.config.Program), role)
	return newUnit(role, name, func(ctx context.Context) (running, error) {
		p, err := startProcess(ctx, program, env, log)
		if err != nil {
			return nil, err // and not a nil process in an interface
		}
		return p, nil
	}), nil
}

// of are the units of a role that run.
func (f *fleet) of(role string) []*unit {
	var found []*unit
	for _, u := range f.units {
		if u.role == role && u.free() {
			found = append(found, u)
		}
	}
	return found
}

// restore lets go on what is paused and waits until everything runs.
func (f *fleet) restore(ctx context.Context) error {
	for _, u := range f.units {
		u.resume()
	}
	for _, u := range f.units {
		if err := u.await(ctx); err != nil {
			return fmt.Errorf("%s does not start again: %w", u.name, err)
		}
	}
	return nil
}

// endedByThemselves names the processes that nobody had killed.
func (f *fleet) endedByThemselves() []string {
	var names []string
	for _, u := range f.units {
		if n := u.endedByItself(); n > 0 {
			names = append(names, fmt.Sprintf("%s, %d times", u.name, n))
		}
	}
	return names
}

// close kills all that was started and forgets its data.
func (f *fleet) close() {
	f.cancel()
	f.group.Wait()
	if f.miniredis != nil {
		f.miniredis.Shutdown()
	}
	for _, file := range f.logs {
		_ = file.Close()
	}
	_ = os.RemoveAll(f.dir)
}

// redisProcess is an embedded redis-server that is killed instead of shut down.
type redisProcess struct {
	server  *embedded.Redis
	process *os.Process
	once    sync.Once
	ended   chan struct{}
}

func newRedis(server *embedded.Redis) (*redisProcess, error) {
	process, err := os.FindProcess(server.PID)
	if err != nil {
		server.Shutdown()
		return nil, fmt.Errorf("find redis-server: %w", err)
	}
	return &redisProcess{server: server, process: process, ended: make(chan struct{})}, nil
}

func (r *redisProcess) pid() int               { return r.server.PID }
func (r *redisProcess) gone() <-chan struct{}  { return r.ended }
func (r *redisProcess) signal(stop bool) error { return stopOrContinue(r.process, stop) }

func (r *redisProcess) kill() {
	r.once.Do(func() {
		_ = r.process.Kill()
		r.server.Shutdown() // waits for its end and unlocks the directory
		_ = r.process.Release()
		close(r.ended)
	})
}

// freePort finds a port that no connection takes while its server is dead: it is
// below those that systems give out.
func freePort() (int, error) {
	var last error
	for range 200 {
		port := 20000 + rand.IntN(12000)
		listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err == nil {
			return port, listener.Close()
		}
		last = err
	}
	return 0, errors.Join(errors.New("find a free port"), last)
}
