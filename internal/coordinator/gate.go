package coordinator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/reprise-engine/reprise/internal/failpoint"
	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/queue"
	"github.com/reprise-engine/reprise/pkg/state"
)

// A workflow with a limit has a gate, which bounds its unfinished executions. The gate is
// not in the same transaction as the executions, so their order matters:
//
//	begin   enter the gate, then store the execution: running, or new when it has to wait
//	end     store that it is finished, unsettled; leave the gate; admit whoever got the place; settle
//
// Whatever is cut off in between leaves the gate ahead of the executions, never behind: a place may be
// held by an execution that is not there or has ended, but none runs without its place. The
// sweep of unsettled executions repeats the end, and gateSweep finds what else is left.

// Gates is what the coordinator needs of pkg/state to bound the unfinished executions of workflows, and
// to find those that stand still.
type Gates interface {
	Gate(ctx context.Context, calls []state.GateCall) []state.GateAnswer
	Gates(ctx context.Context) ([]state.Gate, error)
	GatePosition(ctx context.Context, gate string, id engine.ExecutionID) (int, error)
	Line(ctx context.Context, parent engine.ExecutionID) ([]engine.ExecutionID, error)
	Turn(ctx context.Context, name string, interval int64) (bool, error)
	Stuck(ctx context.Context, before int64) ([]state.StuckExecution, error)
}

// place is what an execution keeps of the gate it went through; nil for none.
type place struct {
	Gate  string `json:"gate"`
	Limit int    `json:"limit"`
	// Retry: it goes on where the execution that it repeats broke off, once it is admitted.
	Retry bool `json:"retry,omitempty"`

	position int // in the queue when it was created, 0 for none
}

// fieldPlace of the meta table holds an execution's place.
const fieldPlace = "place"

const (
	// ghostAfter is from when on, in ms, a place is taken away of which nobody has stored the
	// execution: whoever entered is dead. One that is as slow as that takes its place anew.
	ghostAfter = 3000
	// queuedSweep is when an execution is looked at that waits for its turn: the gate calls it.
	queuedSweep = 5 * time.Minute
	// gateGroup bounds the calls that are sent together.
	gateGroup = 256
)

// gateName is the gate that an execution goes through if its workflow has a limit.
func gateName(meta *engine.Meta) string {
	if meta.WorkflowID != "" {
		return meta.WorkflowID
	}
	return meta.WorkflowHash
}

// concurrency is the limit of a workflow's unfinished executions, 0 for none.
func (c *Coordinator) concurrency(p *program) int {
	if c.config.Gates == nil {
		return 0
	}
	if own := int(p.workflow.Settings.MaxConcurrency); own > 0 {
		return own
	}
	return c.config.WorkflowConcurrency
}

// gateCall is a call that waits to be sent. done must not block for long.
type gateCall struct {
	state.GateCall
	done func(state.GateAnswer)
}

// gatekeeper sends calls of gates in the order in which they came, together what came
// together.
type gatekeeper struct {
	mu      sync.Mutex
	pending []gateCall
	busy    bool
}

// background runs f unless the coordinator stops, and reports whether it does.
func (c *Coordinator) background(f func()) bool {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if c.draining {
		return false
	}
	c.wg.Go(f)
	return true
}

// gate sends a call and has done told the answer, from another goroutine.
func (c *Coordinator) gate(call state.GateCall, done func(state.GateAnswer)) {
	call.At = c.now()
	k := &c.gatekeeper
	k.mu.Lock()
	k.pending = append(k.pending, gateCall{call, done})
	begins := !k.busy
	k.busy = true
	k.mu.Unlock()
	if begins && !c.background(c.sendGateCalls) {
		go c.refuseGateCalls()
	}
}

func (k *gatekeeper) take() []gateCall {
	k.mu.Lock()
	defer k.mu.Unlock()
	n := min(len(k.pending), gateGroup)
	group := k.pending[:n:n]
	k.pending = k.pending[n:]
	if n == 0 {
		k.pending, k.busy = nil, false
	}
	return group
}

func (c *Coordinator) sendGateCalls() {
	for {
		group := c.gatekeeper.take()
		if len(group) == 0 {
			return
		}
		calls := make([]state.GateCall, len(group))
		for i := range group {
			calls[i] = group[i].GateCall
		}
		ctx, cancel := context.WithTimeout(c.ctx, storeTimeout)
		answers := c.config.Gates.Gate(ctx, calls)
		cancel()
		for i := range group {
			group[i].done(answers[i])
		}
	}
}

func (c *Coordinator) refuseGateCalls() {
	for {
		group := c.gatekeeper.take()
		if len(group) == 0 {
			return
		}
		for i := range group {
			group[i].done(state.GateAnswer{Err: errStopping})
		}
	}
}

// createInGate is create for a workflow with a limit: the execution begins, or is stored to
// wait for its turn.
func (c *Coordinator) createInGate(p *program, meta engine.Meta, ev engine.Event, limit int, finish func(error)) {
	enter := func(line []engine.ExecutionID) {
		at := c.now()
		call := state.GateCall{Op: state.GateEnter, Gate: gateName(&meta), Execution: meta.ID, Limit: limit, Line: line}
		c.gate(call, func(a state.GateAnswer) {
			failpoint.Hit("after-enter-gate")
			switch {
			case a.Err != nil:
				finish(a.Err)
				return
			case a.Exempt:
				c.store(p, meta, ev, nil, finish)
				return
			}
			_, retry := ev.(engine.Retried)
			mine := &place{Gate: call.Gate, Limit: limit, Retry: retry, position: a.Position}
			c.store(p, meta, ev, mine, func(err error) {
				finish(err)
				// Called by the lane, which must not wait for a lane, its own included.
				took := c.now() - at
				c.background(func() { c.entered(meta.ID, mine, took, err) })
			})
		})
	}
	parent := meta.Parent
	if parent == nil || parent.Detached {
		enter(nil)
		return
	}
	looks := c.background(func() {
		ctx, cancel := context.WithTimeout(c.ctx, storeTimeout)
		defer cancel()
		line, err := c.config.Gates.Line(ctx, parent.Execution)
		if err != nil {
			finish(err)
			return
		}
		enter(line)
	})
	if !looks {
		go finish(errStopping)
	}
}

// entered looks after what may have happened to a place while its execution was being stored.
func (c *Coordinator) entered(id engine.ExecutionID, p *place, took int64, err error) {
	logged := func(err error) {
		if err != nil && !errors.Is(err, errNotFound) {
			c.log.Debug("place of an execution was not looked after; the sweeper does it", zap.String("execution_id", string(id)), zap.Error(err))
		}
	}
	refused := (*refusedError)(nil)
	switch {
	case err != nil && p.position > 0: // it is queued a second time, if not for the first
		c.unqueue(p.Gate, id, logged)
	case errors.As(err, &refused):
		c.admit(p.Gate, id, nil, func(err error) {
			if errors.Is(err, errNotFound) {
				c.leave(p.Gate, id, logged)
			} else {
				logged(err)
			}
		})
	case err != nil: // it may be there
		c.admit(p.Gate, id, nil, logged)
	case p.position > 0:
		c.enterAgain(p, id, logged)
	case took > ghostAfter/2:
		c.hold(p, id, logged)
	}
}

// unqueue takes an execution out of a queue in which it does not wait for its turn.
func (c *Coordinator) unqueue(gate string, id engine.ExecutionID, done func(error)) {
	waits := false
	c.hand(&work{
		id: id, fresh: true,
		handle: func(x *execution) error {
			waits = x.place != nil && x.place.Gate == gate && x.state.Meta.Status == engine.StatusNew
			return nil
		},
		finish: func(err error) {
			switch {
			case err != nil && !errors.Is(err, errNotFound):
				done(err)
			case waits:
				done(nil)
			default:
				c.leave(gate, id, done)
			}
		},
	})
}

// enterAgain admits an execution that waits for its turn should its turn have come: it may have been
// called before it was stored.
func (c *Coordinator) enterAgain(p *place, id engine.ExecutionID, done func(error)) {
	c.gate(state.GateCall{Op: state.GateEnter, Gate: p.Gate, Execution: id, Limit: p.Limit}, func(a state.GateAnswer) {
		switch {
		case a.Err != nil || a.Position > 0:
			done(a.Err)
		default:
			c.admit(p.Gate, id, nil, done)
		}
	})
}

// hold notes that an execution has begun that has a place.
func (c *Coordinator) hold(p *place, id engine.ExecutionID, done func(error)) {
	c.gate(state.GateCall{Op: state.GateHold, Gate: p.Gate, Execution: id, Limit: p.Limit}, func(a state.GateAnswer) { done(a.Err) })
}

// leave gives up a place, or frees only what is free when id is "", and has those admitted who come next.
func (c *Coordinator) leave(gate string, id engine.ExecutionID, done func(error)) {
	c.gate(state.GateCall{Op: state.GateLeave, Gate: gate, Execution: id}, func(a state.GateAnswer) {
		failpoint.Hit("after-leave-gate")
		if a.Err != nil || len(a.Next) == 0 {
			done(a.Err)
			return
		}
		var mu sync.Mutex
		var first error
		left := len(a.Next)
		for _, next := range a.Next {
			c.admit(gate, next, nil, func(err error) {
				mu.Lock()
				if first == nil && !errors.Is(err, errNotFound) {
					first = err
				}
				left--
				last := left == 0
				mu.Unlock()
				if last {
					done(first)
				}
			})
		}
	})
}

// admit begins an execution that got a place, or gives the place up when it does not need it. One
// that is not there (errNotFound) keeps it: it may be about to be stored.
func (c *Coordinator) admit(gate string, id engine.ExecutionID, from *engine.State, done func(error)) {
	var do func(done func(error))
	var retryOf engine.ExecutionID
	began := false
	c.hand(&work{
		id: id, fresh: true,
		handle: func(x *execution) error {
			do, retryOf, began = nil, "", false
			meta := &x.state.Meta
			switch p := x.place; {
			case p == nil || p.Gate != gate || meta.Status.Finished():
				do = func(done func(error)) { c.leave(gate, id, done) }
			case meta.Status == engine.StatusNew && p.Retry && from == nil:
				retryOf = meta.RetryOf
			default:
				do = func(done func(error)) { c.hold(p, id, done) }
				if meta.Status != engine.StatusNew {
					return nil
				}
				refused := (*refusedError)(nil)
				err := x.apply(c, engine.Admitted{At: c.now(), From: from})
				if errors.As(err, &refused) {
					do = nil
					return x.apply(c, engine.CancelRequested{At: c.now(), Reason: "When its turn came the execution could not begin: " + refused.Error()})
				}
				began = err == nil
				return err
			}
			return nil
		},
		finish: func(err error) {
			switch {
			case err != nil:
				done(fmt.Errorf("admit execution %s of workflow %s: %w", id, gate, err))
			case retryOf != "":
				if !c.background(func() { c.admitRetry(gate, id, retryOf, done) }) {
					done(errStopping)
				}
			case do == nil:
				done(nil)
			default:
				if began {
					c.observeStart()
					c.log.Info("execution admitted", zap.String("execution_id", string(id)), zap.String("gate", gate))
				}
				do(done)
			}
		},
	})
}

// admitRetry is admit for an execution that goes on where another one broke off.
func (c *Coordinator) admitRetry(gate string, id, retryOf engine.ExecutionID, done func(error)) {
	ctx, cancel := context.WithTimeout(c.ctx, storeTimeout)
	defer cancel()
	from, err := c.look(ctx, retryOf)
	switch {
	case err == nil:
		c.admit(gate, id, from, done)
	case problemOf(err).Code == queue.CodeNotFound:
		c.hand(&work{
			id: id, fresh: true,
			handle: func(x *execution) error {
				if x.state.Meta.Status.Finished() {
					return nil
				}
				return x.apply(c, engine.CancelRequested{At: c.now(), Reason: fmt.Sprintf(
					"When its turn came the execution %s, which it was to repeat, was not kept any more", retryOf)})
			},
			finish: done,
		})
	default:
		done(err)
	}
}

// enqueue stores an execution that has to wait for its turn.
func (x *execution) enqueue(c *Coordinator, ev engine.Event) error {
	begin, _ := ev.(engine.Started) // else a Retried, which begins with what admitRetry reads
	if err := x.apply(c, engine.Enqueued{At: c.now(), Begin: begin}); err != nil {
		return err
	}
	x.keepInput(c, begin)
	return nil
}

// queued reports whether the execution had to wait for its place.
func (p *place) queued() bool { return p != nil && p.position > 0 }

// keepPlace stores the place with the execution.
func (x *execution) keepPlace(p *place) {
	if p == nil {
		return
	}
	x.place = p
	value, _ := json.Marshal(p) // strings and numbers always encode
	x.steps.Changes = append(x.steps.Changes, engine.Change{Table: engine.TableMeta, Field: fieldPlace, Value: value})
}

// placeOf reads the place that is stored with an execution.
func (c *Coordinator) placeOf(stored *state.Stored) (*place, error) {
	value := stored.Tables[engine.TableMeta][fieldPlace]
	if value == nil || c.config.Gates == nil {
		return nil, nil
	}
	p := &place{}
	if err := json.Unmarshal(value, p); err != nil {
		return nil, fmt.Errorf("decode %s: %w", fieldPlace, err)
	}
	return p, nil
}

// leaveGate is the errand that gives up an execution's place.
func (c *Coordinator) leaveGate(x *execution) errand {
	gate, id := x.place.Gate, x.id
	return func(_ *errandRun, _ bool, done func(error)) {
		failpoint.Hit("before-leave-gate")
		c.leave(gate, id, done)
	}
}

// keepGate is the errand that compares an unfinished execution with its gate.
func (c *Coordinator) keepGate(x *execution) errand {
	p, id, queued := x.place, x.id, x.state.Meta.Status == engine.StatusNew
	return func(_ *errandRun, _ bool, done func(error)) {
		if queued {
			c.enterAgain(p, id, done)
		} else {
			c.hold(p, id, done)
		}
	}
}

// gateSweep repairs gates at an interval: it takes places from executions that have ended or
// were never stored, gives out those that are free, and lets through who is waited for in a circle.
func (c *Coordinator) gateSweep() {
	interval := max(c.config.SweepAfter/2, 50*time.Millisecond)
	c.every(interval, func() {
		mine, err := c.config.Gates.Turn(c.ctx, "gates", interval.Milliseconds()*8/10)
		var gates []state.Gate
		if err == nil && mine {
			gates, err = c.config.Gates.Gates(c.ctx)
		}
		if err != nil {
			c.log.Warn("gates of workflows cannot be read", zap.Error(err))
			return
		}
		for i := range gates {
			c.repairGate(&gates[i])
		}
		c.breakDeadlocks(gates)
	})
}

func (c *Coordinator) repairGate(g *state.Gate) {
	logged := func(err error) {
		if err != nil && !errors.Is(err, errNotFound) {
			c.log.Warn("gate of a workflow was not repaired", zap.String("gate", g.Name), zap.Error(err))
		}
	}
	now := c.now()
	for _, p := range g.In {
		switch {
		case p.Status == "":
			if now-p.Since > ghostAfter {
				c.log.Info("place of an execution that was never stored is free", zap.String("gate", g.Name), zap.String("execution_id", string(p.Execution)))
				c.leave(g.Name, p.Execution, logged)
			}
		case p.Called || p.Status == engine.StatusNew || p.Status.Finished():
			c.admit(g.Name, p.Execution, nil, logged)
		}
	}
	if g.Queued > 0 && len(g.In) < g.Limit {
		c.leave(g.Name, "", logged)
	}
}

// queuePosition is where an execution waits for its turn, 0 when that is not known.
func (c *Coordinator) queuePosition(ctx context.Context, meta *engine.Meta) int {
	if meta.Status != engine.StatusNew || c.config.Gates == nil {
		return 0
	}
	position, err := c.config.Gates.GatePosition(ctx, gateName(meta), meta.ID)
	if err != nil {
		c.log.Debug("position in the queue is not known", zap.String("execution_id", string(meta.ID)), zap.Error(err))
	}
	return position
}
