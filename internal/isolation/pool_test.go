package isolation

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reprise-engine/reprise/pkg/expression"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

func newEvaluator(tb testing.TB, config Config) (*expression.Evaluator, *Pool) {
	tb.Helper()
	pool, err := NewPool(config)
	require.NoError(tb, err)
	e, err := expression.NewWithConfig(expression.Config{Scripts: pool})
	require.NoError(tb, err)
	tb.Cleanup(func() {
		require.NoError(tb, e.Close())
		pool.Close()
	})
	return e, pool
}

func scopeOf(n int, size int) *expression.Scope {
	items := make(workflow.Items, n)
	for i := range items {
		raw, _ := json.Marshal(map[string]any{"n": i, "text": strings.Repeat("x", size)})
		items[i] = workflow.Item{JSON: raw, PairedItem: workflow.Paired(i)}
	}
	s := &expression.Scope{Inputs: []workflow.Items{items}, Timezone: "Europe/Berlin"}
	s.Execution.ID = "1"
	return s
}

// saying is a call that says when it is made.
func saying(made chan<- struct{}) expression.AsyncCall {
	return func(context.Context, json.RawMessage) (json.RawMessage, error) {
		close(made)
		return json.RawMessage(`{"body":"ok"}`), nil
	}
}

func allItems(source string) expression.Code {
	return expression.Code{Source: source, Item: expression.AllItems}
}

// idlePID is the process that the next script gets.
func idlePID(t *testing.T, p *Pool) int {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	require.NotEmpty(t, p.idle)
	return p.idle[len(p.idle)-1].pid()
}

func TestScriptsInAnotherProcess(t *testing.T) {
	e, pool := newEvaluator(t, Config{})
	got, err := e.RunCode(t.Context(), scopeOf(2, 1), allItems("console.log('hi'); return [$input.all().length, $now.zoneName, $execution.id]"))
	require.NoError(t, err)
	require.Equal(t, `[2,"Europe/Berlin","1"]`, string(got.JSON))
	require.Equal(t, []string{"hi"}, got.Logs)
	pid := idlePID(t, pool)
	got, err = e.RunCode(t.Context(), scopeOf(1203, 1), expression.Code{Source: "if ($json.n === 7) throw new Error('no'); return {i: $itemIndex, n: $json.n}", Item: expression.EachItem, GoOn: true})
	require.NoError(t, err)
	require.Len(t, got.Each, 1203)
	require.Equal(t, `{"i":1202,"n":1202}`, string(got.Each[1202].JSON))
	require.Equal(t, "no [line 1]", got.Each[7].Err.Message)
	require.Equal(t, pid, idlePID(t, pool), "a process serves one script after the other")
}

// What a script asks its worker for goes through the pipe.
func TestHelpers(t *testing.T) {
	e, _ := newEvaluator(t, Config{})
	scope := scopeOf(1, 1)
	scope.Inputs[0][0].Binary = map[string]workflow.Binary{"data": {ID: "file-1", MimeType: "text/plain"}}
	var saved, requested string
	code := allItems(`
const seen = $getWorkflowStaticData('global');
seen.count = (seen.count ?? 0) + 1;
const file = await this.helpers.prepareBinaryData(Buffer.from('y'.repeat(20000)), 'a.txt');
const [response, bytes] = await Promise.all([this.helpers.httpRequest({ url: 'http://server/', json: true }), this.helpers.getBinaryDataBuffer(0, 'data')]);
try { await this.helpers.httpRequest('http://broken/') } catch (e) { console.error(e.message, e.statusCode) }
return [file.id, response.answer, bytes.toString(), seen.count]`)
	code.Calls = map[string]expression.AsyncCall{
		"httpRequest": func(_ context.Context, arg json.RawMessage) (json.RawMessage, error) {
			if strings.Contains(string(arg), "broken") {
				return nil, &expression.CallError{Message: "no", Fields: map[string]any{"statusCode": 500}}
			}
			requested = string(arg)
			return json.RawMessage(`{"body":{"answer":42}}`), nil
		},
		"readFile": func(context.Context, json.RawMessage) (json.RawMessage, error) {
			return json.Marshal([]byte("content"))
		},
		"saveFile": func(_ context.Context, arg json.RawMessage) (json.RawMessage, error) {
			saved = string(arg)
			return json.RawMessage(`{"id":"file-2"}`), nil
		},
	}
	got, err := e.RunCode(t.Context(), scope, code)
	require.NoError(t, err)
	require.Equal(t, `["file-2",42,"content",1]`, string(got.JSON))
	require.Equal(t, []string{"no 500"}, got.Logs)
	require.Contains(t, requested, "http://server/")
	require.Contains(t, saved, "a.txt")
}

// A child that is gone fails its script alone, in words for machines, and another takes its place.
func TestKilledChild(t *testing.T) {
	e, pool := newEvaluator(t, Config{Processes: 1})
	_, err := e.RunCode(t.Context(), scopeOf(1, 1), allItems("return []"))
	require.NoError(t, err)
	pid := idlePID(t, pool)
	code := allItems("console.log('before'); await this.helpers.httpRequest('x'); for (;;) {}")
	made := make(chan struct{})
	code.Calls = map[string]expression.AsyncCall{"httpRequest": saying(made)}
	go func() {
		<-made
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}()
	got, err := e.RunCode(t.Context(), scopeOf(1, 1), code)
	var failed *expression.Error
	require.ErrorAs(t, err, &failed)
	require.Equal(t, "process", failed.Type)
	require.Contains(t, failed.Description, "killed")
	require.Equal(t, []string{"before"}, got.Logs)
	got, err = e.RunCode(t.Context(), scopeOf(1, 1), allItems("return 1"))
	require.NoError(t, err)
	require.Equal(t, "1", string(got.JSON))
	require.NotEqual(t, pid, idlePID(t, pool))
}

// A child that died while it was idle is noticed by nobody.
func TestKilledWhileIdle(t *testing.T) {
	e, pool := newEvaluator(t, Config{Processes: 1})
	_, err := e.RunCode(t.Context(), scopeOf(1, 1), allItems("return []"))
	require.NoError(t, err)
	pool.mu.Lock()
	c := pool.idle[0]
	pool.mu.Unlock()
	require.NoError(t, syscall.Kill(c.pid(), syscall.SIGKILL))
	<-c.exited
	_, err = e.RunCode(t.Context(), scopeOf(1, 1), allItems("return []"))
	require.NoError(t, err)
}

func TestCancel(t *testing.T) {
	e, pool := newEvaluator(t, Config{Processes: 1})
	_, err := e.RunCode(t.Context(), scopeOf(1, 1), allItems("return []"))
	require.NoError(t, err)
	pid := idlePID(t, pool)
	for _, code := range []string{"for (;;) {}", "await new Promise((r) => setTimeout(r, 1e6))"} {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(50*time.Millisecond, cancel)
		start := time.Now()
		_, err = e.RunCode(ctx, scopeOf(1, 1), allItems(code))
		require.ErrorIs(t, err, context.Canceled)
		require.Less(t, time.Since(start), 3*time.Second)
	}
	require.ErrorIs(t, syscall.Kill(pid, 0), syscall.ESRCH, "the process is gone")
}

// A child has nothing of its parent: no environment, no files, no way out.
func TestChildHasNothing(t *testing.T) {
	t.Setenv("REPRISE_CREDENTIALS_KEY", "hunter2")
	e, pool := newEvaluator(t, Config{})
	_, err := e.RunCode(t.Context(), scopeOf(1, 1), allItems("return []"))
	require.NoError(t, err)
	proc := fmt.Sprintf("/proc/%d/", idlePID(t, pool))
	environment, err := os.ReadFile(proc + "environ")
	require.NoError(t, err)
	require.NotContains(t, string(environment), "hunter2")
	for setting := range strings.SplitSeq(strings.Trim(string(environment), "\x00"), "\x00") {
		require.Regexp(t, "^(REPRISE_CODE_CHILD|GO)", setting)
	}
	files, err := os.ReadDir(proc + "fd")
	require.NoError(t, err)
	for _, file := range files {
		target, err := os.Readlink(proc + "fd/" + file.Name())
		require.NoError(t, err)
		require.Regexp(t, `^(pipe:|anon_inode:|/dev/null$|/sys/fs/cgroup/cpu)`, target)
	}
	status, err := os.ReadFile(proc + "status")
	require.NoError(t, err)
	require.Contains(t, string(status), "Seccomp:\t2\n")
	require.Contains(t, string(status), "NoNewPrivs:\t1\n")
	limits, err := os.ReadFile(proc + "limits")
	require.NoError(t, err)
	require.Regexp(t, `Max file size +0 +0 `, string(limits))
	require.NotRegexp(t, `Max data size +unlimited`, string(limits))
}

func TestClosedPool(t *testing.T) {
	pool, err := NewPool(Config{})
	require.NoError(t, err)
	pool.Warm()
	pool.Close()
	pool.Close()
	_, err = pool.RunScript(t.Context(), expression.PreparedScript{Timeout: time.Second}, nil)
	require.ErrorIs(t, err, ErrClosed)
}

// BenchmarkCode is a Code node from its items to its result, the pipe included.
func BenchmarkCode(b *testing.B) {
	e, _ := newEvaluator(b, Config{})
	for _, row := range []struct {
		name  string
		items int
		bytes int
		code  expression.Code
	}{
		{"1 item", 1, 70, allItems("return $input.all()")},
		{"10000 of 100 B", 10_000, 70, allItems("for (const item of $input.all()) item.json.y = item.json.n * 2; return $input.all()")},
		{"10000 of 1.8 KB", 10_000, 1780, allItems("for (const item of $input.all()) item.json.y = item.json.n * 2; return $input.all()")},
		{"10000 of 100 B, each", 10_000, 70, expression.Code{Source: "return {y: $json.n * 2, ...$json}", Item: expression.EachItem}},
		{"10000 of 1.8 KB, each", 10_000, 1780, expression.Code{Source: "return {y: $json.n * 2, ...$json}", Item: expression.EachItem}},
	} {
		scope := scopeOf(row.items, row.bytes)
		b.Run(row.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_, err := e.RunCode(b.Context(), scope, row.code)
				require.NoError(b, err)
			}
		})
	}
}
