package redistest

import (
	"bytes"
	"net"
	"sync"
	"sync/atomic"
	"testing"
)

// Proxy is a TCP proxy before a server. It counts bytes, loses replies on
// request, and can go silent as a network that swallows packets does.
type Proxy struct {
	target   string
	listener net.Listener
	wg       sync.WaitGroup

	requests, replies atomic.Int64

	mu     sync.Mutex
	conns  map[net.Conn]struct{}
	lose   int    // replies to lose
	marker []byte // in requests whose reply is to be lost
	silent chan struct{}
	closed bool
}

// StartProxy starts a proxy before the server at addr; it ends with the test.
func StartProxy(t testing.TB, addr string) *Proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{target: addr, listener: l, conns: map[net.Conn]struct{}{}}
	p.wg.Add(1)
	go p.accept()
	t.Cleanup(p.close)
	return p
}

// URL is the proxy's address as a redis:// URL.
func (p *Proxy) URL() string { return "redis://" + p.listener.Addr().String() + "/0" }

// LoseReplies makes the next n requests that contain marker lose their reply:
// the server gets the request and answers, and then the connection breaks. Upper
// and lower case are the same.
func (p *Proxy) LoseReplies(n int, marker string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lose, p.marker = n, bytes.ToLower([]byte(marker))
}

// Pending reports how many replies are still to be lost.
func (p *Proxy) Pending() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.lose
}

// Silence swallows everything both ways, on old and new connections, until
// the returned function is called. Connections stay open.
func (p *Proxy) Silence() (end func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	silent := make(chan struct{})
	p.silent = silent
	return sync.OnceFunc(func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.silent == silent {
			p.silent = nil
		}
		close(silent)
	})
}

// Bytes returns how many bytes went to the server and came back so far.
func (p *Proxy) Bytes() (requests, replies int64) { return p.requests.Load(), p.replies.Load() }

func (p *Proxy) accept() {
	defer p.wg.Done()
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", p.target)
		if err != nil {
			_ = client.Close()
			continue
		}
		if !p.track(client, server) {
			return
		}
		l := &link{p: p, client: client, server: server}
		p.wg.Add(2)
		go l.copy(client, server, &p.requests, l.mark)
		go l.copy(server, client, &p.replies, l.drops)
	}
}

// track remembers connections to close at the end.
func (p *Proxy) track(conns ...net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range conns {
		if p.closed {
			_ = c.Close()
			continue
		}
		p.conns[c] = struct{}{}
	}
	return !p.closed
}

func (p *Proxy) close() {
	_ = p.listener.Close()
	p.mu.Lock()
	p.closed = true
	for c := range p.conns {
		_ = c.Close()
	}
	silent := p.silent
	p.silent = nil
	p.mu.Unlock()
	if silent != nil {
		close(silent)
	}
	p.wg.Wait()
}

// link is one proxied connection.
type link struct {
	p              *Proxy
	client, server net.Conn
	drop           atomic.Bool
}

// mark notes whether the reply to this request is to be lost.
func (l *link) mark(request []byte) bool {
	l.p.mu.Lock()
	defer l.p.mu.Unlock()
	if l.p.lose > 0 && bytes.Contains(bytes.ToLower(request), l.p.marker) {
		l.p.lose--
		l.drop.Store(true)
	}
	return false
}

func (l *link) drops([]byte) bool { return l.drop.Load() }

// copy forwards until a side closes, or stop says that what came is lost.
func (l *link) copy(from, to net.Conn, count *atomic.Int64, stop func([]byte) bool) {
	defer l.p.wg.Done()
	defer l.client.Close()
	defer l.server.Close()
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		if err != nil {
			return
		}
		count.Add(int64(n))
		l.p.mu.Lock()
		silent := l.p.silent
		l.p.mu.Unlock()
		if silent != nil {
			<-silent
			return // what was swallowed leaves the stream out of step
		}
		if stop(buf[:n]) {
			return
		}
		if _, err := to.Write(buf[:n]); err != nil {
			return
		}
	}
}
