package service

import (
	"context"
	"net/http"
	"runtime/debug"
	"time"

	"go.uber.org/zap"

	"github.com/reprise-engine/reprise/internal/coordinator"
	"github.com/reprise-engine/reprise/internal/telemetry"
	"github.com/reprise-engine/reprise/pkg/queue"
	"github.com/reprise-engine/reprise/pkg/state"
)

// Traces is the setting of traces that both services have; what else there is to set are the
// OTEL_… variables of OpenTelemetry.
type Traces struct {
	OTel bool `env:"REPRISE_OTEL" help:"send OpenTelemetry traces, to http://localhost:4318 unless OTEL_EXPORTER_OTLP_ENDPOINT names another collector; that alone switches them on too"`
}

// watch is what observes a service. Its parts are nil when nobody is to see what they would tell.
type watch struct {
	tracing     *telemetry.Tracing
	coordinator *telemetry.Coordinator
	worker      *telemetry.Worker
}

// observeCoordinator begins to observe a coordinator.
func observeCoordinator(ctx context.Context, s Coordinator, id string, log *zap.Logger) (w watch, err error) {
	if w.tracing, err = telemetry.StartTracing(ctx, s.OTel, "reprise-coordinator", id, version(), log); err != nil {
		return w, err
	}
	if s.MetricsAddr != "" || w.tracing != nil {
		w.coordinator = telemetry.NewCoordinator(version(), w.tracing)
	}
	return w, nil
}

// observeWorker begins to observe a worker.
func observeWorker(ctx context.Context, s Worker, name string, log *zap.Logger) (w watch, err error) {
	if w.tracing, err = telemetry.StartTracing(ctx, s.OTel, "reprise-worker", name, version(), log); err != nil {
		return w, err
	}
	if s.MetricsAddr != "" || w.tracing != nil {
		w.worker = telemetry.NewWorker(version(), w.tracing)
	}
	return w, nil
}

// handler answers Prometheus; nil without metrics.
func (w watch) handler(log *zap.Logger) http.Handler {
	switch {
	case w.coordinator != nil:
		return w.coordinator.Handler(log)
	case w.worker != nil:
		return w.worker.Handler(log)
	}
	return nil
}

// figures says where a coordinator's metrics ask.
func (w watch) figures(c *coordinator.Coordinator, store *state.Store, conn *queue.Conn, stuckAfter time.Duration) {
	w.coordinator.Watch(telemetry.CoordinatorFigures{
		Pools: c.Pools, Lanes: c.Lanes, NATS: conn.Stats, Counts: store.CountByStatus,
		Stuck: func(ctx context.Context) (int, error) {
			stuck, err := store.Stuck(ctx, time.Now().Add(-stuckAfter).UnixMilli())
			return len(stuck), err
		},
		Approvals: store.CountQuestions, DeadLetters: conn.CountDead,
		RedisRoundTrips: func() uint64 { return store.Stats().RoundTrips },
	})
}

// version of the program.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" {
		return "development"
	}
	return info.Main.Version
}
