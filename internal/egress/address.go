package egress

import "net/netip"

// block is a range of addresses that is not public.
type block struct {
	prefix netip.Prefix
	kind   string
}

// The kinds of addresses, as errors name them.
const (
	loopback    = "a loopback address"
	private     = "a private address"
	linkLocal   = "a link-local address, where clouds keep their metadata"
	metadata    = "an address where a cloud keeps its metadata"
	shared      = "a shared address of a carrier (CGNAT)"
	multicast   = "a multicast address"
	unspecified = "an unspecified address"
	reserved    = "a reserved address"
	disguised   = "a number that stands for an address"
)

// blocks are IANA's special-purpose addresses (RFC 6890 and its registries), narrow ones before
// those that hold them. 168.63.129.16 is a public number that leads to the host inside Azure.
var blocks = []block{
	{netip.MustParsePrefix("0.0.0.0/8"), unspecified},
	{netip.MustParsePrefix("10.0.0.0/8"), private},
	{netip.MustParsePrefix("100.100.100.200/32"), metadata},
	{netip.MustParsePrefix("100.64.0.0/10"), shared},
	{netip.MustParsePrefix("127.0.0.0/8"), loopback},
	{netip.MustParsePrefix("168.63.129.16/32"), metadata},
	{netip.MustParsePrefix("169.254.0.0/16"), linkLocal},
	{netip.MustParsePrefix("172.16.0.0/12"), private},
	{netip.MustParsePrefix("192.0.0.192/32"), metadata},
	{netip.MustParsePrefix("192.0.0.0/24"), reserved},
	{netip.MustParsePrefix("192.0.2.0/24"), reserved},
	{netip.MustParsePrefix("192.88.99.0/24"), reserved},
	{netip.MustParsePrefix("192.168.0.0/16"), private},
	{netip.MustParsePrefix("198.18.0.0/15"), reserved},
	{netip.MustParsePrefix("198.51.100.0/24"), reserved},
	{netip.MustParsePrefix("203.0.113.0/24"), reserved},
	{netip.MustParsePrefix("224.0.0.0/4"), multicast},
	{netip.MustParsePrefix("240.0.0.0/4"), reserved},

	{netip.MustParsePrefix("::/128"), unspecified},
	{netip.MustParsePrefix("::1/128"), loopback},
	{netip.MustParsePrefix("fd00:ec2::254/128"), metadata},
	{netip.MustParsePrefix("fd20:ce::254/128"), metadata},
	{netip.MustParsePrefix("fc00::/7"), private},
	{netip.MustParsePrefix("fe80::/10"), linkLocal},
	{netip.MustParsePrefix("fec0::/10"), private},
	{netip.MustParsePrefix("ff00::/8"), multicast},
	{netip.MustParsePrefix("2001::/23"), reserved}, // Teredo, ORCHID, benchmarks
	{netip.MustParsePrefix("2001:db8::/32"), reserved},
	{netip.MustParsePrefix("3fff::/20"), reserved},
}

var (
	global6 = netip.MustParsePrefix("2000::/3") // all that IANA has given out
	nat64   = netip.MustParsePrefix("64:ff9b::/96")
	sixTo4  = netip.MustParsePrefix("2002::/16")
	compat4 = netip.MustParsePrefix("::/96") // out of use for long
)

// kindOf says what is not public about an address, "" when nothing is.
func kindOf(a netip.Addr) string {
	a = plain(a)
	for _, b := range blocks {
		if b.prefix.Contains(a) {
			return b.kind
		}
	}
	if a.Is4() {
		return ""
	}
	if v4, ok := embedded(a); ok {
		if kind := kindOf(v4); kind != "" || !compat4.Contains(a) {
			return kind
		}
	}
	if !global6.Contains(a) {
		return reserved
	}
	return ""
}

// plain is the address without its zone, and as IPv4 when it is a mapped one.
func plain(a netip.Addr) netip.Addr { return a.WithZone("").Unmap() }

// embedded is the IPv4 address that a gateway makes of an IPv6 address.
func embedded(a netip.Addr) (netip.Addr, bool) {
	b := a.As16()
	switch {
	case nat64.Contains(a), compat4.Contains(a):
		return netip.AddrFrom4([4]byte(b[12:])), true
	case sixTo4.Contains(a):
		return netip.AddrFrom4([4]byte(b[2:6])), true
	}
	return netip.Addr{}, false
}
