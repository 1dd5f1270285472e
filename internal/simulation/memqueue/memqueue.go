// Package memqueue is a stand-in for the streams that pkg/queue keeps in NATS, in
// the memory of one process, for simulations: a work queue with one message per
// subject, deliveries with an ack wait, and the four signals, as JetStream has them.
//
// It has no clock and no goroutines: time comes in with every call, and who asks for
// messages is told what there is now. What travels between processes, and what gets
// lost on the way, is the business of whoever uses it.
package memqueue

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/reprise-engine/reprise/pkg/queue"
)

// Stream is a work queue: a message stays until it is acknowledged, and while it is
// there another one on its subject is refused.
type Stream struct {
	name     string
	ackWait  time.Duration
	sequence uint64
	messages []*message // in the order in which they entered
	subjects map[string]*message
}

// message is one in the stream.
type message struct {
	sequence   uint64
	subject    string
	group      string
	data       []byte
	published  time.Time
	deliveries int
	// given: it was given to somebody. It may be given out from due on: when that one's
	// time is up, or the delay is over after which it was given back.
	given bool
	due   time.Time
}

// Delivery is a message given to somebody.
type Delivery struct {
	Data       []byte
	Deliveries int // from 1
	Published  time.Time
	// Ack names the delivery in the signals.
	Ack string
}

// NewStream returns an empty stream whose messages are given out again when they are
// neither acknowledged nor kept alive for ackWait.
func NewStream(name string, ackWait time.Duration) *Stream {
	return &Stream{name: name, ackWait: ackWait, subjects: map[string]*message{}}
}

// Publish adds a message, or returns queue.ErrQueued when there is one on its
// subject. group is the consumer that it is for, a pool's name. data is kept.
func (s *Stream) Publish(now time.Time, group, subject string, data []byte) error {
	if s.subjects[subject] != nil {
		return queue.ErrQueued
	}
	s.sequence++
	m := &message{sequence: s.sequence, group: group, subject: subject, data: data, published: now, due: now}
	s.messages = append(s.messages, m)
	s.subjects[subject] = m
	return nil
}

// Take gives out the next message of one of the groups, if one may be given out now.
// Those that were given out before come first, as in JetStream.
func (s *Stream) Take(now time.Time, groups ...string) (Delivery, bool) {
	var next *message
	for _, m := range s.messages {
		if !m.free(now) || !slices.Contains(groups, m.group) {
			continue
		}
		if m.deliveries > 0 {
			next = m
			break
		}
		if next == nil {
			next = m
		}
	}
	if next == nil {
		return Delivery{}, false
	}
	next.deliveries++
	next.given, next.due = true, now.Add(s.ackWait)
	return Delivery{Data: next.data, Deliveries: next.deliveries, Published: next.published, Ack: s.ack(next)}, true
}

// free reports whether a message may be given out: nobody has it, or the time of
// whoever has it is up.
func (m *message) free(now time.Time) bool { return !m.due.After(now) }

// ack is a subject in the server's form.
func (s *Stream) ack(m *message) string {
	return fmt.Sprintf("$JS.ACK.%s.%s.%d.%d.%d.%d.0", s.name, m.group, m.deliveries, m.sequence, m.sequence, m.published.UnixNano())
}

// find is the message that an ack subject names; nil when it is gone. As in the
// server, whose delivery it was does not matter.
func (s *Stream) find(ack string) *message {
	tokens := strings.Split(ack, ".")
	if len(tokens) != 9 || tokens[2] != s.name {
		return nil
	}
	sequence, err := strconv.ParseUint(tokens[5], 10, 64)
	if err != nil {
		return nil
	}
	i, ok := slices.BinarySearchFunc(s.messages, sequence, func(m *message, n uint64) int {
		return int(min(max(int64(m.sequence)-int64(n), -1), 1))
	})
	if !ok {
		return nil
	}
	return s.messages[i]
}

// Ack removes a message: it is done. So does Term in JetStream.
func (s *Stream) Ack(ack string) {
	if m := s.find(ack); m != nil {
		s.remove(m)
	}
}

// Nak has a message given out again after a delay.
func (s *Stream) Nak(now time.Time, ack string, delay time.Duration) {
	if m := s.find(ack); m != nil && m.given && !m.free(now) {
		m.due = now.Add(max(delay, 0))
	}
}

// InProgress gives whoever has a message one more ack wait, also after a Nak whose delay
// is not over.
func (s *Stream) InProgress(now time.Time, ack string) {
	if m := s.find(ack); m != nil && m.given && !m.free(now) {
		m.due = now.Add(s.ackWait)
	}
}

// Purge removes the message on a subject, if there is one.
func (s *Stream) Purge(subject string) {
	if m := s.subjects[subject]; m != nil {
		s.remove(m)
	}
}

// Wipe removes everything, as when the stream was deleted and created again. Messages are
// numbered anew, so that an ack from before may name one of them.
func (s *Stream) Wipe() {
	s.messages, s.sequence = nil, 0
	clear(s.subjects)
}

// Restart forgets who has what, as a server does that was killed.
func (s *Stream) Restart(now time.Time) {
	for _, m := range s.messages {
		m.given, m.due, m.deliveries = false, now, 0
	}
}

func (s *Stream) remove(m *message) {
	delete(s.subjects, m.subject)
	s.messages = slices.DeleteFunc(s.messages, func(other *message) bool { return other == m })
}

// Next is when the first message may be given out that may not be now; zero when there is none.
func (s *Stream) Next(now time.Time) time.Time {
	var next time.Time
	for _, m := range s.messages {
		if !m.free(now) && (next.IsZero() || m.due.Before(next)) {
			next = m.due
		}
	}
	return next
}

// Subjects lists those that have a message, in the order in which they entered.
func (s *Stream) Subjects() []string {
	all := make([]string, len(s.messages))
	for i, m := range s.messages {
		all[i] = m.subject
	}
	return all
}

// Len is the number of messages.
func (s *Stream) Len() int { return len(s.messages) }
