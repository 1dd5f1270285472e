package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

// envChild makes this test program a process of a fleet.
const envChild = "BENCH_TEST_CHILD"

func TestMain(m *testing.M) {
	if os.Getenv(envChild) != "" {
		if err := Child(context.Background(), os.Args[len(os.Args)-1], os.Stdin, os.Stdout); err != nil {
			_, _ = os.Stderr.WriteString(err.Error())
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// fleetTest is a configuration whose processes are this program.
func fleetTest(t *testing.T, scenario string) Config {
	t.Helper()
	t.Setenv(envChild, "1")
	return Config{Scenario: scenario, Program: []string{os.Args[0]}, Concurrency: 8, idle: 200 * time.Millisecond}
}

// measured runs a scenario and looks at what all reports have in common.
func measured[R Result](t *testing.T, c Config) R {
	t.Helper()
	r, err := Measure(t.Context(), c)
	require.NoError(t, err)
	e := r.environment()
	require.NotEmpty(t, e.GoVersion)
	require.NotEmpty(t, e.RedisVersion)
	require.NotEmpty(t, e.NATSVersion)
	require.Positive(t, e.CPUs)
	require.Positive(t, e.SpeedBefore)
	require.Positive(t, e.SpeedAfter)
	var out bytes.Buffer
	r.Print(&out)
	require.Contains(t, out.String(), "scenario "+c.Scenario)
	require.Contains(t, out.String(), e.GoVersion)
	for _, table := range r.Tables() {
		require.NotEmpty(t, table.Rows)
		for _, row := range table.Rows {
			require.Len(t, row, len(table.Columns))
		}
	}
	// What is written can be read again, and is the same.
	data, err := json.Marshal(r)
	require.NoError(t, err)
	again, err := Parse(data)
	require.NoError(t, err)
	require.IsType(t, r, again)
	same, err := json.Marshal(again)
	require.NoError(t, err)
	require.JSONEq(t, string(data), string(same))
	return r.(R)
}

func TestScale(t *testing.T) {
	c := fleetTest(t, ScenarioScale)
	c.Executions, c.WorkerCounts, c.CoordinatorCounts, c.Procs = 30, []int{1, 2}, []int{2}, []int{1}
	r := measured[*ScaleReport](t, c)
	names := []string{}
	for _, row := range r.Rows {
		names = append(names, row.Name)
		require.Equal(t, 30*scaleRounds, row.Executions)
		require.Positive(t, row.PerSecond)
		require.Positive(t, row.PerCPUSecond)
		require.Positive(t, row.Ratio)
		require.Positive(t, row.CPURatio)
		require.Positive(t, row.Coordinator)
		require.Positive(t, row.Worker)
		require.Positive(t, row.NATS)
		require.LessOrEqual(t, row.P50, row.P99)
	}
	require.Equal(t, []string{
		"1 coordinator, 1 worker", "1 coordinator, 2 workers", "2 coordinators, 2 workers", "1 coordinator, 1 worker, GOMAXPROCS 1",
	}, names)
	require.Equal(t, 1.0, r.Rows[0].Ratio)
}

// TestBurst: a coordinator that may hold back next to nothing refuses while its workers are busy,
// and nothing is lost for that.
func TestBurst(t *testing.T) {
	c := fleetTest(t, ScenarioBurst)
	c.Executions, c.Backlog, c.WorkerConcurrency, c.Think = 3000, 1, 2, time.Millisecond
	r := measured[*BurstReport](t, c)
	require.Equal(t, 3000, r.Succeeded)
	require.Zero(t, r.Lost)
	require.Positive(t, r.Refused)
	require.Equal(t, r.Submissions+r.Refused+r.NoAnswer, r.Tries)
	require.LessOrEqual(t, r.AcceptSeconds, r.Seconds+0.1)
	require.LessOrEqual(t, r.AcceptP50, r.P99)
	require.LessOrEqual(t, r.P99, r.Seconds*1000+1)
}

func TestInflight(t *testing.T) {
	c := fleetTest(t, ScenarioInflight)
	c.Executions, c.Workers = 400, 2
	r := measured[*InflightReport](t, c)
	require.Equal(t, 2, r.Workers)
	require.Positive(t, r.WorkerHeap, "a job that thinks is in memory")
	require.Positive(t, *r.Redis)
	require.Positive(t, r.Begun)
	require.Positive(t, r.Ended)
	require.Zero(t, r.Lost)
}

func TestSteps(t *testing.T) {
	c := fleetTest(t, ScenarioSteps)
	c.Executions, c.Repeats = 400, 1
	r := measured[*StepsReport](t, c)
	require.Equal(t, 20, r.Window)
	require.Len(t, r.Rows, 3)
	require.Equal(t, []int{10, 40, 380}, []int{r.Rows[0].Step, r.Rows[1].Step, r.Rows[2].Step})
	for _, row := range r.Rows {
		require.Positive(t, row.P50)
		require.Positive(t, row.CPU)
		require.InDelta(t, row.CPU, row.Coordinator+row.Worker+row.RedisCPU, row.CPU, "NATS is the rest")
		// The step's records, and not those of the steps before.
		require.Greater(t, row.RedisBytes, 300.0)
		require.Less(t, row.RedisBytes, 6000.0)
	}
	require.InDelta(t, 1, r.BytesRatio, 0.5, "bytes do not depend on the machine")
}

func TestTools(t *testing.T) {
	c := fleetTest(t, ScenarioTools)
	c.Executions, c.ToolCounts = 2, []int{3, 30}
	r := measured[*ToolsReport](t, c)
	require.Len(t, r.Rows, 2)
	for i, n := range c.ToolCounts {
		require.Equal(t, n, r.Rows[i].Tools)
		require.Positive(t, r.Rows[i].P50)
		require.Positive(t, r.Rows[i].CPU)
		require.Positive(t, r.Rows[i].RedisBytes)
		require.GreaterOrEqual(t, r.Rows[i].Commits, 3.0)
	}
}

func TestLatency(t *testing.T) {
	c := fleetTest(t, ScenarioLatency)
	c.Duration = time.Second
	r := measured[*LatencyReport](t, c)
	require.Positive(t, r.Capacity)
	require.InDelta(t, r.Capacity/2, r.Offered, 0.1)
	require.Positive(t, r.Executions)
	require.LessOrEqual(t, r.P50, r.P95)
	require.LessOrEqual(t, r.P95, r.P99)
	require.LessOrEqual(t, r.P99, r.Max)
	require.Equal(t, r.P99 < 50, r.Met)
}

func TestFinished(t *testing.T) {
	c := fleetTest(t, ScenarioFinished)
	c.Executions, c.Retention = 60, 6*time.Second
	r := measured[*FinishedReport](t, c)
	require.Greater(t, r.RedisBytes, 500.0)
	require.GreaterOrEqual(t, r.RedisKeys, 2.0)
	require.GreaterOrEqual(t, r.GoneSeconds, 0.0)
	require.Less(t, r.KeysLeft, int64(10), "executions leave nothing")
	require.Zero(t, r.MessagesLeft)
}

func TestCold(t *testing.T) {
	c := fleetTest(t, ScenarioCold)
	c.Repeats = 1
	r := measured[*ColdReport](t, c)
	require.Len(t, r.Rows, len(coldKinds()))
	for _, row := range r.Rows {
		require.Equal(t, 1, row.Starts)
		require.Positive(t, row.Accepted)
		require.GreaterOrEqual(t, row.Result, row.Accepted/2)
		require.LessOrEqual(t, row.Result, row.End)
		require.LessOrEqual(t, row.Result, row.ResultMax)
	}
}

// TestProfiles: each process of a fleet has its own file.
func TestProfiles(t *testing.T) {
	c := fleetTest(t, ScenarioTools)
	c.Executions, c.ToolCounts, c.ProfileFile = 1, []int{2}, t.TempDir()+"/cpu"
	measured[*ToolsReport](t, c)
	for _, name := range []string{"coordinator1", "worker1"} {
		info, err := os.Stat(c.ProfileFile + "." + name)
		require.NoError(t, err)
		require.Positive(t, info.Size())
	}
}

// TestChildEndsWithItsInput: a process of a fleet does not outlive who started it.
func TestChildEndsWithItsInput(t *testing.T) {
	t.Setenv(envChild, "1")
	t.Setenv(envNATSDir, t.TempDir())
	c, err := startChild([]string{os.Args[0]}, "nats", roleNATS, []string{envNATSDir + "=" + t.TempDir()})
	require.NoError(t, err)
	hello, err := c.hello(t.Context())
	require.NoError(t, err)
	require.True(t, strings.HasPrefix(hello.URL, "nats://127.0.0.1:"), hello.URL)
	_, err = c.ask(t.Context(), "the weather")
	require.ErrorContains(t, err, "no question")
	c.stop()
	require.Zero(t, c.cmd.ProcessState.ExitCode())
	_, err = c.ask(t.Context(), askUsage)
	require.Error(t, err)
}

// TestChildThatCannotStartSaysWhy.
func TestChildThatCannotStartSaysWhy(t *testing.T) {
	c := fleetTest(t, ScenarioTools)
	c.Program = []string{"/bin/false"}
	_, err := Measure(t.Context(), c)
	require.ErrorContains(t, err, "NATS server does not answer")
	c.Program = nil
	_, err = Measure(t.Context(), c)
	require.ErrorContains(t, err, "program")

	out, err := exec.Command(os.Args[0], "cook").CombinedOutput()
	require.Error(t, err)
	require.Contains(t, string(out), `role "cook"`)
}

// TestFleetFailureIsTold: tools that do not do what they have to end the measurement.
func TestFleetFailureIsTold(t *testing.T) {
	c := fleetTest(t, ScenarioTools)
	c, err := c.withDefaults()
	require.NoError(t, err)
	f, err := openFleet(t.Context(), &c, fleetConfig{coordinators: 1, workers: 1, slots: 4})
	require.NoError(t, err)
	defer f.close()
	document, err := agentWorkflow()
	require.NoError(t, err)
	cl, err := f.client(bytes.ReplaceAll(document, []byte(`"mock-llm"`), []byte(`"no such credential"`)))
	require.NoError(t, err)
	cl.document = bytes.ReplaceAll(cl.document, []byte(`"Mock LLM"`), []byte(`"unknown"`))
	_, _, err = cl.one(t.Context())
	require.ErrorContains(t, err, "credential")
}
