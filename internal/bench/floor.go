package bench

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/redis/go-redis/v9"
)

// The floor is what an agent execution costs without an engine: the same
// number of NATS and Redis operations of the same sizes, done by the leanest
// program that keeps the same guarantees. Per execution:
//
//	submit request -> commit -> job (agent) -> result -> commit -> 2 jobs (tools)
//	-> 2 results -> 2 commits -> job (agent) -> result -> commit -> notice
//
// A result is a request that the coordinator answers after its commit; it then
// acknowledges the job's message on the worker's behalf.

// floorSizes are the sizes of the floor's messages, taken from the engine's own traffic.
type floorSizes struct {
	submitBytes, jobBytes, resultBytes, commitBytes int
}

const (
	floorStream  = "REPRISE_BENCH_FLOOR"
	floorJobs    = "reprise-bench.job."
	floorResults = "reprise-bench.result"
	floorSubmit  = "reprise-bench.submit"
	floorDone    = "reprise-bench.done."
	floorLanes   = 8
	floorGroup   = 64
	// floorTimeout is how long nothing may finish before the run has failed.
	floorTimeout = 30 * time.Second
)

// commitScript is a commit as small as it can be: compare the version, write one
// field, set the version, keep the sweeper's index.
//
//	KEYS: execution hash, active set. ARGV: version, field, value, score, execution.
var commitScript = redis.NewScript(`
local have = redis.call('HGET', KEYS[1], 'version') or '0'
if have ~= ARGV[1] then return 0 end
redis.call('HSET', KEYS[1], ARGV[2], ARGV[3], 'version', ARGV[1] + 1)
redis.call('ZADD', KEYS[2], ARGV[4], ARGV[5])
return 1`)

// floor runs the floor's four parties in this process.
type floor struct {
	sizes  floorSizes
	nc     *nats.Conn // the workers' connection
	co     *nats.Conn // the coordinator's
	js     jetstream.JetStream
	rdb    redis.UniversalClient
	prefix string

	cancel context.CancelCauseFunc
	lanes  []chan floorEvent
	wg     sync.WaitGroup
	pad    []byte
}

// floorEvent is a submission (step 0) or the result of a step's job.
type floorEvent struct {
	execution string
	step      int
	ack       string
	reply     string
}

// floorState is what the floor's coordinator keeps of an execution.
type floorState struct {
	version int
	answers int
}

// floorResult is what one run of the floor measured.
type floorResult struct {
	perSecond float64
	messages  float64       // client messages per execution, both directions
	cpu       time.Duration // per execution, set by the caller
}

// runFloor measures the floor.
func runFloor(ctx context.Context, natsURL string, rdb redis.UniversalClient, sizes floorSizes, executions, concurrency int) (*floorResult, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	f := &floor{
		sizes: sizes, rdb: rdb, pad: bytes.Repeat([]byte("x"), 1<<20), cancel: cancel,
		prefix: fmt.Sprintf("reprise-bench:%d:", time.Now().UnixNano()),
	}
	for _, conn := range []**nats.Conn{&f.nc, &f.co} {
		var err error
		if *conn, err = nats.Connect(natsURL, nats.Name("reprise-bench-floor")); err != nil {
			return nil, fmt.Errorf("floor: connect: %w", err)
		}
		defer (*conn).Close()
	}
	var err error
	f.js, err = jetstream.New(f.co, jetstream.WithPublishAsyncMaxPending(16384), jetstream.WithPublishAsyncTimeout(10*time.Second),
		jetstream.WithPublishAsyncErrHandler(func(_ jetstream.JetStream, _ *nats.Msg, err error) { f.fail("publish job", err) }))
	if err != nil {
		return nil, fmt.Errorf("floor: %w", err)
	}
	// As the engine's job stream.
	stream, err := f.js.CreateOrUpdateStream(ctx, jetstream.StreamConfig{
		Name: floorStream, Subjects: []string{floorJobs + ">"}, Retention: jetstream.WorkQueuePolicy, Storage: jetstream.FileStorage,
		MaxMsgsPerSubject: 1, Discard: jetstream.DiscardNew, DiscardNewPerSubject: true, Duplicates: time.Second,
	})
	if err != nil {
		return nil, fmt.Errorf("floor: stream: %w", err)
	}
	defer func() { _ = f.js.DeleteStream(context.WithoutCancel(ctx), floorStream) }()
	defer f.deleteKeys(context.WithoutCancel(ctx), executions)
	if err := commitScript.Load(ctx, rdb).Err(); err != nil {
		return nil, fmt.Errorf("floor: load script: %w", err)
	}
	stopWorkers, err := f.work(ctx, stream)
	if err != nil {
		return nil, err
	}
	defer stopWorkers()
	stopCoordinator, err := f.coordinate(ctx)
	if err != nil {
		return nil, err
	}
	defer stopCoordinator()
	return f.load(ctx, executions, concurrency)
}

// fail ends the run: a floor that lost an operation is none.
func (f *floor) fail(what string, err error) {
	if err != nil {
		f.cancel(fmt.Errorf("floor: %s: %w", what, err))
	}
}

// publish sends a message that is not awaited.
func (f *floor) publish(conn *nats.Conn, subject, reply string, data []byte) {
	f.fail("publish", conn.PublishMsg(&nats.Msg{Subject: subject, Reply: reply, Data: data}))
}

// subscribe without the limits at which a burst would be dropped.
func (f *floor) subscribe(conn *nats.Conn, subject string, handle nats.MsgHandler) (stop func(), err error) {
	sub, err := conn.Subscribe(subject, handle)
	if err != nil {
		return nil, fmt.Errorf("floor: subscribe: %w", err)
	}
	f.fail("subscribe", sub.SetPendingLimits(-1, -1))
	f.fail("subscribe", conn.Flush())
	return func() { _ = sub.Unsubscribe() }, nil
}

func (f *floor) body(head string, size int) []byte {
	body := make([]byte, 0, max(size, len(head)+1))
	body = append(body, head...)
	body = append(body, '|')
	if pad := size - len(body); pad > 0 {
		body = append(body, f.pad[:min(pad, len(f.pad))]...)
	}
	return body
}

func head(body []byte) []string {
	h, _, _ := bytes.Cut(body, []byte("|"))
	parts := bytes.Split(h, []byte(" "))
	out := make([]string, len(parts))
	for i, p := range parts {
		out[i] = string(p)
	}
	return out
}
