package egress

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Bounds of a connection; how long an answer may take is the request's own business.
const (
	dialTimeout      = 30 * time.Second
	handshakeTimeout = 10 * time.Second
	idleTimeout      = 90 * time.Second
	maxHeaderBytes   = 1 << 20
)

// Transport returns an HTTP transport that keeps to the policy. Copies made with Clone keep
// to it as well, also with a Proxy of their own that calls this one's first. idlePerHost is
// how many unused connections to a server are kept.
func (p *Policy) Transport(idlePerHost int) *http.Transport {
	g := &guard{policy: p, resolver: net.DefaultResolver, proxy: http.ProxyFromEnvironment, proxies: environmentProxies()}
	return g.transport(idlePerHost)
}

// guard applies a policy to connections.
type guard struct {
	policy   *Policy
	resolver *net.Resolver
	// proxy is the operator's choice of a proxy; proxies are the addresses ("host:port")
	// that it may choose.
	proxy   func(*http.Request) (*url.URL, error)
	proxies map[string]bool
	// connect, when not nil, is asked after the policy, with the address.
	connect func(network, address string) error
}

func (g *guard) transport(idlePerHost int) *http.Transport {
	return &http.Transport{
		Proxy: g.chooseProxy, DialContext: g.dial, ForceAttemptHTTP2: true,
		MaxIdleConnsPerHost: idlePerHost, IdleConnTimeout: idleTimeout,
		TLSHandshakeTimeout: handshakeTimeout, MaxResponseHeaderBytes: maxHeaderBytes,
	}
}

// dial resolves and connects; the policy sees each address just before it is used.
func (g *guard) dial(ctx context.Context, network, address string) (net.Conn, error) {
	dialer := net.Dialer{Timeout: dialTimeout, Resolver: g.resolver}
	host, port, err := splitAddress(address)
	if err != nil {
		return nil, err
	}
	trusted := !g.policy.guarded || g.policy.allowsName(host, port) || g.proxies[address]
	if !trusted && standsForAddress(host) {
		return nil, refuse(host, port, disguised)
	}
	dialer.ControlContext = func(_ context.Context, network, resolved string, _ syscall.RawConn) error {
		if !trusted {
			at, err := netip.ParseAddrPort(resolved)
			if err != nil {
				return fmt.Errorf("address %q cannot be checked: %w", resolved, err)
			}
			if err := g.policy.check(at.Addr(), at.Port(), host); err != nil {
				return err
			}
		}
		if g.connect != nil {
			return g.connect(network, resolved)
		}
		return nil
	}
	return dialer.DialContext(ctx, network, address)
}

// chooseProxy returns the operator's proxy for a request. When there is one it connects in our
// stead, and dial never sees the target: so the target is checked here. That holds for
// every target, also one that the operator's proxy is not for: a workflow may name
// that proxy as its own.
func (g *guard) chooseProxy(r *http.Request) (*url.URL, error) {
	if len(g.proxies) > 0 && g.policy.guarded {
		if err := g.checkTarget(r); err != nil {
			return nil, err
		}
	}
	return g.proxy(r)
}

func (g *guard) checkTarget(r *http.Request) error {
	port := r.URL.Port()
	if port == "" {
		port = defaultPorts[r.URL.Scheme]
	}
	host, number, err := splitAddress(net.JoinHostPort(r.URL.Hostname(), port))
	if err != nil {
		return err
	}
	if g.policy.allowsName(host, number) {
		return nil
	}
	if a, err := netip.ParseAddr(host); err == nil {
		return g.policy.check(a, number, host)
	}
	if standsForAddress(host) {
		return refuse(host, number, disguised)
	}
	found, err := g.resolver.LookupNetIP(r.Context(), "ip", host)
	if err != nil {
		return nil // the proxy may know it; if so, the rules of the proxy decide
	}
	for _, a := range found {
		if err := g.policy.check(a, number, host); err != nil {
			return err
		}
	}
	return nil
}

var defaultPorts = map[string]string{"http": "80", "https": "443"}

// splitAddress splits "host:port".
func splitAddress(address string) (host string, port uint16, err error) {
	host, text, err := net.SplitHostPort(address)
	if err != nil {
		return "", 0, err
	}
	n, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		return "", 0, fmt.Errorf("port %q of %s: use a number from 0 to 65535", text, host)
	}
	return host, uint16(n), nil
}

// standsForAddress reports whether a host that is no address would be taken for one by inet_aton, and so
// by resolvers and proxies in C: its last part is a decimal, octal (017) or hexadecimal (0x7f)
// number, which no top-level domain is.
func standsForAddress(host string) bool {
	if _, err := netip.ParseAddr(host); err == nil {
		return false
	}
	host = canonical(host)
	last := host[strings.LastIndexByte(host, '.')+1:]
	if hex, ok := strings.CutPrefix(last, "0x"); ok {
		return strings.Trim(hex, "0123456789abcdef") == ""
	}
	return last != "" && strings.Trim(last, "0123456789") == ""
}

// environmentProxies are the addresses of the proxies that http.ProxyFromEnvironment knows.
func environmentProxies() map[string]bool {
	found := map[string]bool{}
	for _, name := range []string{"HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy"} {
		if address := proxyAddress(os.Getenv(name)); address != "" {
			found[address] = true
		}
	}
	return found
}

// proxyAddress is the "host:port" that net/http connects to for a proxy setting.
func proxyAddress(setting string) string {
	if setting == "" {
		return ""
	}
	u, err := url.Parse(setting)
	if err != nil || u.Scheme == "" || u.Host == "" {
		if u, err = url.Parse("http://" + setting); err != nil {
			return ""
		}
	}
	port := u.Port()
	if port == "" {
		if port = defaultPorts[u.Scheme]; port == "" {
			port = "1080" // socks5
		}
	}
	return net.JoinHostPort(u.Hostname(), port)
}
