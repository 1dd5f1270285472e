package cli

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"time"
)

// childReady is the line by which a child process says that it works.
const childReady = "ready"

// child is a process of this same program that never outlives it.
type child struct {
	cmd    *exec.Cmd
	stderr lastOutput
	ready  chan struct{} // closed by its line childReady
	exited chan struct{}
}

// startChild starts a program and waits until it says that it works.
func startChild(ctx context.Context, program string, args ...string) (*child, error) {
	c := &child{cmd: exec.Command(program, args...), ready: make(chan struct{}), exited: make(chan struct{})}
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	c.cmd.Stderr = &c.stderr
	dieWithParent(c.cmd)
	started := make(chan error, 1)
	go func() {
		// The kernel's parent of a child is the thread that started it, and Go ends
		// idle threads at will: this one stays until the child has ended.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := c.cmd.Start()
		started <- err
		if err != nil {
			close(c.exited)
			return
		}
		lines := bufio.NewScanner(out)
		for said := false; lines.Scan(); {
			if !said && lines.Text() == childReady {
				said = true
				close(c.ready)
			}
		}
		_ = c.cmd.Wait()
		close(c.exited)
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", program, err)
	}
	select {
	case <-c.ready:
		return c, nil
	case <-c.exited:
		return nil, fmt.Errorf("start %s %s: it ended at once: %s", program, strings.Join(args, " "), c.stderr.String())
	case <-ctx.Done():
		c.kill()
		return nil, ctx.Err()
	case <-time.After(20 * time.Second):
		c.kill()
		return nil, errors.New("a worker did not start within 20 seconds")
	}
}

func (c *child) pid() int { return c.cmd.Process.Pid }

// kill ends the process as kill -9 does and waits for its end. A second call is harmless.
func (c *child) kill() {
	_ = c.cmd.Process.Kill()
	<-c.exited
}

// lastOutput keeps the end of what a process printed.
type lastOutput struct {
	mu   sync.Mutex
	last []byte
}

func (o *lastOutput) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.last = append(o.last, p...)
	if over := len(o.last) - 2000; over > 0 {
		o.last = o.last[over:]
	}
	return len(p), nil
}

func (o *lastOutput) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return string(bytes.TrimSpace(o.last))
}
