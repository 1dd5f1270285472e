package chaos

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/queue"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

const (
	// requestTimeout of one request to the coordinators; it is repeated.
	requestTimeout = 3 * time.Second
	repeatAfter    = 200 * time.Millisecond
	// lookInterval is how often ends that were told of are looked at, lookAfter how soon
	// an execution is asked for when nothing was told: notices may be lost.
	lookInterval = 50 * time.Millisecond
	lookAfter    = 2 * time.Second
	looksAtOnce  = 8
	looksPerTurn = 64
)

// order is one execution and what became of it.
type order struct {
	id    engine.ExecutionID
	shape *shape
	begun time.Time // first submitted

	// guarded by load.mu
	accepted bool
	approved bool // the person has said yes, or is about to
	decided  bool
	told     bool // a notice says that it is over
	looked   time.Time
	ended    time.Time // zero while it is not over
	wrong    string    // why its end is not the right one
	lost     lost
	faults   []*Fault // that happened while it was in flight
}

// load submits executions, is the person that they ask, and looks at their ends.
type load struct {
	conn  *queue.Conn
	work  *workload
	run   string // begins the ids of executions
	fatal context.CancelCauseFunc

	mu       sync.Mutex
	orders   []*order
	byID     map[engine.ExecutionID]*order
	flying   map[*order]struct{}
	finished int
	waiting  []*Fault     // faults after which nothing has ended yet
	onNext   func(*Fault) // called, with mu held, when the first execution has ended after a fault
	group    sync.WaitGroup
}

func newLoad(run string) *load {
	return &load{run: run, byID: map[engine.ExecutionID]*order{}, flying: map[*order]struct{}{}, onNext: func(*Fault) {}}
}

// allowed says whether an effect may happen: what needs an approval must have one.
func (l *load) allowed(e effect) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	o := l.byID[engine.ExecutionID(e.order)]
	return o == nil || !o.shape.gated || e.tool != toolCharge || o.approved
}

// keep submits executions at a rate until ctx ends; what was begun goes on with until.
func (l *load) keep(ctx, until context.Context, rate float64) {
	began := time.Now()
	for n := 0; ; n++ {
		pause(ctx, time.Until(began.Add(time.Duration(float64(n)/rate*float64(time.Second)))))
		if ctx.Err() != nil {
			return
		}
		o := &order{id: engine.ExecutionID(fmt.Sprintf("%s-%d", l.run, n)), shape: l.work.shape(n), begun: time.Now()}
		l.mu.Lock()
		l.orders = append(l.orders, o)
		l.byID[o.id] = o
		l.flying[o] = struct{}{}
		l.mu.Unlock()
		l.group.Go(func() { l.submit(until, o) })
	}
}

// submit submits until a coordinator has said yes. Its id makes that harmless.
func (l *load) submit(ctx context.Context, o *order) {
	item, err := json.Marshal(map[string]any{"order": o.id})
	if err != nil {
		l.fatal(err)
		return
	}
	s := &queue.Submission{ID: o.id, Workflow: o.shape.document, Mode: "cli", Input: workflow.Items{{JSON: item}}}
	for ctx.Err() == nil {
		trying, cancel := context.WithTimeout(ctx, requestTimeout)
		_, err := l.conn.Submit(trying, s)
		cancel()
		if err == nil {
			l.mu.Lock()
			o.accepted = true
			l.mu.Unlock()
			return
		}
		if hopeless(err) {
			l.fatal(err)
			return
		}
		pause(ctx, repeatAfter)
	}
}

// hopeless says whether a request was refused for what it is.
func hopeless(err error) bool {
	problem := (*queue.Problem)(nil)
	return errors.As(err, &problem) && slices.Contains([]string{
		queue.CodeBadRequest, queue.CodeVersion, queue.CodeInvalidWorkflow, queue.CodeTooLarge,
	}, problem.Code)
}

// notice is told of what executions do.
func (l *load) notice(n queue.Live) {
	if n.Kind != engine.LiveExecutionFinished || !n.Status.Finished() {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if o := l.byID[n.Execution]; o != nil {
		o.told = true
	}
}

// look looks at executions that are, or may be, over, and answers the questions of those
// that ask, until ctx ends.
func (l *load) look(ctx context.Context) {
	ticker := time.NewTicker(lookInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		slots := make(chan struct{}, looksAtOnce)
		var turn sync.WaitGroup
		for _, o := range l.due(time.Now()) {
			slots <- struct{}{}
			turn.Go(func() {
				defer func() { <-slots }()
				l.lookAt(ctx, o)
			})
		}
		turn.Wait()
	}
}

// due are the executions to look at, those that are said to be over first.
func (l *load) due(now time.Time) []*order {
	l.mu.Lock()
	defer l.mu.Unlock()
	var told, others []*order
	for o := range l.flying {
		after := lookAfter
		if o.shape.gated && !o.decided {
			after = 5 * lookInterval
		}
		switch {
		case !o.accepted:
		case o.told:
			told = append(told, o)
		case now.Sub(latest(o.begun, o.looked)) > after:
			others = append(others, o)
		}
	}
	slices.SortFunc(others, func(a, b *order) int { return latest(a.begun, a.looked).Compare(latest(b.begun, b.looked)) })
	all := append(told, others...)
	return all[:min(len(all), looksPerTurn)]
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func (l *load) lookAt(ctx context.Context, o *order) {
	trying, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	defer func() {
		l.mu.Lock()
		o.looked = time.Now()
		l.mu.Unlock()
	}()
	l.mu.Lock()
	told := o.told
	l.mu.Unlock()
	if !told {
		x, err := l.conn.Get(trying, o.id, false)
		if err != nil {
			return
		}
		if !x.Status.Finished() {
			l.decide(trying, o, x)
			return
		}
	}
	x, err := l.conn.Get(trying, o.id, true)
	if err != nil || !x.Status.Finished() {
		return
	}
	gone, err := o.judge(x, l.mayHaveLost(o))
	wrong := ""
	if err != nil {
		wrong = err.Error()
	}
	l.end(o, time.UnixMilli(x.StoppedAt), wrong, gone)
}

// mayHaveLost is how many workers an execution may have lost: those that were killed or
// paused while it was in flight, and those that nobody could hear of because NATS was.
func (l *load) mayHaveLost(o *order) (workers int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, f := range o.faults {
		if f.Role == KillWorker || f.Role == KillNATS {
			workers++
		}
	}
	return workers
}

// decide says yes to what an execution asks.
func (l *load) decide(ctx context.Context, o *order, x *queue.Execution) {
	for _, w := range x.Waiting {
		if w.Kind != engine.WaitApproval {
			continue
		}
		l.mu.Lock()
		o.approved = true // the effect may come before the answer to our answer
		l.mu.Unlock()
		err := l.conn.Decide(ctx, queue.DecideRequest{
			ID: w.Token, Decision: engine.Decision{Approved: true, By: "reprise chaos", At: time.Now().UnixMilli()},
		})
		problem := (*queue.Problem)(nil)
		if err == nil || errors.As(err, &problem) && problem.Code == queue.CodeConflict { // decided before
			l.mu.Lock()
			o.decided = true
			l.mu.Unlock()
		}
	}
}

// end takes down the end of an execution.
func (l *load) end(o *order, at time.Time, wrong string, gone lost) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !o.ended.IsZero() {
		return
	}
	o.ended, o.wrong, o.lost = at, wrong, gone
	l.finished++
	delete(l.flying, o)
	l.waiting = slices.DeleteFunc(l.waiting, func(f *Fault) bool {
		if !at.After(f.at) {
			return false
		}
		f.next = at.Sub(f.at)
		l.onNext(f)
		return true
	})
	for _, f := range o.faults {
		f.open--
		f.all = max(f.all, at.Sub(f.at))
	}
}

// struck takes down a fault.
func (l *load) struck(f *Fault) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f.InFlight, f.open = len(l.flying), len(l.flying)
	for o := range l.flying {
		o.faults = append(o.faults, f)
	}
	l.waiting = append(l.waiting, f)
}

// abandon cancels what is in flight.
func (l *load) abandon(ctx context.Context) {
	l.mu.Lock()
	var left []engine.ExecutionID
	for o := range l.flying {
		left = append(left, o.id)
	}
	l.mu.Unlock()
	slots := make(chan struct{}, looksAtOnce)
	var all sync.WaitGroup
	for _, id := range left {
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			_ = l.conn.Cancel(ctx, id, "reprise chaos was interrupted") // it may have ended, or never begun
		})
	}
	all.Wait()
}

// counts are the executions submitted and finished so far.
func (l *load) counts() (submitted, finished int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.orders), l.finished
}

// lost is what was given up in an execution because workers were lost, as it must be:
// nobody knows whether it has happened, and the Agent, or the error, says so.
type lost struct {
	unknown bool     // what is not to be repeated, after one worker
	limit   bool     // anything else, after as many as the delivery limit
	effects []string // that may be there or not
}

// deliveryLimit is the coordinators' default: to so many workers a job is given.
const deliveryLimit = 3

// judge says what is wrong with the end of an execution, and what was lost in it.
// lostWorkers is how many workers it may have lost.
func (o *order) judge(x *queue.Execution, lostWorkers int) (gone lost, err error) {
	mayLose := func(name string, e *engine.NodeError) bool {
		switch {
		case e == nil || e.Reason != engine.ReasonWorkerLost:
			return false
		case o.shape.once && name == toolMail && lostWorkers > 0:
			gone.unknown = true
		case lostWorkers >= deliveryLimit:
			gone.limit = true
		default:
			return false
		}
		return true
	}
	if x.Status != engine.StatusSuccess {
		if x.Error == nil {
			return gone, fmt.Errorf("ended with status %s", x.Status)
		}
		if x.Status == engine.StatusError && mayLose("", x.Error) {
			gone.effects = o.shape.effects // what was to come did not
			return gone, nil
		}
		return gone, fmt.Errorf("ended with status %s in node %q: %s", x.Status, x.Error.Node, x.Error.Message)
	}
	var data struct {
		ResultData struct {
			RunData map[string][]engine.Record `json:"runData"`
		} `json:"resultData"`
	}
	if err := json.Unmarshal(x.Data, &data); err != nil {
		return gone, fmt.Errorf("run data cannot be read: %w", err)
	}
	runs, said := data.ResultData.RunData, map[string]string{}
	for _, name := range o.shape.nodes {
		if n := len(runs[name]); n != 1 {
			return gone, fmt.Errorf("node %q has %d runs instead of one", name, n)
		}
		r := runs[name][0]
		switch {
		case r.Status == engine.StatusSuccess:
		case r.Error == nil:
			return gone, fmt.Errorf("node %q ended with status %s", name, r.Status)
		case mayLose(name, r.Error):
			said[name] = r.Error.Message
			gone.effects = append(gone.effects, name)
		default:
			return gone, fmt.Errorf("node %q ended with status %s: %s", name, r.Status, r.Error.Message)
		}
	}
	var out struct{ Output string }
	main := runs[agentName][0].Data["main"]
	if len(main) == 0 || len(main[0]) == 0 || json.Unmarshal(main[0][0].JSON, &out) != nil {
		return gone, errors.New("the Agent has no answer")
	}
	if want := answer(string(o.id), said); out.Output != want {
		return gone, fmt.Errorf("the answer is %q instead of %q", out.Output, want)
	}
	return gone, nil
}
