package queue

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/zap"

	"github.com/reprise-engine/reprise/pkg/engine"
)

// Publishing is a group of jobs on their way into the stream.
type Publishing struct {
	c     *Conn
	ctx   context.Context
	items []publication
}

// publication is one of them.
type publication struct {
	msg    *nats.Msg
	future jetstream.PubAckFuture
	err    error
	// sent is closed when the others are set, for a job whose payload is stored
	// first; nil when they were set at once.
	sent chan struct{}
}

// PublishJobs stores jobs in the stream and waits until the server has them.
// The errors are by job: nil, ErrQueued for one that is queued or running
// already, or what went wrong. Publishing a job again is always safe.
func (c *Conn) PublishJobs(ctx context.Context, jobs []*Job) []error {
	return c.StartPublish(ctx, jobs).Wait()
}

// StartPublish sends jobs and does not wait until the server has stored them,
// so that a caller can go on; Wait tells. ctx bounds both.
func (c *Conn) StartPublish(ctx context.Context, jobs []*Job) *Publishing {
	p := &Publishing{c: c, ctx: ctx, items: make([]publication, len(jobs))}
	for i, job := range jobs {
		item := &p.items[i]
		subject, err := jobSubject(job.Pool, job.ID)
		if err != nil {
			item.err = err
			continue
		}
		data, err := encodeTrusted(job)
		if err != nil {
			item.err = fmt.Errorf("encode job %s: %w", job.ID, err)
			continue
		}
		c.stats.jobBytes.Add(uint64(len(data)))
		item.msg = &nats.Msg{Subject: subject}
		if len(data) <= c.threshold() {
			item.msg.Data = data
			item.send(ctx, c)
			continue
		}
		item.sent = make(chan struct{})
		go func() {
			defer close(item.sent)
			if item.err = c.pack(ctx, item.msg, data); item.err == nil {
				item.send(ctx, c)
			}
		}()
	}
	return p
}

func (i *publication) send(ctx context.Context, c *Conn) {
	for {
		if c.nc.IsClosed() {
			i.err = ErrClosed
			return
		}
		i.msg.Reply = ""
		i.future, i.err = c.js.PublishMsgAsync(i.msg)
		// Too many acknowledgements are awaited: the call has waited a little for
		// room, wait on.
		if !errors.Is(i.err, jetstream.ErrTooManyStalledMsgs) || ctx.Err() != nil {
			return
		}
	}
}

// Wait returns the outcome of each job, in order, as PublishJobs does. A stream
// that is missing is created again when this process has created it before.
func (p *Publishing) Wait() []error {
	errs := make([]error, len(p.items))
	missing := false
	for i := range p.items {
		errs[i] = p.items[i].wait(p.ctx)
		missing = missing || errors.Is(errs[i], ErrNoStream)
	}
	if missing {
		p.again(errs)
	}
	for _, err := range errs {
		switch {
		case err == nil:
			p.c.stats.published.Add(1)
		case errors.Is(err, ErrQueued):
			p.c.stats.refused.Add(1)
		default:
			p.c.stats.publishErrors.Add(1)
		}
	}
	return errs
}

func (p *Publishing) again(errs []error) {
	restored, err := p.c.restoreStreams(p.ctx)
	if err != nil {
		p.c.log.Warn("streams cannot be created", zap.Error(err))
	}
	if !restored || err != nil {
		return
	}
	for i := range errs {
		if errors.Is(errs[i], ErrNoStream) && p.items[i].msg != nil {
			p.items[i].send(p.ctx, p.c)
		}
	}
	for i := range errs {
		if errors.Is(errs[i], ErrNoStream) {
			errs[i] = p.items[i].wait(p.ctx)
		}
	}
}

func (i *publication) wait(ctx context.Context) error {
	if i.sent != nil {
		<-i.sent
	}
	if i.err != nil || i.future == nil {
		return classify(i.err)
	}
	select {
	case <-i.future.Ok():
		return nil
	case err := <-i.future.Err():
		return classify(err)
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", ErrUnavailable, ctx.Err())
	}
}

// Withdraw removes jobs from the stream, queued or running, so that no worker
// gets them any more. Jobs that are not there are no error. It costs one request
// per job: for cancels.
func (c *Conn) Withdraw(ctx context.Context, pool string, jobs ...engine.JobID) error {
	ctx, cancel := c.bounded(ctx)
	defer cancel()
	stream, err := c.js.Stream(ctx, StreamJobs)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("withdraw jobs: %w", classify(err))
	}
	for _, id := range jobs {
		subject, err := jobSubject(pool, id)
		if err != nil {
			return err
		}
		if err := stream.Purge(ctx, jetstream.WithPurgeSubject(subject)); err != nil {
			return fmt.Errorf("withdraw job %s: %w", id, classify(err))
		}
	}
	return nil
}

// The signals of JetStream.
var (
	signalAck        = []byte("+ACK")
	signalInProgress = []byte("+WPI")
	signalTerm       = []byte("+TERM")
	signalNak        = []byte("-NAK")
)

// Ack acknowledges a job's message on its worker's behalf. ack is Result.Ack. It
// does not wait: when the signal is lost the job is delivered again. A payload
// of the job in the object store is deleted with it.
func (c *Conn) Ack(ack string) error {
	subject, blob, _ := strings.Cut(ack, " ")
	if err := c.signal(subject, signalAck); err != nil {
		return err
	}
	c.stats.acks.Add(1)
	c.deleteBlob(blob)
	return nil
}

// Nak has a job delivered again, to any worker, after a delay.
func (c *Conn) Nak(ack string, delay time.Duration) error {
	subject, _, _ := strings.Cut(ack, " ")
	if delay <= 0 {
		return c.signal(subject, signalNak)
	}
	return c.signal(subject, fmt.Appendf(nil, `-NAK {"delay":%d}`, delay.Nanoseconds()))
}

// Term removes a job from the stream although it has no result.
func (c *Conn) Term(ack string) error {
	subject, blob, _ := strings.Cut(ack, " ")
	if err := c.signal(subject, signalTerm); err != nil {
		return err
	}
	c.deleteBlob(blob)
	return nil
}

func (c *Conn) signal(subject string, signal []byte) error {
	if !validAck(subject) {
		return fmt.Errorf("%.200q is not the ack subject of a message in %s", subject, StreamJobs)
	}
	return classify(c.nc.Publish(subject, signal))
}
