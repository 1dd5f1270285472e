package isolation

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reprise-engine/reprise/pkg/expression"
)

// TestHostile: every script ends in a limit or harmlessly, soon, and the next one runs.
func TestHostile(t *testing.T) {
	const limit = 150 * time.Millisecond
	// The child is killed graceTime after its limit; the machine may be busy.
	const bound = limit + graceTime + 4*time.Second
	const (
		ended   = "" // in any way
		fine    = "fine"
		thrown  = "thrown"
		timeout = "timeout"
		memory  = "memory"
	)
	e, _ := newEvaluator(t, Config{Processes: 1, MemoryBytes: 64 << 20, grace: 300 * time.Millisecond})
	for _, row := range []struct{ name, code, want string }{
		{"endless loop", "for (;;) {}", timeout},
		{"endless loop, caught", "for (;;) { try { for (;;) {} } catch (e) {} }", timeout},
		{"endless loop in a promise", "await Promise.resolve().then(() => { while (true) {} })", timeout},
		{"endless loop in a timer", "setTimeout(() => { for (;;) {} }, 1); await new Promise(() => {})", timeout},
		{"endless promises", "const f = () => Promise.resolve().then(f); await f()", timeout},
		{"endless waiting", "await new Promise((r) => setTimeout(r, 1e9))", timeout},
		{"promise that never settles", "await new Promise(() => {})", thrown},
		{"endless generator in a spread", "return [...(function* () { for (;;) yield 1 })()]", ended},
		{"catastrophic regexp", "return /^(a+)+$/.test('a'.repeat(60) + 'b')", timeout},
		{"10 GB array", "return new Array(10 * 2 ** 30 / 8).fill(1)", ended},
		{"growing array", "const a = []; for (;;) a.push(new Uint8Array(1e6))", memory},
		{"huge join", "return new Array(2 ** 28).join('abc')", ended},
		{"doubling text", "let s = 'xy'; for (;;) s = [...s].reverse().join('') + s", ended},
		{"huge result", "return ['x'.repeat(3e7)]", ended},
		{"huge log", "for (;;) console.log('x'.repeat(1e6))", ended},
		{"text in text", "return ('a'.repeat(2e6)).indexOf('a'.repeat(1e6) + 'b')", ended},
		{"big number", "let n = 3n; for (;;) n = n * n", ended},
		{"deep recursion", "const f = () => f() + 1; return f()", thrown},
		{"deep recursion through natives", "const f = () => [1].map(f); f()", thrown},
		{"deep JSON", "return JSON.parse('['.repeat(3e6))", thrown},
		{"deep result", "let a = []; for (let i = 0; i < 1e6; i++) a = [a]; return a", ended},
		{"cyclic result", "const a = {}; a.a = a; return a", thrown},
		{"result that runs", "return { toJSON() { for (;;) {} } }", timeout},
		{"constructor escape", "return [typeof (() => 1).constructor('return this')().process]", fine},
		{"constructor of what is given", "return [typeof $input.constructor.constructor('return typeof process')()]", fine},
		{"host's constructor", "return [typeof this.helpers.httpRequest.constructor('return this.process')()]", ended},
		{"files", "return require('fs').readFileSync('/etc/passwd')", thrown},
		{"processes", "return require('child_process').execSync('id')", thrown},
		{"module of the engine", "return await import('std')", thrown},
		{"WebAssembly", "return [typeof WebAssembly === 'undefined' ? 1 : new WebAssembly.Memory({ initial: 65536 }).buffer.byteLength]", ended},
		{"prototypes", "Object.prototype.then = 7; Array.prototype.map = null; Promise.prototype.then = null; return []", ended},
		{"no more JSON", "JSON.stringify = JSON.parse = () => { for (;;) {} }; return []", ended},
		{"unknown helper", "return await this.helpers.httpRequest({ url: 'http://127.0.0.1' })", thrown},
		{"many calls", "for (let i = 0; i < 1e5; i++) this.helpers.httpRequest({ url: 'x' }).catch(() => 1); return []", ended},
	} {
		t.Run(row.name, func(t *testing.T) {
			after := limit
			if row.want != timeout && row.want != ended {
				after = 30 * time.Second // they end themselves
			}
			start := time.Now()
			_, err := e.RunCode(t.Context(), scopeOf(1, 1), expression.Code{Source: row.code, Item: expression.AllItems, Timeout: after})
			took := time.Since(start)
			require.Less(t, took, after-limit+bound, "%v", err)
			var failed *expression.Error
			if err != nil {
				require.ErrorAs(t, err, &failed, "it is the failure of the script")
			}
			switch row.want {
			case fine:
				require.NoError(t, err)
			case thrown:
				require.Error(t, err)
				require.NotContains(t, []string{timeout, memory, processEnded}, failed.Type)
			case timeout, memory:
				require.Error(t, err)
				require.Equal(t, row.want, failed.Type, "%v", err)
			}
			got, err := e.RunCode(t.Context(), scopeOf(1, 1), expression.Code{
				Source: "return [typeof Object.prototype.then, [1].map((x) => x + 1)[0]]", Item: expression.AllItems,
			})
			require.NoError(t, err)
			require.Equal(t, `["undefined",2]`, string(got.JSON))
		})
	}
}

// TestNeighbours: while one script takes all it can, another runs.
func TestNeighbours(t *testing.T) {
	e, _ := newEvaluator(t, Config{Processes: 2})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	started, stopped := make(chan struct{}), make(chan error, 1)
	go func() {
		code := allItems("await this.helpers.httpRequest('x'); for (;;) {}")
		code.Calls = map[string]expression.AsyncCall{"httpRequest": saying(started)}
		_, err := e.RunCode(ctx, scopeOf(1, 1), code)
		stopped <- err
	}()
	<-started
	got, err := e.RunCode(t.Context(), scopeOf(3, 1), allItems("return $input.all().length"))
	require.NoError(t, err)
	require.Equal(t, "3", string(got.JSON))
	cancel()
	require.ErrorIs(t, <-stopped, context.Canceled)
}
