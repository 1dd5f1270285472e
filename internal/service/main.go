package service

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"syscall"
	"time"

	"github.com/KimMachineGun/automemlimit/memlimit"
	"github.com/spf13/cobra"
	"go.uber.org/zap"

	"github.com/reprise-engine/reprise/internal/config"
	"github.com/reprise-engine/reprise/internal/health"
	"github.com/reprise-engine/reprise/pkg/queue"
	"github.com/reprise-engine/reprise/pkg/state"
)

// The exit codes of all programs.
const (
	ExitOK          = 0
	ExitFailed      = 1 // the workflow failed
	ExitUsage       = 2 // wrong usage or an invalid workflow
	ExitWaiting     = 3 // the execution waits
	ExitUnavailable = 4 // Redis, NATS or the coordinators cannot be used
)

// errUnhealthy is what a health check found. Its exit code is 1: containers
// know only 0 and 1.
var errUnhealthy = errors.New("unhealthy")

// ExitCode is the exit code that an error of starting or connecting stands for.
func ExitCode(err error) int {
	switch {
	case err == nil:
		return ExitOK
	case errors.Is(err, errUnhealthy):
		return ExitFailed
	case errors.Is(err, queue.ErrUnavailable), errors.Is(err, queue.ErrCredentials), errors.Is(err, queue.ErrNoJetStream),
		errors.Is(err, queue.ErrNoCoordinator), errors.Is(err, queue.ErrNoStream), errors.Is(err, queue.ErrFull), errors.Is(err, queue.ErrClosed),
		errors.Is(err, state.ErrUnavailable), errors.Is(err, state.ErrCredentials), errors.Is(err, state.ErrFull):
		return ExitUnavailable
	}
	return ExitUsage
}

// CoordinatorCommand is the coordinator program.
func CoordinatorCommand() (*cobra.Command, error) {
	var s Coordinator
	return command("coordinator", "Run a coordinator: it owns executions, in Redis, and gives jobs to workers over NATS.", &s,
		func() (string, string, time.Duration) { return s.LogLevel, s.MetricsAddr, s.DrainTimeout },
		func(ctx context.Context, log *zap.Logger) (*Process, error) { return StartCoordinator(ctx, s, log) })
}

// WorkerCommand is the worker program.
func WorkerCommand() (*cobra.Command, error) {
	s := Worker{Warm: true}
	return command("worker", "Run a worker: it runs the nodes of workflows. It needs NATS only.", &s,
		func() (string, string, time.Duration) { return s.LogLevel, s.MetricsAddr, s.DrainTimeout },
		func(ctx context.Context, log *zap.Logger) (*Process, error) { return StartWorker(ctx, s, log) })
}

// command is a program that runs a service until SIGINT or SIGTERM.
func command(name, about string, settings any, common func() (logLevel, metricsAddr string, drain time.Duration),
	start func(context.Context, *zap.Logger) (*Process, error)) (*cobra.Command, error) {
	cmd := &cobra.Command{
		Use: name, Short: about, Args: cobra.NoArgs, SilenceUsage: true, SilenceErrors: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			level, _, drain := common()
			log, err := Logger(level)
			if err != nil {
				return err
			}
			defer func() { _ = log.Sync() }()
			ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
			defer stop()
			p, err := start(ctx, log)
			if err != nil {
				return err
			}
			<-ctx.Done()
			stop() // a second signal ends the process at once
			log.Info("stopping", zap.Duration("drain_timeout", drain))
			ctx, cancel := context.WithTimeout(context.Background(), drain)
			defer cancel()
			p.Stop(ctx)
			log.Info("stopped")
			return nil
		},
	}
	if err := config.Bind(cmd.Flags(), settings); err != nil {
		return nil, err
	}
	cmd.AddCommand(&cobra.Command{
		Use: "healthcheck", Short: "Exit 0 when the process at REPRISE_METRICS_ADDR is ready (for containers).", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, addr, _ := common()
			ctx, cancel := context.WithTimeout(cmd.Context(), 3*time.Second)
			defer cancel()
			if err := health.Probe(ctx, addr); err != nil {
				return fmt.Errorf("%w: %w", errUnhealthy, err)
			}
			return nil
		},
	})
	return cmd, nil
}

// gcPercent lets the heap grow to four times what is live before it is collected:
// services live on short-lived messages, and collecting them at the default
// costs a fifth of the processor time.
const gcPercent = 300

// ballast counts as live, so that a service with next to nothing in its heap is not
// collected every few megabytes. It is never touched and takes no memory.
var ballast []byte

const ballastBytes = 16 << 20

// memoryShare is how much of a container's memory the heap may have before it is collected more
// often, so that a process which has much to hold is slow for a while and not killed. What is
// left is for the kernel's buffers.
const memoryShare = 0.9

// TuneGC sets the garbage collector for a service. GOGC, GOMEMLIMIT and AUTOMEMLIMIT go before it.
func TuneGC() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
		ballast = make([]byte, ballastBytes)
		runtime.KeepAlive(ballast)
	}
	_, _ = memlimit.Set(memlimit.WithRatio(memoryShare)) // fails where no limit is
}

// Main runs a program and ends the process with its exit code.
func Main(build func() (*cobra.Command, error)) {
	TuneGC()
	cmd, err := build()
	if err == nil {
		err = cmd.ExecuteContext(context.Background())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
	}
	os.Exit(ExitCode(err))
}
