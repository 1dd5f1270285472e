package cli

import (
	"bytes"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/reprise-engine/reprise/internal/labtest"
	"github.com/reprise-engine/reprise/internal/redistest"
	"github.com/reprise-engine/reprise/internal/stack"
)

// within is how long anything may take; machines are busy.
const within = 60 * time.Second

// asProgram makes the test binary the reprise program, for tests that need a
// process: signals, and what outlives nothing.
const asProgram = "REPRISE_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		os.Exit(Main(os.Args[1:]))
	}
	code := m.Run()
	for i := len(stops) - 1; i >= 0; i-- {
		stops[i]()
	}
	redistest.StopShared()
	os.Exit(code)
}

// outcome is what a command line did.
type outcome struct {
	code           int
	stdout, stderr string
}

// reprise runs a command line in this process.
func reprise(t *testing.T, args ...string) outcome {
	t.Helper()
	return repriseWith(t, "", args...)
}

func repriseWith(t *testing.T, stdin string, args ...string) outcome {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	var stdout, stderr bytes.Buffer
	root := Root()
	root.SetArgs(args)
	root.SetOut(&stdout)
	root.SetErr(&stderr)
	root.SetIn(strings.NewReader(stdin))
	code := execute(ctx, root)
	require.NoError(t, ctx.Err(), "reprise %s does not end", strings.Join(args, " "))
	return outcome{code, stdout.String(), stderr.String()}
}

// failed checks that a command line failed with one message for people.
func (o outcome) failed(t *testing.T, code int, texts ...string) {
	t.Helper()
	assert.Equal(t, code, o.code, "exit code; stderr: %s", o.stderr)
	assert.True(t, strings.HasPrefix(o.stderr, "error: "), "stderr: %s", o.stderr)
	assert.Equal(t, 1, strings.Count(o.stderr, "error: "), "stderr: %s", o.stderr)
	assert.Empty(t, o.stdout)
	for _, text := range texts {
		assert.Contains(t, o.stderr, text)
	}
	for _, noise := range []string{"Usage:", "goroutine", ".go:", "sk-secret"} {
		assert.NotContains(t, o.stderr, noise)
	}
}

// process is the program as a process of its own.
type process struct {
	*exec.Cmd
	stdout, stderr *transcript
	exited         chan struct{}
}

// transcript collects what a process writes while it runs.
type transcript struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *transcript) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *transcript) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

var _ io.Writer = (*transcript)(nil)

// startProgram starts the program; it is killed when the test ends.
func startProgram(t *testing.T, args ...string) *process {
	t.Helper()
	p := &process{Cmd: exec.Command(os.Args[0], args...), stdout: &transcript{}, stderr: &transcript{}, exited: make(chan struct{})}
	p.Env = append(os.Environ(), asProgram+"=1")
	p.Stdout, p.Stderr = p.stdout, p.stderr
	require.NoError(t, p.Start())
	go func() { _ = p.Wait(); close(p.exited) }()
	t.Cleanup(func() {
		_ = p.Process.Kill() // an error means that it is gone
		<-p.exited
	})
	return p
}

// exitCode waits for the end of the process.
func (p *process) exitCode(t *testing.T) int {
	t.Helper()
	await(t, p.exited, "the program does not end")
	return p.ProcessState.ExitCode()
}

func await(t *testing.T, c <-chan struct{}, what string) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(within):
		t.Fatal(what)
	}
}

// lab is the stack that tests submit to, and what its workflows call.
type lab struct {
	*labtest.Lab
	stack *stack.Stack
}

var (
	shared = sync.OnceValues(func() (*lab, error) {
		dir, err := os.MkdirTemp("", "reprise-cli-test-")
		if err != nil {
			return nil, err
		}
		l := &lab{}
		stops = append(stops, func() { _ = os.RemoveAll(dir) })
		if l.Lab, err = labtest.Open(dir); err != nil {
			return nil, err
		}
		stops = append(stops, l.Close)
		if l.stack, err = stack.Start(context.Background(), stack.Config{CredentialsFile: l.Credentials, MockLLM: true, HTTPAddr: "127.0.0.1:0"}); err != nil {
			return nil, err
		}
		stops = append(stops, l.stack.Stop)
		return l, nil
	})
	stops []func()
)

func sharedLab(t *testing.T) *lab {
	t.Helper()
	l, err := shared()
	require.NoError(t, err)
	return l
}

// file writes a file of the test.
func file(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file.json")
	require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	return path
}

// example is a file of the examples folder.
func example(name string) string { return filepath.Join("..", "..", "examples", name) }
