package cli

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/reprise-engine/reprise/internal/chaos"
	"github.com/reprise-engine/reprise/internal/service"
)

func chaosCommand() *cobra.Command {
	var (
		s        servers
		c        chaos.Config
		asOutput string
	)
	cmd := &cobra.Command{
		Use:   "chaos",
		Short: "Kill coordinators, workers, NATS and Redis under load, and count what every tool did.",
		Long: `Start coordinators and workers, a NATS and a redis-server as processes of their own, keep a
load of agent executions, and every few seconds kill one of the processes (kill -9) or stop it
for a while, at random. A ledger in this process counts every effect of every tool by its
Idempotency-Key. In the end everything is started again, and a table says what came of it.

An execution is an Agent whose model (a mock) calls three tools at the same time: one is slow, one
fails now and then and is tried again. Some executions also wait for two seconds, run a
sub-workflow, or ask for an approval, which chaos gives.

The kinds of faults are worker, coordinator, nats and redis (killed), and pause: a process is
stopped and goes on later, a worker beyond its lease. The same --seed plans the same faults.

With --nats and --redis (loopback addresses only), the servers are left alone, and the
executions run in a pool of their own; finished ones are kept there for a day.

Exit codes: 0 the promise held, 1 it did not, 2 wrong usage, 4 the servers cannot be used.`,
		Example: `  reprise chaos
  reprise chaos --duration 5m --every 2s --kill worker,redis --seed 42
  reprise chaos --duration 20s --lease 3s --output json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o := output(asOutput)
			if err := o.set(outputText, outputJSON); err != nil {
				return err
			}
			for _, name := range []string{"duration", "coordinators", "workers", "rate", "every", "lease"} {
				if f := cmd.Flags().Lookup(name); f.Changed && strings.Trim(f.Value.String(), "0.s") == "" {
					return fmt.Errorf("--%s must be more than 0", name)
				}
			}
			program, err := os.Executable()
			if err != nil {
				return fmt.Errorf("find this program: %w", err)
			}
			c.Program = []string{program, "chaos", "child"}
			c.NATSURL, c.RedisURL = s.nats, s.redis
			show := &chaosScreen{cmd: cmd, text: o == outputText, line: isTerminal(cmd.ErrOrStderr())}
			c.Say, c.Progress = show.say, show.progress
			report, err := chaos.Run(cmd.Context(), c)
			show.clear()
			switch {
			case err != nil && cmd.Context().Err() != nil:
				return &exitError{service.ExitFailed, errors.New("interrupted; all processes that were started have ended")}
			case err != nil:
				return err
			}
			if o == outputJSON {
				err = printJSON(cmd.OutOrStdout(), report)
			} else {
				report.Print(cmd.OutOrStdout())
			}
			if err == nil && !report.Held {
				return &exitError{service.ExitFailed, fmt.Errorf("the promise did not hold; --seed %d plans the same faults again, --logs keeps what the processes say", report.Seed)}
			}
			if err == nil && o == outputText {
				fmt.Fprintln(cmd.OutOrStdout(), styleFor(cmd.OutOrStdout()).green("The promise held."))
			}
			return err
		},
	}
	f := cmd.Flags()
	f.DurationVar(&c.Duration, "duration", 60*time.Second, "how long the load lasts, at most 10m")
	f.IntVar(&c.Coordinators, "coordinators", 2, "coordinators to start")
	f.IntVar(&c.Workers, "workers", 3, "workers to start")
	f.Float64Var(&c.Rate, "rate", 10, "executions per second")
	f.DurationVar(&c.Every, "every", 4*time.Second, "mean time between two faults")
	f.Uint64Var(&c.Seed, "seed", 0, "plan of the faults; 0 is a random one")
	f.StringSliceVar(&c.Kill, "kill", nil, "faults: "+strings.Join(chaos.Kinds(), ",")+" (default all that are possible)")
	f.DurationVar(&c.Lease, "lease", chaos.DefaultLease(), "how long a job may be without a sign of life before another worker gets it")
	f.StringVar(&c.LogDir, "logs", "", "directory for a log of each process")
	f.StringVar(&asOutput, "output", string(outputText), "text or json")
	s.natsFlag(cmd, "", "NATS server to use instead of an own one")
	s.redisFlag(cmd, "Redis server to use instead of an own one")
	cmd.AddCommand(&cobra.Command{
		Use: "child", Short: "Be a process of a chaos.", Args: cobra.ExactArgs(1), Hidden: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			return chaos.Child(cmd.Context(), args[0], cmd.OutOrStdout())
		},
	})
	return cmd
}

// chaosScreen shows the story on stdout, or on stderr when the report is JSON, and how far it
// is on the last line of a terminal.
type chaosScreen struct {
	cmd        *cobra.Command
	text, line bool

	mu sync.Mutex
}

func (s *chaosScreen) say(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.erase()
	if s.text {
		fmt.Fprintln(s.cmd.OutOrStdout(), text)
	} else if s.line {
		fmt.Fprintln(s.cmd.ErrOrStderr(), text)
	}
}

func (s *chaosScreen) progress(p chaos.Progress) {
	if !s.line {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.erase()
	at := fmt.Sprintf("%.0f of %.0f s", p.Elapsed.Seconds(), p.Of.Seconds())
	if p.Elapsed > p.Of {
		at = p.Stage
	}
	fmt.Fprintf(s.cmd.ErrOrStderr(), "%s: %d submitted, %d in flight, %d kills and pauses", at, p.Submitted, p.Submitted-p.Finished, p.Faults)
}

func (s *chaosScreen) clear() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.erase()
}

// erase empties the last line. s.mu is held.
func (s *chaosScreen) erase() {
	if s.line {
		fmt.Fprint(s.cmd.ErrOrStderr(), "\r\x1b[K")
	}
}
