package cli

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/reprise-engine/reprise/internal/health"
	"github.com/reprise-engine/reprise/internal/service"
)

// services are the programs that this one can be as well, so that one container image
// is enough. They read their settings from the environment when they are built,
// so each is built only when it is asked for.
var services = map[string]func() (*cobra.Command, error){
	"coordinator": service.CoordinatorCommand,
	"worker":      service.WorkerCommand,
}

// serviceCommands adds coordinator and worker. Their flags are those of the programs.
func serviceCommands(root *cobra.Command) {
	for name, about := range map[string]string{
		"coordinator": "Run a coordinator, the same as the program coordinator.",
		"worker":      "Run a worker, the same as the program worker.",
	} {
		root.AddCommand(&cobra.Command{
			Use: name, Short: about, DisableFlagParsing: true,
			RunE: func(cmd *cobra.Command, args []string) error {
				program, err := services[name]()
				if err != nil {
					return err
				}
				program.SetArgs(args)
				program.SetOut(cmd.OutOrStdout())
				program.SetErr(cmd.ErrOrStderr())
				return program.ExecuteContext(cmd.Context())
			},
		})
	}
}

// healthCommand is what a container is asked with: it has no other program to ask with.
func healthCommand() *cobra.Command {
	addr, url := os.Getenv("REPRISE_METRICS_ADDR"), ""
	cmd := &cobra.Command{
		Use: "healthcheck", Short: "Exit 0 when the coordinator or worker of this machine is ready (for containers).", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, cancel := context.WithTimeout(cmd.Context(), 3*time.Second)
			defer cancel()
			check := func() error { return health.Probe(ctx, addr) }
			if url != "" {
				check = func() error { return health.Ask(ctx, url) }
			}
			if err := check(); err != nil {
				// Containers know only 0 and 1.
				return &exitError{code: service.ExitFailed, err: fmt.Errorf("unhealthy: %w", err)}
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&addr, "metrics-addr", addr, "its address of health checks (REPRISE_METRICS_ADDR)")
	cmd.Flags().StringVar(&url, "url", "", "ask this URL instead, which must answer with 200")
	return cmd
}
