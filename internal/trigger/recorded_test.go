package trigger_test

import (
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/queue"
)

// TestRecordedCalls calls webhooks as a real n8n 2.41.1 was called and compares the answer, and
// the items of every node with those that it recorded. What differs by nature is left out: the host, and what clients
// add to their headers.
func TestRecordedCalls(t *testing.T) {
	l := start(t)
	files, err := filepath.Glob("testdata/*.run.json")
	require.NoError(t, err)
	require.Greater(t, len(files), 14)
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".run.json")
		t.Run(name, func(t *testing.T) {
			recorded := gjson.Parse(read(t, file))
			document := []byte(read(t, filepath.Join("testdata", strings.SplitN(name, ".", 2)[0]+".workflow.json")))
			l.activate(t, document)
			want := recorded.Get("request")
			r, err := http.NewRequest(want.Get("method").Str, l.PublicURL+want.Get("path").Str, strings.NewReader(want.Get("body").String()))
			require.NoError(t, err)
			for name, value := range want.Get("headers").Map() {
				r.Header.Set(name, value.Str)
			}
			status, header, body := l.do(t, r)
			answer := recorded.Get("response")
			require.EqualValues(t, answer.Get("status").Int(), status, body)
			require.Equal(t, answer.Get("headers.content-type").Str, header.Get("Content-Type"))
			require.Equal(t, answer.Get("headers.x-lab").Str, header.Get("X-Lab"))
			text := answer.Get("body").Str
			if raw := answer.Get("bodyBase64"); raw.Exists() {
				decoded, err := base64.StdEncoding.DecodeString(raw.Str)
				require.NoError(t, err)
				text = string(decoded)
			}
			require.Equal(t, text, body)

			x := l.ended(t, header)
			require.Equal(t, recorded.Get("status").Str, string(x.Status))
			require.Equal(t, recorded.Get("mode").Str, x.Mode)
			got := gjson.ParseBytes(x.Data).Get("resultData.runData")
			for node, runs := range recorded.Get("data.resultData.runData").Map() {
				for i, run := range runs.Array() {
					path := gjson.Escape(node) + "." + string('0'+rune(i))
					for k, output := range run.Get("data.main").Array() {
						for n, item := range output.Array() {
							one := got.Get(path + ".data.main").Array()[k].Array()[n]
							require.JSONEq(t, comparable(t, item.Get("json")), comparable(t, one.Get("json")), "%s, run %d", node, i)
						}
					}
					require.Equal(t, run.Get("executionStatus").Str, got.Get(path+".executionStatus").Str, node)
				}
			}
		})
	}
}

// comparable is an item without what depends on the client and the host.
func comparable(t *testing.T, item gjson.Result) string {
	t.Helper()
	var value any
	require.NoError(t, json.Unmarshal([]byte(item.Raw), &value))
	if object, ok := value.(map[string]any); ok {
		if headers, ok := object["headers"].(map[string]any); ok {
			for _, name := range []string{"host", "connection", "user-agent", "accept-encoding", "content-length"} {
				delete(headers, name)
			}
		}
		if url, ok := object["webhookUrl"].(string); ok {
			object["webhookUrl"] = url[strings.Index(url, "/webhook/"):]
		}
	}
	data, err := json.Marshal(value)
	require.NoError(t, err)
	return string(data)
}

func read(t *testing.T, file string) string {
	t.Helper()
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	return string(data)
}

// do calls and reads the answer; redirects are not followed.
func (l *lab) do(t *testing.T, r *http.Request) (status int, header http.Header, body string) {
	t.Helper()
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	answer, err := client.Do(r)
	require.NoError(t, err)
	data, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	return answer.StatusCode, answer.Header, string(data)
}

// ended is the execution that a call began, when it is over.
func (l *lab) ended(t *testing.T, header http.Header) *queue.Execution {
	t.Helper()
	id := engine.ExecutionID(header.Get("X-Reprise-Execution"))
	require.NotEmpty(t, id)
	x, err := l.Conn.WaitFinished(t.Context(), id, true, false)
	require.NoError(t, err)
	return x
}
