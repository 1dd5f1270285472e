package crashtest

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// process is a coordinator or worker that can be killed and started again.
type process struct {
	t       *testing.T
	name    string
	program string
	env     []string
	addr    string // of its health checks
	http    string // of its links; "" for a worker
	logFile string
	cmd     *exec.Cmd
	exited  chan struct{}
}

func newProcess(t *testing.T, name, program string, env []string) *process {
	addr := freeAddr(t)
	return &process{
		t: t, name: name, program: program, addr: addr, logFile: filepath.Join(t.TempDir(), name+".log"),
		env: append(append([]string{}, env...), "REPRISE_METRICS_ADDR="+addr),
	}
}

// Ports are given out once, as the process that has one may be dead while others
// look for theirs, and from below those that the kernel gives to connections.
const lowestPort, ports = 20000, 12000

var givenPorts = func() *atomic.Int64 {
	next := new(atomic.Int64)
	next.Store(rand.Int64N(ports)) // other test processes begin elsewhere
	return next
}()

func freePort(t *testing.T) int {
	t.Helper()
	for range ports {
		port := lowestPort + int(givenPorts.Add(1)%ports)
		listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err == nil {
			require.NoError(t, listener.Close())
			return port
		}
	}
	t.Fatal("no port is free")
	return 0
}

func freeAddr(t *testing.T) string {
	t.Helper()
	return fmt.Sprintf("127.0.0.1:%d", freePort(t))
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
	for deadline := time.Now().Add(within); ; {
		conn, err := net.DialTimeout("tcp", p.addr, time.Second)
		if err == nil {
			_ = conn.Close()
			return
		}
		select {
		case <-p.exited:
			p.t.Fatalf("%s ended instead of starting:\n%s", p.name, p.tail())
		case <-time.After(20 * time.Millisecond): // between two looks at the condition
		}
		if time.Now().After(deadline) {
			p.t.Fatalf("%s did not start:\n%s", p.name, p.tail())
		}
	}
}

func (p *process) tail() []byte {
	data, _ := os.ReadFile(p.logFile)
	lines := bytes.Split(data, []byte("\n"))
	return bytes.Join(lines[max(0, len(lines)-40):], []byte("\n"))
}
