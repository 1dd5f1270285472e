package embedded

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/alicebob/miniredis/v2"
	"go.uber.org/zap"
)

// The kinds of Redis that StartRedis starts.
const (
	KindRedisServer = "redis-server"
	KindMiniredis   = "miniredis"
)

// maxSocketPath is what fits into sockaddr_un.sun_path on every system.
const maxSocketPath = 100

// RedisOptions are the options of StartRedis. The zero value takes
// redis-server when it is on PATH and lets it write nothing to disk.
type RedisOptions struct {
	// AppendOnly keeps every write in dir (appendfsync everysec), so that a
	// later StartRedis in the same dir continues. miniredis cannot.
	AppendOnly bool
	// TCP listens on a loopback port instead of a unix socket. A port can be
	// reached by every user of the machine, a socket only by its owner. Port 0
	// is any free one; a Port implies TCP.
	TCP  bool
	Port int
	// Miniredis is taken even when redis-server is on PATH.
	Miniredis bool
	// Binary is the redis-server program; "" looks on PATH.
	Binary string
	// Logger gets what redis-server prints, at debug. nil silences it.
	Logger *zap.Logger
}

// Redis is a running server.
type Redis struct {
	// URL for clients, redis://… or unix://…, as redis.ParseURL takes it.
	URL string
	// Kind is KindRedisServer or KindMiniredis.
	Kind string
	// PID of the child process; 0 with miniredis.
	PID int

	stop     sync.Once
	shutdown func()
}

// StartRedis runs a Redis. Its files are in dir; with dir "" they are in a
// temporary directory that Shutdown removes. It returns ErrDirInUse when
// another process has dir open.
func StartRedis(dir string, o RedisOptions) (*Redis, error) {
	binary := o.Binary
	if binary == "" && !o.Miniredis {
		binary, _ = exec.LookPath("redis-server")
	}
	if o.Miniredis || binary == "" {
		return startMiniredis(o)
	}
	free := func() {}
	if dir == "" {
		temporary, err := os.MkdirTemp("", "reprise-redis-")
		if err != nil {
			return nil, fmt.Errorf("create redis directory: %w", err)
		}
		dir, free = temporary, func() { _ = os.RemoveAll(temporary) }
	}
	unlock, err := lockDir(dir, "redis")
	if err != nil {
		free()
		return nil, err
	}
	release := func() { unlock(); free() }
	// A free port may be taken by someone else before redis-server binds it.
	attempts := 1
	if o.TCP && o.Port == 0 {
		attempts = 5
	}
	var child *redisChild
	for range attempts {
		if child, err = startRedisServer(binary, dir, o); err == nil {
			break
		}
	}
	if err != nil {
		release()
		return nil, err
	}
	return &Redis{
		URL: child.url, Kind: KindRedisServer, PID: child.cmd.Process.Pid,
		shutdown: func() { child.stop(); release() },
	}, nil
}

// Shutdown stops the server and waits for its end. It may be called more than
// once.
func (r *Redis) Shutdown() { r.stop.Do(r.shutdown) }

func startMiniredis(o RedisOptions) (*Redis, error) {
	m := miniredis.NewMiniRedis()
	// Without this, keys expire only when a test says so.
	m.ClockTTL(true)
	if err := m.StartAddr(net.JoinHostPort("127.0.0.1", strconv.Itoa(o.Port))); err != nil {
		return nil, fmt.Errorf("start miniredis: %w", err)
	}
	return &Redis{URL: "redis://" + m.Addr(), Kind: KindMiniredis, shutdown: m.Close}, nil
}

// redisChild is a redis-server process.
type redisChild struct {
	cmd     *exec.Cmd
	url     string
	network string
	address string
	sockets string // temporary directory of the socket, when dir's path is too long for one
	exited  chan struct{}
	output  *tail
}

func startRedisServer(binary, dir string, o RedisOptions) (*redisChild, error) {
	c := &redisChild{exited: make(chan struct{}), output: &tail{log: o.Logger}}
	appendOnly := "no"
	if o.AppendOnly {
		appendOnly = "yes"
	}
	args := []string{
		"--dir", dir, "--save", "", "--appendonly", appendOnly, "--appendfsync", "everysec",
		// As in docker-compose.yml, which says why.
		"--auto-aof-rewrite-min-size", "512mb", "--hash-max-listpack-value", "1024", "--hash-max-listpack-entries", "64",
		"--maxmemory-policy", "noeviction", "--daemonize", "no", "--loglevel", "warning",
	}
	if o.TCP || o.Port != 0 {
		port := o.Port
		if port == 0 {
			free, err := freePort()
			if err != nil {
				return nil, err
			}
			port = free
		}
		c.network, c.address = "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
		c.url = "redis://" + c.address
		args = append(args, "--bind", "127.0.0.1", "--port", strconv.Itoa(port))
	} else {
		socket, err := filepath.Abs(filepath.Join(dir, "redis.sock"))
		if err != nil {
			return nil, fmt.Errorf("redis socket: %w", err)
		}
		if len(socket) > maxSocketPath {
			if c.sockets, err = os.MkdirTemp("", "reprise-"); err != nil {
				return nil, fmt.Errorf("redis socket: %w", err)
			}
			socket = filepath.Join(c.sockets, "redis.sock")
		}
		c.network, c.address, c.url = "unix", socket, "unix://"+socket
		args = append(args, "--port", "0", "--unixsocket", socket, "--unixsocketperm", "700")
	}
	c.cmd = exec.Command(binary, args...)
	c.cmd.Stdout, c.cmd.Stderr = c.output, c.output
	dieWithParent(c.cmd)
	if err := c.run(); err != nil {
		c.clean()
		return nil, fmt.Errorf("start %s: %w", binary, err)
	}
	if err := c.ready(); err != nil {
		c.stop()
		return nil, fmt.Errorf("start %s: %w: %s", binary, err, c.output)
	}
	return c, nil
}

// run starts the process from a goroutine that keeps its thread until the
// process has ended: the kernel's parent of a child is the thread, and Go ends
// idle threads at will.
func (c *redisChild) run() error {
	started := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		if err := c.cmd.Start(); err != nil {
			started <- err
			close(c.exited)
			return
		}
		started <- nil
		_ = c.cmd.Wait()
		close(c.exited)
	}()
	return <-started
}

// ready waits until the server answers PING with PONG; while it loads its
// append-only file it answers LOADING.
func (c *redisChild) ready() error {
	deadline := time.Now().Add(startTimeout)
	for wait := time.Millisecond; ; wait = min(2*wait, 50*time.Millisecond) {
		err := c.ping()
		if err == nil {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("no answer after %s: %w", startTimeout, err)
		}
		select {
		case <-c.exited:
			return fmt.Errorf("it ended at once (%w)", err)
		case <-time.After(wait):
		}
	}
}

// ping reports whether the server is up, has loaded its data, and is the child
// rather than someone else's Redis on the same port.
func (c *redisChild) ping() error {
	conn, err := net.DialTimeout(c.network, c.address, time.Second)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	_ = conn.SetDeadline(time.Now().Add(time.Second))
	if _, err := conn.Write([]byte("PING\r\nINFO server\r\n")); err != nil {
		return err
	}
	lines := bufio.NewScanner(conn)
	if !lines.Scan() || !strings.HasPrefix(lines.Text(), "+PONG") {
		return fmt.Errorf("answer to PING: %q", lines.Text())
	}
	for lines.Scan() {
		if pid, ok := strings.CutPrefix(lines.Text(), "process_id:"); ok {
			if pid != strconv.Itoa(c.cmd.Process.Pid) {
				return fmt.Errorf("%s is used by another redis-server, process %s", c.address, pid)
			}
			return nil
		}
	}
	return fmt.Errorf("answer to INFO: %w", lines.Err())
}

// stop asks the server to end, which also completes its append-only file, and
// kills it when it does not.
func (c *redisChild) stop() {
	if c.cmd.Process.Signal(syscall.SIGTERM) != nil {
		_ = c.cmd.Process.Kill()
	}
	select {
	case <-c.exited:
	case <-time.After(10 * time.Second):
		_ = c.cmd.Process.Kill()
		<-c.exited
	}
	c.clean()
}

func (c *redisChild) clean() {
	if c.sockets != "" {
		_ = os.RemoveAll(c.sockets)
	}
}

func freePort() (int, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("find a free port: %w", err)
	}
	port := listener.Addr().(*net.TCPAddr).Port
	return port, listener.Close()
}

// tail keeps the last output of the child for an error message.
type tail struct {
	log  *zap.Logger
	lock sync.Mutex
	last []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.lock.Lock()
	defer t.lock.Unlock()
	t.last = append(t.last, p...)
	if over := len(t.last) - 2000; over > 0 {
		t.last = t.last[over:]
	}
	if t.log != nil {
		t.log.Debug("redis server", zap.ByteString("text", p))
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.lock.Lock()
	defer t.lock.Unlock()
	return strings.TrimSpace(string(t.last))
}
