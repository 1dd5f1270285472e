package cli

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"go.uber.org/zap/zapcore"

	"github.com/reprise-engine/reprise/internal/bench"
	"github.com/reprise-engine/reprise/internal/service"
)

// benchFlags are what people say about a measurement.
type benchFlags struct {
	servers         servers
	config          bench.Config
	output, profile string
	compare         bool

	workers, coordinators, procs, toolCounts []int
}

func benchCommand() *cobra.Command {
	var b benchFlags
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure what executions cost: rates, latencies, memory, growth.",
		Long: `Measure reprise on this machine. "reprise bench list" names the scenarios; each has a default size
that takes less than three minutes, and prints text or, with --output json, the same
figures under names that stay what they are.

The scenario "agent", the default, is how many agent executions per second coordinators and
workers in this process do, compared with the floor: the same NATS and Redis traffic without an
engine, on the same servers, run before and after. An execution is a manual trigger and an Agent
whose model (a mock) calls two calculators at the same time and then answers: 4 jobs, 5 commits.

The other scenarios but "waiting" start coordinators, workers, NATS and Redis as processes of
their own; the model is a mock within the workers. --nats and --redis use running servers
instead (loopback addresses only; they keep what finished for a day).

With --external, only "agent" and only submits: coordinators and workers that run elsewhere on
--nats do the work, with a credential of the id "mock-llm" that leads to a "reprise mock-llm".
What they use is not counted, and there is no floor.

Machines and minutes differ. Compare what was measured in one run, or several pairs of
reports that were measured in turn, with "reprise bench compare".`,
		Example: `  reprise bench
  reprise bench --executions 10000 --concurrency 256 --output json
  reprise bench --duration 30s --cpuprofile cpu.out && go tool pprof -top cpu.out
  reprise bench list
  reprise bench --scenario scale --workers 1,2,4 --coordinators 1,2
  reprise bench --scenario burst --executions 20000 --max-backlog 5000
  reprise bench --scenario steps --cpuprofile steps.out   # one file for each process
  reprise bench --scenario latency --output json > after.json
  reprise bench compare before.json after.json`,
		Args: func(cmd *cobra.Command, args []string) error {
			if b.compare {
				return cobra.ExactArgs(2)(cmd, args)
			}
			return cobra.NoArgs(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if b.compare {
				return compareReports(cmd, args[0], args[1], b.output)
			}
			return b.run(cmd)
		},
	}
	f, c := cmd.Flags(), &b.config
	f.StringVar(&c.Scenario, "scenario", "agent", "what is measured: "+strings.Join(bench.Scenarios(), ", "))
	f.IntVar(&c.Executions, "executions", 0, "executions to measure, or the size of the scenario (default: see reprise bench list)")
	f.DurationVar(&c.Duration, "duration", 0, "measure for this long instead, at most 10m")
	f.IntVar(&c.Concurrency, "concurrency", 64, "executions in flight")
	f.IntSliceVar(&b.coordinators, "coordinators", nil, "coordinators to start (default 1); a list for the scenario scale (default 1,2)")
	f.IntSliceVar(&b.workers, "workers", nil, "workers to start (default 1); a list for the scenario scale (default 1,2,4)")
	f.IntSliceVar(&b.procs, "gomaxprocs", nil, "GOMAXPROCS of coordinator and worker in the scenario scale (default 1,2)")
	f.IntSliceVar(&b.toolCounts, "tools", nil, "numbers of tools in the scenario tools (default 5,50,500)")
	f.IntVar(&c.WorkerConcurrency, "worker-concurrency", 128, "jobs a worker runs at once")
	f.IntVar(&c.Backlog, "max-backlog", 0, "jobs that a coordinator holds back before it refuses, in the scenario burst (default: that of coordinators)")
	f.DurationVar(&c.Retention, "retention", 45*time.Second, "how long executions are kept in the scenario finished")
	f.IntVar(&c.Repeats, "repeats", 0, "executions in the scenario steps (default 3), starts in cold (default 5)")
	f.BoolVar(&c.ModelOverHTTP, "model-http", false, "have the mock model of the scenario agent answer over HTTP instead of in memory")
	f.DurationVar(&c.Think, "think", 0, "time the mock model thinks before every answer")
	f.BoolVar(&c.External, "external", false, "only submit: coordinators and workers run elsewhere")
	f.BoolVar(&c.NoFloor, "no-floor", false, "leave the floor out")
	f.StringVar(&b.output, "output", string(outputText), "text or json")
	f.StringVar(&b.profile, "cpuprofile", "", "file for a CPU profile of what is measured; with several processes, the beginning of the names of their files")
	f.BoolVar(&b.compare, "compare", false, "compare two reports instead: reprise bench --compare a.json b.json")
	b.servers.natsFlag(cmd, "", "NATS server to use instead of an embedded one")
	b.servers.redisFlag(cmd, "Redis server to use instead of an embedded one")
	cmd.AddCommand(benchListCommand(), benchCompareCommand(), benchTablesCommand(), benchChildCommand())
	return cmd
}

func (b *benchFlags) run(cmd *cobra.Command) error {
	o := output(b.output)
	if err := o.set(outputText, outputJSON); err != nil {
		return err
	}
	c := &b.config
	if cmd.Flags().Changed("executions") {
		if c.Duration != 0 {
			return errors.New("--executions and --duration exclude each other")
		}
		if c.Executions < 1 {
			return fmt.Errorf("--executions %d: use 1 or more", c.Executions)
		}
	}
	if err := b.lists(); err != nil {
		return err
	}
	program, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	c.Program = []string{program, "bench", "child"}
	c.NATSURL, c.RedisURL, c.Log = b.servers.nats, b.servers.redis, consoleLog(zapcore.WarnLevel)
	if b.profile != "" {
		c.ProfileFile = b.profile
		if c.Scenario == "agent" {
			f, err := os.Create(b.profile)
			if err != nil {
				return fmt.Errorf("--cpuprofile: %w", err)
			}
			defer func() { _ = f.Close() }()
			c.CPUProfile = f
		}
	}
	clear := func() {}
	if isTerminal(cmd.ErrOrStderr()) {
		c.Progress = benchProgress(cmd)
		clear = func() { fmt.Fprint(cmd.ErrOrStderr(), "\r\x1b[K") }
	}
	report, err := bench.Measure(cmd.Context(), *c)
	clear()
	switch {
	case errors.Is(err, bench.ErrFailed):
		return &exitError{service.ExitFailed, err}
	case err != nil && cmd.Context().Err() != nil:
		return &exitError{service.ExitFailed, errors.New("interrupted")}
	case err != nil:
		return err
	}
	if o == outputJSON {
		return printJSON(cmd.OutOrStdout(), report)
	}
	report.Print(cmd.OutOrStdout())
	return nil
}

// lists gives the lists of fleets to the scenario scale, and single numbers to the others.
func (b *benchFlags) lists() error {
	c := &b.config
	c.ToolCounts, c.Procs = b.toolCounts, b.procs
	if c.Scenario == bench.ScenarioScale {
		c.WorkerCounts, c.CoordinatorCounts = b.workers, b.coordinators
		return nil
	}
	for _, one := range []struct {
		flag string
		list []int
		to   *int
	}{{"workers", b.workers, &c.Workers}, {"coordinators", b.coordinators, &c.Coordinators}} {
		switch len(one.list) {
		case 0:
		case 1:
			*one.to = one.list[0]
			if *one.to < 1 {
				return fmt.Errorf("--%s %d: use 1 or more", one.flag, *one.to)
			}
		default:
			return fmt.Errorf("--%s takes a list in the scenario scale only", one.flag)
		}
	}
	return nil
}

// benchProgress shows on one line how far a bench is.
func benchProgress(cmd *cobra.Command) func(stage string, done, of int) {
	started := time.Now()
	last := ""
	return func(stage string, done, of int) {
		if stage != last {
			last, started = stage, time.Now()
		}
		text := fmt.Sprintf("%s: %d", stage, done)
		if of > 0 {
			text += fmt.Sprintf(" of %d", of)
		}
		if seconds := time.Since(started).Seconds(); done > 0 && seconds > 0 {
			text += fmt.Sprintf(", %.0f/s", float64(done)/seconds)
		}
		fmt.Fprintf(cmd.ErrOrStderr(), "\r\x1b[K%s", text)
	}
}
