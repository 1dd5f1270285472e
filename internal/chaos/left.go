package chaos

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/redis/go-redis/v9"

	"github.com/reprise-engine/reprise/internal/loopback"
	"github.com/reprise-engine/reprise/pkg/queue"
	"github.com/reprise-engine/reprise/pkg/state"
)

// Left is what was still there when everything had come to rest.
type Left struct {
	// Jobs on the stream, and timers and executions in Redis: unfinished ones, or such
	// as others are still to be told of.
	Jobs       int `json:"jobs"`
	Timers     int `json:"timers"`
	Unfinished int `json:"unfinished_executions"`
}

func (l Left) nothing() bool { return l == Left{} }

// inspector looks into the servers, past the coordinators.
type inspector struct {
	run, pool string
	nc        *nats.Conn
	js        jetstream.JetStream
	redis     redis.UniversalClient
}

func openInspector(ctx context.Context, natsURL, redisURL, run, pool string) (*inspector, error) {
	nc, err := nats.Connect(natsURL, nats.Name("reprise-chaos-inspector"), nats.MaxReconnects(-1))
	if err != nil {
		return nil, fmt.Errorf("connect to NATS: %w", err)
	}
	js, err := jetstream.New(nc)
	if err != nil {
		nc.Close()
		return nil, fmt.Errorf("connect to NATS: %w", err)
	}
	client, err := loopback.OpenRedis(ctx, redisURL)
	if err != nil {
		nc.Close()
		return nil, err
	}
	return &inspector{run: run, pool: pool, nc: nc, js: js, redis: client}, nil
}

func (i *inspector) close() {
	i.nc.Close()
	_ = i.redis.Close()
}

// look counts what is left of this run.
func (i *inspector) look(ctx context.Context) (Left, error) {
	var left Left
	stream, err := i.js.Stream(ctx, queue.StreamJobs)
	if err != nil {
		return left, fmt.Errorf("look at the jobs: %w", err)
	}
	info, err := stream.Info(ctx, jetstream.WithSubjectFilter("reprise.job."+i.pool+".>"))
	if err != nil {
		return left, fmt.Errorf("look at the jobs: %w", err)
	}
	for _, n := range info.State.Subjects {
		left.Jobs += int(n)
	}
	timers := make([]*redis.StringSliceCmd, state.Shards)
	active := make([]*redis.StringSliceCmd, state.Shards)
	// The keys are part of the stored format.
	if _, err := i.redis.Pipelined(ctx, func(p redis.Pipeliner) error {
		for n := range state.Shards {
			timers[n] = p.ZRange(ctx, fmt.Sprintf("reprise:{s%03d}:timers", n), 0, -1)
			active[n] = p.ZRange(ctx, fmt.Sprintf("reprise:{s%03d}:active", n), 0, -1)
		}
		return nil
	}); err != nil {
		return left, fmt.Errorf("look at Redis: %w", err)
	}
	for n := range state.Shards {
		left.Timers += i.own(timers[n].Val())
		left.Unfinished += i.own(active[n].Val())
	}
	return left, nil
}

// own counts the members that are of this run: ids of sub-workflows begin with their
// parent's.
func (i *inspector) own(members []string) int {
	n := 0
	for _, m := range members {
		if strings.HasPrefix(m, i.run+"-") {
			n++
		}
	}
	return n
}

// forgetPool removes the consumer of the pool. Workers that still run would make it anew.
func (i *inspector) forgetPool(ctx context.Context) error {
	if err := i.js.DeleteConsumer(ctx, queue.StreamJobs, "pool-"+i.pool); err != nil && !errors.Is(err, jetstream.ErrConsumerNotFound) {
		return fmt.Errorf("delete the consumer of pool %s: %w", i.pool, err)
	}
	return nil
}
