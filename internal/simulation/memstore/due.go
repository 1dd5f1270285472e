package memstore

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/state"
)

func member(id engine.ExecutionID, timer string) string { return string(id) + "|" + timer }

// entry is a member of a set of times.
type entry struct {
	name string
	at   int64
}

// sorted lists a set by time, those of one time by name.
func sorted(set map[string]int64, keep func(at int64) bool) []entry {
	var all []entry
	for name, at := range set {
		if keep == nil || keep(at) {
			all = append(all, entry{name, at})
		}
	}
	slices.SortFunc(all, func(a, b entry) int {
		if a.at != b.at {
			return int(min(max(a.at-b.at, -1), 1))
		}
		return strings.Compare(a.name, b.name)
	})
	return all
}

// claim takes what is due and puts it off. s.mu is held.
func claim(set map[string]int64, now, until int64, limit int) []entry {
	due := sorted(set, func(at int64) bool { return at <= now })
	due = due[:min(len(due), max(limit, 0))]
	for _, e := range due {
		set[e.name] = until
	}
	return due
}

// ClaimTimers implements the contract of state.Store.
func (s *Store) ClaimTimers(_ context.Context, now, claimUntil int64, limit int) ([]state.Due, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var due []state.Due
	for _, e := range claim(s.timers, now, claimUntil, limit) {
		id, timer, _ := strings.Cut(e.name, "|")
		due = append(due, state.Due{Execution: engine.ExecutionID(id), Timer: timer, At: e.at, Claim: claimUntil})
	}
	return due, nil
}

// DropTimers implements the contract of state.Store.
func (s *Store) DropTimers(_ context.Context, due []state.Due) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, d := range due {
		if name := member(d.Execution, d.Timer); s.timers[name] == d.Claim {
			delete(s.timers, name)
		}
	}
	return nil
}

// ClaimStale implements the contract of state.Store.
func (s *Store) ClaimStale(_ context.Context, now, next int64, limit int) ([]engine.ExecutionID, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var ids []engine.ExecutionID
	for _, e := range claim(s.active, now, next, limit) {
		ids = append(ids, engine.ExecutionID(e.name))
	}
	return ids, nil
}

// NextDue implements the contract of state.Store.
func (s *Store) NextDue(context.Context) (timer, sweep int64, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if first := sorted(s.timers, nil); len(first) > 0 {
		timer = first[0].at
	}
	if first := sorted(s.active, nil); len(first) > 0 {
		sweep = first[0].at
	}
	return timer, sweep, nil
}

const (
	defaultPage = 50
	maxPage     = 1000
)

func pageLimit(asked int) int {
	if asked <= 0 {
		return defaultPage
	}
	return min(asked, maxPage)
}

func (e entry) cursor() string { return strconv.FormatInt(e.at, 10) + "." + e.name }

func parseCursor(text string) (*entry, error) {
	if text == "" {
		return nil, nil
	}
	at, name, ok := strings.Cut(text, ".")
	ms, err := strconv.ParseInt(at, 10, 64)
	if !ok || err != nil || name == "" {
		return nil, fmt.Errorf("%w: cursor %q is not one that was given out", state.ErrFilter, text)
	}
	return &entry{name, ms}, nil
}

// Questions implements the contract of state.Store.
func (s *Store) Questions(_ context.Context, limit int, cursor string) (asked []state.Asked, next string, err error) {
	from, err := parseCursor(cursor)
	if err != nil {
		return nil, "", fmt.Errorf("list questions: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	all := sorted(s.questions, nil)
	if from != nil {
		all = slices.DeleteFunc(all, func(e entry) bool { return e.at < from.at || e.at == from.at && e.name <= from.name })
	}
	limit = pageLimit(limit)
	if len(all) > limit {
		all = all[:limit]
		next = all[limit-1].cursor()
	}
	asked = make([]state.Asked, len(all))
	for i, e := range all {
		asked[i] = state.Asked{Token: e.name, At: e.at}
	}
	return asked, next, nil
}

// List implements the contract of state.Store.
func (s *Store) List(_ context.Context, f state.Filter) (page []state.Summary, next string, err error) {
	for _, st := range f.Status {
		switch st {
		case engine.StatusNew, engine.StatusRunning, engine.StatusWaiting, engine.StatusSuccess, engine.StatusError, engine.StatusCanceled:
		default:
			return nil, "", fmt.Errorf("list executions: %w: unknown status %q", state.ErrFilter, st)
		}
	}
	from, err := parseCursor(f.Cursor)
	if err == nil && from != nil && checkID(engine.ExecutionID(from.name)) != nil {
		err = fmt.Errorf("%w: cursor %q is not one that was given out", state.ErrFilter, f.Cursor)
	}
	if err != nil {
		return nil, "", fmt.Errorf("list executions: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	started := map[string]int64{}
	for id := range s.executions {
		if x := s.get(id); x != nil {
			started[string(id)] = x.started
		}
	}
	all := sorted(started, nil)
	slices.Reverse(all)
	limit := pageLimit(f.Limit)
	for _, e := range all {
		if from != nil && (e.at > from.at || e.at == from.at && e.name >= from.name) {
			continue
		}
		x := s.executions[engine.ExecutionID(e.name)]
		if len(f.Status) > 0 && !slices.Contains(f.Status, x.status) || f.Workflow != "" && f.Workflow != x.workflowID && f.Workflow != x.workflowName {
			continue
		}
		if len(page) == limit {
			return page, next, nil
		}
		origin, _ := engine.ReadOrigin(x.tables[engine.TableMeta][engine.OriginField])
		page = append(page, state.Summary{
			ID: engine.ExecutionID(e.name), Status: x.status, WorkflowID: x.workflowID, WorkflowName: x.workflowName,
			StartedAt: x.started, StoppedAt: x.stopped, Version: x.version, Origin: origin,
		})
		next = e.cursor()
	}
	return page, "", nil
}
