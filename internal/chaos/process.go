package chaos

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os/exec"
	"runtime"
	"sync"
	"time"
)

const (
	// childReady is the line by which a child says that it works.
	childReady = "ready"
	// startTimeout is how long one may take until then.
	startTimeout = 20 * time.Second
)

// process is a child that never outlives this process.
type process struct {
	cmd    *exec.Cmd
	output *tail
	ready  chan struct{} // closed by its line childReady
	exited chan struct{}
}

// startProcess starts a child and waits until it works. log gets what it prints
// on stderr; nil is nobody.
func startProcess(ctx context.Context, program, env []string, log io.Writer) (*process, error) {
	p := &process{
		cmd: exec.Command(program[0], program[1:]...), output: &tail{log: log},
		ready: make(chan struct{}), exited: make(chan struct{}),
	}
	p.cmd.Env = env
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.cmd.Stderr = p.output
	dieWithParent(p.cmd)
	if err := p.run(out); err != nil {
		return nil, fmt.Errorf("start %s: %w", program[0], err)
	}
	timer := time.NewTimer(startTimeout)
	defer timer.Stop()
	select {
	case <-p.ready:
		return p, nil
	case <-p.exited:
		return nil, fmt.Errorf("it ended at once: %s", p.output)
	case <-ctx.Done():
		err = ctx.Err()
	case <-timer.C:
		err = fmt.Errorf("it was not ready within %s", startTimeout)
	}
	p.kill()
	return nil, err
}

// run starts the process from a goroutine that keeps its thread until the process
// has ended: the kernel's parent of a child is the thread, and Go ends idle
// threads at will.
func (p *process) run(out io.Reader) error {
	started := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := p.cmd.Start()
		started <- err
		if err != nil {
			return
		}
		lines := bufio.NewScanner(out)
		for said := false; lines.Scan(); {
			if !said && lines.Text() == childReady {
				said = true
				close(p.ready)
			}
		}
		_ = p.cmd.Wait()
		close(p.exited)
	}()
	return <-started
}

func (p *process) pid() int               { return p.cmd.Process.Pid }
func (p *process) gone() <-chan struct{}  { return p.exited }
func (p *process) signal(stop bool) error { return stopOrContinue(p.cmd.Process, stop) }

// kill ends the process as kill -9 does and waits for its end. A second call is harmless.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	<-p.exited
}

// tail passes on what a process prints, and keeps the end of it for an error message.
type tail struct {
	log io.Writer

	mu   sync.Mutex
	last []byte
}

const tailBytes = 2000

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last = append(t.last, p...)
	if over := len(t.last) - tailBytes; over > 0 {
		t.last = t.last[over:]
	}
	if t.log != nil {
		if _, err := t.log.Write(p); err != nil {
			return 0, err
		}
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(bytes.TrimSpace(t.last))
}
