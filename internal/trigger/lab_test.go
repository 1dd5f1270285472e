package trigger_test

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reprise-engine/reprise/internal/redistest"
	"github.com/reprise-engine/reprise/internal/stack"
	"github.com/reprise-engine/reprise/pkg/queue"
)

func TestMain(m *testing.M) { os.Exit(redistest.Main(m)) }

// within is how long something may take that is awaited.
const within = 30 * time.Second

// lookEvery is how often is looked whether an address is hosted: calls of one address are limited.
const lookEvery = 100 * time.Millisecond

// lab is a coordinator with an HTTP address and a worker, on real servers.
type lab struct{ *stack.Stack }

func start(t *testing.T) *lab { return startWith(t, stack.Config{}) }

func startWith(t *testing.T, c stack.Config) *lab {
	t.Helper()
	c.HTTPAddr = "127.0.0.1:0"
	s, err := stack.Start(context.Background(), c)
	require.NoError(t, err)
	t.Cleanup(s.Stop)
	return &lab{s}
}

// activate stores a workflow, has its triggers begin it, and waits until they are hosted.
func (l *lab) activate(t *testing.T, document []byte) *queue.StoredWorkflow {
	t.Helper()
	w, err := l.Conn.PutWorkflow(t.Context(), queue.WorkflowPutRequest{Document: document})
	require.NoError(t, err)
	w, err = l.Conn.ActivateWorkflow(t.Context(), w.ID, true)
	require.NoError(t, err)
	var parsed struct {
		Nodes []struct {
			WebhookID  string
			Type       string
			Parameters struct{ Path string }
		}
	}
	require.NoError(t, json.Unmarshal(document, &parsed))
	for _, n := range parsed.Nodes {
		if n.Type != "n8n-nodes-base.webhook" {
			continue
		}
		path := n.Parameters.Path
		if strings.Contains(path, ":") {
			path = n.WebhookID + "/" + path
		}
		l.hosted(t, "/webhook/"+path)
	}
	return w
}

// hosted waits until an address is one of a trigger: then a method that it does not have is
// refused with those that it has.
func (l *lab) hosted(t *testing.T, path string) {
	t.Helper()
	require.Eventually(t, func() bool {
		r, err := http.NewRequest("TRACE", l.PublicURL+path, nil)
		require.NoError(t, err)
		_, header, _ := l.do(t, r)
		return header.Get("Allow") != ""
	}, within, lookEvery, "%s is not hosted", path)
}

func freeAddr(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { require.NoError(t, listener.Close()) }()
	return listener.Addr().String()
}
