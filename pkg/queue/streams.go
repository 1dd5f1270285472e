package queue

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// Streams says how the streams are kept. The zero value is good for one server.
type Streams struct {
	// Replicas in a cluster: 1 (or 0), 3 or 5.
	Replicas int
	// MaxBytes of the job stream and of the submission stream, each; a full
	// stream refuses with ErrFull. 0 is unlimited.
	MaxBytes int64
	// BlobTTL is how long a large payload is kept at most, wherever nobody deletes
	// it before; 0 is 48 h. Jobs that wait longer are published again.
	BlobTTL time.Duration
	// MaxBlobBytes of the object store; 0 is unlimited.
	MaxBlobBytes int64
	// FileTTL is how long a file of an execution is kept at most; 0 is 30 days. Coordinators remove
	// files together with their executions, so this matters for executions that are unfinished for longer.
	FileTTL time.Duration
	// MaxFileBytes of all files together; what goes beyond is refused with ErrFull. 0 is unlimited.
	MaxFileBytes int64
	// DeadAge is how long dead letters are kept; 0 is 30 days.
	DeadAge time.Duration
	// Memory keeps everything in the server's memory: for benchmarks only.
	Memory bool
}

func (s Streams) withDefaults() Streams {
	if s.Replicas <= 0 {
		s.Replicas = 1
	}
	if s.MaxBytes <= 0 {
		s.MaxBytes = -1
	}
	if s.BlobTTL <= 0 {
		s.BlobTTL = 48 * time.Hour
	}
	if s.MaxBlobBytes <= 0 {
		s.MaxBlobBytes = -1
	}
	if s.FileTTL <= 0 {
		s.FileTTL = 30 * 24 * time.Hour
	}
	if s.MaxFileBytes <= 0 {
		s.MaxFileBytes = -1
	}
	if s.DeadAge <= 0 {
		s.DeadAge = 30 * 24 * time.Hour
	}
	return s
}

func (s Streams) configs() []jetstream.StreamConfig {
	storage := jetstream.FileStorage
	if s.Memory {
		storage = jetstream.MemoryStorage
	}
	return []jetstream.StreamConfig{{
		Name: StreamJobs, Description: "jobs queued or running; acknowledged by coordinators",
		Subjects:  []string{subjectJob + "*.*"},
		Retention: jetstream.WorkQueuePolicy, Storage: storage, Replicas: s.Replicas, MaxBytes: s.MaxBytes,
		// A job is in the stream from its first publication until its result is
		// committed, so this refuses each repetition, whenever it comes.
		MaxMsgsPerSubject: 1, Discard: jetstream.DiscardNew, DiscardNewPerSubject: true,
		// Job ids are never used again and publications carry no message id.
		Duplicates: time.Second,
	}, {
		Name: StreamSubmit, Description: "durable submissions not yet taken by a coordinator",
		Subjects:  []string{subjectSubmission},
		Retention: jetstream.WorkQueuePolicy, Storage: storage, Replicas: s.Replicas, MaxBytes: s.MaxBytes,
		Discard: jetstream.DiscardNew, Duplicates: 2 * time.Minute,
	}, {
		Name: StreamDead, Description: "jobs and submissions that were given up",
		Subjects: []string{subjectDead + "*"}, MaxAge: s.DeadAge, MaxMsgs: 100_000,
		Retention: jetstream.LimitsPolicy, Storage: storage, Replicas: s.Replicas, Duplicates: 2 * time.Minute,
	}, {
		Name: StreamFiles, Description: "files of executions, in pieces; removed by coordinators with their executions",
		Subjects: []string{subjectFile + "*.*"}, MaxAge: s.FileTTL, MaxBytes: s.MaxFileBytes,
		Retention: jetstream.LimitsPolicy, Storage: storage, Replicas: s.Replicas, Discard: jetstream.DiscardNew,
		// A piece that was sent twice, as its confirmation was lost, is stored once.
		Duplicates: 2 * time.Minute, AllowDirect: true,
	}}
}

// EnsureStreams creates the streams and the object store that are missing and
// changes those that differ. It may be called again, and by several processes
// at once; later publications that find no stream call it by themselves.
func (c *Conn) EnsureStreams(ctx context.Context, s Streams) error {
	c.mu.Lock()
	c.streams = &s
	c.mu.Unlock()
	ctx, cancel := c.bounded(ctx)
	defer cancel()
	s = s.withDefaults()
	for _, config := range s.configs() {
		if err := c.ensureStream(ctx, config); err != nil {
			return err
		}
	}
	bucket := jetstream.ObjectStoreConfig{
		Bucket: BucketBlobs, Description: "payloads that do not fit into a message, by their SHA-256",
		TTL: s.BlobTTL, MaxBytes: s.MaxBlobBytes, Replicas: s.Replicas,
	}
	if s.Memory {
		bucket.Storage = jetstream.MemoryStorage
	}
	store, err := retryRace(ctx, func() (jetstream.ObjectStore, error) { return c.js.CreateOrUpdateObjectStore(ctx, bucket) })
	if err != nil {
		return fmt.Errorf("create object store %s: %w", BucketBlobs, classify(err))
	}
	c.blobs.Store(&store)
	return nil
}

func (c *Conn) ensureStream(ctx context.Context, config jetstream.StreamConfig) error {
	_, err := retryRace(ctx, func() (jetstream.Stream, error) { return c.js.CreateOrUpdateStream(ctx, config) })
	if err != nil {
		return fmt.Errorf("create stream %s: %w", config.Name, classify(err))
	}
	return nil
}

// retryRace repeats a "create or update" that lost against another process
// between its two steps.
func retryRace[T any](ctx context.Context, create func() (T, error)) (T, error) {
	for wait := 20 * time.Millisecond; ; wait *= 2 {
		result, err := create()
		raced := errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) || errors.Is(err, jetstream.ErrStreamNotFound) ||
			errors.Is(err, jetstream.ErrBucketExists) || errors.Is(err, jetstream.ErrBucketNotFound)
		if !raced || wait > time.Second {
			return result, err
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return result, err
		}
	}
}

// restoreStreams creates again what EnsureStreams created before; false when
// this process never called it and leaves that to those that do.
func (c *Conn) restoreStreams(ctx context.Context) (bool, error) {
	c.mu.Lock()
	streams := c.streams
	c.mu.Unlock()
	if streams == nil {
		return false, nil
	}
	c.log.Warn("a stream is missing, creating it again")
	return true, c.EnsureStreams(ctx, *streams)
}
