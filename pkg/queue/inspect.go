package queue

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nats.go/micro"
)

// Info describes the NATS behind a connection.
type Info struct {
	Version         string
	MaxPayloadBytes int64
	RoundTrip       time.Duration
	// JobsStream: StreamJobs exists. Jobs is how many are queued or running.
	JobsStream bool
	Jobs       uint64
}

// Inspect reads what decides whether the server fits.
func (c *Conn) Inspect(ctx context.Context) (Info, error) {
	info := Info{Version: c.nc.ConnectedServerVersion(), MaxPayloadBytes: c.nc.MaxPayload()}
	var err error
	if info.RoundTrip, err = c.nc.RTT(); err != nil {
		return info, fmt.Errorf("inspect nats: %w", classify(err))
	}
	ctx, cancel := c.bounded(ctx)
	defer cancel()
	stream, err := c.js.Stream(ctx, StreamJobs)
	switch {
	case errors.Is(err, jetstream.ErrStreamNotFound):
		return info, nil
	case err != nil:
		return info, fmt.Errorf("inspect nats: %w", classify(err))
	}
	info.JobsStream, info.Jobs = true, stream.CachedInfo().State.Msgs
	return info, nil
}

// pingWait is how long coordinators may take to answer a ping.
const pingWait = 500 * time.Millisecond

// Coordinators counts the coordinators that answer a ping of the micro service.
func (c *Conn) Coordinators(ctx context.Context) (int, error) {
	subject, err := micro.ControlSubject(micro.PingVerb, ServiceName, "")
	if err != nil {
		return 0, err
	}
	inbox := c.nc.NewInbox()
	sub, err := c.nc.SubscribeSync(inbox)
	if err != nil {
		return 0, fmt.Errorf("ping coordinators: %w", classify(err))
	}
	defer func() { _ = sub.Unsubscribe() }()
	if err := c.nc.PublishRequest(subject, inbox, nil); err != nil {
		return 0, fmt.Errorf("ping coordinators: %w", classify(err))
	}
	ids := map[string]bool{}
	for deadline := time.Now().Add(pingWait); ; {
		m, err := sub.NextMsg(time.Until(deadline))
		switch {
		case errors.Is(err, nats.ErrTimeout), errors.Is(err, nats.ErrNoResponders):
			return len(ids), nil
		case err != nil:
			return 0, fmt.Errorf("ping coordinators: %w", classify(err))
		case ctx.Err() != nil:
			return 0, ctx.Err()
		}
		var ping micro.Ping
		if json.Unmarshal(m.Data, &ping) == nil && ping.ID != "" {
			ids[ping.ID] = true
		}
	}
}
