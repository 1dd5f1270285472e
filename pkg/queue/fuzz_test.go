package queue

import (
	"encoding/json"
	"os"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

// FuzzMessages: whatever bytes come from a client or worker, reading them gives an
// error or a message that is JSON and reads the same again.
func FuzzMessages(f *testing.F) {
	page, err := os.ReadFile("../../docs/protocol.md")
	require.NoError(f, err)
	examples := regexp.MustCompile("(?s)```json\n(.*?)```").FindAllSubmatch(page, -1)
	require.NotEmpty(f, examples)
	for _, e := range examples {
		f.Add(e[1])
		f.Add(e[1][:len(e[1])/2])
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, message := range []func() any{
			func() any { return new(Job) }, func() any { return new(Result) }, func() any { return new(Submission) },
			func() any { return new(Redelivery) }, func() any { return new(Plan) }, func() any { return new(ResumeRequest) },
			func() any { return new(DecideRequest) }, func() any { return new(Live) },
		} {
			v := message()
			if decode(append([]byte(nil), data...), v) != nil { // decode keeps references to its bytes
				continue
			}
			require.True(t, json.Valid(data), "%T was read from %q", v, data)
			text, err := encode(v)
			require.NoError(t, err, "%T", v)
			again := message()
			require.NoError(t, decode(text, again), "%T: %s", v, text)
			twice, err := encode(again)
			require.NoError(t, err)
			require.JSONEq(t, string(text), string(twice), "%T", v)
		}
	})
}
