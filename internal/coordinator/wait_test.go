package coordinator_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reprise-engine/reprise/internal/links"
	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/queue"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// Reports 88 and 89: a wait lasts over a restart of everything, resumes at once when its
// time passed meanwhile, and nothing before it is run again.
func TestReport88And89WaitsSurviveRestarts(t *testing.T) {
	t.Parallel()
	f := start(t, 2)
	until := inMillis(1500 * time.Millisecond)
	ran := f.work(func(job *queue.Job, name string) (engine.Result, bool) {
		switch {
		case name != "Wait":
			return outputs(`{"by":"` + name + `"}`), true
		case job.Resumption == nil:
			return wait(engine.Wait{Kind: engine.WaitTime, Until: until}), true
		}
		return engine.Result{Outputs: job.Inputs}, job.Resumption.Expired
	})
	f.begin(queue.Submission{ID: "wait", Workflow: flow("w", nil, "Start: test.trigger", "Before: test.work", "Wait: test.wait", "After: test.work")})
	x := f.waiting("wait", 1)
	require.Equal(t, engine.WaitTime, x.Waiting[0].Kind)
	require.Equal(t, "Wait", x.Waiting[0].Node)
	require.Equal(t, until, x.Waiting[0].Until)
	f.stop()
	require.Eventually(t, func() bool { return time.Now().UnixMilli() > until+200 }, within, 10*time.Millisecond)
	restarted := time.Now()
	f.add(nil)
	x, run := f.finished("wait")
	require.Equal(t, engine.StatusSuccess, x.Status)
	require.Less(t, x.StoppedAt-restarted.UnixMilli(), int64(3000), "it resumes at once")
	for _, name := range []string{"Before", "Wait", "After"} {
		require.Len(t, run[name], 1)
	}
	require.JSONEq(t, `{"by":"Before"}`, string(run["Wait"][0].Data["main"][0][0].JSON))
	require.Len(t, ran.of("wait", "Before"), 1)
	require.Len(t, ran.of("wait", "After"), 1)
	require.Len(t, ran.of("wait", "Wait"), 2)
}

// What only waits for a moment, a call or a person is left alone by the sweeper and
// costs nothing, however many there are.
func TestWhatWaitsIsNotSwept(t *testing.T) {
	t.Parallel()
	f := start(t, 1)
	f.work(func(job *queue.Job, _ string) (engine.Result, bool) {
		if job.Resumption == nil {
			return wait(engine.Wait{Kind: engine.WaitWebhook, Webhook: &engine.WebhookWait{}}), true
		}
		return engine.Result{Outputs: job.Inputs}, true
	})
	for i := range 20 {
		f.begin(queue.Submission{ID: engine.ExecutionID(fmt.Sprintf("w%d", i)), Workflow: flow("w", nil, "Start: test.trigger", "Wait: test.wait")})
	}
	for i := range 20 {
		f.waiting(engine.ExecutionID(fmt.Sprintf("w%d", i)), 1)
	}
	_, sweep, err := f.stores[0].NextDue(t.Context())
	require.NoError(t, err)
	require.Greater(t, sweep, inMillis(23*time.Hour))

	// Even when the sweeper has come for one, it comes only once.
	var ids []engine.ExecutionID
	for i := range 20 {
		ids = append(ids, engine.ExecutionID(fmt.Sprintf("w%d", i)))
	}
	require.NoError(t, f.stores[0].Postpone(t.Context(), ids, time.Now().UnixMilli()))
	require.Eventually(t, func() bool {
		_, sweep, err := f.stores[0].NextDue(t.Context())
		return err == nil && sweep > inMillis(23*time.Hour)
	}, within, 20*time.Millisecond)
	_, err = f.conn.Resume(t.Context(), queue.ResumeRequest{Execution: "w7", Data: []byte(`{}`)})
	require.NoError(t, err)
	x, _ := f.finished("w7")
	require.Equal(t, engine.StatusSuccess, x.Status)
}

// linkIn is the number in a resume URL of a job.
func linkIn(t *testing.T, job *queue.Job) *int {
	t.Helper()
	u, err := url.Parse(job.ResumeURL)
	require.NoError(t, err)
	require.True(t, strings.HasSuffix(u.Path, links.ResumePath+string(job.Execution)), job.ResumeURL)
	number, ok := links.New([]byte("0123456789abcdef0123456789abcdef"), "").CheckResume(job.Execution, u.Query().Get(links.Parameter))
	require.True(t, ok)
	return &number
}

// A wait that asks for callers goes on until one of them was checked where the call came in. Who has no link speaks
// to the coordinators themselves and is not asked.
func TestWaitForCallers(t *testing.T) {
	t.Parallel()
	f := start(t, 1)
	want := &engine.Callers{Type: "httpBasicAuth", Credential: workflow.CredentialRef{ID: "7", Name: "callers"}}
	ran := f.work(func(job *queue.Job, _ string) (engine.Result, bool) {
		if job.Resumption != nil {
			return outputs(string(job.Resumption.Data)), true
		}
		return wait(engine.Wait{Kind: engine.WaitWebhook, Webhook: &engine.WebhookWait{Callers: want}}), true
	})
	f.begin(queue.Submission{ID: "asks", Workflow: flow("w", nil, "Start: test.trigger", "First: test.wait", "Second: test.wait")})
	waits := f.waiting("asks", 1)
	require.Equal(t, want, waits.Waiting[0].Callers)

	link := linkIn(t, ran.of("asks", "First")[0])
	for _, checked := range map[string]*engine.Callers{
		"nobody":     nil,
		"other type": {Type: "httpHeaderAuth", Credential: want.Credential},
		"other one":  {Type: want.Type, Credential: workflow.CredentialRef{ID: "8", Name: "callers"}},
	} {
		_, err := f.conn.Resume(t.Context(), queue.ResumeRequest{Execution: "asks", Link: link, Checked: checked, Data: []byte(`{}`)})
		f.refused(err, queue.CodeUnauthorized)
	}
	asked, err := f.conn.Callers(t.Context(), queue.ResumeRequest{Execution: "asks", Link: link})
	require.NoError(t, err)
	require.Equal(t, want, asked)
	_, err = f.conn.Resume(t.Context(), queue.ResumeRequest{Execution: "asks", Link: link, Checked: want, Data: []byte(`{"n":1}`)})
	require.NoError(t, err)

	require.Equal(t, "Second", f.waiting("asks", 1).Waiting[0].Node)
	_, err = f.conn.Resume(t.Context(), queue.ResumeRequest{Execution: "asks", Data: []byte(`{"n":2}`)})
	require.NoError(t, err)
	x, run := f.finished("asks")
	require.Equal(t, engine.StatusSuccess, x.Status)
	require.JSONEq(t, `{"n":1}`, string(run["First"][0].Data["main"][0][0].JSON))
	require.JSONEq(t, `{"n":2}`, string(run["Second"][0].Data["main"][0][0].JSON))
}

// Report 45, and assertions 59 to 61: the link of a waiting execution works after a
// restart of everything; each link is for one wait; of several calls one wins.
func TestReport45WebhookWaits(t *testing.T) {
	t.Parallel()
	f := start(t, 2)
	ran := f.work(func(job *queue.Job, name string) (engine.Result, bool) {
		if job.Resumption != nil {
			return outputs(string(job.Resumption.Data)), true
		}
		hook := &engine.WebhookWait{Method: "POST", Response: engine.WebhookResponse{Status: 202, Body: "thanks, " + name}}
		if name == "Second" {
			hook = &engine.WebhookWait{Suffix: "second", AfterEnd: true}
		}
		return wait(engine.Wait{Kind: engine.WaitWebhook, Webhook: hook}), true
	})
	f.begin(queue.Submission{ID: "hook", Workflow: flow("w", nil, "Start: test.trigger", "First: test.wait", "Second: test.wait")})
	f.waiting("hook", 1)
	f.stop()
	f.add(nil)
	f.add(nil)

	call := func(link *int, method, suffix, data string) (*queue.ResumeAnswer, error) {
		return f.conn.Resume(t.Context(), queue.ResumeRequest{Execution: "hook", Link: link, Method: method, Suffix: suffix, Data: []byte(data)})
	}
	first := linkIn(t, ran.of("hook", "First")[0])
	_, err := call(first, "GET", "", `{}`)
	f.refused(err, queue.CodeConflict, "another call", "POST")
	_, err = call(first, "POST", "other", `{}`)
	f.refused(err, queue.CodeConflict, "another call")
	later := *first + 100
	_, err = call(&later, "POST", "", `{}`)
	f.refused(err, queue.CodeConflict)

	answers := make([]*queue.ResumeAnswer, 8)
	winner, others := f.oneWins(8, func(i int) (err error) {
		answers[i], err = call(first, "POST", "", fmt.Sprintf(`{"body":%d}`, i))
		return err
	})
	for _, err := range others {
		f.refused(err, queue.CodeConflict)
	}
	require.Equal(t, engine.WebhookResponse{Status: 202, Body: "thanks, First"}, answers[winner].Response)
	require.False(t, answers[winner].AfterEnd)

	f.waiting("hook", 1)
	second := linkIn(t, ran.of("hook", "Second")[0])
	_, err = call(first, "GET", "second", `{}`)
	f.refused(err, queue.CodeConflict, "is over")
	answer, err := call(second, "get", "/second/", `{"body":"two"}`)
	require.NoError(t, err)
	require.True(t, answer.AfterEnd)
	x, run := f.finished("hook")
	require.Equal(t, engine.StatusSuccess, x.Status)
	require.Len(t, run["First"], 1)
	require.JSONEq(t, fmt.Sprintf(`{"body":%d}`, winner), string(run["First"][0].Data["main"][0][0].JSON))
	require.JSONEq(t, `{"body":"two"}`, string(run["Second"][0].Data["main"][0][0].JSON))
	require.Len(t, ran.of("hook", "First"), 2)

	_, err = call(second, "GET", "second", `{}`)
	f.refused(err, queue.CodeConflict, "finished", "success")
	_, err = f.conn.Resume(t.Context(), queue.ResumeRequest{Execution: "nobody", Data: []byte(`{}`)})
	f.refused(err, queue.CodeNotFound)
}

// A running execution does not take a call that nobody waits for.
func TestResumeOfRunningExecution(t *testing.T) {
	t.Parallel()
	f := start(t, 1)
	f.submit("busy", 1)
	f.next()
	_, err := f.conn.Resume(t.Context(), queue.ResumeRequest{Execution: "busy", Data: []byte(`{}`)})
	f.refused(err, queue.CodeConflict, "running")
}

// Cancel ends what waits, for good.
func TestCancelOfWhatWaits(t *testing.T) {
	t.Parallel()
	f := start(t, 2)
	f.work(func(*queue.Job, string) (engine.Result, bool) {
		return wait(engine.Wait{Kind: engine.WaitApproval, Question: &engine.Question{Title: "?"}}), true
	})
	f.begin(queue.Submission{ID: "stop", Workflow: flow("w", nil, "Start: test.trigger", "Ask: test.wait")})
	x := f.waiting("stop", 1)
	require.NoError(t, f.conn.Cancel(t.Context(), "stop", "enough"))
	done, run := f.finished("stop")
	require.Equal(t, engine.StatusCanceled, done.Status)
	require.Equal(t, engine.OutcomeCanceled, run["Ask"][0].Metadata.Outcome)
	err := f.conn.Decide(t.Context(), queue.DecideRequest{ID: x.Waiting[0].Token, Decision: engine.Decision{Approved: true}})
	f.refused(err, queue.CodeGone, "canceled")
	page, err := f.conn.Approvals(t.Context(), queue.ApprovalsRequest{})
	require.NoError(t, err)
	require.Empty(t, page.Approvals)
}

// Many timers that are due at once are all fired at once.
func TestManyTimersAtOnce(t *testing.T) {
	t.Parallel()
	const many = 600
	f := start(t, 2)
	var mu sync.Mutex
	late, until := []int64{}, inMillis(4*time.Second)
	asked := map[engine.ExecutionID]int64{}
	f.work(func(job *queue.Job, _ string) (engine.Result, bool) {
		mu.Lock()
		defer mu.Unlock()
		if job.Resumption == nil {
			asked[job.Execution] = max(until, time.Now().UnixMilli()) // a slow machine may ask too late
			return wait(engine.Wait{Kind: engine.WaitTime, Until: until}), true
		}
		late = append(late, job.DispatchedAt-asked[job.Execution])
		return engine.Result{Outputs: job.Inputs}, true
	})
	document := flow("w", nil, "Start: test.trigger", "Wait: test.wait")
	for i := range many {
		f.begin(queue.Submission{ID: engine.ExecutionID(fmt.Sprintf("timer-%d", i)), Workflow: document})
	}
	require.Eventually(t, func() bool { mu.Lock(); defer mu.Unlock(); return len(late) == many }, within, 10*time.Millisecond)
	mu.Lock()
	defer mu.Unlock()
	for _, ms := range late {
		require.GreaterOrEqual(t, ms, int64(0))
		require.Less(t, ms, int64(3000))
	}
}

// Arguments keep their bytes' meaning whatever spacing the model used, and nodes that
// cannot use links get none.
func TestOnlyNodesThatCanUseLinksGetThem(t *testing.T) {
	t.Parallel()
	f := start(t, 1)
	document := flow("w", nil, "Start: test.trigger", "Plain: test.work", "Reads: test.work", "Wait: test.wait")
	var doc struct {
		Nodes []map[string]any `json:"nodes"`
		Rest  map[string]any   `json:"-"`
	}
	all := map[string]any{}
	require.NoError(t, json.Unmarshal(document, &all))
	require.NoError(t, json.Unmarshal(document, &doc))
	doc.Nodes[2]["parameters"] = object{"text": "={{ $execution.resumeUrl }}"}
	all["nodes"] = doc.Nodes
	document, err := json.Marshal(all)
	require.NoError(t, err)
	ran := f.work(func(job *queue.Job, _ string) (engine.Result, bool) {
		return engine.Result{Outputs: []workflow.Items{items(`{}`)}}, true
	})
	f.begin(queue.Submission{ID: "links", Workflow: document})
	f.finished("links")
	plain, reads, waits := ran.of("links", "Plain")[0], ran.of("links", "Reads")[0], ran.of("links", "Wait")[0]
	require.Empty(t, plain.ResumeURL+plain.ApprovalURL+reads.ApprovalURL)
	require.NotEmpty(t, reads.ResumeURL)
	require.NotEmpty(t, waits.ResumeURL)
	require.Contains(t, waits.ApprovalURL, "http://public"+links.ApprovalPath+waits.IdempotencyKey)
}
