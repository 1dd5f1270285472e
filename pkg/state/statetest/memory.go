package statetest

import (
	"encoding/json"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

func messages(texts ...string) []json.RawMessage {
	out := make([]json.RawMessage, len(texts))
	for i, t := range texts {
		out[i] = json.RawMessage(fmt.Sprintf("{%q:1}", t))
	}
	return out
}

func remembered(t *testing.T, s Store, session string, n int) []json.RawMessage {
	t.Helper()
	got, err := s.Memory(t.Context(), session, n)
	require.NoError(t, err)
	return got
}

func memoryAppendsOnce(t *testing.T, s Store) {
	require.Empty(t, remembered(t, s, "chat", 5))
	session := "user {7}: a chat"
	var wg sync.WaitGroup
	for range 5 { // repeats of one append, at the same time
		wg.Go(func() {
			if err := s.AppendMemory(t.Context(), session, "e1:Memory:0:0", messages("q1", "a1")); err != nil {
				t.Errorf("append: %v", err)
			}
		})
	}
	wg.Wait()
	require.Equal(t, messages("q1", "a1"), remembered(t, s, session, 0))
	require.NoError(t, s.AppendMemory(t.Context(), session, "e2:Memory:0:0", messages("q2", "a2")))
	require.NoError(t, s.AppendMemory(t.Context(), session, "e1:Memory:0:0", messages("q1", "a1")))
	require.NoError(t, s.AppendMemory(t.Context(), session, "e3:Memory:0:0", nil))
	require.Equal(t, messages("q1", "a1", "q2", "a2"), remembered(t, s, session, 0))
	require.Equal(t, messages("a1", "q2", "a2"), remembered(t, s, session, 3))
	require.Empty(t, remembered(t, s, "chat", 0), "sessions are apart")
	require.Error(t, s.AppendMemory(t.Context(), session, "", messages("x")))
	require.Error(t, s.AppendMemory(t.Context(), "", "id", messages("x")))
}

func memoryBounded(t *testing.T, s Store) {
	for i := range 3 * MemoryLimit {
		require.NoError(t, s.AppendMemory(t.Context(), "chat", fmt.Sprint(i), messages(fmt.Sprint(i))))
	}
	got := remembered(t, s, "chat", 0)
	require.Len(t, got, MemoryLimit)
	require.Equal(t, messages(fmt.Sprint(3*MemoryLimit - 1))[0], got[MemoryLimit-1])
	last := fmt.Sprint(2*MemoryLimit + 1)
	require.NoError(t, s.AppendMemory(t.Context(), "chat", last, messages("repeated")))
	require.Equal(t, got, remembered(t, s, "chat", 0), "the ids of the last appends are known")

	var many []string
	for i := range 5000 { // more than Lua unpacks at once
		many = append(many, fmt.Sprint("m", i))
	}
	require.NoError(t, s.AppendMemory(t.Context(), "many", "1", messages(many...)))
	require.Equal(t, messages(many[5000-MemoryLimit:]...), remembered(t, s, "many", 0))
}
