package memstore

import (
	"context"
	"errors"
	"time"

	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/state"
)

// OpenJobs does what state.Store.OpenJobs does.
func (s *Store) OpenJobs(_ context.Context, jobs []state.JobRef) ([]bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	open := make([]bool, len(jobs))
	for i, j := range jobs {
		if x := s.get(j.Execution); x != nil {
			open[i] = x.tables[engine.TableOpen][engine.JobField(j.Job)] != nil
		}
	}
	return open, nil
}

// Postpone does what state.Store.Postpone does.
func (s *Store) Postpone(_ context.Context, ids []engine.ExecutionID, next int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range ids {
		if _, swept := s.active[string(id)]; swept {
			s.active[string(id)] = next
		}
	}
	return nil
}

// CountByStatus does what state.Store.CountByStatus does.
func (s *Store) CountByStatus(context.Context) (map[engine.Status]int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	counts := map[engine.Status]int64{}
	for id := range s.executions {
		if x := s.get(id); x != nil {
			counts[x.status]++
		}
	}
	return counts, nil
}

// limit is a rate limit: the last moments given out, as many as it allows in its span.
type limit struct {
	count   int
	ring    []int64 // ms
	last    int64
	moments map[string]int64 // by holder
}

// Reserve does what state.Store.Reserve does. Holders are never forgotten.
func (s *Store) Reserve(_ context.Context, wanted []state.Reservation) ([]time.Duration, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.config.Now().UnixMilli()
	waits := make([]time.Duration, len(wanted))
	for i, r := range wanted {
		if r.Limit == "" || r.Holder == "" || r.Count < 1 || r.Per < time.Millisecond {
			return nil, errors.New("reserve: limit, holder, count and span are required")
		}
		l := s.limits[r.Limit]
		if l == nil {
			l = &limit{count: r.Count, moments: map[string]int64{}}
			s.limits[r.Limit] = l
		}
		at, known := l.moments[r.Holder]
		if !known {
			if l.count != r.Count {
				l.count, l.ring = r.Count, nil
			}
			at = max(now, l.last)
			if n := len(l.ring); n >= r.Count {
				at = max(at, l.ring[n-r.Count]+r.Per.Milliseconds())
			}
			l.ring = last(append(l.ring, at), r.Count)
			l.last, l.moments[r.Holder] = at, at
		}
		waits[i] = time.Duration(max(0, at-now)) * time.Millisecond
	}
	return waits, nil
}

// Moment is when a holder may go under the limit that it asked under, in ms since 1970, for checks.
func (s *Store) Moment(holder string) (at int64, known bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.limits {
		if moment, ok := l.moments[holder]; ok {
			at, known = max(at, moment), true
		}
	}
	return at, known
}
