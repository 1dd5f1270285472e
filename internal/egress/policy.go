package egress

import (
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"

	"github.com/reprise-engine/reprise/pkg/node"
)

// The modes of a Policy.
const (
	// Public reaches public addresses, and what is allowed by name.
	Public = "public"
	// Any reaches everything.
	Any = "any"
)

// Policy says what may be reached. The zero value reaches everything. It does not
// change once it is made, so goroutines may share it.
type Policy struct {
	guarded  bool
	names    []hostRule
	prefixes []prefixRule
}

// hostRule allows a name, wherever it leads. A name that begins with a dot stands for all
// below it; port 0 is any.
type hostRule struct {
	name string
	port uint16
}

type prefixRule struct {
	prefix netip.Prefix
	port   uint16
}

// NewPolicy reads the settings. mode is Public, Any or "" (any). allow lists what may be reached
// in mode Public besides public addresses: names ("ollama", "*.corp.example"), addresses
// ("10.1.2.3", "[fd00::7]") and ranges ("10.1.0.0/16"); the first two may have a port ("ollama:11434").
func NewPolicy(mode string, allow []string) (*Policy, error) {
	p := &Policy{}
	switch mode {
	case Any, "":
	case Public:
		p.guarded = true
	default:
		return nil, fmt.Errorf("REPRISE_EGRESS is %q; use %s or %s", mode, Public, Any)
	}
	for _, text := range allow {
		if text = strings.TrimSpace(text); text == "" {
			continue
		}
		if err := p.allow(text); err != nil {
			return nil, fmt.Errorf("REPRISE_EGRESS_ALLOW: %q: %w", text, err)
		}
	}
	return p, nil
}

func (p *Policy) allow(text string) error {
	if prefix, err := netip.ParsePrefix(text); err == nil {
		if prefix.Addr().Is4In6() {
			return fmt.Errorf("write it as an IPv4 range")
		}
		p.prefixes = append(p.prefixes, prefixRule{prefix: prefix.Masked()})
		return nil
	}
	host, port := text, uint16(0)
	if h, number, err := net.SplitHostPort(text); err == nil {
		n, err := strconv.ParseUint(number, 10, 16)
		if err != nil || n == 0 {
			return fmt.Errorf("the port must be a number from 1 to 65535")
		}
		host, port = h, uint16(n)
	}
	if a, err := netip.ParseAddr(strings.Trim(host, "[]")); err == nil {
		a = plain(a)
		p.prefixes = append(p.prefixes, prefixRule{netip.PrefixFrom(a, a.BitLen()), port})
		return nil
	}
	name := canonical(host)
	if rest, ok := strings.CutPrefix(name, "*."); ok {
		name = "." + rest
	}
	if name == "" || strings.ContainsAny(name, "*/:[]@ ") {
		return fmt.Errorf("use a name, an address, a range (10.0.0.0/8), or name:port")
	}
	p.names = append(p.names, hostRule{name, port})
	return nil
}

// canonical is a host name as rules are compared: lower case, without the final dot.
func canonical(host string) string {
	return strings.TrimSuffix(strings.ToLower(host), ".")
}

// allowsName reports whether a name may be reached wherever it leads.
func (p *Policy) allowsName(host string, port uint16) bool {
	host = canonical(host)
	for _, r := range p.names {
		if r.port != 0 && r.port != port {
			continue
		}
		if r.name == host || r.name[0] == '.' && strings.HasSuffix(host, r.name) {
			return true
		}
	}
	return false
}

// check refuses an address that may not be reached; host is what was asked for.
func (p *Policy) check(a netip.Addr, port uint16, host string) error {
	kind := kindOf(a)
	if !p.guarded || kind == "" {
		return nil
	}
	for _, r := range p.prefixes {
		if r.prefix.Contains(plain(a)) && (r.port == 0 || r.port == port) {
			return nil
		}
	}
	return refuse(host, port, kind)
}

func refuse(host string, port uint16, kind string) error {
	where := net.JoinHostPort(host, strconv.Itoa(int(port)))
	return &node.AddressRefusedError{
		Host: where, Kind: kind,
		Hint: "Workers reach public addresses only. Whoever runs them can allow this one with REPRISE_EGRESS_ALLOW=" + where + ", or all with REPRISE_EGRESS=any.",
	}
}
