package acceptance

import (
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/reprise-engine/reprise/internal/labtest"
	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/queue"
)

// TestReport089NothingIsRepeatedAfterAWait: what a workflow did before a wait is done
// once, whatever the wait is for.
func TestReport089NothingIsRepeatedAfterAWait(t *testing.T) {
	t.Parallel()
	l := sharedLab(t)
	for name, c := range map[string]struct {
		wait labtest.Node
		end  func(t *testing.T, id engine.ExecutionID)
	}{
		"time": {labtest.Wait("Wait", 0.3), func(*testing.T, engine.ExecutionID) {}},
		"webhook": {labtest.NewNode("Wait", "n8n-nodes-base.wait", 1.1, `{"resume":"webhook","httpMethod":"POST","options":{}}`), func(t *testing.T, id engine.ExecutionID) {
			x := l.waiting(t, id)
			require.Len(t, x.Waiting, 1)
			got := call(t, http.MethodPost, x.Waiting[0].URL, "application/json", `{}`)
			require.Equal(t, http.StatusOK, got.status, got.body)
			got = call(t, http.MethodPost, x.Waiting[0].URL, "application/json", `{}`)
			assert.Equal(t, http.StatusConflict, got.status, "a wait is ended once")
		}},
		"approval": {labtest.NewNode("Wait", "reprise.approval", 1, `{"message":"Go on?"}`), func(t *testing.T, id engine.ExecutionID) {
			approve(t, l.question(t, id))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			site := l.Site()
			ledger := site.Ledger("/do", nil)
			id := l.submit(t, &queue.Submission{Workflow: labtest.Flow("report-089", nil, []labtest.Node{
				labtest.NewNode("Start", "n8n-nodes-base.manualTrigger", 1, ""), labtest.Post("Before", ledger.URL, "before"),
				c.wait, labtest.Post("After", ledger.URL, "after"),
			}, "Start -> Before", "Before -> Wait", "Wait -> After")})
			c.end(t, id)
			run := l.succeeded(t, id)
			assert.Equal(t, []string{"before", "after"}, ledger.Texts())
			for _, name := range []string{"Start", "Before", "Wait", "After"} {
				assert.Len(t, runDataOf(run)[name], 1, name)
			}
		})
	}
}

// TestReport092RetryIsAChoice: from the failure or from the start, as the workflow was or as
// it is now. From the failure, tools that have run do not run again.
func TestReport092RetryIsAChoice(t *testing.T) {
	t.Parallel()
	l := sharedLab(t)
	for name, c := range map[string]struct {
		retry queue.RetryRequest
		paid  int // times in all
		asked int64
		sent  string // where the last step went in the end
	}{
		"from the failure, as it was":  {queue.RetryRequest{}, 1, 2, "old"},
		"from the failure, as it is":   {queue.RetryRequest{Latest: true}, 1, 2, "new"},
		"from the start, as it was":    {queue.RetryRequest{FromStart: true}, 2, 4, "old"},
		"from the start, as it is now": {queue.RetryRequest{FromStart: true, Latest: true}, 2, 4, "new"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			site := l.Site()
			converse(t, site, script("m", asks(free("Pay", `{"text":"40"}`)), says("paid")))
			pay := site.Ledger("/pay", nil)
			var broken atomic.Bool
			broken.Store(true)
			sent := map[string]*atomic.Int64{"old": {}, "new": {}}
			for where, count := range sent {
				site.Handle("/"+where, func(w http.ResponseWriter, _ *http.Request) {
					if broken.Load() {
						http.Error(w, `{"message":"not now"}`, http.StatusServiceUnavailable)
						return
					}
					count.Add(1)
					w.Header().Set("Content-Type", "application/json")
					fmt.Fprint(w, `{"sent":true}`)
				})
			}
			id := "report-092-" + site.Credential
			document := func(where string) []byte {
				return labtest.Flow(id, nil, []labtest.Node{
					labtest.NewNode("Start", "n8n-nodes-base.manualTrigger", 1, ""), labtest.Agent("AI Agent", "pay {{ $json.who }}"),
					site.ModelNode("Model", "m"), labtest.HTTPTool("Pay", pay.URL),
					labtest.Post("Send", site.URL+"/"+where, "={{ $json.output }} to {{ $('Start').item.json.who }}"),
				}, "Start -> AI Agent", "Model ~ai_languageModel~> AI Agent", "Pay ~ai_tool~> AI Agent", "AI Agent -> Send")
			}
			l.put(t, document("old"))
			failed := l.runOf(t, &queue.Submission{WorkflowID: id, Input: inputOf(`{"who":"Ann"}`)})
			require.Equal(t, "error", failed.Get("status").Str)
			require.Equal(t, "Send", failed.Get("data.resultData.lastNodeExecuted").Str)
			l.put(t, document("new"))
			broken.Store(false)
			c.retry.ID = engine.ExecutionID(failed.Get("id").Str)
			again, err := l.Conn.Retry(t.Context(), c.retry)
			require.NoError(t, err)
			run := l.succeeded(t, again)
			assert.Equal(t, failed.Get("id").Str, run.Get("retryOf").Str)
			assert.Len(t, pay.Texts(), c.paid)
			assert.Equal(t, c.asked, site.ModelRequests())
			for where, count := range sent {
				want := 0
				if where == c.sent {
					want = 1
				}
				assert.EqualValues(t, want, count.Load(), "sent to the %s address", where)
			}
			for _, name := range []string{"Start", "AI Agent", "Pay", "Send"} {
				assert.Len(t, runDataOf(run)[name], 1, name)
			}
			assert.Equal(t, "Ann", runDataOf(run)["Start"][0].Get("data.main.0.0.json.who").Str, "the input is the same")
		})
	}
}
