package chaos

import (
	"context"
	"fmt"
	"io"
	"os"
	"strconv"

	"github.com/spf13/pflag"

	"github.com/reprise-engine/reprise/internal/config"
	"github.com/reprise-engine/reprise/internal/embedded"
	"github.com/reprise-engine/reprise/internal/service"
)

// The variables by which a NATS child learns what it is to be.
const (
	envNATSDir  = "REPRISE_CHAOS_NATS_DIR"
	envNATSPort = "REPRISE_CHAOS_NATS_PORT"
)

// Child is a child of Run: a coordinator, a worker or a NATS server, by its role. Its
// settings come from the environment. It says on out when it works, and ends with ctx.
func Child(ctx context.Context, role string, out io.Writer) error {
	stop, err := startChild(ctx, role)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintln(out, childReady); err != nil {
		return err
	}
	<-ctx.Done()
	stop()
	return nil
}

func startChild(ctx context.Context, role string) (stop func(), err error) {
	flags := pflag.NewFlagSet(role, pflag.ContinueOnError)
	switch role {
	case KillCoordinator:
		var s service.Coordinator
		if err := config.Bind(flags, &s); err != nil {
			return nil, err
		}
		log, err := service.Logger(s.LogLevel)
		if err != nil {
			return nil, err
		}
		p, err := service.StartCoordinator(ctx, s, log)
		return stopService(p), err
	case KillWorker:
		s := service.Worker{Warm: true}
		if err := config.Bind(flags, &s); err != nil {
			return nil, err
		}
		log, err := service.Logger(s.LogLevel)
		if err != nil {
			return nil, err
		}
		p, err := service.StartWorker(ctx, s, log)
		return stopService(p), err
	case KillNATS:
		port, err := strconv.Atoi(os.Getenv(envNATSPort))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", envNATSPort, err)
		}
		log, err := service.Logger("info")
		if err != nil {
			return nil, err
		}
		n, err := embedded.StartNATS(os.Getenv(envNATSDir), embedded.NATSOptions{Port: port, Logger: log})
		if err != nil {
			return nil, err
		}
		return n.Shutdown, nil
	}
	return nil, fmt.Errorf("role %q: this is a child process of reprise chaos, which starts it", role)
}

// stopService ends a service at once: who ends this process in order has no use for what it does.
func stopService(p *service.Process) func() {
	return func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		p.Stop(ctx)
	}
}
