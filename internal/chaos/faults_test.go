package chaos

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reprise-engine/reprise/pkg/engine"
)

// The same seed plans the same faults, and every kind comes before one comes again.
func TestPlan(t *testing.T) {
	plan := func(seed uint64, kinds []string) []blow {
		p := newPlanner(seed, kinds, time.Second)
		var all []blow
		for range 50 {
			all = append(all, p.next())
		}
		return all
	}
	require.Equal(t, plan(1, Kinds()), plan(1, []string{Pause, KillRedis, KillNATS, KillCoordinator, KillWorker}))
	require.NotEqual(t, plan(1, Kinds()), plan(2, Kinds()))
	seen := map[string]int{}
	for _, b := range plan(3, Kinds())[:len(Kinds())] {
		require.InDelta(t, time.Second, b.after, float64(300*time.Millisecond))
		require.LessOrEqual(t, b.down, time.Second)
		kind := b.role
		if b.pause {
			kind = Pause
		}
		seen[kind]++
	}
	for _, kind := range Kinds() {
		require.Equal(t, 1, seen[kind], kind)
	}
	for _, b := range plan(4, []string{Pause, KillWorker}) {
		require.Equal(t, KillWorker, b.role, "only what may be killed is paused")
	}
}

// A recovery is measured from the fault to the first end after it, and to the last end of
// what was in flight then.
func TestRecovery(t *testing.T) {
	l := newLoad("run")
	told := 0
	l.onNext = func(*Fault) { told++ }
	start := time.Unix(1000, 0)
	at := func(s float64) time.Time { return start.Add(time.Duration(s * float64(time.Second))) }
	begin := func(id string) *order {
		o := &order{id: engine.ExecutionID(id), shape: shapes()["plain"], begun: start}
		l.flying[o] = struct{}{}
		return o
	}
	a, b := begin("a"), begin("b")
	kill := &Fault{Role: KillWorker, at: at(1)}
	l.struck(kill)
	c := begin("c") // after the fault
	require.Equal(t, 2, kill.InFlight)
	l.end(a, at(0.5), "", lost{}) // ended before the fault, known only now
	require.Zero(t, kill.next)
	l.end(c, at(3), "", lost{})
	require.Equal(t, 2*time.Second, kill.next)
	pauses := &Fault{Role: KillRedis, Paused: true, at: at(4)}
	l.struck(pauses)
	l.end(b, at(8), "", lost{})
	l.end(b, at(9), "", lost{}) // seen twice
	require.Equal(t, 2, told)
	require.Equal(t, 3, l.finished)
	never := &Fault{Role: KillWorker, at: at(10), open: 1}

	got := recoveries([]*Fault{kill, pauses, never})
	require.Len(t, got, 2)
	two, four, seven := 2.0, 4.0, 7.0
	require.Equal(t, Recovery{Role: KillWorker, Count: 2, NextMedian: &two, NextMax: &two, AllMedian: &seven, AllMax: &seven}, got[0])
	require.Equal(t, Recovery{Role: KillRedis, Paused: true, Count: 1, NextMedian: &four, NextMax: &four, AllMedian: &four, AllMax: &four}, got[1])

	data, err := json.Marshal([]*Fault{kill, never})
	require.NoError(t, err)
	var told2 []map[string]any
	require.NoError(t, json.Unmarshal(data, &told2))
	require.InDelta(t, 2.0, told2[0]["next_execution_finished_seconds"], 0.001)
	require.InDelta(t, 7.0, told2[0]["all_in_flight_finished_seconds"], 0.001)
	require.Nil(t, told2[1]["next_execution_finished_seconds"])
	require.Nil(t, told2[1]["all_in_flight_finished_seconds"])
}

func TestMedianAndMax(t *testing.T) {
	median, most := medianAndMax(nil)
	require.Nil(t, median)
	require.Nil(t, most)
	median, most = medianAndMax([]time.Duration{5 * time.Second, time.Second, 2 * time.Second})
	require.InDelta(t, 2.0, *median, 0)
	require.InDelta(t, 5.0, *most, 0)
}

func TestConfig(t *testing.T) {
	good := Config{Program: []string{"x"}}
	c, err := good.withDefaults()
	require.NoError(t, err)
	require.Equal(t, Kinds(), c.Kill)
	for name, test := range map[string]struct {
		spoil func(c *Config)
		want  string
	}{
		"too long":        {func(c *Config) { c.Duration = time.Hour }, "duration 1h0m0s: use 1s to 10m0s"},
		"too often":       {func(c *Config) { c.Every = time.Millisecond }, "every 1ms"},
		"too many":        {func(c *Config) { c.Workers = 1000 }, "workers 1000: use 1 to 16"},
		"negative":        {func(c *Config) { c.Coordinators = -1 }, "coordinators -1"},
		"too fast":        {func(c *Config) { c.Rate = 1e6 }, "rate 1e+06"},
		"half of servers": {func(c *Config) { c.NATSURL = "nats://127.0.0.1:4222" }, "both NATS and Redis"},
		"unknown kind":    {func(c *Config) { c.Kill = []string{"moon"} }, `kill "moon": use worker, coordinator, nats, redis, pause`},
		"no kind":         {func(c *Config) { c.Kill = []string{} }, "kill nothing"},
		"elsewhere": {func(c *Config) {
			c.NATSURL, c.RedisURL = "nats://127.0.0.1:4222", "redis://u:secret@10.0.0.1:6379"
		}, "runs on loopback addresses only"},
		"given and to be killed": {func(c *Config) {
			c.NATSURL, c.RedisURL, c.Kill = "nats://127.0.0.1:4222", "redis://localhost", []string{KillRedis}
		}, `kill "redis": only what was started here`},
	} {
		t.Run(name, func(t *testing.T) {
			c := good
			test.spoil(&c)
			_, err := c.withDefaults()
			require.ErrorContains(t, err, test.want)
			require.NotContains(t, err.Error(), "secret")
		})
	}
	c = good
	c.NATSURL, c.RedisURL = "nats://127.0.0.1:4222", "redis://localhost"
	c, err = c.withDefaults()
	require.NoError(t, err)
	require.Equal(t, []string{KillWorker, KillCoordinator, Pause}, c.Kill, "what was given is left alone")

	t.Setenv("PATH", "")
	said := ""
	c = good
	c.Say = func(line string) { said = line }
	c, err = c.withDefaults()
	require.NoError(t, err)
	require.NotContains(t, c.Kill, KillRedis)
	require.Contains(t, said, "no redis-server on PATH")
	c.Kill = []string{KillRedis}
	_, err = c.withDefaults()
	require.ErrorContains(t, err, "install it")
}
