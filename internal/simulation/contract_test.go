package simulation

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/reprise-engine/reprise/internal/worker"
	"github.com/reprise-engine/reprise/pkg/queue"
	"github.com/reprise-engine/reprise/pkg/queue/queuetest"
)

// TestQueueContract: what processes have in place of NATS here passes the suite that pkg/queue passes
// on a server.
func TestQueueContract(t *testing.T) {
	queuetest.RunSimulated(t, func(t *testing.T) (queuetest.Fixture, func()) {
		w := newWorld(1, profile{}, rand.New(rand.NewPCG(1, 1)), nil) //nolint:gosec // it must be repeatable
		w.steady = true                                               // a connection keeps the order of what is sent on it
		over, done := false, make(chan struct{})
		go func() {
			defer close(done)
			w.run(func() bool { return over })
		}()
		f := &fixture{t: t, w: w, done: done}
		return f, func() {
			f.do(func() { over = true })
			<-done
			for _, p := range w.processes {
				w.kill(p)
			}
			if w.failure != nil {
				t.Error(w.failure)
			}
		}
	})
}

// fixture is a world without products.
type fixture struct {
	t     *testing.T
	w     *world
	asker *process // that do goes through
	peers int
	done  <-chan struct{} // closed when the scheduler has ended
}

// do has the scheduler do something.
func (f *fixture) do(act func()) {
	if f.asker == nil {
		f.asker = &process{w: f.w, name: "test", open: map[*operation]bool{}}
	}
	o := &operation{p: f.asker, kind: "test", reliable: true, exec: act}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		select {
		case <-f.done:
			cancel()
		case <-ctx.Done():
		}
	}()
	if err := o.call(ctx); err != nil && f.w.failure != nil {
		f.t.Errorf("the scheduler has ended: %v", f.w.failure)
	}
}

func (f *fixture) AckWait() time.Duration { return lease }

func (f *fixture) Messages() (n int) {
	f.do(func() { n = f.w.jobs.Len() })
	return n
}

func (f *fixture) Lose() { f.do(f.w.jobs.Wipe) }

func (f *fixture) Peer() queuetest.Peer {
	f.peers++
	var p *process
	f.do(func() { p = f.w.newServer(fmt.Sprintf("p%d", f.peers)) })
	p.worker = worker.New(worker.Config{Name: p.name})
	return peer{transportOf{p}, f}
}

type peer struct {
	transportOf
	f *fixture
}

func (p peer) Publish(ctx context.Context, jobs ...*queue.Job) []error {
	return p.PublishJobs(ctx, jobs)()
}

// ServeResults: a coordinator is found by its process's name.
func (p peer) ServeResults(coordinator string, handler func(*queue.Result, int, func(queue.Reply))) (func(), error) {
	p.f.do(func() { p.p.name = coordinator })
	return p.transportOf.ServeResults(coordinator, handler)
}

func (p peer) Jobs(slots int) queuetest.Worker {
	p.p.slots = make(chan struct{}, slots)
	return source{sourceOf{p.p}}
}

type source struct{ sourceOf }

func (s source) Next(ctx context.Context) (queuetest.Delivery, error) {
	d, err := s.sourceOf.Next(ctx)
	if err != nil {
		return nil, err
	}
	return d.(*delivery), nil
}
