package memstore

import (
	"slices"

	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/state"
)

// Left is what a store holds that somebody must still attend to.
type Left struct {
	Active    []string // executions that are to be swept
	Timers    []string // "<execution>|<timer>"
	Questions []string // tokens
	Gates     []string // of which somebody holds a place or waits for one
}

// Left lists what must still be attended to, for checks that nothing is.
func (s *Store) Left() Left {
	s.mu.Lock()
	defer s.mu.Unlock()
	names := func(set map[string]int64) (list []string) {
		for _, e := range sorted(set, nil) {
			list = append(list, e.name)
		}
		return list
	}
	var gates []string
	for name := range s.gates {
		gates = append(gates, name)
	}
	slices.Sort(gates)
	return Left{Gates: gates, Active: names(s.active), Timers: names(s.timers), Questions: names(s.questions)}
}

// Executions lists the ids of all executions, sorted.
func (s *Store) Executions() []engine.ExecutionID {
	s.mu.Lock()
	defer s.mu.Unlock()
	ids := make([]engine.ExecutionID, 0, len(s.executions))
	for id := range s.executions {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

// View is Load of one execution, for checks: what it returns is the store's own and must not be changed,
// nor kept beyond the next commit. nil when there is none.
func (s *Store) View(id engine.ExecutionID) *state.Stored {
	s.mu.Lock()
	defer s.mu.Unlock()
	x := s.get(id)
	if x == nil {
		return nil
	}
	return &state.Stored{Version: x.version, Status: x.status, Tables: x.tables}
}
