package coordinator

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/reprise-engine/reprise/pkg/engine"
)

func cached(id engine.ExecutionID, bytes, used int64) *execution {
	return &execution{id: id, used: used, state: engine.NewState(engine.Meta{ID: id, RunBytes: bytes})}
}

func TestCacheForgetsWhatWasNotNeededForLongest(t *testing.T) {
	c := newCache(25)
	first, second, third := cached("first", 10, 1), cached("second", 10, 2), cached("third", 0, 3)
	c.put(first)
	c.put(second)
	c.put(third)
	c.tidy(4)
	assert.EqualValues(t, 20, c.bytes)
	assert.Len(t, c.executions, 3)

	first.used, third.state.Meta.RunBytes = 4, 10
	c.weigh(third)
	c.weigh(third) // counts once
	assert.EqualValues(t, 30, c.bytes)
	c.tidy(5)
	assert.Nil(t, c.get("second"))
	assert.Same(t, first, c.get("first"))
	assert.EqualValues(t, 20, c.bytes)

	c.weigh(second) // of one that is not there nothing counts
	assert.EqualValues(t, 20, c.bytes)
	c.put(cached("first", 12, 5)) // loaded anew
	assert.EqualValues(t, 22, c.bytes)
	c.forget("first")
	c.forget("third")
	c.forget("nobody")
	assert.Zero(t, c.bytes)
}

func TestCacheKeepsTheLastHoweverLarge(t *testing.T) {
	c := newCache(25)
	for i := range int64(3) {
		c.put(cached(engine.ExecutionID(fmt.Sprint(i)), 100, i))
		c.tidy(i)
		assert.Len(t, c.executions, 1)
		assert.EqualValues(t, 100, c.bytes)
	}
	assert.NotNil(t, c.get("2"))
}

func TestCacheBoundsTheNumber(t *testing.T) {
	c := newCache(1 << 20)
	for i := range int64(maxCached + 1) {
		c.put(cached(engine.ExecutionID(fmt.Sprint(i)), 1, i%2*100_000))
	}
	c.tidy(100_000)
	assert.Len(t, c.executions, maxCached/2, "those not needed for a minute are gone")
	assert.EqualValues(t, maxCached/2, c.bytes)
}
