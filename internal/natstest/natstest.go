// Package natstest runs a real nats-server process for tests of crashes: one
// that can be killed with SIGKILL, paused, and started again on the same port
// and store. Tests that need no crash take internal/embedded, which is faster.
package natstest

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"
)

const module = "github.com/nats-io/nats-server/v2"

// BuildServer returns the path of a nats-server program, built from the
// version in go.mod. It is built once per version and kept in the system's
// temporary directory, for other packages' tests too.
func BuildServer(tb testing.TB) string {
	tb.Helper()
	path, err := build()
	if err != nil {
		tb.Fatal(err)
	}
	return path
}

var build = sync.OnceValues(func() (string, error) {
	version, err := exec.Command("go", "list", "-m", "-f", "{{.Version}}", module).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("version of nats-server: %w: %s", err, version)
	}
	hash := sha256.Sum256(version)
	dir := filepath.Join(os.TempDir(), "reprise-natstest-"+strconv.Itoa(os.Getuid()))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	path := filepath.Join(dir, "nats-server-"+hex.EncodeToString(hash[:6]))
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	// Another test process may build at the same time: each to its own name, and
	// the last rename wins with the same program.
	mine := fmt.Sprintf("%s.%d", path, os.Getpid())
	if out, err := exec.Command("go", "build", "-o", mine, module).CombinedOutput(); err != nil {
		return "", fmt.Errorf("build nats-server: %w: %s", err, out)
	}
	return path, os.Rename(mine, path)
})

// Options of Start. The zero value is a server on a free port with JetStream
// in a directory of the test.
type Options struct {
	Port int
	// Dir holds JetStream's files.
	Dir string
	// Args are further arguments of the program.
	Args []string
}

// Server is a nats-server process.
type Server struct {
	URL  string
	Port int
	Dir  string

	tb     testing.TB
	binary string
	args   []string
	cmd    *exec.Cmd
	exited chan struct{}
	log    string
}

// Start runs a nats-server process that ends with the test.
func Start(tb testing.TB, o Options) *Server {
	tb.Helper()
	s := &Server{tb: tb, binary: BuildServer(tb), Port: o.Port, Dir: o.Dir}
	if s.Port == 0 {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			tb.Fatal(err)
		}
		s.Port = listener.Addr().(*net.TCPAddr).Port
		_ = listener.Close()
	}
	if s.Dir == "" {
		s.Dir = tb.TempDir()
	}
	s.URL = "nats://127.0.0.1:" + strconv.Itoa(s.Port)
	s.log = filepath.Join(tb.TempDir(), "nats.log")
	s.args = append([]string{"-a", "127.0.0.1", "-p", strconv.Itoa(s.Port), "-js", "-sd", s.Dir, "-l", s.log}, o.Args...)
	tb.Cleanup(s.Kill)
	s.Restart()
	return s
}

// Restart starts the process again after Kill or Stop and waits until it takes
// connections.
func (s *Server) Restart() {
	s.tb.Helper()
	if s.running() {
		s.tb.Fatal("nats-server still runs: Kill or Stop it first")
	}
	s.cmd = exec.Command(s.binary, s.args...)
	s.exited = make(chan struct{})
	cmd, exited := s.cmd, s.exited
	if err := cmd.Start(); err != nil {
		s.tb.Fatalf("start nats-server: %v", err)
	}
	go func() { _ = cmd.Wait(); close(exited) }()
	for deadline := time.Now().Add(20 * time.Second); ; {
		conn, err := net.DialTimeout("tcp", s.URL[len("nats://"):], time.Second)
		if err == nil {
			_ = conn.Close()
			return
		}
		select {
		case <-exited:
			s.tb.Fatalf("nats-server ended at once: %s", s.Log())
		case <-time.After(5 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			s.tb.Fatalf("nats-server takes no connections: %s", s.Log())
		}
	}
}

// Kill ends the process with SIGKILL and waits for its end. It does nothing
// when there is none.
func (s *Server) Kill() { s.end(syscall.SIGKILL) }

// Stop ends the process in good order.
func (s *Server) Stop() { s.end(syscall.SIGTERM) }

// Pause stops the process from running, as a machine that hangs would, until
// Continue.
func (s *Server) Pause() { _ = s.cmd.Process.Signal(syscall.SIGSTOP) }

// Continue ends a Pause.
func (s *Server) Continue() { _ = s.cmd.Process.Signal(syscall.SIGCONT) }

// Log is what the server has logged so far.
func (s *Server) Log() string {
	text, _ := os.ReadFile(s.log)
	return string(text)
}

func (s *Server) running() bool {
	if s.cmd == nil {
		return false
	}
	select {
	case <-s.exited:
		return false
	default:
		return true
	}
}

func (s *Server) end(signal syscall.Signal) {
	if !s.running() {
		return
	}
	_ = s.cmd.Process.Signal(signal)
	select {
	case <-s.exited:
	case <-time.After(20 * time.Second):
		_ = s.cmd.Process.Kill()
		<-s.exited
	}
}
