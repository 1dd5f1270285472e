package isolation

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/reprise-engine/reprise/pkg/expression"
	"github.com/reprise-engine/reprise/pkg/javascript"
)

// Config of a Pool. The zero value is usable.
type Config struct {
	// Processes is the most children that run at once; scripts beyond it wait. 0 is four,
	// or twice the processors if that is more: a script that waits for an answer keeps its child.
	Processes int
	// MemoryBytes bounds what a script may allocate; 0 is 256 MB. A child may take some
	// more, see dataBytes.
	MemoryBytes uint64
	// CacheDir keeps the machine code of the JavaScript engine, as in javascript.Config.
	CacheDir string
	Log      *zap.Logger // nil: none

	grace time.Duration // for tests; 0 is graceTime
}

// Pool runs scripts in children. It is safe for concurrent use.
type Pool struct {
	config Config
	log    *zap.Logger
	slots  chan struct{}

	ctx      context.Context // of children that start in the background
	cancel   context.CancelFunc
	starting sync.WaitGroup
	remark   sync.Once

	mu     sync.Mutex
	idle   []*child
	closed bool
}

var _ expression.ScriptRunner = (*Pool)(nil)

// ErrClosed is returned by a pool that was closed.
var ErrClosed = errors.New("isolation: the pool is closed")

// ErrNotPrepared is returned by NewPool in a program that did not call Main.
var ErrNotPrepared = errors.New("isolation: this program cannot run itself again to isolate code (its main function does not call isolation.Main)")

// Prepared reports whether this program called Main, so that NewPool works.
func Prepared() bool { return prepared.Load() }

// NewPool returns a pool without children; the first script, or Warm, starts one.
func NewPool(config Config) (*Pool, error) {
	if !prepared.Load() {
		return nil, ErrNotPrepared
	}
	if config.Processes <= 0 {
		config.Processes = max(4, 2*runtime.GOMAXPROCS(0))
	}
	if config.MemoryBytes == 0 {
		config.MemoryBytes = 256 << 20
	}
	if config.Log == nil {
		config.Log = zap.NewNop()
	}
	if config.grace == 0 {
		config.grace = graceTime
	}
	p := &Pool{config: config, log: config.Log.Named("isolation"), slots: make(chan struct{}, config.Processes)}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	return p, nil
}

// Warm starts a child in the background unless one is idle, so that the next script need
// not wait for it.
func (p *Pool) Warm() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || len(p.idle) > 0 {
		return
	}
	p.starting.Go(func() {
		c, err := p.start(p.ctx)
		if p.ctx.Err() != nil && err != nil {
			return
		}
		if err != nil {
			p.log.Warn("no process for the code of Code nodes can be started", zap.Error(err))
			return
		}
		p.keep(c)
	})
}

// RunScript implements expression.ScriptRunner.
func (p *Pool) RunScript(ctx context.Context, script expression.PreparedScript, host javascript.Host) (string, error) {
	select {
	case p.slots <- struct{}{}:
		defer func() { <-p.slots }()
	case <-ctx.Done():
		return "", ctx.Err()
	}
	c, err := p.take(ctx)
	if err != nil {
		return "", err
	}
	reply, err := c.run(ctx, script, host)
	if c.usable() {
		p.keep(c)
		return reply, err
	}
	c.stop()
	if ctx.Err() == nil && !c.overdue.Load() {
		p.log.Warn("a process that ran the code of a Code node is gone", zap.Int("pid", c.pid()), zap.Error(err))
	}
	p.Warm()
	return reply, err
}

// take returns an idle child, or a new one.
func (p *Pool) take(ctx context.Context) (*child, error) {
	for {
		p.mu.Lock()
		if p.closed {
			p.mu.Unlock()
			return nil, ErrClosed
		}
		n := len(p.idle)
		if n == 0 {
			p.mu.Unlock()
			break
		}
		c := p.idle[n-1]
		p.idle = p.idle[:n-1]
		p.mu.Unlock()
		if c.usable() {
			return c, nil
		}
		c.stop()
	}
	c, err := p.start(ctx)
	if err != nil {
		return nil, fmt.Errorf("start a process for a script: %w", err)
	}
	return c, nil
}

// start starts a child and says, once, what it lacks.
func (p *Pool) start(ctx context.Context) (*child, error) {
	c, err := startChild(ctx, start{
		args: []string{"reprise-code"}, memory: p.config.MemoryBytes, grace: p.config.grace,
		env: []string{
			childEnv + "=" + childScript, memoryEnv + "=" + strconv.FormatUint(p.config.MemoryBytes, 10), cacheEnv + "=" + cacheDir(p.config),
			// The second processor is for the collector, and notices that the parent is gone.
			"GOMAXPROCS=2", "GOGC=400", "GOMEMLIMIT=" + strconv.Itoa(softHeapBytes), "GOTRACEBACK=none",
		},
	})
	if err == nil && c.missing != "" {
		p.remark.Do(func() {
			p.log.Warn("the processes of Code nodes are less isolated than they could be", zap.String("missing", c.missing))
		})
	}
	return c, err
}

// keep makes a child idle.
func (p *Pool) keep(c *child) {
	p.mu.Lock()
	full := p.closed || len(p.idle) >= p.config.Processes
	if !full {
		p.idle = append(p.idle, c)
	}
	p.mu.Unlock()
	if full {
		c.stop()
	}
}

// Close ends all children. Nothing may be running. A second call is harmless.
func (p *Pool) Close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.cancel()
	p.starting.Wait()
	p.mu.Lock()
	idle := p.idle
	p.idle = nil
	p.mu.Unlock()
	for _, c := range idle {
		c.stop()
	}
}
