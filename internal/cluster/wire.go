package cluster

import (
	"bytes"
	"io"
	"net"
	"sync"
	"testing"
)

// Wire is a network way to a server for what a Link does not do: connections
// that die without anyone being told, another server for new connections only, and
// single frames of the NATS protocol that get lost.
type Wire struct {
	listener net.Listener
	wg       sync.WaitGroup

	mu     sync.Mutex
	target string
	conns  map[*wired]struct{}
	lose   func(frame []byte) bool
	closed bool
}

// wired is one connection; dead ones swallow everything for ever.
type wired struct {
	client, server net.Conn
	dead           chan struct{}
	once           sync.Once
}

// NewWire opens a way to the server at addr (host:port). It ends with the test.
func NewWire(t testing.TB, addr string) *Wire {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &Wire{listener: listener, target: addr, conns: map[*wired]struct{}{}}
	w.wg.Go(w.accept)
	t.Cleanup(w.close)
	return w
}

// Addr is where the server is reached through the wire.
func (w *Wire) Addr() string { return w.listener.Addr().String() }

// Kill makes all present connections swallow everything from now on, without
// closing them. New connections work.
func (w *Wire) Kill() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for c := range w.conns {
		c.once.Do(func() { close(c.dead) })
	}
}

// Switch leads new connections to another server. Present ones stay.
func (w *Wire) Switch(addr string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.target = addr
}

// LoseFrames loses those frames of a NATS server's replies that a test chooses; a
// frame is a protocol line with its payload. It counts for connections made from now on. nil
// loses nothing.
func (w *Wire) LoseFrames(lose func(frame []byte) bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lose = lose
}

func (w *Wire) accept() {
	for {
		client, err := w.listener.Accept()
		if err != nil {
			return
		}
		w.mu.Lock()
		target := w.target
		w.mu.Unlock()
		server, err := net.Dial("tcp", target)
		if err != nil {
			_ = client.Close()
			continue
		}
		c := &wired{client: client, server: server, dead: make(chan struct{})}
		w.mu.Lock()
		if w.closed {
			w.mu.Unlock()
			_, _ = client.Close(), server.Close()
			return
		}
		w.conns[c] = struct{}{}
		w.mu.Unlock()
		w.wg.Go(func() { w.pipe(c, client, server, nil) })
		w.wg.Go(func() { w.pipe(c, server, client, &frames{}) })
	}
}

// pipe forwards one direction until a side closes.
func (w *Wire) pipe(c *wired, from io.Reader, to io.Writer, split *frames) {
	defer func() {
		_, _ = c.client.Close(), c.server.Close()
		w.mu.Lock()
		delete(w.conns, c)
		w.mu.Unlock()
	}()
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		if err != nil {
			return
		}
		select {
		case <-c.dead:
			continue // swallowed
		default:
		}
		data := buf[:n]
		w.mu.Lock()
		lose := w.lose
		w.mu.Unlock()
		if split != nil && (lose != nil || split.begun) {
			data = split.filter(data, lose)
		}
		if _, err := to.Write(data); err != nil {
			return
		}
	}
}

func (w *Wire) close() {
	_ = w.listener.Close()
	w.mu.Lock()
	w.closed = true
	for c := range w.conns {
		_, _ = c.client.Close(), c.server.Close()
	}
	w.mu.Unlock()
	w.wg.Wait()
}

// frames cuts what a NATS server says into frames.
type frames struct {
	begun bool
	rest  []byte // of a frame that is not complete
}

func (f *frames) filter(data []byte, lose func([]byte) bool) (kept []byte) {
	f.begun = true
	f.rest = append(f.rest, data...)
	for {
		line := bytes.Index(f.rest, []byte("\r\n"))
		if line < 0 {
			return kept
		}
		size := line + 2
		if bytes.HasPrefix(f.rest, []byte("MSG ")) || bytes.HasPrefix(f.rest, []byte("HMSG ")) {
			fields := bytes.Fields(f.rest[:line])
			payload := 0
			for _, digit := range fields[len(fields)-1] {
				payload = 10*payload + int(digit-'0')
			}
			size += payload + 2
		}
		if len(f.rest) < size {
			return kept
		}
		if frame := f.rest[:size]; lose == nil || !lose(frame) {
			kept = append(kept, frame...)
		}
		f.rest = f.rest[size:]
	}
}
