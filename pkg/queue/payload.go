package queue

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/segmentio/encoding/json"
	"go.uber.org/zap"

	"github.com/reprise-engine/reprise/pkg/workflow"
)

// encode is json.Marshal without escaping <, > and &, which would blow up web
// pages and prompts on their way.
func encode(v any) ([]byte, error) {
	return workflow.Encode(v, workflow.CheckRaw)
}

// encodeTrusted is encode for values whose raw JSON was read from JSON: it is
// passed on as it is, without looking at it again.
func encodeTrusted(v any) ([]byte, error) {
	return workflow.Encode(v, workflow.TrustRaw)
}

// decode reads v from data, which it may keep references to.
func decode(data []byte, v any) error {
	rest, err := json.Parse(data, v, json.ZeroCopy)
	if err == nil && len(bytes.TrimSpace(rest)) > 0 {
		err = errors.New("invalid character after top-level value")
	}
	return err
}

// threshold is the size from which a payload goes through the object store.
func (c *Conn) threshold() int {
	limit := int(c.nc.MaxPayload()) * 3 / 4
	if c.config.BlobThreshold > 0 && c.config.BlobThreshold < limit {
		return c.config.BlobThreshold
	}
	return limit
}

// pack makes data the payload of a message, through the object store when it
// is large.
func (c *Conn) pack(ctx context.Context, m *nats.Msg, data []byte) error {
	if len(data) <= c.threshold() {
		m.Data = data
		return nil
	}
	digest, err := c.PutBlob(ctx, data)
	if err != nil {
		return err
	}
	if m.Header == nil {
		m.Header = nats.Header{}
	}
	m.Header[HeaderBlob] = []string{digest}
	m.Header[HeaderBlobSize] = []string{strconv.Itoa(len(data))}
	return nil
}

// blobOf is the digest of a message's payload when that is in the object store.
func blobOf(header nats.Header) string {
	if header == nil {
		return ""
	}
	return header.Get(HeaderBlob)
}

// unpack returns the payload of a message.
func (c *Conn) unpack(ctx context.Context, header nats.Header, data []byte) ([]byte, error) {
	if digest := blobOf(header); digest != "" {
		return c.GetBlob(ctx, digest)
	}
	return data, nil
}

// PutBlob stores data under its SHA-256, which it returns in hex. Storing what is
// stored does nothing.
func (c *Conn) PutBlob(ctx context.Context, data []byte) (digest string, err error) {
	if int64(len(data)) > c.config.MaxBlobBytes {
		return "", fmt.Errorf("%w: %d bytes, the limit is %d", ErrTooLarge, len(data), c.config.MaxBlobBytes)
	}
	sum := sha256.Sum256(data)
	digest = hex.EncodeToString(sum[:])
	ctx, cancel := c.bounded(ctx)
	defer cancel()
	err = c.withBlobs(ctx, func(store jetstream.ObjectStore) error {
		info, err := store.GetInfo(ctx, digest)
		if err == nil && info.Size == uint64(len(data)) {
			return nil
		}
		if err != nil && !errors.Is(err, jetstream.ErrObjectNotFound) {
			return err
		}
		meta := jetstream.ObjectMeta{Name: digest, Opts: &jetstream.ObjectMetaOptions{ChunkSize: c.chunkSize()}}
		_, err = store.Put(ctx, meta, bytes.NewReader(data))
		if err == nil {
			c.stats.blobsPut.Add(1)
		}
		return err
	})
	if err != nil {
		return "", fmt.Errorf("store payload of %d bytes: %w", len(data), err)
	}
	return digest, nil
}

// chunkSize keeps the number of messages of a blob low and each below what the
// server takes.
func (c *Conn) chunkSize() uint32 {
	return uint32(min(512<<10, c.nc.MaxPayload()*3/4))
}

// GetBlob returns what PutBlob stored, checked against its digest.
func (c *Conn) GetBlob(ctx context.Context, digest string) ([]byte, error) {
	if !validDigest(digest) {
		return nil, fmt.Errorf("%w: %.80q is no digest", ErrBlobNotFound, digest)
	}
	ctx, cancel := c.bounded(ctx)
	defer cancel()
	var data []byte
	err := c.withBlobs(ctx, func(store jetstream.ObjectStore) error {
		object, err := store.Get(ctx, digest)
		if err != nil {
			return err
		}
		defer object.Close() //nolint:errcheck // what was read is checked
		info, err := object.Info()
		if err != nil {
			return err
		}
		if info.Size > uint64(c.config.MaxBlobBytes) {
			return fmt.Errorf("%w: %d bytes, the limit is %d", ErrTooLarge, info.Size, c.config.MaxBlobBytes)
		}
		// No larger than needed: parts of it stay in memory as long as their execution does.
		b := bytes.NewBuffer(make([]byte, 0, info.Size+bytes.MinRead))
		_, err = b.ReadFrom(object)
		data = b.Bytes()
		return err
	})
	switch {
	case errors.Is(err, jetstream.ErrObjectNotFound), errors.Is(err, jetstream.ErrDigestMismatch):
		return nil, fmt.Errorf("%w: %s", ErrBlobNotFound, digest)
	case err != nil:
		return nil, fmt.Errorf("read payload %s: %w", digest, err)
	}
	if sum := sha256.Sum256(data); hex.EncodeToString(sum[:]) != digest {
		// Whoever needs it stores it again.
		_ = c.DeleteBlob(ctx, digest)
		return nil, fmt.Errorf("%w: %s is damaged", ErrBlobNotFound, digest)
	}
	c.stats.blobsGot.Add(1)
	return data, nil
}

// DeleteBlob removes a payload; one that is not there is no error.
func (c *Conn) DeleteBlob(ctx context.Context, digest string) error {
	if !validDigest(digest) {
		return nil
	}
	ctx, cancel := c.bounded(ctx)
	defer cancel()
	err := c.withBlobs(ctx, func(store jetstream.ObjectStore) error { return store.Delete(ctx, digest) })
	if err != nil && !errors.Is(err, jetstream.ErrObjectNotFound) {
		return fmt.Errorf("delete payload %s: %w", digest, err)
	}
	return nil
}

// deleteBlob removes a payload that was used, without waiting.
func (c *Conn) deleteBlob(digest string) {
	if digest == "" {
		return
	}
	c.inBackground(func(ctx context.Context) {
		if err := c.DeleteBlob(ctx, digest); err != nil {
			c.log.Debug("payload was not deleted, it expires later", zap.Error(err))
		}
	})
}

func validDigest(digest string) bool {
	raw, err := hex.DecodeString(digest)
	return err == nil && len(raw) == sha256.Size
}

// withBlobs runs f on the object store, once more when that had to be created
// again.
func (c *Conn) withBlobs(ctx context.Context, f func(jetstream.ObjectStore) error) error {
	err := c.tryBlobs(ctx, f)
	if errors.Is(err, ErrNoStream) {
		if restored, restoreErr := c.restoreStreams(ctx); restoreErr == nil && restored {
			err = c.tryBlobs(ctx, f)
		}
	}
	return err
}

func (c *Conn) tryBlobs(ctx context.Context, f func(jetstream.ObjectStore) error) error {
	store := c.blobs.Load()
	if store == nil {
		opened, err := c.js.ObjectStore(ctx, BucketBlobs)
		if errors.Is(err, jetstream.ErrBucketNotFound) {
			return fmt.Errorf("%w: %w", ErrNoStream, err)
		}
		if err != nil {
			return classify(err)
		}
		store = &opened
		c.blobs.Store(store)
	}
	err := f(*store)
	if errors.Is(err, nats.ErrNoResponders) {
		// Nobody serves the stream behind the bucket.
		return fmt.Errorf("%w: %w", ErrNoStream, err)
	}
	return classify(err)
}
