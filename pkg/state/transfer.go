package state

import (
	"context"
	"net"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	// movedBytes is how much one read must bring to count as a transfer that goes on.
	movedBytes = 1 << 10
	// writeBytes is how much is written within one deadline.
	writeBytes = 1 << 20
)

// transfer is a connection whose deadlines bound how long nothing moves, and not how much moves:
// an execution with hundreds of megabytes of run data takes longer than any timeout after which
// a silent Redis is to be given up, and would never be loaded again.
type transfer struct {
	net.Conn
	// What the deadlines of now gave, in nanoseconds; 0 or less is none.
	read, write atomic.Int64
}

// dialer makes connections of the library's own kind transfers.
func dialer(options *redis.UniversalOptions) func(ctx context.Context, network, addr string) (net.Conn, error) {
	dial := redis.NewDialer(&redis.Options{DialTimeout: options.DialTimeout, TLSConfig: options.TLSConfig})
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return &transfer{Conn: conn}, nil
	}
}

// NetConn lets the library look whether an idle connection is still open.
func (t *transfer) NetConn() net.Conn { return t.Conn }

func (t *transfer) Read(b []byte) (int, error) {
	n, err := t.Conn.Read(b)
	if n >= movedBytes && err == nil {
		if window := time.Duration(t.read.Load()); window > 0 {
			err = t.Conn.SetReadDeadline(time.Now().Add(window))
		}
	}
	return n, err
}

func (t *transfer) Write(b []byte) (written int, err error) {
	for {
		part := b[written:min(len(b), written+writeBytes)]
		n, err := t.Conn.Write(part)
		if written += n; err != nil || written == len(b) {
			return written, err
		}
		if window := time.Duration(t.write.Load()); window > 0 {
			if err := t.Conn.SetWriteDeadline(time.Now().Add(window)); err != nil {
				return written, err
			}
		}
	}
}

func (t *transfer) SetReadDeadline(at time.Time) error {
	t.read.Store(given(at))
	return t.Conn.SetReadDeadline(at)
}

func (t *transfer) SetWriteDeadline(at time.Time) error {
	t.write.Store(given(at))
	return t.Conn.SetWriteDeadline(at)
}

func (t *transfer) SetDeadline(at time.Time) error {
	t.read.Store(given(at))
	t.write.Store(given(at))
	return t.Conn.SetDeadline(at)
}

// given is how long it is to a deadline.
func given(at time.Time) int64 {
	if at.IsZero() {
		return 0
	}
	return int64(time.Until(at))
}
