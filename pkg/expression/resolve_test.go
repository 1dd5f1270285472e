package expression

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/reprise-engine/reprise/pkg/workflow"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestResolve(t *testing.T) {
	e, err := New()
	require.NoError(t, err)
	defer e.Close()
	s := &Scope{Inputs: []workflow.Items{{{JSON: json.RawMessage(`{"a": 1, "t": "x", "o": {"z": 1, "b": 2}}`)}}}}
	for _, row := range [][2]string{
		{`{"z": 1,  "a": "plain = {{ 1 }}"}`, `{"z": 1,  "a": "plain = {{ 1 }}"}`},
		{`{"z": "={{ $json.a }}", "a": [ {"b": "={{ $json.o }}"}, 2 ], "c": {"d": 1}}`, `{"z":1,"a":[{"b":{"z": 1, "b": 2}},2],"c":{"d": 1}}`},
		{`{"u": "={{ $json.none }}", "v": ["={{ $json.none }}"], "w": "={{ $json.a + 1 }}"}`, `{"v":[null],"w":2}`},
		{`"={{ $json.t }}!"`, `"x!"`},
		{`"={{ $json.none }}"`, ``},
		{`"={{ 0 / 0 }}"`, `null`},
		{`["=a\\nb \"q\" {{ $json.t }}"]`, `["a\\nb \"q\" x"]`},
		{`5`, `5`},
		{``, ``},
	} {
		got, err := e.Resolve(t.Context(), s, 0, json.RawMessage(row[0]))
		require.NoError(t, err, row[0])
		require.Equal(t, row[1], string(got), row[0])
	}
	_, err = e.Resolve(t.Context(), s, 0, json.RawMessage(`{"a": [{"b": "={{ ( }}"}]}`))
	require.EqualError(t, err, "invalid syntax")
}

func TestExpressionLimits(t *testing.T) {
	e, err := NewWithConfig(Config{ExpressionTimeout: 100 * time.Millisecond})
	require.NoError(t, err)
	defer e.Close()
	s := &Scope{}
	_, err = e.Evaluate(t.Context(), s, 0, "={{ (() => { for (;;) {} })() }}")
	require.Equal(t, "timeout", err.(*Error).Type)
	_, err = e.Evaluate(t.Context(), s, 0, "={{ (() => { const a = []; for (;;) a.push(new Uint8Array(1e6)) })() }}")
	require.Equal(t, "memory", err.(*Error).Type)
	v, err := e.Evaluate(t.Context(), s, 0, "={{ [1, 2].map(x => x * 2) }}")
	require.NoError(t, err)
	require.Equal(t, "[2,4]", string(v.JSON))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = e.Evaluate(ctx, s, 0, "={{ (() => { for (;;) {} })() }}")
	require.ErrorIs(t, err, context.Canceled)
}

// TestExpressionsDoNotMeet: what one expression changes, the next does not see.
func TestExpressionsDoNotMeet(t *testing.T) {
	e, err := New()
	require.NoError(t, err)
	defer e.Close()
	s := &Scope{Inputs: []workflow.Items{{{JSON: json.RawMessage(`{"a": [3, 1, 2]}`)}}}}
	for range 2 {
		for _, row := range [][2]string{
			{"={{ $json.a.sort()[0] }}", "1"},
			{"={{ $json.a.map(x => x)[0] }}", "3"},
			{"={{ $json.b = 5 }}", "5"},
			{"={{ $json.b ?? 'none' }}", `"none"`},
			{"={{ (() => { leak = 1; return leak })() }}", "1"},
			{"={{ typeof leak }}", `"undefined"`},
			{"={{ delete $json.a }}", "true"},
			{"={{ $json.a.length + 0 }}", "3"},
		} {
			v, err := e.Evaluate(t.Context(), s, 0, row[0])
			require.NoError(t, err, row[0])
			require.Equal(t, row[1], string(v.JSON), row[0])
		}
	}
}

// TestSessions: copies of a scope share a VM, other data never comes with it.
func TestSessions(t *testing.T) {
	a := &Scope{Inputs: []workflow.Items{{{JSON: json.RawMessage(`{"n": 1}`)}}}, Node: &workflow.Node{}, RunIndex: 1, Now: time.Now()}
	b := *a
	require.Equal(t, a.sessionKey(), b.sessionKey())
	b.Inputs = []workflow.Items{a.Inputs[0]}
	require.NotEqual(t, a.sessionKey(), b.sessionKey())
	b = *a
	b.RunIndex = 2
	require.NotEqual(t, a.sessionKey(), b.sessionKey())
	b = *a
	b.ToolArguments = json.RawMessage(`{}`)
	require.NotEqual(t, a.sessionKey(), b.sessionKey())
	require.Nil(t, (&Scope{}).sessionKey())

	e, err := New()
	require.NoError(t, err)
	defer e.Close()
	for i := range 50 { // values that die and others that take their place
		s := &Scope{Inputs: []workflow.Items{{{JSON: json.RawMessage(fmt.Sprintf(`{"n": %d}`, i))}}}}
		v, err := e.Evaluate(t.Context(), s, 0, "={{ $json.n + $input.all()[0].json.n }}")
		require.NoError(t, err)
		require.Equal(t, fmt.Sprint(2*i), string(v.JSON))
		if i%10 == 9 {
			runtime.GC()
		}
	}
}

func TestConcurrentUse(t *testing.T) {
	e, err := New()
	require.NoError(t, err)
	defer e.Close()
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			s := &Scope{}
			for i := range 20 {
				s.Inputs = []workflow.Items{append(s.input(), workflow.Item{JSON: json.RawMessage(fmt.Sprintf(`{"n":%d}`, 100*g+i))})}
			}
			for i := range 20 {
				v, err := e.Evaluate(t.Context(), s, i, "={{ $json.n + 1 }}")
				if err != nil || string(v.JSON) != fmt.Sprint(100*g+i+1) {
					t.Errorf("goroutine %d item %d: %s %v", g, i, v.JSON, err)
				}
			}
		})
	}
	wg.Wait()
}

func TestExtensionNames(t *testing.T) {
	e, err := New()
	require.NoError(t, err)
	defer e.Close()
	v, err := e.Evaluate(t.Context(), &Scope{}, 0, "={{ __extensionNames }}")
	require.NoError(t, err)
	var list []string
	require.NoError(t, json.Unmarshal(v.JSON, &list))
	for _, name := range list {
		require.True(t, extensionNames[name], "%s is not rewritten", name)
	}
	require.Len(t, extensionNames, len(list))
}

func TestSplit(t *testing.T) {
	for text, want := range map[string][]part{
		"":                  nil,
		"a":                 {{text: "a"}},
		"a {{ b }} c":       {{text: "a "}, {text: " b ", code: true}, {text: " c"}},
		"{{ '}}' }}":        {{text: " '", code: true}, {text: "' }}"}},
		`\{{ a }} {{ b`:     {{text: `\{{ a }} `}, {text: " b", code: true}},
		`{{ '\}}' }}`:       {{text: " '}}' ", code: true}},
		`\\ {{ '\\' }}`:     {{text: `\ `}, {text: ` '\\' `, code: true}},
		"{{a}}{{b}}":        {{text: "a", code: true}, {text: "b", code: true}},
		"{ {{ {a: 1} }}}":   {{text: "{ "}, {text: " {a: 1} ", code: true}, {text: "}"}},
		"{{ {a: {b: 1}} }}": {{text: " {a: {b: 1", code: true}, {text: " }}"}},
	} {
		require.Equal(t, want, split(text), text)
	}
}

func TestRewrite(t *testing.T) {
	for code, want := range map[string]string{
		"$json.a.isEmpty()":                `__extend($json.a,"isEmpty",[])`,
		"a.b.first().c.last(1, [2])":       `__extend(__extend(a.b,"first",[]).c,"last",[1, [2]])`,
		"a?.isEmpty()":                     `__extendOptional(a,"isEmpty",[])`,
		"a?.b.first().c":                   `__extendOptional(a?.b,"first",[])?.c`,
		"f(x)[0].sum() + 1":                `__extend(f(x)[0],"sum",[]) + 1`,
		"[1, 2].sum()":                     `__extend([1, 2],"sum",[])`,
		"new Date(1).format('yyyy')":       `__extend(new Date(1),"format",['yyyy'])`,
		"typeof x.isEmpty()":               `typeof __extend(x,"isEmpty",[])`,
		"`a${b.length()}c`.toInt()":        "__extend(`a${__extend(b,\"length\",[])}c`,\"toInt\",[])",
		"x.map(y => y.unique())":           `x.map(y => __extend(y,"unique",[]))`,
		"Object.keys(x).first()":           `__extend(Object.keys(x),"first",[])`,
		"Math.round(x)":                    "Math.round(x)",
		"$input.first().json":              "$input.first().json",
		"$('X').all().pluck('a')":          `__extend($('X').all(),"pluck",['a'])`,
		"{ first: 1 }":                     "{ first: 1 }",
		"x.first":                          "x.first",
		"/a/.test('x'.toInt())":            `/a/.test(__extend('x',"toInt",[]))`,
		"(() => { try {} catch (e) { } })": "(() => { try {} catch (e) {__reword(e); } })",
	} {
		tokens, ok := lex(code)
		require.True(t, ok, code)
		require.Equal(t, want, rewrite(code, tokens, true), code)
	}
}
