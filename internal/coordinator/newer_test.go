package coordinator_test

import (
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/reprise-engine/reprise/internal/redistest"
	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/queue"
)

// An execution that a newer coordinator has stored in a form of its own is left to that: the
// worker keeps its result, the sweeper goes on looking at it, nothing is written. When a newer
// coordinator comes, it goes on.
func TestNewerExecutionIsLeftToNewerCoordinators(t *testing.T) {
	f := start(t, 1)
	id := f.begin(queue.Submission{Workflow: chain(2)})
	first, err := f.jobs.Next(t.Context())
	require.NoError(t, err)
	defer first.Done()

	raw := redis.NewClient(&redis.Options{Addr: redistest.Shared(t).Addr()})
	defer raw.Close()
	keys, err := raw.Keys(t.Context(), f.prefix+":{s*}:"+string(id)+":meta").Result()
	require.NoError(t, err)
	require.Len(t, keys, 1)
	identity, err := raw.HGet(t.Context(), keys[0], "identity").Result()
	require.NoError(t, err)
	newer := strings.Replace(identity, "{", `{"format":2,`, 1)
	require.NoError(t, raw.HSet(t.Context(), keys[0], "identity", newer).Err())
	f.add(nil) // has nothing in memory
	f.stops[0]()
	before, err := raw.HGetAll(t.Context(), keys[0]).Result()
	require.NoError(t, err)

	result := &queue.Result{Version: queue.Version, Job: first.Job().ID, Execution: id, Ack: first.Ack()}
	result.Result.Result = outputs(`{}`)
	for range 2 {
		reply, err := f.conn.SendResult(t.Context(), first.Job().Coordinator, result)
		require.NoError(t, err)
		require.Equal(t, queue.VerdictError, reply.Verdict)
		require.Contains(t, reply.Error, "finish the upgrade")
	}
	_, err = f.conn.Get(t.Context(), id, false)
	require.ErrorContains(t, err, "finish the upgrade")
	after, err := raw.HGetAll(t.Context(), keys[0]).Result()
	require.NoError(t, err)
	require.Equal(t, before, after)
	_, sweep, err := f.stores[1].NextDue(t.Context())
	require.NoError(t, err)
	require.NotZero(t, sweep, "it is looked at again and again")

	require.NoError(t, raw.HSet(t.Context(), keys[0], "identity", identity).Err()) // the coordinator knows it now
	f.work(func(*queue.Job, string) (engine.Result, bool) { return outputs(`{}`), true })
	require.Eventually(t, func() bool {
		reply, err := f.conn.SendResult(t.Context(), first.Job().Coordinator, result)
		return err == nil && reply.Verdict == queue.VerdictOK
	}, within, 10*time.Millisecond)
	require.Eventually(t, func() bool {
		x, err := f.conn.Get(t.Context(), id, false)
		return err == nil && x.Status == engine.StatusSuccess
	}, within, 10*time.Millisecond)
}
