package service

import (
	"fmt"
	"time"

	"github.com/spf13/pflag"
	"go.uber.org/zap"

	"github.com/reprise-engine/reprise/internal/config"
	"github.com/reprise-engine/reprise/internal/isolation"
	"github.com/reprise-engine/reprise/internal/runner"
	"github.com/reprise-engine/reprise/pkg/expression"
)

// Code are the settings of what runs the code of Code nodes.
type Code struct {
	CodeIsolation string        `env:"REPRISE_CODE_ISOLATION" envDefault:"process" help:"where the JavaScript of Code nodes runs: process, in processes of its own, or none, in the worker's"`
	CodeProcesses int           `env:"REPRISE_CODE_PROCESSES" envDefault:"0" help:"how many processes run the code of Code nodes at most; 0 is four, or twice the processors if that is more"`
	CodeTimeout   time.Duration `env:"REPRISE_CODE_TIMEOUT" envDefault:"1m" help:"how long the code of a Code node may run"`
	CodeMemory    int           `env:"REPRISE_CODE_MEMORY_BYTES" envDefault:"268435456" help:"how much memory the code of a Code node may take, 16 MB to 768 MB"`
	Python        string        `env:"REPRISE_PYTHON" envDefault:"off" help:"Python in Code nodes: off, on (the python3 on the PATH), or the path of a python3"`
}

// CodeSettings are those of the environment, for programs that have no flags for them.
func CodeSettings() (Code, error) {
	var c Code
	return c, config.Bind(pflag.NewFlagSet("", pflag.ContinueOnError), &c)
}

// What Code.CodeIsolation may be.
const (
	isolationProcess = "process"
	isolationNone    = "none"
)

// The least and the most that a script may be allowed to allocate: its engine needs some,
// and addresses 1 GB.
const minCodeMemory, maxCodeMemory = 16 << 20, 768 << 20

// codeRunners are what runs the code of Code nodes.
type codeRunners struct {
	evaluator expression.Config
	python    runner.PythonRunner // nil: refused
	pool      *isolation.Pool     // nil: scripts run in this process
}

// openCode reads the settings of Code nodes. Nothing is started, but Python is tried when it is on.
func openCode(s Code, log *zap.Logger) (*codeRunners, error) {
	if s.CodeMemory < minCodeMemory || s.CodeMemory > maxCodeMemory {
		return nil, fmt.Errorf("REPRISE_CODE_MEMORY_BYTES is %d; use %d to %d", s.CodeMemory, minCodeMemory, maxCodeMemory)
	}
	if s.CodeTimeout <= 0 {
		return nil, fmt.Errorf("REPRISE_CODE_TIMEOUT is %s; use a duration such as 1m", s.CodeTimeout)
	}
	r := &codeRunners{evaluator: expression.Config{CodeTimeout: s.CodeTimeout, CodeMemoryBytes: uint64(s.CodeMemory)}}
	switch {
	case s.CodeIsolation == isolationNone:
	case s.CodeIsolation != isolationProcess:
		return nil, fmt.Errorf("REPRISE_CODE_ISOLATION is %q; use %s or %s", s.CodeIsolation, isolationProcess, isolationNone)
	case !isolation.Prepared():
		// Our programs are; others that embed a worker, and tests, may not be.
		log.Info("the code of Code nodes runs in this process: its main function does not call isolation.Main")
	default:
		pool, err := isolation.NewPool(isolation.Config{Processes: s.CodeProcesses, MemoryBytes: uint64(s.CodeMemory), Log: log})
		if err != nil {
			return nil, err
		}
		r.pool, r.evaluator.Scripts = pool, pool
	}
	if err := r.openPython(s, log); err != nil {
		return nil, err
	}
	return r, nil
}

// openPython finds the interpreter, when Python is allowed.
func (r *codeRunners) openPython(s Code, log *zap.Logger) error {
	if s.Python == "off" {
		return nil
	}
	path := s.Python
	if path == "on" {
		path = ""
	}
	python, err := isolation.NewPython(isolation.PythonConfig{
		Interpreter: path, Processes: s.CodeProcesses, Timeout: s.CodeTimeout, MemoryBytes: uint64(s.CodeMemory), Log: log,
	})
	if err != nil {
		return fmt.Errorf("REPRISE_PYTHON is %q: %w", s.Python, err)
	}
	log.Info("Code nodes may run Python", zap.String("interpreter", python.Interpreter()))
	r.python = python
	return nil
}

func (r *codeRunners) close() {
	if r.pool != nil {
		r.pool.Close()
	}
}
