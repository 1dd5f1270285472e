package service_test

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap/zaptest"

	"github.com/reprise-engine/reprise/internal/embedded"
	"github.com/reprise-engine/reprise/internal/service"
	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/queue"
)

const (
	travelBytes = 50 << 20
	// travelMemory is what everything in the process, NATS included, may take more while the file travels. Held
	// in run data it would be several times the file.
	travelMemory = 96 << 20
)

// peak watches the heap until stop is called, which returns by how much it grew.
func peak() (stop func() uint64) {
	var before, now runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	end, done := make(chan struct{}), make(chan uint64)
	go func() {
		most := uint64(0)
		ticker := time.NewTicker(5 * time.Millisecond)
		defer ticker.Stop()
		for {
			runtime.ReadMemStats(&now)
			most = max(most, now.HeapInuse)
			select {
			case <-ticker.C:
			case <-end:
				done <- most - min(most, before.HeapInuse)
				return
			}
		}
	}()
	return func() uint64 { close(end); return <-done }
}

// A large file goes through three nodes on three workers, of which none holds it, and is removed
// with its execution.
func TestLargeFileTravelsBetweenWorkers(t *testing.T) {
	mux := http.NewServeMux()
	mux.HandleFunc("/file.bin", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/octet-stream")
		_, _ = io.CopyN(w, rand.NewChaCha8([32]byte{7}), travelBytes)
	})
	var got atomic.Value
	hashed := func(w io.Writer, r *http.Request) {
		sum := sha256.New()
		_, _ = io.Copy(io.MultiWriter(sum, w), r.Body)
		got.Store(fmt.Sprintf("%x", sum.Sum(nil)))
	}
	mux.HandleFunc("/echo.bin", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/octet-stream")
		_ = http.NewResponseController(w).EnableFullDuplex()
		hashed(w, r)
	})
	mux.HandleFunc("/hash", func(w http.ResponseWriter, r *http.Request) {
		hashed(io.Discard, r)
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"hash":%q,"length":%d}`, got.Load(), r.ContentLength)
	})
	web := httptest.NewServer(mux)
	t.Cleanup(web.Close)

	server, err := embedded.StartNATS(t.TempDir(), embedded.NATSOptions{})
	require.NoError(t, err)
	t.Cleanup(server.Shutdown)
	redis, err := embedded.StartRedis(t.TempDir(), embedded.RedisOptions{TCP: true})
	require.NoError(t, err)
	t.Cleanup(redis.Shutdown)
	log := zaptest.NewLogger(t)
	coordinator, err := service.StartCoordinator(t.Context(), service.Coordinator{NATSURL: server.URL, RedisURL: redis.URL, Retention: 4 * time.Second}, log)
	require.NoError(t, err)
	t.Cleanup(func() { coordinator.Stop(t.Context()) })
	for _, pool := range []string{"a", "b", "c"} {
		worker, err := service.StartWorker(t.Context(), service.Worker{NATSURL: server.URL, Pools: []string{pool}, Concurrency: 2, Egress: "any"}, log)
		require.NoError(t, err)
		t.Cleanup(func() { worker.Stop(t.Context()) })
	}
	client, err := queue.Connect(t.Context(), queue.Config{URL: server.URL})
	require.NoError(t, err)
	t.Cleanup(client.Close)

	document := strings.ReplaceAll(`{"name":"Travel","nodes":[
		{"name":"Start","type":"n8n-nodes-base.manualTrigger","typeVersion":1,"position":[0,0],"parameters":{}},
		{"name":"Get","type":"n8n-nodes-base.httpRequest","typeVersion":4.2,"pool":"a","position":[0,0],"parameters":{"url":"BASE/file.bin"}},
		{"name":"Echo","type":"n8n-nodes-base.httpRequest","typeVersion":4.2,"pool":"b","position":[0,0],"parameters":{"method":"POST","url":"BASE/echo.bin","sendBody":true,"contentType":"binaryData"}},
		{"name":"Hash","type":"n8n-nodes-base.httpRequest","typeVersion":4.2,"pool":"c","position":[0,0],"parameters":{"method":"POST","url":"BASE/hash","sendBody":true,"contentType":"binaryData"}}],
		"connections":{"Start":{"main":[[{"node":"Get","type":"main","index":0}]]},"Get":{"main":[[{"node":"Echo","type":"main","index":0}]]},"Echo":{"main":[[{"node":"Hash","type":"main","index":0}]]}}}`, "BASE", web.URL)
	grew := peak()
	id, err := client.Submit(t.Context(), &queue.Submission{Workflow: json.RawMessage(document)})
	require.NoError(t, err)
	x, err := client.WaitFinished(t.Context(), id, true, false)
	require.NoError(t, err)
	require.Less(t, grew(), uint64(travelMemory))
	data, err := json.Marshal(x)
	require.NoError(t, err)
	require.Equal(t, engine.StatusSuccess, x.Status, string(data))
	sum := sha256.New()
	_, err = io.CopyN(sum, rand.NewChaCha8([32]byte{7}), travelBytes)
	require.NoError(t, err)
	require.Contains(t, string(data), fmt.Sprintf(`"hash":"%x","length":%d`, sum.Sum(nil), travelBytes))
	require.Contains(t, string(data), `"id":"nats:`+string(id)+`/`)
	require.Less(t, len(data), 16<<10, "the run data describes the file and does not hold it")

	nc, err := nats.Connect(server.URL)
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	left := func() (n uint64) {
		for _, name := range []string{queue.StreamFiles, queue.StreamJobs, "OBJ_" + queue.BucketBlobs} {
			stream, err := js.Stream(t.Context(), name)
			require.NoError(t, err)
			n += stream.CachedInfo().State.Bytes
		}
		return n
	}
	require.Greater(t, left(), uint64(2*travelBytes), "both files are kept as long as their execution")
	require.Eventually(t, func() bool { return left() == 0 }, 30*time.Second, 50*time.Millisecond)
}
