package expression

import (
	"context"
	"strconv"
	"time"

	"github.com/reprise-engine/reprise/pkg/javascript"
)

// ScriptRunner runs prepared scripts: in this process (Scripts) or in another. It
// is safe for concurrent use.
type ScriptRunner interface {
	// RunScript returns what the script answers. Errors are those of
	// javascript.VM.CallAsync, or an *Error that is the script's failure. host is
	// called by one goroutine, and not after RunScript returned.
	RunScript(ctx context.Context, script PreparedScript, host javascript.Host) (reply string, err error)
}

// PreparedScript is a script as the VM's entry (code.js) takes it.
type PreparedScript struct {
	Source string
	// Item is the index of the item that the script runs on, AllItems or EachItem.
	Item int
	// Globals and Scope are JSON.
	Globals, Scope string
	Timeout        time.Duration
}

// Scripts runs scripts in this process, each in a VM of its own.
type Scripts struct {
	engine *javascript.Runtime // nil: the evaluator's
	image  *javascript.Image
}

var _ ScriptRunner = (*Scripts)(nil)

// NewScripts returns a runner with a JavaScript engine of its own, which is started
// by the first script or Warm. Of config it uses CodeMemoryBytes and JavaScript.
func NewScripts(config Config) *Scripts {
	engine := javascript.New(config.JavaScript)
	scripts := newScripts(engine, config)
	scripts.engine = engine
	return scripts
}

func newScripts(engine *javascript.Runtime, config Config) *Scripts {
	if config.CodeMemoryBytes == 0 {
		config.CodeMemoryBytes = defaultCodeMemoryBytes
	}
	return &Scripts{image: engine.NewImage(javascript.ImageConfig{
		Sources: append(sharedSources(), javascript.Source{Name: "web.js", Code: webSource},
			javascript.Source{Name: "helpers.js", Code: helpersSource},
			javascript.Source{Name: "code.js", Code: codeSource}),
		Entry:       "__entry",
		MemoryBytes: config.CodeMemoryBytes,
	})}
}

// Warm starts the engine, so that the first script need not wait for it.
func (s *Scripts) Warm(ctx context.Context) error {
	vm, _, err := s.image.Acquire(ctx, nil)
	if err == nil {
		s.image.Release(vm)
	}
	return err
}

// RunScript implements ScriptRunner.
func (s *Scripts) RunScript(ctx context.Context, script PreparedScript, host javascript.Host) (string, error) {
	vm, _, err := s.image.Acquire(ctx, nil)
	if err != nil {
		return "", err
	}
	defer s.image.Release(vm)
	return vm.CallAsync(ctx, script.Timeout, host, script.Source, strconv.Itoa(script.Item), script.Globals, script.Scope)
}

// Close frees the engine that NewScripts made. Nothing may be running.
func (s *Scripts) Close() error {
	if s.engine == nil {
		return nil
	}
	return s.engine.Close()
}
