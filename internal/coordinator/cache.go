package coordinator

import (
	"cmp"
	"slices"
	"time"

	"github.com/reprise-engine/reprise/pkg/engine"
)

// cache keeps the executions of a lane in memory between their events. All of it is in the store:
// what was forgotten is loaded with its next event.
type cache struct {
	executions map[engine.ExecutionID]*execution
	// bytes is the run data of all of them, which a cache that is tidied keeps to limit.
	bytes, limit int64
}

// maxCached bounds the executions a lane keeps in memory between events.
const maxCached = 4096

func newCache(limit int64) *cache {
	return &cache{executions: map[engine.ExecutionID]*execution{}, limit: limit}
}

func (c *cache) get(id engine.ExecutionID) *execution { return c.executions[id] }

func (c *cache) put(x *execution) {
	c.forget(x.id)
	c.executions[x.id] = x
	c.weigh(x)
}

// weigh counts what an execution has grown by.
func (c *cache) weigh(x *execution) {
	if c.executions[x.id] != x {
		return
	}
	c.bytes += x.state.Meta.RunBytes - x.weight
	x.weight = x.state.Meta.RunBytes
}

func (c *cache) forget(id engine.ExecutionID) {
	if x := c.executions[id]; x != nil {
		c.bytes -= x.weight
		x.weight = 0
		delete(c.executions, id)
	}
}

// tidy forgets executions that were not needed for longest when there are too many, or when
// they are too large. The one that was needed last stays, however large it is: else each of
// its events would load it.
func (c *cache) tidy(now int64) {
	if len(c.executions) > maxCached {
		horizon := now - time.Minute.Milliseconds()
		for id, x := range c.executions {
			if x.used < horizon || len(c.executions) > 2*maxCached {
				c.forget(id)
			}
		}
	}
	if c.bytes <= c.limit {
		return
	}
	var heavy []*execution
	for _, x := range c.executions {
		if x.weight > 0 {
			heavy = append(heavy, x)
		}
	}
	slices.SortFunc(heavy, func(a, b *execution) int {
		return cmp.Or(cmp.Compare(a.used, b.used), cmp.Compare(a.id, b.id))
	})
	for _, x := range heavy[:len(heavy)-1] {
		if c.bytes <= c.limit {
			return
		}
		c.forget(x.id)
	}
}
