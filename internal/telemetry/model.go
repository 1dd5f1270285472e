package telemetry

import (
	"context"
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/node"
)

// bucketsModel are those of OpenTelemetry's gen_ai.client.operation.duration, in seconds.
var bucketsModel = []float64{.01, .02, .04, .08, .16, .32, .64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92}

type modelName struct{ provider, model string }

type modelCall struct {
	modelName
	outcome string
}

type tokenMetrics struct {
	input, output prometheus.Counter
	seconds       prometheus.Observer
}

func (w *Worker) modelMetrics() {
	r := w.registry
	calls := r.counters("reprise_model_calls_total", "Calls of language models, by outcome: success, timeout, canceled, rate_limited, 4xx, 5xx, other.", "provider", "model", "outcome")
	w.calls = newFamily(func(c modelCall) prometheus.Counter { return calls.WithLabelValues(c.provider, c.model, c.outcome) })
	tokens := r.counters("reprise_model_tokens_total", "Tokens that models say they have used, by direction (input, output).", "provider", "model", "direction")
	seconds := r.histogramVec("reprise_model_call_duration_seconds", "Time of a model call, with its retries.", bucketsModel, "provider", "model")
	w.tokens = newFamily(func(m modelName) tokenMetrics {
		return tokenMetrics{
			tokens.WithLabelValues(m.provider, m.model, "input"), tokens.WithLabelValues(m.provider, m.model, "output"),
			seconds.WithLabelValues(m.provider, m.model),
		}
	})
}

// ObserveModel is node.Services.ObserveModel.
func (w *Worker) ObserveModel(ctx context.Context, call *node.ModelCall) (_ context.Context, end func()) {
	if w == nil {
		return ctx, func() {}
	}
	start := time.Now()
	ctx, span := w.tracing.model(ctx, call)
	return ctx, func() {
		name := modelName{call.Provider, w.models.value(call.Model)}
		outcome := modelOutcome(call.Err)
		w.calls.get(modelCall{name, outcome}).Inc()
		m := w.tokens.get(name)
		m.input.Add(float64(max(0, call.InputTokens)))
		m.output.Add(float64(max(0, call.OutputTokens)))
		m.seconds.Observe(time.Since(start).Seconds())
		if span != nil {
			w.tracing.endModel(span, call, outcome)
		}
	}
}

// modelOutcome is a label's value for what came of a call.
func modelOutcome(err error) string {
	var failure *engine.NodeError
	switch {
	case err == nil:
		return "success"
	case errors.Is(err, context.Canceled):
		return "canceled"
	case errors.Is(err, context.DeadlineExceeded):
		return "timeout"
	case !errors.As(err, &failure) || len(failure.HTTPCode) != 3:
		return otherValue
	case failure.HTTPCode == "429":
		return "rate_limited"
	case failure.HTTPCode == "408" || failure.HTTPCode == "504":
		return "timeout"
	case failure.HTTPCode[0] == '4':
		return "4xx"
	case failure.HTTPCode[0] == '5':
		return "5xx"
	}
	return otherValue
}
