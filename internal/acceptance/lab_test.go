package acceptance

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"github.com/reprise-engine/reprise/internal/mockllm"
	"github.com/reprise-engine/reprise/internal/stack"
	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/queue"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// within is how long a workflow of these tests may take; machines are busy.
const within = 60 * time.Second

// lab is a stack on embedded servers, and a web server with the scripted models
// and the pages that the workflows call. Every test has a site of its own on it,
// below /<number>, so that requests can be told apart.
type lab struct {
	*stack.Stack
	web   *httptest.Server
	mu    sync.Mutex
	sites []*site
}

// maxSites is how many sites a lab has credentials for.
const maxSites = 100

// startLab starts a lab that ends with the test and its subtests.
func startLab(t *testing.T, change ...func(*stack.Config)) *lab {
	t.Helper()
	script, err := mockllm.ParseScript(read(t, "scenarios.json"))
	require.NoError(t, err)
	models := mockllm.New(mockllm.Config{Script: script})
	l := &lab{}
	l.web = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		number, path, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
		n, err := strconv.Atoi(number)
		l.mu.Lock()
		known := err == nil && n < len(l.sites)
		var s *site
		if known {
			s = l.sites[n]
		}
		l.mu.Unlock()
		if !known {
			http.NotFound(w, r)
			return
		}
		r.URL.Path = "/" + path
		if strings.HasPrefix(path, "v1/") {
			s.models.Add(1)
			models.ServeHTTP(w, r)
			return
		}
		s.pages.ServeHTTP(w, r)
	}))
	t.Cleanup(l.web.Close)

	var credentials []map[string]any
	for n := range maxSites {
		credentials = append(credentials, map[string]any{
			"id": credentialID(n), "name": "Model", "type": "openAiApi",
			"data": map[string]any{"apiKey": "sk-mock", "url": fmt.Sprintf("%s/%d/v1", l.web.URL, n)},
		})
	}
	file := filepath.Join(t.TempDir(), "credentials.json")
	data, err := json.Marshal(credentials)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(file, data, 0o600))

	config := stack.Config{CredentialsFile: file}
	for _, f := range change {
		f(&config)
	}
	l.Stack, err = stack.Start(context.Background(), config)
	require.NoError(t, err)
	t.Cleanup(l.Stop)
	return l
}

func credentialID(n int) string { return fmt.Sprintf("model-%d", n) }

// site is what one test sees of the lab's web server.
type site struct {
	url, credential string
	models          atomic.Int64
	pages           *http.ServeMux
}

// site opens a new one, with the pages that recorded workflows call.
func (l *lab) site() *site {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := len(l.sites)
	if n == maxSites {
		panic("acceptance: more sites than credentials; raise maxSites")
	}
	s := &site{url: fmt.Sprintf("%s/%d", l.web.URL, n), credential: credentialID(n), pages: http.NewServeMux()}
	s.pages.HandleFunc("/shout", shout)
	s.pages.HandleFunc("/fail", func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, `{"message":"the mock always fails here"}`, http.StatusInternalServerError)
	})
	l.sites = append(l.sites, s)
	return s
}

// shout answers the text of ?text=, or of the body's "text", in upper case.
func shout(w http.ResponseWriter, r *http.Request) {
	text := r.URL.Query().Get("text")
	if text == "" {
		body, _ := io.ReadAll(r.Body)
		text = gjson.GetBytes(body, "text").Str
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]string{"result": "SHOUT " + strings.ToUpper(text)})
}

// modelRequests counts the requests that the site's models got.
func (s *site) modelRequests() int64 { return s.models.Load() }

// document is a recorded workflow that calls this site instead of the ports and
// the credential it was recorded with.
func (s *site) document(recorded []byte) []byte {
	return []byte(strings.NewReplacer(
		"http://127.0.0.1:18080", s.url, "http://127.0.0.1:18081", s.url, "mockOpenAiCred01", s.credential,
	).Replace(string(recorded)))
}

// run submits a workflow, waits for its end and returns the run in n8n's shape.
func (l *lab) run(t *testing.T, document []byte, input workflow.Items) gjson.Result {
	t.Helper()
	id, err := l.Conn.Submit(t.Context(), &queue.Submission{Version: queue.Version, Workflow: document, Input: input})
	require.NoError(t, err)
	return l.await(t, id)
}

// await waits for the end of an execution and returns its run.
func (l *lab) await(t *testing.T, id engine.ExecutionID) gjson.Result {
	t.Helper()
	var x *queue.Execution
	require.Eventually(t, func() bool {
		var err error
		x, err = l.Conn.Get(t.Context(), id, false)
		require.NoError(t, err)
		return x.Status.Finished()
	}, within, 10*time.Millisecond, "execution %s does not end", id)
	x, err := l.Conn.Get(t.Context(), id, true)
	require.NoError(t, err)
	data, err := json.Marshal(x)
	require.NoError(t, err)
	return gjson.ParseBytes(data)
}
