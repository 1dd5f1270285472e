// Package queuetest is the contract of the job queue as a test suite: what coordinators
// and workers rely on in the streams and requests of pkg/queue. It runs on pkg/queue itself
// with a NATS server, and on the stand-in of the simulation, so that a difference between
// the two is found here.
package queuetest

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/node"
	"github.com/reprise-engine/reprise/pkg/queue"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// Fixture is an empty queue that is nobody else's.
type Fixture interface {
	// Peer connects one more process: a coordinator, a worker, or both.
	Peer() Peer
	// AckWait of jobs.
	AckWait() time.Duration
	// Messages is the number of jobs in the stream, queued or running.
	Messages() int
	// Lose deletes the stream of jobs and all that is in it. Peers create it anew.
	Lose()
}

// Peer is one process's connection. *queue.Conn has these methods, but for the form of the
// first two.
type Peer interface {
	// Publish returns the outcome of each job: nil, or queue.ErrQueued for one that is there.
	Publish(ctx context.Context, jobs ...*queue.Job) []error
	// Jobs takes jobs of the default pool, at most slots at a time.
	Jobs(slots int) Worker
	Withdraw(ctx context.Context, pool string, jobs ...engine.JobID) error
	Ack(ack string) error
	ServeResults(coordinator string, handler func(r *queue.Result, size int, reply func(queue.Reply))) (stop func(), err error)
	SendResult(ctx context.Context, coordinator string, r *queue.Result) (queue.Reply, error)
	ServeRedelivery(handler func(q *queue.Redelivery, reply func(queue.Reply))) (stop func(), err error)
	AskRedelivery(ctx context.Context, q *queue.Redelivery) (queue.Reply, error)
}

// Worker takes jobs.
type Worker interface {
	// Next waits for a job; it returns ctx.Err() when there is none until ctx ends.
	Next(ctx context.Context) (Delivery, error)
}

// Delivery is a job given to a worker, as *queue.JobDelivery.
type Delivery interface {
	Job() *queue.Job
	Deliveries() int
	Published() time.Time
	Ack() string
	InProgress() error
	Nak(delay time.Duration) error
	Term() error
	Done()
}

var _ Delivery = (*queue.JobDelivery)(nil)

var tests = []struct {
	name string
	run  func(s suite)
}{
	{"publish/refused while queued and while running", refusedWhileThere},
	{"publish/first in first out", firstInFirstOut},
	{"publish/of two at once one is refused", racingPublishers},
	{"ack/by anybody", ackByAnybody},
	{"ack/again does not touch a later message", ackAgain},
	{"ack/of an earlier delivery", ackOfEarlierDelivery},
	{"ack/of a message given back", ackAfterNak},
	{"lease/ends", leaseEnds},
	{"lease/signs of life", signsOfLife},
	{"lease/sign of an earlier delivery", signOfEarlierDelivery},
	{"lease/sign after the end", signAfterTheEnd},
	{"nak/at once and before others", nakAtOnce},
	{"nak/with delay", nakWithDelay},
	{"nak/of an earlier delivery", nakOfEarlierDelivery},
	{"nak/again", nakAgain},
	{"nak/then a sign of life", signAfterNak},
	{"term/removes", termRemoves},
	{"withdraw/queued and running", withdraw},
	{"slots/never more than there are", slots},
	{"slots/a worker that waits gets what another has no slot for", slotsShared},
	{"lost/stream is created anew", streamLost},
	{"lost/an ack from before names another message", ackFromBefore},
	{"request/of a group one answers", oneAnswers},
	{"request/nobody", nobodyAnswers},
	{"request/result to its coordinator, then to any", resultToAny},
	{"request/result that one keeps silent about", resultToAll},
	{"request/answered later and once", answeredLater},
}

// Run runs the suite with the clock on the wall.
func Run(t *testing.T, open func(t *testing.T) Fixture) {
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			test.run(suite{t, open(t)})
		})
	}
}

// RunSimulated runs the suite in a bubble of fake time per test, in which open, and what it starts, is called
// too. close ends what open has started, before the bubble is left.
func RunSimulated(t *testing.T, open func(t *testing.T) (f Fixture, close func())) {
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f, end := open(t)
				defer end()
				test.run(suite{t, f})
			})
		})
	}
}

// suite is one test with its fixture.
type suite struct {
	*testing.T
	Fixture
}

// patience is how long something may take that has to happen, in ack waits at least.
const patience = 15 * time.Second

func job(n int) *queue.Job {
	return &queue.Job{
		Version: queue.Version, ID: engine.JobID(fmt.Sprintf("e1_%d", n)), Execution: "e1", Attempt: 1, Coordinator: "c1",
		IdempotencyKey: "key", Plan: json.RawMessage(`{"node":"A"}`), PlanHash: "h",
		Inputs: []workflow.Items{{{JSON: json.RawMessage(`{}`)}}},
	}
}

func result(d Delivery) *queue.Result {
	return &queue.Result{
		Version: queue.Version, Job: d.Job().ID, Execution: d.Job().Execution, Ack: d.Ack(),
		Result: node.Result{Result: engine.Result{Outputs: []workflow.Items{{{JSON: json.RawMessage(`{"n":1}`)}}}}},
	}
}

func (s suite) publish(p Peer, numbers ...int) {
	s.Helper()
	for _, n := range numbers {
		require.Equal(s, []error{nil}, p.Publish(s.Context(), job(n)), "job %d", n)
	}
}

// next waits for the next job and expects it to be this one, in this delivery.
func (s suite) next(w Worker, n, deliveries int) Delivery {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), patience+2*s.AckWait())
	defer cancel()
	d, err := w.Next(ctx)
	require.NoError(s, err, "job %d was to come, in delivery %d", n, deliveries)
	require.Equal(s, job(n).ID, d.Job().ID)
	require.Equal(s, deliveries, d.Deliveries(), "delivery of job %d", n)
	return d
}

// none expects that no job comes for a while.
func (s suite) none(w Worker, d time.Duration) {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), d)
	defer cancel()
	got, err := w.Next(ctx)
	if err == nil {
		s.Fatalf("got job %s in delivery %d, want none for %s", got.Job().ID, got.Deliveries(), d)
	}
	require.ErrorIs(s, err, context.DeadlineExceeded)
}

// left waits until this number of messages is in the stream.
func (s suite) left(n int) {
	s.Helper()
	for deadline := time.Now().Add(patience); s.Messages() != n; time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			s.Fatalf("%d messages are in the stream, want %d", s.Messages(), n)
		}
	}
}

// part is a fraction of an ack wait that is long against everything else.
func (s suite) part() time.Duration { return s.AckWait() / 3 }
