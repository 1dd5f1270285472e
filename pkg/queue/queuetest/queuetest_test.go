package queuetest_test

import (
	"context"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/reprise-engine/reprise/internal/embedded"
	"github.com/reprise-engine/reprise/pkg/queue"
	"github.com/reprise-engine/reprise/pkg/queue/queuetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestContract runs the suite on pkg/queue and a NATS server.
func TestContract(t *testing.T) {
	queuetest.Run(t, func(t *testing.T) queuetest.Fixture {
		n, err := embedded.StartNATS(t.TempDir(), embedded.NATSOptions{})
		require.NoError(t, err)
		t.Cleanup(n.Shutdown)
		nc, err := nats.Connect(n.URL)
		require.NoError(t, err)
		t.Cleanup(nc.Close)
		js, err := jetstream.New(nc)
		require.NoError(t, err)
		return &server{t: t, url: n.URL, js: js}
	})
}

// ackWait is short, as the tests wait for it, and long against hiccups.
const ackWait = 1200 * time.Millisecond

type server struct {
	t   *testing.T
	url string
	js  jetstream.JetStream
}

func (s *server) AckWait() time.Duration { return ackWait }

func (s *server) Messages() int {
	stream, err := s.js.Stream(s.t.Context(), queue.StreamJobs)
	require.NoError(s.t, err)
	return int(stream.CachedInfo().State.Msgs)
}

func (s *server) Lose() { require.NoError(s.t, s.js.DeleteStream(s.t.Context(), queue.StreamJobs)) }

func (s *server) Peer() queuetest.Peer {
	c, err := queue.Connect(s.t.Context(), queue.Config{URL: s.url, Name: s.t.Name()})
	require.NoError(s.t, err)
	s.t.Cleanup(c.Close)
	require.NoError(s.t, c.EnsureStreams(s.t.Context(), queue.Streams{}))
	return peer{c, s.t}
}

type peer struct {
	*queue.Conn
	t *testing.T
}

func (p peer) Publish(ctx context.Context, jobs ...*queue.Job) []error {
	return p.PublishJobs(ctx, jobs)
}

func (p peer) Jobs(slots int) queuetest.Worker {
	j, err := p.Conn.Jobs(p.t.Context(), []string{queue.DefaultPool}, queue.WorkerConfig{Slots: slots, AckWait: ackWait})
	require.NoError(p.t, err)
	p.t.Cleanup(j.Stop)
	return consumer{j}
}

type consumer struct{ *queue.JobConsumer }

func (c consumer) Next(ctx context.Context) (queuetest.Delivery, error) {
	d, err := c.JobConsumer.Next(ctx)
	if err != nil {
		return nil, err
	}
	return d, nil
}
