package faulttest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/reprise-engine/reprise/internal/cluster"
	"github.com/reprise-engine/reprise/pkg/engine"
)

const (
	largeExecutions = 2
	largeNodes      = 25
	largeOutput     = 8 << 20
	// largeLimit is the memory that coordinator and worker are told to keep to: what the run data
	// of both executions has, and a few outputs that are under way.
	largeLimit = 448 << 20
	// largePeak is what they may take at most. The limit bounds Go's heap; the program itself
	// and what the kernel keeps for it come on top.
	largePeak = 640 << 20
)

// peakMemory is the most memory that a process has had, in bytes.
func peakMemory(t *testing.T, pid int) int64 {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	require.NoError(t, err)
	_, rest, found := strings.Cut(string(status), "VmHWM:")
	require.True(t, found)
	kilobytes, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
	require.NoError(t, err)
	return kilobytes << 10
}

// Executions whose run data has 200 MB go through within the default limits, in processes that have little
// more memory than that, and nothing of them is left after their retention.
func TestLargeRunData(t *testing.T) {
	big := []byte(`{"text":"` + strings.Repeat("reprise ", largeOutput/8) + `"}`)
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(big)
	}))
	t.Cleanup(web.Close)
	c := cluster.New(t, cluster.Options{
		Coordinators: 1, Workers: 1, Concurrency: 2, Lease: calm,
		Env: []string{"REPRISE_RETENTION=10s", fmt.Sprintf("GOMEMLIMIT=%d", largeLimit)},
	})
	c.StartAll()
	rdb := redis.NewClient(&redis.Options{Addr: c.Redis.Addr()})
	t.Cleanup(func() { _ = rdb.Close() })
	before := infoNumber(t, rdb, "memory", "used_memory")

	nodes, links := []cluster.Object{cluster.Trigger()}, []string{}
	for i := range largeNodes {
		name := fmt.Sprint("Get ", i)
		nodes = append(nodes, cluster.Node(name, "n8n-nodes-base.httpRequest", 4.2, cluster.Object{"url": web.URL}))
		links = append(links, "Start -> "+name)
	}
	ids := c.SubmitOf(cluster.Document("large", nil, nodes, links...), largeExecutions)
	for _, id := range ids {
		x, err := c.Conn.WaitFinished(t.Context(), engine.ExecutionID(id), false, false)
		require.NoError(t, err)
		require.Equal(t, engine.StatusSuccess, x.Status)
	}
	for _, p := range c.Processes() {
		peak := peakMemory(t, p.PID())
		t.Logf("%s: at most %d MB", p.Name, peak>>20)
		require.Less(t, peak, int64(largePeak), p.Name)
	}
	whole, err := c.Conn.Get(t.Context(), engine.ExecutionID(ids[0]), true)
	require.NoError(t, err)
	data, err := json.Marshal(whole)
	require.NoError(t, err)
	require.Greater(t, len(data), largeNodes*largeOutput)
	c.Await(within, func() string {
		if used := infoNumber(t, rdb, "memory", "used_memory"); used > before+largeOutput {
			return fmt.Sprintf("Redis still has %d bytes", used)
		}
		return ""
	})
}
