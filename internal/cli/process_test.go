package cli

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/reprise-engine/reprise/internal/embedded"
	"github.com/reprise-engine/reprise/internal/labtest"
	"github.com/reprise-engine/reprise/internal/natstest"
	"github.com/reprise-engine/reprise/internal/redistest"
	"github.com/reprise-engine/reprise/internal/stack"
)

func readAll(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(data)
}

// TestRunTwice: a run leaves nothing that hinders the next.
func TestRunTwice(t *testing.T) {
	t.Parallel()
	for range 2 {
		got := reprise(t, "run", example("agent-parallel-tools.json"))
		assert.Zero(t, got.code, got.stderr)
		assert.Contains(t, got.stdout, "Calculator returned 42; Shout returned SHOUT HI AND COMPUTE 6 * 7.")
		assert.Empty(t, got.stderr)
	}
}

// TestRunFromInput: the input is the trigger's item, bare or in n8n's form, from the
// command line or a file.
func TestRunFromInput(t *testing.T) {
	t.Parallel()
	l := sharedLab(t)
	flow := file(t, string(l.Site().Agent("m")))
	for _, input := range []string{`{"chatInput":"good day"}`, `{"json":{"chatInput":"good day"}}`, "@" + file(t, `{"chatInput":"good day"}`)} {
		got := reprise(t, "submit", "--wait", flow, "--input", input, "--nats", l.stack.NATSURL)
		assert.Zero(t, got.code, got.stderr)
		assert.Contains(t, got.stdout, "You said: good day")
	}
}

// TestRunScript: with a script all OpenAI credentials lead to the mock.
func TestRunScript(t *testing.T) {
	t.Parallel()
	site := sharedLab(t).Site()
	script := file(t, `{"m": {"turns": [{"tool_calls": [{"name": "Calculator", "args": {"input": "2*21"}}]}, {"content": "it is {{last}}"}]}}`)
	got := reprise(t, "run", "--mock-llm", script, file(t, string(site.Agent("m", labtest.Calculator()))))
	assert.Zero(t, got.code, got.stderr)
	assert.Contains(t, got.stdout, `it is [{"response":"42"}]`)
	assert.Zero(t, site.ModelRequests())
}

// TestInterruptRun: Ctrl-C in the middle of a run cancels it and its tools.
func TestInterruptRun(t *testing.T) {
	t.Parallel()
	l := sharedLab(t)
	document, begun, gone := hanging(t, l.Site())
	p := startProgram(t, "run", file(t, document), "--credentials", l.Credentials)
	await(t, begun, "the tool was not called: "+p.stderr.String())
	require.NoError(t, p.Process.Signal(syscall.SIGINT))
	assert.Equal(t, 1, p.exitCode(t))
	assert.Contains(t, p.stderr.String(), "interrupted: the execution was cancelled")
	assert.Equal(t, 1, strings.Count(p.stderr.String(), "\n"), p.stderr.String())
	await(t, gone, "the tool still runs")
}

// TestDev: dev says how to submit to it, and Ctrl-C ends it in good order; with
// --data it finds again what it knew.
func TestDev(t *testing.T) {
	t.Parallel()
	dir, flows := t.TempDir(), t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(flows, "a.json"), []byte(readAll(t, example("approval.json"))), 0o600))
	for life := range 2 {
		p := startProgram(t, "dev", "--nats-port", "0", "--http-addr", "127.0.0.1:0", "--data", dir, "--workflows", flows)
		require.Eventually(t, func() bool { return strings.Contains(p.stdout.String(), "Ctrl-C stops.") }, within, 20*time.Millisecond, "%s", p.stderr)
		url := regexp.MustCompile(`export REPRISE_NATS_URL=(\S+)`).FindStringSubmatch(p.stdout.String())
		require.NotNil(t, url, p.stdout.String())
		assert.Contains(t, p.stdout.String(), "reprise submit --wait examples/agent-parallel-tools.json")
		assert.Contains(t, p.stdout.String(), "reprise executions list")
		assert.Regexp(t, `HTTP      http://127\.0\.0\.1:[1-9]\d*`, p.stdout.String())
		if life == 0 {
			got := reprise(t, "submit", "--until-waiting", "--id", "asks", "--workflow-id", "approval", "--nats", url[1])
			assert.Equal(t, 3, got.code, got.stderr)
			got = reprise(t, "submit", "--wait", "--id", "kept", example("agent-parallel-tools.json"), "--nats", url[1])
			assert.Zero(t, got.code, got.stderr)
			assert.Contains(t, got.stdout, "Calculator returned 42")
		}
		got := reprise(t, "executions", "approvals", "--execution", "asks", "--nats", url[1]) // also after the restart
		assert.Zero(t, got.code, got.stderr)
		assert.Contains(t, got.stdout, "Send refund")
		got = reprise(t, "executions", "show", "kept", "--nats", url[1])
		assert.Zero(t, got.code, got.stderr)
		assert.Contains(t, got.stdout, "success")
		require.NoError(t, p.Process.Signal(syscall.SIGINT))
		assert.Zero(t, p.exitCode(t), p.stderr.String())
		assert.Contains(t, p.stderr.String(), "stopping")
	}
}

// TestMockLLM serves until it is interrupted.
func TestMockLLM(t *testing.T) {
	t.Parallel()
	p := startProgram(t, "mock-llm", "--addr", "127.0.0.1:0")
	require.Eventually(t, func() bool { return strings.Contains(p.stderr.String(), "/v1\n") }, within, 10*time.Millisecond)
	require.NoError(t, p.Process.Signal(syscall.SIGINT))
	assert.Zero(t, p.exitCode(t), p.stderr.String())
}

func TestDoctor(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	nats := natstest.Start(t, natstest.Options{})
	good := redistest.Start(t, "--appendonly", "yes", "--maxmemory-policy", "noeviction")
	bad := redistest.Start(t, "--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru")
	plain, err := embedded.StartNATS(t.TempDir(), embedded.NATSOptions{NoJetStream: true})
	require.NoError(t, err)
	t.Cleanup(plain.Shutdown)
	doctor := func(nats, redis string) outcome { return reprise(t, "doctor", "--nats", nats, "--redis", redis) }

	got := doctor(nats.URL, good.URL())
	assert.Equal(t, 1, got.code)
	assert.Contains(t, got.stdout, "✗ coordinators")
	assert.Contains(t, got.stdout, "start one")
	running, err := stack.Start(ctx, stack.Config{NATSURL: nats.URL, RedisURL: good.URL()})
	require.NoError(t, err)
	t.Cleanup(running.Stop)
	require.Eventually(t, func() bool { // a round trip may be slow on a busy machine
		got = doctor(nats.URL, good.URL())
		return got.code == 0
	}, within, 50*time.Millisecond, "%s", got.stdout)
	assert.NotContains(t, got.stdout, "✗")
	assert.Contains(t, got.stdout, "append-only file on")
	assert.Empty(t, got.stderr)

	got = doctor(nats.URL, bad.URL())
	assert.Equal(t, 1, got.code)
	assert.Contains(t, got.stdout, "✗ Redis persistence")
	assert.Contains(t, got.stdout, "appendonly yes")
	assert.Contains(t, got.stdout, "✗ Redis eviction")
	assert.Contains(t, got.stdout, "noeviction")
	got = doctor("nats://"+nowhere, "redis://"+nowhere)
	assert.Equal(t, 4, got.code)
	assert.Contains(t, got.stdout, "✗ Redis ")
	assert.Contains(t, got.stdout, "✗ NATS ")
	got = doctor(plain.URL, good.URL())
	assert.Equal(t, 4, got.code)
	assert.Contains(t, got.stdout, "JetStream")
	got = reprise(t, "doctor", "--output", "json", "--nats", nats.URL, "--redis", fmt.Sprintf("redis://:sk-secret@%s", nowhere))
	assert.Equal(t, 4, got.code)
	assert.NotContains(t, got.stdout, "sk-secret")
}
