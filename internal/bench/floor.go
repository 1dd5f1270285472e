package bench

import (
	"bytes"
	"context"
	"fmt"
	"strconv"
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

	lanes []chan floorEvent
	wg    sync.WaitGroup
	pad   []byte
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

// runFloor measures executions per second of the floor.
func runFloor(ctx context.Context, natsURL string, rdb redis.UniversalClient, sizes floorSizes, executions, concurrency int) (perSecond float64, err error) {
	f := &floor{sizes: sizes, rdb: rdb, prefix: fmt.Sprintf("reprise-bench:%d:", time.Now().UnixNano()), pad: bytes.Repeat([]byte("x"), 1<<20)}
	for _, conn := range []**nats.Conn{&f.nc, &f.co} {
		if *conn, err = nats.Connect(natsURL, nats.Name("reprise-bench-floor")); err != nil {
			return 0, fmt.Errorf("floor: connect: %w", err)
		}
		defer (*conn).Close()
	}
	if f.js, err = jetstream.New(f.co, jetstream.WithPublishAsyncMaxPending(8192), jetstream.WithPublishAsyncTimeout(10*time.Second)); err != nil {
		return 0, fmt.Errorf("floor: %w", err)
	}
	stream, err := f.js.CreateOrUpdateStream(ctx, jetstream.StreamConfig{
		Name: floorStream, Subjects: []string{floorJobs + ">"}, Retention: jetstream.WorkQueuePolicy, Storage: jetstream.FileStorage,
		MaxMsgsPerSubject: 1, Discard: jetstream.DiscardNew, DiscardNewPerSubject: true,
	})
	if err != nil {
		return 0, fmt.Errorf("floor: stream: %w", err)
	}
	defer func() { _ = f.js.DeleteStream(context.WithoutCancel(ctx), floorStream) }()
	defer f.deleteKeys(context.WithoutCancel(ctx), executions)
	if err := commitScript.Load(ctx, rdb).Err(); err != nil {
		return 0, fmt.Errorf("floor: %w", err)
	}
	stopWorkers, err := f.work(ctx, stream)
	if err != nil {
		return 0, err
	}
	defer stopWorkers()
	stopCoordinator, err := f.coordinate(ctx)
	if err != nil {
		return 0, err
	}
	defer stopCoordinator()
	return f.load(ctx, executions, concurrency)
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

// work answers jobs as a worker does: by a request to the coordinator.
func (f *floor) work(ctx context.Context, stream jetstream.Stream) (stop func(), err error) {
	consumer, err := stream.CreateOrUpdateConsumer(ctx, jetstream.ConsumerConfig{
		Durable: "floor", AckPolicy: jetstream.AckExplicitPolicy, MaxAckPending: 20000, AckWait: 30 * time.Second,
	})
	if err != nil {
		return nil, fmt.Errorf("floor: consumer: %w", err)
	}
	inbox := f.nc.NewInbox()
	answers, err := f.nc.Subscribe(inbox, func(*nats.Msg) {})
	if err != nil {
		return nil, fmt.Errorf("floor: %w", err)
	}
	consume, err := consumer.Consume(func(m jetstream.Msg) {
		h := head(m.Data())
		_ = f.nc.PublishRequest(floorResults, inbox, f.body(h[0]+" "+h[1]+" "+m.Reply(), f.sizes.resultBytes))
	}, jetstream.PullMaxMessages(200))
	if err != nil {
		return nil, fmt.Errorf("floor: consume: %w", err)
	}
	return func() { consume.Stop(); _ = answers.Unsubscribe() }, nil
}

// coordinate handles events in groups, as the coordinator does.
func (f *floor) coordinate(context.Context) (stop func(), err error) {
	for range floorLanes {
		lane := make(chan floorEvent, 4*floorGroup)
		f.lanes = append(f.lanes, lane)
		f.wg.Go(func() { f.lane(lane) })
	}
	results, err := f.co.Subscribe(floorResults, func(m *nats.Msg) {
		h := head(m.Data)
		step, _ := strconv.Atoi(h[1])
		f.hand(floorEvent{execution: h[0], step: step, ack: h[2], reply: m.Reply})
	})
	if err != nil {
		return nil, fmt.Errorf("floor: %w", err)
	}
	submits, err := f.co.Subscribe(floorSubmit, func(m *nats.Msg) {
		f.hand(floorEvent{execution: head(m.Data)[0], reply: m.Reply})
	})
	if err != nil {
		return nil, fmt.Errorf("floor: %w", err)
	}
	return func() {
		_ = results.Unsubscribe()
		_ = submits.Unsubscribe()
		for _, lane := range f.lanes {
			close(lane)
		}
		f.wg.Wait()
	}, nil
}

func (f *floor) hand(e floorEvent) {
	n, _ := strconv.Atoi(e.execution)
	f.lanes[n%len(f.lanes)] <- e
}

func (f *floor) lane(events chan floorEvent) {
	states := map[string]*floorState{}
	for first := range events {
		group := []floorEvent{first}
	fill:
		for len(group) < floorGroup {
			select {
			case e, ok := <-events:
				if !ok {
					break fill
				}
				group = append(group, e)
			default:
				break fill
			}
		}
		pipe := f.rdb.Pipeline()
		for _, e := range group {
			s := states[e.execution]
			if s == nil {
				s = &floorState{}
				states[e.execution] = s
			}
			commitScript.EvalSha(context.Background(), pipe, []string{f.prefix + "{" + e.execution + "}", f.prefix + "{" + e.execution + "}active"},
				s.version, "step"+strconv.Itoa(s.version), f.body("", f.sizes.commitBytes), time.Now().UnixMilli(), e.execution)
			s.version++
		}
		_, _ = pipe.Exec(context.Background())
		for _, e := range group {
			f.follow(states, e)
		}
	}
}

// follow publishes what comes after an event's commit, then acknowledges and answers.
func (f *floor) follow(states map[string]*floorState, e floorEvent) {
	publish := func(steps ...int) {
		for _, step := range steps {
			s := strconv.Itoa(step)
			_, _ = f.js.PublishAsync(floorJobs+e.execution+"_"+s, f.body(e.execution+" "+s, f.sizes.jobBytes))
		}
	}
	switch s := states[e.execution]; e.step {
	case 0:
		publish(1)
	case 1:
		publish(2, 3)
	case 2, 3:
		if s.answers++; s.answers == 2 {
			publish(4)
		}
	case 4:
		delete(states, e.execution)
		_ = f.co.Publish(floorDone+e.execution, nil)
	}
	if e.ack != "" {
		_ = f.co.Publish(e.ack, []byte("+ACK"))
	}
	_ = f.co.Publish(e.reply, []byte(`{"verdict":"ok"}`))
}

// load keeps a number of executions in flight until all are done.
func (f *floor) load(ctx context.Context, executions, concurrency int) (perSecond float64, err error) {
	done := make(chan struct{}, executions)
	sub, err := f.nc.Subscribe(floorDone+">", func(*nats.Msg) { done <- struct{}{} })
	if err != nil {
		return 0, fmt.Errorf("floor: %w", err)
	}
	defer func() { _ = sub.Unsubscribe() }()
	inbox := f.nc.NewInbox()
	answers, err := f.nc.Subscribe(inbox, func(*nats.Msg) {})
	if err != nil {
		return 0, fmt.Errorf("floor: %w", err)
	}
	defer func() { _ = answers.Unsubscribe() }()
	started := time.Now()
	submit := func(n int) { _ = f.nc.PublishRequest(floorSubmit, inbox, f.body(strconv.Itoa(n), f.sizes.submitBytes)) }
	next := 0
	for ; next < min(concurrency, executions); next++ {
		submit(next)
	}
	for finished := 0; finished < executions; finished++ {
		select {
		case <-done:
		case <-ctx.Done():
			return 0, ctx.Err()
		case <-time.After(30 * time.Second):
			return 0, fmt.Errorf("floor: %d of %d executions did not finish", executions-finished, executions)
		}
		if next < executions {
			submit(next)
			next++
		}
	}
	return float64(executions) / time.Since(started).Seconds(), nil
}

func (f *floor) deleteKeys(ctx context.Context, executions int) {
	pipe := f.rdb.Pipeline()
	for n := range executions {
		key := f.prefix + "{" + strconv.Itoa(n) + "}"
		pipe.Unlink(ctx, key, key+"active")
	}
	_, _ = pipe.Exec(ctx)
}
