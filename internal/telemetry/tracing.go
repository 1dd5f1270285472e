package telemetry

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/zap"
)

// Tracing writes spans and sends them over OTLP. nil writes none. Its methods may be called
// from any goroutine.
type Tracing struct {
	provider  *sdktrace.TracerProvider
	tracer    trace.Tracer
	content   bool // messages and arguments are attributes too
	propagate bool // outgoing requests carry the trace
}

const (
	scopeName = "github.com/reprise-engine/reprise"

	// exportEvery is how long a span waits to be sent at most, unless OTEL_BSP_SCHEDULE_DELAY says
	// otherwise: a process that is killed loses that much.
	exportEvery = time.Second
	// shutdownTimeout bounds what a stopping process still sends.
	shutdownTimeout = 3 * time.Second
)

// The environment's names, of OpenTelemetry.
const (
	envEndpoint       = "OTEL_EXPORTER_OTLP_ENDPOINT"
	envTracesEndpoint = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
	envProtocol       = "OTEL_EXPORTER_OTLP_PROTOCOL"
	envTracesProtocol = "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"
	envExporter       = "OTEL_TRACES_EXPORTER"
	envDisabled       = "OTEL_SDK_DISABLED"
	envPropagators    = "OTEL_PROPAGATORS"
	envDelay          = "OTEL_BSP_SCHEDULE_DELAY"
	envContent        = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
)

// traced reports whether the environment wants traces. on is REPRISE_OTEL.
func traced(on bool) bool {
	if strings.EqualFold(os.Getenv(envDisabled), "true") || os.Getenv(envExporter) == "none" {
		return false
	}
	return on || os.Getenv(envEndpoint) != "" || os.Getenv(envTracesEndpoint) != ""
}

// StartTracing begins to write the spans of a service ("reprise-worker") when on is set or the
// environment names an endpoint; else it returns nil. The OTEL_… variables of the OpenTelemetry
// specification set the rest. instance tells processes apart. No connection is made here: a collector that is away
// costs spans and nothing else.
func StartTracing(ctx context.Context, on bool, service, instance, version string, log *zap.Logger) (*Tracing, error) {
	if !traced(on) {
		return nil, nil //nolint:nilnil // nil is the Tracing that writes nothing
	}
	protocol := os.Getenv(envTracesProtocol)
	if protocol == "" {
		protocol = os.Getenv(envProtocol)
	}
	if protocol != "" && protocol != "http/protobuf" {
		return nil, fmt.Errorf("%s is %q: traces are sent with http/protobuf only; set that, and the collector's HTTP port (4318)", envProtocol, protocol)
	}
	exporter, err := otlptracehttp.New(ctx)
	if err != nil {
		return nil, fmt.Errorf("traces: %w", err)
	}
	about, err := resource.New(ctx,
		resource.WithAttributes(
			attribute.String("service.name", service), attribute.String("service.version", version),
			attribute.String("service.instance.id", instance)),
		resource.WithTelemetrySDK(), resource.WithHost(), resource.WithFromEnv())
	if err != nil && !errors.Is(err, resource.ErrPartialResource) {
		return nil, fmt.Errorf("traces: %w", err)
	}
	var batch []sdktrace.BatchSpanProcessorOption
	if os.Getenv(envDelay) == "" {
		batch = append(batch, sdktrace.WithBatchTimeout(exportEvery))
	}
	t := newTracing(sdktrace.NewTracerProvider(
		sdktrace.WithBatcher(exporter, batch...), sdktrace.WithResource(about), sdktrace.WithIDGenerator(idGenerator{})))
	log = log.Named("telemetry")
	// The library has one handler for the process; with several services in it the last one tells.
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { log.Warn("spans were not sent", zap.Error(err)) }))
	log.Info("traces are sent", zap.Bool("content", t.content))
	return t, nil
}

func newTracing(provider *sdktrace.TracerProvider) *Tracing {
	return &Tracing{
		provider: provider, tracer: provider.Tracer(scopeName),
		content:   strings.EqualFold(os.Getenv(envContent), "true"),
		propagate: os.Getenv(envPropagators) != "none",
	}
}

// Stop sends what was not sent yet.
func (t *Tracing) Stop() {
	if t == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), shutdownTimeout)
	defer cancel()
	if err := t.provider.Shutdown(ctx); err != nil {
		otel.Handle(err)
	}
}
