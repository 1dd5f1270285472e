package chaos

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/reprise-engine/reprise/internal/natstest"
	"github.com/reprise-engine/reprise/internal/redistest"
	"github.com/reprise-engine/reprise/pkg/queue"
)

// TestMain lets this program be the children of the fleets that its tests start, and
// run a chaos of its own that a test can end.
func TestMain(m *testing.M) {
	if len(os.Args) < 2 || os.Args[1] != "child" && os.Args[1] != "run" {
		os.Exit(m.Run())
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT)
	defer stop()
	var err error
	if os.Args[1] == "child" {
		err = Child(ctx, os.Args[2], os.Stdout)
	} else {
		_, err = Run(ctx, Config{Program: []string{os.Args[0], "child"}, Duration: time.Minute, Say: func(line string) { fmt.Println(line) }})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func program(t *testing.T) []string {
	t.Helper()
	path, err := os.Executable()
	require.NoError(t, err)
	return []string{path, "child"}
}

// quick is a chaos that is over soon.
func quick(t *testing.T) Config {
	return Config{
		Program: program(t), Duration: 12 * time.Second, Every: 1500 * time.Millisecond, Rate: 6, Seed: 7,
		Say: func(line string) { t.Log(line) },
	}
}

// A short chaos with everything in it: the promise holds.
func TestThePromiseHolds(t *testing.T) {
	t.Parallel()
	c := quick(t)
	var last Progress
	c.Progress = func(p Progress) { last = p }
	report, err := Run(t.Context(), c)
	require.NoError(t, err)
	report.Print(t.Output())
	require.True(t, report.Held)
	require.Empty(t, report.Problems)
	require.GreaterOrEqual(t, len(report.Faults), 4)
	roles := map[string]bool{}
	for _, f := range report.Faults {
		roles[f.Role] = true
		require.NotZero(t, f.next, "something ended after %s was %s", f.Name, f.what())
		require.Zero(t, f.open, "all that was in flight ended after %s was %s", f.Name, f.what())
	}
	require.GreaterOrEqual(t, len(roles), 3)
	require.GreaterOrEqual(t, report.Executions.Submitted, 60)
	require.GreaterOrEqual(t, report.Effects.Seen, 2*report.Executions.Submitted)
	require.NotZero(t, report.Effects.Refused)
	require.Equal(t, "redis-server", report.Servers)
	require.Equal(t, report.Executions.Submitted, last.Submitted)
	require.Equal(t, len(report.Faults), last.Faults)
}

// On servers that were given, only what was started here is killed, and what cannot be
// of use to others is removed.
func TestGivenServers(t *testing.T) {
	t.Parallel()
	server, redis := natstest.Start(t, natstest.Options{}), redistest.Start(t)
	c := quick(t)
	c.Duration, c.NATSURL, c.RedisURL = 6*time.Second, server.URL, redis.URL()
	report, err := Run(t.Context(), c)
	require.NoError(t, err)
	report.Print(t.Output())
	require.True(t, report.Held)
	require.GreaterOrEqual(t, len(report.Faults), 2)
	for _, f := range report.Faults {
		require.Contains(t, []string{KillWorker, KillCoordinator}, f.Role)
	}
	leavesNothing(t, server.URL, redis.URL())
}

// Interrupted in the middle, a run on given servers takes its executions with it.
func TestInterruptedOnGivenServers(t *testing.T) {
	t.Parallel()
	server, redis := natstest.Start(t, natstest.Options{}), redistest.Start(t)
	c := quick(t)
	c.NATSURL, c.RedisURL = server.URL, redis.URL()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	c.Progress = func(p Progress) {
		if p.Submitted-p.Finished > 5 {
			cancel()
		}
	}
	_, err := Run(ctx, c)
	require.ErrorIs(t, err, context.Canceled)
	leavesNothing(t, server.URL, redis.URL())
}

// leavesNothing checks that servers which others use hold no unfinished execution, job,
// workflow or pool of ours.
func leavesNothing(t *testing.T, natsURL, redisURL string) {
	t.Helper()
	i, err := openInspector(t.Context(), natsURL, redisURL, "chaos", "*")
	require.NoError(t, err)
	defer i.close()
	left, err := i.look(t.Context())
	require.NoError(t, err)
	require.True(t, left.nothing(), "%+v", left)
	workflows, err := i.redis.HKeys(t.Context(), "reprise:workflows").Result()
	require.NoError(t, err)
	require.Empty(t, workflows)
	nc, err := nats.Connect(natsURL)
	require.NoError(t, err)
	defer nc.Close()
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	stream, err := js.Stream(t.Context(), queue.StreamJobs)
	require.NoError(t, err)
	var consumers []string
	for name := range stream.ConsumerNames(t.Context()).Name() {
		consumers = append(consumers, name)
	}
	require.False(t, slices.ContainsFunc(consumers, func(name string) bool { return name != "pool-"+queue.DefaultPool }), consumers)
}

func TestServersThatAreNotThere(t *testing.T) {
	t.Parallel()
	c := quick(t)
	c.NATSURL, c.RedisURL = "nats://127.0.0.1:1", "redis://127.0.0.1:1"
	_, err := Run(t.Context(), c)
	require.ErrorIs(t, err, queue.ErrUnavailable)
}

// A program that cannot be a child is said so, and nothing is left running.
func TestProgramThatDoesNotStart(t *testing.T) {
	t.Parallel()
	c := quick(t)
	c.Program = []string{"/bin/false"}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	_, err := Run(ctx, c)
	require.ErrorContains(t, err, "start NATS: it ended at once")
}

// sleeper is a process that ends when it is told to.
type sleeper struct{ ended chan struct{} }

func (s *sleeper) pid() int              { return 1 }
func (s *sleeper) kill()                 { close(s.ended) }
func (s *sleeper) gone() <-chan struct{} { return s.ended }
func (s *sleeper) signal(bool) error     { return nil }

// A supervisor starts its process again whoever ended it, counts only what we did not
// end, and goes on after a start that failed.
func TestSupervisor(t *testing.T) {
	t.Parallel()
	started := make(chan *sleeper, 10)
	failed := false
	u := newUnit(KillWorker, "worker 1", func(context.Context) (running, error) {
		if !failed {
			failed = true
			return nil, errors.New("not yet")
		}
		s := &sleeper{ended: make(chan struct{})}
		started <- s
		return s, nil
	})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { u.supervise(ctx); close(done) }()
	first := <-started
	require.NoError(t, u.await(ctx))
	require.Equal(t, 1, u.stop())
	require.False(t, u.free())
	require.Zero(t, u.stop(), "it is stopped")
	u.resume()
	require.True(t, u.free())
	require.Equal(t, 1, u.kill(0))
	<-first.ended
	second := <-started
	require.NoError(t, u.await(ctx))
	require.Zero(t, u.endedByItself())
	close(second.ended)
	third := <-started
	require.NoError(t, u.await(ctx))
	require.Equal(t, 1, u.endedByItself())
	cancel()
	<-done
	<-third.ended
	require.Equal(t, 1, u.endedByItself())
}
