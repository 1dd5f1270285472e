package trigger

import (
	"context"
	"encoding/json"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"go.uber.org/zap"

	"github.com/reprise-engine/reprise/internal/callers"
	"github.com/reprise-engine/reprise/internal/links"
	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/node"
	"github.com/reprise-engine/reprise/pkg/queue"
	"github.com/reprise-engine/reprise/pkg/state"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// Backend asks the coordinators. Refusals are *queue.Problem.
type Backend interface {
	Submit(ctx context.Context, s *queue.Submission) (engine.ExecutionID, error)
	WaitResponse(ctx context.Context, id engine.ExecutionID, a queue.Awaited) (*queue.ResponseAnswer, error)
	Resume(ctx context.Context, r queue.ResumeRequest) (*queue.ResumeAnswer, error)
}

var _ Backend = (*queue.Conn)(nil)

// Store is where active workflows are found.
type Store interface {
	WorkflowsRevision(ctx context.Context) (int64, error)
	NamedWorkflows(ctx context.Context) ([]state.WorkflowRecord, error)
	Workflow(ctx context.Context, hash string) ([]byte, error)
	// TakeSlot and Begun keep the polls of a trigger apart, see state.Store.
	TakeSlot(ctx context.Context, trigger string, change func(state.Slot) (state.Slot, bool, error)) (state.Slot, error)
	Begun(ctx context.Context, id engine.ExecutionID, first string) (stored, over bool, err error)
	// Memory returns the last n messages of a conversation, all of them for 0.
	Memory(ctx context.Context, session string, n int) ([]json.RawMessage, error)
	// Lease and Release have one process at a time read a stream.
	Lease(ctx context.Context, name, holder string, length time.Duration, note *string) (state.Lease, error)
	Release(ctx context.Context, name, holder string) error
}

var _ Store = (*state.Store)(nil)

// Config of a Host. Backend and Store must be set.
type Config struct {
	Backend   Backend
	Store     Store
	Evaluator Evaluator     // nil: parameters that are expressions are refused
	Signer    *links.Signer // of the pages of forms that wait; nil serves none
	// HTTP reads the streams of SSE triggers, which it may not bound in time; nil is one that reaches everything.
	HTTP *http.Client
	// Credentials of callers; nil refuses calls of triggers and waits that ask for any.
	Credentials callers.Credentials
	Files       node.FileStore   // keeps what callers send; nil keeps it in the items
	Log         *zap.Logger      // nil means none
	Now         func() time.Time // nil is time.Now
	// MaxBody is the most bytes that a call may send (default 16 MB), MaxWait how long it waits
	// for its answer (default 5 minutes).
	MaxBody int64
	MaxWait time.Duration
	// Rate limits the calls of one trigger, RatePerIP those from one address; per process, zero is no
	// limit.
	Rate, RatePerIP workflow.Rate
	// Proxies are those whose X-Forwarded-For is believed.
	Proxies []netip.Prefix
	// MissedWindow is how late a moment of a schedule may be submitted that was missed.
	MissedWindow time.Duration
	// Refresh is how often the revision of the workflows is looked at (default 1 s); all of
	// them are read every 30 times.
	Refresh time.Duration
}

// Host serves the triggers of all active workflows.
type Host struct {
	Config
	log   *zap.Logger
	table atomic.Pointer[table]
	clock scheduler
	flows streams
	known map[string]*compiled // by hash; of the refresh loop
	ips   *limiter
	hooks *limiter

	cancel context.CancelFunc
	wg     sync.WaitGroup
}

// compiled is what was read from one document.
type compiled struct {
	workflow *workflow.Workflow
	bad      bool // it was told to the log
}

// New returns a Host that is not started.
func New(c Config) *Host {
	if c.Log == nil {
		c.Log = zap.NewNop()
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.MaxBody <= 0 {
		c.MaxBody = 16 << 20
	}
	if c.MaxWait <= 0 {
		c.MaxWait = 5 * time.Minute
	}
	if c.Refresh <= 0 {
		c.Refresh = time.Second
	}
	h := &Host{Config: c, log: c.Log.Named("trigger"), known: map[string]*compiled{}, ips: newLimiter(c.RatePerIP), hooks: newLimiter(c.Rate)}
	if h.HTTP == nil {
		h.HTTP = &http.Client{}
	}
	h.clock.init(h)
	h.flows.host, h.flows.holder = h, uuid.NewString()
	empty, _ := newTable(nil)
	h.table.Store(empty)
	return h
}

// Start reads the active workflows and follows their changes, until Stop.
func (h *Host) Start() {
	ctx, cancel := context.WithCancel(context.Background())
	h.cancel = cancel
	h.flows.start(ctx)
	h.wg.Go(func() { h.follow(ctx) })
	h.wg.Go(func() { h.clock.run(ctx) })
}

// Stop ends what Start began. Calls that are answered go on; their server ends them.
func (h *Host) Stop() {
	if h.cancel != nil {
		h.cancel()
	}
	h.wg.Wait()
	h.flows.wg.Wait()
}

// fullLook is after how many looks all workflows are read although nothing seems changed.
const fullLook = 30

func (h *Host) follow(ctx context.Context) {
	ticker := time.NewTicker(h.Refresh)
	defer ticker.Stop()
	last, looks, failing := int64(-1), 0, false
	for {
		revision, err := h.Store.WorkflowsRevision(ctx)
		if err == nil && (revision != last || looks >= fullLook) {
			if err = h.refresh(ctx); err == nil {
				last, looks = revision, 0
			}
		}
		looks++
		if err != nil && ctx.Err() == nil && !failing {
			h.log.Warn("active workflows cannot be read; those that are known go on", zap.Error(err))
		}
		failing = err != nil
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

// refresh makes the table of what is active now.
func (h *Host) refresh(ctx context.Context) error {
	records, err := h.Store.NamedWorkflows(ctx)
	if err != nil {
		return err
	}
	var hooks []*hook
	var schedules []*schedule
	var streams []*stream
	known := map[string]*compiled{}
	for _, r := range records {
		if !r.Active {
			continue
		}
		c, err := h.compiled(ctx, r)
		if err != nil {
			return err
		}
		known[r.Hash] = c
		if c.workflow == nil {
			continue
		}
		s := &source{id: r.ID, hash: r.Hash, activatedAt: r.ActivatedAt, changedAt: max(r.ActivatedAt, r.UpdatedAt), workflow: c.workflow}
		its, err := hooksOf(ctx, h.Evaluator, s)
		if err == nil {
			var times []*schedule
			times, err = schedulesOf(ctx, h.Evaluator, s)
			schedules = append(schedules, times...)
		}
		if err == nil {
			var its []*stream
			its, err = streamsOf(ctx, h.Evaluator, s)
			streams = append(streams, its...)
		}
		if err != nil && !c.bad {
			h.log.Warn("triggers of an active workflow cannot be hosted", zap.String("workflow_id", r.ID), zap.Error(err))
		}
		c.bad = err != nil
		if err == nil {
			hooks = append(hooks, its...)
		}
	}
	h.known = known
	t, clashes := newTable(hooks)
	for _, clash := range clashes {
		h.log.Warn("trigger is not reached: another one takes its calls", zap.String("clash", clash))
	}
	h.table.Store(t)
	h.clock.set(schedules)
	h.flows.set(streams)
	h.log.Debug("triggers are hosted", zap.Int("hooks", len(hooks)), zap.Int("schedules", len(schedules)), zap.Int("streams", len(streams)))
	return nil
}

func (h *Host) compiled(ctx context.Context, r state.WorkflowRecord) (*compiled, error) {
	if c := h.known[r.Hash]; c != nil {
		return c, nil
	}
	document, err := h.Store.Workflow(ctx, r.Hash)
	if err != nil {
		return nil, err
	}
	w, err := workflow.Parse(document)
	if err != nil {
		h.log.Error("active workflow cannot be read", zap.String("workflow_id", r.ID), zap.Error(err))
		return &compiled{bad: true}, nil
	}
	return &compiled{workflow: w}, nil
}
