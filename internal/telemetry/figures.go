package telemetry

import (
	"context"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/queue"
)

// CountEvery is how often Redis and NATS are asked for counts at most, however often the metrics are
// read.
const CountEvery = 15 * time.Second

// countTimeout bounds that, so that a scrape ends when Redis is away.
const countTimeout = 2 * time.Second

// CoordinatorFigures are what a coordinator is asked when its metrics are read. Functions that
// are nil are not asked.
type CoordinatorFigures struct {
	// Pools are the jobs that the coordinator knows.
	Pools func() map[string]queue.PoolNotice
	// Lanes tells how many events wait, and for how long the first of those that are handled has.
	Lanes func() (queued int, lag time.Duration)
	// Counts are the executions by status, Stuck those without progress, Approvals the open
	// questions and DeadLetters what is kept in the stream.
	Counts                        func(context.Context) (map[engine.Status]int64, error)
	Stuck, Approvals, DeadLetters func(context.Context) (int, error)
	// RedisRoundTrips since the start.
	RedisRoundTrips func() uint64
	NATS            func() queue.Stats
}

// Watch sets what is asked. It is called once, before the metrics are read.
func (c *Coordinator) Watch(f CoordinatorFigures) {
	if c != nil {
		c.registry.MustRegister(&coordinatorCollector{f: f, pools: c.pools})
	}
}

var (
	descUnfinished  = newAsked("gauge", "reprise_executions_unfinished", "Executions that are stored and not over, by status (new, running, waiting). All coordinators tell the same number.", "status")
	descStuck       = newAsked("gauge", "reprise_executions_stuck", "Running executions that make no progress for REPRISE_STUCK_AFTER. All coordinators tell the same number.")
	descApprovals   = newAsked("gauge", "reprise_approvals_open", "Questions that wait for a person's decision. All coordinators tell the same number.")
	descDeadKept    = newAsked("gauge", "reprise_dead_letters_kept", "Dead letters in the stream REPRISE_DEAD. All coordinators tell the same number.")
	descHeld        = newAsked("gauge", "reprise_jobs_held", "Jobs that the coordinator holds back, by pool and cause: room (workers are busy) or rate (a rate limit).", "pool", "cause")
	descOutstanding = newAsked("gauge", "reprise_jobs_outstanding", "Jobs that were handed to NATS and are not answered.", "pool")
	descOldest      = newAsked("gauge", "reprise_oldest_job_age_seconds", "Age of the oldest job that waits or is not answered; 0 when there is none.", "pool")
	descQueued      = newAsked("gauge", "reprise_events_queued", "Events that wait for the coordinator's lanes.")
	descLag         = newAsked("gauge", "reprise_lane_lag_seconds", "How long ago the event came that the slowest lane handles now; 0 when all rest.")
	descRoundTrips  = newAsked("counter", "reprise_redis_round_trips_total", "Waits for Redis: single commands and pipelines.")
	descMessages    = newAsked("counter", "reprise_nats_messages_total", "Messages on the connection to NATS, by direction (in, out).", "direction")
	descBytes       = newAsked("counter", "reprise_nats_bytes_total", "Bytes on the connection to NATS, by direction (in, out).", "direction")
	descReconnects  = newAsked("counter", "reprise_nats_reconnects_total", "Times that the connection to NATS was lost and made again.")
)

// askedOfCoordinators are what coordinatorCollector collects.
var askedOfCoordinators = []asked{
	descUnfinished, descStuck, descApprovals, descDeadKept, descHeld, descOutstanding, descOldest, descQueued, descLag,
	descRoundTrips, descMessages, descBytes, descReconnects,
}

// coordinatorCollector is a prometheus.Collector.
type coordinatorCollector struct {
	f     CoordinatorFigures
	pools bounded

	mu      sync.Mutex // guards counts; held while they are asked, so that one scrape asks for all
	counted time.Time
	counts  []prometheus.Metric
}

// Describe implements prometheus.Collector.
func (*coordinatorCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, a := range askedOfCoordinators {
		ch <- a.Desc
	}
}

// Collect implements prometheus.Collector.
func (c *coordinatorCollector) Collect(ch chan<- prometheus.Metric) {
	if c.f.Pools != nil {
		c.collectPools(ch)
	}
	if c.f.Lanes != nil {
		queued, lag := c.f.Lanes()
		ch <- descQueued.value(float64(queued))
		ch <- descLag.value(lag.Seconds())
	}
	if c.f.RedisRoundTrips != nil {
		ch <- descRoundTrips.value(float64(c.f.RedisRoundTrips()))
	}
	if c.f.NATS != nil {
		collectNATS(ch, c.f.NATS())
	}
	for _, m := range c.lately() {
		ch <- m
	}
}

func (c *coordinatorCollector) collectPools(ch chan<- prometheus.Metric) {
	sums, now := map[string]queue.PoolNotice{}, time.Now().UnixMilli()
	for name, p := range c.f.Pools() {
		name = c.pools.value(name)
		sum := sums[name]
		sum.Waiting, sum.Limited, sum.Published = sum.Waiting+p.Waiting, sum.Limited+p.Limited, sum.Published+p.Published
		if p.Oldest > 0 {
			sum.Oldest = max(sum.Oldest, now-p.Oldest) // its age
		}
		sums[name] = sum
	}
	if _, ok := sums[queue.DefaultPool]; !ok {
		sums[queue.DefaultPool] = queue.PoolNotice{}
	}
	for name, p := range sums {
		ch <- descHeld.value(float64(p.Waiting), name, "room")
		ch <- descHeld.value(float64(p.Limited), name, "rate")
		ch <- descOutstanding.value(float64(p.Published), name)
		ch <- descOldest.value(float64(p.Oldest)/1000, name)
	}
}

func collectNATS(ch chan<- prometheus.Metric, s queue.Stats) {
	ch <- descMessages.value(float64(s.InMsgs), "in")
	ch <- descMessages.value(float64(s.OutMsgs), "out")
	ch <- descBytes.value(float64(s.InBytes), "in")
	ch <- descBytes.value(float64(s.OutBytes), "out")
	ch <- descReconnects.value(float64(s.Reconnects))
}

// lately are the counts of the servers, at most CountEvery old. What cannot be had is left out:
// a number that is no longer true would hide that.
func (c *coordinatorCollector) lately() []prometheus.Metric {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.counted.IsZero() && time.Since(c.counted) < CountEvery {
		return c.counts
	}
	ctx, cancel := context.WithTimeout(context.Background(), countTimeout)
	defer cancel()
	c.counts = nil
	if c.f.Counts != nil {
		if counts, err := c.f.Counts(ctx); err == nil {
			for _, status := range []engine.Status{engine.StatusNew, engine.StatusRunning, engine.StatusWaiting} {
				c.counts = append(c.counts, descUnfinished.value(float64(counts[status]), string(status)))
			}
		}
	}
	for _, one := range []struct {
		metric asked
		ask    func(context.Context) (int, error)
	}{{descStuck, c.f.Stuck}, {descApprovals, c.f.Approvals}, {descDeadKept, c.f.DeadLetters}} {
		if one.ask == nil {
			continue
		}
		if n, err := one.ask(ctx); err == nil {
			c.counts = append(c.counts, one.metric.value(float64(n)))
		}
	}
	c.counted = time.Now()
	return c.counts
}
