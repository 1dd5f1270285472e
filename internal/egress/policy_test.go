package egress

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-engine/reprise/pkg/node"
)

func TestAllowList(t *testing.T) {
	p, err := NewPolicy(Public, []string{"10.1.0.0/16", " 10.2.0.1:8080", "[fd00::7]:443", "Ollama:11434", "*.corp.example", "box.", "127.0.0.1", ""})
	require.NoError(t, err)
	for _, c := range []struct {
		address string
		port    uint16
		allowed bool
	}{
		{"10.1.200.3", 1, true}, {"10.2.0.1", 8080, true}, {"10.2.0.1", 80, false}, {"10.2.0.2", 8080, false},
		{"fd00::7", 443, true}, {"fd00::8", 443, false}, {"127.0.0.1", 9, true}, {"::ffff:127.0.0.1", 9, true}, {"127.0.0.2", 9, false},
		{"169.254.169.254", 80, false},
	} {
		err := p.check(netip.MustParseAddr(c.address), c.port, c.address)
		require.Equal(t, c.allowed, err == nil, "%s port %d: %v", c.address, c.port, err)
	}
	for _, c := range []struct {
		name    string
		port    uint16
		allowed bool
	}{
		{"ollama", 11434, true}, {"OLLAMA.", 11434, true}, {"ollama", 80, false}, {"ollama.evil.example", 11434, false},
		{"a.corp.example", 1, true}, {"b.a.corp.example", 1, true}, {"corp.example", 1, false}, {"evilcorp.example", 1, false},
		{"box", 7, true}, {"", 7, false},
	} {
		require.Equal(t, c.allowed, p.allowsName(c.name, c.port), "%s port %d", c.name, c.port)
	}
}

func TestModes(t *testing.T) {
	home := netip.MustParseAddr("127.0.0.1")
	for _, mode := range []string{"", Any} {
		p, err := NewPolicy(mode, nil)
		require.NoError(t, err)
		require.NoError(t, p.check(home, 80, "localhost"), mode)
	}
	p, err := NewPolicy(Public, nil)
	require.NoError(t, err)
	var refused *node.AddressRefusedError
	require.ErrorAs(t, p.check(home, 80, "localhost"), &refused)
	require.Equal(t, "the connection to localhost:80 was refused: it is a loopback address", refused.Error())
	require.Contains(t, refused.Hint, "REPRISE_EGRESS_ALLOW=localhost:80")
	require.Contains(t, refused.Hint, "REPRISE_EGRESS=any")
	_, err = NewPolicy("open", nil)
	require.ErrorContains(t, err, `REPRISE_EGRESS is "open"; use public or any`)
}

func TestBadAllowLists(t *testing.T) {
	for _, text := range []string{"10.0.0.0/99", "http://host", "host:port", "host:0", "host:70000", "a.*.b", "*", "::ffff:10.0.0.0/104", "a b"} {
		_, err := NewPolicy(Public, []string{text})
		require.ErrorContains(t, err, "REPRISE_EGRESS_ALLOW: ", text)
	}
}
