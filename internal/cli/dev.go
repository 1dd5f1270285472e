package cli

import (
	"context"
	"fmt"
	"net"
	"os"

	"github.com/spf13/cobra"

	"github.com/reprise-engine/reprise/internal/service"
	"github.com/reprise-engine/reprise/internal/stack"
)

func devCommand() *cobra.Command {
	var (
		s                     servers
		c                     stack.Config
		credentials, logTo    string
		workflows             string
		workers, coordinators int
	)
	cmd := &cobra.Command{
		Use:   "dev",
		Short: "Run coordinators, workers, NATS, Redis and a mock LLM in this process until Ctrl-C.",
		Long: `Run everything in this process until Ctrl-C, and print how to submit to it. With --data what
was submitted outlives a restart.

Questions to people and webhooks are answered over HTTP at --http-addr; whoever has the link
may answer.`,
		Example: `  reprise dev
  reprise dev --data ~/.reprise --workflows flows/
  reprise dev --http-addr 0.0.0.0:8484 --public-url https://reprise.example.com`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			level, err := logLevel(logTo)
			if err != nil {
				return err
			}
			if s.nats == "" {
				if err := isFree(cmd.Context(), fmt.Sprintf("127.0.0.1:%d", c.NATSPort)); err != nil {
					return fmt.Errorf("port %d cannot be used: %w; choose another one with --nats-port, or 0 for any", c.NATSPort, err)
				}
			}
			if c.HTTPAddr != "" {
				if err := isFree(cmd.Context(), c.HTTPAddr); err != nil {
					return fmt.Errorf("%s cannot be used: %w; choose another address with --http-addr, or \"\" for none", c.HTTPAddr, err)
				}
			}
			log := consoleLog(level)
			docs, err := readWorkflowDir(workflows, log)
			if err != nil {
				return err
			}
			c.NATSURL, c.RedisURL, c.CredentialsFile = s.nats, s.redis, credentials
			c.Workers, c.Coordinators, c.MockLLM, c.Log = workers, coordinators, true, log
			if c.Code, err = service.CodeSettings(); err != nil {
				return err
			}
			if c.Disk, err = service.DiskSettings(); err != nil {
				return err
			}
			running, err := stack.Start(cmd.Context(), c)
			if err != nil {
				return err
			}
			defer running.Stop()
			if err := putDocuments(cmd.Context(), running.Conn, docs, warner(cmd)); err != nil {
				return err
			}
			out, style := cmd.OutOrStdout(), styleFor(cmd.OutOrStdout())
			redis := "redis as given"
			if running.RedisKind != "" {
				redis = "embedded " + running.RedisKind
			}
			fmt.Fprintf(out, "%s %d coordinator(s), %d worker(s), %s\n", style.green("running:"), len(running.Coordinators), len(running.Workers), redis)
			fmt.Fprintf(out, "  NATS      %s\n  mock LLM  %s (credential id %q)\n", running.NATSURL, running.MockURL, stack.MockCredentialID)
			if running.PublicURL != "" {
				fmt.Fprintf(out, "  HTTP      %s (questions and webhooks, under the links that \"executions show\" and \"approvals\" print)\n", running.PublicURL)
			}
			if len(docs) > 0 {
				fmt.Fprintf(out, "  workflows %d of %s\n", len(docs), workflows)
			}
			fmt.Fprintf(out, "\nIn another terminal:\n  export REPRISE_NATS_URL=%s\n  reprise submit --wait examples/agent-parallel-tools.json\n  reprise executions list\n", running.NATSURL)
			fmt.Fprintf(out, "  reprise executions approvals          questions that wait for a person\n  reprise executions approve|deny ID\n\nCtrl-C stops.\n")
			<-cmd.Context().Done()
			fmt.Fprintln(cmd.ErrOrStderr(), "stopping")
			return nil
		},
	}
	f := cmd.Flags()
	f.StringVar(&c.Dir, "data", "", "directory that keeps the embedded servers' data (default: none, all is lost at the end)")
	f.IntVar(&c.NATSPort, "nats-port", 4222, "port of the embedded NATS server, 0 for any free one")
	f.StringVar(&c.HTTPAddr, "http-addr", "127.0.0.1:8484", "address for questions and webhooks over HTTP, \"\" for none")
	f.StringVar(&c.PublicURL, "public-url", os.Getenv("REPRISE_PUBLIC_URL"), "base of the links, when people reach --http-addr under another URL")
	f.StringVar(&workflows, "workflows", "", "directory of workflows to store at the start, each by the id in it, else by its file name")
	f.IntVar(&workers, "workers", 1, "workers to start")
	f.IntVar(&coordinators, "coordinators", 1, "coordinators to start")
	f.StringVar(&credentials, "credentials", os.Getenv("REPRISE_CREDENTIALS_FILE"), "credentials in the format of n8n's decrypted export")
	f.StringVar(&logTo, "log-level", "info", "debug, info, warn or error, on stderr")
	s.natsFlag(cmd, "", "NATS server to use instead of an embedded one")
	s.redisFlag(cmd, "Redis server to use instead of an embedded one")
	return cmd
}

// isFree tells early, and in few words, what a server would complain of.
func isFree(ctx context.Context, addr string) error {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	return listener.Close()
}
