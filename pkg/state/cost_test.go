package state_test

import (
	"fmt"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/reprise-engine/reprise/internal/redistest"
	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/state"
)

var callsOf = regexp.MustCompile(`cmdstat_([a-z|]+):calls=(\d+)`)

// commandCounts are the commands a server ran so far, those in scripts included.
func commandCounts(t *testing.T, raw *redis.Client) map[string]int {
	t.Helper()
	text, err := raw.Info(t.Context(), "commandstats").Result()
	require.NoError(t, err)
	out := map[string]int{}
	for _, m := range callsOf.FindAllStringSubmatch(text, -1) {
		out[m[1]], _ = strconv.Atoi(m[2])
	}
	delete(out, "info")
	return out
}

func infoNumber(t *testing.T, raw *redis.Client, section, name string) int64 {
	t.Helper()
	text, err := raw.Info(t.Context(), section).Result()
	require.NoError(t, err)
	_, rest, ok := strings.Cut(text, "\n"+name+":")
	require.True(t, ok, name)
	n, err := strconv.ParseInt(strings.TrimSpace(strings.SplitN(rest, "\n", 2)[0]), 10, 64)
	require.NoError(t, err)
	return n
}

// A step costs the same in run 10 and in run 10,000: commands on the server,
// bytes on the wire, and bytes in the append-only file.
func TestCommitCostDoesNotGrow(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t, "--appendonly", "yes", "--appendfsync", "no", "--auto-aof-rewrite-percentage", "0")
	raw := client(t, srv.Addr())
	proxy := redistest.StartProxy(t, srv.Addr())
	s := open(t, proxy.URL())
	record := []byte(strings.Repeat("r", 2048))
	step := func(version int) state.Commit {
		return state.Commit{
			Execution: "a", Version: uint64(version), Token: fmt.Sprintf("%016d", version), Status: engine.StatusRunning, At: 1, NextSweep: 1_700_000_000_000,
			Changes: []engine.Change{
				{Table: engine.TableMeta, Field: "progress", Value: record[:200]},
				{Table: engine.TableStack, Field: "5", Value: record[:100]}, {Table: engine.TableStack, Field: "4"},
				{Table: engine.TableRun, Field: fmt.Sprintf("%08d:Node", version), Value: record},
				{Table: engine.TableOpen, Field: fmt.Sprintf("job:%08d", version), Value: record[:100]},
				{Table: engine.TableOpen, Field: fmt.Sprintf("job:%08d", version-1)},
			},
			Timers: []engine.TimerChange{{ID: "timeout", At: 1_700_000_000_000 + int64(version)}},
		}
	}
	commit(t, s, step(0))
	type cost struct {
		commands          map[string]int
		requests, answers int64
		appendOnly        int64
	}
	measure := func(version int) cost {
		var c cost
		before, aof := commandCounts(t, raw), infoNumber(t, raw, "persistence", "aof_current_size")
		out, in := proxy.Bytes()
		commit(t, s, step(version))
		out2, in2 := proxy.Bytes()
		c.requests, c.answers = out2-out, in2-in
		c.appendOnly = infoNumber(t, raw, "persistence", "aof_current_size") - aof
		c.commands = commandCounts(t, raw)
		for name, n := range before {
			if c.commands[name] -= n; c.commands[name] == 0 {
				delete(c.commands, name)
			}
		}
		return c
	}
	for version := 1; version < 10; version++ {
		commit(t, s, step(version))
	}
	early := measure(10)
	var batch []state.Commit
	for version := 11; version < 10_000; version++ {
		if batch = append(batch, step(version)); len(batch) == 200 {
			commit(t, s, batch...)
			batch = batch[:0]
		}
	}
	commit(t, s, batch...)
	late := measure(10_000)
	t.Logf("run 10: %+v", early)
	t.Logf("run 10,000: %+v", late)
	require.Equal(t, early.commands, late.commands)
	require.Equal(t, 1, late.commands["evalsha"])
	require.NotContains(t, late.commands, "hgetall")
	require.Equal(t, 2, late.commands["zadd"], "the next sweep and the timer; questions cost only when there are any")
	require.Equal(t, early.answers, late.answers)
	// The version has three digits more, in two places, and their length may take one.
	require.InDelta(t, early.requests, late.requests, 10)
	require.InDelta(t, early.appendOnly, late.appendOnly, 10)
	require.Less(t, late.appendOnly, int64(1.5*2600), "little beside what changed")
}

// Many executions are one round trip.
func TestBatchIsOneRoundTrip(t *testing.T) {
	t.Parallel()
	s := open(t, redistest.Shared(t).URL())
	var batch []state.Commit
	var ids []engine.ExecutionID
	for i := range 64 {
		ids = append(ids, engine.ExecutionID(fmt.Sprint("e", i)))
		batch = append(batch, create(ids[i]))
	}
	before := s.Stats()
	commit(t, s, batch...)
	after := s.Stats()
	require.Equal(t, uint64(1), after.RoundTrips-before.RoundTrips)
	require.Equal(t, uint64(64), after.Commands-before.Commands)
	require.Equal(t, uint64(64), after.Commits-before.Commits)
	_, err := s.Load(t.Context(), ids)
	require.NoError(t, err)
	require.Equal(t, uint64(1), s.Stats().RoundTrips-after.RoundTrips)
}

// An idle look for timers is one round trip of reads, whatever is stored.
func TestIdleLookForTimers(t *testing.T) {
	t.Parallel()
	s := open(t, redistest.Shared(t).URL())
	before := s.Stats()
	due, err := s.ClaimTimers(t.Context(), 1000, 2000, 100)
	require.NoError(t, err)
	require.Empty(t, due)
	require.Equal(t, uint64(1), s.Stats().RoundTrips-before.RoundTrips)
}

// A waiting execution takes little more memory than its data, so that a million
// of them fit into a few GB, with the server settings that the package comment names.
func TestWaitingExecutionIsSmall(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t, "--hash-max-listpack-value", "1024", "--hash-max-listpack-entries", "64")
	raw := client(t, srv.Addr())
	s := open(t, srv.URL(), func(c *state.Config) { c.Prefix = "reprise" })
	const n, batchSize = 4000, 100
	data := 0
	change := func(table engine.Table, field string, size int) engine.Change {
		data += len(field) + size
		return engine.Change{Table: table, Field: field, Value: []byte(strings.Repeat("v", size))}
	}
	// The server allocates its own tables, and the shards' sets, with the first ones.
	empty := int64(0)
	for i := 0; i < 2*n; i += batchSize {
		if i == n {
			empty, data = infoNumber(t, raw, "memory", "used_memory"), 0
		}
		var first, second []state.Commit
		for j := range batchSize {
			id := engine.ExecutionID(fmt.Sprintf("01234567-89ab-cdef-0123-%012d", i+j))
			c := state.Commit{Execution: id, Status: engine.StatusRunning, At: 1_700_000_000_000, WorkflowID: "w1", WorkflowName: "Orders"}
			c.Changes = []engine.Change{change(engine.TableMeta, "identity", 240), change(engine.TableMeta, "progress", 150)}
			w := state.Commit{Execution: id, Version: 1, Status: engine.StatusWaiting, At: 1_700_000_000_000, NextSweep: 1_700_000_000_000}
			w.Changes = []engine.Change{
				change(engine.TableRun, "0:Trigger", 240), change(engine.TableStack, "1", 150), change(engine.TableOpen, "job:1", 240),
			}
			w.Timers = []engine.TimerChange{{ID: "wait:Approval", At: 1_700_000_000_000 + int64(i)}}
			first, second = append(first, c), append(second, w)
		}
		commit(t, s, first...)
		commit(t, s, second...)
	}
	each := (infoNumber(t, raw, "memory", "used_memory") - empty) / n
	t.Logf("%d bytes each, of which %d are its fields", each, data/n)
	require.Less(t, each, int64(data/n)*3/2+1024)
}

func benchmarkCommit(b *testing.B, batchSize int) {
	s := open(b, redistest.Start(b, "--appendonly", "yes").URL())
	record := []byte(strings.Repeat("r", 2048))
	batch := make([]state.Commit, batchSize)
	for i := range batch {
		batch[i] = create(engine.ExecutionID(fmt.Sprint("e", i)))
	}
	commit(b, s, batch...)
	b.ReportAllocs()
	b.ResetTimer()
	version := uint64(1)
	for n := 0; n < b.N; n += batchSize {
		for i := range batch {
			batch[i] = state.Commit{
				Execution: batch[i].Execution, Version: version, Status: engine.StatusRunning, At: 1, NextSweep: int64(version),
				Changes: []engine.Change{
					{Table: engine.TableMeta, Field: "progress", Value: record[:200]},
					{Table: engine.TableStack, Field: strconv.FormatUint(version, 10), Value: record[:100]},
					{Table: engine.TableStack, Field: strconv.FormatUint(version-1, 10)},
					{Table: engine.TableRun, Field: strconv.FormatUint(version%4, 10) + ":Node", Value: record},
					{Table: engine.TableOpen, Field: "job:" + strconv.FormatUint(version, 10), Value: record[:100]},
					{Table: engine.TableOpen, Field: "job:" + strconv.FormatUint(version-1, 10)},
				},
			}
		}
		commit(b, s, batch...)
		version++
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N), "us/commit")
}

func BenchmarkCommitOne(b *testing.B) { benchmarkCommit(b, 1) }
func BenchmarkCommit64(b *testing.B)  { benchmarkCommit(b, 64) }

// BenchmarkIdleClaim is the cost of reading all shards for timers when none is due.
func BenchmarkIdleClaim(b *testing.B) {
	srv := redistest.Start(b)
	s := open(b, srv.URL())
	for i := range 2000 {
		c := create(engine.ExecutionID(fmt.Sprint("e", i)))
		c.Timers = []engine.TimerChange{{ID: "t", At: 1e15}}
		commit(b, s, c)
	}
	runtime.GC()
	b.ResetTimer()
	began := time.Now()
	for range b.N {
		if _, err := s.ClaimTimers(b.Context(), 1, 2, 100); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(time.Since(began).Microseconds())/float64(b.N), "us/look")
}
