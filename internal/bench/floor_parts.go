package bench

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/redis/go-redis/v9"
)

// work answers jobs as a worker does: by a request to the coordinator.
func (f *floor) work(ctx context.Context, stream jetstream.Stream) (stop func(), err error) {
	consumer, err := stream.CreateOrUpdateConsumer(ctx, jetstream.ConsumerConfig{
		Durable: "floor", AckPolicy: jetstream.AckExplicitPolicy, MaxAckPending: 20000, AckWait: 30 * time.Second,
	})
	if err != nil {
		return nil, fmt.Errorf("floor: consumer: %w", err)
	}
	inbox := f.nc.NewInbox()
	stopAnswers, err := f.subscribe(f.nc, inbox, func(*nats.Msg) {})
	if err != nil {
		return nil, err
	}
	consume, err := consumer.Consume(func(m jetstream.Msg) {
		h := head(m.Data())
		f.publish(f.nc, floorResults, inbox, f.body(h[0]+" "+h[1]+" "+m.Reply(), f.sizes.resultBytes))
	}, jetstream.PullMaxMessages(200))
	if err != nil {
		stopAnswers()
		return nil, fmt.Errorf("floor: consume: %w", err)
	}
	return func() {
		consume.Stop()
		<-consume.Closed()
		stopAnswers()
	}, nil
}

// coordinate handles events in groups, as the coordinator does.
func (f *floor) coordinate(ctx context.Context) (stop func(), err error) {
	ctx, cancel := context.WithCancel(ctx)
	for range floorLanes {
		lane := make(chan floorEvent, 4*floorGroup)
		f.lanes = append(f.lanes, lane)
		f.wg.Go(func() { f.lane(ctx, lane) })
	}
	stopLanes := func() { cancel(); f.wg.Wait() }
	stopResults, err := f.subscribe(f.co, floorResults, func(m *nats.Msg) {
		h := head(m.Data)
		step, err := strconv.Atoi(h[1])
		f.fail("read result", err)
		f.hand(ctx, floorEvent{execution: h[0], step: step, ack: h[2], reply: m.Reply})
	})
	if err != nil {
		stopLanes()
		return nil, err
	}
	stopSubmits, err := f.subscribe(f.co, floorSubmit, func(m *nats.Msg) {
		f.hand(ctx, floorEvent{execution: head(m.Data)[0], reply: m.Reply})
	})
	if err != nil {
		stopResults()
		stopLanes()
		return nil, err
	}
	return func() {
		stopSubmits()
		stopResults()
		stopLanes()
	}, nil
}

func (f *floor) hand(ctx context.Context, e floorEvent) {
	n, err := strconv.Atoi(e.execution)
	f.fail("read execution", err)
	select {
	case f.lanes[n%len(f.lanes)] <- e:
	case <-ctx.Done():
	}
}

func (f *floor) lane(ctx context.Context, events chan floorEvent) {
	states := map[string]*floorState{}
	for {
		var group []floorEvent
		select {
		case e := <-events:
			group = append(group, e)
		case <-ctx.Done():
			return
		}
	fill:
		for len(group) < floorGroup {
			select {
			case e := <-events:
				group = append(group, e)
			default:
				break fill
			}
		}
		if err := f.commit(ctx, states, group); err != nil {
			f.fail("commit", err)
			return
		}
		for _, e := range group {
			f.follow(states, e)
		}
	}
}

// commit writes a group in one round trip.
func (f *floor) commit(ctx context.Context, states map[string]*floorState, group []floorEvent) error {
	pipe := f.rdb.Pipeline()
	for _, e := range group {
		s := states[e.execution]
		if s == nil {
			s = &floorState{}
			states[e.execution] = s
		}
		key := f.prefix + "{" + e.execution + "}"
		// What the command says besides the value counts towards its size.
		value := f.body("", f.sizes.commitBytes-2*len(key)-len(commitScript.Hash())-len("evalsha")-30)
		commitScript.EvalSha(ctx, pipe, []string{key, key + "active"},
			s.version, "step"+strconv.Itoa(s.version), value, time.Now().UnixMilli(), e.execution)
		s.version++
	}
	answers, err := pipe.Exec(ctx)
	if err != nil {
		return err
	}
	for _, a := range answers {
		if n, err := a.(*redis.Cmd).Int(); err != nil || n != 1 {
			return fmt.Errorf("refused with %d (%w)", n, err)
		}
	}
	return nil
}

// follow publishes what comes after an event's commit, then acknowledges and
// answers. PubAcks are not awaited: whoever loses a job publishes it again later.
func (f *floor) follow(states map[string]*floorState, e floorEvent) {
	publish := func(steps ...int) {
		for _, step := range steps {
			s := strconv.Itoa(step)
			_, err := f.js.PublishAsync(floorJobs+e.execution+"_"+s, f.body(e.execution+" "+s, f.sizes.jobBytes))
			f.fail("publish job", err)
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
		f.publish(f.co, floorDone+e.execution, "", nil)
	}
	if e.ack != "" {
		f.publish(f.co, e.ack, "", []byte("+ACK"))
	}
	f.publish(f.co, e.reply, "", []byte(`{"verdict":"ok"}`))
}

// load keeps a number of executions in flight until all are done.
func (f *floor) load(ctx context.Context, executions, concurrency int) (*floorResult, error) {
	done := make(chan struct{}, executions)
	stopDone, err := f.subscribe(f.nc, floorDone+">", func(*nats.Msg) { done <- struct{}{} })
	if err != nil {
		return nil, err
	}
	defer stopDone()
	inbox := f.nc.NewInbox()
	stopAnswers, err := f.subscribe(f.nc, inbox, func(*nats.Msg) {})
	if err != nil {
		return nil, err
	}
	defer stopAnswers()
	messages := f.messages()
	started := time.Now()
	submit := func(n int) { f.publish(f.nc, floorSubmit, inbox, f.body(strconv.Itoa(n), f.sizes.submitBytes)) }
	next := 0
	for ; next < min(concurrency, executions); next++ {
		submit(next)
	}
	late := time.NewTimer(floorTimeout)
	defer late.Stop()
	for finished := 0; finished < executions; finished++ {
		late.Reset(floorTimeout)
		select {
		case <-done:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-late.C:
			return nil, fmt.Errorf("floor: %d of %d executions did not finish", executions-finished, executions)
		}
		if next < executions {
			submit(next)
			next++
		}
	}
	n := float64(executions)
	return &floorResult{perSecond: n / time.Since(started).Seconds(), messages: float64(f.messages()-messages) / n}, nil
}

func (f *floor) messages() uint64 {
	a, b := f.nc.Stats(), f.co.Stats()
	return a.InMsgs + a.OutMsgs + b.InMsgs + b.OutMsgs
}

func (f *floor) deleteKeys(ctx context.Context, executions int) {
	pipe := f.rdb.Pipeline()
	for n := range executions {
		key := f.prefix + "{" + strconv.Itoa(n) + "}"
		pipe.Unlink(ctx, key, key+"active")
	}
	_, _ = pipe.Exec(ctx) // what stays behind is small and has a name of its own
}
