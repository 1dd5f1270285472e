// Package coordinator is the service that owns executions: it applies events
// to the engine's state machine, commits, publishes jobs, and answers.
//
// It is stateless: any number of coordinators may run, and any of them may
// take any event. What it keeps in memory is a cache; two coordinators that act
// on one execution meet at the version check of the commit, and the loser loads
// the execution again and applies its event again.
//
// Events of different executions are handled in groups by a few lanes (an
// execution always goes to the same lane): a lane takes what has queued up,
// applies it, commits all of it in one round trip, publishes all jobs, then
// acknowledges and answers.
package coordinator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"go.uber.org/zap"

	"github.com/reprise-engine/reprise/internal/runner"
	"github.com/reprise-engine/reprise/internal/telemetry"
	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/expression"
	"github.com/reprise-engine/reprise/pkg/node"
	"github.com/reprise-engine/reprise/pkg/state"
	"github.com/reprise-engine/reprise/pkg/table"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// Store is what the coordinator needs of pkg/state.
type Store interface {
	Commit(ctx context.Context, commits []state.Commit) []error
	Load(ctx context.Context, ids []engine.ExecutionID) ([]*state.Stored, error)
	LoadOpen(ctx context.Context, ids []engine.ExecutionID) ([]*state.Stored, error)
	Settle(ctx context.Context, ids []engine.ExecutionID) error
	Questions(ctx context.Context, limit int, cursor string) ([]state.Asked, string, error)
	PutWorkflow(ctx context.Context, hash string, document []byte) error
	Workflow(ctx context.Context, hash string) ([]byte, error)
	UpdateNamedWorkflow(ctx context.Context, id string, change func(*state.WorkflowRecord, bool) error) (state.WorkflowRecord, error)
	NamedWorkflow(ctx context.Context, id string) (state.WorkflowRecord, error)
	NamedWorkflows(ctx context.Context) ([]state.WorkflowRecord, error)
	DeleteNamedWorkflow(ctx context.Context, id string) error
	AppendMemory(ctx context.Context, session, id string, messages []json.RawMessage) error
	Memory(ctx context.Context, session string, n int) ([]json.RawMessage, error)
	ApplyTable(ctx context.Context, r *table.Request) (*table.Answer, error)
	List(ctx context.Context, f state.Filter) ([]state.Summary, string, error)
	ClaimTimers(ctx context.Context, now, claimUntil int64, limit int) ([]state.Due, error)
	DropTimers(ctx context.Context, due []state.Due) error
	ClaimStale(ctx context.Context, now, next int64, limit int) ([]engine.ExecutionID, error)
	Prune(ctx context.Context, before int64) (int, error)
	Retention() time.Duration
	Ping(ctx context.Context) error
}

// Links makes the URLs under which people and other systems reach an execution.
type Links interface {
	// ResumeURL ends a wait for a webhook; link is the number of the job it was made in.
	ResumeURL(execution engine.ExecutionID, link int) string
	// ResumeFormURL does so with a form, FormURL goes on with that of the person who began it.
	ResumeFormURL(execution engine.ExecutionID, link int) string
	FormURL(execution engine.ExecutionID) string
	// ApprovalURL shows and decides a question; bind is links.Bind of what it is about.
	ApprovalURL(token, bind string) string
}

// Config of a coordinator. Store, Transport and Registry are required.
type Config struct {
	// ID names this process in subjects; empty draws one.
	ID        string
	Store     Store
	Transport Transport
	Registry  *node.Registry
	Evaluator *expression.Evaluator
	Log       *zap.Logger
	// Links is nil when there is no public URL: then nodes are not told any.
	Links Links
	// Limits of all executions; zero fields are the engine's defaults.
	Limits engine.Limits
	// Gates bound the unfinished executions of each workflow: as many as its settings say, else
	// WorkflowConcurrency (0 is any number). nil: no limits.
	Gates               Gates
	WorkflowConcurrency int
	// Files are removed when their execution is kept no longer, which Kept tells (state.Store.Kept). Both
	// or neither are there; without them no files are removed.
	Files Files
	Kept  func(ctx context.Context, ids []engine.ExecutionID) ([]bool, error)
	// StuckAfter is how long a running execution may stand still before the log names it (default 15
	// min). Without Gates none is named.
	StuckAfter time.Duration
	// Version of the program, shown in the micro service; empty is 0.0.0.
	Version string
	Now     func() time.Time // nil: time.Now
	// Telemetry is told what happens; nil is nobody.
	Telemetry *telemetry.Coordinator

	// Lanes is the number of groups that are handled at once (default 4), Group
	// the greatest number of events one takes together (default 64).
	Lanes, Group int
	// DeliveryLimit is how often a job is given to a worker before it is given up
	// (default 3).
	DeliveryLimit int
	// SweepAfter is how long an execution that has jobs, or owes others something,
	// may be without any event before that is done again (default DefaultSweepAfter). From then on it
	// is done half as often.
	SweepAfter time.Duration
	// TimerInterval is how often timers are looked at (default 200 ms).
	TimerInterval time.Duration
	// MaxBacklog is how many jobs may be held back before new executions are refused
	// (default 20,000), MaxBacklogBytes how much data they may carry (default 256 MB);
	// MaxSubmissionBytes is the greatest size of a submission (default 16 MB).
	MaxBacklog, MaxBacklogBytes, MaxSubmissionBytes int
	// CacheBytes is how much run data of executions is kept in memory between their events (default
	// 256 MB).
	CacheBytes int
	// CheckTriggers says what keeps a workflow from being active, its triggers from being
	// hosted; nil allows any.
	CheckTriggers func(ctx context.Context, id string, w *workflow.Workflow) error
	// OnLive is told what executions do, in order per execution; it must not block.
	OnLive func(engine.ExecutionID, []engine.Live)
}

// DefaultSweepAfter is Config.SweepAfter when none is given.
const DefaultSweepAfter = 5 * time.Second

// maxInline bounds the nodes the coordinator runs itself for one event, so
// that a loop of cheap nodes cannot hold up a lane; what is left goes to workers.
const maxInline = 256

// Coordinator is the service. Create it with New, run it with Start and Stop.
type Coordinator struct {
	config     Config
	runner     *runner.Runner
	programs   programCache // by the workflow's hash
	documents  programCache // by the bytes that were submitted
	lanes      []*lane
	dispatch   *dispatcher
	gatekeeper gatekeeper
	log        *zap.Logger

	ctx      context.Context // ends when Stop gives up waiting
	cancel   context.CancelFunc
	stopping chan struct{}
	wg       sync.WaitGroup
	stops    []func()

	mu       sync.RWMutex // guards draining
	draining bool
	handing  sync.WaitGroup // work that is being handed in; none is added while draining

	started, finished atomic.Uint64 // executions, since New
}

// New returns a coordinator that is not started.
func New(c Config) (*Coordinator, error) {
	switch {
	case c.Store == nil:
		return nil, errors.New("coordinator: Config.Store is missing")
	case c.Transport == nil:
		return nil, errors.New("coordinator: Config.Transport is missing")
	case c.Registry == nil:
		return nil, errors.New("coordinator: Config.Registry is missing")
	case (c.Files == nil) != (c.Kept == nil):
		return nil, errors.New("coordinator: Config.Files and Config.Kept belong together")
	}
	if c.ID == "" {
		c.ID = uuid.NewString()
	}
	if c.Version == "" {
		c.Version = "0.0.0"
	}
	if c.Log == nil {
		c.Log = zap.NewNop()
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	defaultInt(&c.Lanes, 4)
	defaultInt(&c.Group, 64)
	defaultInt(&c.DeliveryLimit, 3)
	defaultInt(&c.MaxBacklog, 20_000)
	defaultInt(&c.MaxBacklogBytes, 256<<20)
	defaultInt(&c.MaxSubmissionBytes, 16<<20)
	defaultInt(&c.CacheBytes, 256<<20)
	if c.SweepAfter <= 0 {
		c.SweepAfter = DefaultSweepAfter
	}
	if c.StuckAfter <= 0 {
		c.StuckAfter = 15 * time.Minute
	}
	if c.TimerInterval <= 0 {
		c.TimerInterval = 200 * time.Millisecond
	}
	log := c.Log.Named("coordinator").With(zap.String("coordinator", c.ID))
	co := &Coordinator{
		config: c, log: log,
		runner: runner.New(runner.Config{Registry: c.Registry, Evaluator: c.Evaluator, Log: log, Now: c.Now}),
	}
	co.stopping = make(chan struct{})
	co.ctx, co.cancel = context.WithCancel(context.Background())
	co.dispatch = newDispatcher(c.ID, c.SweepAfter.Milliseconds(), co.now)
	for range c.Lanes {
		co.lanes = append(co.lanes, newLane(co))
	}
	return co, nil
}

func defaultInt(v *int, fallback int) {
	if *v <= 0 {
		*v = fallback
	}
}

// ID is the coordinator's name in subjects.
func (c *Coordinator) ID() string { return c.config.ID }

// Start subscribes to everything and returns. ctx bounds the start only.
func (c *Coordinator) Start(ctx context.Context) error {
	for _, l := range c.lanes {
		c.wg.Go(l.run)
	}
	if err := c.serve(ctx); err != nil {
		c.Stop(context.Background())
		return fmt.Errorf("start coordinator: %w", err)
	}
	c.wg.Go(c.dispatchLoop)
	c.wg.Go(c.timerLoop)
	c.wg.Go(c.sweepLoop)
	c.wg.Go(c.pruneLoop)
	if c.config.Gates != nil {
		c.wg.Go(c.gateSweep)
		c.wg.Go(c.watch)
	}
	if c.config.Files != nil {
		c.wg.Go(c.sweepFilesLoop)
	}
	c.log.Info("coordinator started")
	return nil
}

// Stop takes no new events, finishes those it has taken, and returns; when ctx
// ends first it drops them, which loses nothing: their senders repeat them. A
// second call is harmless.
func (c *Coordinator) Stop(ctx context.Context) {
	c.mu.Lock()
	first := !c.draining
	c.draining = true
	c.mu.Unlock()
	if first {
		close(c.stopping)
		for i := len(c.stops) - 1; i >= 0; i-- {
			c.stops[i]()
		}
		c.handing.Wait() // their lanes still take it
		for _, l := range c.lanes {
			close(l.work)
		}
	}
	defer context.AfterFunc(ctx, c.cancel)()
	done := make(chan struct{})
	go func() { c.wg.Wait(); close(done) }()
	<-done
	if first {
		c.handOver(c.ctx)
	}
	c.cancel()
}

// Healthy returns nil when Redis and NATS can be used.
func (c *Coordinator) Healthy(ctx context.Context) error {
	if err := c.config.Store.Ping(ctx); err != nil {
		return fmt.Errorf("redis: %w", err)
	}
	if err := c.config.Transport.Healthy(); err != nil {
		return fmt.Errorf("nats: %w", err)
	}
	return nil
}

// errStopping is the answer to work that comes after Stop.
var errStopping = errors.New("coordinator is stopping")

// hand gives work to the lane of its execution. Its finish is always called,
// from another goroutine.
func (c *Coordinator) hand(w *work) {
	c.mu.RLock()
	draining := c.draining
	if !draining {
		c.handing.Add(1)
	}
	c.mu.RUnlock()
	if draining {
		go w.finish(errStopping)
		return
	}
	defer c.handing.Done()
	w.at = c.now()
	c.laneOf(w.id).work <- w
}

func (c *Coordinator) now() int64 { return c.config.Now().UnixMilli() }
