package faulttest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/reprise-engine/reprise/internal/cluster"
	"github.com/reprise-engine/reprise/internal/redistest"
	"github.com/reprise-engine/reprise/pkg/engine"
)

// persistence reads a field of INFO persistence.
func persistence(t *testing.T, rdb *redis.Client, field string) string {
	t.Helper()
	text, err := rdb.Info(t.Context(), "persistence").Result()
	require.NoError(t, err)
	_, rest, ok := strings.Cut(text, field+":")
	require.True(t, ok, field)
	value, _, _ := strings.Cut(rest, "\r\n")
	return value
}

// backup takes a copy of a Redis that is used, as docs/operations.md says, and returns the file.
func backup(t *testing.T, c *cluster.Cluster) string {
	t.Helper()
	rdb := redis.NewClient(&redis.Options{Addr: c.Redis.Addr()})
	defer func() { _ = rdb.Close() }()
	require.NoError(t, rdb.BgSave(t.Context()).Err()) // it has begun when this is answered
	c.Await(within, func() string {
		if persistence(t, rdb, "rdb_bgsave_in_progress") != "0" {
			return "the copy is not written"
		}
		return ""
	})
	require.Equal(t, "ok", persistence(t, rdb, "rdb_last_bgsave_status"))
	dir, err := rdb.ConfigGet(t.Context(), "dir").Result()
	require.NoError(t, err)
	data, err := os.ReadFile(filepath.Join(dir["dir"], "dump.rdb"))
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "copy.rdb")
	require.NoError(t, os.WriteFile(file, data, 0o600))
	return file
}

// restored is a Redis with an append-only file that begins with a copy, as docs/operations.md says:
// one that is started with its append-only file switched on would not look at the copy.
func restored(t *testing.T, file string) *redistest.Server {
	t.Helper()
	dir := t.TempDir()
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "dump.rdb"), data, 0o600))
	loading := redistest.Start(t, "--dir", dir, "--appendonly", "no")
	rdb := redis.NewClient(&redis.Options{Addr: loading.Addr()})
	defer func() { _ = rdb.Close() }()
	require.NoError(t, rdb.ConfigSet(t.Context(), "appendonly", "yes").Err())
	require.Eventually(t, func() bool {
		return persistence(t, rdb, "aof_rewrite_in_progress") == "0" && persistence(t, rdb, "aof_rewrite_scheduled") == "0"
	}, within, 10*time.Millisecond)
	require.Equal(t, "ok", persistence(t, rdb, "aof_last_bgrewrite_status"))
	loading.Kill()
	return redistest.Start(t, "--dir", dir, "--appendonly", "yes", "--appendfsync", "always")
}

// Everything is lost, but for a copy of Redis that was taken while executions ran: the servers begin
// anew, NATS with nothing at all. What the copy has goes on by itself, what waits can be resumed, and
// what was submitted later is submitted again under its ids. Effects that came after the copy are
// repeated under the keys that they had.
func TestBackupAndRestore(t *testing.T) {
	t.Parallel()
	var wire *cluster.Wire
	c := cluster.New(t, cluster.Options{Lease: calm, RedisVia: func(addr string) string { wire = cluster.NewWire(t, addr); return wire.Addr() }})
	for _, tool := range c.Tools {
		c.Ledger.Answer(tool, cluster.Takes(300*time.Millisecond))
	}
	c.StartAll()
	waiting := park(c, 10)
	under := loaded(t, c, 50*time.Millisecond)
	defer under.stop()
	c.Await(within, func() string { // some are over, some run
		counts, err := c.Store.CountByStatus(t.Context())
		if err != nil || counts[engine.StatusSuccess] < 10 || counts[engine.StatusRunning] == 0 {
			return "the system is not under load"
		}
		return ""
	})
	file := backup(t, c)
	enough := len(c.Submit(1)) // what comes now is not in the copy
	require.Equal(t, 1, enough)
	passes(2 * time.Second)
	under.stop()
	for _, p := range c.Processes() {
		p.Kill()
	}
	c.NATS.Kill()
	c.Redis.Kill()
	require.NoError(t, os.RemoveAll(c.NATS.Dir))

	redisServer := restored(t, file)
	wire.Switch(redisServer.Addr())
	c.UseRedis(redisServer.URL())
	c.NATS.Restart()
	kept, unfinished, lost := 0, []string{}, []string{}
	all := append(append([]string{}, under.agents...), under.waits...)
	states, err := c.Look(all...)
	require.NoError(t, err)
	for i, s := range states {
		switch {
		case s == nil:
			lost = append(lost, all[i])
		case s.Meta.Status.Finished():
			kept++
		default:
			unfinished = append(unfinished, all[i])
		}
	}
	t.Logf("the copy has %d finished and %d unfinished executions; %d came after it", kept, len(unfinished), len(lost))
	require.NotZero(t, kept)
	require.NotEmpty(t, unfinished)
	require.NotEmpty(t, lost)

	c.StartAll()
	c.AwaitFinished(unfinished, within)
	for _, id := range waiting {
		require.NoError(t, resume(t, c, id))
	}
	again := map[string][]byte{}
	for _, id := range under.agents {
		again[id] = c.Workflow
	}
	for _, id := range under.waits {
		again[id] = timed(c)
	}
	for _, id := range lost {
		c.Await(within, func() string {
			if err := c.SubmitOnce(again[id], id); err != nil {
				return err.Error()
			}
			return ""
		})
	}
	c.AwaitFinished(append(waiting, under.waits...), within)
	c.Settled(under.agents, within, cluster.Repeated)
	statuses(t, c, append(waiting, under.waits...), engine.StatusSuccess)
	for _, id := range append(waiting, under.waits...) {
		for _, step := range []string{"Before", "After"} {
			keys := c.Ledger.Keys(id, step)
			require.NotEmpty(t, keys, "%s of %s", step, id)
			for _, key := range keys {
				require.Equal(t, keys[0], key, "%s of %s was repeated under another key", step, id)
			}
		}
	}
}
