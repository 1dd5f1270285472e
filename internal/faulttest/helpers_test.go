package faulttest

import (
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/reprise-engine/reprise/internal/cluster"
)

// stream is the server's JetStream, on a connection of its own.
func stream(t *testing.T, c *cluster.Cluster) jetstream.JetStream {
	t.Helper()
	nc, err := nats.Connect(c.NATS.URL)
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	return js
}
