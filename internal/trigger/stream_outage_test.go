package trigger_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// ticker is a server of events with the ids 1, 2, 3 …, which sends those behind Last-Event-ID.
type ticker struct {
	mu      sync.Mutex
	sent    int // events that there are
	more    chan struct{}
	readers int
	most    int // readers at the same time
	cut     chan struct{}
}

func newTicker(t *testing.T) (*ticker, string) {
	k := &ticker{more: make(chan struct{}), cut: make(chan struct{})}
	server := httptest.NewServer(k)
	t.Cleanup(func() {
		k.cutOff()
		server.Close()
	})
	return k, server.URL
}

func (k *ticker) publish(n int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.sent += n
	close(k.more)
	k.more = make(chan struct{})
}

// cutOff ends all connections.
func (k *ticker) cutOff() {
	k.mu.Lock()
	defer k.mu.Unlock()
	close(k.cut)
	k.cut = make(chan struct{})
}

func (k *ticker) counts() (readers, most int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.readers, k.most
}

func (k *ticker) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	at, _ := strconv.Atoi(r.Header.Get("Last-Event-ID"))
	k.mu.Lock()
	k.readers++
	k.most = max(k.most, k.readers)
	cut := k.cut
	k.mu.Unlock()
	defer func() {
		k.mu.Lock()
		k.readers--
		k.mu.Unlock()
	}()
	w.Header().Set("Content-Type", "text/event-stream")
	fmt.Fprint(w, "retry: 50\n\n")
	for {
		k.mu.Lock()
		sent, more := k.sent, k.more
		k.mu.Unlock()
		for at < sent {
			at++
			fmt.Fprintf(w, "id: %d\ndata: {\"n\":%d}\n\nevent: other\ndata: {\"n\":-1}\n\n", at, at)
		}
		w.(http.Flusher).Flush()
		select {
		case <-more:
		case <-cut:
			return
		case <-r.Context().Done():
			return
		}
	}
}

// Every event begins one execution with two coordinators: one of them reads, and when it is killed the other one
// reads on behind the last event.
func TestEachEventOnceWithTwoCoordinators(t *testing.T) {
	events, url := newTicker(t)
	c, labs := newTwo(t)
	for _, p := range c.Coordinators {
		p.Env = append(p.Env, "REPRISE_EGRESS=any")
	}
	c.StartAll()
	labs[0].activate(t, flow("ticks", node("Ticks", "n8n-nodes-base.sseTrigger", 1, object{"url": url}), node("After", noOp, 1, object{})))
	want := map[string]int{}
	publish := func(n int) {
		for range n {
			want[fmt.Sprint(len(want)+1)] = 1
		}
		events.publish(n)
	}
	arrived := func() {
		t.Helper()
		require.Eventually(t, func() bool { return len(labs[0].given(t, "ticks", "Ticks", "n")) >= len(want) }, 2*within, 100*time.Millisecond)
	}
	publish(3)
	arrived()
	events.cutOff()
	publish(2)
	arrived()
	for i := range c.Coordinators { // one of them reads
		publish(2)
		c.Coordinators[i].Kill()
		publish(2)
		c.Start(c.Coordinators[i])
		c.AwaitReady(c.Coordinators[i])
		arrived()
	}
	_, most := events.counts()
	require.Equal(t, 1, most, "one process reads at a time")
	_, err := c.Conn.ActivateWorkflow(t.Context(), "ticks", false)
	require.NoError(t, err)
	require.Eventually(t, func() bool { readers, _ := events.counts(); return readers == 0 }, within, 20*time.Millisecond, "nobody reads a workflow that is not active")
	require.Equal(t, want, labs[0].given(t, "ticks", "Ticks", "n"))
}
