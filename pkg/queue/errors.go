package queue

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

var (
	// ErrUnavailable is returned when the server cannot be reached or does not
	// answer in time. What was asked may have happened or not.
	ErrUnavailable = errors.New("nats is unavailable")
	// ErrCredentials is returned by Connect when the server refuses them.
	ErrCredentials = errors.New("nats refuses the credentials")
	// ErrNoJetStream is returned by Connect when the server or account has no JetStream.
	ErrNoJetStream = errors.New("nats has no JetStream")
	// ErrQueued is the outcome of publishing a job that is already queued or
	// running: nothing was changed, nothing is wrong.
	ErrQueued = errors.New("job is already queued or running")
	// ErrFull is returned when a stream has reached its limits.
	ErrFull = errors.New("nats stream is full")
	// ErrNoStream is returned when a stream does not exist; EnsureStreams creates it.
	ErrNoStream = errors.New("nats stream does not exist: a coordinator creates it when it starts")
	// ErrNoCoordinator is returned by requests that nobody serves.
	ErrNoCoordinator = errors.New("no coordinator answers: is one running and connected to this nats?")
	// ErrBlobNotFound is returned when a payload is not, or no longer, in the
	// object store, or is damaged there.
	ErrBlobNotFound = errors.New("payload is not in the object store")
	// ErrTooLarge is returned for payloads over Config.MaxBlobBytes.
	ErrTooLarge = errors.New("payload is too large")
	// ErrClosed is returned after Stop or Close.
	ErrClosed = errors.New("queue is closed")
)

// codeStoreFailed is the server's error code when a stream's store refuses a
// message; only its description says why.
const codeStoreFailed jetstream.ErrorCode = 10077

// classify turns errors of NATS into those above, keeping the original text.
func classify(err error) error {
	if err == nil {
		return nil
	}
	var api *jetstream.APIError
	if errors.As(err, &api) {
		switch {
		case api.ErrorCode == codeStoreFailed && strings.Contains(api.Description, "messages per subject"):
			return ErrQueued
		case api.ErrorCode == codeStoreFailed && strings.Contains(api.Description, "maximum"),
			strings.Contains(api.Description, "insufficient storage"), strings.Contains(api.Description, "insufficient resources"),
			strings.Contains(api.Description, "resource limits exceeded"):
			return fmt.Errorf("%w: %w", ErrFull, err)
		case api.ErrorCode == jetstream.JSErrCodeStreamNotFound:
			return fmt.Errorf("%w: %w", ErrNoStream, err)
		case api.Code == 503:
			return fmt.Errorf("%w: %w", ErrUnavailable, err)
		}
		return err
	}
	switch {
	case errors.Is(err, context.Canceled):
		return err
	case errors.Is(err, jetstream.ErrNoStreamResponse):
		return fmt.Errorf("%w: %w", ErrNoStream, err)
	case errors.Is(err, nats.ErrConnectionClosed):
		return fmt.Errorf("%w: %w", ErrClosed, err)
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, nats.ErrTimeout), errors.Is(err, nats.ErrDisconnected),
		errors.Is(err, nats.ErrNoServers), errors.Is(err, nats.ErrNoResponders), errors.Is(err, nats.ErrReconnectBufExceeded),
		errors.Is(err, jetstream.ErrAsyncPublishTimeout), errors.Is(err, nats.ErrConnectionReconnecting):
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return err
}
