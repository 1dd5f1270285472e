package isolation

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/reprise-engine/reprise/pkg/expression"
	"github.com/reprise-engine/reprise/pkg/javascript"
)

// The environment of a child, all of it.
const (
	childEnv  = "REPRISE_CODE_CHILD"
	memoryEnv = "REPRISE_CODE_CHILD_MEMORY"
	cacheEnv  = "REPRISE_CODE_CHILD_CACHE"

	childScript = "script"
	childPython = "python"
)

// The pipes of a child.
const (
	jobsFD  = 3
	replyFD = 4
)

// prepared: this process is none of the children, and can make some.
var prepared atomic.Bool

// Main has to be called first thing by the main function of a program that isolates code
// (in tests: TestMain). In a child it does not return.
func Main() {
	switch os.Getenv(childEnv) {
	case "":
		prepared.Store(true)
	case childScript:
		os.Exit(serve())
	case childPython:
		os.Exit(enterPython(os.Args[1:]))
	default:
		fmt.Fprintf(os.Stderr, "%s is set by reprise itself, for processes that it starts; unset it\n", childEnv)
		os.Exit(2)
	}
}

// cacheDir is where children find the machine code of the engine: they have no home.
func cacheDir(config Config) string {
	if config.CacheDir != "" {
		return config.CacheDir
	}
	if base, err := os.UserCacheDir(); err == nil {
		return filepath.Join(base, "reprise", "wasm")
	}
	return javascript.NoCache
}

// serve is a child's life: scripts, one after the other, until its parent is gone.
func serve() int {
	// Who stops a group of processes means the parent, which lets its scripts end.
	signal.Ignore(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	memory, err := strconv.ParseUint(os.Getenv(memoryEnv), 10, 64)
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", memoryEnv, err)
		return 2
	}
	cache := os.Getenv(cacheEnv)
	os.Clearenv()
	s := &server{in: bufio.NewReaderSize(os.NewFile(jobsFD, "jobs"), 64<<10), out: bufio.NewWriterSize(os.NewFile(replyFD, "reply"), 64<<10)}
	syscall.CloseOnExec(jobsFD)
	syscall.CloseOnExec(replyFD)
	if err := limitMemory(dataBytes(memory)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	scripts := expression.NewScripts(expression.Config{
		CodeMemoryBytes: memory, JavaScript: javascript.Config{VMs: 1, CacheDir: cache},
	})
	if err := scripts.Warm(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	missing, err := confine()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	s.scripts, s.missing = scripts, missing
	return s.loop()
}

// server is the child's side of a child.
type server struct {
	scripts *expression.Scripts
	in      *bufio.Reader
	out     *bufio.Writer
	frames  chan frame
	missing string
}

func (s *server) loop() int {
	s.frames = make(chan frame)
	// The end of the parent is noticed in the middle of a script too.
	go func() {
		for {
			f, err := readFrame(s.in)
			if err != nil {
				os.Exit(0)
			}
			s.frames <- f
		}
	}()
	if writeFrame(s.out, frameReady, s.missing) != nil {
		return 0
	}
	for f := range s.frames {
		kind, parts := s.run(f)
		if writeFrame(s.out, kind, parts...) != nil {
			return 0
		}
	}
	return 0
}

func (s *server) run(f frame) (kind byte, parts []string) {
	if f.kind != frameRun || len(f.parts) != 5 {
		return frameFailed, []string{fmt.Sprintf("unexpected frame %q", f.kind)}
	}
	item, err1 := strconv.Atoi(f.parts[1])
	timeout, err2 := strconv.ParseInt(f.parts[4], 10, 64)
	if err := errors.Join(err1, err2); err != nil {
		return frameFailed, []string{err.Error()}
	}
	script := expression.PreparedScript{Source: f.parts[0], Item: item, Globals: f.parts[2], Scope: f.parts[3], Timeout: time.Duration(timeout)}
	limitCPU(script.Timeout)
	reply, err := s.scripts.RunScript(context.Background(), script, s.host)
	var late *javascript.TimeoutError
	var memory *javascript.MemoryError
	switch {
	case err == nil:
		return frameDone, []string{reply}
	case errors.As(err, &late):
		return frameTimeout, nil
	case errors.As(err, &memory):
		return frameMemory, nil
	case errors.Is(err, javascript.ErrPending):
		return framePending, nil
	}
	return frameFailed, []string{err.Error()}
}

// host asks the parent.
func (s *server) host(op, arg string) (string, bool, error) {
	if err := writeFrame(s.out, frameHost, op, arg); err != nil {
		os.Exit(0)
	}
	f := <-s.frames
	switch {
	case f.kind == frameValue && len(f.parts) == 1:
		return f.parts[0], true, nil
	case f.kind == frameThrow && len(f.parts) == 1:
		return "", false, errors.New(f.parts[0])
	}
	return "", false, nil
}
