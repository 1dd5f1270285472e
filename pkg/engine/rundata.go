package engine

import (
	"fmt"
	"strings"
)

// DefaultRunDataBytes bounds the run data of an execution whose limits say nothing.
const DefaultRunDataBytes = 256 << 20

// JobField is the field of TableOpen that an open job is stored in.
func JobField(id JobID) string { return jobField(id) }

// RunField is the field of TableRun that the record of a node's run is stored in.
func RunField(node string, run int) string { return runField(node, run) }

// JobOf is the job whose field of TableOpen this is.
func JobOf(field string) (id JobID, ok bool) {
	name, ok := strings.CutPrefix(field, prefixJob)
	return JobID(name), ok
}

// measure encodes the records that the event has written so far, adds them to
// Meta.RunBytes, and stops an execution that has written more than its limit. What the
// event brought is kept: it shows people what was too large.
func (t *tx) measure() error {
	for i := range t.writes {
		if err := t.weigh(&t.writes[i]); err != nil {
			return err
		}
	}
	limit := t.limits.RunDataBytes
	if t.s.Meta.RunBytes <= limit || !t.s.live() || t.s.stopping() {
		return nil
	}
	t.fatal(&NodeError{
		Message: fmt.Sprintf("The execution's run data has %d bytes, more than the %d allowed, so it was stopped", t.s.Meta.RunBytes, limit),
		Description: "Process the data in smaller parts, for example in sub-workflows that return what is needed only, " +
			"or raise the coordinators' limit (REPRISE_MAX_RUN_DATA_BYTES).",
		Reason: ReasonTooLarge, Node: t.s.Meta.LastNode, NotRetryable: true,
	})
	return nil
}

// weigh encodes a record that is to be written and counts its bytes, once for each value.
func (t *tx) weigh(w *write) error {
	if w.table != TableRun || w.value == nil || w.encoded != nil {
		return nil
	}
	value, err := encode(w.value)
	if err != nil {
		return &encodeError{what: string(w.table) + " " + w.name, err: err}
	}
	w.encoded = value
	t.s.Meta.RunBytes += int64(len(value)) - w.counted
	w.counted = int64(len(value))
	return nil
}
