package memstore

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/state"
)

// gate is who holds a place in a workflow, and who waits for one.
type gate struct {
	limit int
	in    map[string]int64 // execution: since when in ms, negative: called from the queue and not begun
	queue []string
}

// gateRecall is the real store's.
const gateRecall = 2000

func (s *Store) gate(name string) *gate {
	g := s.gates[name]
	if g == nil {
		g = &gate{in: map[string]int64{}}
		s.gates[name] = g
	}
	return g
}

// Gate does what state.Store.Gate does.
func (s *Store) Gate(_ context.Context, calls []state.GateCall) []state.GateAnswer {
	s.mu.Lock()
	defer s.mu.Unlock()
	answers := make([]state.GateAnswer, len(calls))
	for i := range calls {
		c := &calls[i]
		if c.Op != state.GateLeave || c.Execution != "" {
			if err := checkID(c.Execution); err != nil {
				answers[i].Err = err
				continue
			}
		}
		if c.Gate == "" || c.Op != state.GateLeave && c.Limit < 1 {
			answers[i].Err = fmt.Errorf("gate of workflow %q with limit %d: a name and at least one place are required", c.Gate, c.Limit)
			continue
		}
		g := s.gate(c.Gate)
		switch c.Op {
		case state.GateEnter:
			answers[i].Position, answers[i].Exempt = g.enter(c)
		case state.GateHold:
			g.in[string(c.Execution)] = c.At
			g.unqueue(string(c.Execution))
			g.limit = cmp.Or(g.limit, c.Limit)
		case state.GateLeave:
			answers[i].Next = g.leave(c)
		}
		if len(g.in)+len(g.queue) == 0 {
			delete(s.gates, c.Gate)
		}
	}
	return answers
}

func (g *gate) enter(c *state.GateCall) (position int, exempt bool) {
	for _, id := range c.Line {
		if _, in := g.in[string(id)]; in {
			return 0, true
		}
	}
	g.limit = c.Limit
	id := string(c.Execution)
	if _, in := g.in[id]; in {
		return 0, false
	}
	if i := slices.Index(g.queue, id); i >= 0 {
		return i + 1, false
	}
	if len(g.queue) == 0 && len(g.in) < g.limit {
		g.in[id] = c.At
		return 0, false
	}
	g.queue = append(g.queue, id)
	return len(g.queue), false
}

func (g *gate) unqueue(id string) {
	g.queue = slices.DeleteFunc(g.queue, func(other string) bool { return other == id })
}

func (g *gate) leave(c *state.GateCall) (next []engine.ExecutionID) {
	delete(g.in, string(c.Execution))
	g.unqueue(string(c.Execution))
	for _, e := range sorted(g.in, func(at int64) bool { return at < 0 && -at <= max(c.At-gateRecall, 1) }) {
		next = append(next, engine.ExecutionID(e.name))
	}
	// As in the script, which compares with -(at - recall): the ones called before that.
	for len(g.queue) > 0 && len(g.in) < max(g.limit, 1) {
		id := g.queue[0]
		g.queue = g.queue[1:]
		g.in[id] = -c.At
		next = append(next, engine.ExecutionID(id))
	}
	return next
}

// Gates does what state.Store.Gates does.
func (s *Store) Gates(context.Context) ([]state.Gate, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var gates []state.Gate
	for name, g := range s.gates {
		one := state.Gate{Name: name, Limit: g.limit, Queued: len(g.queue)}
		for _, e := range sorted(g.in, nil) {
			p := state.GatePlace{Execution: engine.ExecutionID(e.name), Since: max(e.at, -e.at), Called: e.at < 0}
			if x := s.get(p.Execution); x != nil {
				p.Status = x.status
			}
			one.In = append(one.In, p)
		}
		gates = append(gates, one)
	}
	slices.SortFunc(gates, func(a, b state.Gate) int { return cmp.Compare(a.Name, b.Name) })
	return gates, nil
}

// GatePosition does what state.Store.GatePosition does.
func (s *Store) GatePosition(_ context.Context, name string, id engine.ExecutionID) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if g := s.gates[name]; g != nil {
		return slices.Index(g.queue, string(id)) + 1, nil
	}
	return 0, nil
}

// Line does what state.Store.Line does.
func (s *Store) Line(_ context.Context, parent engine.ExecutionID) (line []engine.ExecutionID, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id := parent; id != "" && len(line) < 100; {
		line = append(line, id)
		x := s.get(id)
		if x == nil {
			break
		}
		origin, err := engine.ReadOrigin(x.tables[engine.TableMeta][engine.OriginField])
		if err != nil {
			return nil, fmt.Errorf("read what started execution %s: %w", id, err)
		}
		if origin.Detached {
			break
		}
		id = origin.Parent
	}
	return line, nil
}

// Turn does what state.Store.Turn does.
func (s *Store) Turn(_ context.Context, name string, interval int64) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.config.Now().UnixMilli()
	if s.turns[name] > now {
		return false, nil
	}
	s.turns[name] = now + interval
	return true, nil
}

// Stuck does what state.Store.Stuck does.
func (s *Store) Stuck(_ context.Context, before int64) (stuck []state.StuckExecution, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id := range s.executions {
		if x := s.get(id); x != nil && x.status == engine.StatusRunning && x.moved <= before {
			stuck = append(stuck, state.StuckExecution{Execution: id, WorkflowName: x.workflowName, Moved: x.moved})
		}
	}
	slices.SortFunc(stuck, func(a, b state.StuckExecution) int {
		return cmp.Or(cmp.Compare(a.Moved, b.Moved), cmp.Compare(a.Execution, b.Execution))
	})
	return stuck, nil
}
