package queue

import "github.com/nats-io/nats.go"

// HeaderTraceParent carries the W3C trace context of who sends a submission.
const HeaderTraceParent = "traceparent"

// tracedBy takes the trace context from the message's header unless the submission has one.
func (s *Submission) tracedBy(header nats.Header) {
	if s.TraceParent != "" || len(header) == 0 {
		return
	}
	// NATS headers keep their case; both spellings are sent.
	if s.TraceParent = header.Get(HeaderTraceParent); s.TraceParent == "" {
		s.TraceParent = header.Get("Traceparent")
	}
}
