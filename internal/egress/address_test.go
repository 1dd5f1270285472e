package egress

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAddressesThatAreNotPublic(t *testing.T) {
	for text, kind := range map[string]string{
		"0.0.0.0": unspecified, "0.1.2.3": unspecified, "10.0.0.1": private, "172.16.0.1": private, "172.31.255.255": private,
		"192.168.1.1": private, "127.0.0.1": loopback, "127.255.255.254": loopback, "169.254.169.254": linkLocal,
		"100.64.0.1": shared, "100.127.255.255": shared, "100.100.100.200": metadata, "168.63.129.16": metadata,
		"192.0.0.192": metadata, "192.0.0.8": reserved, "192.0.2.1": reserved, "198.18.0.1": reserved, "198.19.255.255": reserved,
		"198.51.100.1": reserved, "203.0.113.1": reserved, "224.0.0.1": multicast, "239.255.255.255": multicast,
		"240.0.0.1": reserved, "255.255.255.255": reserved,
		"::": unspecified, "::1": loopback, "fe80::1": linkLocal, "fe80::1%eth0": linkLocal, "fd00:ec2::254": metadata, "fc00::1": private,
		"fd12:3456::1": private, "fec0::1": private, "ff02::1": multicast, "2001:db8::1": reserved, "2001::1": reserved,
		"3fff::1": reserved, "100::1": reserved, "4000::1": reserved, "64:ff9b:1::a00:1": reserved,
		// IPv6 that stands for IPv4
		"::ffff:127.0.0.1": loopback, "::ffff:a9fe:a9fe": linkLocal, "::127.0.0.1": loopback, "::8.8.8.8": reserved,
		"64:ff9b::127.0.0.1": loopback, "64:ff9b::a9fe:a9fe": linkLocal, "2002:7f00:1::1": loopback, "2002:c0a8:101::": private,
	} {
		require.Equal(t, kind, kindOf(netip.MustParseAddr(text)), text)
	}
}

func TestPublicAddresses(t *testing.T) {
	for _, text := range []string{
		"8.8.8.8", "1.1.1.1", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0", "172.15.255.255", "172.32.0.0",
		"169.253.255.255", "169.255.0.0", "192.167.255.255", "192.169.0.0", "223.255.255.255", "128.0.0.1",
		"2606:4700::1111", "2a00:1450:4001::200e", "2001:4860:4860::8888", "::ffff:8.8.8.8", "64:ff9b::808:808", "2002:808:808::1",
	} {
		require.Empty(t, kindOf(netip.MustParseAddr(text)), text)
	}
}
