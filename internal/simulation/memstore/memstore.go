// Package memstore is a stand-in for pkg/state in the memory of one process, for
// simulations: the same answers, no Redis, no waiting. It passes the contract suite
// of pkg/state/statetest.
//
// What it leaves out is what the contract does not promise: shards, limits of one
// round trip, and the way Redis may fail. Whoever wants failures puts them in front.
package memstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/state"
	"github.com/reprise-engine/reprise/pkg/table"
)

// Config of a Store. The zero Config is usable.
type Config struct {
	// Retention of finished executions, default 24 hours.
	Retention time.Duration
	// MemoryLimit is the number of messages a conversation keeps, default 1000.
	MemoryLimit int
	// TableLimits bound each data table.
	TableLimits table.Limits
	// Now is the store's clock, by which what is finished expires; nil: time.Now.
	Now func() time.Time
}

// Store keeps everything in maps. Goroutines may share it.
type Store struct {
	config Config

	mu         sync.Mutex
	executions map[engine.ExecutionID]*execution
	active     map[string]int64 // execution: next sweep
	timers     map[string]int64 // "<execution>|<timer>": due
	questions  map[string]int64 // token: asked at
	finished   map[string]int64 // execution: stopped at
	memory     map[string]*memory
	workflows  map[string][]byte
	named      map[string]state.WorkflowRecord
	secrets    map[string][]byte
	gates      map[string]*gate
	turns      map[string]int64 // name: until when it is taken
	limits     map[string]*limit
	tables     dataTables
}

// tokens is how many commits an execution remembers, as in pkg/state.
const tokens = 8

type execution struct {
	version                  uint64
	status                   engine.Status
	started, stopped, moved  int64
	workflowID, workflowName string
	tokens                   [tokens]string
	tables                   engine.Tables
	expires                  int64 // ms, 0: never
}

// New returns an empty store.
func New(c Config) *Store {
	if c.Retention <= 0 {
		c.Retention = 24 * time.Hour
	}
	if c.MemoryLimit <= 0 {
		c.MemoryLimit = 1000
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	return &Store{
		config: c, executions: map[engine.ExecutionID]*execution{},
		active: map[string]int64{}, timers: map[string]int64{}, questions: map[string]int64{}, finished: map[string]int64{},
		memory: map[string]*memory{}, workflows: map[string][]byte{}, named: map[string]state.WorkflowRecord{}, secrets: map[string][]byte{},
		gates: map[string]*gate{}, turns: map[string]int64{}, limits: map[string]*limit{},
		tables: dataTables{data: map[string]*table.Data{}, rows: map[string][]byte{}, done: map[string]*table.Table{}},
	}
}

// Ping reports that the store is there.
func (s *Store) Ping(context.Context) error { return nil }

// Retention is how long finished executions are kept.
func (s *Store) Retention() time.Duration { return s.config.Retention }

// get finds an execution that has not expired. s.mu is held.
func (s *Store) get(id engine.ExecutionID) *execution {
	x := s.executions[id]
	if x != nil && x.expires != 0 && x.expires <= s.config.Now().UnixMilli() {
		delete(s.executions, id)
		return nil
	}
	return x
}

// Commit implements the contract of state.Store.
func (s *Store) Commit(_ context.Context, commits []state.Commit) []error {
	if len(commits) == 0 {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	errs := make([]error, len(commits))
	for i := range commits {
		if err := s.commit(&commits[i]); err != nil {
			errs[i] = fmt.Errorf("commit execution %s at version %d: %w", commits[i].Execution, commits[i].Version, err)
		}
	}
	return errs
}

func (s *Store) commit(c *state.Commit) error {
	if err := check(c); err != nil {
		return err
	}
	x, creates := s.get(c.Execution), c.Version == 0
	switch {
	case x == nil && !creates:
		return state.ErrNotFound
	case x != nil && x.version != c.Version:
		for _, token := range x.tokens {
			if c.Token != "" && token == c.Token {
				return nil
			}
		}
		if creates {
			return state.ErrExists
		}
		return state.ErrConflict
	case x != nil && x.status.Finished():
		return state.ErrFinished
	}
	if creates {
		x = &execution{started: or(c.StartedAt, c.At), workflowID: c.WorkflowID, workflowName: c.WorkflowName, tables: engine.Tables{}}
		for _, t := range tables {
			x.tables[t] = map[string][]byte{}
		}
		s.executions[c.Execution] = x
		delete(s.finished, string(c.Execution))
	}
	for _, change := range c.Changes {
		if change.Value == nil {
			delete(x.tables[change.Table], change.Field)
		} else {
			x.tables[change.Table][change.Field] = bytes.Clone(change.Value)
		}
	}
	for _, t := range c.Timers {
		put(s.timers, member(c.Execution, t.ID), t.At)
	}
	for _, q := range c.Questions {
		put(s.questions, q.ID, q.At)
	}
	x.version++
	x.status = c.Status
	x.moved = c.At
	x.tokens[x.version%tokens] = c.Token
	s.schedule(c, x, creates)
	return nil
}

// schedule says when the sweeper comes again, and ends what is finished.
func (s *Store) schedule(c *state.Commit, x *execution, creates bool) {
	id := string(c.Execution)
	finishes := c.Status.Finished()
	switch {
	case finishes && c.Unsettled:
		s.active[id] = or(c.NextSweep, c.At)
	case finishes:
		delete(s.active, id)
	case creates:
		s.active[id] = or(c.NextSweep, c.At)
	case c.NextSweep != 0:
		s.active[id] = c.NextSweep
	}
	if finishes {
		x.stopped = or(c.StoppedAt, c.At)
		x.expires = s.config.Now().Add(s.config.Retention).UnixMilli()
		s.finished[id] = x.stopped
	}
}

var tables = [...]engine.Table{engine.TableMeta, engine.TableStack, engine.TableRun, engine.TableOpen}

// check refuses what the real store refuses.
func check(c *state.Commit) error {
	if err := checkID(c.Execution); err != nil {
		return err
	}
	switch c.Status {
	case engine.StatusNew, engine.StatusRunning, engine.StatusWaiting, engine.StatusSuccess, engine.StatusError, engine.StatusCanceled:
	default:
		return fmt.Errorf("status %q cannot be stored", c.Status)
	}
	if c.Finished && !c.Status.Finished() {
		return fmt.Errorf("finished, but with the status %q", c.Status)
	}
	if len(c.Token) > 64 {
		return fmt.Errorf("token of %d bytes: at most 64", len(c.Token))
	}
	for _, change := range c.Changes {
		known := false
		for _, t := range tables {
			known = known || change.Table == t
		}
		switch {
		case !known:
			return fmt.Errorf("change of field %q: unknown table %q", change.Field, change.Table)
		case change.Table == engine.TableMeta && len(change.Field) > 0 && change.Field[0] == '~':
			return fmt.Errorf("change of meta field %q: names that begin with ~ are the store's own", change.Field)
		}
	}
	return nil
}

func checkID(id engine.ExecutionID) error {
	if id == "" || len(id) > 128 {
		return fmt.Errorf("execution id %q: must have 1 to 128 characters", id)
	}
	for _, c := range []byte(id) {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '-', c == '_':
		default:
			return fmt.Errorf("execution id %q: only letters, digits, \"-\" and \"_\" are allowed", id)
		}
	}
	return nil
}

func or(at, otherwise int64) int64 {
	if at == 0 {
		return otherwise
	}
	return at
}

// put sets a time, or removes it when it is 0.
func put(set map[string]int64, name string, at int64) {
	if at == 0 {
		delete(set, name)
		return
	}
	set[name] = at
}

// Load implements the contract of state.Store.
func (s *Store) Load(_ context.Context, ids []engine.ExecutionID) ([]*state.Stored, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]*state.Stored, len(ids))
	for i, id := range ids {
		if err := checkID(id); err != nil {
			return nil, fmt.Errorf("load: %w", err)
		}
		x := s.get(id)
		if x == nil {
			continue
		}
		copied := make(engine.Tables, len(x.tables))
		for t, fields := range x.tables {
			table := make(map[string][]byte, len(fields))
			for name, value := range fields {
				table[name] = bytes.Clone(value)
			}
			copied[t] = table
		}
		out[i] = &state.Stored{Version: x.version, Status: x.status, Tables: copied}
	}
	return out, nil
}

// LoadOpen implements the contract of state.Store.
func (s *Store) LoadOpen(ctx context.Context, ids []engine.ExecutionID) ([]*state.Stored, error) {
	out, err := s.Load(ctx, ids)
	for _, x := range out {
		if x != nil {
			delete(x.Tables, engine.TableRun)
		}
	}
	return out, err
}

// Delete implements the contract of state.Store.
func (s *Store) Delete(_ context.Context, id engine.ExecutionID) error {
	if err := checkID(id); err != nil {
		return fmt.Errorf("delete: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	x := s.get(id)
	_, indexed := s.finished[string(id)]
	_, unsettled := s.active[string(id)]
	switch {
	case x == nil && !indexed:
		s.remove(string(id))
		return fmt.Errorf("delete execution %s: %w", id, state.ErrNotFound)
	case x != nil && !x.status.Finished():
		return fmt.Errorf("delete execution %s: %w", id, state.ErrUnfinished)
	case x != nil && unsettled:
		return fmt.Errorf("delete execution %s: %w", id, state.ErrUnsettled)
	}
	s.remove(string(id))
	return nil
}

func (s *Store) remove(id string) {
	delete(s.executions, engine.ExecutionID(id))
	delete(s.finished, id)
	delete(s.active, id)
}

// Prune implements the contract of state.Store.
func (s *Store) Prune(_ context.Context, before int64) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for id, stopped := range s.finished {
		if stopped <= before {
			s.remove(id)
			n++
		}
	}
	return n, nil
}

// Settle implements the contract of state.Store.
func (s *Store) Settle(_ context.Context, ids []engine.ExecutionID) error {
	for _, id := range ids {
		if err := checkID(id); err != nil {
			return fmt.Errorf("settle: %w", err)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range ids {
		if x := s.get(id); x == nil || x.status.Finished() {
			delete(s.active, string(id))
		}
	}
	return nil
}

// Secret implements the contract of state.Store.
func (s *Store) Secret(_ context.Context, name string, propose []byte) ([]byte, error) {
	if name == "" || len(propose) == 0 {
		return nil, errors.New("read secret: name and proposed value must not be empty")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.secrets[name] == nil {
		s.secrets[name] = bytes.Clone(propose)
	}
	return bytes.Clone(s.secrets[name]), nil
}
