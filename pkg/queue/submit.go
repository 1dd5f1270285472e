package queue

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/zap"
)

// submitSlots bounds the durable submissions a coordinator works on at a time.
const submitSlots = 256

// submitWait is how long a coordinator may take to store a submission before
// another one gets it too: storing it twice is storing it once.
const submitWait = 6 * time.Second

// newerRest is how long a message rests that only a newer program can read.
const newerRest = 5 * time.Second

// SubmitDurable stores a submission in StreamSubmit and returns when it is there:
// a coordinator takes it now or later. Its ID is required and makes it
// idempotent. What is wrong with it is not told here: it becomes a dead letter.
func (c *Conn) SubmitDurable(ctx context.Context, s *Submission) error {
	if s.ID == "" {
		return errors.New("a durable submission needs an id of the client's choice, so that it can be repeated safely")
	}
	if err := ValidToken("execution id", string(s.ID)); err != nil {
		return err
	}
	sent := *s
	sent.Version = Version
	if err := c.store(ctx, subjectSubmission, sent, jetstream.WithMsgID(string(s.ID))); err != nil {
		return fmt.Errorf("submit execution %s: %w", s.ID, err)
	}
	return nil
}

// SubmitMsg is a durable submission given to this coordinator. It is given to
// another one when none of Ack, Term and Nak is called within submitWait.
type SubmitMsg struct {
	Submission Submission

	c       *Conn
	m       *nats.Msg
	data    []byte
	release func()
}

// Size is the length of the submission in bytes.
func (s *SubmitMsg) Size() int { return len(s.data) }

// Ack says that the execution is stored.
func (s *SubmitMsg) Ack() {
	s.answer(signalAck)
	s.c.deleteBlob(blobOf(s.m.Header))
}

// Nak has the submission given out again after a delay.
func (s *SubmitMsg) Nak(delay time.Duration) {
	s.answer(fmt.Appendf(nil, `-NAK {"delay":%d}`, max(0, delay).Nanoseconds()))
}

// Term refuses the submission for good: it becomes a dead letter.
func (s *SubmitMsg) Term(problem *Problem) {
	letter := DeadLetter{
		Version: Version, Execution: s.Submission.ID, At: time.Now().UnixMilli(),
		Error: problem.Message, Problem: problem, Submission: s.data,
	}
	if ValidToken("execution id", string(letter.Execution)) != nil {
		letter.Execution = "unknown"
	}
	if !json.Valid(s.data) {
		letter.Submission = nil
	}
	s.c.inBackground(func(ctx context.Context) {
		if err := s.c.PublishDead(ctx, &letter); err != nil {
			s.c.log.Warn("refused submission was not kept", zap.String("execution_id", string(letter.Execution)), zap.Error(err))
			s.Nak(5 * time.Second)
			return
		}
		s.answer(signalTerm)
		s.c.deleteBlob(blobOf(s.m.Header))
	})
}

func (s *SubmitMsg) answer(signal []byte) {
	if err := s.c.nc.Publish(s.m.Reply, signal); err != nil {
		s.c.log.Debug("submission was not answered", zap.Error(err))
	}
	s.release()
}

// ConsumeSubmissions calls handler with durable submissions, one after the
// other; it may answer them later. stop takes no more and hands back what was
// not handled.
func (c *Conn) ConsumeSubmissions(_ context.Context, handler func(*SubmitMsg)) (stop func(), err error) {
	p, err := c.newPuller(StreamSubmit, submitSlots, []jetstream.ConsumerConfig{{
		Durable: consumerSubmit, Description: "coordinators", FilterSubject: subjectSubmission,
		AckPolicy: jetstream.AckExplicitPolicy, AckWait: submitWait,
		MaxDeliver: -1, MaxAckPending: maxAckPending, MaxWaiting: 8192,
	}}, nil)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	var loop sync.WaitGroup
	loop.Go(func() {
		for {
			m, err := p.take(ctx)
			if err != nil {
				return
			}
			s := &SubmitMsg{c: c, m: m, release: sync.OnceFunc(func() { p.release(m) })}
			if s.data, err = c.unpack(ctx, m.Header, m.Data); err != nil {
				if errors.Is(err, ErrBlobNotFound) || errors.Is(err, ErrTooLarge) {
					s.Term(&Problem{Code: CodeTooLarge, Message: err.Error()})
				} else {
					s.Nak(time.Second)
				}
				continue
			}
			if err := known("submission", versionOf(s.data)); err != nil {
				c.log.Warn("submission is of a newer version, handed back", zap.Error(err))
				s.Nak(newerRest)
				continue
			}
			if err := json.Unmarshal(s.data, &s.Submission); err != nil {
				s.Term(&Problem{Code: CodeBadRequest, Message: fmt.Sprintf("submission cannot be read: %v", err)})
				continue
			}
			s.Submission.tracedBy(m.Header)
			handler(s)
		}
	})
	return func() {
		cancel()
		loop.Wait()
		p.close()
	}, nil
}
