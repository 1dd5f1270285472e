package queue

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/reprise-engine/reprise/pkg/engine"
)

// DeadLetter is a job or a durable submission that was given up, kept in
// StreamDead for people.
type DeadLetter struct {
	Version   int                `json:"v"`
	Execution engine.ExecutionID `json:"execution"`
	// WorkflowID and WorkflowName of the execution, "" when they are not known.
	WorkflowID   string `json:"workflowId,omitempty"`
	WorkflowName string `json:"workflowName,omitempty"`
	// Node, RunIndex, Job, Attempts (the node's own) and Deliveries (workers that had it) of a job.
	Node       string       `json:"node,omitempty"`
	RunIndex   int          `json:"runIndex,omitempty"`
	Job        engine.JobID `json:"job,omitempty"`
	Attempts   int          `json:"attempts,omitempty"`
	Deliveries int          `json:"deliveries,omitempty"`
	// Reason is what the node failed with, for programs; Error is for people.
	Reason engine.Reason `json:"reason,omitempty"`
	Error  string        `json:"error"`
	// At in milliseconds since 1970.
	At int64 `json:"at"`
	// Problem and Submission of a durable submission that was refused.
	Problem    *Problem        `json:"problem,omitempty"`
	Submission json.RawMessage `json:"submission,omitempty"`
}

// StoredDeadLetter is one in the stream, with its place there.
type StoredDeadLetter struct {
	Sequence uint64 `json:"sequence"`
	DeadLetter
}

// PublishDead stores a dead letter.
func (c *Conn) PublishDead(ctx context.Context, letter *DeadLetter) error {
	if err := ValidToken("execution id", string(letter.Execution)); err != nil {
		return err
	}
	stored := *letter
	stored.Version = Version
	err := c.store(ctx, subjectDead+string(letter.Execution), stored)
	if err != nil {
		return fmt.Errorf("store dead letter of execution %s: %w", letter.Execution, err)
	}
	return nil
}

// store publishes v to a stream and waits until it is stored.
func (c *Conn) store(ctx context.Context, subject string, v any, options ...jetstream.PublishOpt) error {
	data, err := encode(v)
	if err != nil {
		return err
	}
	ctx, cancel := c.bounded(ctx)
	defer cancel()
	m := &nats.Msg{Subject: subject}
	if err := c.pack(ctx, m, data); err != nil {
		return err
	}
	_, err = c.js.PublishMsg(ctx, m, options...)
	if err = classify(err); errors.Is(err, ErrNoStream) {
		if restored, restoreErr := c.restoreStreams(ctx); restored && restoreErr == nil {
			_, err = c.js.PublishMsg(ctx, m, options...)
			err = classify(err)
		}
	}
	return err
}

// DeadLetters lists the last dead letters, newest first, at most limit (0 is 100).
// An execution id restricts it to that one.
func (c *Conn) DeadLetters(ctx context.Context, execution engine.ExecutionID, limit int) ([]StoredDeadLetter, error) {
	if limit <= 0 {
		limit = 100
	}
	subject := subjectDead + "*"
	if execution != "" {
		if err := ValidToken("execution id", string(execution)); err != nil {
			return nil, err
		}
		subject = subjectDead + string(execution)
	}
	ctx, cancel := c.bounded(ctx)
	defer cancel()
	stream, err := c.js.Stream(ctx, StreamDead)
	if err != nil {
		return nil, fmt.Errorf("list dead letters: %w", classify(err))
	}
	info, err := stream.Info(ctx)
	if err != nil {
		return nil, fmt.Errorf("list dead letters: %w", classify(err))
	}
	var letters []StoredDeadLetter
	for seq := info.State.FirstSeq; seq <= info.State.LastSeq && info.State.Msgs > 0; {
		raw, err := stream.GetMsg(ctx, seq, jetstream.WithGetMsgSubject(subject))
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("list dead letters: %w", classify(err))
		}
		seq = raw.Sequence + 1
		letter := StoredDeadLetter{Sequence: raw.Sequence}
		data, err := c.unpack(ctx, raw.Header, raw.Data)
		if err != nil || json.Unmarshal(data, &letter.DeadLetter) != nil {
			continue
		}
		letters = append(letters, letter)
		if len(letters) > limit {
			letters = letters[1:]
		}
	}
	for i, j := 0, len(letters)-1; i < j; i, j = i+1, j-1 {
		letters[i], letters[j] = letters[j], letters[i]
	}
	return letters, nil
}

// DeadLetter reads one dead letter. One that is not there, because it was dealt with or is
// too old, is a *Problem with CodeNotFound.
func (c *Conn) DeadLetter(ctx context.Context, sequence uint64) (*StoredDeadLetter, error) {
	ctx, cancel := c.bounded(ctx)
	defer cancel()
	stream, err := c.js.Stream(ctx, StreamDead)
	if err != nil {
		return nil, fmt.Errorf("read dead letter %d: %w", sequence, classify(err))
	}
	raw, err := stream.GetMsg(ctx, sequence)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return nil, &Problem{Code: CodeNotFound, Message: fmt.Sprintf("no dead letter %d: it was replayed or dropped, or is too old", sequence)}
	}
	if err != nil {
		return nil, fmt.Errorf("read dead letter %d: %w", sequence, classify(err))
	}
	letter := &StoredDeadLetter{Sequence: raw.Sequence}
	data, err := c.unpack(ctx, raw.Header, raw.Data)
	if err == nil {
		err = json.Unmarshal(data, &letter.DeadLetter)
	}
	if err != nil {
		return nil, fmt.Errorf("read dead letter %d: %w", sequence, err)
	}
	return letter, nil
}

// DeleteDead removes a dead letter that was dealt with; one that is gone is no
// error.
func (c *Conn) DeleteDead(ctx context.Context, sequence uint64) error {
	ctx, cancel := c.bounded(ctx)
	defer cancel()
	stream, err := c.js.Stream(ctx, StreamDead)
	if err == nil {
		err = stream.DeleteMsg(ctx, sequence)
	}
	if err != nil {
		if stream != nil {
			// The refusal does not say why in a form that programs can read.
			if _, getErr := stream.GetMsg(ctx, sequence); errors.Is(getErr, jetstream.ErrMsgNotFound) {
				return nil
			}
		}
		return fmt.Errorf("delete dead letter %d: %w", sequence, classify(err))
	}
	return nil
}
