package trigger

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestReadEvents(t *testing.T) {
	const stream = "\ufeff: hello\nretry: 1500\n\nid: 1\ndata: {\"a\":1}\n\nevent: tick\r\ndata: x\r\ndata:  y\r\n\r\ndata: z\rid\r\rid: 9\n\ndata\n\ndata: never ended"
	want := []event{{id: "1", data: `{"a":1}`}, {id: "1", name: "tick", data: "x\n y"}, {id: "", data: "z"}, {id: "9", data: ""}}
	for name, r := range map[string]io.Reader{"whole": strings.NewReader(stream), "by bytes": iotest.OneByteReader(strings.NewReader(stream))} {
		var got []event
		var pause time.Duration
		err := readEvents(r, event{id: "0"}, func(e event) error { got = append(got, e); return nil }, func(d time.Duration) { pause = d })
		require.ErrorIs(t, err, io.ErrUnexpectedEOF)
		require.Equal(t, want, got, name)
		require.Equal(t, 1500*time.Millisecond, pause)
	}
	stop := errors.New("stop")
	require.ErrorIs(t, readEvents(strings.NewReader(stream), event{}, func(event) error { return stop }, func(time.Duration) {}), stop)
	endless := io.MultiReader(strings.NewReader("data: "), iotest.OneByteReader(strings.NewReader(strings.Repeat("x", maxEvent+1))))
	require.Error(t, readEvents(endless, event{}, func(event) error { return nil }, func(time.Duration) {}), "a line is bounded")
	many := strings.NewReader(strings.Repeat("data: "+strings.Repeat("x", 1000)+"\n", maxEvent/1000+2) + "\n")
	require.ErrorContains(t, readEvents(many, event{}, func(event) error { return nil }, func(time.Duration) {}), "too large")
}
