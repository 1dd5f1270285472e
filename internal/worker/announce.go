package worker

import (
	"time"

	"go.uber.org/zap"

	"github.com/reprise-engine/reprise/pkg/queue"
)

// announcer tells the coordinators what the worker serves and how busy it is. What it says is
// a hint: coordinators hand out jobs without it too.
type announcer struct {
	w *Worker
	// idleSince is when the worker was first seen without jobs; zero while it has some. It
	// belongs to the goroutine of loop.
	idleSince time.Time
}

func newAnnouncer(w *Worker) *announcer { return &announcer{w: w} }

// loop says it now, every two seconds, when the worker takes no more jobs, and when it ends.
func (a *announcer) loop() {
	w := a.w
	ticker := time.NewTicker(queue.AnnounceEvery)
	defer ticker.Stop()
	draining := w.fetching.Done()
	for {
		a.say(false)
		select {
		case <-ticker.C:
		case <-draining:
			draining = nil
		case <-w.running.Done():
			a.say(true)
			return
		}
	}
}

func (a *announcer) say(last bool) {
	w := a.w
	n := queue.WorkerNotice{
		ID: w.config.Instance, Name: w.config.Name, Slots: w.config.Slots, Pools: w.config.PoolSlots, Busy: w.BusyByPool(),
		Draining: w.fetching.Err() != nil, Gone: last,
	}
	switch {
	case len(n.Busy) > 0:
		a.idleSince = time.Time{}
	case a.idleSince.IsZero():
		a.idleSince = time.Now()
	}
	if !a.idleSince.IsZero() {
		n.IdleSince = a.idleSince.UnixMilli()
	}
	if err := w.config.Announce(n); err != nil {
		w.log.Debug("worker was not announced", zap.Error(err))
	}
}

// BusyByPool is the number of jobs held by pool, nil when there are none.
func (w *Worker) BusyByPool() map[string]int {
	w.mu.Lock()
	defer w.mu.Unlock()
	var busy map[string]int
	for _, h := range w.held {
		if busy == nil {
			busy = map[string]int{}
		}
		pool := h.Job().Pool
		if pool == "" {
			pool = queue.DefaultPool
		}
		busy[pool]++
	}
	return busy
}
