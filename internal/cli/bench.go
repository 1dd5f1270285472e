package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"go.uber.org/zap/zapcore"

	"github.com/reprise-engine/reprise/internal/bench"
	"github.com/reprise-engine/reprise/internal/service"
)

func benchCommand() *cobra.Command {
	var (
		s                 servers
		c                 bench.Config
		asOutput, profile string
	)
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure executions per second, against the floor of the same servers.",
		Long: `Measure how many agent executions per second coordinators and workers in this process do,
on embedded servers or on those that --nats and --redis name (loopback addresses only), and
compare with the floor: the same NATS and Redis traffic without an engine, on the same
servers, run before and after.

An execution of the scenario "agent" is a manual trigger and an Agent whose model (a mock)
calls two calculators at the same time and then answers: 4 jobs, 5 commits.

The scenario "waiting" has executions (100,000 unless told otherwise) wait for a person, and
measures what they take of memory and CPU, how long a plain execution takes beside them, and how
long it takes from an answer to the end of an execution.

With --external only submits: coordinators and workers that run elsewhere on --nats do the
work, with a credential of the id "mock-llm" that leads to a "reprise mock-llm". What they use
is not counted, and there is no floor. A given Redis keeps the finished executions for a day.`,
		Example: `  reprise bench
  reprise bench --executions 10000 --concurrency 256 --output json
  reprise bench --duration 30s --cpuprofile cpu.out && go tool pprof -top cpu.out`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o := output(asOutput)
			if err := o.set(outputText, outputJSON); err != nil {
				return err
			}
			if cmd.Flags().Changed("executions") && c.Duration != 0 {
				return errors.New("--executions and --duration exclude each other")
			}
			if c.Duration != 0 {
				c.Executions = 0
			}
			c.NATSURL, c.RedisURL, c.Log = s.nats, s.redis, consoleLog(zapcore.WarnLevel)
			if profile != "" {
				f, err := os.Create(profile)
				if err != nil {
					return fmt.Errorf("--cpuprofile: %w", err)
				}
				defer func() { _ = f.Close() }()
				c.CPUProfile = f
			}
			if isTerminal(cmd.ErrOrStderr()) {
				c.Progress = benchProgress(cmd)
				defer fmt.Fprint(cmd.ErrOrStderr(), "\r\x1b[K")
			}
			var report interface{ Print(io.Writer) }
			var err error
			if c.Scenario == bench.ScenarioWaiting {
				if !cmd.Flags().Changed("executions") {
					c.Executions = bench.DefaultWaiting
				}
				report, err = bench.RunWaiting(cmd.Context(), c)
			} else {
				report, err = bench.Run(cmd.Context(), c)
			}
			switch {
			case errors.Is(err, bench.ErrFailed):
				return &exitError{service.ExitFailed, err}
			case err != nil && cmd.Context().Err() != nil:
				return &exitError{service.ExitFailed, errors.New("interrupted")}
			case err != nil:
				return err
			}
			if c.Progress != nil {
				fmt.Fprint(cmd.ErrOrStderr(), "\r\x1b[K")
			}
			if o == outputJSON {
				return printJSON(cmd.OutOrStdout(), report)
			}
			report.Print(cmd.OutOrStdout())
			return nil
		},
	}
	f := cmd.Flags()
	f.StringVar(&c.Scenario, "scenario", "agent", "what an execution does: "+strings.Join(bench.Scenarios(), ", "))
	f.IntVar(&c.Executions, "executions", 2000, "executions to measure, after a short warm-up")
	f.DurationVar(&c.Duration, "duration", 0, "measure for this long instead, at most 10m")
	f.IntVar(&c.Concurrency, "concurrency", 64, "executions in flight")
	f.IntVar(&c.Coordinators, "coordinators", 1, "coordinators to start in this process")
	f.IntVar(&c.Workers, "workers", 1, "workers to start in this process")
	f.IntVar(&c.WorkerConcurrency, "worker-concurrency", 128, "jobs a worker runs at once")
	f.BoolVar(&c.ModelOverHTTP, "model-http", false, "have the mock model answer over HTTP instead of in memory")
	f.DurationVar(&c.Think, "think", 0, "time the mock model thinks before every answer")
	f.BoolVar(&c.External, "external", false, "only submit: coordinators and workers run elsewhere")
	f.BoolVar(&c.NoFloor, "no-floor", false, "leave the floor out")
	f.StringVar(&asOutput, "output", string(outputText), "text or json")
	f.StringVar(&profile, "cpuprofile", "", "file for a CPU profile of the measured executions")
	s.natsFlag(cmd, "", "NATS server to use instead of an embedded one")
	s.redisFlag(cmd, "Redis server to use instead of an embedded one")
	return cmd
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
