package state_test

import (
	"bytes"
	"io"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reprise-engine/reprise/internal/redistest"
	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/state"
)

// narrow is the URL of a Redis to and from which no more than 64 KB go in 5 ms on each connection.
func narrow(t *testing.T, addr string) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	trickle := func(to, from net.Conn) {
		defer func() { _, _ = to.Close(), from.Close() }()
		ticker := time.NewTicker(5 * time.Millisecond)
		defer ticker.Stop()
		for b := make([]byte, 64<<10); ; <-ticker.C {
			n, err := from.Read(b)
			if err != nil {
				return
			}
			if _, err := to.Write(b[:n]); err != nil {
				return
			}
		}
	}
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("tcp", addr)
			if err != nil {
				_ = client.Close()
				return
			}
			go trickle(server, client)
			go trickle(client, server)
		}
	}()
	return "redis://" + listener.Addr().String()
}

// What takes longer than any timeout is written and read all the same, as long as something moves.
func TestLargeExecutionOverANarrowLine(t *testing.T) {
	t.Parallel()
	const timeout = time.Second // more than what the system's buffers hold takes, which is written at once
	s := open(t, narrow(t, redistest.Shared(t).Addr()), func(c *state.Config) {
		c.ReadTimeout, c.WriteTimeout = timeout, timeout
	})
	large := bytes.Repeat([]byte("0123456789abcdef"), 1<<20)
	c := create("large")
	c.Changes = append(c.Changes, engine.Change{Table: engine.TableRun, Field: "large", Value: large})
	start := time.Now()
	commit(t, s, c)
	require.Greater(t, time.Since(start), timeout, "the line is not narrow")
	stored, err := s.Load(t.Context(), []engine.ExecutionID{"large"})
	require.NoError(t, err)
	require.True(t, bytes.Equal(large, stored[0].Tables[engine.TableRun]["large"]))
}

// A Redis that takes what it is told and says nothing is still given up after the timeout.
func TestSilentRedisIsGivenUp(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() { _, _ = io.Copy(io.Discard, conn) }()
		}
	}()
	start := time.Now()
	_, err = state.Open(t.Context(), state.Config{URL: "redis://" + listener.Addr().String(), ReadTimeout: 100 * time.Millisecond})
	require.ErrorIs(t, err, state.ErrUnavailable)
	require.Less(t, time.Since(start), 5*time.Second)
}
