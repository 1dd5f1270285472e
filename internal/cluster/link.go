package cluster

import (
	"math/rand/v2"
	"net"
	"sync"
	"testing"
	"time"
)

// Link is a network way to a server that can be slow, or swallow everything. (Not a
// toxiproxy: taking a toxic off a connection that is just ending makes it panic when the
// next one is put on.)
type Link struct {
	listener net.Listener
	target   string
	wg       sync.WaitGroup

	mu         sync.Mutex
	conns      map[*linked]struct{}
	hole       bool
	by, jitter time.Duration
	healed     chan struct{} // closed and replaced by Heal: what is delayed goes on at once
	closed     bool
}

// linked is one connection over a link.
type linked struct {
	client, server net.Conn
	swallowed      bool // some of its bytes; guarded by the link's mu
}

// NewLink opens a way to the server at addr (host:port). It ends with the test.
func NewLink(t testing.TB, addr string) *Link {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := &Link{listener: listener, target: addr, conns: map[*linked]struct{}{}, healed: make(chan struct{})}
	l.wg.Go(l.accept)
	t.Cleanup(l.close)
	return l
}

// Addr is where the server is reached through the link.
func (l *Link) Addr() string { return l.listener.Addr().String() }

// BlackHole swallows everything both ways, on old and new connections, which stay
// open, until Heal.
func (l *Link) BlackHole() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.hole = true
}

// Slow delays everything that the server says, by a time that differs by up to jitter,
// until Heal. Order is kept.
func (l *Link) Slow(by, jitter time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.by, l.jitter = by, jitter
}

// Heal ends BlackHole and Slow. Connections whose bytes were swallowed are closed.
func (l *Link) Heal() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.hole, l.by, l.jitter = false, 0, 0
	close(l.healed)
	l.healed = make(chan struct{})
	for c := range l.conns {
		if c.swallowed {
			_, _ = c.client.Close(), c.server.Close()
		}
	}
}

func (l *Link) accept() {
	for {
		client, err := l.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", l.target)
		if err != nil {
			_ = client.Close()
			continue
		}
		c := &linked{client: client, server: server}
		l.mu.Lock()
		if l.closed {
			l.mu.Unlock()
			_, _ = client.Close(), server.Close()
			return
		}
		l.conns[c] = struct{}{}
		l.mu.Unlock()
		said := make(chan delayed, 1024)
		l.wg.Go(func() { l.up(c) })
		l.wg.Go(func() { l.listen(c, said) })
		l.wg.Go(func() { l.down(c, said) })
	}
}

// passes reports whether bytes go through now, and notes when they do not.
func (l *Link) passes(c *linked) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	c.swallowed = c.swallowed || l.hole
	return !c.swallowed // what follows lost bytes would make no sense
}

func (l *Link) drop(c *linked) {
	_, _ = c.client.Close(), c.server.Close()
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.conns, c)
}

// up forwards what the client says.
func (l *Link) up(c *linked) {
	defer l.drop(c)
	buf := make([]byte, 64<<10)
	for {
		n, err := c.client.Read(buf)
		if err != nil {
			return
		}
		if !l.passes(c) {
			continue
		}
		if _, err := c.server.Write(buf[:n]); err != nil {
			return
		}
	}
}

// delayed is what a server has said, and when it is to arrive. end is why it says no more.
type delayed struct {
	data   []byte
	due    time.Time
	healed <-chan struct{}
	end    error
}

// listen takes what the server says, as soon as it says it.
func (l *Link) listen(c *linked, said chan<- delayed) {
	defer close(said)
	for {
		buf := make([]byte, 32<<10)
		n, err := c.server.Read(buf)
		l.mu.Lock()
		by := l.by
		if l.jitter > 0 {
			by += time.Duration(rand.Int64N(2*int64(l.jitter))) - l.jitter
		}
		d := delayed{data: buf[:n], due: time.Now().Add(by), healed: l.healed, end: err}
		l.mu.Unlock()
		said <- d
		if err != nil {
			return
		}
	}
}

// down forwards what the server says when it is due.
func (l *Link) down(c *linked, said <-chan delayed) {
	defer func() {
		l.drop(c)
		for range said { // until its end is heard
			continue
		}
	}()
	for d := range said {
		if wait := time.Until(d.due); wait > 0 {
			timer := time.NewTimer(wait)
			select {
			case <-timer.C:
			case <-d.healed:
				timer.Stop()
			}
		}
		// A server that ends a connection into a black hole is not heard either.
		if !l.passes(c) {
			continue
		}
		if _, err := c.client.Write(d.data); err != nil || d.end != nil {
			return
		}
	}
}

func (l *Link) close() {
	_ = l.listener.Close()
	l.mu.Lock()
	l.closed = true
	close(l.healed)
	l.healed = make(chan struct{})
	for c := range l.conns {
		_, _ = c.client.Close(), c.server.Close()
	}
	l.mu.Unlock()
	l.wg.Wait()
}
