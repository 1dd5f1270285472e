package simulation

import (
	"context"
	"errors"
	"time"

	"github.com/reprise-engine/reprise/internal/simulation/memqueue"
)

// operation is one call of a stand-in.
type operation struct {
	p *process
	// kind and key say what it is; operations that are handed in between the same two
	// events are ordered by them.
	kind, key string
	// exec carries it out, in the scheduler's goroutine.
	exec func()
	// heard is told the answer that the caller gets; may be nil.
	heard func(answer any)
	// sent is told when it is on its way; may be nil.
	sent func()
	// lost is the caller's error when it or its answer got lost. nil: the caller learns
	// nothing, as its context ends.
	lost error
	// reliable operations get lost only with their process, repeats may come twice.
	reliable, repeats bool
	// answers: exec itself sees to the answer.
	answers bool

	// done is closed when the caller may go on; nil when it did not wait. err is set before.
	done chan struct{}
	err  error
	// ended is set before done is closed.
	ended bool
	// given is where a job goes that was waited for.
	given *memqueue.Delivery
}

// waiting reports whether somebody still waits for the answer.
func (o *operation) waiting() bool {
	o.p.mu.Lock()
	defer o.p.mu.Unlock()
	return o.p.open[o]
}

var errKilled = errors.New("process was killed")

// start hands in an operation whose caller waits for done, and reports false when its
// process is dead.
func (o *operation) start() bool {
	o.done = make(chan struct{})
	if !o.p.own(o) {
		o.err = errKilled
		close(o.done)
		return false
	}
	o.p.w.submit(o)
	return true
}

// wait waits for the answer.
func (o *operation) wait(ctx context.Context) error {
	select {
	case <-o.done:
		return o.err
	case <-ctx.Done():
	}
	select {
	case <-o.done:
		return o.err
	default:
		o.p.disown(o)
		return ctx.Err()
	}
}

// call carries out an operation and waits for it.
func (o *operation) call(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	o.start()
	return o.wait(ctx)
}

// tell hands in an operation that nobody waits for.
func (o *operation) tell() {
	if !o.p.dead.Load() {
		o.p.w.submit(o)
	}
}

// finish gives the caller its answer. The scheduler calls it.
func (o *operation) finish(err error) {
	if o.ended || o.done == nil {
		return
	}
	o.ended, o.err = true, err
	o.p.disown(o)
	close(o.done)
}

func (o *operation) name() string { return o.p.name + " " + o.kind + " " + o.key }

// send draws what becomes of an operation and sends it on its way.
func (w *world) send(o *operation) {
	if o.sent != nil {
		o.sent()
	}
	way := w.latency()
	if wait := o.p.paused.Sub(w.now()); wait > 0 {
		way += wait
	}
	reach := func(d time.Duration, name string, then func()) {
		w.after(d, &event{name: name, owner: o.p, wire: true, run: func() {
			o.exec()
			then()
		}})
	}
	answer := func(err error) func() {
		return func() {
			if o.done == nil || o.answers && err == nil {
				return
			}
			w.after(w.latency(), &event{name: "answer " + o.name(), owner: o.p, run: func() { o.finish(err) }})
		}
	}
	nothing := func() {}
	lose := func() {
		if o.lost != nil {
			w.after(w.between(time.Millisecond, 6*time.Second), &event{name: "no answer " + o.name(), owner: o.p, run: func() { o.finish(o.lost) }})
		}
	}
	p := &w.profile
	switch {
	case o.reliable:
		reach(way, o.name(), answer(nil))
	case w.fault(p.lost):
		w.note("lost: %s", o.name())
		lose()
	case w.fault(p.unclear):
		w.note("answer lost: %s", o.name())
		reach(way, o.name(), nothing)
		lose()
	case w.fault(p.late):
		w.note("late: %s", o.name())
		lose()
		reach(way+w.between(time.Second, 12*time.Second), "late "+o.name(), nothing)
	case o.repeats && w.fault(p.twice):
		w.note("twice: %s", o.name())
		reach(way, o.name(), nothing)
		reach(way+w.between(time.Millisecond, 4*time.Second), "again "+o.name(), answer(nil))
	default:
		reach(way, o.name(), answer(nil))
	}
}
