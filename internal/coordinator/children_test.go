package coordinator_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reprise-engine/reprise/internal/coordinator"
	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/queue"
	"github.com/reprise-engine/reprise/pkg/state"
)

const childStart = "Begin: n8n-nodes-base.executeWorkflowTrigger"

func parentFlow() []byte {
	return flow("parent", nil, "Start: test.trigger", "Before: test.work", "Call: test.wait", "After: test.work")
}

// calls runs parents whose node Call starts children and gives out what became of
// each, and children whose nodes answer as child says.
func (f *fixture) calls(children engine.Children, child func(job *queue.Job, name string) (engine.Result, bool)) *ledger {
	return f.work(func(job *queue.Job, name string) (engine.Result, bool) {
		switch {
		case name == "Call" && job.Resumption == nil:
			return wait(engine.Wait{Kind: engine.WaitChildren, Children: &children}), true
		case name == "Call":
			var texts []string
			for _, c := range job.Resumption.Children {
				text := fmt.Sprintf(`{"status":%q}`, c.Status)
				if c.Error != nil {
					text = fmt.Sprintf(`{"status":%q,"error":%q,"description":%q,"reason":%q}`, c.Status, c.Error.Message, c.Error.Description, c.Error.Reason)
				} else if len(c.Outputs) > 0 && len(c.Outputs[0]) > 0 {
					text = fmt.Sprintf(`{"status":%q,"output":%s}`, c.Status, c.Outputs[0][0].JSON)
				}
				texts = append(texts, text)
			}
			return outputs(texts...), true
		case name == "Before" || name == "After":
			return engine.Result{Outputs: job.Inputs}, true
		}
		return child(job, name)
	})
}

func runs(id string, inputs ...string) (list []engine.ChildRun) {
	for _, text := range inputs {
		list = append(list, engine.ChildRun{WorkflowID: id, Input: items(text)})
	}
	return list
}

func (f *fixture) got(run map[string][]engine.Record) (texts []string) {
	f.t.Helper()
	require.Len(f.t, run["Call"], 1)
	for _, item := range run["Call"][0].Data["main"][0] {
		texts = append(texts, string(item.JSON))
	}
	return texts
}

// Report 52: several children that wait themselves; the parent is resumed once, with
// what the children gave at their end, in the order asked. Also when everything is
// restarted meanwhile.
func TestReport52ChildrenThatWait(t *testing.T) {
	t.Parallel()
	f := start(t, 2)
	until := inMillis(1500 * time.Millisecond)
	ran := f.calls(engine.Children{Runs: runs("child", `{"n":0}`, `{"n":1}`, `{"n":2}`)}, func(job *queue.Job, name string) (engine.Result, bool) {
		switch {
		case name == "Sleep" && job.Resumption == nil:
			return wait(engine.Wait{Kind: engine.WaitTime, Until: until}), true
		case name == "Sleep":
			return engine.Result{Outputs: job.Inputs}, true
		}
		return outputs(fmt.Sprintf(`{"x":1,"from":%s}`, job.Inputs[0][0].JSON)), true
	})
	f.put(flow("child", nil, childStart, "Sleep: test.wait", "Set: test.work"))
	f.begin(queue.Submission{ID: "par", Workflow: parentFlow()})
	f.waiting("par", 1)
	require.Eventually(t, func() bool { return len(ran.of("", "Sleep")) >= 3 }, within, 10*time.Millisecond)
	f.stop()
	f.add(nil)
	f.add(nil)
	x, run := f.finished("par")
	require.Equal(t, engine.StatusSuccess, x.Status)
	require.Equal(t, []string{
		`{"status":"success","output":{"x":1,"from":{"n":0}}}`,
		`{"status":"success","output":{"x":1,"from":{"n":1}}}`,
		`{"status":"success","output":{"x":1,"from":{"n":2}}}`,
	}, f.got(run))
	require.Len(t, ran.of("par", "Before"), 1)
	require.Len(t, ran.of("par", "Call"), 2, "resumed once")
	require.Len(t, ran.of("", "Set"), 3)

	child, err := f.conn.Get(t.Context(), ran.of("", "Set")[0].Execution, false)
	require.NoError(t, err)
	require.Equal(t, engine.ExecutionID("par"), child.Parent)
	require.Equal(t, "integrated", child.Mode)
	require.Equal(t, "child", child.WorkflowID)
	require.Equal(t, engine.StatusSuccess, child.Status)
}

// Report 53: a child that fails after its wait is a failure to its parent.
func TestReport53ChildThatFailsAfterItsWait(t *testing.T) {
	t.Parallel()
	f := start(t, 2)
	f.calls(engine.Children{Runs: runs("child", `{}`)}, func(job *queue.Job, name string) (engine.Result, bool) {
		switch {
		case name == "Sleep" && job.Resumption == nil:
			return wait(engine.Wait{Kind: engine.WaitTime, Until: inMillis(300 * time.Millisecond)}), true
		case name == "Sleep":
			return engine.Result{Outputs: job.Inputs}, true
		}
		return failure("no luck"), true
	})
	f.put(flow("child", nil, childStart, "Sleep: test.wait", "Throw: test.work"))
	f.begin(queue.Submission{ID: "par", Workflow: parentFlow()})
	_, run := f.finished("par")
	require.Equal(t, []string{`{"status":"error","error":"no luck","description":"","reason":""}`}, f.got(run))
}

// faultyStore fails commits as fail says.
type faultyStore struct {
	coordinator.Store
	fail func(c *state.Commit) bool
}

func (s *faultyStore) Commit(ctx context.Context, commits []state.Commit) []error {
	errs := make([]error, len(commits))
	var good []state.Commit
	var at []int
	for i := range commits {
		if s.fail(&commits[i]) {
			errs[i] = errors.New("injected: redis is away")
			continue
		}
		good, at = append(good, commits[i]), append(at, i)
	}
	for i, err := range s.Store.Commit(ctx, good) {
		errs[at[i]] = err
	}
	return errs
}

// breakCommits has a coordinator fail to commit the executions that are broken.
func breakCommits(broken func(engine.ExecutionID) bool) func(*coordinator.Config) {
	return func(c *coordinator.Config) {
		c.Store = &faultyStore{Store: c.Store, fail: func(commit *state.Commit) bool { return broken(commit.Execution) }}
	}
}

// Report 54: the parent is woken although the first two attempts to wake it fail,
// and once. The sweeper, which would do it too, comes too late here.
func TestReport54WakeUpThatFailsTwice(t *testing.T) {
	t.Parallel()
	var attempts atomic.Int32
	var childDone atomic.Bool
	f := startWith(t, 2, func(c *coordinator.Config) {
		c.SweepAfter = 10 * time.Minute
		c.Store = &faultyStore{Store: c.Store, fail: func(commit *state.Commit) bool {
			return commit.Execution == "par" && childDone.Load() && attempts.Add(1) <= 2
		}}
	})
	ran := f.calls(engine.Children{Runs: runs("child", `{}`)}, func(*queue.Job, string) (engine.Result, bool) {
		childDone.Store(true)
		return outputs(`{"x":1}`), true
	})
	f.put(flow("child", nil, childStart, "Work: test.work"))
	f.begin(queue.Submission{ID: "par", Workflow: parentFlow()})
	_, run := f.finished("par")
	require.Equal(t, []string{`{"status":"success","output":{"x":1}}`}, f.got(run))
	require.Len(t, ran.of("par", "Call"), 2, "woken once")
	require.Len(t, ran.of("par", "After"), 1)
	require.Greater(t, attempts.Load(), int32(2))
}

// Report 54, with the process that was to wake the parent gone: the end of the child
// stays unsettled, and another coordinator tells the parent of it.
func TestReport54WakeUpAfterTheProcessDied(t *testing.T) {
	t.Parallel()
	var childDone atomic.Bool
	f := startWith(t, 1, breakCommits(func(id engine.ExecutionID) bool { return id == "par" && childDone.Load() }))
	ran := f.calls(engine.Children{Runs: runs("child", `{}`)}, func(*queue.Job, string) (engine.Result, bool) {
		childDone.Store(true)
		return outputs(`{"x":1}`), true
	})
	f.put(flow("child", nil, childStart, "Work: test.work"))
	f.begin(queue.Submission{ID: "par", Workflow: parentFlow()})
	x := f.waiting("par", 1)
	require.Equal(t, engine.WaitChildren, x.Waiting[0].Kind)
	require.Eventually(t, func() bool {
		page, err := f.conn.List(t.Context(), queue.ListRequest{WorkflowID: "child", Status: engine.StatusSuccess})
		return err == nil && len(page.Executions) == 1
	}, within, 10*time.Millisecond)
	f.stop()
	f.add(nil)
	_, run := f.finished("par")
	require.Equal(t, []string{`{"status":"success","output":{"x":1}}`}, f.got(run))
	require.Len(t, ran.of("par", "Call"), 2, "woken once")
	f.settled()
}

// settled waits until nothing is left for the sweeper.
func (f *fixture) settled() {
	f.t.Helper()
	require.Eventually(f.t, func() bool {
		_, sweep, err := f.stores[0].NextDue(f.t.Context())
		return err == nil && (sweep == 0 || sweep > inMillis(time.Hour))
	}, within, 20*time.Millisecond, "something is left to be swept")
}

// A child that was lost with the process that was to create it is created by
// another one.
func TestChildrenThatWereNotCreated(t *testing.T) {
	t.Parallel()
	f := startWith(t, 1, func(c *coordinator.Config) {
		c.Store = &faultyStore{Store: c.Store, fail: func(commit *state.Commit) bool { return commit.WorkflowID == "child" }}
	})
	f.calls(engine.Children{Runs: runs("child", `{}`, `{}`)}, func(*queue.Job, string) (engine.Result, bool) {
		return outputs(`{"x":1}`), true
	})
	f.put(flow("child", nil, childStart, "Work: test.work"))
	f.begin(queue.Submission{ID: "par", Workflow: parentFlow()})
	f.waiting("par", 1)
	f.stop()
	f.add(nil)
	_, run := f.finished("par")
	require.Len(t, f.got(run), 2)
	f.settled()
}

// Report 55: cancel reaches the children, at any depth, and is for good.
func TestReport55CancelReachesChildren(t *testing.T) {
	t.Parallel()
	f := start(t, 2)
	hold := make(chan struct{})
	var once sync.Once
	release := func() { once.Do(func() { close(hold) }) }
	t.Cleanup(release)
	ran := f.calls(engine.Children{Runs: runs("middle", `{}`)}, func(job *queue.Job, name string) (engine.Result, bool) {
		switch {
		case name == "Deeper" && job.Resumption == nil:
			return wait(engine.Wait{Kind: engine.WaitChildren, Children: &engine.Children{Runs: runs("child", `{}`)}}), true
		case name == "Step 1":
			<-hold
		}
		return outputs(`{"late":true}`), true
	})
	f.put(flow("middle", nil, childStart, "Deeper: test.wait"))
	f.put(flow("child", nil, childStart, "Step 1: test.work", "Step 2: test.work"))
	f.begin(queue.Submission{ID: "par", Workflow: parentFlow()})
	require.Eventually(t, func() bool { return len(ran.of("", "Step 1")) == 1 }, within, 10*time.Millisecond)
	require.NoError(t, f.conn.Cancel(t.Context(), "par", "enough"))
	child, middle := ran.of("", "Step 1")[0].Execution, ran.of("", "Deeper")[0].Execution
	for _, id := range []engine.ExecutionID{"par", middle, child} {
		x, _ := f.finished(string(id))
		require.Equal(t, engine.StatusCanceled, x.Status, id)
	}
	release()
	f.settled()
	for _, id := range []engine.ExecutionID{"par", middle, child} {
		x, err := f.conn.Get(t.Context(), id, false)
		require.NoError(t, err)
		require.Equal(t, engine.StatusCanceled, x.Status, id)
	}
	require.Empty(t, ran.of("", "Step 2"))
	require.Empty(t, ran.of("", "After"))
}

// A parent that is cancelled while its child is still being created does not leave
// a child behind that nobody waits for.
func TestCancelOvertakesTheChild(t *testing.T) {
	t.Parallel()
	var away atomic.Bool
	away.Store(true)
	f := startWith(t, 2, func(c *coordinator.Config) {
		c.Store = &faultyStore{Store: c.Store, fail: func(commit *state.Commit) bool { return commit.WorkflowID == "child" && away.Load() }}
	})
	ran := f.calls(engine.Children{Runs: runs("child", `{}`)}, func(*queue.Job, string) (engine.Result, bool) {
		return engine.Result{}, false // as long as it likes
	})
	f.put(flow("child", nil, childStart, "Step 1: test.work", "Step 2: test.work"))
	f.begin(queue.Submission{ID: "par", Workflow: parentFlow()})
	f.waiting("par", 1)
	require.NoError(t, f.conn.Cancel(t.Context(), "par", "enough"))
	away.Store(false)
	require.Eventually(t, func() bool { // it is created, as its parent asked for, and then stopped
		page, err := f.conn.List(t.Context(), queue.ListRequest{WorkflowID: "child"})
		return err == nil && len(page.Executions) == 1 && page.Executions[0].Status == engine.StatusCanceled
	}, within, 10*time.Millisecond)
	f.settled()
	require.Empty(t, ran.of("", "Step 2"))
}

// Report 56: a workflow that starts itself without end is stopped with a clear error.
func TestReport56RecursionEnds(t *testing.T) {
	t.Parallel()
	f := startWith(t, 2, func(c *coordinator.Config) { c.Limits.Depth = 3 })
	ran := f.calls(engine.Children{Runs: runs("self", `{}`)}, func(*queue.Job, string) (engine.Result, bool) { return outputs(`{}`), true })
	f.put(flow("self", nil, childStart, "Call: test.wait"))
	f.begin(queue.Submission{ID: "deep", WorkflowID: "self"})
	_, run := f.finished("deep")
	require.Contains(t, f.got(run)[0], `"status":"success"`, "what the second level made of the end of the third")
	deepest := ""
	for _, job := range ran.of("", "Call") {
		x, err := f.conn.Get(t.Context(), job.Execution, false)
		require.NoError(t, err)
		if x.Status == engine.StatusError {
			deepest = x.Error.Message
		}
	}
	require.Contains(t, deepest, "3 levels below the first")
	f.settled()
}

// Report 57: the time limit of a child is kept, and its parent hears of it.
func TestReport57ChildThatTimesOut(t *testing.T) {
	t.Parallel()
	f := start(t, 2)
	f.calls(engine.Children{Runs: runs("child", `{}`)}, func(*queue.Job, string) (engine.Result, bool) { return engine.Result{}, false })
	f.put(flow("child", object{"executionTimeout": 1}, childStart, "Hangs: test.work"))
	begun := time.Now()
	f.begin(queue.Submission{ID: "par", Workflow: parentFlow()})
	_, run := f.finished("par")
	require.Less(t, time.Since(begun), 6*time.Second)
	require.Contains(t, f.got(run)[0], `"status":"canceled"`)
	require.Contains(t, f.got(run)[0], `"reason":"timeout"`)
}

// What cannot be started is a failure with a way out, and the parent does not wait for it.
func TestChildrenThatCannotBeStarted(t *testing.T) {
	t.Parallel()
	f := start(t, 2)
	f.calls(engine.Children{Runs: []engine.ChildRun{
		{WorkflowID: "nowhere", Input: items(`{}`)},
		{Workflow: []byte(`{"nodes":[{"name":"A","type":"test.unknown","typeVersion":1,"parameters":{}}],"connections":{}}`), Input: items(`{}`)},
		{Workflow: flow("", nil, childStart, "Work: test.work"), Input: items(`{}`)},
		{Workflow: []byte(`{"name":"no nodes"}`), Input: items(`{}`)},
	}}, func(*queue.Job, string) (engine.Result, bool) { return outputs(`{"x":1}`), true })
	f.begin(queue.Submission{ID: "par", Workflow: parentFlow()})
	_, run := f.finished("par")
	got := f.got(run)
	require.Contains(t, got[0], `"error":"Workflow is not active and cannot be executed."`)
	require.Contains(t, got[0], "reprise workflows put FILE")
	require.Contains(t, got[1], `"status":"error"`)
	require.Contains(t, got[1], "test.unknown")
	require.Equal(t, `{"status":"success","output":{"x":1}}`, got[2])
	require.Contains(t, got[3], `"status":"error"`)
}

// A detached child is not awaited: its parent goes on when it is stored.
func TestDetachedChildren(t *testing.T) {
	t.Parallel()
	f := start(t, 2)
	ran := f.calls(engine.Children{Runs: runs("child", `{}`, `{}`), Detached: true}, func(*queue.Job, string) (engine.Result, bool) {
		return engine.Result{}, false
	})
	f.put(flow("child", nil, childStart, "Long: test.work"))
	f.begin(queue.Submission{ID: "par", Workflow: parentFlow()})
	_, run := f.finished("par")
	require.Equal(t, []string{`{"status":"running"}`, `{"status":"running"}`}, f.got(run))
	require.Eventually(t, func() bool { return len(ran.of("", "Long")) == 2 }, within, 10*time.Millisecond)
	for _, job := range ran.of("", "Long") {
		require.NoError(t, f.conn.Cancel(t.Context(), job.Execution, ""))
	}
	f.settled()
}

// Many children that end at the same moment wake their parent once, with all of them.
func TestManyChildren(t *testing.T) {
	t.Parallel()
	const many = 150
	f := start(t, 2)
	ran := f.calls(engine.Children{Runs: runs("child", strings.Split(strings.Repeat("{} ", many-1)+"{}", " ")...)},
		func(*queue.Job, string) (engine.Result, bool) { return outputs(`{"x":1}`), true })
	f.put(flow("child", nil, childStart, "Work: test.work"))
	f.begin(queue.Submission{ID: "par", Workflow: parentFlow()})
	_, run := f.finished("par")
	require.Len(t, f.got(run), many)
	require.Len(t, ran.of("par", "Call"), 2)
	require.Len(t, ran.of("", "Work"), many)
	f.settled()
}
