package telemetry

import (
	"errors"
	"net/http"
	"strconv"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/reprise-engine/reprise/pkg/node"
)

// httpRefused is the outcome of a request to an address that may not be reached.
const httpRefused = "refused"

// RoundTripper observes the requests that nodes and models make through next. A request's span has its
// method, its server and its status. Path and query are left out: they hold keys and people's data often enough. The
// request carries the span as traceparent, unless it has one.
func (w *Worker) RoundTripper(next http.RoundTripper) http.RoundTripper {
	if w == nil {
		return next
	}
	return &roundTripper{w, next}
}

type roundTripper struct {
	worker *Worker
	next   http.RoundTripper
}

// CloseIdleConnections is called by http.Client.
func (t *roundTripper) CloseIdleConnections() {
	if c, ok := t.next.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

// RoundTrip implements http.RoundTripper.
func (t *roundTripper) RoundTrip(r *http.Request) (*http.Response, error) {
	r, span := t.worker.tracing.request(r)
	response, err := t.next.RoundTrip(r)
	t.worker.requests.get(requestOutcome(response, err)).Inc()
	if span == nil {
		return response, err
	}
	switch {
	case err != nil:
		kind := "_OTHER"
		if errors.As(err, new(*node.AddressRefusedError)) {
			kind = httpRefused
		}
		span.SetAttributes(attribute.String(attrErrorType, kind))
		span.SetStatus(codes.Error, "")
	default:
		span.SetAttributes(attribute.Int("http.response.status_code", response.StatusCode))
		if response.StatusCode >= 400 {
			span.SetAttributes(attribute.String(attrErrorType, strconv.Itoa(response.StatusCode)))
			span.SetStatus(codes.Error, "")
		}
	}
	span.End()
	return response, err
}

func requestOutcome(r *http.Response, err error) string {
	switch {
	case errors.As(err, new(*node.AddressRefusedError)):
		return httpRefused
	case err != nil:
		return "error"
	case r.StatusCode >= 100 && r.StatusCode < 600:
		return [...]string{"1xx", "2xx", "3xx", "4xx", "5xx"}[r.StatusCode/100-1]
	}
	return otherValue
}

// methods that are named; others are "_OTHER", as the conventions say.
var methods = map[string]bool{"GET": true, "HEAD": true, "POST": true, "PUT": true, "DELETE": true, "CONNECT": true, "OPTIONS": true, "TRACE": true, "PATCH": true}

// request begins the span of a request below a node's; nil when there is none.
func (t *Tracing) request(r *http.Request) (*http.Request, trace.Span) {
	if t == nil || !trace.SpanContextFromContext(r.Context()).IsValid() {
		return r, nil
	}
	method := r.Method
	if !methods[method] {
		method = "_OTHER"
	}
	attributes := append(make([]attribute.KeyValue, 0, 4),
		attribute.String("http.request.method", method), attribute.String("server.address", r.URL.Hostname()), attribute.String("url.scheme", r.URL.Scheme))
	if port, err := strconv.Atoi(r.URL.Port()); err == nil {
		attributes = append(attributes, attribute.Int("server.port", port))
	}
	ctx, span := t.tracer.Start(r.Context(), method, trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(attributes...))
	if t.propagate && r.Header.Get("traceparent") == "" {
		r = r.Clone(ctx) // a RoundTripper must not change what it is given
		r.Header.Set("traceparent", formatParent(span.SpanContext()))
		return r, span
	}
	return r.WithContext(ctx), span
}
