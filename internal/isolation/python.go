package isolation

import (
	"context"
	_ "embed" // what Python runs
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/reprise-engine/reprise/pkg/expression"
	"github.com/reprise-engine/reprise/pkg/javascript"
)

//go:embed python.py
var pythonSource string

// PythonConfig of a Python.
type PythonConfig struct {
	// Interpreter is a name or path of a python3; "" is the one on the PATH.
	Interpreter string
	// Processes is the most scripts that run at once; 0 as in Config.
	Processes int
	// Timeout ends scripts that set none; 0 is one minute.
	Timeout time.Duration
	// MemoryBytes bounds what a script may allocate; 0 is 256 MB.
	MemoryBytes uint64
	Log         *zap.Logger // nil: none
}

// Python runs scripts in python3, each in a process of its own that ends with it. It has
// the standard library and no other module, an empty environment, and of the file system what
// the interpreter needs for reading and an empty directory of its own for writing. It cannot open
// connections, start processes or look into others. It is safe for concurrent use.
type Python struct {
	config   PythonConfig
	log      *zap.Logger
	program  string   // the interpreter itself, whatever led to it
	readable []string // what it may read
	slots    chan struct{}
	remark   sync.Once
}

var _ expression.ScriptRunner = (*Python)(nil)

const (
	// pythonBytes is what the interpreter itself takes of its address space.
	pythonBytes = 192 << 20
	// maxTempFileBytes is the greatest file that a script may write.
	maxTempFileBytes = 16 << 20
	// probeTime bounds what is asked of the interpreter before it is used.
	probeTime = 30 * time.Second
)

// NewPython looks for the interpreter and tries it. It returns an error when there is none, or when
// this system cannot keep its scripts away from the files of this process.
func NewPython(config PythonConfig) (*Python, error) {
	if !Prepared() {
		return nil, ErrNotPrepared
	}
	if err := pythonPossible(); err != nil {
		return nil, err
	}
	if config.Processes <= 0 {
		config.Processes = max(4, 2*runtime.GOMAXPROCS(0))
	}
	if config.MemoryBytes == 0 {
		config.MemoryBytes = 256 << 20
	}
	if config.Timeout <= 0 {
		config.Timeout = time.Minute
	}
	if config.Interpreter == "" {
		config.Interpreter = "python3"
	}
	if config.Log == nil {
		config.Log = zap.NewNop()
	}
	p := &Python{config: config, log: config.Log.Named("isolation"), slots: make(chan struct{}, config.Processes)}
	if err := p.probe(); err != nil {
		return nil, err
	}
	return p, p.try()
}

// Interpreter is the path of the program that runs scripts.
func (p *Python) Interpreter() string { return p.program }

// probe asks the interpreter where it and its library are: what is on the PATH may be a script
// that looks for it.
func (p *Python) probe() error {
	ctx, cancel := context.WithTimeout(context.Background(), probeTime)
	defer cancel()
	const question = "import sys, json; print(json.dumps([sys.executable, sys.base_prefix, list(sys.version_info[:2]), sys.path]))"
	text, err := exec.CommandContext(ctx, p.config.Interpreter, "-I", "-S", "-c", question).Output()
	if err != nil {
		return fmt.Errorf("ask %s for its version: %w", p.config.Interpreter, err)
	}
	var answer [4]json.RawMessage
	var executable, prefix string
	var version [2]int
	var path []string
	err = json.Unmarshal(text, &answer)
	for i, part := range []any{&executable, &prefix, &version, &path} {
		err = errors.Join(err, json.Unmarshal(answer[i], part))
	}
	if err != nil {
		return fmt.Errorf("ask %s for its version: %.100q: %w", p.config.Interpreter, text, err)
	}
	if version[0] != 3 || version[1] < 8 {
		return fmt.Errorf("%s is Python %d.%d; use 3.8 or later", executable, version[0], version[1])
	}
	if p.program, err = filepath.EvalSymlinks(executable); err != nil {
		return fmt.Errorf("find Python: %w", err)
	}
	p.readable = append(path, p.program, filepath.Join(prefix, "lib"),
		"/lib", "/lib32", "/lib64", "/usr/lib", "/usr/lib32", "/usr/lib64", "/usr/local/lib", "/nix/store",
		"/etc/ld.so.cache", "/etc/localtime", "/usr/share/zoneinfo", "/dev/null", "/dev/zero", "/dev/urandom")
	p.readable = slices.DeleteFunc(p.readable, func(path string) bool { return !filepath.IsAbs(path) })
	return nil
}

// try runs a script, so that what is wrong with the interpreter is known before the first job.
func (p *Python) try() error {
	reply, err := p.RunScript(context.Background(), expression.PreparedScript{
		Source: "return []", Item: expression.AllItems, Globals: "{}", Scope: "{}", Timeout: probeTime,
	}, func(op, _ string) (string, bool, error) { return "", false, fmt.Errorf("unexpected question %s", op) })
	if err == nil && reply != "varray []" {
		err = fmt.Errorf("it answers %.200q", reply)
	}
	if err != nil {
		var failed *expression.Error
		if errors.As(err, &failed) {
			err = errors.New(failed.Description)
		}
		return fmt.Errorf("try %s in isolation: %w", p.program, err)
	}
	return nil
}

// RunPython runs the code of a Code node. Errors and results are those of
// expression.Evaluator.RunCode.
func (p *Python) RunPython(ctx context.Context, scope *expression.Scope, code expression.Code) (expression.CodeResult, error) {
	if code.Timeout <= 0 {
		code.Timeout = p.config.Timeout
	}
	return expression.RunCodeWith(ctx, p, scope, code)
}

// RunScript implements expression.ScriptRunner.
func (p *Python) RunScript(ctx context.Context, script expression.PreparedScript, host javascript.Host) (string, error) {
	select {
	case p.slots <- struct{}{}:
		defer func() { <-p.slots }()
	case <-ctx.Done():
		return "", ctx.Err()
	}
	temp, err := os.MkdirTemp("", "reprise-python-")
	if err != nil {
		return "", fmt.Errorf("make a directory for a script: %w", err)
	}
	defer func() {
		if err := os.RemoveAll(temp); err != nil {
			p.log.Warn("the directory of a script cannot be removed", zap.Error(err))
		}
	}()
	c, err := startChild(ctx, start{
		args: []string{
			"reprise-python", p.program, temp, strconv.FormatUint(p.config.MemoryBytes+pythonBytes, 10),
			strconv.FormatInt(int64(cpuTime(script.Timeout)/time.Second), 10), strings.Join(p.readable, string(os.PathListSeparator)),
		},
		env: []string{childEnv + "=" + childPython, "GOMAXPROCS=1"}, memory: p.config.MemoryBytes,
	})
	if err != nil {
		return "", fmt.Errorf("start Python: %w", err)
	}
	defer c.stop()
	if c.missing != "" {
		p.remark.Do(func() {
			p.log.Warn("the Python of Code nodes is less isolated than it could be", zap.String("missing", c.missing))
		})
	}
	return c.run(ctx, script, host)
}
