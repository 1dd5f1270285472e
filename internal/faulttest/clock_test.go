package faulttest

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/reprise-engine/reprise/internal/cluster"
	"github.com/reprise-engine/reprise/internal/coordinator"
	"github.com/reprise-engine/reprise/internal/nodetypes"
	"github.com/reprise-engine/reprise/pkg/expression"
	"github.com/reprise-engine/reprise/pkg/queue"
	"github.com/reprise-engine/reprise/pkg/state"
)

// The clock of one of two coordinators jumps an hour ahead and an hour back while
// executions run, are retried and wait: nothing is done twice, nothing is given up.
// The clock of a real process cannot be moved, so this coordinator runs here, on
// a clock of its own; all else are processes.
func TestClockJump(t *testing.T) {
	t.Parallel()
	for name, jump := range map[string]time.Duration{"ahead": time.Hour, "back": -time.Hour} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := cluster.New(t, cluster.Options{Lease: calm, Coordinators: 1})
			c.StartAll()
			var offset atomic.Int64
			other := withClock(t, c, func() time.Time { return time.Now().Add(time.Duration(offset.Load())) })
			for _, tool := range c.Tools {
				c.Ledger.Answer(tool, cluster.Takes(300*time.Millisecond))
			}
			ids := c.Submit(10)
			offset.Store(int64(jump))
			ids = append(ids, c.Submit(10)...)
			c.AwaitFinished(ids, within)
			offset.Store(0)
			ids = append(ids, c.Submit(10)...)
			c.AwaitFinished(ids, within)
			ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
			defer cancel()
			require.NoError(t, other.Healthy(ctx))
			c.Settled(ids, within, cluster.Once)
		})
	}
}

// withClock runs a coordinator in this process, on a clock of its own.
func withClock(t *testing.T, c *cluster.Cluster, now func() time.Time) *coordinator.Coordinator {
	t.Helper()
	store, err := state.Open(t.Context(), state.Config{URL: c.Redis.URL(), Log: zap.NewNop()})
	require.NoError(t, err)
	conn, err := queue.Connect(t.Context(), queue.Config{URL: c.NATS.URL, Name: "skewed", Log: zap.NewNop()})
	require.NoError(t, err)
	evaluator, err := expression.New()
	require.NoError(t, err)
	co, err := coordinator.New(coordinator.Config{
		Store: store, Transport: transport{conn}, Registry: nodetypes.Registry(), Evaluator: evaluator,
		SweepAfter: cluster.ShortSweep, Now: now,
	})
	require.NoError(t, err)
	require.NoError(t, co.Start(t.Context()))
	require.NoError(t, conn.Flush(t.Context()))
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		co.Stop(ctx)
		conn.Close()
		_ = evaluator.Close()
		_ = store.Close()
	})
	return co
}

// transport makes a connection the coordinator's, as internal/service does.
type transport struct{ *queue.Conn }

func (t transport) PublishJobs(ctx context.Context, jobs []*queue.Job) (wait func() []error) {
	return t.StartPublish(ctx, jobs).Wait
}

func (t transport) ServeSubmissions(handler func(coordinator.DurableSubmission)) (stop func(), err error) {
	return t.ConsumeSubmissions(context.Background(), func(m *queue.SubmitMsg) { handler(submission{m}) })
}

type submission struct{ *queue.SubmitMsg }

func (s submission) Submitted() *queue.Submission { return &s.Submission }
