package cluster

import (
	"io"
	"net"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// echo is a server that says everything back.
func echo(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() { _, _ = io.Copy(conn, conn); _ = conn.Close() }()
		}
	}()
	return listener.Addr().String()
}

func dial(t *testing.T, addr string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

func said(t *testing.T, conn net.Conn, text string) {
	t.Helper()
	require.NoError(t, conn.SetReadDeadline(time.Now().Add(20*time.Second)))
	got := make([]byte, len(text))
	_, err := io.ReadFull(conn, got)
	require.NoError(t, err)
	require.Equal(t, text, string(got))
}

func say(t *testing.T, conn net.Conn, text string) {
	t.Helper()
	_, err := conn.Write([]byte(text))
	require.NoError(t, err)
}

func TestLinkSwallows(t *testing.T) {
	t.Parallel()
	l := NewLink(t, echo(t))
	used, idle := dial(t, l.Addr()), dial(t, l.Addr())
	say(t, used, "a")
	said(t, used, "a")
	say(t, idle, "a")
	said(t, idle, "a")
	l.BlackHole()
	fresh := dial(t, l.Addr())
	for _, conn := range []net.Conn{used, fresh} {
		say(t, conn, "b")
		require.NoError(t, conn.SetReadDeadline(time.Now().Add(100*time.Millisecond)))
		_, err := conn.Read(make([]byte, 1))
		require.ErrorIs(t, err, os.ErrDeadlineExceeded, "the connection stays open")
	}
	l.Heal()
	for _, conn := range []net.Conn{used, fresh} {
		require.NoError(t, conn.SetReadDeadline(time.Now().Add(20*time.Second)))
		_, err := conn.Read(make([]byte, 1))
		require.Error(t, err)
		require.NotErrorIs(t, err, os.ErrDeadlineExceeded, "a connection that lost bytes is closed")
	}
	say(t, idle, "c")
	said(t, idle, "c")
}

func TestLinkDelays(t *testing.T) {
	t.Parallel()
	l := NewLink(t, echo(t))
	conn := dial(t, l.Addr())
	l.Slow(200*time.Millisecond, 50*time.Millisecond)
	start := time.Now()
	for _, text := range []string{"a", "b", "c"} {
		say(t, conn, text)
	}
	said(t, conn, "abc")
	require.GreaterOrEqual(t, time.Since(start), 150*time.Millisecond)
	l.Slow(time.Hour, 0)
	say(t, conn, "d")
	require.NoError(t, conn.SetReadDeadline(time.Now().Add(100*time.Millisecond)))
	_, err := conn.Read(make([]byte, 1))
	require.Error(t, err)
	l.Heal()
	said(t, conn, "d")
}
