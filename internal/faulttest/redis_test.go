package faulttest

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/reprise-engine/reprise/internal/cluster"
	"github.com/reprise-engine/reprise/internal/redistest"
	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/queue"
)

// outage is how long a server is away: the full length of the report, or just
// long enough for everybody to notice.
func outage(long time.Duration) time.Duration {
	if *full {
		return long
	}
	return min(long, 10*time.Second)
}

// overLink is a cluster whose way to a server is a link.
func overLink(t *testing.T, o cluster.Options) (c *cluster.Cluster, toRedis, toNATS *cluster.Link) {
	o.RedisVia = func(addr string) string {
		toRedis = cluster.NewLink(t, addr)
		return toRedis.Addr()
	}
	o.NATSVia = func(addr string) string {
		toNATS = cluster.NewLink(t, addr)
		return toNATS.Addr()
	}
	return cluster.New(t, o), toRedis, toNATS
}

// Report 110: packets are swallowed while sockets stay open. Those concerned say within ten
// seconds that they are not ready, and work within ten seconds after the way is
// free again, without a restart.
func TestReport110BlackHole(t *testing.T) {
	for name, hole := range map[string]struct{ redis, nats bool }{
		"Redis": {redis: true}, "NATS": {nats: true}, "both": {redis: true, nats: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, toRedis, toNATS := overLink(t, cluster.Options{Defaults: true})
			c.StartAll()
			arrived, open := c.Ledger.Hold("Beta")
			ids := c.Submit(5)
			arrives(t, arrived, len(ids))
			begin := time.Now()
			concerned := c.Coordinators
			if hole.redis {
				toRedis.BlackHole()
			}
			if hole.nats {
				toNATS.BlackHole()
				concerned = c.Processes()
			}
			open() // the tools' answers come while nobody can be told
			recovered(t, c, "black hole to "+name, "all concerned say that they are not ready", c.AwaitReadiness(false, within, concerned...), recoveryLimit)
			passes(outage(40*time.Second) - time.Since(begin))
			toRedis.Heal()
			toNATS.Heal()
			healed := time.Now()
			took := c.AwaitFinished(ids, within)
			recovered(t, c, "black hole to "+name+", healed", "running executions finished", took, recoveryLimit)
			c.AwaitReadiness(true, within, concerned...)
			recovered(t, c, "black hole to "+name+", healed", "all are ready", time.Since(healed), recoveryLimit)
			c.Settled(append(ids, c.Submit(5)...), within, cluster.Once)
		})
	}
}

// Report 110 and 113, the nastier half: after a short flap the old sockets stay open and
// silent for ever, and nobody is told. New connections work.
func TestReport110HalfOpenSockets(t *testing.T) {
	t.Parallel()
	var toRedis, toNATS *cluster.Wire
	c := cluster.New(t, cluster.Options{
		RedisVia: func(addr string) string { toRedis = cluster.NewWire(t, addr); return toRedis.Addr() },
		NATSVia:  func(addr string) string { toNATS = cluster.NewWire(t, addr); return toNATS.Addr() },
	})
	c.StartAll()
	arrived, open := c.Ledger.Hold("Beta")
	ids := c.Submit(5)
	arrives(t, arrived, len(ids))
	toRedis.Kill()
	toNATS.Kill()
	open()
	took := c.AwaitFinished(ids, within)
	recovered(t, c, "all sockets dead, nobody told", "running executions finished", took, 20*time.Second)
	c.Settled(append(ids, c.Submit(5)...), within, cluster.Once)
}

// Report 80: Redis answers late, long after tools have: everything takes longer, nothing is
// lost or done twice.
func TestSlowRedis(t *testing.T) {
	t.Parallel()
	c, toRedis, _ := overLink(t, cluster.Options{Lease: calm})
	c.StartAll()
	toRedis.Slow(300*time.Millisecond, 200*time.Millisecond)
	ids := c.Submit(8)
	c.AwaitFinished(ids, within)
	for _, p := range c.Processes() {
		ready, why := p.Ready()
		require.True(t, ready, "%s: %s", p.Name, why)
	}
	c.Settled(ids, within, cluster.Once)
	if !*full {
		return
	}
	// Slower than the calls' timeouts: everything is done, and nobody is told.
	ids = c.Submit(4)
	toRedis.Heal()
	toRedis.Slow(3500*time.Millisecond, 400*time.Millisecond)
	passes(20 * time.Second)
	toRedis.Heal()
	took := c.AwaitFinished(ids, within)
	recovered(t, c, "Redis slower than all timeouts", "executions finished", took, 20*time.Second)
	c.Settled(ids, within, cluster.Once)
}

// Report 112: Redis executes scripts and the replies are lost. Each counts once.
func TestReport112LostReplies(t *testing.T) {
	t.Parallel()
	var proxy *redistest.Proxy
	c := cluster.New(t, cluster.Options{Lease: calm, RedisVia: func(addr string) string {
		proxy = redistest.StartProxy(t, addr)
		return strings.TrimSuffix(strings.TrimPrefix(proxy.URL(), "redis://"), "/0")
	}})
	c.StartAll()
	var ids []string
	for range 4 {
		proxy.LoseReplies(8, "evalsha")
		ids = append(ids, c.Submit(5)...)
	}
	c.Settled(ids, within, cluster.Once)
	require.Zero(t, proxy.Pending(), "all replies that were to be lost were lost")
}

// Report 114: the primary is demoted and answers READONLY, while its connections stay;
// new ones lead to the new primary. Writes succeed within ten seconds, and nothing
// that was committed is missing.
func TestReport114Failover(t *testing.T) {
	t.Parallel()
	var wire *cluster.Wire
	c := cluster.New(t, cluster.Options{Lease: calm, RedisVia: func(addr string) string { wire = cluster.NewWire(t, addr); return wire.Addr() }})
	replica := redistest.Start(t, "--appendonly", "yes")
	host, port, _ := strings.Cut(c.Redis.Addr(), ":")
	promoted := redis.NewClient(&redis.Options{Addr: replica.Addr()})
	demoted := redis.NewClient(&redis.Options{Addr: c.Redis.Addr()})
	t.Cleanup(func() { _, _ = promoted.Close(), demoted.Close() })
	require.NoError(t, promoted.ReplicaOf(t.Context(), host, port).Err())
	c.StartAll()
	arrived, open := c.Ledger.Hold("Beta")
	ids := c.Submit(5)
	arrives(t, arrived, len(ids))
	for _, id := range ids {
		c.AwaitDone(id, "Alpha", within)
		c.AwaitDone(id, "Gamma", within)
	}
	c.Await(within, func() string {
		sent, err := demoted.Do(t.Context(), "WAIT", 1, 1000).Int()
		if err != nil || sent < 1 {
			return fmt.Sprintf("the replica is behind: %d %v", sent, err)
		}
		return ""
	})
	require.NoError(t, promoted.ReplicaOf(t.Context(), "NO", "ONE").Err())
	host, port, _ = strings.Cut(replica.Addr(), ":")
	require.NoError(t, demoted.ReplicaOf(t.Context(), host, port).Err())
	open() // results come, and every write is answered with READONLY
	err := c.SubmitOnce(c.Workflow, cluster.NewIDs(1)[0])
	require.Error(t, err, "work was taken by a primary that is none")
	wire.Switch(replica.Addr())
	switched := time.Now()
	c.UseRedis(replica.URL())
	c.AwaitFinished(ids, within)
	recovered(t, c, "Redis failed over", "running executions finished", time.Since(switched), recoveryLimit)
	more := c.Submit(5)
	recovered(t, c, "Redis failed over", "new work was taken", time.Since(switched), recoveryLimit)
	c.Settled(append(ids, more...), within, cluster.Once)
}

// Report 97: Redis is at its memory limit. New work is refused and the refusal says
// why; what runs is kept and finishes when there is room again.
func TestReport97FullMemory(t *testing.T) {
	t.Parallel()
	c := cluster.New(t, cluster.Options{Lease: calm})
	c.StartAll()
	rdb := redis.NewClient(&redis.Options{Addr: c.Redis.Addr()})
	t.Cleanup(func() { _ = rdb.Close() })
	arrived, open := c.Ledger.Hold("Beta")
	ids := c.Submit(5)
	arrives(t, arrived, len(ids))
	require.NoError(t, rdb.ConfigSet(t.Context(), "maxmemory", "1mb").Err())
	var problem *queue.Problem
	err := c.SubmitOnce(c.Workflow, cluster.NewIDs(1)[0])
	require.ErrorAs(t, err, &problem)
	require.Equal(t, queue.CodeFull, problem.Code, "%v", err)
	require.Positive(t, problem.RetryAfter, "a client is told when to try again")
	open()
	c.Await(within, func() string { // results are kept by those who have them
		if !strings.Contains(c.Workers[0].Log()+c.Workers[1].Log()+c.Workers[2].Log(), "result is not confirmed yet") {
			return "no result was refused"
		}
		return ""
	})
	states, err := c.Look(ids...)
	require.NoError(t, err)
	for _, s := range states {
		require.Equal(t, engine.StatusRunning, s.Meta.Status)
	}
	require.Empty(t, c.KeyProblems())
	require.NoError(t, rdb.ConfigSet(t.Context(), "maxmemory", "0").Err())
	took := c.AwaitFinished(ids, within)
	recovered(t, c, "Redis out of memory", "running executions finished", took, recoveryLimit)
	c.Settled(append(ids, c.Submit(3)...), within, cluster.Once)
}

// Reports 98 and 113: Redis is away while many executions wait for a call, whose keys have no
// expiry. It works again without a restart, and each of them goes on.
func TestReport113OutageWithParkedExecutions(t *testing.T) {
	t.Parallel()
	waiting := 50
	if *full {
		waiting = 200
	}
	c := cluster.New(t, cluster.Options{Lease: calm})
	c.StartAll()
	document := cluster.Document("parked", nil, []cluster.Object{
		cluster.Trigger(), c.Ledger.Step("Before"),
		cluster.Node("Wait", "n8n-nodes-base.wait", 1.1, cluster.Object{"resume": "webhook", "options": cluster.Object{}}), c.Ledger.Step("After"),
	}, "Start -> Before", "Before -> Wait", "Wait -> After")
	ids := c.SubmitOf(document, waiting)
	c.AwaitStates(ids, within, "waiting", func(s *engine.State) bool { return s.Meta.Status == engine.StatusWaiting })
	require.Empty(t, c.KeyProblems())
	c.Redis.Kill()
	begin := time.Now()
	c.AwaitReadiness(false, recoveryLimit, c.Coordinators...)
	passes(outage(30*time.Second) - time.Since(begin))
	c.Redis.Restart(t)
	back := time.Now()
	resumed := make(chan error, len(ids))
	places := make(chan struct{}, 16)
	for _, id := range ids {
		go func() {
			places <- struct{}{}
			defer func() { <-places }()
			resumed <- resume(t, c, id)
		}()
	}
	for range ids {
		require.NoError(t, <-resumed)
	}
	c.AwaitFinished(ids, within)
	recovered(t, c, "Redis away while executions are parked", "all resumed and finished", time.Since(back), 20*time.Second)
	c.Idle(within)
	statuses(t, c, ids, engine.StatusSuccess)
	for _, id := range ids {
		require.Len(t, c.Ledger.Keys(id, "Before"), 1)
		require.Len(t, c.Ledger.Keys(id, "After"), 1)
	}
}

// resume tells an execution that what it waits for has come, as often as that takes.
func resume(t *testing.T, c *cluster.Cluster, id string) error {
	for until := time.Now().Add(within); ; <-time.After(20 * time.Millisecond) {
		_, err := c.Conn.Resume(t.Context(), queue.ResumeRequest{Execution: engine.ExecutionID(id), Data: []byte(`{"body":{}}`)})
		var problem *queue.Problem
		if err == nil || errors.As(err, &problem) && problem.Code == queue.CodeConflict { // it was told, and the answer lost
			return nil
		}
		if time.Now().After(until) {
			return fmt.Errorf("%s cannot be resumed: %w", id, err)
		}
	}
}
