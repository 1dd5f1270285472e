package isolation

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reprise-engine/reprise/pkg/expression"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// sharedPython is tried once for all tests.
var sharedPython = sync.OnceValues(func() (*Python, error) { return NewPython(PythonConfig{}) })

func newPython(t *testing.T) *Python {
	t.Helper()
	p, err := sharedPython()
	require.NoError(t, err)
	return p
}

func TestPython(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	p := newPython(t)
	require.FileExists(t, p.Interpreter())
	for _, row := range []struct{ name, code, want string }{
		{"native items", "return [{'json': {'n': item['json']['n'] * 2}} for item in _items]", `[{"json":{"n":0}},{"json":{"n":2}}]`},
		{"attributes", "for item in _input.all():\n  item.json.m = item.json.n + 1\n  del item.json['text']\nreturn _input.all()",
			`[{"json":{"n":0,"m":1},"pairedItem":{"item":0}},{"json":{"n":1,"m":2},"pairedItem":{"item":1}}]`},
		{"first, last, to_py", "return [_input.first().to_py()['json']['n'], _input.last().json.n, len(_input.all().to_py())]", `[0,1,2]`},
		{"functions, closures, imports", "import math\ndef f(x):\n  return math.floor(x)\nn = 1.5\nreturn {'n': f(n), 'm': [f(i) for i in (n, 2.5)]}", `{"n":1,"m":[1,2]}`},
		{"texts of several lines", "return '''a\n  b'''", `"a\n  b"`},
		{"what JSON does not know", "import datetime\nreturn [float('nan'), {1}, datetime.date(2026, 1, 2), (1, 2), None, True, 2 ** 70, 'ä😀']",
			`[null,[1],"2026-01-02",[1,2],null,true,1180591620717411303424,"ä😀"]`},
		{"no answer", "x = 1", "null"},
		{"the execution", "return [_execution.id, _execution['id'], _now.utcoffset().total_seconds() >= 3600, _today.hour, _runIndex]", `["1","1",true,0,0]`},
		{"await", "import asyncio\nawait asyncio.sleep(0.001)\nreturn 'awaited'", `"awaited"`},
		{"static data", "d = _getWorkflowStaticData('global')\nd.a = 1\nreturn _getWorkflowStaticData('global')", `{"a":1}`},
		{"a file of its own", "open('x', 'w').write('1')\nimport os\nreturn os.listdir('.')", `["x"]`},
	} {
		t.Run(row.name, func(t *testing.T) {
			got, err := p.RunPython(t.Context(), scopeOf(2, 1), allItems(row.code))
			require.NoError(t, err)
			require.Equal(t, row.want, string(got.JSON))
		})
	}
	left, err := filepath.Glob(filepath.Join(os.TempDir(), "reprise-python-*"))
	require.NoError(t, err)
	require.Empty(t, left)
}

func TestPythonOnEachItem(t *testing.T) {
	p := newPython(t)
	code := expression.Code{
		Source: "print('item', _itemIndex)\nif _json['n'] == 7:\n  raise ValueError('no')\nreturn {'n': _item['json']['n'], 'm': _input.item.json.n}",
		Item:   expression.EachItem, GoOn: true,
	}
	got, err := p.RunPython(t.Context(), scopeOf(1203, 1), code)
	require.NoError(t, err)
	require.Len(t, got.Each, 1203)
	require.Equal(t, `{"n":1202,"m":1202}`, string(got.Each[1202].JSON))
	require.Equal(t, "no [line 3]", got.Each[7].Err.Message)
	require.Equal(t, "ValueError", got.Each[7].Err.Description)
	require.Equal(t, "item 1", got.Logs[1])
	require.Len(t, got.Logs, 1001, "they are bounded")

	code.GoOn = false
	got, err = p.RunPython(t.Context(), scopeOf(10, 1), code)
	require.NoError(t, err)
	require.Len(t, got.Each, 8)
}

func TestPythonReadsOtherNodes(t *testing.T) {
	p := newPython(t)
	got, err := p.RunPython(t.Context(), scopeOf(1, 1), allItems("try:\n  _('X').all()\nexcept Exception as e:\n  print(e)\nreturn _node['X'].json"))
	var failed *expression.Error
	require.ErrorAs(t, err, &failed)
	require.Contains(t, failed.Message, "[line 5]")
	require.Equal(t, []string{"Node 'X' hasn't been executed"}, got.Logs)

	scope := scopeOf(1, 1)
	scope.Node = &workflow.Node{Name: "Code"}
	scope.Nodes = map[string]*workflow.Node{"Code": scope.Node, "X": {Name: "X", Parameters: json.RawMessage(`{"a":1}`)}}
	got, err = p.RunPython(t.Context(), scope, allItems("return [_('X').isExecuted, _('X').params.a]"))
	require.NoError(t, err)
	require.Equal(t, `[false,1]`, string(got.JSON))
}

func TestPythonErrors(t *testing.T) {
	p, err := NewPython(PythonConfig{MemoryBytes: 16 << 20, Timeout: 20 * time.Second})
	require.NoError(t, err)
	for _, row := range []struct {
		name, code             string
		message, kind, explain string
	}{
		{"thrown", "x = 1\nraise Exception('boom')", "boom [line 2]", "", ""},
		{"in a function", "def f():\n  return 1 / 0\nreturn f()", "division by zero [line 2]", "", "ZeroDivisionError"},
		{"syntax", "x = 1\nreturn (", "'(' was never closed [line 2]", "", "SyntaxError"},
		{"name", "return nowhere", "name 'nowhere' is not defined [line 1]", "", "NameError"},
		{"module that is not there", "import numpy", "No module named 'numpy' [line 1]", "", "ModuleNotFoundError"},
		{"recursion", "def f():\n  return f()\nf()", "", "", "RecursionError"},
		{"exit", "import sys\nsys.exit(3)", "3 [line 2]", "", "SystemExit"},
		{"end of the process", "import os\nos._exit(3)", "The process that ran the script was ended", "process", ""},
		{"memory", "x = 'a' * 10 ** 9", "", "memory", ""},
		{"shared memory", "import mmap\nx = mmap.mmap(-1, 10 ** 9)", "", "", "OSError"},
		{"a list without end", "x = []\nwhile True:\n  x.append('a' * 1000 + str(len(x)))", "", "memory", ""},
		{"a large file", "open('x', 'w').write('a' * (17 << 20))", "", "", "OSError"},
	} {
		t.Run(row.name, func(t *testing.T) {
			_, err := p.RunPython(t.Context(), scopeOf(1, 1), allItems(row.code))
			var failed *expression.Error
			require.ErrorAs(t, err, &failed)
			if row.message != "" {
				require.Equal(t, row.message, failed.Message)
			}
			require.Equal(t, row.kind, failed.Type)
			if row.explain != "" {
				require.Equal(t, row.explain, failed.Description)
			}
		})
	}
}

// TestPythonIsConfined: a script reaches neither its worker nor anything else.
func TestPythonIsConfined(t *testing.T) {
	t.Setenv("REPRISE_CREDENTIALS_KEY", "hunter2")
	secret := filepath.Join(t.TempDir(), "credentials.json")
	require.NoError(t, os.WriteFile(secret, []byte("hunter2"), 0o644))
	p := newPython(t)
	for _, row := range []struct{ name, code string }{
		{"a file", fmt.Sprintf("open(%q)", secret)},
		{"the worker's environment", fmt.Sprintf("open('/proc/%d/environ')", os.Getpid())},
		{"the worker's memory", fmt.Sprintf("open('/proc/%d/mem', 'rb')", os.Getpid())},
		{"the worker's files", fmt.Sprintf("import os; os.listdir('/proc/%d/fd')", os.Getpid())},
		{"passwords", "open('/etc/passwd')"},
		{"writing elsewhere", "open('/tmp/reprise-was-here', 'w')"},
		{"the directory of others", "import os; os.listdir('..')"},
		{"a connection", "import socket; socket.create_connection(('127.0.0.1', 1))"},
		{"a socket", "import socket; socket.socket(socket.AF_UNIX)"},
		{"a process", "import subprocess; subprocess.run(['id'])"},
		{"a fork", "import os; os.fork()"},
		{"another program", "import os; os.execv('/bin/sh', ['sh', '-c', 'id'])"},
		{"a signal", fmt.Sprintf("import os; os.kill(%d, 0)", os.Getpid())},
		{"a tracer", fmt.Sprintf("import ctypes\nc = ctypes.CDLL(None, use_errno=True)\nif c.ptrace(16, %d, 0, 0) != 0: raise PermissionError('no')", os.Getpid())},
	} {
		t.Run(row.name, func(t *testing.T) {
			_, err := p.RunPython(t.Context(), scopeOf(1, 1), allItems(row.code+"\nreturn 'reached'"))
			var failed *expression.Error
			require.ErrorAs(t, err, &failed)
			require.Contains(t, []string{"PermissionError", "OSError"}, failed.Description, failed.Message)
		})
	}
	got, err := p.RunPython(t.Context(), scopeOf(1, 1), allItems("import os\nreturn dict(os.environ)"))
	require.NoError(t, err)
	require.NotContains(t, string(got.JSON), "hunter2")
	require.NotContains(t, string(got.JSON), "REPRISE")
}

func TestPythonIsStopped(t *testing.T) {
	p := newPython(t)
	for name, code := range map[string]string{
		"loop":    "while True: pass",
		"sleep":   "import time\ntime.sleep(1000)",
		"regexp":  "import re\nre.match('(a+)+$', 'a' * 60 + 'b')",
		"signals": "import signal, time\nfor s in range(1, 65):\n  try: signal.signal(s, signal.SIG_IGN)\n  except (OSError, ValueError): pass\nwhile True:\n  try: time.sleep(1)\n  except BaseException: pass",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := allItems("print('before')\n" + code)
			c.Timeout = 2 * time.Second
			start := time.Now()
			got, err := p.RunPython(t.Context(), scopeOf(1, 1), c)
			var failed *expression.Error
			require.ErrorAs(t, err, &failed)
			require.Equal(t, "timeout", failed.Type)
			require.Equal(t, []string{"before"}, got.Logs)
			require.Less(t, time.Since(start), 12*time.Second)
		})
	}
}

func TestPythonIsCancelled(t *testing.T) {
	p := newPython(t)
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(100*time.Millisecond, cancel)
	start := time.Now()
	_, err := p.RunPython(ctx, scopeOf(1, 1), allItems("while True: pass"))
	require.ErrorIs(t, err, context.Canceled)
	require.Less(t, time.Since(start), 3*time.Second)
}

func TestNoInterpreter(t *testing.T) {
	_, err := NewPython(PythonConfig{Interpreter: "/nowhere/python3"})
	require.ErrorContains(t, err, "/nowhere/python3")
}
