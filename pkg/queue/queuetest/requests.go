package queuetest

import (
	"context"
	"sync"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reprise-engine/reprise/pkg/queue"
)

// counts counts by name.
type counts struct {
	mu sync.Mutex
	by map[string]int
}

func (c *counts) add(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.by == nil {
		c.by = map[string]int{}
	}
	c.by[name]++
}

func (c *counts) get() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	got := map[string]int{}
	for name, n := range c.by {
		got[name] = n
	}
	return got
}

func (s suite) served(stop func(), err error) {
	s.Helper()
	require.NoError(s, err)
	s.Cleanup(stop)
}

func oneAnswers(s suite) {
	var asked counts
	for _, name := range []string{"a", "b", "c"} {
		s.served(s.Peer().ServeRedelivery(func(q *queue.Redelivery, reply func(queue.Reply)) {
			asked.add(string(q.Job))
			reply(queue.Reply{Verdict: queue.VerdictRun, Error: name})
		}))
	}
	p := s.Peer()
	for n := range 5 {
		reply, err := p.AskRedelivery(s.Context(), &queue.Redelivery{Version: queue.Version, Job: job(n).ID, Execution: "e1"})
		require.NoError(s, err)
		require.Equal(s, queue.VerdictRun, reply.Verdict)
		require.Contains(s, []string{"a", "b", "c"}, reply.Error)
	}
	require.Equal(s, map[string]int{"e1_0": 1, "e1_1": 1, "e1_2": 1, "e1_3": 1, "e1_4": 1}, asked.get())
}

func nobodyAnswers(s suite) {
	p := s.Peer()
	begun := time.Now()
	_, err := p.AskRedelivery(s.Context(), &queue.Redelivery{Version: queue.Version, Job: "e1_1", Execution: "e1"})
	require.ErrorIs(s, err, queue.ErrNoCoordinator)
	s.publish(p, 1)
	_, err = p.SendResult(s.Context(), "c1", result(s.next(s.Peer().Jobs(1), 1, 1)))
	require.ErrorIs(s, err, queue.ErrNoCoordinator)
	require.Less(s, time.Since(begun), time.Second+s.AckWait(), "who is not there is known at once")
}

// serve takes results as a coordinator and answers them.
func (s suite) serve(name string, got *counts) (stop func()) {
	s.Helper()
	stop, err := s.Peer().ServeResults(name, func(_ *queue.Result, size int, reply func(queue.Reply)) {
		require.Positive(s, size)
		got.add(name)
		reply(queue.Reply{Verdict: queue.VerdictOK})
	})
	require.NoError(s, err)
	return stop
}

func resultToAny(s suite) {
	var got counts
	stopFirst := s.serve("c1", &got)
	s.Cleanup(s.serve("c2", &got))
	p := s.Peer()
	s.publish(p, 1)
	r := result(s.next(p.Jobs(1), 1, 1))
	for range 3 {
		reply, err := p.SendResult(s.Context(), "c1", r)
		require.NoError(s, err)
		require.Equal(s, queue.VerdictOK, reply.Verdict)
	}
	require.Equal(s, map[string]int{"c1": 3}, got.get())
	stopFirst()
	reply, err := p.SendResult(s.Context(), "c1", r)
	require.NoError(s, err)
	require.Equal(s, queue.VerdictOK, reply.Verdict)
	require.Equal(s, map[string]int{"c1": 3, "c2": 1}, got.get())
}

// resultToAll: one that is paused keeps its subscriptions, and may be drawn again from
// the group. In the end all are asked.
func resultToAll(s suite) {
	var got counts
	s.served(s.Peer().ServeResults("c1", func(*queue.Result, int, func(queue.Reply)) { got.add("silent") }))
	s.Cleanup(s.serve("c2", &got))
	p := s.Peer()
	s.publish(p, 1)
	reply, err := p.SendResult(s.Context(), "c1", result(s.next(p.Jobs(1), 1, 1)))
	require.NoError(s, err)
	require.Equal(s, queue.VerdictOK, reply.Verdict)
	require.Equal(s, 1, got.get()["c2"])
	require.Positive(s, got.get()["silent"])
}

func answeredLater(s suite) {
	replies := make(chan func(queue.Reply), 1)
	s.served(s.Peer().ServeResults("c1", func(_ *queue.Result, _ int, reply func(queue.Reply)) { replies <- reply }))
	p := s.Peer()
	s.publish(p, 1)
	d := s.next(p.Jobs(1), 1, 1)
	done := make(chan error, 1)
	go func() {
		ctx, cancel := context.WithTimeout(s.Context(), patience)
		defer cancel()
		reply, err := p.SendResult(ctx, "c1", result(d))
		if err == nil && reply.Error != "first" {
			err = context.Canceled
		}
		done <- err
	}()
	reply := <-replies
	select {
	case err := <-done:
		s.Fatalf("answered before the reply: %v", err)
	default:
	}
	reply(queue.Reply{Verdict: queue.VerdictError, Error: "first"})
	reply(queue.Reply{Verdict: queue.VerdictError, Error: "second"})
	require.NoError(s, <-done)
}
