package chaos

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"time"

	"github.com/google/uuid"
	"go.uber.org/zap"

	"github.com/reprise-engine/reprise/internal/mockllm"
	"github.com/reprise-engine/reprise/pkg/queue"
	"github.com/reprise-engine/reprise/pkg/state"
)

// leaveTimeout bounds what is done at the end for those who use the same servers.
const leaveTimeout = 10 * time.Second

// Run breaks a fleet for a while and reports what came of it. An error says that it
// could not be done, not that the promise did not hold. Whatever happens, all that was
// started has ended when it returns.
func Run(ctx context.Context, c Config) (*Report, error) {
	c, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	if c.Seed == 0 {
		c.Seed = uint64(rand.Uint32()) // short enough to be typed
	}
	if err := reachable(ctx, c); err != nil {
		return nil, err
	}
	r := &run{config: c, id: "chaos-" + uuid.NewString()[:8]}
	defer r.close()
	if err := r.open(ctx); err != nil {
		return nil, err
	}
	return r.play(ctx)
}

// reachable asks given servers before anything is started on them.
func reachable(ctx context.Context, c Config) error {
	if !c.given() {
		return nil
	}
	conn, err := queue.Connect(ctx, queue.Config{URL: c.NATSURL, Name: "reprise-chaos"})
	if err != nil {
		return err
	}
	conn.Close()
	store, err := state.Open(ctx, state.Config{URL: c.RedisURL, Log: zap.NewNop()})
	if err != nil {
		return err
	}
	return store.Close()
}

// run is one run and what it has opened.
type run struct {
	config    Config
	id        string
	load      *load
	ledger    *ledger
	fleet     *fleet
	conn      *queue.Conn
	inspector *inspector
	closes    []func()
}

func (r *run) close() {
	for i := len(r.closes) - 1; i >= 0; i-- {
		r.closes[i]()
	}
}

// open starts the outside world, the fleet and the connections to it.
func (r *run) open(ctx context.Context) error {
	r.load = newLoad(r.id)
	var err error
	if r.ledger, err = startLedger(r.load.allowed); err != nil {
		return err
	}
	r.closes = append(r.closes, func() { _ = r.ledger.stop() })
	mockURL, stop, err := startModel(r.config.Say)
	if err != nil {
		return err
	}
	r.closes = append(r.closes, stop)
	// On servers that others use, workers take jobs from a pool of their own.
	nodes, pool := "", queue.DefaultPool
	if r.config.given() {
		nodes, pool = r.id, r.id
	}
	if r.fleet, err = startFleet(ctx, r.config, pool, mockURL); err != nil {
		return err
	}
	r.closes = append(r.closes, r.fleet.close)
	if r.conn, err = queue.Connect(ctx, queue.Config{URL: r.fleet.natsURL, Name: "reprise-chaos", RequestTimeout: requestTimeout}); err != nil {
		return err
	}
	r.closes = append(r.closes, r.conn.Close)
	if r.inspector, err = openInspector(ctx, r.fleet.natsURL, r.fleet.redisURL, r.id, pool); err != nil {
		return err
	}
	r.closes = append(r.closes, r.inspector.close)
	r.load.conn, r.load.work = r.conn, newWorkload(r.id, r.ledger.url, nodes)
	if r.config.given() {
		r.closes = append(r.closes, func() {
			if err := r.leave(); err != nil {
				r.config.Say(err.Error())
			}
		})
	}
	if _, err := r.conn.PutWorkflow(ctx, queue.WorkflowPutRequest{Document: r.load.work.child}); err != nil {
		return err
	}
	stopWatching, err := r.conn.WatchLive("", r.load.notice)
	if err != nil {
		return err
	}
	r.closes = append(r.closes, stopWatching)
	return nil
}

// startModel starts the mock model on a free loopback port.
func startModel(say func(string)) (url string, stop func(), err error) {
	parsed, err := mockllm.ParseScript([]byte(script))
	if err != nil {
		return "", nil, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, fmt.Errorf("listen for the mock model: %w", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- mockllm.New(mockllm.Config{Script: parsed}).ServeListener(ctx, listener) }()
	return "http://" + listener.Addr().String() + "/v1", func() {
		cancel()
		if err := <-served; err != nil {
			say(err.Error())
		}
	}, nil
}

// play is the load with its faults, the time to come to rest, and the reckoning.
func (r *run) play(ctx context.Context) (*Report, error) {
	c := r.config
	r.introduce()
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	r.load.fatal = fail
	r.load.onNext = func(f *Fault) { c.Say(f.line()) }

	until, stop := context.WithCancel(ctx) // ends requests of what is in flight
	defer stop()
	looking := sync.WaitGroup{}
	looking.Go(func() { r.load.look(until) })
	began := time.Now()
	loading, over := context.WithTimeout(ctx, c.Duration)
	defer over()
	b := &breaker{config: c, fleet: r.fleet, load: r.load, began: began}
	breaking := sync.WaitGroup{}
	breaking.Go(func() { b.run(loading) })
	progress := r.progress(began, b)
	r.load.keep(loading, until, c.Rate)
	breaking.Wait()
	left, settled := r.settle(ctx)
	progress()
	stop()
	r.load.group.Wait()
	looking.Wait()
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	report := &Report{
		Seed: c.Seed, DurationSeconds: c.Duration.Seconds(), SettledSeconds: settled.Seconds(),
		Coordinators: c.Coordinators, Workers: c.Workers, Rate: c.Rate, LeaseSeconds: c.Lease.Seconds(),
		Servers: r.servers(), Left: left, Ended: r.fleet.endedByThemselves(),
	}
	for _, f := range b.faults {
		if f.next == 0 {
			c.Say(f.line())
		}
	}
	report.account(r.load.orders, r.ledger, b.faults)
	return report, nil
}

// leave takes out of servers that others use what is of no use to them: executions
// that a run which was interrupted has left in flight, the sub-workflow, and the pool. It
// ends the fleet.
func (r *run) leave() error {
	ctx, cancel := context.WithTimeout(context.Background(), leaveTimeout)
	defer cancel()
	r.load.abandon(ctx)
	// Coordinators withdraw the jobs of what was cancelled when they have answered.
	for ctx.Err() == nil {
		if left, err := r.inspector.look(ctx); err == nil && left.nothing() {
			break
		}
		pause(ctx, 50*time.Millisecond)
	}
	err := r.conn.DeleteWorkflow(ctx, r.load.work.id)
	r.fleet.close()
	if err = errors.Join(err, r.inspector.forgetPool(ctx)); err != nil {
		return fmt.Errorf("clean up: %w", err)
	}
	return nil
}

func (r *run) servers() string {
	if r.config.given() {
		return "given"
	}
	return r.fleet.redisKind
}

// introduce says what is about to happen.
func (r *run) introduce() {
	c := r.config
	servers := "NATS and Redis that were given"
	if !c.given() {
		servers = "a NATS and a " + r.fleet.redisKind
	}
	c.Say(fmt.Sprintf("Running for %s: %d coordinators, %d workers, %s; %g executions a second; lease %s; seed %d.",
		c.Duration, c.Coordinators, c.Workers, servers, c.Rate, c.Lease, c.Seed))
}

// settle starts everything again and waits, within bounds, until nothing is in
// flight. It returns what is left then, and how long it took.
func (r *run) settle(ctx context.Context) (Left, time.Duration) {
	began := time.Now()
	ctx, cancel := context.WithTimeout(ctx, r.config.Settle)
	defer cancel()
	if err := r.fleet.restore(ctx); err != nil && !errors.Is(err, context.Canceled) {
		r.config.Say(err.Error())
	}
	left := Left{Unfinished: -1}
	for {
		trying, done := context.WithTimeout(context.WithoutCancel(ctx), requestTimeout)
		now, err := r.inspector.look(trying)
		done()
		submitted, finished := r.load.counts()
		if err == nil {
			left = now
			if left.nothing() && submitted == finished {
				return left, time.Since(began)
			}
		}
		if ctx.Err() != nil {
			return left, time.Since(began)
		}
		pause(ctx, 100*time.Millisecond)
	}
}

// progress tells a few times a second how far the run is, until stop.
func (r *run) progress(began time.Time, b *breaker) (stop func()) {
	quit := make(chan struct{})
	var telling sync.WaitGroup
	telling.Go(func() {
		ticker := time.NewTicker(200 * time.Millisecond)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
			case <-quit:
				return
			}
			p := Progress{Stage: "breaking", Elapsed: time.Since(began), Of: r.config.Duration, Faults: b.count()}
			if p.Elapsed > p.Of {
				p.Stage = "coming to rest"
			}
			p.Submitted, p.Finished = r.load.counts()
			r.config.Progress(p)
		}
	})
	return func() { close(quit); telling.Wait() }
}
