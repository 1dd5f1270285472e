package queue

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go"
	"go.uber.org/zap"
)

// ServeRedelivery answers workers that ask about a job that was delivered
// before. handler must not block; reply may be called later, once.
func (c *Conn) ServeRedelivery(handler func(q *Redelivery, reply func(Reply))) (stop func(), err error) {
	return c.subscribe(subjectRedelivery, queueGroup, func(m *nats.Msg) {
		q := &Redelivery{}
		err := known("question", versionOf(m.Data))
		if err == nil {
			err = json.Unmarshal(m.Data, q)
		}
		if err != nil {
			c.reply(m, Reply{Verdict: VerdictError, Error: fmt.Sprintf("question cannot be read: %v", err)})
			return
		}
		handler(q, func(reply Reply) { c.reply(m, reply) })
	})
}

// AskRedelivery asks a coordinator what to do with a job that was delivered before.
func (c *Conn) AskRedelivery(ctx context.Context, q *Redelivery) (Reply, error) {
	return askAny[Reply](ctx, c, subjectRedelivery, q)
}

// MemoryQuery asks for the last N messages of a conversation; N <= 0 is all.
// A request to reprise.memory.
type MemoryQuery struct {
	Version int    `json:"v"`
	Session string `json:"session"`
	N       int    `json:"n,omitempty"`
}

// MemoryAnswer has the messages, oldest first, or says why not.
type MemoryAnswer struct {
	Messages []json.RawMessage `json:"messages"`
	Error    string            `json:"error,omitempty"`
}

// maxQuestions bounds the conversations that are read at the same time.
const maxQuestions = 64

// ServeMemory answers workers that ask for a conversation. load may block.
func (c *Conn) ServeMemory(load func(ctx context.Context, session string, n int) ([]json.RawMessage, error)) (stop func(), err error) {
	room := make(chan struct{}, maxQuestions)
	return c.subscribe(subjectMemory, queueGroup, func(m *nats.Msg) {
		room <- struct{}{}
		c.inBackground(func(ctx context.Context) {
			defer func() { <-room }()
			var q MemoryQuery
			answer := MemoryAnswer{}
			err := known("question", versionOf(m.Data))
			if err == nil {
				err = json.Unmarshal(m.Data, &q)
			}
			if err == nil {
				answer.Messages, err = load(ctx, q.Session, q.N)
			}
			if err != nil {
				answer.Error = err.Error()
			}
			c.respond(ctx, m.Reply, answer)
		})
	})
}

// LoadMemory returns the last n messages of a conversation, oldest first; n <= 0
// means all.
func (c *Conn) LoadMemory(ctx context.Context, session string, n int) ([]json.RawMessage, error) {
	answer, err := askAny[MemoryAnswer](ctx, c, subjectMemory, MemoryQuery{Version: Version, Session: session, N: n})
	if err == nil && answer.Error != "" {
		err = errors.New(answer.Error)
	}
	if err != nil {
		return nil, fmt.Errorf("load conversation: %w", err)
	}
	return answer.Messages, nil
}

// respond answers a request with v, through the object store when it is large.
func (c *Conn) respond(ctx context.Context, to string, v any) {
	m := &nats.Msg{Subject: to}
	data, err := encode(v)
	if err == nil {
		err = c.pack(ctx, m, data)
	}
	if err != nil {
		c.fail(to, ProblemOf(err))
		return
	}
	if err := c.nc.PublishMsg(m); err != nil {
		c.log.Debug("answer was not sent", zap.Error(err))
	}
}

// The headers of an error answer, as the micro service protocol has them.
const (
	headerError     = "Nats-Service-Error"
	headerErrorCode = "Nats-Service-Error-Code"
)
