package telemetry

import (
	"context"
	"encoding/json"
	"net"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/node"
	"github.com/reprise-engine/reprise/pkg/queue"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// Attributes of our own. Those of OpenTelemetry's conventions are written out where they are set:
// gen_ai.* (generative AI), http.*, server.* and error.type.
const (
	attrExecution    = "reprise.execution.id"
	attrParent       = "reprise.execution.parent"
	attrMode         = "reprise.execution.mode"
	attrStatus       = "reprise.execution.status"
	attrWorkflow     = "reprise.workflow.name"
	attrWorkflowID   = "reprise.workflow.id"
	attrNode         = "reprise.node.name"
	attrNodeType     = "reprise.node.type"
	attrRunIndex     = "reprise.run_index"
	attrSlice        = "reprise.slice"
	attrAttempt      = "reprise.attempt"
	attrJob          = "reprise.job.id"
	attrPool         = "reprise.pool"
	attrOutcome      = "reprise.outcome"
	attrRequestedBy  = "reprise.requested_by"
	attrErrorType    = "error.type"
	attrGenOperation = "gen_ai.operation.name"
)

// parent is the context of an execution's span, whoever writes that and when. Whether the trace
// is sampled is asked of the sampler: a span is begun for that and left alone.
func (t *Tracing) parent(meta *engine.Meta) trace.SpanContext {
	w := wanted{traceOf(rootOf(meta)), executionSpan(meta.ID)}
	_, probe := t.tracer.Start(withIDs(context.Background(), w), "execution")
	flags := trace.TraceFlags(0)
	if probe.SpanContext().IsSampled() {
		flags = trace.FlagsSampled
	}
	return trace.NewSpanContext(trace.SpanContextConfig{TraceID: w.trace, SpanID: w.span, TraceFlags: flags, Remote: true})
}

// TraceParent is the W3C trace context that an execution's jobs carry, "" without traces.
func (c *Coordinator) TraceParent(meta *engine.Meta) string {
	if c == nil || c.tracing == nil {
		return ""
	}
	return formatParent(c.tracing.parent(meta))
}

// execution writes the span of an execution that is over.
func (t *Tracing) execution(meta *engine.Meta) {
	if t == nil || meta.StartedAt == 0 { // its turn did not come
		return
	}
	ctx := withIDs(context.Background(), wanted{traceOf(rootOf(meta)), executionSpan(meta.ID)})
	if p := meta.Parent; p != nil {
		above := t.parent(&engine.Meta{ID: p.Execution, Parent: p, Root: rootOf(meta)})
		ctx = trace.ContextWithRemoteSpanContext(ctx, above)
	}
	options := []trace.SpanStartOption{
		trace.WithTimestamp(time.UnixMilli(meta.StartedAt)),
		trace.WithAttributes(
			attribute.String(attrExecution, string(meta.ID)), attribute.String(attrWorkflow, meta.WorkflowName),
			attribute.String(attrWorkflowID, meta.WorkflowID), attribute.String(attrMode, meta.Mode), attribute.String(attrStatus, string(meta.Status))),
	}
	if asked := parseParent(meta.TraceParent); asked.IsValid() {
		options = append(options, trace.WithLinks(trace.Link{SpanContext: asked, Attributes: []attribute.KeyValue{attribute.String("reprise.link", "submission")}}))
	}
	if meta.RetryOf != "" {
		first := trace.NewSpanContext(trace.SpanContextConfig{TraceID: traceOf(meta.RetryOf), SpanID: executionSpan(meta.RetryOf), Remote: true})
		options = append(options, trace.WithLinks(trace.Link{SpanContext: first, Attributes: []attribute.KeyValue{attribute.String("reprise.link", "retry_of")}}))
	}
	_, span := t.tracer.Start(ctx, "execution "+meta.WorkflowName, options...)
	if meta.Parent != nil {
		span.SetAttributes(attribute.String(attrParent, string(meta.Parent.Execution)))
	}
	if e := meta.Error; e != nil {
		span.SetAttributes(attribute.String(attrErrorType, errorType(e)))
		span.SetStatus(codes.Error, "")
	}
	span.End(trace.WithTimestamp(time.UnixMilli(meta.StoppedAt)))
}

// errorType is what kind of error a node failed with. Its text is left out: it may quote what
// the node was given.
func errorType(e *engine.NodeError) string {
	switch {
	case e.Reason != "":
		return string(e.Reason)
	case e.HTTPCode != "":
		return e.HTTPCode
	case e.Name != "":
		return e.Name
	}
	return "_OTHER"
}

// JobLost writes the span of a job that is given up, as no worker that had it will: what those wrote
// below it gets its parent.
func (c *Coordinator) JobLost(meta *engine.Meta, job *engine.Job, n *workflow.Node) {
	if c == nil || c.tracing == nil {
		return
	}
	t := c.tracing
	above := t.parent(meta)
	ctx := withIDs(trace.ContextWithRemoteSpanContext(context.Background(), above), wanted{above.TraceID(), jobSpan(job.ID)})
	_, span := t.tracer.Start(ctx, "node "+n.Name, trace.WithTimestamp(time.UnixMilli(job.DispatchedAt)), trace.WithAttributes(
		attribute.String(attrExecution, string(meta.ID)), attribute.String(attrJob, string(job.ID)),
		attribute.String(attrNode, n.Name), attribute.String(attrNodeType, n.Type), attribute.Int(attrRunIndex, job.Entry.Run),
		attribute.Int(attrSlice, job.Slice), attribute.Int(attrAttempt, job.Attempt),
		attribute.String(attrErrorType, string(engine.ReasonWorkerLost))))
	span.SetStatus(codes.Error, "")
	span.End()
}

// job begins the span of a job's run; nil when there is none.
func (t *Tracing) job(ctx context.Context, job *queue.Job, n *workflow.Node, p *queue.Plan) (context.Context, trace.Span) {
	if t == nil {
		return ctx, nil
	}
	above := parseParent(job.TraceParent)
	if !above.IsValid() { // its coordinator writes no spans
		above = trace.NewSpanContext(trace.SpanContextConfig{
			TraceID: traceOf(job.Execution), SpanID: executionSpan(job.Execution), TraceFlags: trace.FlagsSampled, Remote: true,
		})
	}
	name := "node " + n.Name
	attributes := make([]attribute.KeyValue, 0, 16)
	attributes = append(attributes,
		attribute.String(attrExecution, string(job.Execution)), attribute.String(attrJob, string(job.ID)),
		attribute.String(attrWorkflow, p.WorkflowName), attribute.String(attrWorkflowID, p.WorkflowID),
		attribute.String(attrNode, n.Name), attribute.String(attrNodeType, n.Type), attribute.String(attrPool, poolName(job.Pool)),
		attribute.Int(attrRunIndex, job.RunIndex), attribute.Int(attrSlice, job.Slice), attribute.Int(attrAttempt, job.Attempt))
	switch {
	case job.ToolCallID != "" || job.ToolArguments != nil:
		name = "execute_tool " + n.Name
		attributes = append(attributes, attribute.String(attrGenOperation, "execute_tool"), attribute.String("gen_ai.tool.name", n.Name),
			attribute.String("gen_ai.tool.call.id", job.ToolCallID), attribute.String("gen_ai.tool.type", "function"))
		if len(job.Source) > 0 && job.Source[0] != nil {
			attributes = append(attributes, attribute.String(attrRequestedBy, job.Source[0].PreviousNode))
		}
		if t.content {
			attributes = append(attributes, attribute.String("gen_ai.tool.call.arguments", string(job.ToolArguments)))
		}
	case isAgent(n, p):
		name = "invoke_agent " + n.Name
		attributes = append(attributes, attribute.String(attrGenOperation, "invoke_agent"), attribute.String("gen_ai.agent.name", n.Name))
	}
	ctx = trace.ContextWithRemoteSpanContext(ctx, above)
	// Its context is not passed on: it wants the same id for all spans below.
	_, span := t.tracer.Start(withIDs(ctx, wanted{above.TraceID(), jobSpan(job.ID)}), name, trace.WithAttributes(attributes...))
	return trace.ContextWithSpan(ctx, span), span
}

// isAgent reports whether a node is an Agent: it has a model, and its type says so.
func isAgent(n *workflow.Node, p *queue.Plan) bool {
	return strings.HasSuffix(n.Type, ".agent") && len(p.SubNodes[n.Name][workflow.LanguageModel]) > 0
}

// endJob ends the span of a job's run.
func (t *Tracing) endJob(span trace.Span, outcome string, r *node.Result) {
	span.SetAttributes(attribute.String(attrOutcome, outcome))
	switch {
	case outcome == jobStopped:
		span.SetAttributes(attribute.String(attrErrorType, jobStopped))
		span.SetStatus(codes.Error, "")
	case r.Error != nil:
		span.SetAttributes(attribute.String(attrErrorType, errorType(r.Error)))
		span.SetStatus(codes.Error, "")
	}
	span.End()
}

// model begins the span of a model call; nil when there is none.
func (t *Tracing) model(ctx context.Context, call *node.ModelCall) (context.Context, trace.Span) {
	if t == nil {
		return ctx, nil
	}
	attributes := append(make([]attribute.KeyValue, 0, 8),
		attribute.String(attrGenOperation, "chat"), attribute.String("gen_ai.provider.name", call.Provider),
		attribute.String("gen_ai.request.model", call.Model))
	if host, port, err := net.SplitHostPort(call.Server); err == nil {
		attributes = append(attributes, attribute.String("server.address", host))
		if n, err := strconv.Atoi(port); err == nil {
			attributes = append(attributes, attribute.Int("server.port", n))
		}
	}
	if t.content {
		attributes = append(attributes, contentOf("gen_ai.input.messages", call.Input)...)
	}
	return t.tracer.Start(ctx, "chat "+call.Model, trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(attributes...))
}

// endModel ends the span of a model call.
func (t *Tracing) endModel(span trace.Span, call *node.ModelCall, outcome string) {
	if call.Err != nil {
		kind := outcome
		if failure, ok := call.Err.(*engine.NodeError); ok { //nolint:errorlint // the provider's own, not wrapped
			kind = errorType(failure)
		}
		span.SetAttributes(attribute.String(attrErrorType, kind))
		span.SetStatus(codes.Error, "")
		span.End()
		return
	}
	span.SetAttributes(attribute.Int("gen_ai.usage.input_tokens", call.InputTokens), attribute.Int("gen_ai.usage.output_tokens", call.OutputTokens))
	if call.AnsweredBy != "" {
		span.SetAttributes(attribute.String("gen_ai.response.model", call.AnsweredBy))
	}
	if call.Finish != "" {
		span.SetAttributes(attribute.StringSlice("gen_ai.response.finish_reasons", []string{call.Finish}))
	}
	if t.content {
		span.SetAttributes(contentOf("gen_ai.output.messages", call.Output)...)
	}
	span.End()
}

func contentOf(key string, content func() json.RawMessage) []attribute.KeyValue {
	if content == nil {
		return nil
	}
	return []attribute.KeyValue{attribute.String(key, string(content()))}
}
