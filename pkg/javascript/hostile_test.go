package javascript

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestHostile: every script ends in a limit or harmlessly, soon, and the process
// and the runtime go on.
func TestHostile(t *testing.T) {
	image := evalImage(t)
	const deadline = 300 * time.Millisecond
	// Some builtins only end when the memory does.
	const bound = 20 * time.Second
	timeout, memory, thrown := new(*TimeoutError), new(*MemoryError), new(*Error)
	for _, row := range []struct {
		name, code string
		want       any // the error, or the text of the answer
	}{
		{"endless loop", "for (;;) {}", timeout},
		{"endless loop in a catch", "for (;;) { try { for (;;) {} } catch (e) {} }", timeout},
		{"endless loop in finally", "try { for (;;) {} } finally { for (;;) {} }", timeout},
		{"endless generator", "[...(function* () { for (;;) yield 1 })()]", nil},
		{"catastrophic regexp", "/^(a+)+$/.test('a'.repeat(60) + 'b')", timeout},
		{"catastrophic regexp with a backreference", "/^(.*)*\\1$/.test('ab'.repeat(40) + 'c')", timeout},
		{"catastrophic replace", "'a'.repeat(60).replace(/(a|aa)+$b/g, '')", timeout},
		{"10 GB array", "new Array(10 * 2 ** 30 / 8).fill(1)", thrown},
		{"growing array", "const a = []; for (;;) a.push(new Uint8Array(1e6))", memory},
		// Its time ends it, or its memory when there is none left to say so.
		{"growing array, caught", "const a = []; for (;;) { try { for (;;) a.push(new Array(1000).fill(a.length)) } catch (e) {} }", nil},
		{"doubling text", "let s = 'xy'; for (;;) s = [...s].reverse().join('') + s", nil},
		{"rope", "let s = 'x'; for (let i = 0; i < 40; i++) s += s; s.length", nil},
		{"huge typed array", "new Uint8Array(8 * 2 ** 30)", thrown},
		{"repeat", "'x'.repeat(2 ** 30 - 10)", nil},
		{"join of holes", "new Array(2 ** 28).join('')", thrown},
		{"indexOf over holes", "Array.prototype.indexOf.call({ length: 2 ** 53 - 1 }, 1)", thrown},
		{"includes over holes", "new Array(2 ** 32 - 1).includes(1)", thrown},
		{"forEach over holes", "new Array(2 ** 32 - 1).forEach(() => 1)", thrown},
		{"sort of holes", "const a = []; a.length = 2 ** 32 - 1; a.sort()", thrown},
		{"apply", "Math.max.apply(null, { length: 2 ** 32 - 1 })", thrown},
		{"Array.from", "Array.from({ length: 2 ** 32 })", thrown},
		{"text in text", "('a'.repeat(2e6)).indexOf('a'.repeat(1e6) + 'b')", nil},
		{"deep recursion", "(function f() { return f() + 1 })()", thrown},
		{"deep recursion through natives", "const f = () => [1].map(f); f()", thrown},
		{"deep getter", "const o = { get x() { return this.x } }; o.x", thrown},
		{"deep toString", "const o = { toString() { return String(o) } }; String(o)", thrown},
		{"deep JSON", "JSON.parse('['.repeat(3e6))", thrown},
		{"deep regexp", "new RegExp('('.repeat(1e5) + ')'.repeat(1e5)).test('a')", nil},
		{"deep source", "(0, eval)('('.repeat(1e5) + ')'.repeat(1e5))", thrown},
		{"big number", "let n = 3n; for (;;) n = n * n", nil},
		{"shift", "1n << 1000000000n", nil},
		{"proxy of proxies", "let p = {}; for (let i = 0; i < 1e5; i++) p = new Proxy(p, {}); p.x", nil},
		{"prototype chain in a circle", "const a = {}; const b = Object.create(a); Object.setPrototypeOf(a, b)", thrown},
		{"spread", "const a = new Array(16777216); Math.max(...a)", nil},
		{"flat", "let a = [1]; for (let i = 0; i < 40; i++) a = [a, a]; a.flat(Infinity).length", nil},
		{"copies of copies", "let a = [1]; for (let i = 0; i < 60; i++) a = a.concat(a); a.length", nil},
		{"constructor escape", "typeof ask.constructor('return this')().process", "undefined"},
		{"host function as way out", "typeof ask.constructor.constructor('return this')().require", "undefined"},
		{"host call with nonsense", "ask(Symbol.iterator, {})", nil},
		{"import", "(0, eval)('import(\"fs\")')", nil},
		{"Error.prepareStackTrace", "Error.prepareStackTrace = () => { for (;;) {} }; null.x", nil},
		{"freeze everything", "Object.freeze(globalThis); Object.freeze(Object.prototype); 'ok'", "ok"},
		{"no more JSON", "JSON.parse = JSON.stringify = undefined; String.prototype.split = undefined; 'ok'", "ok"},
		{"sort with a comparing liar", "const a = Array.from({ length: 1e5 }, (_, i) => i); a.sort(() => Math.random() - 0.5); 'ok'", nil},
	} {
		t.Run(row.name, func(t *testing.T) {
			vm, _, err := image.Acquire(t.Context(), nil)
			require.NoError(t, err)
			start := time.Now()
			got, _, err := vm.Call(t.Context(), deadline, nil, row.code)
			took := time.Since(start)
			image.Release(vm)
			switch want := row.want.(type) {
			case nil:
			case string:
				require.NoError(t, err)
				require.Equal(t, want, got)
			default:
				require.ErrorAs(t, err, want)
			}
			require.Less(t, took, bound, "answer %.60q, error %v", got, err)
			vm, _, err = image.Acquire(t.Context(), nil)
			require.NoError(t, err)
			defer image.Release(vm)
			got, _, err = vm.Call(t.Context(), 5*time.Second, nil, "[3, 1].sort().join() + JSON.stringify({})")
			require.NoError(t, err)
			require.Equal(t, "1,3{}", got)
		})
	}
}

func TestNoPollutionBetweenExecutions(t *testing.T) {
	image := evalImage(t)
	run := func(code string) string {
		vm, reused, err := image.Acquire(t.Context(), nil)
		require.NoError(t, err)
		require.False(t, reused)
		defer image.Release(vm)
		got, _, err := vm.Call(t.Context(), time.Second, nil, code)
		require.NoError(t, err)
		return got
	}
	require.Equal(t, "7", run("Object.prototype.polluted = 7; Array.prototype.map = () => 1; globalThis.leak = 2; ({}).polluted"))
	require.Equal(t, "undefined,undefined,2", run("[typeof ({}).polluted, typeof leak, [1].map(x => x + 1)].join()"))
	require.NotEqual(t, run("String(Math.random())"), run("String(Math.random())"), "two resets give the same random numbers")
}

func TestSessionsKeepTheirVM(t *testing.T) {
	image := evalImage(t)
	key, other := new(int), new(int)
	vm, reused, err := image.Acquire(t.Context(), key)
	require.NoError(t, err)
	require.False(t, reused)
	_, _, err = vm.Call(t.Context(), time.Second, nil, "globalThis.kept = 1")
	require.NoError(t, err)
	image.Release(vm)
	vm, reused, err = image.Acquire(t.Context(), key)
	require.NoError(t, err)
	require.True(t, reused)
	got, _, err := vm.Call(t.Context(), time.Second, nil, "kept")
	require.NoError(t, err)
	require.Equal(t, "1", got)
	image.Release(vm)
	vm, reused, err = image.Acquire(t.Context(), other)
	require.NoError(t, err)
	require.False(t, reused)
	got, _, err = vm.Call(t.Context(), time.Second, nil, "typeof kept")
	require.NoError(t, err)
	require.Equal(t, "undefined", got)
	image.Release(vm)
}

func TestCancel(t *testing.T) {
	image := evalImage(t)
	vm, _, err := image.Acquire(t.Context(), nil)
	require.NoError(t, err)
	defer image.Release(vm)
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(20*time.Millisecond, cancel)
	_, _, err = vm.Call(ctx, time.Minute, nil, "for (;;) {}")
	require.ErrorIs(t, err, context.Canceled)
}

func TestAcquireWaitsForAVM(t *testing.T) {
	r := New(Config{VMs: 1})
	defer r.Close()
	image := r.NewImage(ImageConfig{Sources: []Source{{"e.js", "globalThis.f = () => 'x'"}}, Entry: "f"})
	vm, _, err := image.Acquire(t.Context(), nil)
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	_, _, err = image.Acquire(ctx, nil)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	image.Release(vm)
	vm, _, err = image.Acquire(t.Context(), nil)
	require.NoError(t, err)
	image.Release(vm)
}

func TestClosed(t *testing.T) {
	r := New(Config{CacheDir: t.TempDir()})
	image := r.NewImage(ImageConfig{Sources: []Source{{"e.js", "globalThis.f = () => 'x'"}}, Entry: "f"})
	require.NoError(t, r.Close(), "closing what never started")
	_, _, err := image.Acquire(t.Context(), nil)
	require.ErrorIs(t, err, ErrClosed)
	require.NoError(t, r.Close())
}
