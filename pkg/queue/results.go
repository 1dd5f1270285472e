package queue

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"go.uber.org/zap"
)

// directTimeout is how long a result waits for the coordinator that dispatched
// its job before any other one is asked; anyTimeout is how long that one may take.
// A coordinator that is paused keeps its subscriptions, so the server goes on
// choosing it.
const (
	directTimeout = 3 * time.Second
	anyTimeout    = 2 * time.Second
)

// ServeResults takes the results that are sent to this coordinator, to any, and to
// all of them. handler is called for one at a time and must not block;
// size is the length of the message's payload in bytes. reply answers the
// worker and may be called later, from any goroutine, once. stop takes no more
// and returns when those that have arrived were handed over.
func (c *Conn) ServeResults(coordinator string, handler func(r *Result, size int, reply func(Reply))) (stop func(), err error) {
	if err := ValidToken("coordinator id", coordinator); err != nil {
		return nil, err
	}
	var one sync.Mutex
	hand := func(m *nats.Msg, data []byte) {
		r := &Result{}
		if err := decode(data, r); err != nil {
			if newer := known("result", versionOf(data)); newer != nil {
				c.reply(m, Reply{Verdict: VerdictError, Error: newer.Error()})
				return
			}
			c.log.Warn("result cannot be read", zap.Error(err))
			c.reply(m, Reply{Verdict: VerdictDrop, Error: fmt.Sprintf("result cannot be read: %v", err)})
			return
		}
		c.stats.resultsTaken.Add(1)
		one.Lock()
		defer one.Unlock()
		handler(r, len(data), func(reply Reply) {
			if reply.Verdict != VerdictError {
				c.deleteBlob(blobOf(m.Header))
			}
			c.reply(m, reply)
		})
	}
	receive := func(m *nats.Msg) {
		if blobOf(m.Header) == "" {
			hand(m, m.Data)
			return
		}
		c.inBackground(func(ctx context.Context) {
			data, err := c.unpack(ctx, m.Header, m.Data)
			if err != nil {
				c.reply(m, Reply{Verdict: VerdictError, Error: err.Error()})
				return
			}
			hand(m, data)
		})
	}
	stopOwn, err := c.subscribe(subjectResult+"."+coordinator, "", receive)
	if err != nil {
		return nil, err
	}
	stopAny, err := c.subscribe(subjectResult, queueGroup, receive)
	if err != nil {
		stopOwn()
		return nil, err
	}
	stopAll, err := c.subscribe(subjectResults, "", receive)
	if err != nil {
		stopAny()
		stopOwn()
		return nil, err
	}
	return func() { stopAll(); stopAny(); stopOwn() }, nil
}

func (c *Conn) reply(m *nats.Msg, reply Reply) {
	data, err := encode(reply)
	if err == nil {
		err = m.Respond(data)
	}
	if err != nil {
		c.log.Debug("answer was not sent", zap.String("subject", m.Subject), zap.Error(err))
	}
}

// SendResult sends a result to the coordinator that dispatched its job and, when
// that is gone or does not answer, to any other, and at last to all: a result that is
// committed by several counts once. The reply says whether it
// was committed; the error is ErrNoCoordinator or ErrUnavailable when nobody
// answered, and the result has to be sent again.
func (c *Conn) SendResult(ctx context.Context, coordinator string, r *Result) (Reply, error) {
	data, err := encode(r)
	if err != nil {
		return Reply{}, fmt.Errorf("encode result of job %s: %w", r.Job, err)
	}
	m := &nats.Msg{Subject: subjectResult}
	if err := c.pack(ctx, m, data); err != nil {
		return Reply{}, fmt.Errorf("send result of job %s: %w", r.Job, err)
	}
	c.stats.resultsSent.Add(1)
	c.stats.resultBytes.Add(uint64(len(data)))
	if ValidToken("coordinator", coordinator) == nil {
		m.Subject = subjectResult + "." + coordinator
		reply, err := requestFor[Reply](ctx, c, m, directTimeout)
		if err == nil || ctx.Err() != nil || (!errors.Is(err, ErrNoCoordinator) && !errors.Is(err, ErrUnavailable)) {
			return reply, err
		}
		m.Subject, m.Reply = subjectResult, ""
	}
	reply, err := requestFor[Reply](ctx, c, m, anyTimeout)
	if !errors.Is(err, ErrUnavailable) || ctx.Err() != nil {
		return reply, err
	}
	m.Subject, m.Reply = subjectResults, ""
	return requestFor[Reply](ctx, c, m, c.config.RequestTimeout)
}

// requestFor is a request that waits for a part of ctx's time only, and no longer than any
// request does.
func requestFor[T any](ctx context.Context, c *Conn, m *nats.Msg, wait time.Duration) (T, error) {
	ctx, cancel := context.WithTimeout(ctx, min(wait, c.config.RequestTimeout))
	defer cancel()
	return request[T](ctx, c, m)
}

// request sends a message and decodes the answer.
func request[T any](ctx context.Context, c *Conn, m *nats.Msg) (answer T, err error) {
	response, err := c.nc.RequestMsgWithContext(ctx, m)
	switch {
	case errors.Is(err, nats.ErrNoResponders):
		return answer, ErrNoCoordinator
	case err != nil:
		return answer, classify(err)
	}
	data, err := c.unpack(ctx, response.Header, response.Data)
	if err != nil {
		return answer, err
	}
	// Nobody else has the digest of an answer.
	c.deleteBlob(blobOf(response.Header))
	if response.Header != nil && response.Header.Get(headerErrorCode) != "" {
		problem := &Problem{}
		if json.Unmarshal(data, problem) != nil || problem.Code == "" {
			problem = &Problem{Code: CodeInternal, Message: response.Header.Get(headerError)}
		}
		return answer, problem
	}
	if len(data) == 0 {
		return answer, nil
	}
	if err := decode(data, &answer); err != nil {
		return answer, fmt.Errorf("answer on %s: %w", m.Subject, err)
	}
	return answer, nil
}

// ask encodes a request and sends it.
func ask[T any](ctx context.Context, c *Conn, subject string, question any) (answer T, err error) {
	data, err := encode(question)
	if err != nil {
		return answer, fmt.Errorf("encode request on %s: %w", subject, err)
	}
	ctx, cancel := c.bounded(ctx)
	defer cancel()
	m := &nats.Msg{Subject: subject}
	if err := c.pack(ctx, m, data); err != nil {
		return answer, err
	}
	return request[T](ctx, c, m)
}

// askAny asks any coordinator, and another one when it keeps silent for
// anyTimeout, as long as ctx lasts. What is asked must bear to be asked twice.
func askAny[T any](ctx context.Context, c *Conn, subject string, question any) (answer T, err error) {
	ctx, cancel := c.bounded(ctx)
	defer cancel()
	for {
		try, cancel := context.WithTimeout(ctx, anyTimeout)
		answer, err = ask[T](try, c, subject, question)
		silent := try.Err() != nil
		cancel()
		if err == nil || !silent || ctx.Err() != nil {
			return answer, err
		}
	}
}
