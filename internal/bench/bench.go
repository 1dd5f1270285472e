package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"runtime/pprof"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reprise-engine/reprise/internal/loopback"
	"github.com/reprise-engine/reprise/internal/stack"
	"github.com/reprise-engine/reprise/pkg/queue"
)

const (
	// warmUp is the number of executions that do not count: they fill caches and
	// pools, and tell what messages weigh.
	warmUp = 200
	// The floor takes about as many executions as were measured, within limits that
	// make it neither noise nor a wait.
	minFloor, maxFloor = 500, 5000
)

// ErrFailed is returned by Run when an execution did not end as it has to.
var ErrFailed = errors.New("an execution failed")

// Run measures. Its error is ErrFailed with that of the first execution that
// failed, ctx's, or why servers could not be used.
func Run(ctx context.Context, c Config) (*Report, error) {
	c, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	b := &bench{config: c}
	defer b.close()
	if err := b.open(ctx); err != nil {
		return nil, err
	}
	return b.run(ctx)
}

type bench struct {
	config Config
	stack  *stack.Stack // nil when all runs elsewhere
	conn   *queue.Conn
	redis  redis.UniversalClient // nil when its address is not known
	nats   string
	client *client
	stops  []func()
}

func (b *bench) close() {
	for i := len(b.stops) - 1; i >= 0; i-- {
		b.stops[i]()
	}
}

// open starts or connects to everything.
func (b *bench) open(ctx context.Context) error {
	c := &b.config
	b.nats = c.NATSURL
	redisURL := c.RedisURL
	if c.External {
		conn, err := queue.Connect(ctx, queue.Config{URL: c.NATSURL, Name: "reprise-bench", Log: c.Log})
		if err != nil {
			return err
		}
		b.conn = conn
		b.stops = append(b.stops, conn.Close)
	} else {
		// With a directory of its own the embedded Redis keeps an append-only file, as
		// one in production must.
		dir, err := os.MkdirTemp("", "reprise-bench-")
		if err != nil {
			return fmt.Errorf("create directory: %w", err)
		}
		b.stops = append(b.stops, func() { _ = os.RemoveAll(dir) })
		var model http.RoundTripper
		if !c.ModelOverHTTP && c.Think == 0 {
			model = &cheapModel{}
		}
		b.stack, err = stack.Start(ctx, stack.Config{
			WorkerHTTP: model,
			NATSURL:    c.NATSURL, RedisURL: c.RedisURL, Dir: dir, Coordinators: c.Coordinators, Workers: c.Workers,
			Concurrency: c.WorkerConcurrency, MockLLM: true, ThinkTime: c.Think, Log: c.Log,
		})
		if err != nil {
			return err
		}
		b.stops = append(b.stops, b.stack.Stop)
		b.conn, b.nats, redisURL = b.stack.Conn, b.stack.NATSURL, b.stack.RedisURL
	}
	if redisURL != "" {
		client, err := loopback.OpenRedis(ctx, redisURL)
		if err != nil {
			return err
		}
		b.redis = client
		b.stops = append(b.stops, func() { _ = client.Close() })
	}
	document, err := agentWorkflow()
	if err != nil {
		return err
	}
	var stop func()
	if b.client, stop, err = newClient(b.conn, document, c.Think); err != nil {
		return err
	}
	b.stops = append(b.stops, stop)
	return nil
}

func (b *bench) run(ctx context.Context) (*Report, error) {
	c := &b.config
	if err := b.first(ctx); err != nil {
		return nil, err
	}
	before := b.usage(ctx)
	warm := warmUp
	if c.Executions > 0 {
		warm = min(warm, c.Executions)
	}
	if _, err := b.client.load(ctx, "warm-up", warm, 0, c.Concurrency, c.Progress); err != nil {
		return nil, failed(ctx, err)
	}
	sizes := b.usage(ctx).minus(before).sizes(b.submitBytes())
	r := &Report{
		Scenario: c.Scenario, Concurrency: c.Concurrency,
	}
	r.describe(ctx, b)
	if b.stack != nil {
		r.Coordinators, r.Workers = len(b.stack.Coordinators), len(b.stack.Workers)
	}
	var floors []*floorResult
	runFloor := func(executions int) error {
		if c.NoFloor || b.stack == nil {
			return nil
		}
		f, err := b.floor(ctx, sizes, executions)
		floors = append(floors, f)
		return err
	}
	if err := runFloor(min(max(c.Executions, minFloor), maxFloor)); err != nil {
		return nil, err
	}
	if err := b.measure(ctx, r); err != nil {
		return nil, err
	}
	if err := runFloor(min(max(r.Executions, minFloor), maxFloor)); err != nil {
		return nil, err
	}
	r.setFloor(floors)
	return r, nil
}

// first runs one execution and looks whether it does what the scenario says.
func (b *bench) first(ctx context.Context) error {
	id, _, err := b.client.one(ctx)
	if err != nil {
		return failed(ctx, err)
	}
	x, err := b.conn.Get(ctx, id, true)
	if err != nil {
		return err
	}
	if err := checkAgent(x); err != nil {
		return fmt.Errorf("%w: %w", ErrFailed, err)
	}
	return nil
}

// failed marks an error as that of an execution, unless the bench was stopped.
func failed(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return fmt.Errorf("%w: %w", ErrFailed, err)
}

// measure runs the executions that count.
func (b *bench) measure(ctx context.Context, r *Report) error {
	c := &b.config
	if c.CPUProfile != nil {
		if err := pprof.StartCPUProfile(c.CPUProfile); err != nil {
			return fmt.Errorf("cpu profile: %w", err)
		}
	}
	before := b.usage(ctx)
	out, err := b.client.load(ctx, "measuring", c.Executions, c.Duration, c.Concurrency, c.Progress)
	used := b.usage(ctx).minus(before)
	if c.CPUProfile != nil {
		pprof.StopCPUProfile()
	}
	if err != nil {
		return failed(ctx, err)
	}
	n := float64(len(out.latencies))
	r.Executions, r.Seconds, r.ExecutionsPerSecond = len(out.latencies), round(out.seconds, 3), round(n/out.seconds, 1)
	r.setLatencies(out.latencies)
	r.setUsage(used, n, b.stack != nil)
	return nil
}

// submitBytes is what a submission weighs.
func (b *bench) submitBytes() int {
	data, err := json.Marshal(b.client.submission("bench-00000000-1000"))
	if err != nil { // a document that was accepted before
		return len(b.client.document)
	}
	return len(data)
}

// floor runs the floor once on the same servers.
func (b *bench) floor(ctx context.Context, sizes floorSizes, executions int) (*floorResult, error) {
	b.config.Progress("floor", 0, executions)
	cpu := b.cpu(ctx)
	f, err := runFloor(ctx, b.nats, b.redis, sizes, executions, b.config.Concurrency)
	if err != nil {
		return nil, err
	}
	f.cpu = (b.cpu(ctx) - cpu) / time.Duration(executions)
	return f, nil
}

func (b *bench) cpu(ctx context.Context) time.Duration {
	used := processCPU()
	if b.redis != nil {
		if redis, ok := redisCPU(ctx, b.redis); ok {
			used += redis
		}
	}
	return used
}
