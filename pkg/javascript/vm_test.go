package javascript

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// evalImage runs a program with eval and answers what it returns as a text.
func evalImage(tb testing.TB) *Image {
	tb.Helper()
	r := New(Config{})
	tb.Cleanup(func() { require.NoError(tb, r.Close()) })
	return r.NewImage(ImageConfig{
		Sources: []Source{{"test.js", `globalThis.__entry = ((e, std, call) => { globalThis.ask = call; globalThis.luxon = std.luxon; return (code) => String((0, e)(code)) })(eval, __standard, __standard.call)`}},
		Entry:   "__entry",
	})
}

func TestEval(t *testing.T) {
	image := evalImage(t)
	vm, reused, err := image.Acquire(t.Context(), nil)
	require.NoError(t, err)
	require.False(t, reused)
	defer image.Release(vm)
	for _, row := range [][2]string{
		{"1 + 1", "2"},
		{"'a\\u0000b'.length", "3"},
		{"luxon.DateTime.fromMillis(0, {zone: 'Europe/Berlin'}).toISO()", "1970-01-01T01:00:00.000+01:00"},
		{"luxon.DateTime.now().toFormat('yyyy').length", "4"},
		{"typeof __host + typeof __standard + typeof __entry", "undefinedundefinedundefined"},
		{"String(new Date(0))", "Thu Jan 01 1970 00:00:00 GMT+0000 (Coordinated Universal Time)"},
		{"ask('echo', 'ü👋')", "<ü👋>"},
	} {
		got, ok, err := vm.Call(t.Context(), time.Second, func(op, arg string) (string, bool, error) { return "<" + arg + ">", true, nil }, row[0])
		require.NoError(t, err, row[0])
		require.True(t, ok)
		require.Equal(t, row[1], got, row[0])
	}
}

func BenchmarkCall(b *testing.B) {
	image := evalImage(b)
	vm, _, err := image.Acquire(context.Background(), nil)
	require.NoError(b, err)
	defer image.Release(vm)
	for b.Loop() {
		if _, _, err := vm.Call(context.Background(), time.Second, nil, "1"); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkReset(b *testing.B) {
	image := evalImage(b)
	for b.Loop() {
		vm, _, err := image.Acquire(context.Background(), nil)
		if err != nil {
			b.Fatal(err)
		}
		image.Release(vm)
	}
}
