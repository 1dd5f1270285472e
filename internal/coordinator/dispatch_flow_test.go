package coordinator_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
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

// announce tells the coordinators of a worker with so many slots, until the test ends, and
// waits until they know.
func (f *fixture) announce(slots int) {
	f.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	f.t.Cleanup(func() { cancel(); wg.Wait() })
	wg.Go(func() {
		for ctx.Err() == nil {
			_ = f.conn.AnnounceWorker(queue.WorkerNotice{ID: "w", Name: "w", Slots: slots, Pools: map[string]int{"default": slots}})
			select {
			case <-time.After(200 * time.Millisecond):
			case <-ctx.Done():
			}
		}
	})
	require.Eventually(f.t, func() bool {
		view, err := f.conn.Queue(f.t.Context(), false)
		return err == nil && len(view.Workers) == 1 && view.Coordinators == max(1, len(f.coordinators))
	}, within, 20*time.Millisecond)
}

// flood submits n executions of a document at once.
func (f *fixture) flood(n int, name string, sub queue.Submission) {
	f.t.Helper()
	var wg sync.WaitGroup
	next := atomic.Int64{}
	for range 32 {
		wg.Go(func() {
			for i := next.Add(1); i <= int64(n); i = next.Add(1) {
				one := sub
				one.ID = engine.ExecutionID(fmt.Sprintf("%s-%d", name, i))
				if _, err := f.conn.Submit(f.t.Context(), &one); err != nil {
					f.t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
}

// pool waits until the figures of the default pool are as wanted.
func (f *fixture) pool(wanted func(queue.QueuePool) bool) {
	f.t.Helper()
	var last *queue.QueueAnswer
	defer func() {
		if f.t.Failed() {
			f.t.Logf("last: %+v", last)
		}
	}()
	require.Eventually(f.t, func() bool {
		view, err := f.conn.Queue(f.t.Context(), false)
		if err != nil {
			return false
		}
		last = view
		p := queue.QueuePool{}
		if len(view.Pools) > 0 {
			p = view.Pools[0]
		}
		return wanted(p)
	}, within, 20*time.Millisecond)
}

func idle(p queue.QueuePool) bool { return p.Waiting+p.Limited+p.Published == 0 }

// gated runs a worker that holds every job until it is opened.
func (f *fixture) gated() (l *ledger, open func()) {
	gate := make(chan struct{})
	l = f.work(func(*queue.Job, string) (engine.Result, bool) {
		<-gate
		return outputs(`{}`), true
	})
	open = sync.OnceFunc(func() { close(gate) })
	f.t.Cleanup(open)
	return l, open
}

func TestFloodOfOneTenantDoesNotDelayAnother(t *testing.T) {
	t.Parallel()
	f := start(t, 1)
	const slots = 4
	f.announce(slots)
	l, open := f.gated()
	document := chain(1)
	const jobs = 5000
	f.flood(jobs, "a", queue.Submission{Workflow: document, Tenant: "A"})
	f.begin(queue.Submission{ID: "b", Workflow: document, Tenant: "B"})
	begun := time.Now()
	open()
	require.Eventually(t, func() bool { return len(l.of("b", "Work 0")) > 0 }, within, time.Millisecond)
	took := time.Since(begun)
	l.mu.Lock()
	before := slices.IndexFunc(l.jobs, func(j *queue.Job) bool { return j.Execution == "b" })
	l.mu.Unlock()
	t.Logf("the job of B ran after %s, as number %d", took, before)
	require.Less(t, before, 200, "what was published before goes first, what waits does not")
	require.Less(t, took, time.Second)
}

func TestLowPriorityProgressesUnderAFlood(t *testing.T) {
	t.Parallel()
	f := start(t, 1)
	f.announce(4)
	l, open := f.gated()
	high, low := flow("urgent", object{"priority": "high"}, "Start: test.trigger", "Work: test.work"), flow("later", object{"priority": "low"}, "Start: test.trigger", "Work: test.work")
	f.flood(400, "high", queue.Submission{Workflow: high})
	f.flood(20, "low", queue.Submission{Workflow: low})
	open()
	count := func(name string) (n int) {
		for _, j := range l.of("", "Work") {
			if string(j.Execution)[:3] == name {
				n++
			}
		}
		return n
	}
	require.Eventually(t, func() bool { return count("low") == 20 && count("hig") == 400 }, within, time.Millisecond)
	// The order in which the jobs were handed out, which four slots change by a few: first the window
	// of what came first, then 16 of the one for 1 of the other.
	var order []string
	for _, j := range l.of("", "Work") {
		order = append(order, string(j.Execution)[:3])
	}
	nth := func(name string, n int) int {
		for i, one := range order {
			if n -= map[bool]int{true: 1}[one == name]; n == 0 {
				return i
			}
		}
		return -1
	}
	require.Less(t, nth("low", 5), 16+5*17+16, "they do not wait for the end of the flood: %v", order)
	require.Less(t, nth("hig", 200), 200+200/16+16, "what is urgent goes first: %v", order)
	f.pool(idle)
	x, err := f.conn.Get(t.Context(), "low-1", false)
	require.NoError(t, err)
	require.Equal(t, engine.StatusSuccess, x.Status)
}

func limited(id string, settings object, nodeRate string) []byte {
	var document object
	_ = json.Unmarshal(flow(id, settings, "Start: test.trigger", "Work: test.work"), &document)
	if nodeRate != "" {
		document["nodes"].([]any)[1].(object)["rateLimit"] = nodeRate
	}
	data, _ := json.Marshal(document)
	return data
}

// paced checks that of jobs no more than count begin in a second.
func paced(t *testing.T, jobs []*queue.Job, times map[engine.JobID]time.Time, count int) {
	t.Helper()
	var at []time.Time
	for _, j := range jobs {
		at = append(at, times[j.ID])
	}
	slices.SortFunc(at, time.Time.Compare)
	for i := range at[min(count, len(at)):] {
		require.Greater(t, at[i+count].Sub(at[i]), 700*time.Millisecond, "%d jobs within a second", count+1)
	}
}

func TestRateLimitOverTwoCoordinators(t *testing.T) {
	t.Parallel()
	for name, document := range map[string][]byte{
		"of a node":     limited("paced", nil, "5/second"),
		"of executions": limited("begun", object{"rateLimit": "5/second"}, ""),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := start(t, 2)
			var mu sync.Mutex
			times, by := map[engine.JobID]time.Time{}, map[string]int{}
			l := f.work(func(job *queue.Job, _ string) (engine.Result, bool) {
				mu.Lock()
				defer mu.Unlock()
				times[job.ID] = time.Now()
				by[job.Coordinator]++
				return outputs(`{}`), true
			})
			f.flood(16, "x", queue.Submission{Workflow: document})
			require.Eventually(t, func() bool { return len(l.of("", "Work")) == 16 }, within, 10*time.Millisecond)
			f.pool(idle)
			mu.Lock()
			defer mu.Unlock()
			require.Len(t, times, 16, "each once")
			require.Len(t, by, 2, "both coordinators have taken part")
			paced(t, l.of("", "Work"), times, 5)
		})
	}
}

func TestUnreadableLimitIsRefused(t *testing.T) {
	t.Parallel()
	f := start(t, 1)
	_, err := f.conn.Submit(t.Context(), &queue.Submission{Workflow: limited("bad", nil, "often")})
	f.refused(err, queue.CodeInvalidWorkflow)
	var problem *queue.Problem
	require.ErrorAs(t, err, &problem)
	require.Contains(t, problem.Details[0], "often")
	require.Contains(t, problem.Details[0], "5/second")
	_, err = f.conn.Submit(t.Context(), &queue.Submission{Workflow: chain(1), Priority: "urgent"})
	f.refused(err, queue.CodeBadRequest, "urgent", "high")
}

func TestOverloadRefusesAndLosesNothing(t *testing.T) {
	t.Parallel()
	f := startWith(t, 1, func(c *coordinator.Config) { c.MaxBacklog, c.MaxSubmissionBytes = 5, 100_000 })
	f.announce(4)
	l, open := f.gated()
	refused := 0
	for i := 1; i <= 40; i++ {
		id := engine.ExecutionID(fmt.Sprintf("x-%d", i))
		for {
			_, err := f.conn.Submit(t.Context(), &queue.Submission{ID: id, Workflow: chain(1)})
			if err == nil {
				break
			}
			f.refused(err, queue.CodeOverloaded, "jobs wait")
			var problem *queue.Problem
			require.ErrorAs(t, err, &problem)
			require.GreaterOrEqual(t, problem.RetryAfter, int64(1000))
			require.Equal(t, 429, problem.Status())
			if refused++; refused == 1 {
				require.Equal(t, 22, i, "16 are published, 5 wait")
				require.NoError(t, f.conn.SubmitDurable(t.Context(), &queue.Submission{ID: "durable", Workflow: chain(1)}))
				open()
			}
			time.Sleep(time.Duration(problem.RetryAfter) * time.Millisecond / 10)
		}
	}
	require.Positive(t, refused)
	require.Eventually(t, func() bool { return len(l.of("", "Work 0")) == 41 }, within, 10*time.Millisecond)
	f.pool(idle)
	for i := 1; i <= 40; i++ {
		require.Len(t, l.of(engine.ExecutionID(fmt.Sprintf("x-%d", i)), "Work 0"), 1)
	}
	big := queue.Submission{Workflow: chain(1), Input: items(`{"text":"` + strings.Repeat("x", 100_000) + `"}`)}
	_, err := f.conn.Submit(t.Context(), &big)
	f.refused(err, queue.CodeTooLarge, "REPRISE_MAX_SUBMISSION_BYTES")
}

// Few jobs can be too many when they carry much; what is taken of them runs.
func TestOverloadByTheSizeOfWhatWaits(t *testing.T) {
	t.Parallel()
	f := startWith(t, 1, func(c *coordinator.Config) { c.MaxBacklogBytes = 100_000 })
	f.announce(4)
	l, open := f.gated()
	large := items(`{"text":"` + strings.Repeat("x", 30_000) + `"}`)
	taken := 0
	for ; taken < 30; taken++ {
		_, err := f.conn.Submit(t.Context(), &queue.Submission{ID: engine.ExecutionID(fmt.Sprintf("x-%d", taken)), Workflow: chain(1), Input: large})
		if err != nil {
			f.refused(err, queue.CodeOverloaded, "4 jobs", "REPRISE_MAX_BACKLOG_BYTES")
			break
		}
	}
	require.Equal(t, 16+4, taken, "16 are published, and what waits is beyond the limit with the fourth")
	open()
	id, err := f.conn.SubmitPatiently(t.Context(), &queue.Submission{ID: "last", Workflow: chain(1), Input: large}, within, nil)
	require.NoError(t, err)
	f.ended(id, engine.StatusSuccess)
	f.pool(idle)
	require.Len(t, l.of("", "Work 0"), taken+1)
}

func TestPlacesAreFreedHoweverJobsEnd(t *testing.T) {
	t.Parallel()
	f := start(t, 2)
	var document object
	require.NoError(t, json.Unmarshal(flow("slow", nil, "Start: test.trigger", "Work: test.work"), &document))
	document["nodes"].([]any)[1].(object)["timeout"] = 1500
	timed, err := json.Marshal(document)
	require.NoError(t, err)
	for i := range 12 {
		f.begin(queue.Submission{ID: engine.ExecutionID(fmt.Sprintf("cancelled-%d", i)), Workflow: chain(1)})
		f.begin(queue.Submission{ID: engine.ExecutionID(fmt.Sprintf("answered-%d", i)), Workflow: chain(1)})
		f.begin(queue.Submission{ID: engine.ExecutionID(fmt.Sprintf("timed-%d", i)), Workflow: timed})
	}
	for i := range 12 {
		require.NoError(t, f.conn.Cancel(t.Context(), engine.ExecutionID(fmt.Sprintf("cancelled-%d", i)), "test"))
	}
	other := map[string]string{f.coordinators[0].ID(): f.coordinators[1].ID(), f.coordinators[1].ID(): f.coordinators[0].ID()}
	f.pool(func(p queue.QueuePool) bool { return p.Published > 0 })
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	defer func() { cancel(); wg.Wait() }()
	wg.Go(func() {
		for {
			d, err := f.jobs.Next(ctx)
			if err != nil {
				return
			}
			d.Done()
			if id := string(d.Job().Execution); id[0] == 'a' { // the other coordinator takes it
				_, _ = f.conn.SendResult(ctx, other[d.Job().Coordinator], answer(d, "x"))
			}
		}
	})
	for i := range 12 {
		ctx, cancel := context.WithTimeout(t.Context(), within)
		x, err := f.conn.WaitFinished(ctx, engine.ExecutionID(fmt.Sprintf("timed-%d", i)), false, false)
		cancel()
		require.NoError(t, err)
		require.Equal(t, engine.StatusError, x.Status)
	}
	// What one coordinator tells of the other may be as old as its last notice.
	over := time.Now()
	f.pool(func(p queue.QueuePool) bool { return time.Since(over) > queue.AnnounceEvery+time.Second && idle(p) })
}

// mortal is a store of a process that can die.
type mortal struct {
	*state.Store
	dead *atomic.Bool
}

var errDead = errors.New("the process is dead")

func (m mortal) Postpone(ctx context.Context, ids []engine.ExecutionID, next int64) error {
	if m.dead.Load() {
		return errDead
	}
	return m.Store.Postpone(ctx, ids, next)
}

func (m mortal) Load(ctx context.Context, ids []engine.ExecutionID) ([]*state.Stored, error) {
	if m.dead.Load() {
		return nil, errDead
	}
	return m.Store.Load(ctx, ids)
}

func (m mortal) Commit(ctx context.Context, commits []state.Commit) []error {
	if m.dead.Load() {
		return slices.Repeat([]error{errDead}, len(commits))
	}
	return m.Store.Commit(ctx, commits)
}

func (m mortal) ClaimStale(ctx context.Context, now, next int64, limit int) ([]engine.ExecutionID, error) {
	if m.dead.Load() {
		return nil, errDead
	}
	return m.Store.ClaimStale(ctx, now, next, limit)
}

func TestHeldJobsSurviveTheirCoordinator(t *testing.T) {
	t.Parallel()
	for name, crash := range map[string]bool{"stopped": false, "crashed": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dead := &atomic.Bool{}
			var first *queue.Conn
			f := startWith(t, 1, func(c *coordinator.Config) {
				c.Store = mortal{c.Store.(*state.Store), dead}
				first = c.Transport.(transport).Conn
			})
			f.announce(4)
			const jobs = 60
			f.flood(jobs, "x", queue.Submission{Workflow: chain(1)})
			f.pool(func(p queue.QueuePool) bool { return p.Published == 16 && p.Waiting == jobs-16 })
			if crash {
				dead.Store(true)
				first.Close()
			} else {
				f.stop()
			}
			f.add(nil)
			l := f.work(func(*queue.Job, string) (engine.Result, bool) { return outputs(`{}`), true })
			for i := 1; i <= jobs; i++ {
				id := engine.ExecutionID(fmt.Sprintf("x-%d", i))
				ctx, cancel := context.WithTimeout(t.Context(), within)
				x, err := f.conn.WaitFinished(ctx, id, false, false)
				cancel()
				require.NoError(t, err)
				require.Equal(t, engine.StatusSuccess, x.Status)
				require.Len(t, l.of(id, "Work 0"), 1, "run once")
			}
		})
	}
}

// While a coordinator holds jobs, another one leaves them alone.
func TestSweepersLeaveHeldJobsAlone(t *testing.T) {
	t.Parallel()
	f := start(t, 2)
	f.announce(4)
	l, open := f.gated()
	const jobs = 120
	f.flood(jobs, "x", queue.Submission{Workflow: chain(1)})
	f.pool(func(p queue.QueuePool) bool { return p.Published == 32 && p.Waiting == jobs-32 })
	wait := time.NewTimer(3 * time.Second) // six times as long as until a sweep
	defer wait.Stop()
	for waits := true; waits; {
		select {
		case <-wait.C:
			waits = false
		case <-time.After(100 * time.Millisecond):
			view, err := f.conn.Queue(t.Context(), false)
			require.NoError(t, err)
			require.LessOrEqual(t, view.Pools[0].Published, 32)
			require.LessOrEqual(t, view.Pools[0].Waiting, jobs-32, "nothing waits twice")
		}
	}
	open()
	f.pool(idle)
	for i := 1; i <= jobs; i++ {
		require.Len(t, l.of(engine.ExecutionID(fmt.Sprintf("x-%d", i)), "Work 0"), 1)
	}
}

// timed is a document whose one node has a time limit, and a rate unless it is "".
func timed(id string, timeout time.Duration, rate string) []byte {
	var document object
	_ = json.Unmarshal(limited(id, nil, rate), &document)
	document["nodes"].([]any)[1].(object)["timeout"] = timeout.Milliseconds()
	data, _ := json.Marshal(document)
	return data
}

// A job's time limit does not count while the job is held, for its rate or for its turn.
func TestTimeLimitDoesNotCountWhileAJobIsHeld(t *testing.T) {
	t.Parallel()
	t.Run("for its rate", func(t *testing.T) {
		t.Parallel()
		f := start(t, 2)
		l := f.work(func(*queue.Job, string) (engine.Result, bool) { return outputs(`{}`), true })
		document := timed("paced", time.Second, "1/2s")
		for i := range 4 {
			f.begin(queue.Submission{ID: engine.ExecutionID(fmt.Sprintf("x-%d", i)), Workflow: document})
		}
		for i := range 4 {
			id := engine.ExecutionID(fmt.Sprintf("x-%d", i))
			f.ended(id, engine.StatusSuccess)
			require.Len(t, l.of(id, "Work"), 1)
		}
	})
	t.Run("for its turn", func(t *testing.T) {
		t.Parallel()
		f := start(t, 2)
		f.announce(4)
		var open sync.Once
		gate := make(chan struct{})
		defer open.Do(func() { close(gate) })
		l := f.work(func(job *queue.Job, _ string) (engine.Result, bool) {
			if strings.HasPrefix(string(job.Execution), "hangs") {
				return engine.Result{}, false
			}
			<-gate
			return outputs(`{}`), true
		})
		f.flood(64, "x", queue.Submission{Workflow: chain(1)})
		f.pool(func(p queue.QueuePool) bool { return p.Published == 32 && p.Waiting == 32 })
		const limit = 700 * time.Millisecond
		for _, id := range []engine.ExecutionID{"ends", "hangs"} {
			f.begin(queue.Submission{ID: id, Workflow: timed("timed", limit, "")})
		}
		held := time.Now()
		require.Eventually(t, func() bool { return time.Since(held) > 5*limit }, within, 50*time.Millisecond)
		for _, id := range []engine.ExecutionID{"ends", "hangs"} {
			x, err := f.conn.Get(t.Context(), id, false)
			require.NoError(t, err)
			require.Equal(t, engine.StatusRunning, x.Status, "%s waits for its turn: %v", id, x.Error)
		}
		open.Do(func() { close(gate) })
		f.ended("ends", engine.StatusSuccess)
		x := f.ended("hangs", engine.StatusError)
		require.Equal(t, engine.ReasonTimeout, x.Error.Reason)
		require.Len(t, l.of("ends", "Work"), 1)
		given := l.of("hangs", "Work")
		require.Len(t, given, 1)
		require.Equal(t, limit.Milliseconds(), given[0].Deadline-given[0].DispatchedAt, "what its worker is told")
		require.InDelta(t, given[0].Deadline, x.StoppedAt, 1000, "it counts from when the job went")
	})
	t.Run("when its coordinator dies", func(t *testing.T) {
		t.Parallel()
		dead := &atomic.Bool{}
		var first *queue.Conn
		f := startWith(t, 1, func(c *coordinator.Config) {
			c.Store = mortal{c.Store.(*state.Store), dead}
			first = c.Transport.(transport).Conn
		})
		f.announce(4)
		f.flood(16, "x", queue.Submission{Workflow: chain(1)})
		f.begin(queue.Submission{ID: "timed", Workflow: timed("timed", 700*time.Millisecond, "")})
		f.pool(func(p queue.QueuePool) bool { return p.Published == 16 && p.Waiting == 1 })
		dead.Store(true)
		first.Close()
		f.add(nil)
		f.work(func(*queue.Job, string) (engine.Result, bool) { return outputs(`{}`), true })
		f.ended("timed", engine.StatusSuccess)
	})
}

// ended waits for an execution's end, which must have this status.
func (f *fixture) ended(id engine.ExecutionID, status engine.Status) *queue.Execution {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(f.t.Context(), within)
	defer cancel()
	x, err := f.conn.WaitFinished(ctx, id, false, false)
	require.NoError(f.t, err)
	require.Equal(f.t, status, x.Status, "%s: %v", id, x.Error)
	return x
}
