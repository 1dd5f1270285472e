package egress

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-engine/reprise/pkg/node"
)

// names is a DNS server that gives each name's answers in turn, the last one for ever.
type names struct {
	mu      sync.Mutex
	answers map[string][]string
	asked   int
}

// resolver asks the server through a pipe.
func (n *names) resolver() *net.Resolver {
	return &net.Resolver{PreferGo: true, StrictErrors: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		client, server := net.Pipe()
		go n.serve(server)
		return client, nil
	}}
}

// serve answers questions over TCP framing, which net uses for anything that is no packet connection.
func (n *names) serve(c net.Conn) {
	defer c.Close()
	for {
		var size [2]byte
		if _, err := io.ReadFull(c, size[:]); err != nil {
			return
		}
		query := make([]byte, binary.BigEndian.Uint16(size[:]))
		if _, err := io.ReadFull(c, query); err != nil {
			return
		}
		answer := n.answer(query)
		if _, err := c.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(answer))), answer...)); err != nil {
			return
		}
	}
}

// answer is the reply to a query of one question (RFC 1035).
func (n *names) answer(query []byte) []byte {
	var labels []string
	at := 12
	for query[at] != 0 {
		labels = append(labels, string(query[at+1:at+1+int(query[at])]))
		at += 1 + int(query[at])
	}
	end := at + 5 // the final zero, the type and the class
	kind := binary.BigEndian.Uint16(query[at+1:])
	address, known := n.next(strings.Join(labels, "."), kind == 1)
	reply := append([]byte{}, query[:2]...)
	flags := uint16(0x8180)
	if !known {
		flags |= 3 // no such name
	}
	var data []byte
	if a, err := netip.ParseAddr(address); err == nil && (a.Is4() && kind == 1 || a.Is6() && kind == 28) {
		data = a.AsSlice()
	}
	count := uint16(0)
	if data != nil {
		count = 1
	}
	for _, v := range []uint16{flags, 1, count, 0, 0} {
		reply = binary.BigEndian.AppendUint16(reply, v)
	}
	reply = append(reply, query[12:end]...)
	if data != nil {
		reply = append(reply, 0xc0, 12) // the name is the question's
		reply = binary.BigEndian.AppendUint16(reply, kind)
		reply = append(reply, 0, 1, 0, 0, 0, 0) // class, no time to live
		reply = binary.BigEndian.AppendUint16(reply, uint16(len(data)))
		reply = append(reply, data...)
	}
	return reply
}

func (n *names) next(name string, first bool) (string, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	name = strings.ToLower(name)
	list := n.answers[name]
	if len(list) == 0 {
		return "", false
	}
	if first {
		n.asked++
		if len(list) > 1 {
			n.answers[name] = list[1:]
		}
	}
	return list[0], true
}

// errReached stands in for the connection to a public address, which tests do not open.
var errReached = errors.New("reached")

// world is a guard among names, and a server on loopback that counts its visitors.
type world struct {
	*guard
	server *httptest.Server
	visits atomic.Int64
	client *http.Client
}

func newWorld(t *testing.T, policy *Policy, answers map[string][]string) *world {
	t.Helper()
	w := &world{}
	w.server = httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		w.visits.Add(1)
		if to := r.URL.Query().Get("to"); to != "" {
			http.Redirect(rw, r, to, http.StatusTemporaryRedirect)
		}
	}))
	t.Cleanup(w.server.Close)
	w.guard = &guard{
		policy: policy, resolver: (&names{answers: answers}).resolver(),
		proxy: func(*http.Request) (*url.URL, error) { return nil, nil },
		connect: func(_, address string) error {
			if a := netip.MustParseAddrPort(address); kindOf(a.Addr()) == "" {
				return errReached
			}
			return nil
		},
	}
	transport := w.transport(1)
	t.Cleanup(transport.CloseIdleConnections)
	w.client = &http.Client{Transport: transport}
	return w
}

func (w *world) port() string { return w.server.URL[strings.LastIndexByte(w.server.URL, ':')+1:] }

func (w *world) get(t *testing.T, url string) error {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, strings.ReplaceAll(url, "PORT", w.port()), nil)
	require.NoError(t, err, url)
	response, err := w.client.Do(request)
	if err != nil {
		return err
	}
	return response.Body.Close()
}

func public(t *testing.T, allow ...string) *Policy {
	t.Helper()
	p, err := NewPolicy(Public, allow)
	require.NoError(t, err)
	return p
}

// However an address is written, the connection to it is refused before it is opened.
func TestSpellingsOfLoopback(t *testing.T) {
	home := []string{"127.0.0.1"}
	w := newWorld(t, public(t), map[string][]string{
		// A resolver in C reads numbers as addresses; this one does as it would.
		"2130706433": home, "0x7f000001": home, "017700000001": home, "127.1": home, "0x7f.1": home, "0177.0.0.1": home,
		"localhost": home, "inside.example": home, "inside6.example": {"::1"}, "mapped.example": {"::ffff:127.0.0.1"},
	})
	for _, host := range []string{
		"127.0.0.1", "localhost", "LOCALHOST.", "[::1]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[0:0:0:0:0:0:0:1]", "[64:ff9b::7f00:1]", "0.0.0.0", "[::]",
		"2130706433", "0x7f000001", "017700000001", "127.1", "0x7f.1", "0177.0.0.1",
		"inside.example", "inside6.example", "mapped.example",
		"example.com@127.0.0.1", "user:pass@inside.example", "example.com%40x@127.0.0.1", "8.8.8.8:80@127.0.0.1",
	} {
		err := w.get(t, "http://"+host+":PORT/")
		var refused *node.AddressRefusedError
		require.ErrorAs(t, err, &refused, host)
		require.NotContains(t, refused.Error(), "pass", host)
	}
	require.Zero(t, w.visits.Load())
}

func TestNameThatChangesItsAddress(t *testing.T) {
	w := newWorld(t, public(t), map[string][]string{"rebind.example": {"8.8.8.8", "127.0.0.1"}})
	require.ErrorIs(t, w.get(t, "http://rebind.example:PORT/"), errReached, "the first answer is public")
	var refused *node.AddressRefusedError
	require.ErrorAs(t, w.get(t, "http://rebind.example:PORT/"), &refused, "the second is not")
	require.Equal(t, loopback, refused.Kind)
	require.Zero(t, w.visits.Load())
}

// A server that may be reached redirects to one that may not.
func TestRedirectInside(t *testing.T) {
	w := newWorld(t, public(t, "front.example"), map[string][]string{"front.example": {"127.0.0.1"}, "inside.example": {"127.0.0.1"}})
	require.NoError(t, w.get(t, "http://front.example:PORT/"))
	for _, to := range []string{"http://127.0.0.1:PORT/", "http://inside.example:PORT/", "http://[::ffff:127.0.0.1]:PORT/", "//localhost:PORT/"} {
		before := w.visits.Load()
		err := w.get(t, "http://front.example:PORT/?to="+url.QueryEscape(strings.ReplaceAll(to, "PORT", w.port())))
		var refused *node.AddressRefusedError
		require.ErrorAs(t, err, &refused, to)
		require.Equal(t, before+1, w.visits.Load(), to)
	}
	require.ErrorIs(t, w.get(t, "http://front.example:PORT/?to="+url.QueryEscape("http://8.8.8.8/")), errReached)
}

// Connections are kept by name: one that was opened under an allowed name serves no other.
func TestKeptConnectionsServeTheirNameOnly(t *testing.T) {
	w := newWorld(t, public(t, "front.example"), map[string][]string{"front.example": {"127.0.0.1"}, "other.example": {"127.0.0.1"}})
	require.NoError(t, w.get(t, "http://front.example:PORT/"))
	var refused *node.AddressRefusedError
	require.ErrorAs(t, w.get(t, "http://other.example:PORT/"), &refused)
	require.ErrorAs(t, w.get(t, "http://127.0.0.1:PORT/"), &refused)
	require.NoError(t, w.get(t, "http://front.example:PORT/"))
}

func TestEverythingIsReachedWithAny(t *testing.T) {
	w := newWorld(t, &Policy{}, map[string][]string{"inside.example": {"127.0.0.1"}})
	require.NoError(t, w.get(t, "http://127.0.0.1:PORT/"))
	require.NoError(t, w.get(t, "http://inside.example:PORT/"))
}

// The operator's proxy is private and is reached; what is asked of it is checked before.
func TestProxyOfTheOperator(t *testing.T) {
	w := newWorld(t, public(t), map[string][]string{
		"proxy.internal": {"127.0.0.1"}, "out.example": {"8.8.8.8"}, "inside.example": {"10.0.0.1"},
	})
	address := "proxy.internal:" + w.port()
	w.proxies = map[string]bool{address: true}
	w.proxy = http.ProxyURL(&url.URL{Scheme: "http", Host: address})
	require.NoError(t, w.get(t, "http://out.example/"))
	require.NoError(t, w.get(t, "http://only-the-proxy-knows.example/"))
	require.EqualValues(t, 2, w.visits.Load())
	for _, target := range []string{
		"http://10.0.0.1/", "http://inside.example/", "http://169.254.169.254/latest/meta-data", "http://[fd00:ec2::254]/", "http://2852039166/",
		"http://0xa9fea9fe/", "http://0251.0376.0251.0376/", "http://proxy.internal:PORT/", "http://127.0.0.1:PORT/", "https://inside.example/",
	} {
		var refused *node.AddressRefusedError
		require.ErrorAs(t, w.get(t, target), &refused, target)
	}
	require.EqualValues(t, 2, w.visits.Load())
}

func TestProxyAddress(t *testing.T) {
	for setting, want := range map[string]string{
		"": "", "http://proxy:3128": "proxy:3128", "proxy:3128": "proxy:3128", "http://u:p@proxy": "proxy:80", "https://proxy": "proxy:443",
		"socks5://proxy": "proxy:1080", "proxy": "proxy:80",
	} {
		require.Equal(t, want, proxyAddress(setting), setting)
	}
}
