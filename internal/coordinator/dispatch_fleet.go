package coordinator

import (
	"github.com/reprise-engine/reprise/pkg/queue"
)

// How many jobs of a pool a coordinator has published and not answered at most.
const (
	// windowUnknown is for a pool no worker of which has announced itself.
	windowUnknown = 256
	windowLeast   = 16
	// windowPerSlot is shared by all coordinators.
	windowPerSlot = 2
	// windowSpan is how long the work is at most that waits in the stream for workers that
	// are fast: what was answered in this time may be published.
	windowSpan = 250 // milliseconds
)

// fleet is what is known of workers and other coordinators. Who is silent is forgotten. It is
// guarded by the dispatcher's mutex.
type fleet struct {
	self         string
	workers      map[string]*seenWorker
	coordinators map[string]*seenCoordinator
	slots        map[string]int // by pool, of workers that take jobs
}

type seenWorker struct {
	queue.WorkerNotice
	at int64
}

type seenCoordinator struct {
	queue.CoordinatorNotice
	at int64
}

func newFleet(self string) fleet {
	return fleet{self: self, workers: map[string]*seenWorker{}, coordinators: map[string]*seenCoordinator{}, slots: map[string]int{}}
}

func (f *fleet) worker(n queue.WorkerNotice, now int64) {
	if n.Gone {
		delete(f.workers, n.ID)
	} else {
		f.workers[n.ID] = &seenWorker{n, now}
	}
	f.count()
}

func (f *fleet) coordinator(n queue.CoordinatorNotice, now int64) {
	switch {
	case n.ID == f.self:
	case n.Gone:
		delete(f.coordinators, n.ID)
	default:
		f.coordinators[n.ID] = &seenCoordinator{n, now}
	}
}

// expire forgets who was not heard of.
func (f *fleet) expire(now int64) {
	before := now - queue.AnnounceGone.Milliseconds()
	lost := false
	for id, w := range f.workers {
		if w.at < before {
			delete(f.workers, id)
			lost = true
		}
	}
	for id, c := range f.coordinators {
		if c.at < before {
			delete(f.coordinators, id)
		}
	}
	if lost {
		f.count()
	}
}

func (f *fleet) count() {
	clear(f.slots)
	for _, w := range f.workers {
		if w.Draining {
			continue
		}
		for pool, slots := range w.Pools {
			f.slots[pool] += slots
		}
	}
}

// window is how many jobs of a pool this coordinator may have published, without what
// its workers' speed allows.
func (f *fleet) window(pool string) int {
	slots := f.slots[pool]
	if slots == 0 {
		return windowUnknown
	}
	all := len(f.coordinators) + 1
	return max(windowLeast, (windowPerSlot*slots+all-1)/all)
}

// speed counts what was answered lately.
type speed struct {
	span        int64 // number of the present span
	count, last int   // in it, and in the one before
}

func (s *speed) add(now int64) {
	s.turn(now)
	s.count++
}

func (s *speed) turn(now int64) {
	switch span := now / windowSpan; span - s.span {
	case 0:
	case 1:
		s.span, s.last, s.count = span, s.count, 0
	default:
		s.span, s.last, s.count = span, 0, 0
	}
}

// lately is how many were answered in about one span.
func (s *speed) lately(now int64) int {
	s.turn(now)
	return max(s.last, s.count)
}
