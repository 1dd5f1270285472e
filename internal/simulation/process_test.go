package simulation

import (
	"container/heap"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/reprise-engine/reprise/internal/coordinator"
	"github.com/reprise-engine/reprise/internal/runner"
	"github.com/reprise-engine/reprise/internal/worker"
	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/queue"
)

// The settings of all processes. They are shorter than in production, so that a
// simulated minute sees much.
const (
	lease         = 10 * time.Second
	sweepAfter    = 5 * time.Second
	timerInterval = 250 * time.Millisecond
)

// process is one life of a coordinator or a worker, or a client.
type process struct {
	w    *world
	name string
	// role is the name without the life's number; a new life has the same.
	role string
	rank int
	dead atomic.Bool
	// ctx ends when it is killed.
	ctx    context.Context
	cancel context.CancelFunc

	coordinator *coordinator.Coordinator
	worker      *worker.Worker
	slots       chan struct{}

	// of the scheduler
	paused    time.Time
	draining  bool
	connected time.Time
	again     bool
	// permits is when this worker was last allowed to run a job: the step of its
	// delivery, or of the question that it asked about it.
	permits map[string]int

	mu   sync.Mutex
	open map[*operation]bool
	// what it serves; nil when it does not
	results     func(*queue.Result, int, func(queue.Reply))
	redelivery  func(*queue.Redelivery, func(queue.Reply))
	memory      memoryLoader
	submissions func(coordinator.DurableSubmission)
	api         *queue.API
	notices     *notices
	holds       bool
}

func (w *world) newProcess(role string) *process {
	w.ranks++
	w.lives[role]++
	p := &process{
		w: w, role: role, name: fmt.Sprintf("%s-%d", role, w.lives[role]), rank: w.ranks, connected: w.now(),
		permits: map[string]int{}, open: map[*operation]bool{},
	}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	w.processes = append(w.processes, p)
	return p
}

// own notes that a goroutine of the process waits for an operation, so that it ends with
// the process.
func (p *process) own(o *operation) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.dead.Load() {
		return false
	}
	p.open[o] = true
	return true
}

func (p *process) disown(o *operation) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.open, o)
}

// startCoordinator starts a life of a coordinator.
func (w *world) startCoordinator(role string) {
	p := w.newServer(role)
	w.note("start %s", p.name)
	c, err := coordinator.New(coordinator.Config{
		ID: p.name, Store: storeOf{p}, Transport: transportOf{p}, Registry: registry(p),
		Lanes: w.profile.lanes, Group: w.profile.group, DeliveryLimit: w.profile.deliveryLimit, CacheBytes: w.profile.cacheBytes,
		SweepAfter: sweepAfter, TimerInterval: timerInterval, Gates: storeOf{p},
	})
	if err == nil {
		err = c.Start(context.Background())
	}
	if err != nil {
		w.fail("coordinator does not start: %v", err)
		return
	}
	p.coordinator = c
}

// startWorker starts a life of a worker.
func (w *world) startWorker(role string) {
	p := w.newServer(role)
	w.note("start %s", p.name)
	p.slots = make(chan struct{}, w.profile.slots)
	p.worker = worker.New(worker.Config{
		Name: p.name, Source: sourceOf{p}, Transport: transportOf{p}, Lease: lease,
		Instance: p.name, Slots: w.profile.slots, PoolSlots: map[string]int{queue.DefaultPool: w.profile.slots}, Announce: transportOf{p}.AnnounceWorker,
		Runner: runner.New(runner.Config{Registry: registry(p), LoadMemory: p.loadMemory, Tables: p.applyTable}),
	})
	p.mu.Lock()
	p.holds = true
	p.mu.Unlock()
	p.worker.Start()
}

func (w *world) startRole(role string) {
	if strings.HasPrefix(role, "c") {
		w.startCoordinator(role)
		return
	}
	w.startWorker(role)
}

// newServer is newProcess for one that others may reach.
func (w *world) newServer(role string) *process {
	p := w.newProcess(role)
	w.servers = append(slices.DeleteFunc(w.servers, func(p *process) bool { return p.dead.Load() }), p)
	return p
}

// alive lists the living processes that serve something.
func (w *world) alive(serves func(*process) bool) []*process {
	var all []*process
	for _, p := range w.servers {
		if p.dead.Load() {
			continue
		}
		p.mu.Lock()
		ok := serves(p)
		p.mu.Unlock()
		if ok {
			all = append(all, p)
		}
	}
	return all
}

// any draws one of the processes that serve something; nil when there is none.
func (w *world) any(serves func(*process) bool) *process {
	all := w.alive(serves)
	if len(all) == 0 {
		return nil
	}
	return all[w.rng.IntN(len(all))]
}

// kill ends a process at once: nothing that it was about to do happens, nothing it waits
// for arrives. What it has sent may be on its way, or not.
func (w *world) kill(p *process) {
	w.note("kill %s", p.name)
	p.mu.Lock()
	p.dead.Store(true)
	open := p.open
	p.open = map[*operation]bool{}
	p.mu.Unlock()
	for o := range open {
		if !o.ended {
			o.ended, o.err = true, errKilled
			close(o.done)
		}
	}
	kept := w.events[:0]
	for _, e := range w.events {
		if e.owner == p && (!e.wire || w.chance(0.5)) {
			continue
		}
		kept = append(kept, e)
	}
	clear(w.events[len(kept):])
	w.events = kept
	heap.Init(&w.events)
	p.cancel()
	w.stop(p, true)
}

// stop ends a process in order, or the remains of one that was killed.
func (w *world) stop(p *process, now bool) {
	w.mu.Lock()
	w.stopping++
	w.mu.Unlock()
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		if now {
			cancel()
		}
		if p.coordinator != nil {
			p.coordinator.Stop(ctx)
		}
		if p.worker != nil {
			p.worker.Stop(ctx)
		}
		p.mu.Lock()
		p.holds = false
		p.dead.Store(true)
		p.mu.Unlock()
		p.cancel()
		w.mu.Lock()
		w.stopping--
		w.mu.Unlock()
		select {
		case w.wake <- struct{}{}:
		default:
		}
	}()
}

// effect is a node's work on the world outside.
func (p *process) effect(ctx context.Context, e effect) error {
	e.process = p.name
	o := &operation{p: p, kind: "effect", key: e.String(), reliable: true}
	o.exec = func() { p.w.history.effect(p, e) }
	return o.call(ctx)
}

// attemptOf names an attempt. A retried execution has the keys of the one that it repeats.
func attemptOf(id engine.ExecutionID, key string, attempt int) string {
	return string(id) + " " + key + "#" + strconv.Itoa(attempt)
}

func (p *process) drop(jobs []engine.JobID) { p.worker.Drop(jobs) }
