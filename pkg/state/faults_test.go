package state_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/reprise-engine/reprise/internal/redistest"
	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/state"
)

func create(id engine.ExecutionID) state.Commit {
	return state.Commit{
		Execution: id, Token: "create-" + string(id), Status: engine.StatusRunning, At: 1000, NextSweep: 2000,
		Changes: []engine.Change{
			{Table: engine.TableMeta, Field: "identity", Value: []byte("i")}, {Table: engine.TableStack, Field: "0", Value: []byte("e")},
			{Table: engine.TableRun, Field: "0:A", Value: []byte("r")}, {Table: engine.TableOpen, Field: "job:1", Value: []byte("j")},
		},
	}
}

func update(id engine.ExecutionID, version uint64, token string) state.Commit {
	return state.Commit{
		Execution: id, Version: version, Token: token, Status: engine.StatusRunning, At: 1001, NextSweep: 3000,
		Changes: []engine.Change{{Table: engine.TableRun, Field: "1:" + token, Value: []byte("r")}},
	}
}

func finish(id engine.ExecutionID, version uint64) state.Commit {
	return state.Commit{Execution: id, Version: version, Token: "finish", Status: engine.StatusSuccess, Finished: true, At: 1002}
}

func commit(t testing.TB, s *state.Store, commits ...state.Commit) {
	t.Helper()
	for _, err := range s.Commit(t.Context(), commits) {
		require.NoError(t, err)
	}
}

func version(t testing.TB, s *state.Store, id engine.ExecutionID) uint64 {
	t.Helper()
	stored, err := s.Load(t.Context(), []engine.ExecutionID{id})
	require.NoError(t, err)
	require.NotNil(t, stored[0], "execution %s", id)
	return stored[0].Version
}

// samePrefix opens another way to the same keys.
func samePrefix(prefix *string) func(*state.Config) {
	return func(c *state.Config) {
		if *prefix == "" {
			*prefix = c.Prefix
		}
		c.Prefix = *prefix
	}
}

// A commit whose reply is lost once is repeated by the client library, which
// learns from the token that it was applied.
func TestLostReplyIsRepeatedWithinTheCall(t *testing.T) {
	t.Parallel()
	proxy := redistest.StartProxy(t, redistest.Shared(t).Addr())
	s := open(t, proxy.URL())
	var batch []state.Commit
	for i := range 20 {
		batch = append(batch, create(engine.ExecutionID(fmt.Sprint("e", i))))
	}
	proxy.LoseReplies(1, "evalsha")
	commit(t, s, batch...)
	require.Zero(t, proxy.Pending())
	require.NotZero(t, s.Stats().Replays, "the first attempt had reached the server")
	for i := range batch {
		batch[i] = update(batch[i].Execution, 1, "second")
	}
	proxy.LoseReplies(1, "evalsha")
	commit(t, s, batch...)
	for _, c := range batch {
		require.Equal(t, uint64(2), version(t, s, c.Execution))
	}
}

// A commit without a reply at all is an error for the caller, who repeats it
// after somebody else has committed: it was applied once.
func TestLostReplyIsRepeatedByTheCaller(t *testing.T) {
	t.Parallel()
	srv := redistest.Shared(t)
	proxy := redistest.StartProxy(t, srv.Addr())
	prefix := ""
	s, other := open(t, proxy.URL(), samePrefix(&prefix)), open(t, srv.URL(), samePrefix(&prefix))
	commit(t, s, create("a"))

	mine := update("a", 1, "mine")
	proxy.LoseReplies(2, "evalsha")
	err := s.Commit(t.Context(), []state.Commit{mine})[0]
	require.ErrorIs(t, err, state.ErrUnavailable)
	require.Equal(t, uint64(2), version(t, other, "a"), "it was applied")
	commit(t, other, update("a", 2, "others"))
	commit(t, s, mine)
	require.Equal(t, uint64(1), s.Stats().Replays, "the library's own repeat lost its reply too, the caller's was answered")
	require.Equal(t, uint64(3), version(t, other, "a"))

	notApplied := update("a", 2, "late")
	require.ErrorIs(t, s.Commit(t.Context(), []state.Commit{notApplied})[0], state.ErrConflict)
	require.Equal(t, uint64(1), s.Stats().Conflicts)
}

func TestLostReplyOfOtherWrites(t *testing.T) {
	t.Parallel()
	proxy := redistest.StartProxy(t, redistest.Shared(t).Addr())
	s := open(t, proxy.URL())
	proxy.LoseReplies(1, "evalsha")
	require.NoError(t, s.AppendMemory(t.Context(), "chat", "1", rawMessages("a", "b")))
	got, err := s.Memory(t.Context(), "chat", 0)
	require.NoError(t, err)
	require.Equal(t, rawMessages("a", "b"), got)

	c := create("a")
	c.Timers = []engine.TimerChange{{ID: "t", At: 100}}
	commit(t, s, c)
	proxy.LoseReplies(1, "evalsha")
	due, err := s.ClaimTimers(t.Context(), 100, 500, 10)
	require.NoError(t, err)
	require.Empty(t, due, "claimed by the attempt that was lost")
	due, err = s.ClaimTimers(t.Context(), 500, 900, 10)
	require.NoError(t, err)
	require.Len(t, due, 1, "but not lost")

	end := finish("a", 1)
	end.Unsettled = true
	commit(t, s, end)
	proxy.LoseReplies(1, "evalsha")
	require.NoError(t, s.Settle(t.Context(), []engine.ExecutionID{"a"}))
	proxy.LoseReplies(1, "first")
	value, err := s.Secret(t.Context(), "links", []byte("first"))
	require.NoError(t, err)
	require.Equal(t, "first", string(value), "stored by the attempt that was lost")
	require.Zero(t, proxy.Pending())
}

// Many writers over a connection that loses replies all the time: every change
// is applied once. Each writer does as a coordinator does: it repeats what is
// unclear with the same token, and after a conflict looks whether its change is
// there already, as the engine does with events.
func TestChangesApplyOnceThoughRepliesAreLost(t *testing.T) {
	t.Parallel()
	proxy := redistest.StartProxy(t, redistest.Shared(t).Addr())
	s := open(t, proxy.URL())
	first := create("a")
	first.Changes = append(first.Changes, engine.Change{Table: engine.TableMeta, Field: "sum", Value: []byte("0")})
	commit(t, s, first)
	const writers, each = 4, 40
	ctx := t.Context()
	add := func(name string) error {
		var c *state.Commit
		for {
			if c == nil {
				stored, err := s.Load(ctx, []engine.ExecutionID{"a"})
				if errors.Is(err, state.ErrUnavailable) {
					continue
				}
				if err != nil {
					return err
				}
				if _, done := stored[0].Tables[engine.TableRun][name]; done {
					return nil
				}
				sum, _ := strconv.Atoi(string(stored[0].Tables[engine.TableMeta]["sum"]))
				c = &state.Commit{Execution: "a", Version: stored[0].Version, Token: fmt.Sprintf("%s@%d", name, stored[0].Version),
					Status: engine.StatusRunning, At: 1, Changes: []engine.Change{
						{Table: engine.TableMeta, Field: "sum", Value: []byte(strconv.Itoa(sum + 1))},
						{Table: engine.TableRun, Field: name, Value: []byte("done")},
					}}
			}
			switch err := s.Commit(ctx, []state.Commit{*c})[0]; {
			case err == nil:
				return nil
			case errors.Is(err, state.ErrConflict):
				c = nil
			case !errors.Is(err, state.ErrUnavailable):
				return err
			}
		}
	}
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for n := range each {
				proxy.LoseReplies(1+n%3, "evalsha")
				if err := add(fmt.Sprintf("%d-%d", w, n)); err != nil {
					t.Errorf("writer %d: %v", w, err)
					return
				}
			}
		})
	}
	wg.Wait()
	proxy.LoseReplies(0, "evalsha")
	stored, err := s.Load(ctx, []engine.ExecutionID{"a"})
	require.NoError(t, err)
	require.Equal(t, strconv.Itoa(writers*each), string(stored[0].Tables[engine.TableMeta]["sum"]))
	require.Equal(t, uint64(1+writers*each), stored[0].Version)
	require.NotZero(t, s.Stats().Replays)
}

// Scripts that the server forgot are loaded again within the call.
func TestScriptsAreLoadedAgain(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	s, raw := open(t, srv.URL()), client(t, srv.Addr())
	require.NoError(t, raw.ScriptFlush(t.Context()).Err())
	var batch []state.Commit
	for i := range 64 {
		batch = append(batch, create(engine.ExecutionID(fmt.Sprint("e", i))))
	}
	commit(t, s, batch...)
	require.Equal(t, uint64(1), s.Stats().Reloads, "once for the whole batch")
	require.Equal(t, uint64(64), s.Stats().Commits)
	require.NoError(t, raw.ScriptFlush(t.Context()).Err())
	_, err := s.ClaimStale(t.Context(), 5000, 6000, 100)
	require.NoError(t, err)
	require.NoError(t, raw.ScriptFlush(t.Context()).Err())
	require.NoError(t, s.AppendMemory(t.Context(), "chat", "1", rawMessages("a")))
	require.Equal(t, uint64(3), s.Stats().Reloads)
}

func TestScriptsAreLoadedAgainOnOneNodeOfACluster(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t, 3)
	s := open(t, cluster.URL())
	require.NoError(t, client(t, cluster.Nodes[1].Addr()).ScriptFlush(t.Context()).Err())
	for i := range 64 {
		commit(t, s, create(engine.ExecutionID(fmt.Sprint("e", i))))
	}
	require.Equal(t, uint64(1), s.Stats().Reloads)
}

// The same Store works again after its server was killed and started again,
// and nothing that was acknowledged is lost.
func TestHealsAfterRestart(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t, "--appendonly", "yes", "--appendfsync", "always")
	s := open(t, srv.URL())
	commit(t, s, create("a"), create("b"))
	_, err := s.Load(t.Context(), []engine.ExecutionID{"a"}) // several connections, all of which break
	require.NoError(t, err)
	srv.Kill()
	began := time.Now()
	err = s.Commit(t.Context(), []state.Commit{update("a", 1, "x")})[0]
	require.ErrorIs(t, err, state.ErrUnavailable)
	require.ErrorIs(t, s.Ping(t.Context()), state.ErrUnavailable)
	_, err = s.Load(t.Context(), []engine.ExecutionID{"a"})
	require.ErrorIs(t, err, state.ErrUnavailable)
	require.Less(t, time.Since(began), 10*time.Second)
	srv.Restart(t)
	require.Eventually(t, func() bool { return s.Commit(t.Context(), []state.Commit{update("a", 1, "x")})[0] == nil },
		10*time.Second, 10*time.Millisecond)
	require.Equal(t, uint64(2), version(t, s, "a"))
	require.Equal(t, uint64(1), version(t, s, "b"))
}

// A server that is there and says nothing is an error within seconds.
func TestSilentServer(t *testing.T) {
	t.Parallel()
	proxy := redistest.StartProxy(t, redistest.Shared(t).Addr())
	s := open(t, proxy.URL(), func(c *state.Config) {
		c.DialTimeout, c.ReadTimeout, c.WriteTimeout = 200*time.Millisecond, 200*time.Millisecond, 200*time.Millisecond
	})
	patient := open(t, proxy.URL())
	commit(t, s, create("a"))
	end := proxy.Silence()
	began := time.Now()
	err := s.Commit(t.Context(), []state.Commit{update("a", 1, "x")})[0]
	require.ErrorIs(t, err, state.ErrUnavailable)
	require.Less(t, time.Since(began), 3*time.Second, "two attempts, each with its dial and read time-out")

	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	began = time.Now()
	err = patient.Commit(ctx, []state.Commit{create("b")})[0]
	require.ErrorIs(t, err, state.ErrUnavailable)
	require.Less(t, time.Since(began), 2*time.Second, "a deadline comes before the time-outs")

	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	err = patient.Commit(canceled, []state.Commit{create("b")})[0]
	require.ErrorIs(t, err, context.Canceled)
	require.NotErrorIs(t, err, state.ErrUnavailable, "the caller gave up, Redis is not to blame")
	end()
	require.Eventually(t, func() bool { return s.Commit(t.Context(), []state.Commit{update("a", 1, "x")})[0] == nil },
		10*time.Second, 10*time.Millisecond)
	require.Equal(t, uint64(2), version(t, s, "a"))
}

// A server that was stopped and goes on applies what it still had in its
// buffers; the repeat with the same token is recognised.
func TestPausedServer(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	s := open(t, srv.URL(), func(c *state.Config) { c.ReadTimeout = 300 * time.Millisecond })
	commit(t, s, create("a"))
	require.NoError(t, syscall.Kill(srv.PID(), syscall.SIGSTOP))
	err := s.Commit(t.Context(), []state.Commit{update("a", 1, "x")})[0]
	require.ErrorIs(t, err, state.ErrUnavailable)
	require.NoError(t, syscall.Kill(srv.PID(), syscall.SIGCONT))
	require.Eventually(t, func() bool { return s.Commit(t.Context(), []state.Commit{update("a", 1, "x")})[0] == nil },
		10*time.Second, 10*time.Millisecond)
	require.Equal(t, uint64(2), version(t, s, "a"))
}

// At maxmemory new work and progress are refused and change nothing; what ends
// or removes executions goes on, and with it memory comes back.
func TestOutOfMemory(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	s, raw := open(t, srv.URL()), client(t, srv.Addr())
	ballast := []byte(strings.Repeat("x", 200<<10))
	full := func(id engine.ExecutionID) state.Commit {
		c := create(id)
		c.Changes = append(c.Changes, engine.Change{Table: engine.TableRun, Field: "ballast", Value: ballast})
		c.Timers = []engine.TimerChange{{ID: "t", At: 100}}
		return c
	}
	secret, err := s.Secret(t.Context(), "links", []byte("key"))
	require.NoError(t, err)
	empty := infoNumber(t, raw, "memory", "used_memory")
	const n = 40
	for i := range n {
		commit(t, s, full(engine.ExecutionID(fmt.Sprint("e", i))))
	}
	// The limit is half of what is used by now.
	require.NoError(t, raw.ConfigSet(t.Context(), "maxmemory", fmt.Sprint(empty+n*100<<10)).Err())
	err = s.Commit(t.Context(), []state.Commit{full(engine.ExecutionID(fmt.Sprint("e", n)))})[0]
	require.ErrorIs(t, err, state.ErrFull)
	require.Equal(t, uint64(1), s.Stats().Full)
	stored, err := s.Load(t.Context(), []engine.ExecutionID{"e0", engine.ExecutionID(fmt.Sprint("e", n))})
	require.NoError(t, err)
	require.Equal(t, ballast, stored[0].Tables[engine.TableRun]["ballast"], "what is there stays")
	require.Nil(t, stored[1], "what was refused left nothing")

	progress := update("e0", 1, "x")
	progress.Changes = append(progress.Changes, engine.Change{Table: engine.TableRun, Field: "ballast"})
	progress.Questions = []engine.TimerChange{{ID: "e0_1", At: 5}}
	end := finish("e1", 1)
	end.Unsettled, end.NextSweep = true, 1e12
	errs := s.Commit(t.Context(), []state.Commit{progress, create("small"), end, update("e2", 5, "x")})
	require.ErrorIs(t, errs[0], state.ErrFull)
	require.ErrorIs(t, errs[1], state.ErrFull)
	require.NoError(t, errs[2], "an execution can be finished, or cancelled")
	require.ErrorIs(t, errs[3], state.ErrConflict)
	require.Equal(t, uint64(1), version(t, s, "e0"))
	require.ErrorIs(t, s.AppendMemory(t.Context(), "chat", "1", rawMessages("a")), state.ErrFull)
	require.ErrorIs(t, s.PutWorkflow(t.Context(), "hash", []byte("{}")), state.ErrFull)
	require.ErrorIs(t, s.PutNamedWorkflow(t.Context(), state.WorkflowRecord{ID: "a", Hash: "hash"}), state.ErrFull)
	asked, _, err := s.Questions(t.Context(), 0, "")
	require.NoError(t, err)
	require.Empty(t, asked)
	kept, err := s.Secret(t.Context(), "links", []byte("another"))
	require.NoError(t, err)
	require.Equal(t, secret, kept, "what is there can be read")
	_, err = s.Secret(t.Context(), "new", []byte("another"))
	require.ErrorIs(t, err, state.ErrFull)

	due, err := s.ClaimTimers(t.Context(), 100, 500, 1000)
	require.NoError(t, err)
	require.Len(t, due, n, "timers fire, so that waiting work can end")
	stale, err := s.ClaimStale(t.Context(), 5000, 9000, 1000)
	require.NoError(t, err)
	require.Len(t, stale, n-1)

	require.NoError(t, s.Settle(t.Context(), []engine.ExecutionID{"e1"}))
	require.NoError(t, s.Delete(t.Context(), "e1"))
	for i := 2; i < n; i++ {
		id := engine.ExecutionID(fmt.Sprint("e", i))
		commit(t, s, finish(id, 1))
		require.NoError(t, s.Delete(t.Context(), id))
	}
	require.Eventually(t, func() bool { return s.Commit(t.Context(), []state.Commit{progress})[0] == nil }, 5*time.Second, 10*time.Millisecond,
		"memory came back (it is freed in the background)")
	commit(t, s, create("small"))
}

// A server that became a replica refuses writes; the Store says so and goes on
// when it is a master again.
func TestReadOnlyReplica(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	s, raw := open(t, srv.URL()), client(t, srv.Addr())
	commit(t, s, create("a"))
	require.NoError(t, raw.Do(t.Context(), "REPLICAOF", "127.0.0.1", "1").Err())
	require.ErrorIs(t, s.Commit(t.Context(), []state.Commit{update("a", 1, "x")})[0], state.ErrUnavailable)
	require.NoError(t, raw.Do(t.Context(), "REPLICAOF", "NO", "ONE").Err())
	commit(t, s, update("a", 1, "x"))
}

func TestOpenUnreachable(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	addr := srv.Addr()
	srv.Kill()
	for _, url := range []string{"redis://user:hunter2secret@" + addr, "redis://:hunter2secret@" + addr + ",redis://" + addr} {
		_, err := state.Open(t.Context(), state.Config{URL: url})
		require.ErrorIs(t, err, state.ErrUnavailable)
		require.ErrorContains(t, err, addr)
		require.NotContains(t, err.Error(), "hunter2secret")
	}
}

func TestOpenCredentials(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t, "--requirepass", "rightsecret")
	openErr := func(userinfo string) error {
		s, err := state.Open(t.Context(), state.Config{URL: "redis://" + userinfo + srv.Addr()})
		if err == nil {
			_ = s.Close()
		}
		return err
	}
	for _, userinfo := range []string{":hunter2secret@", "someone:hunter2secret@", ""} {
		err := openErr(userinfo)
		require.ErrorIs(t, err, state.ErrCredentials, userinfo)
		require.ErrorContains(t, err, srv.Addr())
		require.NotContains(t, err.Error(), "hunter2secret")
	}
	require.NoError(t, openErr(":rightsecret@"))

	admin := redis.NewClient(&redis.Options{Addr: srv.Addr(), Password: "rightsecret"})
	t.Cleanup(func() { _ = admin.Close() })
	require.NoError(t, admin.Do(t.Context(), "ACL", "SETUSER", "reader", "on", ">readersecret", "~*", "+@read", "+@connection", "+info").Err())
	err := openErr("reader:readersecret@")
	require.ErrorIs(t, err, state.ErrCredentials, "a user that may not run scripts")
}

func TestOpenConfiguration(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]state.Config{
		"no url":              {},
		"only commas":         {URL: " , "},
		"scheme":              {URL: "http://:hunter2secret@host"},
		"slash in password":   {URL: "redis://:hunter2secret/x@host:6379"},
		"digits as password":  {URL: "redis://:123/hunter2secret@host"},
		"database":            {URL: "redis://host/hunter2secret"},
		"cluster with db":     {URL: "redis://a:1/2,redis://b:2/2"},
		"unix socket":         {URL: "unix:///tmp/redis.sock"},
		"prefix":              {URL: "redis://host", Prefix: "a{b}"},
		"negative retention":  {URL: "redis://host", Retention: -1},
		"tiny retention":      {URL: "redis://host", Retention: 1},
		"negative memory":     {URL: "redis://host", MemoryLimit: -1},
		"negative memory ttl": {URL: "redis://host", MemoryExpiry: -1},
	} {
		_, err := state.Open(t.Context(), c)
		require.ErrorContains(t, err, "state: ", name)
		require.NotErrorIs(t, err, state.ErrUnavailable, name)
		require.NotContains(t, err.Error(), "hunter2secret", name)
	}
}

// One address of a Cluster, with or without the scheme, is enough.
func TestOpenClusterByOneAddress(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t, 3)
	s := open(t, cluster.Nodes[2].Addr())
	for i := range 30 {
		commit(t, s, create(engine.ExecutionID(fmt.Sprint("e", i))))
	}
	info, err := s.Inspect(t.Context())
	require.NoError(t, err)
	require.True(t, info.Cluster)
	require.Equal(t, 3, info.Nodes)
}

func TestInspect(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t, "--appendonly", "yes", "--maxmemory", "64mb", "--maxmemory-policy", "allkeys-lru")
	info, err := open(t, srv.URL()).Inspect(t.Context())
	require.NoError(t, err)
	require.True(t, info.AppendOnly)
	require.Equal(t, "allkeys-lru", info.MaxmemoryPolicy)
	require.Equal(t, int64(64<<20), info.Maxmemory)
	require.Greater(t, info.UsedMemory, int64(100<<10))
	require.NotEmpty(t, info.Version)
	require.False(t, info.Cluster)
	require.Equal(t, 1, info.Nodes)
	require.Less(t, info.ClockSkew.Abs(), time.Second)
	require.Positive(t, info.RoundTrip)

	plain, err := open(t, redistest.Shared(t).URL()).Inspect(t.Context())
	require.NoError(t, err)
	require.False(t, plain.AppendOnly)
	require.False(t, plain.DefaultRestricted)
	require.Equal(t, "noeviction", plain.MaxmemoryPolicy)
}

// What Redis may not do as "default" when it loads its file is lost, whoever did it.
func TestInspectFindsARestrictedDefaultUser(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t, "--appendonly", "yes")
	first := redis.NewClient(&redis.Options{Addr: srv.Addr()})
	require.NoError(t, first.ACLSetUser(t.Context(), "us", "on", ">secret", "~*", "&*", "+@all").Err())
	require.NoError(t, first.Close())
	admin := redis.NewClient(&redis.Options{Addr: srv.Addr(), Username: "us", Password: "secret"})
	t.Cleanup(func() { _ = admin.Close() })
	s := open(t, "redis://us:secret@"+srv.Addr()+"/0")
	for rules, restricted := range map[string]bool{"off": false, "-@all": true} {
		require.NoError(t, admin.ACLSetUser(t.Context(), "default", "reset", "~*", "&*", "+@all", rules).Err())
		info, err := s.Inspect(t.Context())
		require.NoError(t, err)
		require.Equal(t, restricted, info.DefaultRestricted, rules)
	}
}

func TestClosedStore(t *testing.T) {
	t.Parallel()
	s := open(t, redistest.Shared(t).URL())
	require.NoError(t, s.Close())
	err := s.Commit(t.Context(), []state.Commit{create("a")})[0]
	require.Error(t, err)
	require.True(t, errors.Is(err, redis.ErrClosed))
}
