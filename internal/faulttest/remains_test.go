package faulttest

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/reprise-engine/reprise/internal/cluster"
)

func infoNumber(t *testing.T, rdb *redis.Client, section, field string) int64 {
	t.Helper()
	text, err := rdb.Info(t.Context(), section).Result()
	require.NoError(t, err)
	_, rest, ok := strings.Cut(text, "\n"+field+":")
	require.True(t, ok, field)
	value, _, _ := strings.Cut(rest, "\r\n")
	n, err := strconv.ParseInt(value, 10, 64)
	require.NoError(t, err)
	return n
}

func keysOf(t *testing.T, rdb *redis.Client) []string {
	t.Helper()
	keys, err := rdb.Keys(t.Context(), "reprise:*").Result()
	require.NoError(t, err)
	// Turns are keys of some seconds that come and go.
	keys = slices.DeleteFunc(keys, func(k string) bool { return strings.HasPrefix(k, "reprise:turn:") })
	slices.Sort(keys)
	return keys
}

// retentionMargin is how much memory of Redis a thousand executions may leave behind: its
// allocator's and the scripts' own, less than 400 bytes for each. One of them takes 5 KB while it is kept.
const retentionMargin = 384 << 10

// When the retention of a thousand executions is over, nothing is left of them: Redis has the keys
// that it had before, and its memory but for a margin, and no stream of NATS has a message.
func TestRetentionLeavesNothing(t *testing.T) {
	t.Parallel()
	c := cluster.New(t, cluster.Options{Lease: calm, Env: []string{"REPRISE_RETENTION=4s"}})
	c.StartAll()
	rdb := redis.NewClient(&redis.Options{Addr: c.Redis.Addr()})
	t.Cleanup(func() { _ = rdb.Close() })
	js := stream(t, c)
	document := c.Ledger.Chain("short", "Step")
	run := func(n int) {
		for done := 0; done < n; {
			ids := c.SubmitOf(document, min(100, n-done))
			done += len(ids)
			c.Await(within, func() string {
				for _, id := range ids {
					if len(c.Ledger.Keys(id, "Step")) == 0 {
						return id + " has not had its effect"
					}
				}
				return ""
			})
		}
	}
	forgotten := func(baseline []string) {
		c.Await(within, func() string {
			for _, key := range keysOf(t, rdb) {
				if !slices.Contains(baseline, key) && (baseline != nil || strings.Contains(key, "{s")) {
					return key + " is left"
				}
			}
			return ""
		})
	}
	run(50)
	forgotten(nil)
	baseline, memory := keysOf(t, rdb), infoNumber(t, rdb, "memory", "used_memory")
	run(1000)
	require.Greater(t, infoNumber(t, rdb, "memory", "used_memory"), memory+retentionMargin, "the executions took memory")
	forgotten(baseline)
	require.Equal(t, baseline, keysOf(t, rdb))
	left := infoNumber(t, rdb, "memory", "used_memory") - memory
	t.Logf("%d bytes are left of 1,000 executions in %d keys", left, len(baseline))
	require.Less(t, left, int64(retentionMargin))
	streams := js.ListStreams(t.Context())
	for info := range streams.Info() {
		require.Zero(t, info.State.Msgs, "messages on %s", info.Config.Name)
	}
	require.NoError(t, streams.Err())
}

// idleLimit is how many commands a second an idle coordinator may send to Redis.
const idleLimit = 100

// A coordinator with nothing to do, though executions wait for distant calls, leaves Redis in peace.
func TestIdleCoordinatorIsQuiet(t *testing.T) {
	t.Parallel()
	c := cluster.New(t, cluster.Options{Defaults: true, Coordinators: 1, Workers: 1})
	c.StartAll()
	park(c, 300)
	rdb := redis.NewClient(&redis.Options{Addr: c.Redis.Addr()})
	t.Cleanup(func() { _ = rdb.Close() })
	require.NoError(t, rdb.ConfigResetStat(t.Context()).Err())
	start := time.Now()
	passes(12 * time.Second)
	sent := infoNumber(t, rdb, "stats", "total_commands_processed")
	each := float64(sent) / time.Since(start).Seconds()
	text, err := rdb.Info(t.Context(), "commandstats").Result()
	require.NoError(t, err)
	require.Less(t, each, float64(idleLimit), text)
	t.Logf("%.0f commands a second", each)
}
