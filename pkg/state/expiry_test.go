package state_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/reprise-engine/reprise/internal/redistest"
	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/state"
)

func client(t testing.TB, addr string) *redis.Client {
	c := redis.NewClient(&redis.Options{Addr: addr})
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func rawMessages(texts ...string) []json.RawMessage {
	out := make([]json.RawMessage, len(texts))
	for i, t := range texts {
		out[i] = json.RawMessage(fmt.Sprintf("%q", t))
	}
	return out
}

// expiries lists all keys of an execution and their time to live, -1 for none.
func expiries(t *testing.T, raw *redis.Client, id engine.ExecutionID) map[string]time.Duration {
	t.Helper()
	keys, err := raw.Keys(t.Context(), "*:"+string(id)+":*").Result()
	require.NoError(t, err)
	out := map[string]time.Duration{}
	for _, k := range keys {
		out[k[strings.LastIndexByte(k, ':')+1:]] = raw.PTTL(t.Context(), k).Val()
	}
	return out
}

// No key of an unfinished execution has an expiry, every key of a finished one has.
func TestOnlyFinishedExecutionsExpire(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	raw := client(t, srv.Addr())
	s := open(t, srv.URL(), func(c *state.Config) { c.Retention = time.Hour })
	for _, end := range []engine.Status{engine.StatusSuccess, engine.StatusError, engine.StatusCanceled} {
		id := engine.ExecutionID("e-" + string(end))
		c := create(id)
		c.Timers = []engine.TimerChange{{ID: "t", At: 5}}
		commit(t, s, c, update(id, 1, "x"))
		wait := update(id, 2, "y")
		wait.Status = engine.StatusWaiting
		commit(t, s, wait)
		_, err := s.ClaimTimers(t.Context(), 10, 20, 10)
		require.NoError(t, err)
		ttl := expiries(t, raw, id)
		require.Len(t, ttl, 4)
		for key, d := range ttl {
			require.Equal(t, time.Duration(-1), d, "%s of an unfinished execution", key)
		}
		done := finish(id, 3)
		done.Status = end
		done.Changes = []engine.Change{{Table: engine.TableRun, Field: "9:Z", Value: []byte("r")}, {Table: engine.TableOpen, Field: "new", Value: []byte("r")}}
		commit(t, s, done)
		ttl = expiries(t, raw, id)
		require.Len(t, ttl, 4)
		for key, d := range ttl {
			require.InDelta(t, time.Hour, d, float64(time.Minute), "%s of a finished execution", key)
		}
		commit(t, s, done) // a repeat does not touch the expiry
		require.ErrorIs(t, s.Commit(t.Context(), []state.Commit{update(id, 4, "late")})[0], state.ErrFinished)
		require.Equal(t, 4, len(expiries(t, raw, id)))
		for key, d := range expiries(t, raw, id) {
			require.Positive(t, d, key)
		}
	}
}

// What expired is gone from lists at once, and from the indexes when pruned.
func TestExpiredExecutions(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	raw := client(t, srv.Addr())
	s := open(t, srv.URL(), func(c *state.Config) { c.Retention = 50 * time.Millisecond })
	immediate := create("immediate")
	immediate.Status = engine.StatusSuccess
	commit(t, s, create("a"), finish("a", 1), create("running"), immediate)
	gone := func() bool {
		stored, err := s.Load(t.Context(), []engine.ExecutionID{"a", "immediate"})
		return err == nil && stored[0] == nil && stored[1] == nil
	}
	require.Eventually(t, gone, 5*time.Second, 5*time.Millisecond)
	list, _, err := s.List(t.Context(), state.Filter{})
	require.NoError(t, err)
	require.Len(t, list, 1)
	require.Equal(t, engine.ExecutionID("running"), list[0].ID)

	again := create("a") // the id is free again, and its old index entries do no harm
	again.Token = "again"
	commit(t, s, again)
	n, err := s.Prune(t.Context(), 1e15)
	require.NoError(t, err)
	require.Equal(t, 1, n, "immediate; the entry of a went when the id was used again")
	require.Equal(t, uint64(1), version(t, s, "a"))

	commit(t, s, finish("a", 1), finish("running", 1))
	require.Eventually(t, func() bool { n, err := s.Prune(t.Context(), 1e15); return err == nil && n == 0 }, 5*time.Second, 5*time.Millisecond)
	require.Eventually(t, func() bool { return raw.DBSize(t.Context()).Val() == 0 }, 5*time.Second, 5*time.Millisecond, "nothing at all is left")
}

// An unsettled execution expires as others do. What is left of it is the entry
// of its sweep, which goes when it is settled, pruned, or the id is used again.
func TestUnsettledExecutionsExpire(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	raw := client(t, srv.Addr())
	s := open(t, srv.URL(), func(c *state.Config) { c.Retention = 200 * time.Millisecond })
	ids := []engine.ExecutionID{"settled", "pruned", "again", "over"}
	for _, id := range ids {
		c := create(id)
		end := finish(id, 1)
		end.Unsettled, end.NextSweep = true, 5000
		commit(t, s, c, end)
		for key, d := range expiries(t, raw, id) {
			require.NotEqual(t, time.Duration(-1), d, "%s of an unsettled execution", key)
		}
	}
	require.Eventually(t, func() bool {
		stored, err := s.Load(t.Context(), ids)
		return err == nil && stored[0] == nil && stored[1] == nil && stored[2] == nil && stored[3] == nil
	}, 5*time.Second, 5*time.Millisecond)
	list, _, err := s.List(t.Context(), state.Filter{})
	require.NoError(t, err)
	require.Empty(t, list)
	stale, err := s.ClaimStale(t.Context(), 5000, 6000, 10)
	require.NoError(t, err)
	require.ElementsMatch(t, ids, stale, "handed out though they are gone")

	again, over := create("again"), create("over") // the ids are free
	again.Token, again.NextSweep = "again", 9000
	over.Token, over.Status = "over", engine.StatusError
	commit(t, s, again, over)
	require.NoError(t, s.Settle(t.Context(), []engine.ExecutionID{"settled", "again"}))
	stale, err = s.ClaimStale(t.Context(), 6000, 7000, 10)
	require.NoError(t, err)
	require.Equal(t, []engine.ExecutionID{"pruned"}, stale, "the new ones have sweeps of their own, or none")
	n, err := s.Prune(t.Context(), 1e15)
	require.NoError(t, err)
	require.Equal(t, 3, n, "settled, pruned and over")
	stale, err = s.ClaimStale(t.Context(), 1e12, 2e12, 10)
	require.NoError(t, err)
	require.Equal(t, []engine.ExecutionID{"again"}, stale)

	commit(t, s, finish("again", 1))
	require.Eventually(t, func() bool { n, err := s.Prune(t.Context(), 1e15); return err == nil && n == 0 }, 5*time.Second, 5*time.Millisecond)
	require.Eventually(t, func() bool { return raw.DBSize(t.Context()).Val() == 0 }, 5*time.Second, 5*time.Millisecond, "nothing at all is left")
}

// What is kept for good has no expiry.
func TestSharedThingsDoNotExpire(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	raw := client(t, srv.Addr())
	s := open(t, srv.URL(), func(c *state.Config) { c.Retention = time.Hour })
	require.NoError(t, s.PutNamedWorkflow(t.Context(), state.WorkflowRecord{ID: "a", Hash: "h"}))
	_, err := s.Secret(t.Context(), "links", []byte("value"))
	require.NoError(t, err)
	c := create("e")
	c.Questions = []engine.TimerChange{{ID: "e_1", At: 5}}
	commit(t, s, c)
	keys := raw.Keys(t.Context(), "*").Val()
	require.Len(t, keys, 3+4+3, "the two and the workflows' revision, the four tables, active, the index and questions")
	for _, k := range keys {
		require.Equal(t, time.Duration(-1), raw.PTTL(t.Context(), k).Val(), k)
	}
}

func TestMemoryExpiry(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	raw := client(t, srv.Addr())
	s := open(t, srv.URL(), func(c *state.Config) { c.MemoryExpiry = time.Hour })
	for i := range 2 {
		require.NoError(t, s.AppendMemory(t.Context(), "chat", fmt.Sprint(i), rawMessages("a")))
		keys := raw.Keys(t.Context(), "*").Val()
		require.Len(t, keys, 2)
		for _, k := range keys {
			require.InDelta(t, time.Hour, raw.PTTL(t.Context(), k).Val(), float64(time.Minute))
		}
	}
	require.NoError(t, s.ClearMemory(t.Context(), "chat"))
	require.Empty(t, raw.Keys(t.Context(), "*").Val())
}
