package queue

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/zap"
)

// DefaultLease is WorkerConfig.AckWait when none is given.
const DefaultLease = 6 * time.Second

// WorkerConfig says how a worker takes jobs.
type WorkerConfig struct {
	// Slots is how many jobs it holds at most, over all its pools; at least one
	// per pool.
	Slots int
	// AckWait is the lease: how long a job may be without a sign of life before it
	// is given to another worker. 0 is DefaultLease. It is a property of the pool: the worker
	// that starts last sets it for all.
	AckWait time.Duration
	// PoolSlots bounds the jobs of single pools within Slots; a pool that is not in it may
	// take all.
	PoolSlots map[string]int
}

// maxAckPending bounds the jobs of a pool that all workers together hold.
const maxAckPending = 20_000

// JobConsumer gives out the jobs of some pools.
type JobConsumer struct {
	c *Conn
	p *puller
}

// Jobs starts to take jobs of pools. It returns at once: while there is no
// stream it waits for a coordinator to create it, and it goes on after the
// server was restarted or the stream created again.
func (c *Conn) Jobs(_ context.Context, pools []string, config WorkerConfig) (*JobConsumer, error) {
	if config.AckWait <= 0 {
		config.AckWait = DefaultLease
	}
	pools = slices.Clone(pools)
	for i := range pools {
		pools[i] = poolName(pools[i])
	}
	slices.Sort(pools)
	pools = slices.Compact(pools)
	switch {
	case len(pools) == 0:
		return nil, errors.New("a worker needs at least one pool")
	case config.Slots < len(pools):
		return nil, fmt.Errorf("a worker needs at least one slot for each of its %d pools: it has %d", len(pools), config.Slots)
	}
	var consumers []jetstream.ConsumerConfig
	limits := map[string]int{}
	for _, pool := range pools {
		if err := ValidToken("pool", pool); err != nil {
			return nil, err
		}
		limits[consumerJobs(pool)] = config.PoolSlots[pool]
		consumers = append(consumers, jetstream.ConsumerConfig{
			Durable: consumerJobs(pool), Description: "workers of pool " + pool,
			FilterSubject: subjectJob + pool + ".*",
			AckPolicy:     jetstream.AckExplicitPolicy, AckWait: config.AckWait,
			MaxDeliver: -1, MaxAckPending: maxAckPending, MaxWaiting: 8192,
		})
	}
	p, err := c.newPuller(StreamJobs, config.Slots, consumers, limits)
	if err != nil {
		return nil, err
	}
	return &JobConsumer{c: c, p: p}, nil
}

// Next waits for a job. Its slot is taken until JobDelivery.Done. It returns
// ctx.Err() when ctx ends and ErrClosed after Stop. Goroutines may share it.
func (j *JobConsumer) Next(ctx context.Context) (*JobDelivery, error) {
	for {
		m, err := j.p.take(ctx)
		if err != nil {
			return nil, err
		}
		d, err := j.open(ctx, m)
		if err == nil {
			return d, nil
		}
		j.p.release(m)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
	}
}

// Stop takes no more jobs and hands back those that were not taken by Next. Jobs
// that are held are not touched. A second call is harmless.
func (j *JobConsumer) Stop() { j.p.close() }

// Held is the number of slots that are taken.
func (j *JobConsumer) Held() int {
	j.p.mu.Lock()
	defer j.p.mu.Unlock()
	return j.p.held
}

// open reads a job. What it cannot read it takes out of the stream, or hands
// back when another worker, or a later moment, may do better.
func (j *JobConsumer) open(ctx context.Context, m *nats.Msg) (*JobDelivery, error) {
	meta, _ := parseAck(m.Reply)
	d := &JobDelivery{
		c: j.c, p: j.p, m: m, ack: m.Reply, deliveries: meta.deliveries, published: time.Unix(0, meta.published),
		blob: blobOf(m.Header),
	}
	data, err := j.c.unpack(ctx, m.Header, m.Data)
	switch {
	case errors.Is(err, ErrBlobNotFound), errors.Is(err, ErrTooLarge):
		// The coordinator publishes it again, with its payload, if it still counts.
		j.c.log.Warn("job has no payload, removed", zap.String("subject", m.Subject), zap.Error(err))
		_ = d.Term()
		return nil, err
	case err != nil && ctx.Err() != nil:
		_ = d.Nak(0)
		return nil, err
	case err != nil:
		j.c.log.Warn("job's payload cannot be read now, handed back", zap.String("subject", m.Subject), zap.Error(err))
		_ = d.Nak(time.Second)
		return nil, err
	}
	if err := decode(data, &d.job); err != nil {
		version := versionOf(data)
		if version <= Version {
			j.c.log.Error("job cannot be read, removed", zap.String("subject", m.Subject), zap.Error(err))
			_ = d.Term()
			return nil, err
		}
		d.job.Version = version
	}
	if err := known("job", d.job.Version); err != nil {
		j.c.log.Warn("job is of a newer version, handed back", zap.String("subject", m.Subject), zap.Error(err))
		_ = d.Nak(newerRest)
		return nil, err
	}
	j.c.stats.deliveries.Add(1)
	if d.deliveries > 1 {
		j.c.stats.redeliveries.Add(1)
	}
	return d, nil
}

// JobDelivery is one job given to this worker.
type JobDelivery struct {
	c          *Conn
	p          *puller
	m          *nats.Msg
	job        Job
	ack        string
	blob       string
	deliveries int
	published  time.Time
	done       sync.Once
}

// Job is what to run.
func (d *JobDelivery) Job() *Job { return &d.job }

// Deliveries counts how often the job was given to a worker, from 1.
func (d *JobDelivery) Deliveries() int { return d.deliveries }

// Published is when the job's message entered the stream, by the server's clock.
func (d *JobDelivery) Published() time.Time { return d.published }

// Ack is what Result.Ack must be: the subject that acknowledges the message and,
// for a job whose payload is in the object store, a space and its digest.
func (d *JobDelivery) Ack() string {
	if d.blob == "" {
		return d.ack
	}
	return d.ack + " " + d.blob
}

// InProgress keeps the job from being given to another worker for one more AckWait.
func (d *JobDelivery) InProgress() error { return d.c.signal(d.ack, signalInProgress) }

// Nak gives the job back, to be given out again after the delay.
func (d *JobDelivery) Nak(delay time.Duration) error { return d.c.Nak(d.ack, delay) }

// Term removes the job's message from the stream: it was answered or cancelled.
func (d *JobDelivery) Term() error { return d.c.Term(d.Ack()) }

// Done frees the job's slot. A second call is harmless.
func (d *JobDelivery) Done() { d.done.Do(func() { d.p.release(d.m) }) }
