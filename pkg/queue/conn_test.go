package queue

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap/zaptest"

	"github.com/reprise-engine/reprise/internal/embedded"
	"github.com/reprise-engine/reprise/internal/natstest"
)

func TestConnectSaysWhatIsWrong(t *testing.T) {
	locked := startNATS(t, "", embedded.NATSOptions{Username: "me", Password: "right-secret"})
	tokened := startNATS(t, "", embedded.NATSOptions{Token: "right-token"})
	bare := startNATS(t, "", embedded.NATSOptions{NoJetStream: true})
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	nowhere := closed.Addr().String()
	require.NoError(t, closed.Close())
	host := func(raw string) string {
		u, err := url.Parse(raw)
		require.NoError(t, err)
		return u.Host
	}
	for name, test := range map[string]struct {
		config Config
		want   error
		text   string
	}{
		"unreachable":          {Config{URL: "nats://bob:hidden@" + nowhere}, ErrUnavailable, nowhere},
		"unreachable, token":   {Config{URL: "nats://hidden@" + nowhere}, ErrUnavailable, nowhere},
		"unreachable, several": {Config{URL: nowhere + ", nats://x:hidden@" + nowhere}, ErrUnavailable, nowhere},
		"unreadable url":       {Config{URL: "nats://me:hidden@host:port"}, ErrUnavailable, "host:port"},
		"wrong password":       {Config{URL: "nats://me:hidden@" + host(locked.URL)}, ErrCredentials, host(locked.URL)},
		"no password":          {Config{URL: "nats://" + host(locked.URL)}, ErrCredentials, "check user and password"},
		"wrong user option":    {Config{URL: "nats://" + host(locked.URL), User: "me", Password: "hidden"}, ErrCredentials, ""},
		"wrong token":          {Config{URL: "nats://" + host(tokened.URL), Token: "hidden"}, ErrCredentials, "token"},
		"no creds file":        {Config{URL: bare.URL, CredentialsFile: filepath.Join(t.TempDir(), "none.creds")}, ErrUnavailable, "none.creds"},
		"no JetStream":         {Config{URL: bare.URL}, ErrNoJetStream, "nats-server with -js"},
		"no url":               {Config{}, nil, "nats://127.0.0.1:4222"},
	} {
		t.Run(name, func(t *testing.T) {
			started := time.Now()
			_, err := Connect(t.Context(), test.config)
			require.Error(t, err)
			if test.want != nil {
				require.ErrorIs(t, err, test.want)
			}
			require.ErrorContains(t, err, test.text)
			require.NotContains(t, err.Error(), "hidden")
			require.Less(t, time.Since(started), 8*time.Second)
		})
	}
	for name, config := range map[string]Config{
		"url":   {URL: locked.URL},
		"user":  {URL: "nats://" + host(locked.URL), User: "me", Password: "right-secret"},
		"token": {URL: "nats://" + host(tokened.URL), Token: "right-token"},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := Connect(t.Context(), config)
			require.NoError(t, err)
			require.NoError(t, c.Healthy())
			c.Close()
			c.Close()
			require.ErrorIs(t, c.Healthy(), ErrClosed)
			require.ErrorIs(t, c.PublishJobs(t.Context(), []*Job{job(1)})[0], ErrClosed)
		})
	}
}

func TestEnsureStreamsByManyAtOnce(t *testing.T) {
	n := startNATS(t, "", embedded.NATSOptions{})
	var all sync.WaitGroup
	for range 8 {
		c := connect(t, n.URL)
		all.Go(func() {
			for range 3 {
				if err := c.EnsureStreams(context.Background(), Streams{}); err != nil {
					t.Errorf("ensure streams: %v", err)
				}
			}
		})
	}
	all.Wait()
	c := connect(t, n.URL)
	require.NoError(t, c.EnsureStreams(t.Context(), Streams{MaxBytes: 1 << 20}), "a changed setting is taken over")
	stream, err := c.js.Stream(t.Context(), StreamJobs)
	require.NoError(t, err)
	config := stream.CachedInfo().Config
	require.EqualValues(t, 1<<20, config.MaxBytes)
	require.Equal(t, jetstream.WorkQueuePolicy, config.Retention)
	require.True(t, config.DiscardNewPerSubject)
	require.EqualValues(t, 1, config.MaxMsgsPerSubject)
}

func TestFullStreamRefuses(t *testing.T) {
	n := startNATS(t, "", embedded.NATSOptions{})
	c := connect(t, n.URL)
	require.NoError(t, c.EnsureStreams(t.Context(), Streams{MaxBytes: 2000}))
	var all []*Job
	for i := range 20 {
		all = append(all, job(i))
	}
	errs := c.PublishJobs(t.Context(), all)
	require.NoError(t, errs[0])
	require.ErrorIs(t, errs[19], ErrFull)
	require.Equal(t, CodeFull, ProblemOf(errs[19]).Code)
	require.ErrorIs(t, c.PublishJobs(t.Context(), all[:1])[0], ErrQueued)
}

func TestPublishWithoutStream(t *testing.T) {
	n := startNATS(t, "", embedded.NATSOptions{})
	c := connect(t, n.URL)
	require.ErrorIs(t, c.PublishJobs(t.Context(), []*Job{job(1)})[0], ErrNoStream)
	require.ErrorIs(t, c.PublishDead(t.Context(), &DeadLetter{Execution: "e"}), ErrNoStream)
}

func TestWorkerWaitsForTheStreamAndOutlivesItsDeletion(t *testing.T) {
	n := startNATS(t, "", embedded.NATSOptions{})
	coordinator, worker := connect(t, n.URL), connect(t, n.URL)
	j := jobs(t, worker, WorkerConfig{Slots: 2})
	noneWithin(t, j, 50*time.Millisecond)
	require.NoError(t, coordinator.EnsureStreams(t.Context(), Streams{}))
	publish(t, coordinator, job(1))
	held := next(t, j)
	require.Equal(t, job(1).ID, held.Job().ID)

	for round := range 3 {
		require.NoError(t, coordinator.js.DeleteStream(t.Context(), StreamJobs))
		// The coordinator's next publication creates it again; the job that runs is
		// published again by the sweeper.
		publish(t, coordinator, job(1), job(2))
		for range 2 {
			d := next(t, j)
			require.Equal(t, 1, d.Deliveries(), "round %d", round)
			require.NoError(t, coordinator.Ack(d.Ack()))
			d.Done()
			if round == 0 {
				held.Done()
			}
		}
		require.Eventually(t, func() bool { return queued(t, coordinator) == 0 }, patience, time.Millisecond)
	}
	// Only the consumer.
	require.NoError(t, coordinator.js.DeleteConsumer(t.Context(), StreamJobs, consumerJobs(DefaultPool)))
	publish(t, coordinator, job(3))
	require.Equal(t, job(3).ID, next(t, j).Job().ID)
}

func TestServerRestartsWithTheSameStore(t *testing.T) {
	dir := t.TempDir()
	n := startNATS(t, dir, embedded.NATSOptions{})
	u, err := url.Parse(n.URL)
	require.NoError(t, err)
	port, err := strconv.Atoi(u.Port())
	require.NoError(t, err)
	coordinator, worker := connect(t, n.URL), connect(t, n.URL)
	require.NoError(t, coordinator.EnsureStreams(t.Context(), Streams{}))
	stop, err := coordinator.ServeResults("c1", func(r *Result, _ int, reply func(Reply)) {
		_ = coordinator.Ack(r.Ack)
		reply(Reply{Verdict: VerdictOK})
	})
	require.NoError(t, err)
	defer stop()
	j := jobs(t, worker, WorkerConfig{Slots: 4})
	publish(t, coordinator, job(1))
	held := next(t, j)

	n.Shutdown()
	require.Eventually(t, func() bool { return coordinator.Healthy() != nil && worker.Healthy() != nil }, patience, time.Millisecond)
	require.ErrorIs(t, coordinator.Healthy(), ErrUnavailable)
	short, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, coordinator.PublishJobs(short, []*Job{job(2)})[0], ErrUnavailable)
	_, err = worker.SendResult(short, "c1", result(held, "late"))
	require.ErrorIs(t, err, ErrUnavailable)

	startNATS(t, dir, embedded.NATSOptions{Port: port})
	require.Eventually(t, func() bool { return coordinator.Healthy() == nil && worker.Healthy() == nil }, patience, 5*time.Millisecond)
	// The client library may still fail publications for the old connection.
	var first error
	require.Eventually(t, func() bool {
		first = coordinator.PublishJobs(t.Context(), []*Job{job(1)})[0]
		return !errors.Is(first, ErrUnavailable)
	}, patience, 10*time.Millisecond)
	require.Equal(t, ErrQueued, first, "the running job is still in the stream")
	require.Eventually(t, func() bool {
		err := coordinator.PublishJobs(t.Context(), []*Job{job(2)})[0]
		return err == nil || errors.Is(err, ErrQueued)
	}, patience, 10*time.Millisecond)
	d := next(t, j)
	require.Equal(t, job(2).ID, d.Job().ID)
	for _, one := range []*JobDelivery{held, d} {
		reply, err := worker.SendResult(t.Context(), "c1", result(one, "done"))
		require.NoError(t, err)
		require.Equal(t, VerdictOK, reply.Verdict)
		one.Done()
	}
	require.Eventually(t, func() bool { return queued(t, coordinator) == 0 }, patience, time.Millisecond)
	require.Positive(t, worker.Stats().Reconnects)
}

func TestServerKilledUnderLoad(t *testing.T) {
	server := natstest.Start(t, natstest.Options{})
	coordinator, worker := connect(t, server.URL), connect(t, server.URL)
	require.NoError(t, coordinator.EnsureStreams(t.Context(), Streams{}))
	const total = 400
	var mu sync.Mutex
	answered := map[string]bool{}
	half := make(chan struct{})
	stop, err := coordinator.ServeResults("c1", func(r *Result, _ int, reply func(Reply)) {
		mu.Lock()
		answered[string(r.Job)] = true
		if len(answered) == total/2 {
			select {
			case <-half:
			default:
				close(half)
			}
		}
		mu.Unlock()
		_ = coordinator.Ack(r.Ack)
		reply(Reply{Verdict: VerdictOK})
	})
	require.NoError(t, err)
	defer stop()
	j := jobs(t, worker, WorkerConfig{Slots: 8, AckWait: time.Second})
	ctx, cancel := context.WithCancel(t.Context())
	var workers sync.WaitGroup
	for range 8 {
		workers.Go(func() {
			for {
				d, err := j.Next(ctx)
				if err != nil {
					return
				}
				if reply, err := worker.SendResult(ctx, "c1", result(d, "done")); err != nil || reply.Verdict != VerdictOK {
					_ = d.Nak(0)
				}
				d.Done()
			}
		})
	}
	pending := map[int]bool{}
	for i := range total {
		pending[i] = true
	}
	publishPending := func() {
		var batch []*Job
		for i := range pending {
			batch = append(batch, job(i))
		}
		for i, err := range coordinator.PublishJobs(t.Context(), batch) {
			if err == nil || errors.Is(err, ErrQueued) {
				var n int
				_, _ = fmt.Sscanf(string(batch[i].ID), "exec-1_%d", &n)
				delete(pending, n)
			}
		}
	}
	publishPending()
	<-half
	server.Kill()
	require.Eventually(t, func() bool { return coordinator.Healthy() != nil }, patience, time.Millisecond)
	server.Restart()
	require.Eventually(t, func() bool {
		publishPending()
		mu.Lock()
		defer mu.Unlock()
		return len(answered) == total && len(pending) == 0
	}, 30*time.Second, 20*time.Millisecond)
	require.Eventually(t, func() bool { return queued(t, coordinator) == 0 }, patience, 10*time.Millisecond)
	cancel()
	workers.Wait()
}

func TestHungServerTurnsHealthRed(t *testing.T) {
	server := natstest.Start(t, natstest.Options{})
	c, err := Connect(t.Context(), Config{URL: server.URL, Log: zaptest.NewLogger(t)})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	server.Pause()
	started := time.Now()
	var problem error
	require.Eventually(t, func() bool { problem = c.Healthy(); return problem != nil }, 20*time.Second, 20*time.Millisecond)
	require.ErrorIs(t, problem, ErrUnavailable)
	require.Less(t, time.Since(started), healthyWithin+3*time.Second, "it does not wait for missed pings")
	server.Continue()
	require.Eventually(t, func() bool { return c.Healthy() == nil }, patience, 20*time.Millisecond)
}
