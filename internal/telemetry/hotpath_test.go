package telemetry

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/node"
	"github.com/reprise-engine/reprise/pkg/queue"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

func TestLabelsAreBounded(t *testing.T) {
	c := NewCoordinator("", nil)
	var all sync.WaitGroup
	for n := range 8 {
		all.Go(func() {
			for i := range 500 {
				c.Published(fmt.Sprintf("pool-%d-%d", n, i), PublishOK)
				c.Dead(engine.Reason(fmt.Sprintf("reason-%d-%d", n, i)))
			}
		})
	}
	all.Wait()
	families, err := c.registry.Gather()
	require.NoError(t, err)
	sum := 0.0
	for _, f := range families {
		switch f.GetName() {
		case "reprise_jobs_published_total":
			require.LessOrEqual(t, len(f.Metric), maxValues+8+1) // with those that came at the same moment
			for _, m := range f.Metric {
				sum += m.Counter.GetValue()
			}
		case "reprise_dead_letters_total":
			require.Len(t, f.Metric, 2, "worker_lost and other")
		}
	}
	require.Equal(t, 4000.0, sum, "none is lost")
	require.Equal(t, otherValue, newBounded().value(string(make([]byte, maxValueBytes+1))))
}

// Nothing is observed by nil, and nothing breaks.
func TestNilObservesNothing(t *testing.T) {
	var c *Coordinator
	c.Started()
	c.Finished(&engine.Meta{})
	c.Group(1, time.Second)
	c.Watch(CoordinatorFigures{})
	require.Empty(t, c.TraceParent(&engine.Meta{ID: "x"}))
	var w *Worker
	ctx, end := w.Job(t.Context(), benchJob, benchNode, benchPlan)
	require.Equal(t, t.Context(), ctx)
	end(&node.Result{}, nil)
	ctx, done := w.ObserveModel(t.Context(), &node.ModelCall{})
	require.Equal(t, t.Context(), ctx)
	done()
	require.Nil(t, w.RoundTripper(nil))
	(*Tracing)(nil).Stop()
}

// What cannot be counted is left out, and Redis is not asked at every scrape.
func TestCountsAreAskedSeldom(t *testing.T) {
	asked := 0
	c := NewCoordinator("", nil)
	c.Watch(CoordinatorFigures{
		Counts: func(context.Context) (map[engine.Status]int64, error) { asked++; return nil, context.DeadlineExceeded },
		Stuck:  func(context.Context) (int, error) { asked++; return 3, nil },
	})
	for range 5 {
		families, err := c.registry.Gather()
		require.NoError(t, err)
		names := map[string]bool{}
		for _, f := range families {
			names[f.GetName()] = true
		}
		require.True(t, names["reprise_executions_stuck"])
		require.False(t, names["reprise_executions_unfinished"])
	}
	require.Equal(t, 2, asked)
}

func TestTraceParents(t *testing.T) {
	tracing := newTracing(sdktrace.NewTracerProvider(sdktrace.WithIDGenerator(idGenerator{})))
	c := &Coordinator{tracing: tracing}
	text := c.TraceParent(&engine.Meta{ID: "one"})
	require.Regexp(t, `^00-[0-9a-f]{32}-[0-9a-f]{16}-01$`, text)
	require.Equal(t, text, TraceParent(text))
	require.Equal(t, text, formatParent(parseParent(text)))
	require.Equal(t, text, c.TraceParent(&engine.Meta{ID: "one"}), "the same wherever it is asked")
	require.NotEqual(t, text, c.TraceParent(&engine.Meta{ID: "two"}))
	unsampled := &Coordinator{tracing: newTracing(sdktrace.NewTracerProvider(sdktrace.WithIDGenerator(idGenerator{}), sdktrace.WithSampler(sdktrace.NeverSample())))}
	require.Equal(t, text[:53]+"00", unsampled.TraceParent(&engine.Meta{ID: "one"}))
	for _, bad := range []string{
		"", "x", text[:54], text + "x", "ff" + text[2:], "00-00000000000000000000000000000000" + text[35:], text[:36] + "0000000000000000-01", text[:53] + "zz", "00_" + text[3:],
	} {
		require.Empty(t, TraceParent(bad), bad)
	}
	require.Equal(t, "01"+text[2:], TraceParent("01"+text[2:]+"-later"), "of a later version what is known is read")
}

func TestUnsupportedProtocolIsRefused(t *testing.T) {
	t.Setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")
	_, err := StartTracing(t.Context(), true, "x", "x", "x", nil)
	require.ErrorContains(t, err, "http/protobuf")
	off, err := StartTracing(t.Context(), false, "x", "x", "x", nil)
	require.NoError(t, err)
	require.Nil(t, off, "traces are off unless they are asked for")
	t.Setenv("OTEL_SDK_DISABLED", "true")
	off, err = StartTracing(t.Context(), true, "x", "x", "x", nil)
	require.NoError(t, err)
	require.Nil(t, off)
}

var (
	benchNode = &workflow.Node{Name: "Fetch", Type: "n8n-nodes-base.httpRequest"}
	benchPlan = &queue.Plan{WorkflowName: "Orders"}
	benchJob  = &queue.Job{ID: "0123_7", Execution: "0123"}
)

// The hooks on the way of every job: counting is what they cost when nobody reads.
func BenchmarkJobCounted(b *testing.B) {
	w := NewWorker("", nil)
	b.ReportAllocs()
	for b.Loop() {
		w.ran("n8n-nodes-base.httpRequest", jobSuccess, 3*time.Millisecond)
	}
}

func BenchmarkJobPublished(b *testing.B) {
	c := NewCoordinator("", nil)
	b.ReportAllocs()
	for b.Loop() {
		c.Published("default", PublishOK)
	}
}

func BenchmarkJobCountedByAllProcessors(b *testing.B) {
	w := NewWorker("", nil)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			w.ran("n8n-nodes-base.httpRequest", jobSuccess, 3*time.Millisecond)
		}
	})
}

// BenchmarkJob is the whole hook of a job's run: off, counted, and with a span.
func BenchmarkJob(b *testing.B) {
	provider := sdktrace.NewTracerProvider(sdktrace.WithIDGenerator(idGenerator{}), sdktrace.WithBatcher(discard{}))
	b.Cleanup(func() { _ = provider.Shutdown(context.Background()) })
	tracing := newTracing(provider)
	traced := *benchJob
	traced.TraceParent = (&Coordinator{tracing: tracing}).TraceParent(&engine.Meta{ID: "0123"})
	for _, c := range []struct {
		name string
		w    *Worker
	}{{"off", nil}, {"counted", NewWorker("", nil)}, {"traced", NewWorker("", tracing)}} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			result := &node.Result{}
			for b.Loop() {
				_, end := c.w.Job(context.Background(), &traced, benchNode, benchPlan)
				end(result, nil)
			}
		})
	}
}

// BenchmarkTraceParent is what a coordinator adds to each job it publishes.
func BenchmarkTraceParent(b *testing.B) {
	provider := sdktrace.NewTracerProvider(sdktrace.WithIDGenerator(idGenerator{}))
	meta := &engine.Meta{ID: "0123"}
	for _, c := range []struct {
		name string
		c    *Coordinator
	}{{"off", NewCoordinator("", nil)}, {"on", &Coordinator{tracing: newTracing(provider)}}} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				c.c.TraceParent(meta)
			}
		})
	}
}

type discard struct{}

func (discard) ExportSpans(context.Context, []sdktrace.ReadOnlySpan) error { return nil }
func (discard) Shutdown(context.Context) error                             { return nil }

var _ prometheus.Collector = (*coordinatorCollector)(nil)
