package acceptance

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"github.com/reprise-engine/reprise/internal/labtest"
	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/queue"
)

// goldenWaits are the recorded workflows that wait: how each wait is ended.
var goldenWaits = []struct {
	name string
	end  func(t *testing.T, site *labtest.Site, x *queue.Execution)
	// shorter makes a wait short enough for a test.
	shorter *strings.Replacer
	// requests that the site's model gets in all.
	requests int64
}{
	{name: "j_hitl", end: answerMail("approve"), requests: 2},
	{name: "j2_hitl_and_free", end: answerMail("approve"), requests: 2},
	{name: "j3_hitl_declined", end: answerMail("deny"), requests: 2},
	{name: "k_wait_webhook", end: callResumeURL},
	{name: "k2_wait_time", end: letTimePass, shorter: strings.NewReplacer(`"amount": 66`, `"amount": 2`)},
}

// TestGoldenWaits runs recorded workflows that wait, and compares them while they
// wait and after that.
func TestGoldenWaits(t *testing.T) {
	t.Parallel()
	l := sharedLab(t)
	script := read(t, "scenarios.json")
	cases := map[string]*goldenCase{}
	for _, c := range golden(t) {
		if c.waits() {
			cases[c.Name] = &c
		}
	}
	for _, w := range goldenWaits {
		c, waiting := cases[w.name], cases[w.name+".waiting"]
		require.NotNil(t, c, w.name)
		delete(cases, w.name)
		delete(cases, w.name+".waiting")
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			site := l.Site()
			site.Script(t, string(script))
			document := documentFor(site, c.document(t))
			if w.shorter != nil {
				shorter := []byte(w.shorter.Replace(string(document)))
				require.NotEqual(t, document, shorter, "nothing was made shorter")
				document = shorter
			}
			begun := waiting
			if begun == nil {
				begun = c
			}
			id := l.submit(t, &queue.Submission{Workflow: document, Mode: "webhook", Input: webhookCall(begun.recorded(t))})
			x := l.waiting(t, id)
			if waiting != nil {
				same(t, waiting.recorded(t), whileWaiting(t, asRun(t, x)))
			}
			require.Len(t, x.Waiting, 1)
			w.end(t, site, x)
			run := l.await(t, id)
			assert.Equal(t, w.requests, site.ModelRequests(), "model requests")
			if c.Expect == "better" {
				require.Equal(t, "success", run.Get("status").Str, run.Raw)
				better[c.Name](t, run, site.ModelRequests())
				return
			}
			same(t, intended(t, renumbered(t, c.recorded(t))), intended(t, run))
		})
	}
	require.Empty(t, cases, "cases that wait and are not run")
}

// TestGoldenCalled runs recorded workflows that call others, and compares the
// called runs and the links between them.
func TestGoldenCalled(t *testing.T) {
	t.Parallel()
	l := sharedLab(t)
	l.putCalled(t)
	called := 0
	for _, c := range golden(t) {
		if !c.needs("parent") {
			continue
		}
		called++
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			site := l.Site()
			site.Script(t, string(read(t, "scenarios.json")))
			document := documentFor(site, c.document(t))
			run := l.run(t, document, nil)
			want := (&goldenCase{Name: c.Workflow}).recorded(t)
			require.Equal(t, linksOf(t, want, want), linksOf(t, run, want))
			var child gjson.Result
			for _, records := range runDataOf(run) {
				for _, r := range records {
					if sub := r.Get("metadata.subExecution"); sub.Exists() {
						child = l.await(t, engine.ExecutionID(sub.Get("executionId").Str))
					}
				}
			}
			same(t, c.recorded(t), child)
			assert.Equal(t, "integrated", child.Get("mode").Str)
			assert.Equal(t, run.Get("id").Str, child.Get("parent").Str)
			parent := child.Get("data.resultData.runData.Called.0.metadata.parentExecution")
			assert.Equal(t, run.Get("id").Str, parent.Get("executionId").Str)
			assert.Equal(t, gjson.GetBytes(document, "id").Str, parent.Get("workflowId").Str)
		})
	}
	require.Equal(t, 2, called)
	t.Run("execute_workflow", func(t *testing.T) {
		t.Parallel()
		c := &goldenCase{Name: "execute_workflow"}
		want := c.recorded(t)
		assert.Equal(t, linksOf(t, want, want), linksOf(t, l.run(t, c.document(t), nil), want))
	})
}

// answerMail opens the link of a choice in the mail that the site got, and sends the
// form.
func answerMail(choice string) func(*testing.T, *labtest.Site, *queue.Execution) {
	return func(t *testing.T, site *labtest.Site, _ *queue.Execution) {
		mails := site.Mails()
		require.Len(t, mails, 1)
		assert.Equal(t, "Approval needed", mails[0].Subject)
		link := mails[0].Link("choice=" + choice)
		require.NotEmpty(t, link, mails[0].Text)
		require.Contains(t, mails[0].HTML, strings.ReplaceAll(link, "&", "&amp;"))
		page := call(t, http.MethodGet, link, "", "")
		require.Equal(t, http.StatusOK, page.status)
		assert.Contains(t, page.body, "6*7", "the arguments must be shown")
		decided := call(t, http.MethodPost, link, "application/x-www-form-urlencoded", url.Values{"decision": {choice}}.Encode())
		require.Equal(t, http.StatusOK, decided.status, decided.body)
	}
}

// callResumeURL makes the call that was recorded.
func callResumeURL(t *testing.T, _ *labtest.Site, x *queue.Execution) {
	require.NotEmpty(t, x.Waiting[0].URL)
	answer := call(t, http.MethodPost, x.Waiting[0].URL, "application/json", `{"resumed":"yes"}`)
	require.Equal(t, http.StatusOK, answer.status, answer.body)
}

func letTimePass(t *testing.T, _ *labtest.Site, x *queue.Execution) {
	assert.Equal(t, engine.WaitTime, x.Waiting[0].Kind)
	assert.InDelta(t, 2000, x.Waiting[0].Until-x.Waiting[0].Since, 1900)
}

type answer struct {
	status int
	body   string
}

// client sends what curl sent when n8n was recorded, and no more.
var client = &http.Client{Transport: &http.Transport{DisableCompression: true}, Timeout: within}

func call(t *testing.T, method, link, contentType, body string) answer {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, link, strings.NewReader(body))
	require.NoError(t, err)
	r.Header.Set("User-Agent", "curl/7.88.1")
	r.Header.Set("Accept", "*/*")
	if contentType != "" {
		r.Header.Set("Content-Type", contentType)
	}
	response, err := client.Do(r)
	require.NoError(t, err)
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return answer{response.StatusCode, string(data)}
}

// waiting waits until all that is left of an execution waits.
func (l *lab) waiting(t *testing.T, id engine.ExecutionID) *queue.Execution {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	x, err := l.Conn.WaitFinished(ctx, id, true, true)
	require.NoError(t, err)
	require.Equal(t, engine.StatusWaiting, x.Status, string(x.Data))
	return x
}

func asRun(t *testing.T, x *queue.Execution) gjson.Result {
	t.Helper()
	data, err := json.Marshal(x)
	require.NoError(t, err)
	return gjson.ParseBytes(data)
}
