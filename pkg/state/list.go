package state

import (
	"container/heap"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/reprise-engine/reprise/pkg/engine"
)

// Filter chooses what List returns. The zero Filter is everything.
type Filter struct {
	// Status keeps executions of these statuses; none is all.
	Status []engine.Status
	// Workflow keeps executions of the workflow with this id or name.
	Workflow string
	// Limit is the greatest number returned, default 50, at most 1000.
	Limit int
	// Cursor continues where an earlier call ended.
	Cursor string
}

// Summary is an execution in a list.
type Summary struct {
	ID           engine.ExecutionID
	Status       engine.Status
	WorkflowID   string
	WorkflowName string
	StartedAt    int64 // ms
	StoppedAt    int64 // ms, 0 while it is unfinished
	Version      uint64
}

const (
	defaultListLimit = 50
	maxListLimit     = 1000
	// listScan bounds how many executions one List looks at to find those of a workflow.
	listScan = 10_000
)

// List returns executions, those started last first. next is the Cursor of the
// following page, empty at the end. A page may be shorter than Limit, even empty, although
// there is a next one: when few executions are of the Workflow asked for, and when some expired.
func (s *Store) List(ctx context.Context, f Filter) (page []Summary, next string, err error) {
	limit := f.Limit
	switch {
	case limit <= 0:
		limit = defaultListLimit
	case limit > maxListLimit:
		limit = maxListLimit
	}
	wanted := f.Status
	if len(wanted) == 0 {
		wanted = statuses
	}
	for _, st := range wanted {
		if !slices.Contains(statuses, st) {
			return nil, "", fmt.Errorf("list executions: %w: unknown status %q", ErrFilter, st)
		}
	}
	from, err := parseCursor(f.Cursor)
	if err != nil {
		return nil, "", fmt.Errorf("list executions: %w", err)
	}
	m := s.newMerge(wanted, from, limit)
	for scanned := 0; scanned < listScan; {
		group, err := m.take(ctx, min(limit, listScan-scanned))
		if err != nil {
			return nil, "", wrap(err, "list executions")
		}
		if len(group) == 0 {
			return page, "", nil
		}
		scanned += len(group)
		found, err := s.summaries(ctx, group)
		if err != nil {
			return nil, "", wrap(err, "list executions")
		}
		for i, sum := range found {
			next = group[i].String()
			if sum == nil || f.Workflow != "" && f.Workflow != sum.WorkflowID && f.Workflow != sum.WorkflowName ||
				!slices.Contains(wanted, sum.Status) { // it moved on since its index was read
				continue
			}
			if page = append(page, *sum); len(page) == limit {
				return page, next, nil
			}
		}
	}
	return page, next, nil
}

// summaries reads what a list shows of each execution, nil for those that are gone.
func (s *Store) summaries(ctx context.Context, at []position) ([]*Summary, error) {
	pipe := s.client.Pipeline()
	cmds := make([]*redis.SliceCmd, len(at))
	for i, p := range at {
		cmds[i] = pipe.HMGet(ctx, s.shard(p.id).table(p.id, engine.TableMeta),
			fieldVersion, fieldStatus, fieldWorkflowID, fieldWorkflowName, fieldStarted, fieldStopped)
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, err
	}
	out := make([]*Summary, len(at))
	for i, c := range cmds {
		v := c.Val()
		text := func(n int) string { t, _ := v[n].(string); return t }
		number := func(n int) int64 { i, _ := strconv.ParseInt(text(n), 10, 64); return i }
		if text(0) == "" {
			continue
		}
		out[i] = &Summary{
			ID: at[i].id, Version: uint64(number(0)), Status: engine.Status(text(1)),
			WorkflowID: text(2), WorkflowName: text(3), StartedAt: number(4), StoppedAt: number(5),
		}
	}
	return out, nil
}

// position is a place in the order of all lists: start time and id, both falling.
type position struct {
	start int64
	id    engine.ExecutionID
}

// before reports whether p is listed before o.
func (p position) before(o position) bool {
	if p.start != o.start {
		return p.start > o.start
	}
	return p.id > o.id
}

func (p position) String() string { return strconv.FormatInt(p.start, 10) + "." + string(p.id) }

func parseCursor(text string) (*position, error) {
	if text == "" {
		return nil, nil
	}
	start, id, ok := strings.Cut(text, ".")
	at, err := strconv.ParseInt(start, 10, 64)
	if !ok || err != nil || checkID(engine.ExecutionID(id)) != nil {
		return nil, fmt.Errorf("%w: cursor %q is not one that was given out", ErrFilter, text)
	}
	return &position{at, engine.ExecutionID(id)}, nil
}

// merge merges the indexes of all shards and statuses, each of which Redis keeps in order.
type merge struct {
	s       *Store
	from    *position // list what comes after it; nil is from the newest
	streams streams   // a heap: those with something to give
	dry     []*stream // those that must be read before the next can be named
	count   int       // entries to read at a time
}

// stream is one index, read in pieces.
type stream struct {
	key  string
	max  string // score to continue at, inclusive
	skip int64  // entries of that score which were read already
	have []position
	end  bool
}

func (s *Store) newMerge(wanted []engine.Status, from *position, limit int) *merge {
	m := &merge{s: s, from: from, count: 4 + 2*limit/Shards}
	start := "+inf"
	if from != nil {
		start = strconv.FormatInt(from.start, 10)
	}
	for n := range s.keys {
		for _, st := range wanted {
			m.dry = append(m.dry, &stream{key: s.keys[n].index[st], max: start})
		}
	}
	return m
}

// take returns the next n positions, less at the end.
func (m *merge) take(ctx context.Context, n int) ([]position, error) {
	out := make([]position, 0, n)
	for len(out) < n {
		if err := m.refill(ctx); err != nil {
			return nil, err
		}
		if len(m.streams) == 0 {
			return out, nil
		}
		// Streams are taken from until one of them has nothing left in memory.
		for len(out) < n && len(m.dry) == 0 && len(m.streams) > 0 {
			s := m.streams[0]
			p := s.have[0]
			s.have = s.have[1:]
			switch {
			case len(s.have) > 0:
				heap.Fix(&m.streams, 0)
			case s.end:
				heap.Pop(&m.streams)
			default:
				heap.Pop(&m.streams)
				m.dry = append(m.dry, s)
			}
			// An execution whose status changed meanwhile may be seen in two indexes.
			if len(out) == 0 || out[len(out)-1] != p {
				out = append(out, p)
			}
		}
	}
	return out, nil
}

// refill reads the next piece of the dry streams in one round trip.
func (m *merge) refill(ctx context.Context) error {
	for len(m.dry) > 0 {
		pipe := m.s.client.Pipeline()
		cmds := make([]*redis.ZSliceCmd, len(m.dry))
		for i, s := range m.dry {
			cmds[i] = pipe.ZRevRangeByScoreWithScores(ctx, s.key,
				&redis.ZRangeBy{Max: s.max, Min: "-inf", Offset: s.skip, Count: int64(m.count)})
		}
		if _, err := pipe.Exec(ctx); err != nil {
			return err
		}
		dry := m.dry
		m.dry = nil
		for i, s := range dry {
			s.fill(cmds[i].Val(), m.count, m.from)
			switch {
			case len(s.have) > 0:
				heap.Push(&m.streams, s)
			case !s.end: // all it gave lies before the cursor
				m.dry = append(m.dry, s)
			}
		}
		m.count = min(2*m.count, maxListLimit)
	}
	return nil
}

func (s *stream) fill(got []redis.Z, asked int, from *position) {
	s.end = len(got) < asked
	for _, z := range got {
		p := position{int64(z.Score), engine.ExecutionID(z.Member.(string))}
		if at := strconv.FormatInt(p.start, 10); at == s.max {
			s.skip++
		} else {
			s.max, s.skip = at, 1
		}
		if from == nil || from.before(p) {
			s.have = append(s.have, p)
		}
	}
}

// streams is a heap by the first entry each has.
type streams []*stream

func (h streams) Len() int           { return len(h) }
func (h streams) Less(i, j int) bool { return h[i].have[0].before(h[j].have[0]) }
func (h streams) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *streams) Push(x any)        { *h = append(*h, x.(*stream)) }
func (h *streams) Pop() any {
	old := *h
	last := old[len(old)-1]
	*h = old[:len(old)-1]
	return last
}
