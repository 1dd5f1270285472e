package cli

import (
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/reprise-engine/reprise/internal/embedded"
	"github.com/reprise-engine/reprise/internal/labtest"
	"github.com/reprise-engine/reprise/internal/redistest"
)

// nowhere is an address where nobody listens.
const nowhere = "127.0.0.1:1"

// TestBadInput: what is wrong is said once, with the exit code for wrong usage,
// and before anything is started.
func TestBadInput(t *testing.T) {
	t.Parallel()
	site := sharedLab(t).Site()
	nodes := func(change func([]labtest.Node) []labtest.Node) string {
		return file(t, string(labtest.Document(change(site.AgentNodes("m", labtest.Calculator())), nil)))
	}
	good := nodes(func(n []labtest.Node) []labtest.Node { return n })
	for _, c := range []struct {
		name  string
		args  []string
		texts []string
	}{
		{"no JSON", []string{"run", file(t, "{\n  \"nodes\": [}\n")}, []string{"line 2", "column 13"}},
		{"cut off", []string{"run", file(t, `{"nodes": [`)}, []string{"line 1", "column"}},
		{"empty file", []string{"run", file(t, "")}, []string{"empty"}},
		{"no workflow", []string{"run", file(t, `{"hello": "world"}`)}, []string{"nodes"}},
		{"a list", []string{"run", file(t, `[1, 2]`)}, []string{"workflow"}},
		{"unknown node type", []string{"run", nodes(func(n []labtest.Node) []labtest.Node {
			n[3] = n[3].With("type", "n8n-nodes-base.teleport")
			return n
		})}, []string{`"Calculator"`, "n8n-nodes-base.teleport"}},
		{"unknown version of a node", []string{"run", nodes(func(n []labtest.Node) []labtest.Node {
			n[3] = n[3].With("typeVersion", 77)
			return n
		})}, []string{`"Calculator"`, "77", "toolCalculator"}},
		{"no model", []string{"run", nodes(func(n []labtest.Node) []labtest.Node { return append(n[:2:2], n[3]) })}, []string{`"AI Agent"`, "Chat Model"}},
		{"no trigger", []string{"run", nodes(func(n []labtest.Node) []labtest.Node { return n[2:] })}, []string{"trigger"}},
		{"no file", []string{"run", filepath.Join(t.TempDir(), "nothing.json")}, []string{"nothing.json", "no such file"}},
		{"no argument", []string{"run"}, []string{"one workflow file"}},
		{"two arguments", []string{"run", good, good}, []string{"one workflow file"}},
		{"unknown flag", []string{"run", "--nonsense", good}, []string{"--nonsense"}},
		{"unknown command", []string{"walk"}, []string{"walk"}},
		{"input that is a list", []string{"run", good, "--input", "[1]"}, []string{"--input", "object"}},
		{"input that is no JSON", []string{"run", good, "--input", "hello"}, []string{"--input", "object"}},
		{"input that is null", []string{"run", good, "--input", "null"}, []string{"--input", "object"}},
		{"input from no file", []string{"run", good, "--input", "@nothing.json"}, []string{"--input", "nothing.json"}},
		{"unknown start node", []string{"run", good, "--start", "Nowhere"}, []string{"--start", "Nowhere"}},
		{"unknown output", []string{"run", good, "--output", "xml"}, []string{"--output", "xml", "json"}},
		{"unknown log level", []string{"run", good, "--log-level", "loud"}, []string{"loud", "debug"}},
		{"no credentials file", []string{"run", good, "--credentials", "nothing.json"}, []string{"credentials", "nothing.json"}},
		{"credentials that are no JSON", []string{"run", good, "--credentials", file(t, `[{"data": "sk-secret`)}, []string{"credentials", "list"}},
		{"credentials of another shape", []string{"run", good, "--credentials", file(t, `{"openAiApi": "sk-secret"}`)}, []string{"credentials", "list"}},
		{"script of no JSON", []string{"run", good, "--mock-llm", file(t, `{`)}, []string{"--mock-llm"}},
		{"script without turns", []string{"run", good, "--mock-llm", file(t, `{"m": {"turns": []}}`)}, []string{`"m"`, "turn"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			reprise(t, c.args...).failed(t, 2, c.texts...)
		})
	}
}

// TestBadSubmission: a coordinator's refusal reaches the person as well.
func TestBadSubmission(t *testing.T) {
	t.Parallel()
	l := sharedLab(t)
	site := l.Site()
	unknown := site.AgentNodes("m", labtest.Calculator())
	unknown[3] = unknown[3].With("type", "n8n-nodes-base.teleport")
	for _, c := range []struct {
		name  string
		args  []string
		texts []string
	}{
		{"unknown node type", []string{"submit", file(t, string(labtest.Document(unknown, nil)))}, []string{`"Calculator"`, "n8n-nodes-base.teleport"}},
		{"execution id with a dot", []string{"submit", "--id", "a.b", file(t, string(site.Agent("m")))}, []string{`"a.b"`}},
		{"durable id with a dot", []string{"submit", "--durable", "--id", "a.b", file(t, string(site.Agent("m")))}, []string{`"a.b"`}},
		{"show nobody", []string{"executions", "show", "nobody"}, []string{"nobody"}},
		{"watch nobody", []string{"executions", "watch", "nobody"}, []string{"nobody"}},
		{"cancel nobody", []string{"executions", "cancel", "nobody"}, []string{"nobody"}},
		{"list of a status that there is not", []string{"executions", "list", "--status", "sleeping"}, []string{"sleeping"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			reprise(t, append(c.args, "--nats", l.stack.NATSURL)...).failed(t, 2, c.texts...)
		})
	}
}

// TestUnusedTool: a tool that is attached to nothing does not stop a workflow, and
// is told.
func TestUnusedTool(t *testing.T) {
	t.Parallel()
	site := sharedLab(t).Site()
	document := string(site.Agent("m", labtest.Calculator()))
	detached := strings.Replace(document, `"ai_tool":[[{"index":0,"node":"AI Agent","type":"ai_tool"}]]`, `"ai_tool":[[]]`, 1)
	require.NotEqual(t, document, detached)
	got := reprise(t, "run", file(t, detached), "--credentials", sharedLab(t).Credentials)
	assert.Zero(t, got.code, got.stderr)
	assert.Contains(t, got.stdout, "You said: go")
	assert.Contains(t, got.stderr, `warning: node "Calculator", connections: is a tool that is connected to nothing`)
}

// TestBadModels: what a model's server does wrong fails the workflow with a
// text that a person understands, and without the key.
func TestBadModels(t *testing.T) {
	t.Parallel()
	l := sharedLab(t)
	for _, c := range []struct {
		name, text string
		model      http.HandlerFunc
	}{
		{"a page in HTML", "cannot be used", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			fmt.Fprint(w, "<html><body>Welcome to nginx</body></html>")
		}},
		{"a wrong key", "Authorization failed", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusUnauthorized)
			fmt.Fprintf(w, `{"error":{"message":"Incorrect API key provided: %s","type":"invalid_request_error","code":"invalid_api_key"}}`, r.Header.Get("Authorization"))
		}},
		{"no choices", "cannot be used", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, `{"id":"1","object":"chat.completion","created":1,"model":"m","choices":[]}`)
		}},
		{"half an answer", "Connection error", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Content-Length", "1000")
			fmt.Fprint(w, `{"id":"1",`)
		}},
		{"nothing wrong", "answered", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, `{"id":"1","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"finish_reason":"stop","message":{"role":"assistant","content":"answered","tool_calls":[]}}]}`)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			site := l.Site()
			site.Model(c.model)
			got := reprise(t, "submit", "--wait", "--nats", l.stack.NATSURL, file(t, string(site.Agent("m"))))
			if c.text == "answered" {
				assert.Zero(t, got.code)
			} else {
				assert.Equal(t, 1, got.code)
				assert.Contains(t, got.stdout, "failed in AI Agent")
			}
			assert.Contains(t, got.stdout, c.text)
			assert.NotContains(t, got.stdout+got.stderr, "sk-secret")
		})
	}
}

// TestUnknownCredential: the node that needs it fails, and says which.
func TestUnknownCredential(t *testing.T) {
	t.Parallel()
	l := sharedLab(t)
	site := l.Site()
	document := strings.Replace(string(site.Agent("m")), `"id":"`+site.Credential+`","name":"Model"`, `"id":"c-unknown","name":"Nobody's key"`, 1)
	got := reprise(t, "submit", "--wait", "--nats", l.stack.NATSURL, file(t, document))
	assert.Equal(t, 1, got.code)
	assert.Contains(t, got.stdout, "Nobody's key")
	assert.Contains(t, got.stdout, "not found")
	assert.Zero(t, site.ModelRequests())
}

// TestUnreachable: servers that cannot be used end the program in seconds, with
// the exit code for it.
func TestUnreachable(t *testing.T) {
	t.Parallel()
	locked := redistest.Start(t, "--requirepass", "right")
	secured, err := embedded.StartNATS(t.TempDir(), embedded.NATSOptions{Username: "user", Password: "right"})
	require.NoError(t, err)
	t.Cleanup(secured.Shutdown)
	plain, err := embedded.StartNATS(t.TempDir(), embedded.NATSOptions{NoJetStream: true})
	require.NoError(t, err)
	t.Cleanup(plain.Shutdown)
	wrongUser := strings.Replace(secured.URL, "user:right", "user:sk-secret", 1)
	require.NotEqual(t, secured.URL, wrongUser)
	wrongRedis := "redis://:sk-secret@" + locked.Addr()
	flow := example("agent-parallel-tools.json")
	for _, c := range []struct {
		name  string
		args  []string
		texts []string
	}{
		{"no Redis", []string{"run", flow, "--redis", "redis://" + nowhere}, []string{"redis", nowhere}},
		{"no NATS", []string{"run", flow, "--nats", "nats://" + nowhere}, []string{"nats", nowhere}},
		{"wrong Redis password", []string{"run", flow, "--redis", wrongRedis}, []string{"redis", "credentials"}},
		{"no Redis password", []string{"run", flow, "--redis", locked.URL()}, []string{"redis", "credentials"}},
		{"wrong NATS user", []string{"run", flow, "--nats", wrongUser}, []string{"nats", "credentials"}},
		{"NATS without JetStream", []string{"run", flow, "--nats", plain.URL}, []string{"JetStream"}},
		{"submit without NATS", []string{"submit", flow, "--nats", "nats://" + nowhere}, []string{"nats", nowhere}},
		{"submit to wrong NATS user", []string{"submit", flow, "--nats", wrongUser}, []string{"nats", "credentials"}},
		{"submit without coordinator", []string{"submit", flow, "--nats", secured.URL}, []string{"no coordinator"}},
		{"durable without streams", []string{"submit", "--durable", flow, "--nats", secured.URL}, []string{"stream"}},
		{"list without NATS", []string{"executions", "list", "--nats", "nats://" + nowhere}, []string{"nats", nowhere}},
		{"list without coordinator", []string{"executions", "list", "--nats", secured.URL}, []string{"no coordinator"}},
		{"dev without Redis", []string{"dev", "--nats-port", "0", "--http-addr", "", "--redis", "redis://" + nowhere}, []string{"redis", nowhere}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			before := time.Now()
			reprise(t, c.args...).failed(t, 4, c.texts...)
			assert.Less(t, time.Since(before), 20*time.Second)
		})
	}
}

// TestPortInUse: the program says which flag chooses another one.
func TestPortInUse(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	port := fmt.Sprint(listener.Addr().(*net.TCPAddr).Port)
	got := reprise(t, "dev", "--nats-port", port, "--http-addr", "")
	got.failed(t, 2, port, "--nats-port", "in use")
	got = reprise(t, "mock-llm", "--addr", "127.0.0.1:"+port)
	got.failed(t, 2, port, "--addr", "in use")
}
