package state

import (
	"sync"
	"time"
)

// dues is what a Store knows about when something of a kind (timers, sweeps) is due in each
// shard, so that not every look has to read all shards.
//
// What this Store sets it notes itself. What others set it learns by reading all shards every
// Config.LookEvery. So a shard is read when the earliest time known has come, and what another
// process sets is late by at most LookEvery, and only if that process, which has noted it,
// does not take it.
//
// A time known may be too early (others took what was there): then the shard is read once for
// nothing. It must never be too late by what this Store has set. A reading that was under way
// while something was noted may not have seen it, so it can bring the time known forward only:
//
//	Invariant: first[n] <= the time of everything that this Store has set in shard n
type dues struct {
	mu     sync.Mutex
	first  [Shards]int64  // earliest time known in ms, none
	noted  [Shards]uint64 // counts the calls of note
	looked time.Time      // when all shards were read last
}

// dueReading is a look at some shards that is under way.
type dueReading struct {
	shards []int
	noted  [Shards]uint64
	began  time.Time // zero unless these are all shards
	// hopeless: nothing is known in any of them.
	hopeless bool
}

func newDues() *dues {
	d := &dues{}
	for n := range d.first {
		d.first[n] = none
	}
	return d
}

// note says that something in a shard is due at that time.
func (d *dues) note(shard int, at int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.noted[shard]++
	if d.first[shard] == none || at < d.first[shard] {
		d.first[shard] = at
	}
}

// begin returns the shards to read at now (ms): all of them when that was not done for
// lookEvery, else those in which something is due as far as is known.
func (d *dues) begin(now int64, lookEvery time.Duration) dueReading {
	d.mu.Lock()
	defer d.mu.Unlock()
	r := dueReading{noted: d.noted}
	clock := time.Now()
	all := d.looked.IsZero() || clock.Sub(d.looked) >= lookEvery
	if all {
		r.began = clock
	}
	r.hopeless = all
	for n, at := range d.first {
		r.hopeless = r.hopeless && at == none
		if all || at != none && at <= now {
			r.shards = append(r.shards, n)
		}
	}
	return r
}

// end takes what was read: the earliest time of each of the shards, none where there is nothing.
func (d *dues) end(r *dueReading, first []int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for i, n := range r.shards {
		switch at := first[i]; {
		case d.noted[n] == r.noted[n]:
			d.first[n] = at
		case at != none && (d.first[n] == none || at < d.first[n]):
			d.first[n] = at
		}
	}
	if !r.began.IsZero() {
		d.looked = r.began
	}
}
