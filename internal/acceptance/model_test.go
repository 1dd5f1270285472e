package acceptance

import (
	"bytes"
	"io"
	"net/http"
	"sync"

	"github.com/reprise-engine/reprise/internal/mockllm"
)

// recording is the built-in model, which keeps what it is asked.
func recording(mu *sync.Mutex, bodies *[]string) http.Handler {
	model := mockllm.New(mockllm.Config{})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		*bodies = append(*bodies, string(body))
		mu.Unlock()
		r.Body = io.NopCloser(bytes.NewReader(body))
		model.ServeHTTP(w, r)
	})
}
