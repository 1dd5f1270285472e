package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/queue"
	"github.com/reprise-engine/reprise/pkg/state"
)

// FinishedReport is what finished executions cost, and what is left of them.
type FinishedReport struct {
	Scenario   string  `json:"scenario"`
	Executions int     `json:"executions"`
	Retention  float64 `json:"retention_seconds"`
	RedisBytes float64 `json:"redis_bytes_each"`
	RedisKeys  float64 `json:"redis_keys_each"`
	// After the retention: until their keys were gone after the last had ended, and what it took to
	// remove their index entries, which coordinators do once a minute.
	GoneSeconds  float64 `json:"gone_seconds"`
	PruneSeconds float64 `json:"prune_seconds"`
	// Left are keys and bytes of Redis, and messages in all streams, over what was there
	// before.
	KeysLeft     int64 `json:"redis_keys_left"`
	BytesLeft    int64 `json:"redis_bytes_left"`
	MessagesLeft int64 `json:"stream_messages_left"`
	Environment
}

func runFinished(ctx context.Context, c *Config) (Result, error) {
	if c.Duration != 0 {
		return nil, errors.New("the scenario finished needs a number of executions")
	}
	f, err := openFleet(ctx, c, fleetConfig{
		coordinators: c.Coordinators, workers: c.Workers, slots: c.WorkerConcurrency,
		coordinatorEnv: []string{"REPRISE_RETENTION=" + c.Retention.String()},
	})
	if err != nil {
		return nil, err
	}
	defer f.close()
	r := &FinishedReport{Scenario: c.Scenario, Executions: c.Executions, Retention: c.Retention.Seconds()}
	f.describe(ctx, &r.Environment)
	store, err := state.Open(ctx, state.Config{URL: f.redisURL, Retention: c.Retention, Log: c.Log})
	if err != nil {
		return nil, err
	}
	defer func() { _ = store.Close() }()
	if err := r.run(ctx, c, f, store); err != nil {
		return nil, failed(ctx, err)
	}
	return r, nil
}

func (r *FinishedReport) run(ctx context.Context, c *Config, f *fleet, store *state.Store) error {
	document, err := agentWorkflow()
	if err != nil {
		return err
	}
	cl, err := f.client(document)
	if err != nil {
		return err
	}
	// Scripts are loaded and pools filled; what the warm-up stored is removed again.
	for range 20 {
		id, _, err := cl.one(ctx)
		if err != nil {
			return err
		}
		if err := deleteFinished(ctx, store, id); err != nil {
			return err
		}
	}
	keys, memory, messages, err := f.holds(ctx)
	if err != nil {
		return err
	}
	started := time.Now()
	if _, err := cl.load(ctx, "finishing", c.Executions, 0, c.Concurrency, c.Progress); err != nil {
		return err
	}
	ended := time.Now()
	fullKeys, fullMemory, _, err := f.holds(ctx)
	if err != nil {
		return err
	}
	if took := time.Since(started); took >= c.Retention {
		return fmt.Errorf("the executions took %s, longer than they are kept (%s): give a longer retention or fewer executions",
			took.Round(time.Second), c.Retention)
	}
	n := float64(c.Executions)
	r.RedisBytes, r.RedisKeys = round(float64(fullMemory-memory)/n, 0), round(float64(fullKeys-keys)/n, 2)
	if err := r.gone(ctx, c, f, keys, ended); err != nil {
		return err
	}
	pruning := time.Now()
	if err := pruneAll(ctx, store); err != nil {
		return err
	}
	r.PruneSeconds = round(time.Since(pruning).Seconds(), 3)
	leftKeys, leftMemory, leftMessages, err := f.holds(ctx)
	r.KeysLeft, r.BytesLeft, r.MessagesLeft = leftKeys-keys, leftMemory-memory, leftMessages-messages
	return err
}

// gone waits until the executions' keys have expired: index entries are all that is left.
func (r *FinishedReport) gone(ctx context.Context, c *Config, f *fleet, keys int64, ended time.Time) error {
	tick := time.NewTicker(progressInterval)
	defer tick.Stop()
	lowest := int64(math.MaxInt64)
	steady := time.Now()
	for {
		now, err := f.rdb.DBSize(ctx).Result()
		if err != nil {
			return fmt.Errorf("count keys: %w", err)
		}
		if now < lowest { // coordinators have some keys that come and go
			lowest, steady = now, time.Now()
		}
		kept := time.Since(ended)
		// The indexes of the shards stay; nothing has gone for a while after the time has come.
		if kept > c.Retention && time.Since(steady) > max(c.Retention/20, time.Second) {
			r.GoneSeconds = round(steady.Sub(ended).Seconds(), 1)
			return nil
		}
		if kept > c.Retention+60*time.Second {
			return fmt.Errorf("%d keys more than before are still there %s after the retention", now-keys, (kept - c.Retention).Round(time.Second))
		}
		c.Progress(fmt.Sprintf("retention (%.0f of %.0f s), keys", kept.Seconds(), c.Retention.Seconds()), int(now), 0)
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// pruneAll removes all index entries of what has expired.
func pruneAll(ctx context.Context, store *state.Store) error {
	for {
		removed, err := store.Prune(ctx, time.Now().UnixMilli())
		if err != nil || removed == 0 {
			return err
		}
	}
}

// deleteFinished removes an execution, whose last bookkeeping may not be done yet.
func deleteFinished(ctx context.Context, store *state.Store, id engine.ExecutionID) error {
	for deadline := time.Now().Add(executionTimeout); ; {
		err := store.Delete(ctx, id)
		if err == nil || errors.Is(err, state.ErrNotFound) || time.Now().After(deadline) {
			return err
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// holds counts keys and bytes of Redis and messages of all streams.
func (f *fleet) holds(ctx context.Context) (keys, memory, messages int64, err error) {
	if keys, err = f.rdb.DBSize(ctx).Result(); err != nil {
		return 0, 0, 0, fmt.Errorf("count keys: %w", err)
	}
	memory, ok := redisMemory(ctx, f.rdb)
	if !ok {
		return 0, 0, 0, errors.New("this Redis does not tell how much memory it uses: the scenario needs a redis-server")
	}
	nc, err := nats.Connect(f.nats)
	if err != nil {
		return 0, 0, 0, fmt.Errorf("connect to NATS: %w", err)
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		return 0, 0, 0, fmt.Errorf("connect to NATS: %w", err)
	}
	for _, name := range []string{queue.StreamJobs, queue.StreamSubmit, queue.StreamDead, queue.StreamFiles, "OBJ_" + queue.BucketBlobs} {
		stream, err := js.Stream(ctx, name)
		if err != nil {
			return 0, 0, 0, fmt.Errorf("stream %s: %w", name, err)
		}
		messages += int64(stream.CachedInfo().State.Msgs)
	}
	return keys, memory, messages, nil
}

// Tables implements Result.
func (r *FinishedReport) Tables() []Table {
	t := Table{Columns: []string{count(r.Executions) + " finished agent executions", ""}}
	t.add("Redis for each while they are kept", fmt.Sprintf("%s, %.2f keys", size(r.RedisBytes), r.RedisKeys))
	t.add(fmt.Sprintf("gone from Redis, after a retention of %.0f s", r.Retention), fmt.Sprintf("%.1f s after the last end", r.GoneSeconds))
	t.add("removing their index entries", fmt.Sprintf("%.2f s", r.PruneSeconds))
	t.add("left in Redis: keys / bytes", fmt.Sprintf("%d / %s", r.KeysLeft, size(float64(r.BytesLeft))))
	t.add("left in all streams", fmt.Sprintf("%d messages", r.MessagesLeft))
	return []Table{t}
}

// Print implements Result.
func (r *FinishedReport) Print(out io.Writer) {
	printTables(out, fmt.Sprintf("scenario finished: %d agent executions end and are kept for %.0f s", r.Executions, r.Retention), r.Tables(), &r.Environment)
}
