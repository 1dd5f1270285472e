package api

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-engine/reprise/internal/links"
	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/queue"
)

func TestApprovalPage(t *testing.T) {
	f := newFixture(t)
	answer, body := f.call(t, http.MethodGet, f.approvalPath(t), "")
	require.Equal(t, http.StatusOK, answer.StatusCode)
	require.Equal(t, "text/html; charset=utf-8", answer.Header.Get("Content-Type"))
	for _, text := range []string{
		"Send the money?", "It cannot be taken back.", "Orders", "Ask first", "Send money",
		"&#34;to&#34;: &#34;Ada&#34;", "&#34;amount&#34;: 100.10", "2 January 2026, 14:00 UTC, in 2 hours",
		`<form method="post">`, `name="feedback"`,
		`<button name="decision" value="approve">Send it</button>`, `<button class="deny" name="decision" value="deny">Do not</button>`,
	} {
		require.Contains(t, body, text)
	}
	require.NotContains(t, body, "<script")
	require.NotContains(t, body, "http", "nothing from elsewhere")
	require.Empty(t, f.decides)
}

func TestApprovalHeaders(t *testing.T) {
	f := newFixture(t)
	for _, target := range []string{f.approvalPath(t), "/approval/" + f.approval.ID} {
		answer, body := f.call(t, http.MethodGet, target, "")
		header := answer.Header
		require.Equal(t, "DENY", header.Get("X-Frame-Options"))
		require.Equal(t, "no-referrer", header.Get("Referrer-Policy"))
		require.Equal(t, "no-store", header.Get("Cache-Control"))
		require.Equal(t, "nosniff", header.Get("X-Content-Type-Options"))
		require.Contains(t, header.Get("X-Robots-Tag"), "noindex")
		require.Empty(t, header.Values("Set-Cookie"))
		policy := header.Get("Content-Security-Policy")
		for _, directive := range []string{"default-src 'none'", "frame-ancestors 'none'", "form-action 'self'", "base-uri 'none'"} {
			require.Contains(t, policy, directive)
		}
		require.NotContains(t, policy, "unsafe")
		// The style that the policy allows is the one in the page.
		_, rest, _ := strings.Cut(body, "<style>")
		style, _, found := strings.Cut(rest, "</style>")
		require.True(t, found)
		require.Contains(t, policy, "style-src 'sha256-"+digest(style)+"'")
	}
}

func TestApprovalButtons(t *testing.T) {
	t.Run("choice gives the focus", func(t *testing.T) {
		f := newFixture(t)
		_, body := f.call(t, http.MethodGet, f.approvalPath(t)+"&choice=approve", "")
		require.Contains(t, body, `value="approve" autofocus>`)
		require.Contains(t, body, `value="deny">`)
		_, body = f.call(t, http.MethodGet, f.approvalPath(t)+"&choice=deny", "")
		require.Contains(t, body, `value="approve">`)
		require.Contains(t, body, `value="deny" autofocus>`)
		_, body = f.call(t, http.MethodGet, f.approvalPath(t)+"&choice=x", "")
		require.NotContains(t, body, "autofocus")
		require.Empty(t, f.decides)
	})
	t.Run("one button", func(t *testing.T) {
		f := newFixture(t)
		f.approval.Approve, f.approval.Deny = "", ""
		_, body := f.call(t, http.MethodGet, f.approvalPath(t), "")
		require.Contains(t, body, `value="approve">Approve</button>`)
		require.Equal(t, 1, strings.Count(body, "<button"))
	})
	t.Run("free text", func(t *testing.T) {
		f := newFixture(t)
		f.approval.FreeText, f.approval.Approve = true, ""
		_, body := f.call(t, http.MethodGet, f.approvalPath(t), "")
		require.Contains(t, body, `<textarea id="text" name="text" rows="5" required`)
		require.Contains(t, body, `value="approve">Send</button>`)
		require.Equal(t, 1, strings.Count(body, "<button"))
	})
}

func TestDecide(t *testing.T) {
	const jsonType, formType = "application/json", "application/x-www-form-urlencoded"
	const multipartType = `multipart/form-data; boundary=x`
	multipart := func(value string) string {
		return "--x\r\nContent-Disposition: form-data; name=\"decision\"\r\n\r\n" + value + "\r\n--x--\r\n"
	}
	for name, c := range map[string]struct {
		contentType, body string
		freeText          bool
		status            int
		approved          bool
		feedback          string
	}{
		"approve":              {formType, "decision=approve", false, 200, true, ""},
		"deny":                 {formType, "decision=deny&feedback=too+much%0D%0Afor+us", false, 200, false, "too much\nfor us"},
		"multipart":            {multipartType, multipart("approve"), false, 200, true, ""},
		"JSON":                 {jsonType, `{"decision":"deny","feedback":"no"}`, false, 200, false, "no"},
		"free text":            {formType, "decision=approve&text=at+five", true, 200, true, "at five"},
		"free text in JSON":    {jsonType, `{"decision":"approve","text":"at five"}`, true, 200, true, "at five"},
		"free text as another": {formType, "decision=approve&feedback=at+five", true, 200, true, "at five"},

		"free text without":  {formType, "decision=approve&text=+", true, 400, false, ""},
		"nothing":            {formType, "", false, 400, false, ""},
		"only feedback":      {formType, "feedback=approve", false, 400, false, ""},
		"another word":       {formType, "decision=approved", false, 400, false, ""},
		"capitals":           {formType, "decision=APPROVE", false, 400, false, ""},
		"space":              {formType, "decision=approve+", false, 400, false, ""},
		"true":               {formType, "decision=true", false, 400, false, ""},
		"both":               {formType, "decision=approve&decision=deny", false, 400, false, ""},
		"bad form":           {formType, "decision=approve&a=%zz", false, 400, false, ""},
		"no content type":    {"", "decision=approve", false, 400, false, ""},
		"text":               {"text/plain", "decision=approve", false, 400, false, ""},
		"JSON, another word": {jsonType, `{"decision":"yes"}`, false, 400, false, ""},
		"JSON, boolean":      {jsonType, `{"decision":true}`, false, 400, false, ""},
		"JSON, broken":       {jsonType, `{"decision":"approve"`, false, 400, false, ""},
		"JSON, twice":        {jsonType, `{"decision":"approve"}{}`, false, 400, false, ""},
		"multipart, both":    {multipartType, strings.Replace(multipart("approve"), "--x--", strings.TrimSuffix(multipart("deny"), "\r\n"), 1), false, 400, false, ""},
		"multipart, broken":  {multipartType, "--x\r\n", false, 400, false, ""},
		"too large":          {formType, "decision=approve&feedback=" + strings.Repeat("x", maxDecision), false, 413, false, ""},
		"JSON, too large":    {jsonType, `{"decision":"approve","feedback":"` + strings.Repeat("x", maxDecision) + `"}`, false, 413, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.approval.FreeText = c.freeText
			bind := f.approval.Bind
			answer, body := f.call(t, http.MethodPost, f.approvalPath(t), c.body, "Content-Type", c.contentType)
			require.Equal(t, c.status, answer.StatusCode, body)
			if c.status != 200 {
				require.Empty(t, f.decides)
				require.Empty(t, f.outcome())
				require.Contains(t, strings.ToLower(body), "nothing was decided")
				return
			}
			require.Equal(t, []queue.DecideRequest{{ID: string(executionID) + "_3", Bind: bind, Decision: engine.Decision{
				Approved: c.approved, Feedback: c.feedback, By: "link", At: noon.UnixMilli(),
			}}}, f.decides)
			if c.contentType == jsonType {
				var got map[string]string
				require.NoError(t, json.Unmarshal([]byte(body), &got))
				require.Equal(t, map[string]string{"id": string(executionID) + "_3", "outcome": string(f.outcome())}, got)
			} else {
				require.Contains(t, body, "Recorded: ")
				require.NotContains(t, body, "<form")
			}
		})
	}
}

// The query decides nothing, whatever the method.
func TestQueryDecidesNothing(t *testing.T) {
	f := newFixture(t)
	for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut} {
		f.call(t, method, f.approvalPath(t)+"&decision=approve&approved=true&choice=approve", "", "Content-Type", "application/x-www-form-urlencoded")
	}
	require.Empty(t, f.decides)
}

func TestApprovalStatusCodes(t *testing.T) {
	decided := func(outcome engine.Outcome) func(*fixture) {
		return func(f *fixture) {
			f.approval.Outcome = outcome
			f.approval.Decision = &engine.Decision{Approved: outcome == engine.OutcomeApproved, Feedback: "my words", At: noon.UnixMilli()}
		}
	}
	execution := func(status engine.Status) func(*fixture) {
		return func(f *fixture) {
			f.approvalErr = &queue.Problem{Code: queue.CodeNotFound, Message: "no such approval"}
			f.get = func(id engine.ExecutionID) (*queue.Execution, error) {
				if id != executionID {
					return nil, errors.New("another execution was asked for")
				}
				return &queue.Execution{ID: id, Status: status}, nil
			}
		}
	}
	unreachable := func(err error) func(*fixture) { return func(f *fixture) { f.approvalErr = err } }
	for name, c := range map[string]struct {
		with   func(*fixture)
		status int
		code   string
		says   string
		retry  bool
	}{
		"approved":           {decided(engine.OutcomeApproved), 409, queue.CodeConflict, "decided before: approved", false},
		"denied":             {decided(engine.OutcomeDenied), 409, queue.CodeConflict, "decided before: denied", false},
		"expired":            {decided(engine.OutcomeExpired), 410, queue.CodeGone, "has expired", false},
		"canceled":           {decided(engine.OutcomeCanceled), 410, queue.CodeGone, "withdrawn", false},
		"about to expire":    {func(f *fixture) { f.approval.Expires = noon.UnixMilli() }, 410, queue.CodeGone, "has expired", false},
		"another question":   {func(f *fixture) { f.approval.Bind = "other" }, 403, queue.CodeForbidden, "another question", false},
		"unknown":            {func(f *fixture) { f.approvalErr = &queue.Problem{Code: queue.CodeNotFound} }, 404, queue.CodeNotFound, "no such question", false},
		"not asked yet":      {execution(engine.StatusRunning), 503, queue.CodeUnavailable, "not asked yet", true},
		"never asked":        {execution(engine.StatusSuccess), 410, queue.CodeGone, "execution is over", false},
		"execution canceled": {execution(engine.StatusCanceled), 410, queue.CodeGone, "execution is over", false},
		"no coordinator":     {unreachable(queue.ErrNoCoordinator), 503, queue.CodeUnavailable, "try again", true},
		"unavailable":        {unreachable(&queue.Problem{Code: queue.CodeUnavailable, Message: "Redis is away"}), 503, queue.CodeUnavailable, "try again", true},
		"a fault":            {unreachable(errors.New("redis: password wrong")), 500, queue.CodeInternal, "went wrong", false},
		"no look-up": {func(f *fixture) {
			execution(engine.StatusRunning)(f)
			f.get = func(engine.ExecutionID) (*queue.Execution, error) { return nil, queue.ErrUnavailable }
		}, 503, queue.CodeUnavailable, "try again", true},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			target := f.approvalPath(t)
			c.with(f)
			for _, method := range []string{http.MethodGet, http.MethodPost} {
				form := []string{"Content-Type", "application/x-www-form-urlencoded"}
				answer, body := f.call(t, method, target, "decision=approve", form...)
				require.Equal(t, c.status, answer.StatusCode, method)
				require.Contains(t, strings.ToLower(body), c.says)
				require.NotContains(t, body, "password")
				require.NotContains(t, body, "<form", "there is nothing to decide")
				require.Equal(t, c.retry, answer.Header.Get("Retry-After") != "")
				if c.status == 409 {
					require.Contains(t, body, "my words")
					require.Contains(t, body, "2 January 2026, 12:00 UTC")
				}

				answer, body = f.call(t, method, target, "decision=approve", append(form, "Accept", "application/json")...)
				require.Equal(t, c.status, answer.StatusCode, method)
				require.Equal(t, "application/json; charset=utf-8", answer.Header.Get("Content-Type"))
				requireProblem(t, body, c.code)
				require.Contains(t, strings.ToLower(body), c.says)
			}
			require.Empty(t, f.decides, "it was seen before")
		})
	}
}

// What Decide says counts, whatever the question looked like before.
func TestDecideRefused(t *testing.T) {
	for name, c := range map[string]struct {
		err    error
		status int
	}{
		"conflict":    {&queue.Problem{Code: queue.CodeConflict, Message: "decided before"}, 409},
		"gone":        {&queue.Problem{Code: queue.CodeGone, Message: "expired"}, 410},
		"forbidden":   {&queue.Problem{Code: queue.CodeForbidden, Message: "another question"}, 403},
		"not found":   {&queue.Problem{Code: queue.CodeNotFound, Message: "no such approval"}, 404},
		"unavailable": {queue.ErrUnavailable, 503},
		"no room":     {queue.ErrFull, 507},
		"a fault":     {errors.New("redis: password wrong"), 500},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.decideErr = c.err
			answer, body := f.post(t, f.approvalPath(t), url.Values{"decision": {"approve"}})
			require.Equal(t, c.status, answer.StatusCode)
			require.NotContains(t, body, "Recorded")
			require.NotContains(t, body, "password")
		})
	}
}

// Of two people who click at once one decides; the other is told what.
func TestTwoDecideAtOnce(t *testing.T) {
	f := newFixture(t)
	target := f.approvalPath(t)
	var wg sync.WaitGroup
	var mu sync.Mutex
	count := map[int]int{}
	for i := range 20 {
		wg.Go(func() {
			answer, body := f.post(t, target, url.Values{"decision": {[]string{"approve", "deny"}[i%2]}})
			mu.Lock()
			defer mu.Unlock()
			count[answer.StatusCode]++
			if answer.StatusCode == http.StatusConflict {
				require.Contains(t, body, "decided before: "+string(f.outcome()))
			}
		})
	}
	wg.Wait()
	require.Equal(t, map[int]int{200: 1, 409: 19}, count)
}

func TestApprovalAsJSON(t *testing.T) {
	f := newFixture(t)
	f.approval.URL = "https://flows.example.com/other"
	answer, body := f.call(t, http.MethodGet, f.approvalPath(t), "", "Accept", "application/json")
	require.Equal(t, http.StatusOK, answer.StatusCode)
	var got queue.Approval
	require.NoError(t, json.Unmarshal([]byte(body), &got))
	want := *f.approval
	want.URL = ""
	require.Equal(t, want, got)

	for accept, json := range map[string]bool{
		"": false, "*/*": false, "application/json": true, "application/json, */*;q=0.1": true, "text/html,application/xhtml+xml,*/*;q=0.8": false,
		"text/html;q=0.5, application/json": true, "text/html, application/json;q=0.9": false, "application/json;q=0": false, ";;": false,
	} {
		answer, _ := f.call(t, http.MethodGet, f.approvalPath(t), "", "Accept", accept)
		require.Equal(t, json, strings.HasPrefix(answer.Header.Get("Content-Type"), "application/json"), accept)
	}
}

// What a model or a caller puts into a question stays text.
func TestHostileQuestion(t *testing.T) {
	const hostile = `</script></pre><script>alert(1)</script>"'><img src=x onerror=alert(1)>{{.}}`
	arguments, err := json.Marshal(map[string]string{"to": hostile, "order": "safe \u202e evil", "hidden": "a\u200bb\U000E0041c\u0007"})
	require.NoError(t, err)
	raw := json.RawMessage(strings.NewReplacer(`\u003c`, "<", `\u003e`, ">").Replace(string(arguments)))
	f := newFixture(t)
	f.approval.Title, f.approval.Text, f.approval.Workflow, f.approval.Node, f.approval.Tool = hostile, hostile, hostile, hostile, hostile
	f.approval.Approve, f.approval.Deny, f.approval.Arguments = hostile, hostile, raw
	check := func(body string) {
		t.Helper()
		require.NotContains(t, body, "<script")
		require.NotContains(t, body, "<img")
		require.NotContains(t, body, `"'>`)
		require.Contains(t, body, "&lt;script&gt;alert(1)&lt;/script&gt;")
		for _, hidden := range []string{"\u202e", "\u200b", "\U000E0041", "\u0007"} {
			require.NotContains(t, body, hidden)
		}
		require.Contains(t, body, `safe \u202e evil`)
		require.Contains(t, body, `a\u200bb\udb40\udc41c\u0007`)
	}
	_, body := f.call(t, http.MethodGet, f.approvalPath(t)+"&choice="+url.QueryEscape(hostile), "")
	check(body)
	_, body = f.post(t, f.approvalPath(t), url.Values{"decision": {"deny"}, "feedback": {hostile}})
	check(body)
	answer, body := f.call(t, http.MethodGet, f.approvalPath(t), "")
	require.Equal(t, http.StatusConflict, answer.StatusCode)
	check(body)
}

// Report 43: mail scanners and link previews open links, and thereby approved.
func TestReport43(t *testing.T) {
	f := newFixture(t)
	var after engine.WebhookResponse
	f.resume = func(r queue.ResumeRequest) (*queue.ResumeAnswer, error) {
		if r.Method != http.MethodPost { // as the coordinator does for a wait that wants POST
			return nil, &queue.Problem{Code: queue.CodeConflict, Message: "the execution does not wait for GET"}
		}
		return &queue.ResumeAnswer{Response: after}, nil
	}
	approve, deny := f.approvalPath(t)+"&choice=approve", f.approvalPath(t)+"&choice=deny"
	for _, agent := range []string{"Mozilla/5.0 (scanner)", "Slackbot-LinkExpanding 1.0", ""} {
		for _, link := range []string{approve, deny} {
			for _, method := range []string{http.MethodHead, http.MethodGet} {
				answer, body := f.call(t, method, link, "", "User-Agent", agent)
				require.Equal(t, http.StatusOK, answer.StatusCode)
				if method == http.MethodHead {
					require.Empty(t, body)
				}
			}
			answer, _ := f.call(t, http.MethodOptions, link, "", "User-Agent", agent)
			require.Equal(t, http.StatusMethodNotAllowed, answer.StatusCode)
		}
		answer, _ := f.call(t, http.MethodHead, f.resumePath(t, 1), "")
		require.Equal(t, http.StatusMethodNotAllowed, answer.StatusCode)
		answer, _ = f.call(t, http.MethodGet, f.resumePath(t, 1), "")
		require.Equal(t, http.StatusConflict, answer.StatusCode)
	}
	require.Empty(t, f.decides)
	require.Empty(t, f.outcome(), "still open")

	answer, _ := f.post(t, approve, url.Values{"decision": {"approve"}})
	require.Equal(t, http.StatusOK, answer.StatusCode, "a person's click")
	require.Equal(t, engine.OutcomeApproved, f.outcome())
	answer, _ = f.call(t, http.MethodPost, f.resumePath(t, 1), "")
	require.Equal(t, http.StatusOK, answer.StatusCode)
}

// Report 44: links were unsigned, or one signature was good for every later wait.
func TestReport44(t *testing.T) {
	f := newFixture(t)
	first := f.approvalPath(t)
	post := func(target string) int {
		answer, _ := f.post(t, target, url.Values{"decision": {"approve"}})
		return answer.StatusCode
	}

	// The link of call 1, while call 2 waits: in another slice …
	f.approval = question()
	f.approval.ID, f.approval.CallID = string(executionID)+"_5", "call_2"
	f.approval.Bind = links.Bind(executionID, "Ask first", 0, "call_2", f.approval.Arguments)
	second := f.approvalPath(t)
	require.Equal(t, http.StatusForbidden, post(strings.Replace(first, "_3?", "_5?", 1)))
	f.get = func(engine.ExecutionID) (*queue.Execution, error) {
		return &queue.Execution{Status: engine.StatusWaiting}, nil
	}
	require.Equal(t, http.StatusServiceUnavailable, post(first), "the fake does not keep the first question")
	// … and, if it were the same, with other arguments.
	third := path(t, f.signer.ApprovalURL(f.approval.ID, links.Bind(executionID, "Ask first", 0, "call_2", []byte(`{"to":"Eve"}`))))
	require.Equal(t, http.StatusForbidden, post(third))
	require.Empty(t, f.decides)

	// One changed character, anywhere in the signature.
	u, err := url.Parse(second)
	require.NoError(t, err)
	signature := u.Query().Get(links.Parameter)
	for i := range signature {
		for _, c := range []string{"0", "f", "A", "."} {
			if c == signature[i:i+1] {
				continue
			}
			altered := u.Path + "?signature=" + signature[:i] + c + signature[i+1:]
			require.Equal(t, http.StatusForbidden, post(altered), altered)
			answer, _ := f.call(t, http.MethodGet, altered, "")
			require.Equal(t, http.StatusForbidden, answer.StatusCode)
			answer, body := f.call(t, http.MethodHead, altered, "")
			require.Equal(t, http.StatusForbidden, answer.StatusCode, body)
		}
	}
	for _, target := range []string{u.Path, u.Path + "?signature=", u.Path + "?signature=" + signature[:len(signature)-1], u.Path + "?token=" + signature} {
		require.Equal(t, http.StatusForbidden, post(target), target)
	}
	// The signature has to be in the address, not in what a foreign page may post.
	answer, _ := f.post(t, u.Path, url.Values{"decision": {"approve"}, "signature": {signature}})
	require.Equal(t, http.StatusForbidden, answer.StatusCode)
	require.Empty(t, f.decides)

	// Resume links.
	resume, err := url.Parse(f.resumePath(t, 12))
	require.NoError(t, err)
	signature = resume.Query().Get(links.Parameter)
	for i := range signature {
		for _, c := range []string{"0", "9", "f", "A", ".", "%2F", "?"} {
			if c == signature[i:i+1] {
				continue
			}
			answer, _ := f.call(t, http.MethodPost, resume.Path+"?signature="+signature[:i]+c+signature[i+1:], "")
			require.Equal(t, http.StatusForbidden, answer.StatusCode, "%d %s", i, c)
		}
	}
	for _, target := range []string{
		resume.Path, "/webhook-waiting/order-4712?signature=" + signature, "/webhook-waiting/order-4711_3?signature=" + signature,
		resume.Path + "?signature=" + u.Query().Get(links.Parameter),
	} {
		answer, body := f.call(t, http.MethodPost, target, "")
		require.Equal(t, http.StatusForbidden, answer.StatusCode)
		requireProblem(t, body, queue.CodeForbidden)
	}
	require.Empty(t, f.resumes)

	require.Equal(t, http.StatusOK, post(second), "the link itself")
}

// Report 46: a decision that came before its question was stored was accepted and lost.
func TestReport46(t *testing.T) {
	f := newFixture(t)
	target := f.approvalPath(t)
	asked := f.approval
	f.approval = nil // the node has sent the link; its wait is not committed yet
	f.get = func(engine.ExecutionID) (*queue.Execution, error) {
		return &queue.Execution{Status: engine.StatusRunning}, nil
	}
	for range 3 {
		answer, body := f.post(t, target, url.Values{"decision": {"approve"}})
		require.Equal(t, http.StatusServiceUnavailable, answer.StatusCode)
		require.Equal(t, "1", answer.Header.Get("Retry-After"))
		require.NotContains(t, body, "Recorded")
		require.Contains(t, body, "Nothing was decided")
	}
	f.approval = asked
	answer, body := f.post(t, target, url.Values{"decision": {"approve"}})
	require.Equal(t, http.StatusOK, answer.StatusCode)
	require.Contains(t, body, "Recorded: approved")
	require.Equal(t, engine.OutcomeApproved, f.outcome())
}
