package simulation

import (
	"container/heap"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing/synctest"
	"time"

	"github.com/reprise-engine/reprise/internal/simulation/memqueue"
	"github.com/reprise-engine/reprise/internal/simulation/memstore"
)

// world is one simulation: the stand-ins, the processes, and the scheduler that lets
// one event happen after the other. All but arrivals is the scheduler's own, which
// acts only while every other goroutine is blocked; those of processes and clients
// hand in operations.
type world struct {
	seed    uint64
	profile profile
	rng     *rand.Rand
	started time.Time
	// calm is when faults end.
	calm time.Time

	events  eventHeap
	made    uint64 // events so far, which orders those of one moment
	step    int    // events that have happened
	hash    *traceHash
	wake    chan struct{}
	failure error

	store       *memstore.Store
	jobs        *memqueue.Stream
	submissions *memqueue.Stream
	processes   []*process     // in the order in which they were started
	servers     []*process     // those of them that others may reach
	lives       map[string]int // processes of a role
	takers      []*operation
	looks       map[*memqueue.Stream]time.Time // when the streams are looked at again
	ranks       int
	steady      bool // all messages take the same time, and arrive as they were sent

	history *history

	mu        sync.Mutex
	arrivals  []*operation
	clients   int // that are not done
	stopping  int // processes that are being stopped
	decisions []decision
}

// event is something that will happen.
type event struct {
	at    time.Time
	order uint64
	name  string
	// owner is the process that it concerns. While that is paused it is put off, and when
	// that is killed it is dropped, unless it is on the wire; then it is left to chance.
	owner *process
	wire  bool
	run   func()
}

type eventHeap []*event

func (h eventHeap) Len() int { return len(h) }
func (h eventHeap) Less(i, j int) bool {
	if !h[i].at.Equal(h[j].at) {
		return h[i].at.Before(h[j].at)
	}
	return h[i].order < h[j].order
}
func (h eventHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *eventHeap) Push(e any)   { *h = append(*h, e.(*event)) }
func (h *eventHeap) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}

// traceHash sums up what happened; with lines it is kept for people, too.
type traceHash struct {
	sum   uint64
	lines func(string)
}

func (h *traceHash) add(at time.Duration, parts ...string) {
	f := fnv.New64a()
	var b [16]byte
	for i := range 8 {
		b[i], b[8+i] = byte(h.sum>>(8*i)), byte(uint64(at)>>(8*i))
	}
	_, _ = f.Write(b[:])
	for _, p := range parts {
		_, _ = f.Write([]byte(p))
		_, _ = f.Write([]byte{0})
	}
	h.sum = f.Sum64()
	if h.lines != nil {
		h.lines(fmt.Sprintf("%12.6f  %s", at.Seconds(), strings.Join(parts, " ")))
	}
}

func (w *world) now() time.Time { return time.Now() } // the bubble's

func (w *world) trace(parts ...string) { w.hash.add(w.now().Sub(w.started), parts...) }

// note traces something that is not an event, such as a fault that was drawn.
func (w *world) note(format string, args ...any) { w.trace("--", fmt.Sprintf(format, args...)) }

// fail ends the simulation: an invariant does not hold. The first failure counts.
func (w *world) fail(format string, args ...any) {
	if w.failure == nil {
		w.failure = fmt.Errorf("step %d, %s: %s", w.step, w.now().Sub(w.started), fmt.Sprintf(format, args...))
		w.note("FAILED: %v", w.failure)
	}
}

// after has something happen.
func (w *world) after(d time.Duration, e *event) {
	w.made++
	e.at, e.order = w.now().Add(d), w.made
	heap.Push(&w.events, e)
}

// submit hands in an operation; the scheduler takes it when all are blocked.
func (w *world) submit(o *operation) {
	w.mu.Lock()
	w.arrivals = append(w.arrivals, o)
	w.mu.Unlock()
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// run lets events happen until over reports true or an invariant breaks.
func (w *world) run(over func() bool) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for w.failure == nil {
		synctest.Wait()
		w.admit()
		w.pump()
		if over() {
			return
		}
		if len(w.events) == 0 {
			<-w.wake // a timer of a process is all that is left
			continue
		}
		if wait := w.events[0].at.Sub(w.now()); wait > 0 {
			timer.Reset(wait)
			select {
			case <-timer.C:
			case <-w.wake:
			}
			continue
		}
		w.happen(heap.Pop(&w.events).(*event))
	}
}

// happen lets an event happen, unless its process cannot take it now.
func (w *world) happen(e *event) {
	if p := e.owner; p != nil && !e.wire {
		if p.dead.Load() {
			return
		}
		if wait := p.paused.Sub(w.now()); wait > 0 {
			w.after(wait+w.between(0, 5*time.Millisecond), e)
			return
		}
	}
	w.step++
	w.trace(e.name)
	e.run()
}

// admit takes the operations that were handed in since the last event, in an order
// that does not depend on which goroutine ran first, and draws what becomes of them.
func (w *world) admit() {
	w.mu.Lock()
	arrived := w.arrivals
	w.arrivals = nil
	w.mu.Unlock()
	slices.SortStableFunc(arrived, func(a, b *operation) int {
		if w.steady {
			return 0
		}
		if a.p.rank != b.p.rank {
			return a.p.rank - b.p.rank
		}
		if c := strings.Compare(a.kind, b.kind); c != 0 {
			return c
		}
		return strings.Compare(a.key, b.key)
	})
	for _, o := range arrived {
		if !o.p.dead.Load() {
			w.send(o)
		}
	}
}

func (w *world) chance(p float64) bool { return p > 0 && w.rng.Float64() < p }

// between draws a duration.
func (w *world) between(least, most time.Duration) time.Duration {
	if most <= least {
		return least
	}
	return least + time.Duration(w.rng.Int64N(int64(most-least)))
}

// fault reports whether a fault of this probability strikes now.
func (w *world) fault(p float64) bool { return w.now().Before(w.calm) && w.chance(p) }

// latency draws how long a message is on its way.
func (w *world) latency() time.Duration {
	if w.steady {
		return time.Millisecond
	}
	d := w.between(50*time.Microsecond, 2*time.Millisecond)
	switch {
	case w.fault(w.profile.verySlow):
		d += w.between(time.Second, 15*time.Second)
	case w.fault(w.profile.slow):
		d += w.between(time.Millisecond, time.Second)
	}
	return d
}
