package expression

import (
	_ "embed" // the scripts of the VMs
	"time"

	"github.com/reprise-engine/reprise/pkg/javascript"
)

//go:embed assets/jmespath.js
var jmespathSource string

//go:embed globals.js
var globalsSource string

//go:embed extensions.js
var extensionsSource string

//go:embed expression.js
var expressionSource string

//go:embed web.js
var webSource string

//go:embed helpers.js
var helpersSource string

//go:embed code.js
var codeSource string

// Config of an Evaluator. The zero value is usable.
type Config struct {
	// ExpressionTimeout ends an expression; 0 is two seconds.
	ExpressionTimeout time.Duration
	// CodeTimeout ends the script of a Code node that sets none; 0 is one minute.
	CodeTimeout time.Duration
	// ExpressionMemoryBytes and CodeMemoryBytes bound what an expression or script
	// may allocate; 0 is 64 MB and 256 MB.
	ExpressionMemoryBytes, CodeMemoryBytes uint64
	// JavaScript configures the engine.
	JavaScript javascript.Config
	// Scripts runs the scripts of Code nodes; nil runs them in this process. It is not
	// closed with the evaluator.
	Scripts ScriptRunner
}

const (
	defaultCodeTimeout     = time.Minute
	defaultCodeMemoryBytes = 256 << 20
)

// Evaluator evaluates expressions and runs scripts. It is safe for concurrent
// use. The JavaScript engine is started by the first expression or script that
// needs it. The zero value evaluates what needs none.
type Evaluator struct {
	config Config

	engine      *javascript.Runtime
	expressions *javascript.Image
	scripts     ScriptRunner
}

// New returns an evaluator with the default limits.
func New() (*Evaluator, error) { return NewWithConfig(Config{}) }

// NewWithConfig returns an evaluator.
func NewWithConfig(config Config) (*Evaluator, error) {
	if config.ExpressionTimeout <= 0 {
		config.ExpressionTimeout = 2 * time.Second
	}
	if config.CodeTimeout <= 0 {
		config.CodeTimeout = defaultCodeTimeout
	}
	if config.ExpressionMemoryBytes == 0 {
		config.ExpressionMemoryBytes = 64 << 20
	}
	e := &Evaluator{config: config, engine: javascript.New(config.JavaScript)}
	e.expressions = e.engine.NewImage(javascript.ImageConfig{
		Sources: append(sharedSources(), javascript.Source{Name: "extensions.js", Code: extensionsSource},
			javascript.Source{Name: "expression.js", Code: expressionSource}),
		Entry:       "__entry",
		MemoryBytes: config.ExpressionMemoryBytes,
	})
	if e.scripts = config.Scripts; e.scripts == nil {
		e.scripts = newScripts(e.engine, config)
	}
	return e, nil
}

// sharedSources are evaluated first in the VMs of expressions and of scripts.
func sharedSources() []javascript.Source {
	return []javascript.Source{{Name: "jmespath.js", Code: jmespathSource}, {Name: "globals.js", Code: globalsSource}}
}

// Close frees the JavaScript engine. Nothing may be running.
func (e *Evaluator) Close() error {
	if e.engine == nil {
		return nil
	}
	return e.engine.Close()
}
