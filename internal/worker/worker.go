// Package worker is the service that runs node code: it pulls the jobs of its
// pools from NATS, executes them and sends the results to the coordinators. It
// has no other connection, keeps nothing, and any number of it may run.
package worker

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"go.uber.org/zap"

	"github.com/reprise-engine/reprise/internal/failpoint"
	"github.com/reprise-engine/reprise/internal/runner"
	"github.com/reprise-engine/reprise/internal/telemetry"
	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/node"
	"github.com/reprise-engine/reprise/pkg/queue"
)

// Delivery is one job given to this worker.
type Delivery interface {
	Job() *queue.Job
	// Deliveries counts how often the job was given to a worker, from 1.
	Deliveries() int
	// Published is when the job's message entered the stream.
	Published() time.Time
	// Ack is the subject that acknowledges the message.
	Ack() string
	// InProgress keeps the job from being given to another worker for one more lease.
	InProgress() error
	// Nak gives the job back, to be given out again after the delay.
	Nak(delay time.Duration) error
	// Term removes the job's message.
	Term() error
	// Done frees the job's slot.
	Done()
}

// Source gives out jobs, never more at once than it has slots.
type Source interface {
	// Next waits for a job; it returns ctx.Err() after ctx ended.
	Next(ctx context.Context) (Delivery, error)
}

// Transport is what a worker needs of pkg/queue besides its jobs.
type Transport interface {
	SendResult(ctx context.Context, coordinator string, r *queue.Result) (queue.Reply, error)
	AskRedelivery(ctx context.Context, q *queue.Redelivery) (queue.Reply, error)
	// AskHolder asks all workers whether one of them holds a job.
	AskHolder(ctx context.Context, job engine.JobID) (held bool, err error)
	// ConnectedAt is when the present connection was made, and whether there was
	// one before: a server that was killed forgets what it delivered.
	ConnectedAt() (at time.Time, again bool)
	Healthy() error
}

// Config of a worker. All but Log and the durations are required.
type Config struct {
	Name      string
	Runner    *runner.Runner
	Source    Source
	Transport Transport
	Log       *zap.Logger
	// Lease is how long a job may be without a sign of life (the consumer's ack
	// wait; default queue.DefaultLease). Signs are sent three times as often.
	Lease time.Duration
	// MaxUnconfirmed bounds the results that no coordinator has confirmed yet, besides the
	// jobs of all Slots; while there are more no job is taken (default 1024).
	MaxUnconfirmed int
	// Announce tells coordinators what the worker does; nil tells nobody. Slots is how
	// many jobs it runs at once, PoolSlots how many of each pool.
	Announce  func(queue.WorkerNotice) error
	Slots     int
	PoolSlots map[string]int
	// Instance tells this process from others of the same name, before and after it;
	// empty draws one.
	Instance string
	// Telemetry is told what happens; nil is nobody.
	Telemetry *telemetry.Worker
}

// lateAfter is how long after its commit a job may enter the stream without
// raising the suspicion that it was published for the second time.
const lateAfter = 3 * time.Second

// gatherTime is how long after a server came back the workers may take to
// connect again. Before that, silence of the worker that holds a job proves nothing.
const gatherTime = 2 * time.Second

// Worker is the service. Create it with New, run it with Start and Stop.
type Worker struct {
	config Config
	log    *zap.Logger

	mu   sync.Mutex
	held map[engine.JobID]*heldJob
	// asked are deliveries that a coordinator is being asked about. They are kept from other
	// workers too: a question may take longer than a lease, and would be taken for a loss.
	asked map[Delivery]struct{}
	// alone is held while a job runs that was lost again and again.
	alone sync.Mutex

	fetching  context.Context // ends when no more jobs are to be taken
	stopFetch context.CancelFunc
	running   context.Context // ends when running jobs are to be given back
	giveBack  context.CancelFunc
	taking    sync.WaitGroup // of fetch
	wg        sync.WaitGroup // of jobs
	crew      *crew          // that runs them
	ended     sync.Once
	loops     sync.WaitGroup // of what goes on until the last job has ended
	room      chan struct{}  // one token per job that runs, or whose result is not confirmed
	sending   chan struct{}  // one token per result that is on its way to a coordinator
	abandoned atomic.Int64   // runs of node code that do not end
}

// heldJob is a job that this worker holds until its result is confirmed.
type heldJob struct {
	Delivery
	cancel  context.CancelFunc
	dropped bool
	signs   int // of life that were sent; belongs to keepAlive
}

// New returns a worker that is not started.
func New(c Config) *Worker {
	if c.Log == nil {
		c.Log = zap.NewNop()
	}
	if c.Lease <= 0 {
		c.Lease = queue.DefaultLease
	}
	if c.MaxUnconfirmed <= 0 {
		c.MaxUnconfirmed = 1024
	}
	if c.Instance == "" {
		c.Instance = uuid.NewString()
	}
	w := &Worker{
		config: c, log: c.Log.Named("worker").With(zap.String("worker", c.Name)),
		held: map[engine.JobID]*heldJob{}, asked: map[Delivery]struct{}{}, room: make(chan struct{}, c.Slots+c.MaxUnconfirmed),
		crew: newCrew(), sending: make(chan struct{}, maxSending),
	}
	w.fetching, w.stopFetch = context.WithCancel(context.Background())
	w.running, w.giveBack = context.WithCancel(context.Background())
	return w
}

// Start begins to take jobs and returns.
func (w *Worker) Start() {
	w.taking.Go(w.fetch)
	w.loops.Go(w.keepAlive)
	if w.config.Announce != nil {
		w.loops.Go(newAnnouncer(w).loop)
	}
	w.log.Info("worker started")
}

// Stop takes no more jobs and waits for those that run; when ctx ends first
// they are stopped and handed back. A second call is harmless.
func (w *Worker) Stop(ctx context.Context) {
	w.stopFetch()
	defer context.AfterFunc(ctx, w.giveBack)()
	w.taking.Wait() // it may just be given a last job, which is to be waited for
	w.wg.Wait()
	w.giveBack()
	w.loops.Wait()
	w.ended.Do(w.crew.end)
}

// Drop stops jobs that no longer count.
func (w *Worker) Drop(jobs []engine.JobID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, id := range jobs {
		if h := w.held[id]; h != nil {
			h.dropped = true
			w.config.Telemetry.Dropped()
			h.cancel()
		}
	}
}

// Holds reports whether this worker holds a job.
func (w *Worker) Holds(id engine.JobID) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.held[id] != nil
}

// Busy is the number of jobs held.
func (w *Worker) Busy() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.held)
}

func (w *Worker) fetch() {
	for {
		select {
		case w.room <- struct{}{}:
		case <-w.fetching.Done():
			return
		}
		delivery, err := w.config.Source.Next(w.fetching)
		if err != nil {
			if w.fetching.Err() != nil {
				return
			}
			<-w.room
			w.log.Warn("no jobs can be fetched", zap.Error(err))
			select {
			case <-time.After(time.Second):
			case <-w.fetching.Done():
				return
			}
			continue
		}
		w.wg.Add(1)
		w.crew.run(func() {
			defer w.wg.Done()
			defer func() { <-w.room }()
			w.handle(delivery)
		})
	}
}

// All that a dead worker held is given out again at the same moment, often to one worker. If
// one of those jobs is what kills workers, the others would be lost with it again and again until
// they are given up, too. So of jobs that were delivered aloneFrom times, which is before
// they are given up, a worker runs one at a time. It hands others back, to be delivered after
// aloneWait, before it asks for them: that a job was not begun does not count against it.
const (
	aloneFrom = 3
	aloneWait = 250 * time.Millisecond
)

// handle runs one job and keeps its result until it is confirmed.
func (w *Worker) handle(d Delivery) {
	free := sync.OnceFunc(d.Done)
	defer free()
	job := d.Job()
	ctx, cancel := context.WithCancel(w.running)
	defer cancel()
	held := &heldJob{Delivery: d, cancel: cancel}
	log := w.log.WithLazy(zap.String("execution_id", string(job.Execution)), zap.String("job", string(job.ID)),
		zap.Int("run_index", job.RunIndex), zap.Int("attempt", job.Attempt))

	if d.Deliveries() > 1 {
		w.config.Telemetry.Redelivered()
	}
	if d.Deliveries() >= aloneFrom {
		if !w.alone.TryLock() {
			_ = d.Nak(aloneWait)
			return
		}
		defer w.alone.Unlock()
	}
	if suspicious := w.mustAsk(d); (suspicious || job.Once) && !w.allowed(ctx, d, suspicious, log) {
		return
	}
	if !w.hold(held) {
		return
	}
	defer w.letGo(held)
	failpoint.Hit("before-run")
	result, err := w.run(ctx, job, log)
	free()
	failpoint.Hit("after-run")
	switch {
	case errors.Is(err, runner.ErrStopped):
		if w.isDropped(held) {
			log.Info("job stopped: it no longer counts")
			_ = d.Term()
			return
		}
		w.handBack(ctx, held, log)
		return
	case err != nil:
		result.Error = &engine.NodeError{Name: "NodeOperationError", Message: err.Error(), NotRetryable: true}
	}
	result.Worker = w.config.Name
	w.deliver(ctx, held, &queue.Result{
		Version: queue.Version, Job: job.ID, Execution: job.Execution, Ack: d.Ack(), Token: job.Token, Result: result,
	}, log)
}

// abandonAfter is how long node code may go on after its time is over, or after it
// was stopped, before the worker turns away from it and frees its slot.
const abandonAfter = 2 * time.Second

// run runs a job's node. Node code that ignores its context cannot be ended, but it
// keeps no slot: its goroutine is left to itself and what it returns is dropped.
func (w *Worker) run(ctx context.Context, job *queue.Job, log *zap.Logger) (node.Result, error) {
	type outcome struct {
		result node.Result
		err    error
	}
	done := make(chan outcome, 1)
	w.crew.run(func() {
		result, err := w.config.Runner.Run(ctx, job, nil)
		done <- outcome{result, err}
	})
	var over <-chan time.Time
	if job.Deadline > 0 {
		timer := time.NewTimer(time.Until(time.UnixMilli(job.Deadline)) + abandonAfter)
		defer timer.Stop()
		over = timer.C
	}
	stopped := ctx.Done()
	for {
		select {
		case o := <-done:
			return o.result, o.err
		case <-stopped:
			stopped = nil
			timer := time.NewTimer(abandonAfter)
			defer timer.Stop()
			over = timer.C
		case <-over:
			log.Warn("node code does not end; its slot is freed", zap.Int64("abandoned", w.abandoned.Add(1)))
			w.config.Telemetry.Abandoned(1)
			go func() {
				<-done
				w.abandoned.Add(-1)
				w.config.Telemetry.Abandoned(-1)
			}()
			if ctx.Err() != nil {
				return node.Result{}, runner.ErrStopped
			}
			return node.Result{Result: engine.Result{Error: &engine.NodeError{
				Name: "NodeOperationError", Message: "Error: timed out", Reason: engine.ReasonTimeout,
			}}}, nil
		}
	}
}

// Abandoned is the number of nodes whose code does not end although it should have.
func (w *Worker) Abandoned() int64 { return w.abandoned.Load() }

// tellTimeout bounds what a stopping worker still says.
const tellTimeout = 2 * time.Second

// handBack gives a job back that was stopped because this worker stops. One that must
// not run twice has begun: its outcome is not known, and that is its result.
func (w *Worker) handBack(ctx context.Context, h *heldJob, log *zap.Logger) {
	job := h.Job()
	tell, cancel := context.WithTimeout(context.WithoutCancel(ctx), tellTimeout)
	defer cancel()
	r := &queue.Result{Version: queue.Version, Job: job.ID, Execution: job.Execution, Ack: h.Ack(), Token: job.Token, HandedBack: !job.Once}
	if job.Once {
		r.Result.Worker = w.config.Name
		r.Result.Error = &engine.NodeError{
			Name: "NodeOperationError", Reason: engine.ReasonWorkerLost, NotRetryable: true,
			Message: "The outcome is unknown: the worker stopped while it ran the node, and the node is not to be run twice (onWorkerLost: giveUp)",
		}
	}
	reply, err := w.config.Transport.SendResult(tell, job.Coordinator, r)
	told := err == nil && reply.Verdict == queue.VerdictOK
	if told && job.Once {
		log.Warn("job stopped: its outcome is unknown")
		return
	}
	log.Info("job handed back", zap.Bool("told", told))
	_ = h.Nak(0)
}

// hold takes a job; false: it was given to this worker a second time while it
// still holds it.
func (w *Worker) hold(h *heldJob) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	id := h.Job().ID
	if w.held[id] != nil {
		return false
	}
	w.held[id] = h
	return true
}

func (w *Worker) letGo(h *heldJob) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.held, h.Job().ID)
}

// mustAsk reports whether a job may have been run or answered before.
func (w *Worker) mustAsk(d Delivery) bool {
	job := d.Job()
	connected, _ := w.config.Transport.ConnectedAt()
	return d.Deliveries() > 1 || job.Confirm || d.Published().Sub(time.UnixMilli(job.DispatchedAt)) > lateAfter ||
		d.Published().Before(connected)
}

// allowed finds out whether a job that may have been given to a worker before is
// to be run: not while a worker holds it, and not when a coordinator says that it was
// answered or cancelled.
//
// A job that must not run twice is asked for in any case: that it was given to this
// worker is then on record before it runs.
func (w *Worker) allowed(ctx context.Context, d Delivery, suspicious bool, log *zap.Logger) bool {
	if connected, again := w.config.Transport.ConnectedAt(); again && d.Published().Before(connected) {
		if !sleep(ctx, time.Until(connected.Add(gatherTime))) {
			_ = d.Nak(0)
			return false
		}
	}
	if suspicious {
		if held, err := w.config.Transport.AskHolder(ctx, d.Job().ID); err == nil && held {
			log.Debug("job left to the worker that holds it")
			_ = d.Nak(w.config.Lease) // in case that one is lost later
			return false
		}
	}
	w.mu.Lock()
	w.asked[d] = struct{}{}
	w.mu.Unlock()
	defer func() {
		w.mu.Lock()
		delete(w.asked, d)
		w.mu.Unlock()
	}()
	question := questionOf(d)
	question.Asker = fmt.Sprintf("%s/%d/%d", w.config.Instance, d.Published().UnixNano(), d.Deliveries())
	for wait := 100 * time.Millisecond; ; wait = min(2*wait, 5*time.Second) {
		reply, err := w.config.Transport.AskRedelivery(ctx, question)
		switch {
		case err == nil && reply.Verdict == queue.VerdictRun:
			return true
		case err == nil && reply.Verdict == queue.VerdictDrop:
			log.Debug("job dropped: it was answered or cancelled")
			w.config.Telemetry.Dropped()
			_ = d.Term()
			return false
		case err == nil:
			err = errors.New(reply.Error)
		}
		log.Warn("no coordinator decides about a repeated job", zap.Error(err))
		if !sleep(ctx, wait) {
			_ = d.Nak(0)
			return false
		}
	}
}

func questionOf(d Delivery) *queue.Redelivery {
	return &queue.Redelivery{
		Version: queue.Version, Job: d.Job().ID, Execution: d.Job().Execution, Deliveries: d.Deliveries(), Token: d.Job().Token,
	}
}

// maxSending bounds the results that are on their way at the same time. A coordinator is asked again
// when it does not answer within seconds, and another one after it: were it given more than it can
// commit in that time, as when thousands of models answer at once, each result would come several
// times, and be committed ever later.
const maxSending = 256

// send sends a result in its turn.
func (w *Worker) send(ctx context.Context, coordinator string, result *queue.Result) (queue.Reply, error) {
	select {
	case w.sending <- struct{}{}:
		defer func() { <-w.sending }()
		return w.config.Transport.SendResult(ctx, coordinator, result)
	case <-ctx.Done():
		return queue.Reply{}, ctx.Err()
	}
}

// deliver sends a result until a coordinator confirms it. When the worker must
// stop before that, the job is handed back and will run again.
func (w *Worker) deliver(ctx context.Context, h *heldJob, result *queue.Result, log *zap.Logger) {
	w.config.Telemetry.Unconfirmed(1)
	defer w.config.Telemetry.Unconfirmed(-1)
	// The result outlives a cancel of its job: the coordinator knows best.
	send, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(w.running, cancel)()
	for wait := 100 * time.Millisecond; ; wait = min(2*wait, 5*time.Second) {
		reply, err := w.send(send, h.Job().Coordinator, result)
		if err == nil && reply.Verdict == queue.VerdictOK {
			return
		}
		if err == nil && reply.Verdict == queue.VerdictDrop {
			log.Error("result refused: no coordinator can read it", zap.String("cause", reply.Error))
			return // the job is given out again until it is given up
		}
		if err == nil {
			err = fmt.Errorf("coordinator answers %s: %s", reply.Verdict, reply.Error)
		}
		log.Warn("result is not confirmed yet", zap.Error(err))
		if !sleep(send, wait) {
			_ = h.Nak(0)
			return
		}
	}
}

// How many signs of life a lease has, and after how many of them a worker asks whether
// the job still counts.
const (
	signsPerLease = 3
	signsPerDoubt = 4 * signsPerLease
)

// keepAlive extends the lease of all jobs held, until their results are confirmed.
// That a job no longer counts is told once, and may be lost together with the coordinator
// that tells it: of jobs which take long a worker asks from time to time.
func (w *Worker) keepAlive() {
	ticker := time.NewTicker(w.config.Lease / signsPerLease)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-w.running.Done():
			return
		}
		w.mu.Lock()
		held := make([]*heldJob, 0, len(w.held))
		for _, h := range w.held {
			held = append(held, h)
		}
		asked := slices.Collect(maps.Keys(w.asked))
		w.mu.Unlock()
		for _, d := range asked {
			_ = d.InProgress() // it is asked about again when that is lost
		}
		for _, h := range held {
			if err := h.InProgress(); err != nil {
				w.log.Debug("lease was not extended", zap.String("job", string(h.Job().ID)), zap.Error(err))
			} else {
				w.config.Telemetry.LeaseExtended()
			}
			if h.signs++; h.signs%signsPerDoubt == 0 {
				w.loops.Go(func() { w.doubt(h) })
			}
		}
	}
}

// doubt asks whether a job still counts, and stops it when it does not.
func (w *Worker) doubt(h *heldJob) {
	question := questionOf(h)
	question.Running = true
	reply, err := w.config.Transport.AskRedelivery(w.running, question)
	if err == nil && reply.Verdict == queue.VerdictDrop {
		w.Drop([]engine.JobID{question.Job})
	}
}

func (w *Worker) isDropped(h *heldJob) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return h.dropped
}

// sleep waits and reports whether ctx still lasts.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
