package cli

import (
	"context"
	"fmt"
	"net"
	"os"

	"github.com/spf13/cobra"

	"github.com/reprise-engine/reprise/internal/stack"
)

func devCommand() *cobra.Command {
	var (
		s                     servers
		c                     stack.Config
		credentials, logTo    string
		workers, coordinators int
	)
	cmd := &cobra.Command{
		Use:   "dev",
		Short: "Run coordinators, workers, NATS, Redis and a mock LLM in this process until Ctrl-C.",
		Long: `Run everything in this process until Ctrl-C, and print how to submit to it. With --data what
was submitted outlives a restart.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			level, err := logLevel(logTo)
			if err != nil {
				return err
			}
			if s.nats == "" {
				if err := portIsFree(cmd.Context(), c.NATSPort); err != nil {
					return fmt.Errorf("port %d cannot be used: %w; choose another one with --nats-port, or 0 for any", c.NATSPort, err)
				}
			}
			c.NATSURL, c.RedisURL, c.CredentialsFile = s.nats, s.redis, credentials
			c.Workers, c.Coordinators, c.MockLLM, c.Log = workers, coordinators, true, consoleLog(level)
			running, err := stack.Start(cmd.Context(), c)
			if err != nil {
				return err
			}
			defer running.Stop()
			out, style := cmd.OutOrStdout(), styleFor(cmd.OutOrStdout())
			redis := "redis as given"
			if running.RedisKind != "" {
				redis = "embedded " + running.RedisKind
			}
			fmt.Fprintf(out, "%s %d coordinator(s), %d worker(s), %s\n", style.green("running:"), len(running.Coordinators), len(running.Workers), redis)
			fmt.Fprintf(out, "  NATS      %s\n  mock LLM  %s (credential id %q)\n\nIn another terminal:\n", running.NATSURL, running.MockURL, stack.MockCredentialID)
			fmt.Fprintf(out, "  export REPRISE_NATS_URL=%s\n  reprise submit --wait examples/agent-parallel-tools.json\n  reprise executions list\n\nCtrl-C stops.\n", running.NATSURL)
			<-cmd.Context().Done()
			fmt.Fprintln(cmd.ErrOrStderr(), "stopping")
			return nil
		},
	}
	f := cmd.Flags()
	f.StringVar(&c.Dir, "data", "", "directory that keeps the embedded servers' data (default: none, all is lost at the end)")
	f.IntVar(&c.NATSPort, "nats-port", 4222, "port of the embedded NATS server, 0 for any free one")
	f.IntVar(&workers, "workers", 1, "workers to start")
	f.IntVar(&coordinators, "coordinators", 1, "coordinators to start")
	f.StringVar(&credentials, "credentials", os.Getenv("REPRISE_CREDENTIALS_FILE"), "credentials in the format of n8n's decrypted export")
	f.StringVar(&logTo, "log-level", "info", "debug, info, warn or error, on stderr")
	s.natsFlag(cmd, "", "NATS server to use instead of an embedded one")
	s.redisFlag(cmd, "Redis server to use instead of an embedded one")
	return cmd
}

// portIsFree tells early, and in few words, what a server would complain of.
func portIsFree(ctx context.Context, port int) error {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		return err
	}
	return listener.Close()
}
