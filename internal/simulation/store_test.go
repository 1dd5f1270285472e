package simulation

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/reprise-engine/reprise/internal/coordinator"
	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/state"
	"github.com/reprise-engine/reprise/pkg/table"
)

// storeOf is the store as one process reaches it.
type storeOf struct{ p *process }

var (
	_ coordinator.Store     = storeOf{}
	_ coordinator.HeldStore = storeOf{}
	_ coordinator.Gates     = storeOf{}
)

var errStore = fmt.Errorf("simulated: %w", state.ErrUnavailable)

// reach calls the store. What f returns is the answer, should it arrive.
func reach[T any](ctx context.Context, s storeOf, kind, key string, f func() (T, error)) (T, error) {
	type answer struct {
		value T
		err   error
	}
	var given answer // written before done is closed, unless the caller has gone
	o := &operation{p: s.p, kind: kind, key: key, lost: errStore, repeats: true}
	o.exec = func() {
		value, err := f()
		if !o.ended {
			given = answer{value, err}
		}
	}
	err := o.call(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("%w: %w", state.ErrUnavailable, err)
	}
	if err != nil {
		var none T
		return none, err
	}
	return given.value, given.err
}

func (s storeOf) Commit(ctx context.Context, commits []state.Commit) []error {
	key := string(commits[0].Execution)
	if len(commits) > 1 {
		key += "+" + strconv.Itoa(len(commits)-1)
	}
	w := s.p.w
	errs, err := reach(ctx, s, "commit", key, func() ([]error, error) {
		n := len(commits)
		// The connection may break within the group.
		if n > 1 && w.fault(w.profile.unclear) {
			n = w.rng.IntN(n)
			w.note("cut: %d of %d commits", n, len(commits))
		}
		errs := w.store.Commit(ctx, commits[:n])
		w.history.committed(s.p, commits[:n], errs)
		for range len(commits) - n {
			errs = append(errs, errStore)
		}
		return errs, nil
	})
	if err != nil {
		errs = make([]error, len(commits))
		for i := range errs {
			errs[i] = err
		}
	}
	return errs
}

func (s storeOf) Load(ctx context.Context, ids []engine.ExecutionID) ([]*state.Stored, error) {
	key := ""
	if len(ids) > 0 {
		key = string(ids[0])
	}
	return reach(ctx, s, "load", key, func() ([]*state.Stored, error) { return s.p.w.store.Load(ctx, ids) })
}

func (s storeOf) LoadOpen(ctx context.Context, ids []engine.ExecutionID) ([]*state.Stored, error) {
	key := ""
	if len(ids) > 0 {
		key = string(ids[0])
	}
	return reach(ctx, s, "load", key, func() ([]*state.Stored, error) { return s.p.w.store.LoadOpen(ctx, ids) })
}

func (s storeOf) ClaimTimers(ctx context.Context, now, until int64, limit int) ([]state.Due, error) {
	return reach(ctx, s, "claim timers", "", func() ([]state.Due, error) { return s.p.w.store.ClaimTimers(ctx, now, until, limit) })
}

func (s storeOf) ClaimStale(ctx context.Context, now, next int64, limit int) ([]engine.ExecutionID, error) {
	return reach(ctx, s, "claim stale", "", func() ([]engine.ExecutionID, error) { return s.p.w.store.ClaimStale(ctx, now, next, limit) })
}

// none is the answer of calls that only succeed or fail.
type none struct{}

func (s storeOf) do(ctx context.Context, kind, key string, f func() error) error {
	_, err := reach(ctx, s, kind, key, func() (none, error) { return none{}, f() })
	return err
}

func (s storeOf) DropTimers(ctx context.Context, due []state.Due) error {
	return s.do(ctx, "drop timer", string(due[0].Execution)+"|"+due[0].Timer, func() error { return s.p.w.store.DropTimers(ctx, due) })
}

func (s storeOf) Settle(ctx context.Context, ids []engine.ExecutionID) error {
	return s.do(ctx, "settle", string(ids[0]), func() error { return s.p.w.store.Settle(ctx, ids) })
}

func (s storeOf) PutWorkflow(ctx context.Context, hash string, document []byte) error {
	return s.do(ctx, "put workflow", hash, func() error { return s.p.w.store.PutWorkflow(ctx, hash, document) })
}

func (s storeOf) Workflow(ctx context.Context, hash string) ([]byte, error) {
	return reach(ctx, s, "workflow", hash, func() ([]byte, error) { return s.p.w.store.Workflow(ctx, hash) })
}

func (s storeOf) PutNamedWorkflow(ctx context.Context, record state.WorkflowRecord) error {
	return s.do(ctx, "put named workflow", record.ID, func() error { return s.p.w.store.PutNamedWorkflow(ctx, record) })
}

func (s storeOf) UpdateNamedWorkflow(ctx context.Context, id string, change func(*state.WorkflowRecord, bool) error) (state.WorkflowRecord, error) {
	return reach(ctx, s, "update named workflow", id, func() (state.WorkflowRecord, error) {
		return s.p.w.store.UpdateNamedWorkflow(ctx, id, change)
	})
}

func (s storeOf) NamedWorkflow(ctx context.Context, id string) (state.WorkflowRecord, error) {
	return reach(ctx, s, "named workflow", id, func() (state.WorkflowRecord, error) { return s.p.w.store.NamedWorkflow(ctx, id) })
}

func (s storeOf) NamedWorkflows(ctx context.Context) ([]state.WorkflowRecord, error) {
	return reach(ctx, s, "named workflows", "", func() ([]state.WorkflowRecord, error) { return s.p.w.store.NamedWorkflows(ctx) })
}

func (s storeOf) DeleteNamedWorkflow(ctx context.Context, id string) error {
	return s.do(ctx, "delete named workflow", id, func() error { return s.p.w.store.DeleteNamedWorkflow(ctx, id) })
}

func (s storeOf) AppendMemory(ctx context.Context, session, id string, messages []json.RawMessage) error {
	return s.do(ctx, "append memory", session+" "+id, func() error { return s.p.w.store.AppendMemory(ctx, session, id, messages) })
}

func (s storeOf) Memory(ctx context.Context, session string, n int) ([]json.RawMessage, error) {
	return reach(ctx, s, "memory", session, func() ([]json.RawMessage, error) { return s.p.w.store.Memory(ctx, session, n) })
}

func (s storeOf) ApplyTable(ctx context.Context, r *table.Request) (*table.Answer, error) {
	return reach(ctx, s, "table", r.Key, func() (*table.Answer, error) { return s.p.w.store.ApplyTable(ctx, r) })
}

type listing struct {
	page []state.Summary
	next string
}

func (s storeOf) List(ctx context.Context, f state.Filter) ([]state.Summary, string, error) {
	l, err := reach(ctx, s, "list", "", func() (l listing, err error) {
		l.page, l.next, err = s.p.w.store.List(ctx, f)
		return l, err
	})
	return l.page, l.next, err
}

type asking struct {
	page []state.Asked
	next string
}

func (s storeOf) Questions(ctx context.Context, limit int, cursor string) ([]state.Asked, string, error) {
	l, err := reach(ctx, s, "questions", "", func() (l asking, err error) {
		l.page, l.next, err = s.p.w.store.Questions(ctx, limit, cursor)
		return l, err
	})
	return l.page, l.next, err
}

func (s storeOf) Prune(ctx context.Context, before int64) (int, error) {
	return reach(ctx, s, "prune", "", func() (int, error) { return s.p.w.store.Prune(ctx, before) })
}

func (s storeOf) Retention() time.Duration { return s.p.w.store.Retention() }

func (s storeOf) Ping(ctx context.Context) error {
	return s.do(ctx, "ping", "", func() error { return nil })
}
