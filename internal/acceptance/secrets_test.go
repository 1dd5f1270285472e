package acceptance

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/reprise-engine/reprise/internal/labtest"
	"github.com/reprise-engine/reprise/internal/stack"
	"github.com/reprise-engine/reprise/pkg/queue"
)

// marker is in every secret that is planted; canary is in what must be seen, so that a search that
// finds nothing is known to look at the right place.
const (
	marker = "S3CRETMARKER"
	canary = "canary-in-the-open"
)

// traces are the ways in which the marker could be seen.
func traces() map[string]string {
	found := map[string]string{
		"plain": marker, "lower case": strings.ToLower(marker), "hexadecimal": fmt.Sprintf("%x", marker),
	}
	for offset := range 3 { // base64 shows the same text in three ways
		text := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("x", offset) + marker))
		found[fmt.Sprintf("base64 at %d", offset)] = text[4 : len(text)-4]
	}
	return found
}

func requireNoTrace(t *testing.T, place string, data []byte) {
	t.Helper()
	for how, trace := range traces() {
		if i := bytes.Index(data, []byte(trace)); i >= 0 {
			t.Errorf("%s shows a secret (%s): …%s…", place, how, data[max(0, i-150):min(len(data), i+100)])
		}
	}
}

// shared text that several goroutines write.
type record struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (r *record) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.text.Write(p)
}

func (r *record) Sync() error { return nil }

func (r *record) bytes() []byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	return bytes.Clone(r.text.Bytes())
}

// echoRequest answers with all of a request, in the forms that servers use.
func echoRequest(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	var headers bytes.Buffer
	_ = r.Header.Write(&headers)
	all := fmt.Sprintf("%s %s\n%s\n%s\n%s", r.Method, r.URL, headers.String(), body, canary)
	user, password, _ := r.BasicAuth()
	all += fmt.Sprintf("\n%s %s %s", user, password, url.QueryEscape(all))
	switch r.URL.Query().Get("as") {
	case "file":
		w.Header().Set("Content-Type", "application/octet-stream")
		_, _ = io.WriteString(w, all)
	case "text":
		_, _ = io.WriteString(w, all)
	case "json":
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{"request": all, "in64": base64.StdEncoding.EncodeToString([]byte(all)), all: 1})
	default:
		w.Header().Set("X-Echo", strings.Join(strings.Fields(all), " "))
		w.WriteHeader(http.StatusInternalServerError)
		_ = json.NewEncoder(w).Encode(map[string]any{"error": map[string]any{"message": "you sent " + all}})
	}
}

// rudeMailServer refuses every login and says what it was told.
func rudeMailServer(t *testing.T) (port int) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var sessions sync.WaitGroup
	t.Cleanup(func() { _ = listener.Close(); sessions.Wait() })
	sessions.Go(func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			sessions.Go(func() {
				defer c.Close()
				fmt.Fprint(c, "220 rude\r\n")
				for lines := bufio.NewScanner(c); lines.Scan(); {
					switch line := lines.Text(); {
					case strings.HasPrefix(line, "EHLO"):
						fmt.Fprint(c, "250-rude\r\n250 AUTH PLAIN\r\n")
					case strings.HasPrefix(line, "AUTH PLAIN "):
						told, _ := base64.StdEncoding.DecodeString(strings.TrimPrefix(line, "AUTH PLAIN "))
						fmt.Fprintf(c, "535 %s: no, not %s %s\r\n", canary, strings.ReplaceAll(string(told), "\x00", " "), line)
					default:
						fmt.Fprint(c, "221 bye\r\n")
						return
					}
				}
			})
		}
	})
	return listener.Addr().(*net.TCPAddr).Port
}

// TestSecretsStayInWorkers plants secrets in credentials of every kind, has servers echo them in
// answers and failures, and searches all that leaves a worker.
func TestSecretsStayInWorkers(t *testing.T) {
	t.Parallel()
	l := labtest.Start(t)
	site := l.Site()
	site.Handle("/echo", echoRequest)
	site.Handle("/model/chat/completions", echoRequest)
	site.Handle("/talkative/chat/completions", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{"choices": []any{map[string]any{"finish_reason": "stop", "message": map[string]any{
			"role": "assistant", "content": canary + ": your key is " + r.Header.Get("Authorization"),
		}}}})
	})
	kinds := map[string]map[string]any{
		"httpHeaderAuth": {"name": "X-Key", "value": `hd/"` + marker + `+=1`},
		"httpBearerAuth": {"token": "be." + marker + ".arer"},
		"httpBasicAuth":  {"user": "ada", "password": "b<&" + marker + `\'x`},
		"httpQueryAuth":  {"name": "key", "value": "q &/=" + marker + "?"},
		"httpCustomAuth": {"json": `{"headers":{"X-C":"c1` + marker + `"},"qs":{"c":"c2 ` + marker + `"},"body":{"c":"c3` + marker + `"}}`},
		"oAuth2Api":      {"clientId": "public-client", "clientSecret": "cs" + marker, "oauthTokenData": map[string]any{"access_token": "at-" + marker, "refresh_token": "rt" + marker}},
		"notionApi":      {"apiKey": "notion-" + marker},
	}
	entries := []map[string]any{
		{"id": "smtp", "name": "Rude mail", "type": "smtp", "data": map[string]any{"host": "127.0.0.1", "port": rudeMailServer(t), "secure": false, "user": "ada", "password": "ma il" + marker}},
		{"id": "model", "name": "Echo model", "type": "openAiApi", "data": map[string]any{"apiKey": "sk-" + marker, "url": site.URL + "/model", "header": true, "headerName": "X-Gw", "headerValue": "gw" + marker}},
		{"id": "talkative", "name": "Talkative", "type": "openAiApi", "data": map[string]any{"apiKey": "sk-t-" + marker, "url": site.URL + "/talkative"}},
	}
	nodes := []labtest.Node{labtest.NewNode("Start", "n8n-nodes-base.manualTrigger", 1, "")}
	var connections []string
	add := func(n labtest.Node, name string) {
		connections = append(connections, fmt.Sprintf("%s -> %s", nodes[len(nodes)-1]["name"], name))
		nodes = append(nodes, n)
	}
	for kind, data := range kinds {
		entries = append(entries, map[string]any{"id": kind, "name": "My " + kind, "type": kind, "data": data})
		for _, as := range []string{"", "json", "text", "file"} {
			name := strings.TrimSpace(kind + " " + as)
			parameters := fmt.Sprintf(`{"method":"POST","url":"%s/echo?as=%s","sendBody":true,"bodyParameters":{"parameters":[{"name":"a","value":"b"}]},
				"authentication":"predefinedCredentialType","nodeCredentialType":%q,"options":{"response":{"response":{"fullResponse":true}}}}`, site.URL, as, kind)
			if strings.HasPrefix(kind, "http") {
				parameters = strings.ReplaceAll(parameters, `"predefinedCredentialType","nodeCredentialType"`, `"genericCredentialType","genericAuthType"`)
			}
			add(labtest.NewNode(name, "n8n-nodes-base.httpRequest", 4.2, parameters).With("onError", "continueRegularOutput").
				With("executeOnce", true).With("credentials", map[string]any{kind: map[string]any{"id": kind, "name": kind}}), name)
		}
	}
	add(labtest.NewNode("Mail", "n8n-nodes-base.emailSend", 2.1, `{"fromEmail":"a@lab.test","toEmail":"b@lab.test","subject":"s","text":"t","options":{}}`).
		With("onError", "continueRegularOutput").With("executeOnce", true).With("credentials", map[string]any{"smtp": map[string]any{"id": "smtp", "name": "Rude mail"}}), "Mail")
	for _, model := range []string{"talkative", "model"} { // the last one fails the execution
		agent := labtest.Agent("Agent "+model, "hello").With("executeOnce", true)
		add(agent, "Agent "+model)
	}
	for _, model := range []string{"talkative", "model"} {
		nodes = append(nodes, site.ModelNode("Model "+model, "m").With("credentials", map[string]any{"openAiApi": map[string]any{"id": model, "name": model}}))
		connections = append(connections, fmt.Sprintf("Model %s ~ai_languageModel~> Agent %s", model, model))
	}
	file := filepath.Join(t.TempDir(), "credentials.json")
	text, err := json.Marshal(entries)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(file, text, 0o600))

	var logs, messages record
	log := zap.New(zapcore.NewCore(zapcore.NewJSONEncoder(zap.NewProductionEncoderConfig()), &logs, zapcore.DebugLevel))
	s, err := stack.Start(t.Context(), stack.Config{CredentialsFile: file, HTTPAddr: anyPort, Log: log})
	require.NoError(t, err)
	t.Cleanup(s.Stop)
	spy, err := nats.Connect(s.NATSURL)
	require.NoError(t, err)
	t.Cleanup(spy.Close)
	_, err = spy.Subscribe(">", func(m *nats.Msg) { _, _ = fmt.Fprintf(&messages, "%s %v %s\n", m.Subject, m.Header, m.Data) })
	require.NoError(t, err)
	require.NoError(t, spy.Flush())

	x := (&lab{Stack: s, Lab: l}).runOf(t, &queue.Submission{Workflow: labtest.Flow("secrets", nil, nodes, connections...), Input: inputOf(`{}`)})
	require.Equal(t, "error", x.Get("status").String(), x.Raw)
	require.NoError(t, spy.Flush())
	for _, n := range nodes[1:] {
		require.True(t, x.Get("data.resultData.runData."+strings.ReplaceAll(n["name"].(string), ".", `\.`)).Exists() || strings.Contains(x.Raw, n["name"].(string)), n["name"])
	}
	stored := dumpRedis(t, s.RedisURL)
	log.Info(canary) // the log has no text of workflows
	for place, data := range map[string][]byte{"run data": []byte(x.Raw), "Redis": stored, "NATS": messages.bytes(), "log": logs.bytes()} {
		require.Contains(t, string(data), canary, place)
		requireNoTrace(t, place, data)
	}
	require.GreaterOrEqual(t, strings.Count(x.Raw, "[secret]"), 4*len(kinds), "what was echoed is seen, without the secrets")
	require.Contains(t, x.Get("error.message").Raw+x.Raw, canary)
}

// dumpRedis is all that is in Redis.
func dumpRedis(t *testing.T, address string) []byte {
	t.Helper()
	options, err := redis.ParseURL(address)
	require.NoError(t, err)
	client := redis.NewClient(options)
	defer client.Close()
	var out bytes.Buffer
	keys, err := client.Keys(t.Context(), "*").Result()
	require.NoError(t, err)
	require.NotEmpty(t, keys)
	for _, key := range keys {
		kind, err := client.Type(t.Context(), key).Result()
		require.NoError(t, err)
		var value any
		switch kind {
		case "string":
			value, err = client.Get(t.Context(), key).Result()
		case "hash":
			value, err = client.HGetAll(t.Context(), key).Result()
		case "list":
			value, err = client.LRange(t.Context(), key, 0, -1).Result()
		case "set":
			value, err = client.SMembers(t.Context(), key).Result()
		case "zset":
			value, err = client.ZRangeWithScores(t.Context(), key, 0, -1).Result()
		default:
			t.Fatalf("key %s is a %s", key, kind)
		}
		require.NoError(t, err, key)
		fmt.Fprintf(&out, "%s %v\n", key, value)
	}
	return out.Bytes()
}
