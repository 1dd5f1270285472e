package queue

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/reprise-engine/reprise/pkg/engine"
)

// A request to all workers, whose body is a job id: only the one that holds the
// job answers.
const subjectHolder = "reprise.holder"

// holderWait is how long the worker that holds a job may take to say so.
const holderWait = 300 * time.Millisecond

// ServeHolder answers other workers that ask who holds a job, until stop.
func (c *Conn) ServeHolder(holds func(engine.JobID) bool) (stop func(), err error) {
	return c.subscribe(subjectHolder, "", func(m *nats.Msg) {
		if holds(engine.JobID(m.Data)) {
			_ = c.nc.Publish(m.Reply, nil) // lost: the job is asked about again
		}
	})
}

// AskHolder asks all workers whether one of them holds a job. It answers no when
// none says so in time; self is not asked when it does not serve.
func (c *Conn) AskHolder(ctx context.Context, job engine.JobID) (held bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, holderWait)
	defer cancel()
	_, err = c.nc.RequestWithContext(ctx, subjectHolder, []byte(job))
	switch {
	case err == nil:
		return true, nil
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, nats.ErrTimeout), errors.Is(err, nats.ErrNoResponders):
		return false, nil
	}
	return false, fmt.Errorf("ask who holds job %s: %w", job, classify(err))
}

// ConnectedAt is when the present connection to the server was made, or a consumer of
// jobs was created, whichever came last, and whether there was one before. What the
// server knew of deliveries before may be lost, when it was killed or the consumer deleted.
func (c *Conn) ConnectedAt() (at time.Time, again bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	at, again = c.connectedAt, c.stats.reconnects.Load() > 0 || c.recreated
	if c.consumersSince.After(at) {
		at = c.consumersSince
	}
	return at, again
}

// forgotten notes that a consumer of jobs was created: it knows of no delivery before.
func (c *Conn) forgotten(created time.Time, again bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if created.After(c.consumersSince) {
		c.consumersSince = created
	}
	c.recreated = c.recreated || again
}
