package cli

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/tidwall/sjson"
	"golang.org/x/sys/unix"
)

// terminal is the program with a terminal as standard input and error.
type terminal struct {
	*process
	keyboard *os.File
	screen   *transcript
}

func startOnTerminal(t *testing.T, program string, args ...string) *terminal {
	t.Helper()
	return startOnTerminalWith(t, program, func(*exec.Cmd) {}, args...)
}

// startOnTerminalWith is startOnTerminal for a program that is changed before it starts.
func startOnTerminalWith(t *testing.T, program string, change func(*exec.Cmd), args ...string) *terminal {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	require.NoError(t, err)
	fd := int(master.Fd())
	require.NoError(t, unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0))
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	require.NoError(t, err)
	slave, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	require.NoError(t, err)
	p := &terminal{keyboard: master, screen: &transcript{}}
	p.process = &process{Cmd: exec.Command(program, args...), stdout: &transcript{}, stderr: p.screen, exited: make(chan struct{})}
	p.Env = append(os.Environ(), asProgram+"=1", "NO_COLOR=1")
	p.Stdin, p.Stdout, p.Stderr = slave, p.stdout, slave
	change(p.Cmd)
	require.NoError(t, p.Start())
	require.NoError(t, slave.Close())
	read := make(chan struct{})
	go func() {
		defer close(read)
		buffer := make([]byte, 4096)
		for {
			n, err := master.Read(buffer) // fails when the program has ended
			_, _ = p.screen.Write(buffer[:n])
			if err != nil {
				return
			}
		}
	}()
	go func() { _ = p.Wait(); close(p.exited) }()
	t.Cleanup(func() {
		_ = p.Process.Kill() // an error means that it is gone
		<-p.exited
		<-read
		_ = master.Close()
	})
	return p
}

// sees waits until a text is on the screen for the n-th time.
func (p *terminal) sees(t *testing.T, text string, n int) {
	t.Helper()
	require.Eventually(t, func() bool { return strings.Count(p.screen.String(), text) >= n }, within, 10e6, "%s on the screen:\n%s", text, p.screen)
}

func (p *terminal) types(t *testing.T, text string) {
	t.Helper()
	_, err := p.keyboard.WriteString(text)
	require.NoError(t, err)
}

const askedFor = "[a]pprove or [d]eny"

// TestRunAsks: a question is asked on the terminal, with the tool and its
// arguments, and what was typed before it was there does not answer it.
func TestRunAsks(t *testing.T) {
	t.Parallel()
	t.Run("approve", func(t *testing.T) {
		t.Parallel()
		p := startOnTerminal(t, os.Args[0], "run", example("approval.json"))
		p.types(t, "d\n")
		p.sees(t, askedFor, 1)
		screen := p.screen.String()
		for _, text := range []string{"A decision is needed", "Ask a person", "The Agent wants to send money. Is that right?", "Send refund", `"input": "Send refund to Ada: compute 8 * 5 euros"`} {
			assert.Contains(t, screen, text)
		}
		p.types(t, "perhaps\n")
		p.sees(t, askedFor, 2)
		p.types(t, "a\n")
		assert.Zero(t, p.exitCode(t), p.screen.String())
		assert.Contains(t, p.stdout.String(), "A refund that a person approves  success")
		assert.Contains(t, p.stdout.String(), "decided  approved by "+loginName())
		assert.Contains(t, p.stdout.String(), `answered {"response":"sent: Send refund to Ada: compute 8 * 5 euros"}`)
		assert.Contains(t, p.stdout.String(), "Calculator returned 40")
		assert.NotContains(t, p.stdout.String(), "\x1b", "it is no terminal")
	})
	t.Run("deny", func(t *testing.T) {
		t.Parallel()
		p := startOnTerminal(t, os.Args[0], "run", "--output", "json", example("approval.json"))
		p.sees(t, askedFor, 1)
		p.types(t, "deny 40 euros are too much\n")
		assert.Zero(t, p.exitCode(t), p.screen.String())
		assert.Contains(t, p.stdout.String(), `"outcome": "denied"`)
		assert.Contains(t, p.stdout.String(), "40 euros are too much")
		assert.NotContains(t, p.stdout.String(), `"Send refund": [`, "the tool has no run")
	})
	t.Run("leave it open", func(t *testing.T) {
		t.Parallel()
		p := startOnTerminal(t, os.Args[0], "run", example("approval.json"))
		p.sees(t, askedFor, 1)
		p.types(t, "\x04")
		assert.Equal(t, 3, p.exitCode(t), p.screen.String())
		assert.Contains(t, p.stdout.String(), "waiting")
	})
	t.Run("interrupt", func(t *testing.T) {
		t.Parallel()
		p := startOnTerminal(t, os.Args[0], "run", example("approval.json"))
		p.sees(t, askedFor, 1)
		require.NoError(t, p.Process.Signal(syscall.SIGINT))
		assert.Equal(t, 1, p.exitCode(t), p.screen.String())
		p.sees(t, "interrupted: the execution was cancelled", 1) // what it wrote last may still be on its way
	})
	t.Run("too late", func(t *testing.T) {
		t.Parallel()
		p := startOnTerminal(t, os.Args[0], "run", changed(t, "approval.json", "nodes.5.parameters.timeout", "2s"))
		p.sees(t, "expires", 1)
		p.sees(t, "the question is closed: expired", 1)
		assert.Zero(t, p.exitCode(t), p.screen.String())
		assert.Contains(t, p.stdout.String(), "decided  expired")
	})
}

// TestRetryAsks: many executions are retried only after a yes.
func TestRetryAsks(t *testing.T) {
	t.Parallel()
	f := startFakeAPI(t)
	f.executions = append(f.executions, failedExecution("a"), failedExecution("b"))
	p := startOnTerminal(t, os.Args[0], "executions", "retry", "--all", "--nats", f.url)
	p.sees(t, "Retry 2 executions? [y/N]", 1)
	p.types(t, "\n")
	assert.Equal(t, 1, p.exitCode(t))
	assert.Contains(t, p.screen.String(), "nothing was retried")
	assert.Empty(t, f.retries)
	p = startOnTerminal(t, os.Args[0], "executions", "retry", "--all", "--nats", f.url)
	p.sees(t, "[y/N]", 1)
	p.types(t, "y\n")
	assert.Zero(t, p.exitCode(t), p.screen.String())
	assert.Len(t, f.retries, 2)
}

// asking is a workflow that asks a person and then ends.
const asking = `{"id": "asking", "name": "Asking", "settings": {"executionOrder": "v1"}, "nodes": [
 {"id": "t", "name": "When called", "type": "n8n-nodes-base.executeWorkflowTrigger", "typeVersion": 1.1, "position": [0, 0], "parameters": {"inputSource": "passthrough"}},
 {"id": "a", "name": "Boss", "type": "reprise.approval", "typeVersion": 1, "position": [200, 0], "parameters": {"message": "Is this price right?"}}
], "connections": {"When called": {"main": [[{"node": "Boss", "type": "main", "index": 0}]]}}}`

// TestRunAsksForChildren: the question of an execution that a workflow started is
// asked as well; without a terminal it ends the run.
func TestRunAsksForChildren(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "asking.json"), []byte(asking), 0o600))
	parent := changed(t, "subworkflow-parent.json", "nodes.2.parameters", "x")
	document, err := sjson.SetRaw(readAll(t, parent), "nodes.2.parameters", `{"workflowId": {"__rl": true, "mode": "id", "value": "asking"}, "mode": "each", "options": {}}`)
	require.NoError(t, err)
	parent = file(t, document)
	p := startOnTerminal(t, os.Args[0], "run", "--workflows", dir, "--to", "Price each", parent)
	for n := range 2 { // one for each order
		p.sees(t, askedFor, n+1)
		p.types(t, "y\n")
	}
	assert.Zero(t, p.exitCode(t), p.screen.String())
	assert.Contains(t, p.screen.String(), "Is this price right?")
	assert.Contains(t, p.stdout.String(), "priced by another workflow  success")

	got := reprise(t, "run", "--workflows", dir, parent)
	assert.Equal(t, 3, got.code, got.stderr)
	assert.Contains(t, got.stdout, "Price each waits for executions it started")
}

// TestRunShowsMoment: on a terminal one sees until when a run waits.
func TestRunShowsMoment(t *testing.T) {
	t.Parallel()
	document, err := sjson.SetRaw(readAll(t, example("wait-webhook.json")), "nodes.2.parameters", `{"amount": 2, "unit": "seconds"}`)
	require.NoError(t, err)
	p := startOnTerminal(t, os.Args[0], "run", file(t, document))
	p.sees(t, "waiting until ", 1)
	assert.Contains(t, p.screen.String(), "(Ctrl-C stops)")
	assert.Zero(t, p.exitCode(t), p.screen.String())
	assert.Contains(t, p.stdout.String(), "Wait for a payment  success")
}

// TestDemoOnTerminal: the demo asks, and takes no for an answer.
func TestDemoOnTerminal(t *testing.T) {
	t.Parallel()
	p := startOnTerminal(t, os.Args[0], "demo")
	p.sees(t, askedFor, 1)
	p.types(t, "d\n")
	assert.Zero(t, p.exitCode(t), p.screen.String())
	assert.Contains(t, p.screen.String(), `"amount": 42`)
	assert.Contains(t, p.stdout.String(), "denied by "+loginName())
	assert.Contains(t, p.stdout.String(), "the bank was never asked")
	assert.NotContains(t, p.stdout.String(), "is killed")

	p = startOnTerminal(t, os.Args[0], "demo")
	p.sees(t, askedFor, 1)
	p.types(t, "a\n")
	assert.Zero(t, p.exitCode(t), p.screen.String())
	assert.Contains(t, p.stdout.String(), "worker A is killed (SIGKILL)")
	assert.Contains(t, p.stdout.String(), "The card was charged once")
}
