package cluster

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// startTimeout bounds how long a process may take to be ready on a busy machine.
const startTimeout = 60 * time.Second

// Process is a coordinator or worker that can be killed, paused and started again.
type Process struct {
	Name string
	// Env are further variables of the next Start.
	Env []string

	t       testing.TB
	program string
	addr    string // of its health checks
	logFile string
	cmd     *exec.Cmd
	exited  chan struct{}
	wanted  bool // started, and not ended by the test
}

func newProcess(t testing.TB, name, program string, env []string) *Process {
	addr := fmt.Sprintf("127.0.0.1:%d", FreePort(t))
	return &Process{
		Name: name, t: t, program: program, addr: addr, logFile: filepath.Join(t.TempDir(), name+".log"),
		Env: append(append([]string{}, env...), "REPRISE_METRICS_ADDR="+addr),
	}
}

// Ports are given out once, as the process that has one may be dead or not started
// while others look for theirs, and from below those that the kernel gives to connections.
const lowestPort, ports = 20000, 12000

var givenPorts = func() *atomic.Int64 {
	next := new(atomic.Int64)
	next.Store(rand.Int64N(ports)) // other test processes begin elsewhere
	return next
}()

// FreePort finds a port that no connection takes while its process is dead.
func FreePort(t testing.TB) int {
	t.Helper()
	for range ports {
		port := lowestPort + int(givenPorts.Add(1)%ports)
		if listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port)); err == nil {
			_ = listener.Close()
			return port
		}
	}
	t.Fatal("cluster: no free port")
	return 0
}

// Start runs the process, with failpoints (see internal/failpoint, may be empty), and
// does not wait until it works.
func (p *Process) Start(failpoints string) {
	p.t.Helper()
	log, err := os.OpenFile(p.logFile, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		p.t.Fatal(err)
	}
	cmd := exec.Command(p.program)
	cmd.Env = append(append(os.Environ(), p.Env...), "REPRISE_FAILPOINTS="+failpoints)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	p.cmd, p.exited = cmd, make(chan struct{})
	started, exited := make(chan error, 1), p.exited
	go func() {
		// The signal at the parent's death follows the thread that started the child.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait()
		}
		_ = log.Close()
		close(exited)
	}()
	if err := <-started; err != nil {
		p.t.Fatalf("start %s: %v", p.Name, err)
	}
	p.wanted = true
	p.t.Cleanup(p.Kill)
}

// Use has the next Start run the program of another directory, such as that of another version.
func (p *Process) Use(dir string) { p.program = filepath.Join(dir, filepath.Base(p.program)) }

// Kill ends the process at once, as kill -9 does, and waits for its end. It does
// nothing when there is none.
func (p *Process) Kill() {
	if p.cmd == nil {
		return
	}
	p.wanted = false
	_ = p.cmd.Process.Signal(syscall.SIGKILL)
	<-p.exited
}

// Terminate asks the process to end in good order and does not wait for it.
func (p *Process) Terminate() {
	p.wanted = false
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
}

// Pause stops the process from running until Continue.
func (p *Process) Pause() { _ = p.cmd.Process.Signal(syscall.SIGSTOP) }

// Continue ends a Pause.
func (p *Process) Continue() { _ = p.cmd.Process.Signal(syscall.SIGCONT) }

// PID of the process that was started last.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Running reports whether the process has not ended.
func (p *Process) Running() bool {
	if p.cmd == nil {
		return false
	}
	select {
	case <-p.exited:
		return false
	default:
		return true
	}
}

// AwaitStopped waits until the process has stopped itself at a failpoint.
func (p *Process) AwaitStopped(within time.Duration) {
	p.t.Helper()
	for start := time.Now(); ; {
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.PID()))
		if err == nil && bytes.Contains(status, []byte("State:\tT")) {
			return
		}
		if err != nil || time.Since(start) > within {
			p.t.Fatalf("%s did not stop within %s (%v):\n%s", p.Name, within, err, p.Tail())
		}
		time.Sleep(5 * time.Millisecond) // between two looks at the condition
	}
}

// AwaitExit waits until the process has ended by itself.
func (p *Process) AwaitExit(within time.Duration) {
	p.t.Helper()
	if !p.Exits(within) {
		p.t.Fatalf("%s did not end within %s:\n%s", p.Name, within, p.Tail())
	}
}

// Exits waits for the process to end by itself, and reports whether it did.
func (p *Process) Exits(within time.Duration) bool {
	p.wanted = false
	select {
	case <-p.exited:
		return true
	case <-time.After(within):
		return false
	}
}

// Ready asks the process whether it can work; the text says why not.
func (p *Process) Ready() (bool, string) {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+p.addr+"/readyz", http.NoBody)
	if err != nil {
		return false, err.Error()
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return false, err.Error()
	}
	defer func() { _ = resp.Body.Close() }()
	text, _ := io.ReadAll(resp.Body)
	return resp.StatusCode == http.StatusOK, string(text)
}

// AwaitReadiness waits until the process is ready, or says that it is not, and
// returns how long that took.
func (p *Process) AwaitReadiness(ready bool, within time.Duration) time.Duration {
	p.t.Helper()
	start := time.Now()
	if err := p.becomes(ready, within); err != nil {
		p.t.Fatal(err)
	}
	return time.Since(start)
}

func (p *Process) becomes(ready bool, within time.Duration) error {
	for start := time.Now(); ; {
		is, text := p.Ready()
		if is == ready {
			return nil
		}
		if time.Since(start) > within || !p.Running() {
			return fmt.Errorf("%s: ready is %t (%s) after %s, running %t:\n%s", p.Name, is, text, within, p.Running(), p.Tail())
		}
		time.Sleep(20 * time.Millisecond) // between two looks at the condition
	}
}

// Log is what the process has logged in all its lives.
func (p *Process) Log() string {
	data, _ := os.ReadFile(p.logFile)
	return string(data)
}

// Tail is the end of its log.
func (p *Process) Tail() []byte {
	lines := bytes.Split([]byte(p.Log()), []byte("\n"))
	return bytes.Join(lines[max(0, len(lines)-40):], []byte("\n"))
}

// ProgramsVariable names a directory that has the programs already, built as programs
// does, for test programs that run again and again.
const ProgramsVariable = "CLUSTER_PROGRAMS"

// programs are the coordinator and the worker, built with failpoints once per
// test process.
var programs = sync.OnceValues(func() (dir string, err error) {
	if dir = os.Getenv(ProgramsVariable); dir != "" {
		return dir, nil
	}
	dir, err = os.MkdirTemp("", "reprise-cluster-")
	if err != nil {
		return "", err
	}
	built.Store(dir)
	out, err := exec.Command("go", "build", "-tags", "failpoints", "-ldflags", "-s -w", "-o", dir,
		"github.com/reprise-engine/reprise/cmd/coordinator", "github.com/reprise-engine/reprise/cmd/worker").CombinedOutput()
	if err != nil {
		return dir, fmt.Errorf("build programs: %w: %s", err, out)
	}
	return dir, nil
})

// Programs is the directory of the coordinator and the worker of this source tree, which are built
// when that was not done yet.
func Programs(t testing.TB) string {
	t.Helper()
	dir, err := programs()
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// RemovePrograms removes the programs if they were built; for a TestMain, at the end.
func RemovePrograms() {
	if dir, ok := built.Load().(string); ok {
		_ = os.RemoveAll(dir)
	}
}

var built atomic.Value // the directory, a string
