package state

import (
	"container/heap"
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"
)

// position is a member of a sorted set of times: its place in a list. Members of
// the same time are in the order of their names, as Redis has them.
type position struct {
	at   int64 // ms
	name string
}

// String is the cursor of what follows p.
func (p position) String() string { return strconv.FormatInt(p.at, 10) + "." + p.name }

// parseCursor reads a cursor; nil for the beginning.
func parseCursor(text string) (*position, error) {
	if text == "" {
		return nil, nil
	}
	at, name, ok := strings.Cut(text, ".")
	ms, err := strconv.ParseInt(at, 10, 64)
	if !ok || err != nil || name == "" {
		return nil, cursorError(text)
	}
	return &position{ms, name}, nil
}

func cursorError(text string) error {
	return fmt.Errorf("%w: cursor %q is not one that was given out", ErrFilter, text)
}

// order is the direction of a list.
type order bool

const (
	oldestFirst order = false
	newestFirst order = true
)

// before reports whether a is listed before b.
func (o order) before(a, b position) bool {
	if o == newestFirst {
		a, b = b, a
	}
	if a.at != b.at {
		return a.at < b.at
	}
	return a.name < b.name
}

// merge merges sorted sets, each of which Redis keeps in order: those of all shards.
// It reads as little of each as it can, and never a whole set because of a page of it.
type merge struct {
	client  redis.UniversalClient
	order   order
	from    *position // list what comes after it; nil is from the beginning
	streams streams   // a heap: those with something to give
	dry     []*stream // those that must be read before the next can be named
	count   int       // entries to read at a time
}

// stream is one sorted set, read in pieces.
type stream struct {
	key  string
	at   string // score to continue at, inclusive
	skip int64  // entries of that score which were read already
	have []position
	end  bool
}

// newMerge begins after from. limit is how many will be taken, about.
func newMerge(client redis.UniversalClient, keys []string, order order, from *position, limit int) *merge {
	m := &merge{client: client, order: order, from: from, count: 4 + 2*limit/Shards, streams: streams{order: order}}
	start := "-inf"
	switch {
	case from != nil:
		start = strconv.FormatInt(from.at, 10)
	case order == newestFirst:
		start = "+inf"
	}
	for _, key := range keys {
		m.dry = append(m.dry, &stream{key: key, at: start})
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
		if m.streams.Len() == 0 {
			return out, nil
		}
		// Streams are taken from until one of them has nothing left in memory.
		for len(out) < n && len(m.dry) == 0 && m.streams.Len() > 0 {
			s := m.streams.list[0]
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
			// What moved from one set to another meanwhile may be seen in both.
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
		pipe := m.client.Pipeline()
		cmds := make([]*redis.ZSliceCmd, len(m.dry))
		for i, s := range m.dry {
			by := &redis.ZRangeBy{Min: s.at, Max: "+inf", Offset: s.skip, Count: int64(m.count)}
			if m.order == newestFirst {
				by.Min, by.Max = "-inf", s.at
				cmds[i] = pipe.ZRevRangeByScoreWithScores(ctx, s.key, by)
			} else {
				cmds[i] = pipe.ZRangeByScoreWithScores(ctx, s.key, by)
			}
		}
		if _, err := pipe.Exec(ctx); err != nil {
			return err
		}
		dry := m.dry
		m.dry = nil
		for i, s := range dry {
			m.fill(s, cmds[i].Val())
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

// fill keeps what a read of m.count entries gave.
func (m *merge) fill(s *stream, got []redis.Z) {
	s.end = len(got) < m.count
	for _, z := range got {
		p := position{int64(z.Score), z.Member.(string)}
		if at := strconv.FormatInt(p.at, 10); at == s.at {
			s.skip++
		} else {
			s.at, s.skip = at, 1
		}
		if m.from == nil || m.order.before(*m.from, p) {
			s.have = append(s.have, p)
		}
	}
}

// streams is a heap by the first entry each has.
type streams struct {
	list  []*stream
	order order
}

func (h *streams) Len() int { return len(h.list) }
func (h *streams) Less(i, j int) bool {
	return h.order.before(h.list[i].have[0], h.list[j].have[0])
}
func (h *streams) Swap(i, j int) { h.list[i], h.list[j] = h.list[j], h.list[i] }
func (h *streams) Push(x any)    { h.list = append(h.list, x.(*stream)) }
func (h *streams) Pop() any {
	last := h.list[len(h.list)-1]
	h.list = h.list[:len(h.list)-1]
	return last
}
