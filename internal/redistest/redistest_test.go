package redistest_test

import (
	"os"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/reprise-engine/reprise/internal/redistest"
)

func TestMain(m *testing.M) { os.Exit(redistest.Main(m)) }

func client(t *testing.T, addr string) *redis.Client {
	c := redis.NewClient(&redis.Options{Addr: addr})
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func TestSharedServerIsOneServer(t *testing.T) {
	a, b := redistest.Shared(t), redistest.Shared(t)
	require.Equal(t, a.PID(), b.PID())
	require.NoError(t, client(t, a.Addr()).Ping(t.Context()).Err())
}

func TestRestartKeepsPortAndAppendOnlyData(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t, "--appendonly", "yes", "--appendfsync", "always")
	require.NoError(t, client(t, srv.Addr()).Set(t.Context(), "k", "v", 0).Err())
	addr, pid := srv.Addr(), srv.PID()
	srv.Restart(t)
	require.Equal(t, addr, srv.Addr())
	require.NotEqual(t, pid, srv.PID())
	got, err := client(t, srv.Addr()).Get(t.Context(), "k").Result()
	require.NoError(t, err)
	require.Equal(t, "v", got)
	srv.Kill()
	require.Zero(t, srv.PID())
	srv.Kill() // harmless
}

func TestClusterServesAllSlots(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t, 3)
	var addrs []string
	for _, n := range cluster.Nodes {
		addrs = append(addrs, n.Addr())
	}
	c := redis.NewClusterClient(&redis.ClusterOptions{Addrs: addrs})
	t.Cleanup(func() { _ = c.Close() })
	for _, key := range []string{"a", "b", "c", "d", "e", "f"} {
		require.NoError(t, c.Set(t.Context(), key, key, 0).Err())
	}
	sizes := 0
	for _, n := range cluster.Nodes {
		size, err := client(t, n.Addr()).DBSize(t.Context()).Result()
		require.NoError(t, err)
		require.Less(t, size, int64(6), "keys should be spread")
		sizes += int(size)
	}
	require.Equal(t, 6, sizes)
}
