package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap/zaptest"

	"github.com/reprise-engine/reprise/internal/embedded"
	"github.com/reprise-engine/reprise/internal/loopback"
)

func TestRun(t *testing.T) {
	var profile bytes.Buffer
	stages := map[string]bool{}
	r, err := Run(context.Background(), Config{
		Executions: 50, Concurrency: 8, Coordinators: 2, Workers: 2, CPUProfile: &profile,
		Progress: func(stage string, done, of int) {
			stages[stage] = true
			if of > 0 && done > of {
				t.Errorf("%s: %d of %d are done", stage, done, of)
			}
		},
	})
	require.NoError(t, err)
	require.Equal(t, 50, r.Executions)
	require.Equal(t, 8, r.Concurrency)
	require.Equal(t, 2, r.Coordinators)
	require.Equal(t, 2, r.Workers)
	require.InEpsilon(t, 50/r.Seconds, r.ExecutionsPerSecond, 0.1)
	require.Positive(t, r.P50)
	require.LessOrEqual(t, r.P50, r.P95)
	require.LessOrEqual(t, r.P95, r.P99)
	require.LessOrEqual(t, r.P99, r.Seconds*1000)
	require.Positive(t, r.CPUPerExecution)
	require.GreaterOrEqual(t, r.CPUPerExecution, r.ProcessCPU)

	// An agent slice, two tools, an agent slice; the commits of a group's events of
	// one execution are one.
	require.InDelta(t, 4, *r.Jobs, 0.2)
	require.GreaterOrEqual(t, *r.RedisCommits, 3.0)
	require.LessOrEqual(t, *r.RedisCommits, 5.2)
	require.Positive(t, *r.RedisRoundTrips)
	require.Greater(t, *r.RedisBytes, 1000.0)
	// 4 jobs are published, confirmed, given out, answered, confirmed and acknowledged.
	require.Greater(t, *r.NATSMessages, 20.0)
	require.Less(t, *r.NATSMessages, 100.0)

	require.True(t, stages["floor"])
	require.Len(t, r.FloorRunsPerSecond, 2)
	require.Positive(t, *r.FloorPerSecond)
	require.InEpsilon(t, r.ExecutionsPerSecond / *r.FloorPerSecond, *r.FloorRatio, 0.05)
	require.Greater(t, *r.FloorNATSMessages, 20.0)
	require.LessOrEqual(t, *r.FloorNATSMessages, *r.NATSMessages)
	require.NotEmpty(t, profile.Bytes())

	var text bytes.Buffer
	r.Print(&text)
	require.Contains(t, text.String(), "floor ratio")
	keys := map[string]any{}
	data, err := json.Marshal(r)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(data, &keys))
	for _, key := range []string{
		"scenario", "executions", "concurrency", "seconds", "executions_per_second", "p50_ms", "p95_ms", "p99_ms",
		"cpu_seconds", "cpu_ms_per_execution", "redis_round_trips_per_execution", "redis_commits_per_execution",
		"nats_messages_per_execution", "floor_executions_per_second", "floor_ratio", "go_version", "cpus",
	} {
		require.Contains(t, keys, key)
		require.NotEmpty(t, keys[key], key)
	}
}

func TestRunForADuration(t *testing.T) {
	r, err := Run(context.Background(), Config{Duration: 300 * time.Millisecond, Concurrency: 4, NoFloor: true, Think: time.Millisecond})
	require.NoError(t, err)
	require.Positive(t, r.Executions)
	require.GreaterOrEqual(t, r.Seconds, 0.3)
	require.GreaterOrEqual(t, r.P50, 2.0, "the model thinks twice")
	require.Nil(t, r.FloorRatio)
}

// TestExternal submits to coordinators that are not the bench's own.
func TestExternal(t *testing.T) {
	own := &bench{config: Config{Coordinators: 1, Workers: 1, WorkerConcurrency: 8, Log: zaptest.NewLogger(t)}}
	defer own.close()
	require.NoError(t, own.open(context.Background()))
	r, err := Run(context.Background(), Config{Executions: 20, Concurrency: 4, External: true, NATSURL: own.nats})
	require.NoError(t, err)
	require.Equal(t, 20, r.Executions)
	require.Zero(t, r.Coordinators)
	require.Nil(t, r.RedisCommits)
	require.Nil(t, r.FloorRatio)
}

// TestFailureIsTold measures a workflow whose model cannot be reached.
func TestFailureIsTold(t *testing.T) {
	b := &bench{config: Config{Executions: 5, Concurrency: 2, Coordinators: 1, Workers: 1, WorkerConcurrency: 8, Log: zaptest.NewLogger(t)}}
	defer b.close()
	b.config.Progress = func(string, int, int) {}
	require.NoError(t, b.open(context.Background()))
	b.client.document = bytes.ReplaceAll(b.client.document, []byte(`"mock-llm"`), []byte(`"no such credential"`))
	b.client.document = bytes.ReplaceAll(b.client.document, []byte(`"Mock LLM"`), []byte(`"unknown"`))
	_, err := b.run(context.Background())
	require.ErrorIs(t, err, ErrFailed)
	require.ErrorContains(t, err, agentNode)
	require.ErrorContains(t, err, "credential")
}

func TestConfigIsChecked(t *testing.T) {
	for name, c := range map[string]struct {
		config Config
		want   string
	}{
		"unknown scenario":       {Config{Scenario: "chat"}, `scenario "chat" is not known: use agent, scale`},
		"both lengths":           {Config{Executions: 1, Duration: 1}, "exclude each other"},
		"too many":               {Config{Executions: maxExecutions + 1}, "executions 1000001"},
		"too long":               {Config{Duration: time.Hour}, "duration 1h0m0s"},
		"too much at once":       {Config{Concurrency: 5000}, "concurrency 5000"},
		"negative":               {Config{Workers: -1}, "workers -1"},
		"NATS elsewhere":         {Config{NATSURL: "nats://user:secret@10.1.2.3:4222"}, "NATS server at 10.1.2.3"},
		"one server elsewhere":   {Config{NATSURL: "nats://localhost:4222,example.com:4222"}, "NATS server at example.com"},
		"Redis elsewhere":        {Config{RedisURL: "redis://:secret@redis.example.com/0"}, "Redis server at redis.example.com"},
		"external without a URL": {Config{External: true}, "need the url"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Run(context.Background(), c.config)
			require.ErrorContains(t, err, c.want)
			require.NotContains(t, err.Error(), "secret")
		})
	}
	for _, list := range []string{"", "nats://localhost:4222", "127.0.0.1:6379,127.0.0.2:6379", "redis://[::1]:6379/0"} {
		require.NoError(t, loopback.Check("a", list), list)
	}
}

func TestPercentile(t *testing.T) {
	var sorted []time.Duration
	for i := 1; i <= 100; i++ {
		sorted = append(sorted, time.Duration(i)*time.Millisecond)
	}
	require.Equal(t, 50.0, percentile(sorted, 0.50))
	require.Equal(t, 99.0, percentile(sorted, 0.99))
	require.Equal(t, 1.0, percentile(sorted[:1], 0.99))
	require.Equal(t, 2.0, percentile(sorted[:2], 0.95))
}

func TestCPUSeconds(t *testing.T) {
	seconds, ok := cpuSeconds("# CPU\r\nused_cpu_sys:1.5\r\nused_cpu_user:2.25\r\nused_cpu_sys_children:9\r\n")
	require.True(t, ok)
	require.Equal(t, 3.75, seconds)
	_, ok = cpuSeconds("# CPU\r\n")
	require.False(t, ok)
	_, ok = cpuSeconds("used_cpu_sys:x\r\n")
	require.False(t, ok)
}

// TestFloorDoesItsWork counts what the floor stores and sends.
func TestFloorDoesItsWork(t *testing.T) {
	nats, err := embedded.StartNATS("", embedded.NATSOptions{})
	require.NoError(t, err)
	defer nats.Shutdown()
	server, err := embedded.StartRedis("", embedded.RedisOptions{TCP: true})
	require.NoError(t, err)
	defer server.Shutdown()
	rdb, err := loopback.OpenRedis(context.Background(), server.URL)
	require.NoError(t, err)
	defer func() { _ = rdb.Close() }()
	calls := func() int { return commandCalls(t, rdb.Info(context.Background(), "commandstats").Val(), "evalsha") }
	before := calls()
	sizes := floorSizes{submitBytes: 2000, jobBytes: 3000, resultBytes: 1000, commitBytes: 1500}
	f, err := runFloor(context.Background(), nats.URL, rdb, sizes, 40, 7)
	require.NoError(t, err)
	require.Positive(t, f.perSecond)
	require.Equal(t, 40*5, calls()-before, "five commits an execution")
	// In and out: submission 2+2, jobs 4 and their PubAcks 4, deliveries 4, results 8 and
	// their answers 8, acknowledgements 4, the notice of the end 2; pulls come on top.
	require.GreaterOrEqual(t, f.messages, 38.0)
	require.Less(t, f.messages, 42.0)
	require.Empty(t, rdb.Keys(context.Background(), "*").Val(), "nothing stays behind")

	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err = runFloor(ctx, nats.URL, rdb, sizes, 40, 7)
	require.ErrorIs(t, err, context.Canceled)
}

// TestWaiting: executions that wait for a person hold next to no memory of the
// process, and neither others nor their own answers have to wait for them.
func TestWaiting(t *testing.T) {
	c := Config{Executions: 2000, idle: 200 * time.Millisecond}
	r, err := RunWaiting(t.Context(), c)
	require.NoError(t, err)
	require.Equal(t, 2000, r.Waiting)
	// A state in memory would take some kilobytes.
	require.Less(t, r.HeapPerWaiting, 1000.0)
	require.Less(t, r.PlainMax, 1000.0)
	require.Less(t, r.AnswerMax, 1000.0)
	var out bytes.Buffer
	r.Print(&out)
	require.Contains(t, out.String(), "2000 executions wait for a person")

	_, err = RunWaiting(t.Context(), Config{Duration: time.Second})
	require.Error(t, err)
}
