// Package cli is the reprise command line.
package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"github.com/spf13/cobra"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/reprise-engine/reprise/internal/service"
	"github.com/reprise-engine/reprise/pkg/queue"
)

// exitError ends the program with a code; its text, if any, was not printed yet.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string {
	if e.err == nil {
		return ""
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

// Main runs the command line and returns its exit code.
func Main(args []string) int {
	service.TuneGC()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends the program at once
	if err := readSecretFiles(); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		return service.ExitUsage
	}
	root := Root()
	root.SetArgs(args)
	return execute(ctx, root)
}

// execute runs a command line, says what went wrong and returns its exit code.
func execute(ctx context.Context, root *cobra.Command) int {
	err := root.ExecuteContext(ctx)
	if err == nil {
		return service.ExitOK
	}
	if text := err.Error(); text != "" {
		out := root.ErrOrStderr()
		fmt.Fprintln(out, styleFor(out).red("error:"), text)
	}
	return exitCode(err)
}

// exitCode is the documented exit code of an error.
func exitCode(err error) int {
	if exit := (*exitError)(nil); errors.As(err, &exit) {
		return exit.code
	}
	if problem := (*queue.Problem)(nil); errors.As(err, &problem) {
		switch problem.Code {
		case queue.CodeUnavailable, queue.CodeFull, queue.CodeOverloaded:
			return service.ExitUnavailable
		}
		return service.ExitUsage
	}
	return service.ExitCode(err)
}

// Root is the whole command line.
func Root() *cobra.Command {
	root := &cobra.Command{
		Use:   "reprise",
		Short: "Run n8n workflows with AI Agents on a fleet of workers.",
		Long: `reprise runs n8n workflows with AI Agents: every tool call of an Agent is a job of its
own, done once whatever crashes, in parallel, on any number of workers.

Start with "reprise demo", or run a workflow file:

  reprise run examples/agent-parallel-tools.json

Exit codes: 0 success, 1 the workflow failed, 2 wrong usage or an invalid workflow,
3 the execution waits, 4 Redis, NATS or the coordinators cannot be used, or have no room.`,
		SilenceUsage: true, SilenceErrors: true,
		Version: version(),
	}
	root.AddCommand(runCommand(), devCommand(), submitCommand(), executionsCommand(), queueCommand(), topCommand(), workflowsCommand(), demoCommand(),
		mockLLMCommand(), benchCommand(), chaosCommand(), doctorCommand(), deadCommand(), healthCommand(), credentialsCommand(), tablesCommand(), evaluateCommand(), evalCommand(), importCurlCommand())
	serviceCommands(root)
	return root
}

func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" {
		return "development"
	}
	return info.Main.Version
}

// servers are the flags that say where Redis and NATS are.
type servers struct{ nats, redis string }

func (s *servers) natsFlag(cmd *cobra.Command, fallback, help string) {
	value := fallback
	if v := os.Getenv("REPRISE_NATS_URL"); v != "" {
		value = v
	}
	cmd.Flags().StringVar(&s.nats, "nats", value, help+" (REPRISE_NATS_URL)")
	cmd.Flags().Lookup("nats").DefValue = fallback // the environment's may hold a password
}

func (s *servers) redisFlag(cmd *cobra.Command, help string) {
	cmd.Flags().StringVar(&s.redis, "redis", os.Getenv("REPRISE_REDIS_URL"), help+" (REPRISE_REDIS_URL)")
	cmd.Flags().Lookup("redis").DefValue = "" // the environment's may hold a password
}

const defaultNATS = "nats://127.0.0.1:4222"

// consoleLog is a log for people on stderr, from a level up.
func consoleLog(level zapcore.Level) *zap.Logger {
	c := zap.NewDevelopmentEncoderConfig()
	c.EncodeTime = zapcore.TimeEncoderOfLayout("15:04:05.000")
	if styleFor(os.Stderr).on {
		c.EncodeLevel = zapcore.CapitalColorLevelEncoder
	}
	return zap.New(zapcore.NewCore(zapcore.NewConsoleEncoder(c), zapcore.Lock(os.Stderr), level))
}

// logLevel is the value of a --log-level flag.
func logLevel(text string) (zapcore.Level, error) {
	level, err := zapcore.ParseLevel(text)
	if err != nil {
		return level, fmt.Errorf("log level %q: use debug, info, warn or error", text)
	}
	return level, nil
}
