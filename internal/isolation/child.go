package isolation

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/reprise-engine/reprise/pkg/expression"
	"github.com/reprise-engine/reprise/pkg/javascript"
)

const (
	// graceTime is how long after its script's deadline a child may take to say so.
	graceTime = time.Second
	// startTime bounds the start of a child. Compiling the engine anew takes half a second
	// of processor time, on a busy machine many times as long.
	startTime = time.Minute
	// processEnded is the Type of the error of a script whose process is gone.
	processEnded = "process"
	// stderrBytes of what a child says before it dies are kept.
	stderrBytes = 4 << 10
)

// child is the parent's side of a child. It belongs to one goroutine at a time.
type child struct {
	start  start
	cmd    *exec.Cmd
	jobs   *os.File // to the child
	out    *bufio.Writer
	reply  *os.File // from the child
	in     *bufio.Reader
	stderr head

	missing string        // what the system does not protect, "" is nothing
	broken  bool          // it and its parent do not agree on what comes next
	exited  chan struct{} // closed after Wait
	overdue atomic.Bool   // it was killed because it did not stop its script
}

// start is what a child begins with.
type start struct {
	// args and env are all that it finds.
	args, env []string
	// memory is the limit that errors name; grace is how long after its deadline a script
	// is killed.
	memory uint64
	grace  time.Duration
}

// startChild starts the running program again and waits until it is ready for a script.
func startChild(ctx context.Context, s start) (*child, error) {
	childIn, jobs, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	reply, childOut, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, childIn.Close(), jobs.Close())
	}
	c := &child{
		start: s, jobs: jobs, reply: reply, exited: make(chan struct{}),
		out: bufio.NewWriterSize(jobs, 64<<10), in: bufio.NewReaderSize(reply, 64<<10),
	}
	c.cmd = &exec.Cmd{
		Args: s.args, Env: s.env, Dir: "/",
		ExtraFiles: []*os.File{childIn, childOut}, Stderr: &c.stderr,
		// Signals to the worker's group (Ctrl-C) are for the worker, which lets its jobs end.
		SysProcAttr: &syscall.SysProcAttr{Setpgid: true},
	}
	if c.cmd.Path, err = executable(); err == nil {
		err = c.cmd.Start()
	}
	// While these were open here, the end of the child would not be the end of what it says.
	_ = childIn.Close()
	_ = childOut.Close()
	if err != nil {
		return nil, errors.Join(err, jobs.Close(), reply.Close())
	}
	go func() {
		_ = c.cmd.Wait() // its state tells more
		close(c.exited)
	}()
	stop := context.AfterFunc(ctx, c.kill)
	defer stop()
	slow := time.AfterFunc(startTime, c.kill)
	defer slow.Stop()
	f, err := readFrame(c.in)
	if err != nil || f.kind != frameReady || len(f.parts) != 1 {
		c.stop()
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, fmt.Errorf("it ended before it was ready: %s", c.lastWords())
	}
	c.missing = f.parts[0]
	return c, nil
}

// executable is the running program, also when its file was replaced meanwhile.
func executable() (string, error) {
	const self = "/proc/self/exe"
	if _, err := os.Stat(self); err == nil {
		return self, nil
	}
	return os.Executable()
}

func (c *child) pid() int { return c.cmd.Process.Pid }

// usable reports whether the child can be given another script.
func (c *child) usable() bool {
	select {
	case <-c.exited:
		return false
	default:
		return !c.broken
	}
}

func (c *child) kill() { _ = c.cmd.Process.Kill() }

// stop ends the child, which does not matter to it: it has nothing to finish.
func (c *child) stop() {
	c.kill()
	_ = c.jobs.Close()
	<-c.exited
	_ = c.reply.Close()
}

// run runs one script. A child whose script was cancelled, or did not end in time, is killed.
func (c *child) run(ctx context.Context, script expression.PreparedScript, host javascript.Host) (string, error) {
	stop := context.AfterFunc(ctx, c.kill)
	late := time.AfterFunc(script.Timeout+c.start.grace, func() {
		c.overdue.Store(true)
		c.kill()
	})
	reply, err := c.talk(script, host)
	late.Stop()
	if !stop() {
		c.broken = true // it is being killed
		if ctx.Err() != nil {
			return "", ctx.Err()
		}
	}
	return reply, err
}

func (c *child) talk(script expression.PreparedScript, host javascript.Host) (string, error) {
	err := writeFrame(c.out, frameRun, script.Source, strconv.Itoa(script.Item), script.Globals, script.Scope,
		strconv.FormatInt(int64(script.Timeout), 10))
	for err == nil {
		var f frame
		if f, err = readFrame(c.in); err != nil {
			break
		}
		switch {
		case f.kind == frameHost && len(f.parts) == 2:
			err = c.answer(host, f.parts[0], f.parts[1])
		case f.kind == frameDone && len(f.parts) == 1:
			return f.parts[0], nil
		case f.kind == frameTimeout:
			return "", &javascript.TimeoutError{After: script.Timeout}
		case f.kind == frameMemory:
			return "", &javascript.MemoryError{LimitBytes: c.start.memory}
		case f.kind == framePending:
			return "", javascript.ErrPending
		case f.kind == frameFailed && len(f.parts) == 1:
			return "", errors.New(f.parts[0])
		default:
			err = fmt.Errorf("unexpected frame %q", f.kind)
		}
	}
	c.broken = true
	c.kill()
	return "", c.causeOfDeath(script, err)
}

func (c *child) answer(host javascript.Host, op, arg string) error {
	reply, ok, err := host(op, arg)
	switch {
	case err != nil:
		return writeFrame(c.out, frameThrow, err.Error())
	case !ok:
		return writeFrame(c.out, frameNothing)
	}
	return writeFrame(c.out, frameValue, reply)
}

// causeOfDeath is why a child that was in the middle of a script is gone.
func (c *child) causeOfDeath(script expression.PreparedScript, err error) error {
	<-c.exited
	if c.overdue.Load() {
		return &javascript.TimeoutError{After: script.Timeout}
	}
	status, _ := c.cmd.ProcessState.Sys().(syscall.WaitStatus)
	words := c.lastWords()
	switch {
	case status.Signaled() && status.Signal() == syscall.SIGXCPU, strings.Contains(words, "SIGXCPU"):
		return &javascript.TimeoutError{After: script.Timeout}
	case strings.Contains(words, "out of memory"), strings.Contains(words, "cannot allocate memory"), strings.Contains(words, "MemoryError"):
		return &javascript.MemoryError{LimitBytes: c.start.memory}
	}
	return &expression.Error{
		Message:     "The process that ran the script was ended",
		Description: fmt.Sprintf("It ended with: %s (%v). A machine without free memory ends processes.", words, err), Type: processEnded,
	}
}

// lastWords are how the child ended and what it said.
func (c *child) lastWords() string {
	<-c.exited
	words := c.cmd.ProcessState.String()
	if said := strings.TrimSpace(c.stderr.String()); said != "" {
		words += ": " + said
	}
	return words
}

// head keeps the beginning of what is written: the reason comes first.
type head struct {
	mu   sync.Mutex
	text []byte
}

// Write implements io.Writer.
func (h *head) Write(p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if room := stderrBytes - len(h.text); room > 0 {
		h.text = append(h.text, p[:min(room, len(p))]...)
	}
	return len(p), nil
}

func (h *head) String() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return string(h.text)
}
