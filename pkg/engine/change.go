package engine

import (
	"fmt"
	"maps"
	"slices"
	"sort"
)

// tx is the work on one event. All changes of the State go through its
// methods, which note the fields to write and how to take the change back: an
// event either counts whole or leaves the State as it was.
//
// Records, jobs, rounds and entries that are in the State are never altered in
// place (but for a round's Open count); they are replaced. So a pointer that
// was handed out stays true.
type tx struct {
	*Machine
	s    *State
	at   int64
	step Step

	meta    Meta // as it was
	ending  bool // the execution is being closed
	stack   bool // the stack slice is our own copy
	undo    []func()
	touched map[field]int // index in writes
	writes  []write
}

type field struct {
	table Table
	name  string
}

type write struct {
	field
	value any  // nil deletes
	fresh bool // the field did not exist before this event
	// encoded is a record's value once it was measured, counted its bytes in Meta.RunBytes.
	encoded []byte
	counted int64
}

// encodeError says which field could not be written.
type encodeError struct {
	what string
	err  error
}

func (e *encodeError) Error() string { return fmt.Sprintf("encode %s: %v", e.what, e.err) }
func (e *encodeError) Unwrap() error { return e.err }

func (m *Machine) begin(s *State, at int64) *tx {
	return &tx{Machine: m, s: s, at: at, meta: s.Meta, touched: map[field]int{}}
}

// commit encodes what was touched.
func (t *tx) commit() (Step, error) {
	for i := range t.writes {
		if err := t.weigh(&t.writes[i]); err != nil {
			return Step{}, err
		}
	}
	if progressOf(t.meta) != progressOf(t.s.Meta) {
		t.put(TableMeta, fieldProgress, progressOf(t.s.Meta), false)
	}
	for _, w := range t.writes {
		if w.value == nil {
			if !w.fresh {
				t.step.Changes = append(t.step.Changes, Change{Table: w.table, Field: w.name})
			}
			continue
		}
		value, err := w.encoded, error(nil)
		if value == nil {
			value, err = encode(w.value)
		}
		if err != nil {
			return Step{}, &encodeError{what: string(w.table) + " " + w.name, err: err}
		}
		t.step.Changes = append(t.step.Changes, Change{Table: w.table, Field: w.name, Value: value})
	}
	return t.step, nil
}

// rollback restores the State as it was before the event.
func (t *tx) rollback() {
	for _, undo := range slices.Backward(t.undo) {
		undo()
	}
	t.s.Meta = t.meta
}

func (t *tx) put(table Table, name string, value any, fresh bool) {
	f := field{table, name}
	if i, ok := t.touched[f]; ok {
		t.writes[i].value, t.writes[i].encoded = value, nil
		return
	}
	t.touched[f] = len(t.writes)
	t.writes = append(t.writes, write{field: f, value: value, fresh: fresh})
}

func (t *tx) del(table Table, name string) { t.put(table, name, nil, false) }

// set changes an entry of one of the State's maps and notes the undo.
func set[K comparable, V any](t *tx, m map[K]V, key K, value V) (fresh bool) {
	old, had := m[key]
	t.undo = append(t.undo, func() {
		if had {
			m[key] = old
		} else {
			delete(m, key)
		}
	})
	m[key] = value
	return !had
}

func unset[K comparable, V any](t *tx, m map[K]V, key K) (was V, had bool) {
	was, had = m[key]
	if had {
		t.undo = append(t.undo, func() { m[key] = was })
		delete(m, key)
	}
	return was, had
}

func (t *tx) setBegin(b *Started) {
	old := t.s.Begin
	if old == b {
		return
	}
	t.undo = append(t.undo, func() { t.s.Begin = old })
	t.s.Begin = b
	if b == nil {
		t.del(TableOpen, fieldBegin)
	} else {
		t.put(TableOpen, fieldBegin, b, true)
	}
}

// Stack.

func (t *tx) ownStack() {
	if t.stack {
		return
	}
	t.stack = true
	old := t.s.Stack
	t.undo = append(t.undo, func() { t.s.Stack = old })
	t.s.Stack = append(make([]*Entry, 0, len(old)+4), old...)
}

// push puts an entry on top of the stack.
func (t *tx) push(e *Entry) {
	e.Seq = t.s.Meta.NextTop
	t.s.Meta.NextTop++
	t.ownStack()
	t.s.Stack = append(t.s.Stack, e)
	t.stacked(e)
}

// pushBelow puts an entry at the bottom of the stack, where it is popped last.
func (t *tx) pushBelow(e *Entry) {
	e.Seq = t.s.Meta.NextLast
	t.s.Meta.NextLast--
	t.ownStack()
	t.s.Stack = slices.Insert(t.s.Stack, 0, e)
	t.stacked(e)
}

func (t *tx) stacked(e *Entry) {
	if e.Kind == EntryResume {
		set(t, t.s.resumes, e.RunRef(), e)
	}
	t.put(TableStack, stackField(e.Seq), e, true)
}

// pop takes the i-th entry (0 is the bottom) off the stack.
func (t *tx) pop(i int) *Entry {
	t.ownStack()
	e := t.s.Stack[i]
	t.s.Stack = slices.Delete(t.s.Stack, i, i+1)
	if e.Kind == EntryResume {
		unset(t, t.s.resumes, e.RunRef())
	}
	t.del(TableStack, stackField(e.Seq))
	return e
}

// Run data.

// reserve gives out the next run index of a node.
func (t *tx) reserve(node string) int {
	runs := t.s.Run[node]
	set(t, t.s.Run, node, append(runs, nil))
	return len(runs)
}

// unreserve takes back the run index of a run that leaves no record, when no
// later one was given out.
func (t *tx) unreserve(node string, run int) {
	runs := t.s.Run[node]
	if run != len(runs)-1 || runs[run] != nil {
		return
	}
	if run == 0 {
		unset(t, t.s.Run, node)
		return
	}
	set(t, t.s.Run, node, runs[:run])
}

func (t *tx) record(node string, run int, r *Record) {
	runs := t.s.Run[node]
	old := runs[run]
	t.undo = append(t.undo, func() { runs[run] = old })
	runs[run] = r
	t.put(TableRun, runField(node, run), r, old == nil)
}

// Open things.

func (t *tx) putJob(j *OpenJob) {
	fresh := set(t, t.s.Jobs, j.ID, j)
	t.put(TableOpen, jobField(j.ID), j, fresh)
}

func (t *tx) delJob(id JobID) {
	if _, had := unset(t, t.s.Jobs, id); had {
		t.del(TableOpen, jobField(id))
	}
	t.clearTimer(timeoutTimer(id))
	t.clearTimer(retryTimer(id))
}

func (t *tx) putParked(p *Parked) {
	fresh := set(t, t.s.Parked, p.Token, p)
	set(t, t.s.parked, p.Entry.RunRef(), p)
	t.put(TableOpen, parkedField(p.Token), p, fresh)
}

// unpark takes a run out of its wait; what its children left is kept until the
// run ends.
func (t *tx) unpark(p *Parked) {
	unset(t, t.s.Parked, p.Token)
	unset(t, t.s.parked, p.Entry.RunRef())
	t.del(TableOpen, parkedField(p.Token))
	t.clearTimer(waitTimer(p.Token))
	if p.Wait.Kind == WaitApproval {
		t.step.Questions = append(t.step.Questions, TimerChange{ID: p.Token})
	}
}

func (t *tx) putChild(token string, index int, r *ChildResult) {
	if t.s.Children[token] == nil {
		set(t, t.s.Children, token, map[int]*ChildResult{})
	}
	set(t, t.s.Children[token], index, r)
	t.put(TableOpen, childField(token, index), r, true)
}

func (t *tx) delChildren(token string) {
	results, _ := unset(t, t.s.Children, token)
	for _, i := range slices.Sorted(maps.Keys(results)) {
		t.del(TableOpen, childField(token, i))
	}
}

func (t *tx) putRound(r *OpenRound) {
	rounds := t.s.Rounds[r.Caller]
	set(t, t.s.Rounds, r.Caller, append(rounds, r))
	t.put(TableOpen, roundField(r.Caller, r.Index), r, true)
}

func (t *tx) answered(r *OpenRound) {
	r.Open--
	t.undo = append(t.undo, func() { r.Open++ })
	if r.Open == 0 {
		t.raise(r.Caller)
	}
}

// raise puts a requester on top that has all its answers. It is there already,
// unless it was set aside and others ran meanwhile.
func (t *tx) raise(caller RunRef) {
	e := t.s.resumes[caller]
	if e == nil || e.AsTool() || t.ending || t.s.stopping() || t.s.Stack[len(t.s.Stack)-1] == e {
		return
	}
	raised := *t.pop(slices.Index(t.s.Stack, e))
	t.push(&raised)
}

func (t *tx) delRounds(caller RunRef) {
	rounds, _ := unset(t, t.s.Rounds, caller)
	for _, r := range rounds {
		t.del(TableOpen, roundField(caller, r.Index))
	}
}

func (t *tx) putJoin(j *Join) {
	joins := t.s.Joins[j.Node]
	at := slices.IndexFunc(joins, func(o *Join) bool { return o.Seq == j.Seq })
	next := slices.Clone(joins)
	if at < 0 {
		next = append(next, j)
	} else {
		next[at] = j
	}
	set(t, t.s.Joins, j.Node, next)
	t.put(TableOpen, joinField(j.Seq), j, at < 0)
}

func (t *tx) delJoin(j *Join) {
	joins := t.s.Joins[j.Node]
	next := slices.DeleteFunc(slices.Clone(joins), func(o *Join) bool { return o.Seq == j.Seq })
	if len(next) == len(joins) {
		return
	}
	if len(next) == 0 {
		unset(t, t.s.Joins, j.Node)
	} else {
		set(t, t.s.Joins, j.Node, next)
	}
	t.del(TableOpen, joinField(j.Seq))
}

func (t *tx) setTimer(id string, at int64) {
	fresh := set(t, t.s.Timers, id, at)
	t.put(TableOpen, timerField(id), at, fresh)
	t.step.Timers = append(t.step.Timers, TimerChange{ID: id, At: at})
}

func (t *tx) clearTimer(id string) {
	if _, had := unset(t, t.s.Timers, id); had {
		t.del(TableOpen, timerField(id))
		t.step.Timers = append(t.step.Timers, TimerChange{ID: id})
	}
}

func (t *tx) setContext(node string, context []byte) {
	fresh := set(t, t.s.Context, node, context)
	t.put(TableOpen, contextField(node), rawValue(context), fresh)
}

func (t *tx) delContext(node string) {
	if _, had := unset(t, t.s.Context, node); had {
		t.del(TableOpen, contextField(node))
	}
}

// sortedKeys lists the keys of a map in order, wherever order can reach an
// effect.
func sortedKeys[K ~string, V any](m map[K]V) []K {
	keys := make([]K, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Slice(keys, func(i, j int) bool { return keys[i] < keys[j] })
	return keys
}

// JobsInOrder lists the open jobs as they were made.
func (s *State) JobsInOrder() []*OpenJob {
	jobs := make([]*OpenJob, 0, len(s.Jobs))
	for _, j := range s.Jobs {
		jobs = append(jobs, j)
	}
	sort.Slice(jobs, func(i, j int) bool {
		if a, b := len(jobs[i].ID), len(jobs[j].ID); a != b {
			return a < b
		}
		return jobs[i].ID < jobs[j].ID
	})
	return jobs
}
