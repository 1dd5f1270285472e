package natstest

import (
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"
)

func TestKillAndRestartKeepsTheStore(t *testing.T) {
	s := Start(t, Options{})
	ctx := t.Context()
	for run := range 3 {
		nc, err := nats.Connect(s.URL)
		require.NoError(t, err)
		js, err := jetstream.New(nc)
		require.NoError(t, err)
		if run == 0 {
			_, err = js.CreateStream(ctx, jetstream.StreamConfig{Name: "S", Subjects: []string{"s"}, Storage: jetstream.FileStorage})
			require.NoError(t, err)
		}
		ack, err := js.Publish(ctx, "s", nil)
		require.NoError(t, err)
		require.EqualValues(t, run+1, ack.Sequence)
		nc.Close()
		if run == 0 {
			s.Kill()
		} else {
			s.Stop()
		}
		_, err = nats.Connect(s.URL)
		require.ErrorIs(t, err, nats.ErrNoServers)
		s.Restart()
	}
}
