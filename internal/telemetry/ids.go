package telemetry

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"math/rand/v2"

	"go.opentelemetry.io/otel/trace"

	"github.com/reprise-engine/reprise/pkg/engine"
)

// The ids of a trace, of an execution's span and of a job's span are digests of what they
// are about, so that every process knows them without being told. A trace belongs to the first execution of a
// line of sub-workflows; who asked for that one is linked to, not its parent: the same execution
// may be asked for twice.

func digest(kind, id string) [sha256.Size]byte {
	return sha256.Sum256([]byte("reprise " + kind + "\x00" + id))
}

func traceOf(root engine.ExecutionID) (id trace.TraceID) {
	sum := digest("trace", string(root))
	copy(id[:], sum[:])
	return id
}

func executionSpan(id engine.ExecutionID) (span trace.SpanID) {
	sum := digest("execution", string(id))
	copy(span[:], sum[:])
	return span
}

// jobSpan is the id of a job's span. A job that is given to another worker has the same one: of
// the run that was cut off only what is below it was written.
func jobSpan(id engine.JobID) (span trace.SpanID) {
	sum := digest("job", string(id))
	copy(span[:], sum[:])
	return span
}

// rootOf is the execution whose trace an execution belongs to.
func rootOf(meta *engine.Meta) engine.ExecutionID {
	if meta.Parent != nil && meta.Root != "" {
		return meta.Root
	}
	return meta.ID
}

// wanted are the ids that the next span is to have.
type wanted struct {
	trace trace.TraceID
	span  trace.SpanID
}

type wantedKey struct{}

func withIDs(ctx context.Context, w wanted) context.Context {
	return context.WithValue(ctx, wantedKey{}, w)
}

// idGenerator gives spans the ids that their context wants, and others random ones.
type idGenerator struct{}

// NewIDs implements sdktrace.IDGenerator.
func (idGenerator) NewIDs(ctx context.Context) (trace.TraceID, trace.SpanID) {
	if w, ok := ctx.Value(wantedKey{}).(wanted); ok {
		return w.trace, w.span
	}
	return randomTrace(), randomSpan()
}

// NewSpanID implements sdktrace.IDGenerator.
func (idGenerator) NewSpanID(ctx context.Context, _ trace.TraceID) trace.SpanID {
	if w, ok := ctx.Value(wantedKey{}).(wanted); ok {
		return w.span
	}
	return randomSpan()
}

func randomTrace() (id trace.TraceID) {
	for i := range id {
		id[i] = byte(rand.Uint32()) //nolint:gosec // ids of spans are no secrets
	}
	return id
}

func randomSpan() (id trace.SpanID) {
	n := rand.Uint64() | 1 // a zero id is none
	for i := range id {
		id[i] = byte(n >> (8 * i))
	}
	return id
}

// formatParent is a W3C traceparent.
func formatParent(sc trace.SpanContext) string {
	b := make([]byte, 0, 55)
	id, span := sc.TraceID(), sc.SpanID()
	b = append(b, "00-"...)
	b = hex.AppendEncode(b, id[:])
	b = append(b, '-')
	b = hex.AppendEncode(b, span[:])
	if sc.IsSampled() {
		return string(append(b, "-01"...))
	}
	return string(append(b, "-00"...))
}

// parseParent reads a W3C traceparent; what it returns for a text that is none is not valid.
func parseParent(text string) trace.SpanContext {
	if len(text) < 55 || text[2] != '-' || text[35] != '-' || text[52] != '-' || text[:2] == "ff" || len(text) > 55 && (text[:2] == "00" || text[55] != '-') {
		return trace.SpanContext{}
	}
	id, err := trace.TraceIDFromHex(text[3:35])
	if err != nil {
		return trace.SpanContext{}
	}
	span, err := trace.SpanIDFromHex(text[36:52])
	if err != nil {
		return trace.SpanContext{}
	}
	var flags [1]byte
	if _, err := hex.Decode(flags[:], []byte(text[53:55])); err != nil {
		return trace.SpanContext{}
	}
	return trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: id, SpanID: span, TraceFlags: trace.TraceFlags(flags[0]) & trace.FlagsSampled, Remote: true,
	})
}

// TraceParent is text when it is a W3C traceparent, else "": it is stored, and comes from outside.
func TraceParent(text string) string {
	if text == "" || !parseParent(text).IsValid() {
		return ""
	}
	return text[:55]
}
