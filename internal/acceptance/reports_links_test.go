package acceptance

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/reprise-engine/reprise/internal/labtest"
	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/queue"
)

// TestReport043ScannersDecideNothing: a mail scanner opens both links in every way it
// knows, and only the form that a person sends decides.
func TestReport043ScannersDecideNothing(t *testing.T) {
	t.Parallel()
	l := sharedLab(t)
	site := l.Site()
	converse(t, site, script("m", asks(gated("Pay", "40")), says("{{results}}")))
	ledger := site.Ledger("/pay", nil)
	id := l.submit(t, &queue.Submission{Workflow: gatedFlow(site, site.MailGate("Ask"), ledger.URL, "Pay")})
	l.waiting(t, id)
	require.Len(t, site.Mails(), 1)
	links := site.Mails()[0].Links()
	require.Len(t, links, 2)
	for _, link := range links {
		for _, method := range []string{http.MethodHead, http.MethodGet, http.MethodOptions} {
			for _, agent := range []string{"", "Mozilla/5.0 (Windows NT 10.0; Win64; x64)", "GoogleImageProxy", "Barracuda Sentinel (EE)"} {
				r, err := http.NewRequestWithContext(t.Context(), method, link, nil)
				require.NoError(t, err)
				r.Header.Set("User-Agent", agent)
				response, err := client.Do(r)
				require.NoError(t, err)
				require.NoError(t, response.Body.Close())
				if method != http.MethodOptions {
					assert.Equal(t, http.StatusOK, response.StatusCode, "%s by %q", method, agent)
				}
			}
		}
	}
	x, err := l.Conn.Get(t.Context(), id, false)
	require.NoError(t, err)
	assert.Equal(t, engine.StatusWaiting, x.Status)
	assert.Empty(t, l.question(t, id).Outcome)
	assert.Empty(t, ledger.Texts())
	got := decide(t, site.Mails()[0].Link("choice=approve"), "approve")
	require.Equal(t, http.StatusOK, got.status, got.body)
	run := l.succeeded(t, id)
	assert.Equal(t, []string{"40"}, ledger.Texts())
	assert.Equal(t, []string{"approved"}, outcomes(run, "Ask"))
	assert.Len(t, site.Mails(), 1)
}

// TestReport044LinksAreForOneQuestion: the link of the first call does nothing for the
// second, and an altered one nothing at all.
func TestReport044LinksAreForOneQuestion(t *testing.T) {
	t.Parallel()
	l := sharedLab(t)
	site := l.Site()
	converse(t, site, script("m", asks(gated("Pay", "one")), asks(gated("Pay", "two")), says("{{results}}")))
	ledger := site.Ledger("/pay", nil)
	id := l.submit(t, &queue.Submission{Workflow: gatedFlow(site, site.MailGate("Ask"), ledger.URL, "Pay")})
	link := func(n int) string {
		require.Eventually(t, func() bool { return len(site.Mails()) == n }, within, tick)
		l.waiting(t, id)
		return site.Mails()[n-1].Link("choice=approve")
	}
	first := link(1)
	require.Equal(t, http.StatusOK, decide(t, first, "approve").status)
	second := link(2)
	require.NotEqual(t, first, second)
	untouched := func(what string) {
		t.Helper()
		a := l.question(t, id)
		require.JSONEq(t, `{"text":"two"}`, string(a.Arguments), what)
		require.Equal(t, []string{"one"}, ledger.Texts(), what)
	}

	got := decide(t, first, "approve")
	assert.Equal(t, http.StatusConflict, got.status, got.body)
	untouched("replayed")
	got = decide(t, first, "deny")
	assert.Equal(t, http.StatusConflict, got.status, "decided once")
	untouched("replayed with another answer")

	signature := "?" + "signature="
	token := strings.LastIndex(second[:strings.Index(second, "?")], "_") + 1
	begin, end := strings.Index(second, signature)+len(signature), strings.Index(second, "&choice")
	require.Less(t, begin, end)
	for _, at := range []int{token, begin, (begin + end) / 2, strings.LastIndex(second, ".") + 1, end - 1} {
		altered := []byte(second)
		if altered[at]++; altered[at] > 'f' || altered[at] == ':' || altered[at] == '/' {
			altered[at] = '0'
		}
		require.NotEqual(t, second, string(altered))
		got := decide(t, string(altered), "approve")
		assert.Equal(t, http.StatusForbidden, got.status, "%s: %s", altered, got.body)
	}
	// The signature of one question on the token of the other.
	mixed := second[:strings.Index(second, "?")] + first[strings.Index(first, "?"):]
	assert.Equal(t, http.StatusForbidden, decide(t, mixed, "approve").status)
	untouched("altered")

	require.Equal(t, http.StatusOK, decide(t, second, "approve").status)
	run := l.succeeded(t, id)
	assert.Equal(t, []string{"one", "two"}, ledger.Texts())
	assert.Equal(t, []string{"approved", "approved"}, outcomes(run, "Ask"))
}

// TestReport046DecisionAtOnce: a decision that comes as soon as there is a question to
// be seen, or before, is applied or told to try again, and never lost.
func TestReport046DecisionAtOnce(t *testing.T) {
	t.Parallel()
	l := sharedLab(t)

	t.Run("when the live notice comes", func(t *testing.T) {
		t.Parallel()
		site := l.Site()
		converse(t, site, script("m", asks(gated("Pay", "40")), says("{{results}}")))
		ledger := site.Ledger("/pay", nil)
		document := gatedFlow(site, labtest.Gate("Ask", ""), ledger.URL, "Pay")
		// The number in a question's id is the same in every run of the workflow.
		known := l.submit(t, &queue.Submission{Workflow: document})
		number := strings.TrimPrefix(l.question(t, known).ID, string(known))
		approve(t, l.question(t, known))
		l.succeeded(t, known)
		const runs = 10
		for n := range runs {
			id := engine.ExecutionID("at-once-" + uuid.NewString())
			decided := make(chan error, 1)
			stop, err := l.Conn.WatchLive(id, func(notice queue.Live) {
				if notice.Node != "Ask" || notice.Status != engine.StatusWaiting {
					return
				}
				select {
				case decided <- l.Conn.Decide(context.Background(), queue.DecideRequest{
					ID: string(id) + number, Decision: engine.Decision{Approved: true},
				}):
				default:
				}
			})
			require.NoError(t, err)
			l.submit(t, &queue.Submission{ID: id, Workflow: document})
			select {
			case err := <-decided:
				require.NoError(t, err, "what is published can be decided")
			case <-time.After(within):
				t.Fatal("no question was published")
			}
			run := l.succeeded(t, id)
			stop()
			assert.Equal(t, []string{"approved"}, outcomes(run, "Ask"))
			assert.Len(t, ledger.Texts(), n+2)
		}
	})

	t.Run("before the mail is taken", func(t *testing.T) {
		t.Parallel()
		site := l.Site()
		converse(t, site, script("m", asks(gated("Pay", "40")), says("{{results}}")))
		ledger := site.Ledger("/pay", nil)
		// The question is not asked before the mail is out; a person may be faster.
		early := make(chan answer, 1)
		site.OnMail(func(m labtest.Mail) {
			r, err := http.NewRequestWithContext(context.Background(), http.MethodPost, m.Link("choice=approve"), strings.NewReader("decision=approve"))
			if err != nil {
				early <- answer{0, err.Error()}
				return
			}
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			response, err := client.Do(r)
			if err != nil {
				early <- answer{0, err.Error()}
				return
			}
			_ = response.Body.Close()
			early <- answer{response.StatusCode, response.Header.Get("Retry-After")}
		})
		id := l.submit(t, &queue.Submission{Workflow: gatedFlow(site, site.MailGate("Ask"), ledger.URL, "Pay")})
		select {
		case got := <-early:
			require.Equal(t, http.StatusServiceUnavailable, got.status, "a decision that cannot be kept must not be accepted: %s", got.body)
			assert.NotEmpty(t, got.body, "when to try again")
		case <-time.After(within):
			t.Fatal("no mail")
		}
		require.Eventually(t, func() bool {
			return decide(t, site.Mails()[0].Link("choice=approve"), "approve").status == http.StatusOK
		}, within, tick)
		run := l.succeeded(t, id)
		assert.Equal(t, []string{"approved"}, outcomes(run, "Ask"))
		assert.Equal(t, []string{"40"}, ledger.Texts())
	})
}

// TestReport047CancelWhileWaiting: the conversation goes on in the next execution, and
// the call that was pending has an end.
func TestReport047CancelWhileWaiting(t *testing.T) {
	t.Parallel()
	l := sharedLab(t)
	site := l.Site()
	model := converse(t, site, fmt.Sprintf(`"m": {"turns": [%s, %s], "variants": [{"match": "hello", "turns": [%s]}]}`,
		asks(gated("Pay", "40")), says("never said"), says("You said: {{prompt}}")))
	ledger := site.Ledger("/pay", nil)
	document := agentFlow(site, []labtest.Node{
		labtest.Gate("Ask", ""), labtest.HTTPTool("Pay", ledger.URL), labtest.Memory("one-session"),
	}, "Pay ~ai_tool~> Ask", "Ask ~ai_tool~> AI Agent", "Memory ~ai_memory~> AI Agent")
	say := func(text string) *queue.Submission {
		return &queue.Submission{Workflow: document, Input: inputOf(fmt.Sprintf(`{"chatInput":%q}`, text))}
	}
	l.succeeded(t, l.submit(t, say("hello you")))

	id := l.submit(t, say("please pay"))
	a := l.question(t, id)
	require.NoError(t, l.Conn.Cancel(t.Context(), id, "changed my mind"))
	run := l.await(t, id)
	assert.Equal(t, "canceled", run.Get("status").Str)
	record := runDataOf(run)["Ask"][0]
	assert.Equal(t, "canceled", record.Get("executionStatus").Str)
	assert.Equal(t, "canceled", record.Get("metadata.outcome").Str)
	for name, records := range runDataOf(run) {
		for _, r := range records {
			assert.NotContains(t, []string{"running", "waiting", ""}, r.Get("executionStatus").Str, "%s has no end", name)
		}
	}
	got := decide(t, a.URL, "approve")
	assert.Equal(t, http.StatusGone, got.status, got.body)

	answered := l.succeeded(t, l.submit(t, say("hello again")))
	assert.Equal(t, "You said: hello again", answersOf(answered)[0])
	asked := model.request(t, 2).Get("messages").Raw
	assert.Contains(t, asked, "You said: hello you", "the session is the same")
	assert.Empty(t, results(model.request(t, 2)))
	assert.NotContains(t, asked, "tool_calls", "nothing of the turn that was given up")
	assert.Empty(t, ledger.Texts())
}
