package engine

import (
	"errors"
	"fmt"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/segmentio/encoding/json"

	"github.com/reprise-engine/reprise/pkg/workflow"
)

// Fields of the tables. Names of nodes come last, they may hold any character.
const (
	// fieldIdentity is written once, fieldProgress whenever the execution moves.
	fieldIdentity = "identity"
	fieldProgress = "progress"

	prefixJob     = "job:"
	prefixRound   = "round:"
	prefixJoin    = "join:"
	prefixTimer   = "timer:"
	prefixContext = "context:"
	prefixParked  = "parked:"
	prefixChild   = "child:"
	fieldBegin    = "begin"
)

func stackField(seq int64) string          { return strconv.FormatInt(seq, 10) }
func runField(node string, run int) string { return strconv.Itoa(run) + ":" + node }
func jobField(id JobID) string             { return prefixJob + string(id) }
func roundField(c RunRef, index int) string {
	return fmt.Sprintf("%s%d:%d:%s", prefixRound, c.Run, index, c.Node)
}
func joinField(seq int) string        { return prefixJoin + strconv.Itoa(seq) }
func timerField(id string) string     { return prefixTimer + id }
func contextField(node string) string { return prefixContext + node }
func parkedField(token string) string { return prefixParked + token }
func childField(token string, index int) string {
	return prefixChild + strconv.Itoa(index) + ":" + token
}

// Format is the version of the stored form. Executions of format 1 are stored without it. It
// grows when the tables change in a way that an older program must not touch; one that comes upon an
// execution of a greater format, or with a flag that it does not know, leaves it alone
// (ErrNewer), until a newer one takes the next event of it.
//
// Fields may be added without that when whoever does not know them may drop them: an older
// program keeps the records and entries that it does not write anew as they are, identity always,
// and loses unknown fields of what it does.
const Format = 1

// ErrNewer is returned by Restore for an execution that a newer program has stored in a form that
// this one does not know. Nothing was changed.
var ErrNewer = errors.New("engine: the execution was stored by a newer version, and is left to it: finish the upgrade")

// identity is the part of Meta that never changes.
type identity struct {
	// Format that the execution was created in; 0 is 1.
	Format int `json:"format,omitempty"`

	ID           ExecutionID `json:"id"`
	WorkflowHash string      `json:"workflowHash"`
	WorkflowID   string      `json:"workflowId,omitempty"`
	WorkflowName string      `json:"workflowName,omitempty"`
	Mode         string      `json:"mode"`
	Flags        []int       `json:"flags,omitempty"`

	Parent      *Parent      `json:"parent,omitempty"`
	Root        ExecutionID  `json:"root,omitempty"`
	Depth       int          `json:"depth,omitempty"`
	RetryOf     ExecutionID  `json:"retryOf,omitempty"`
	Destination *Destination `json:"destination,omitempty"`

	Priority string `json:"priority,omitempty"`
	Tenant   string `json:"tenant,omitempty"`

	TraceParent string `json:"traceparent,omitempty"`
}

func identityOf(m Meta) identity {
	return identity{
		0, m.ID, m.WorkflowHash, m.WorkflowID, m.WorkflowName, m.Mode, m.Flags,
		m.Parent, m.Root, m.Depth, m.RetryOf, m.Destination,
		m.Priority, m.Tenant, m.TraceParent,
	}
}

// progress is the part of Meta that moves.
type progress struct {
	Status    Status     `json:"status"`
	StartedAt int64      `json:"startedAt,omitempty"`
	StoppedAt int64      `json:"stoppedAt,omitempty"`
	LastNode  string     `json:"lastNode,omitempty"`
	Error     *NodeError `json:"error,omitempty"`
	NextIndex int        `json:"nextIndex"`
	NextJob   int        `json:"nextJob"`
	NextTop   int64      `json:"nextTop"`
	NextLast  int64      `json:"nextLast"`
	NextJoin  int        `json:"nextJoin"`
	// LastWebhook is stored plus 1, so that none is left out.
	LastWebhook int    `json:"lastWebhook,omitempty"`
	TimeLeft    int64  `json:"timeLeft,omitempty"`
	Orphans     string `json:"orphans,omitempty"` // ids with commas, so that values compare
	RunBytes    int64  `json:"runBytes,omitempty"`
}

func progressOf(m Meta) progress {
	orphans := make([]string, len(m.Orphans))
	for i, id := range m.Orphans {
		orphans[i] = string(id)
	}
	return progress{
		m.Status, m.StartedAt, m.StoppedAt, m.LastNode, m.Error, m.NextIndex, m.NextJob, m.NextTop, m.NextLast, m.NextJoin,
		m.LastWebhook + 1, m.TimeLeft, strings.Join(orphans, ","), m.RunBytes,
	}
}

// rawValue is JSON that is stored as it is.
type rawValue json.RawMessage

// encode is json.Marshal without its escaping of <, > and &, so that stored items
// keep their bytes. Invalid JSON in them is an error.
func encode(v any) ([]byte, error) {
	if raw, ok := v.(rawValue); ok {
		if !json.Valid(raw) {
			return nil, fmt.Errorf("invalid JSON")
		}
		return raw, nil
	}
	return workflow.Encode(v, workflow.CheckRaw)
}

// Tables is a stored execution: the fields of its hashes.
type Tables map[Table]map[string][]byte

// Add applies changes in order.
func (t Tables) Add(changes []Change) {
	for _, c := range changes {
		if c.Value == nil {
			delete(t[c.Table], c.Field)
			continue
		}
		if t[c.Table] == nil {
			t[c.Table] = map[string][]byte{}
		}
		t[c.Table][c.Field] = c.Value
	}
}

// Tables is the whole State as it is stored: what the Changes of all Steps so
// far add up to.
func (s *State) Tables() (Tables, error) {
	out := Tables{TableMeta: {}, TableStack: {}, TableRun: {}, TableOpen: {}}
	var failed error
	put := func(table Table, name string, v any) {
		value, err := encode(v)
		if err != nil && failed == nil {
			failed = fmt.Errorf("encode %s %s: %w", table, name, err)
		}
		out[table][name] = value
	}
	put(TableMeta, fieldIdentity, identityOf(s.Meta))
	put(TableMeta, fieldProgress, progressOf(s.Meta))
	if s.Begin != nil {
		put(TableOpen, fieldBegin, s.Begin)
	}
	for _, e := range s.Stack {
		put(TableStack, stackField(e.Seq), e)
	}
	for node, runs := range s.Run {
		for i, r := range runs {
			if r != nil {
				put(TableRun, runField(node, i), r)
			}
		}
	}
	for id, j := range s.Jobs {
		put(TableOpen, jobField(id), j)
	}
	for caller, rounds := range s.Rounds {
		for _, r := range rounds {
			put(TableOpen, roundField(caller, r.Index), r)
		}
	}
	for _, joins := range s.Joins {
		for _, j := range joins {
			put(TableOpen, joinField(j.Seq), j)
		}
	}
	for token, p := range s.Parked {
		put(TableOpen, parkedField(token), p)
	}
	for token, results := range s.Children {
		for i, r := range results {
			put(TableOpen, childField(token, i), r)
		}
	}
	for id, at := range s.Timers {
		put(TableOpen, timerField(id), at)
	}
	for node, context := range s.Context {
		put(TableOpen, contextField(node), rawValue(context))
	}
	return out, failed
}

// RestoreMeta reads the meta table alone, for lists of executions. Fields it
// does not know are left to whoever wrote them.
func RestoreMeta(fields map[string][]byte) (Meta, error) {
	var id identity
	var p progress
	if err := json.Unmarshal(fields[fieldIdentity], &id); err != nil {
		return Meta{}, fmt.Errorf("decode %s: %w", fieldIdentity, err)
	}
	if err := json.Unmarshal(fields[fieldProgress], &p); err != nil {
		return Meta{}, fmt.Errorf("decode %s: %w", fieldProgress, err)
	}
	var orphans []ExecutionID
	for _, o := range strings.Split(p.Orphans, ",") {
		if o != "" {
			orphans = append(orphans, ExecutionID(o))
		}
	}
	return Meta{
		ID: id.ID, WorkflowHash: id.WorkflowHash, WorkflowID: id.WorkflowID, WorkflowName: id.WorkflowName,
		Mode: id.Mode, Flags: id.Flags,
		Parent: id.Parent, Root: id.Root, Depth: id.Depth, RetryOf: id.RetryOf, Destination: id.Destination,
		Priority: id.Priority, Tenant: id.Tenant, TraceParent: id.TraceParent,
		Status: p.Status, StartedAt: p.StartedAt, StoppedAt: p.StoppedAt, LastNode: p.LastNode, Error: p.Error,
		NextIndex: p.NextIndex, NextJob: p.NextJob, NextTop: p.NextTop, NextLast: p.NextLast, NextJoin: p.NextJoin,
		LastWebhook: p.LastWebhook - 1, TimeLeft: p.TimeLeft, Orphans: orphans, RunBytes: p.RunBytes,
	}, nil
}

// Restore builds the state that the tables hold. Unknown fields of the meta
// table are ignored, elsewhere they are an error.
// ErrNewer is the error for what a newer version has stored.
func Restore(t Tables) (*State, error) {
	if err := checkFormat(t[TableMeta][fieldIdentity]); err != nil {
		return nil, err
	}
	meta, err := RestoreMeta(t[TableMeta])
	if err != nil {
		return nil, err
	}
	s := NewState(meta)
	for name, value := range t[TableStack] {
		e := &Entry{}
		if err := json.Unmarshal(value, e); err != nil {
			return nil, fmt.Errorf("decode stack entry %s: %w", name, err)
		}
		s.Stack = append(s.Stack, e)
		if e.Kind == EntryResume {
			s.resumes[e.RunRef()] = e
		}
	}
	sort.Slice(s.Stack, func(i, j int) bool { return s.Stack[i].Seq < s.Stack[j].Seq })
	for name, value := range t[TableRun] {
		run, node, ok := strings.Cut(name, ":")
		index, err := strconv.Atoi(run)
		if !ok || err != nil || index < 0 {
			return nil, fmt.Errorf("run field %q is not <run>:<node>", name)
		}
		r := &Record{}
		if err := json.Unmarshal(value, r); err != nil {
			return nil, fmt.Errorf("decode record %s: %w", name, err)
		}
		s.makeRoom(node, index)
		s.Run[node][index] = r
	}
	for name, value := range t[TableOpen] {
		if err := s.restoreOpen(name, value); err != nil {
			return nil, fmt.Errorf("decode %s: %w", name, err)
		}
	}
	s.settle()
	return s, nil
}

// checkFormat looks at no more of an identity than what tells whether the rest can be read.
func checkFormat(value []byte) error {
	var id struct {
		Format int   `json:"format"`
		Flags  []int `json:"flags"`
	}
	if err := json.Unmarshal(value, &id); err != nil {
		return fmt.Errorf("decode %s: %w", fieldIdentity, err)
	}
	if id.Format > Format {
		return fmt.Errorf("format %d, this program knows %d: %w", id.Format, Format, ErrNewer)
	}
	for _, flag := range id.Flags {
		if !slices.Contains(knownFlags, flag) {
			return fmt.Errorf("flag %d is not known: %w", flag, ErrNewer)
		}
	}
	return nil
}

// knownFlags are the numbers that Meta.Flags may have.
var knownFlags []int

func (s *State) restoreOpen(name string, value []byte) error {
	switch {
	case name == fieldBegin:
		s.Begin = &Started{}
		return json.Unmarshal(value, s.Begin)
	case strings.HasPrefix(name, prefixJob):
		j := &OpenJob{}
		if err := json.Unmarshal(value, j); err != nil {
			return err
		}
		s.Jobs[j.ID] = j
	case strings.HasPrefix(name, prefixRound):
		r := &OpenRound{}
		if err := json.Unmarshal(value, r); err != nil {
			return err
		}
		s.Rounds[r.Caller] = append(s.Rounds[r.Caller], r)
	case strings.HasPrefix(name, prefixJoin):
		j := &Join{}
		if err := json.Unmarshal(value, j); err != nil {
			return err
		}
		s.Joins[j.Node] = append(s.Joins[j.Node], j)
	case strings.HasPrefix(name, prefixTimer):
		var at int64
		if err := json.Unmarshal(value, &at); err != nil {
			return err
		}
		s.Timers[strings.TrimPrefix(name, prefixTimer)] = at
	case strings.HasPrefix(name, prefixParked):
		p := &Parked{}
		if err := json.Unmarshal(value, p); err != nil {
			return err
		}
		s.Parked[p.Token] = p
	case strings.HasPrefix(name, prefixChild):
		index, token, _ := strings.Cut(strings.TrimPrefix(name, prefixChild), ":")
		i, err := strconv.Atoi(index)
		if err != nil {
			return err
		}
		r := &ChildResult{}
		if err := json.Unmarshal(value, r); err != nil {
			return err
		}
		if s.Children[token] == nil {
			s.Children[token] = map[int]*ChildResult{}
		}
		s.Children[token][i] = r
	case strings.HasPrefix(name, prefixContext):
		s.Context[strings.TrimPrefix(name, prefixContext)] = value
	default:
		return fmt.Errorf("unknown field: %w", ErrNewer)
	}
	return nil
}

// settle rebuilds what is derived: the order of rounds and joins, the counts
// of open calls, and the run indexes of runs without a record.
func (s *State) settle() {
	for _, rounds := range s.Rounds {
		sort.Slice(rounds, func(i, j int) bool { return rounds[i].Index < rounds[j].Index })
		for _, r := range rounds {
			r.Open = s.openCalls(r)
		}
	}
	for _, joins := range s.Joins {
		sort.Slice(joins, func(i, j int) bool { return joins[i].Seq < joins[j].Seq })
	}
	for _, j := range s.Jobs {
		s.makeRoom(j.Entry.Node, j.Entry.Run)
	}
	for _, e := range s.Stack {
		s.makeRoom(e.Node, e.Run)
	}
	for _, p := range s.Parked {
		s.parked[p.Entry.RunRef()] = p
	}
}

func (s *State) openCalls(r *OpenRound) int {
	open := 0
	for _, c := range r.Calls {
		if rec := s.Record(RunRef{c.Action.NodeName, c.Run}); rec == nil || rec.open() {
			open++
		}
	}
	return open
}

func (s *State) makeRoom(node string, run int) {
	for len(s.Run[node]) <= run {
		s.Run[node] = append(s.Run[node], nil)
	}
}

// NewState returns the state of an execution that has not started.
func NewState(meta Meta) *State {
	if meta.Status == "" {
		meta.LastWebhook = -1
	}
	return &State{
		Meta:     meta,
		Run:      map[string][]*Record{},
		Jobs:     map[JobID]*OpenJob{},
		Rounds:   map[RunRef][]*OpenRound{},
		Joins:    map[string][]*Join{},
		Parked:   map[string]*Parked{},
		Children: map[string]map[int]*ChildResult{},
		Timers:   map[string]int64{},
		Context:  map[string]json.RawMessage{},
		resumes:  map[RunRef]*Entry{},
		parked:   map[RunRef]*Parked{},
	}
}
