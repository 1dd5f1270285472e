package coordinator

import (
	"context"
	"errors"

	"go.uber.org/zap"

	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/state"
)

// Workflows with limits that call each other from several sides can come to wait for each other,
// as with any locks: all who hold the places of one wait for children in the queue of another,
// and the other way round. Nobody is at work then, so one of these children begins
// beyond its limit, as one does whose own line holds a place. Everything that is in the way
// of an end is looked at, and all of it must wait for the others:
//
//	a gate is blocked       when it is full and all who hold its places are blocked
//	an execution is blocked when it waits for its turn at a gate that is blocked, or for a child that is
//
// Both are looked for in depth, where what is being looked at counts as blocked: a circle is
// what is looked for.

// deadlockLoads bounds the executions that are read for one gate. One that is beyond
// it is looked at with the next sweep again, and never if it takes more.
const deadlockLoads = 1000

// deadlockSearch looks for a circle of executions that wait for each other.
type deadlockSearch struct {
	gates  map[string]*state.Gate // those that may be blocked, by name
	read   func(engine.ExecutionID) *waiter
	seen   map[engine.ExecutionID]*waiter
	opened map[string]bool             // gates that are being looked at
	stack  map[engine.ExecutionID]bool // executions that are being looked at
	queued []waiter                    // children that wait for their turn, on blocked ways
}

// waiter is what a search needs of an execution.
type waiter struct {
	id       engine.ExecutionID
	status   engine.Status
	gate     string // that it waits at when it is new
	children []engine.ExecutionID
}

// crowded are the gates all places of which are taken by executions that wait.
func crowded(gates []state.Gate) map[string]*state.Gate {
	found := map[string]*state.Gate{}
	for i := range gates {
		g := &gates[i]
		full := g.Queued > 0 && len(g.In) >= g.Limit && len(g.In) < deadlockLoads
		for _, p := range g.In {
			full = full && p.Status == engine.StatusWaiting
		}
		if full {
			found[g.Name] = g
		}
	}
	return found
}

// breakDeadlocks has executions begin for which the others wait that are in their way.
func (c *Coordinator) breakDeadlocks(gates []state.Gate) {
	waiting := crowded(gates)
	if len(waiting) == 0 {
		return
	}
	begun := map[engine.ExecutionID]bool{}
	for _, name := range sortedNames(waiting) {
		s := deadlockSearch{
			gates: waiting, read: c.readWaiter, seen: map[engine.ExecutionID]*waiter{},
			opened: map[string]bool{}, stack: map[engine.ExecutionID]bool{},
		}
		if !s.gate(name) || len(s.queued) == 0 || begun[s.queued[0].id] {
			continue
		}
		first := s.queued[0]
		begun[first.id] = true
		c.log.Warn("workflows with limits wait for each other: a sub-workflow begins beyond the limit of its own",
			zap.String("execution_id", string(first.id)), zap.String("gate", first.gate), zap.String("waits_for", name))
		c.admit(first.gate, first.id, nil, func(err error) {
			if err != nil && !errors.Is(err, errNotFound) {
				c.log.Warn("sub-workflow did not begin; the next sweep tries again", zap.String("execution_id", string(first.id)), zap.Error(err))
			}
		})
	}
}

// readWaiter reads an execution; nil when that cannot be done now.
func (c *Coordinator) readWaiter(id engine.ExecutionID) *waiter {
	ctx, cancel := context.WithTimeout(c.ctx, storeTimeout)
	defer cancel()
	stored, err := c.config.Store.LoadOpen(ctx, []engine.ExecutionID{id})
	if err != nil || stored[0] == nil {
		return nil
	}
	s, err := engine.Restore(stored[0].Tables)
	if err != nil {
		return nil
	}
	w := &waiter{id: id, status: s.Meta.Status}
	if p, err := c.placeOf(stored[0]); err == nil && p != nil {
		w.gate = p.Gate
	}
	for _, child := range s.Outstanding() {
		if !child.Detached {
			w.children = append(w.children, child.Execution)
		}
	}
	return w
}

func (s *deadlockSearch) waiter(id engine.ExecutionID) *waiter {
	w, known := s.seen[id]
	if !known && len(s.seen) < deadlockLoads {
		w = s.read(id)
		s.seen[id] = w
	}
	return w
}

// gate reports whether a gate is blocked.
func (s *deadlockSearch) gate(name string) bool {
	g := s.gates[name]
	if g == nil {
		return false
	}
	if s.opened[name] {
		return true
	}
	s.opened[name] = true
	defer delete(s.opened, name)
	before := len(s.queued)
	for _, p := range g.In {
		if !s.execution(p.Execution) {
			s.queued = s.queued[:before]
			return false
		}
	}
	return true
}

// execution reports whether an execution is blocked.
func (s *deadlockSearch) execution(id engine.ExecutionID) bool {
	if s.stack[id] {
		return true
	}
	w := s.waiter(id)
	if w == nil {
		return false
	}
	s.stack[id] = true
	defer delete(s.stack, id)
	switch w.status {
	case engine.StatusNew:
		before := len(s.queued)
		if !s.gate(w.gate) {
			s.queued = s.queued[:before]
			return false
		}
		s.queued = append(s.queued, *w)
		return true
	case engine.StatusWaiting:
		for _, child := range w.children {
			if s.execution(child) {
				return true
			}
		}
	}
	return false
}
