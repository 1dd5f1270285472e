// Package redistest starts real redis-server processes for tests: one server,
// a Redis Cluster, and a TCP proxy that counts bytes and loses replies.
//
//	srv := redistest.Start(t)           // stopped when t ends
//	store, err := state.Open(ctx, state.Config{URL: srv.URL()})
//
// A test that only needs some Redis and uses keys of its own takes the one
// server of the test process, which starts far less processes:
//
//	func TestMain(m *testing.M) { os.Exit(redistest.Main(m)) }
//	… url := redistest.Shared(t).URL()
//
// A missing redis-server fails the test; it is never skipped.
package redistest

import (
	"context"
	"errors"
	"fmt"
	"io"
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
)

// startTimeout bounds how long a server may take to answer PING; generous, as
// test machines are busy.
const startTimeout = 20 * time.Second

// Server is a redis-server child process on a free loopback port.
type Server struct {
	binary string
	dir    string
	port   int
	args   []string // options given by the test, kept for Restart

	mu   sync.Mutex
	proc *process // nil when stopped
}

// process is one life of a server.
type process struct {
	cmd    *exec.Cmd
	exited chan struct{} // closed once the process is reaped
	err    error         // valid after exited
}

// Start starts a server without persistence and stops it when the test ends.
// options are further redis-server options, such as "--maxmemory", "8mb",
// "--requirepass", "secret" or "--appendonly", "yes"; they win over the defaults.
func Start(t testing.TB, options ...string) *Server {
	t.Helper()
	s, err := start(t.TempDir(), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Kill)
	return s
}

var shared struct {
	sync.Mutex
	server *Server
	dir    string
}

// Shared returns the server that all tests of the process use together; it is
// started by the first call. Tests keep apart by using keys of their own. Do not
// stop, flush or reconfigure it. The package's TestMain must call Main.
func Shared(t testing.TB) *Server {
	t.Helper()
	shared.Lock()
	defer shared.Unlock()
	if shared.server != nil {
		return shared.server
	}
	dir, err := os.MkdirTemp("", "redistest-")
	if err != nil {
		t.Fatal(err)
	}
	s, err := start(dir, nil)
	if err != nil {
		_ = os.RemoveAll(dir)
		t.Fatal(err)
	}
	shared.server, shared.dir = s, dir
	return s
}

// Main runs the tests of a package, stops the shared server and returns the
// exit code.
func Main(m *testing.M) int {
	defer StopShared()
	return m.Run()
}

// StopShared stops the shared server, if there is one; for a TestMain that
// does more than Main.
func StopShared() {
	shared.Lock()
	defer shared.Unlock()
	if shared.server == nil {
		return
	}
	shared.server.Kill()
	_ = os.RemoveAll(shared.dir)
	shared.server, shared.dir = nil, ""
}

// Addr is the server's host:port. It stays the same over Restart.
func (s *Server) Addr() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port)) }

// URL is the server's address as a redis:// URL, without credentials.
func (s *Server) URL() string { return "redis://" + s.Addr() + "/0" }

// PID is the process id, 0 when the server is stopped; for tests that pause it.
func (s *Server) PID() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.proc == nil {
		return 0
	}
	return s.proc.cmd.Process.Pid
}

// Kill ends the process at once, as a crash would. A second call is harmless.
func (s *Server) Kill() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.proc == nil {
		return
	}
	_ = s.proc.cmd.Process.Kill() // an error means that it is gone already
	<-s.proc.exited
	s.proc = nil
}

// Restart kills the server if it runs and starts it again on the same port and
// directory. Data survives only when the server was started with "--appendonly", "yes".
func (s *Server) Restart(t testing.TB) {
	t.Helper()
	s.Kill()
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.launch(); err != nil {
		t.Fatal(err)
	}
}

func start(dir string, options []string) (*Server, error) {
	binary, err := exec.LookPath("redis-server")
	if err != nil {
		return nil, errors.New("redistest: no redis-server on PATH; these tests run on a real one: apt-get install redis-server (or brew install redis)")
	}
	// A free port may be taken by someone else before redis-server binds it.
	for attempt := 1; ; attempt++ {
		port, err := freePort()
		if err != nil {
			return nil, err
		}
		s := &Server{binary: binary, dir: dir, port: port, args: options}
		s.mu.Lock()
		err = s.launch()
		s.mu.Unlock()
		if err == nil {
			return s, nil
		}
		if attempt == 3 || !strings.Contains(err.Error(), "Address already in use") {
			return nil, err
		}
	}
}

// launch starts the process and waits until it answers. s.mu is held.
func (s *Server) launch() error {
	logPath := filepath.Join(s.dir, "redis.log")
	log, err := os.OpenFile(logPath, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("redistest: open log: %w", err)
	}
	defer log.Close()
	args := append([]string{
		"--port", strconv.Itoa(s.port), "--bind", "127.0.0.1", "--dir", s.dir,
		"--save", "", "--appendonly", "no", "--daemonize", "no",
	}, s.args...)
	cmd := exec.Command(s.binary, args...)
	cmd.Stdout, cmd.Stderr = log, log
	dieWithParent(cmd)

	p := &process{cmd: cmd, exited: make(chan struct{})}
	started := make(chan error, 1)
	go func() {
		// The kernel's parent-death signal follows the thread that started the
		// child, so this thread has to live as long as the child.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err != nil {
			return
		}
		p.err = cmd.Wait()
		close(p.exited)
	}()
	if err := <-started; err != nil {
		return fmt.Errorf("redistest: start %s: %w", s.binary, err)
	}
	if err := p.awaitReady(s.Addr()); err != nil {
		_ = cmd.Process.Kill()
		<-p.exited
		text, _ := os.ReadFile(logPath)
		return fmt.Errorf("redistest: %w; its log:\n%s", err, text)
	}
	s.proc = p
	return nil
}

func (p *process) awaitReady(addr string) error {
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		if answers(ctx, addr, p.cmd.Process.Pid) {
			return nil
		}
		select {
		case <-p.exited:
			return fmt.Errorf("redis-server ended before it was ready: %w", p.err)
		case <-ctx.Done():
			return fmt.Errorf("redis-server on %s did not answer within %s", addr, startTimeout)
		case <-tick.C:
		}
	}
}

// answers reports whether the server at addr takes commands and is the process pid: a port that
// was free may have gone to a server of somebody else, and ours is about to end. One that tells nobody
// what process it is (it asks for a password, or for rights) is taken for ours; one that still loads its
// data is not ready.
func answers(ctx context.Context, addr string, pid int) bool {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return false
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(time.Second))
	if _, err := conn.Write([]byte("PING\r\nINFO server\r\nQUIT\r\n")); err != nil {
		return false
	}
	said, _ := io.ReadAll(conn)
	answer := string(said)
	known := strings.HasPrefix(answer, "+PONG") && strings.Contains(answer, fmt.Sprintf("process_id:%d\r\n", pid))
	refused := strings.HasPrefix(answer, "-NOAUTH") || strings.HasPrefix(answer, "+PONG") && strings.Contains(answer, "\n-NOPERM")
	return known || refused
}

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("redistest: find a free port: %w", err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}
