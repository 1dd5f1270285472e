package coordinator_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"go.uber.org/zap"

	"github.com/reprise-engine/reprise/internal/coordinator"
	"github.com/reprise-engine/reprise/internal/embedded"
	"github.com/reprise-engine/reprise/internal/links"
	"github.com/reprise-engine/reprise/internal/redistest"
	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/expression"
	"github.com/reprise-engine/reprise/pkg/node"
	"github.com/reprise-engine/reprise/pkg/queue"
	"github.com/reprise-engine/reprise/pkg/state"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

func TestMain(m *testing.M) {
	code := redistest.Main(m)
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// within is how long anything may take.
const within = 20 * time.Second

// transport makes a connection the coordinator's transport, as the service does.
type transport struct{ *queue.Conn }

func (t transport) PublishJobs(ctx context.Context, jobs []*queue.Job) func() []error {
	return t.StartPublish(ctx, jobs).Wait
}

func (t transport) ServeSubmissions(handler func(coordinator.DurableSubmission)) (func(), error) {
	return t.ConsumeSubmissions(context.Background(), func(m *queue.SubmitMsg) { handler(submission{m}) })
}

type submission struct{ *queue.SubmitMsg }

func (s submission) Submitted() *queue.Submission { return &s.Submission }

// types are triggers, and nodes that only the test runs: one that works, one that
// waits, and a requester with its tools.
func types() *node.Registry {
	r := &node.Registry{}
	one := []float64{1}
	r.Register(
		&node.Type{Spec: workflow.Spec{Type: "test.trigger", Versions: one, Trigger: true}},
		&node.Type{Spec: workflow.Spec{Type: "n8n-nodes-base.executeWorkflowTrigger", Versions: one, Trigger: true}},
		&node.Type{Spec: workflow.Spec{Type: "n8n-nodes-base.errorTrigger", Versions: one, Trigger: true}},
		&node.Type{Spec: workflow.Spec{Type: "test.poll", Versions: one, Trigger: true, Polls: true}},
		&node.Type{Spec: workflow.Spec{Type: "test.work", Versions: one}},
		&node.Type{Spec: workflow.Spec{Type: "test.wait", Versions: one, ToolNode: true}, Waits: true},
		&node.Type{Spec: workflow.Spec{Type: "test.agent", Versions: one, Accepts: []string{workflow.Tool}}},
	)
	return r
}

// chain is a trigger followed by n nodes.
func chain(n int) []byte {
	type object = map[string]any
	nodes := []object{{"name": "Start", "type": "test.trigger", "typeVersion": 1, "position": []int{0, 0}, "parameters": object{}}}
	connections := object{}
	last := "Start"
	for i := range n {
		name := fmt.Sprintf("Work %d", i)
		nodes = append(nodes, object{"name": name, "type": "test.work", "typeVersion": 1, "position": []int{100 * i, 0}, "parameters": object{}})
		connections[last] = object{"main": [][]object{{{"node": name, "type": "main", "index": 0}}}}
		last = name
	}
	data, _ := json.Marshal(object{"name": "chain", "nodes": nodes, "connections": connections, "settings": object{"executionOrder": "v1"}})
	return data
}

type fixture struct {
	t            *testing.T
	url, prefix  string
	conn         *queue.Conn // a client's and the worker's
	jobs         *queue.JobConsumer
	coordinators []*coordinator.Coordinator
	stores       []*state.Store
	stops        []func()
}

func start(t *testing.T, coordinators int) *fixture {
	t.Helper()
	return startWith(t, coordinators, nil)
}

// startWith starts coordinators whose configuration change may alter; it may be nil.
func startWith(t *testing.T, coordinators int, change func(*coordinator.Config)) *fixture {
	t.Helper()
	server, err := embedded.StartNATS(t.TempDir(), embedded.NATSOptions{})
	require.NoError(t, err)
	t.Cleanup(server.Shutdown)
	f := &fixture{t: t, url: server.URL, prefix: fmt.Sprintf("test-%d", time.Now().UnixNano())}
	for range coordinators {
		f.add(change)
	}
	f.conn = f.connect(server.URL)
	f.jobs, err = f.conn.Jobs(t.Context(), []string{"default"}, queue.WorkerConfig{Slots: 4, AckWait: 30 * time.Second})
	require.NoError(t, err)
	t.Cleanup(f.jobs.Stop)
	return f
}

// add starts one more coordinator on the same store.
func (f *fixture) add(change func(*coordinator.Config)) {
	f.t.Helper()
	t := f.t
	store, err := state.Open(t.Context(), state.Config{URL: redistest.Shared(t).URL(), Prefix: f.prefix})
	require.NoError(t, err)
	conn := f.connect(f.url)
	require.NoError(t, conn.EnsureStreams(t.Context(), queue.Streams{}))
	evaluator, err := expression.New()
	require.NoError(t, err)
	config := coordinator.Config{
		Store: store, Transport: transport{conn}, Registry: types(), Evaluator: evaluator,
		SweepAfter: 500 * time.Millisecond, Log: zap.NewNop(),
		Links: links.New([]byte("0123456789abcdef0123456789abcdef"), "http://public"),
	}
	if change != nil {
		change(&config)
	}
	c, err := coordinator.New(config)
	require.NoError(t, err)
	require.NoError(t, c.Start(t.Context()))
	var once sync.Once
	stop := func() {
		once.Do(func() {
			ctx, cancel := context.WithTimeout(context.Background(), within)
			defer cancel()
			c.Stop(ctx)
			conn.Close()
			require.NoError(t, evaluator.Close())
			require.NoError(t, store.Close())
		})
	}
	t.Cleanup(stop)
	require.NoError(t, conn.Flush(t.Context()))
	f.coordinators, f.stores, f.stops = append(f.coordinators, c), append(f.stores, store), append(f.stops, stop)
}

// stop stops all coordinators that run.
func (f *fixture) stop() {
	for _, stop := range f.stops {
		stop()
	}
	f.coordinators, f.stores, f.stops = nil, nil, nil
}

func (f *fixture) connect(url string) *queue.Conn {
	conn, err := queue.Connect(f.t.Context(), queue.Config{URL: url, Log: zap.NewNop()})
	require.NoError(f.t, err)
	f.t.Cleanup(conn.Close)
	return conn
}

func (f *fixture) submit(id string, nodes int) {
	f.t.Helper()
	got, err := f.conn.Submit(f.t.Context(), &queue.Submission{ID: engine.ExecutionID(id), Workflow: chain(nodes)})
	require.NoError(f.t, err)
	require.Equal(f.t, engine.ExecutionID(id), got)
}

func (f *fixture) next() *queue.JobDelivery {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(f.t.Context(), within)
	defer cancel()
	d, err := f.jobs.Next(ctx)
	require.NoError(f.t, err)
	d.Done()
	return d
}

// nothingMore checks that no job comes for a while in which the sweeper worked.
func (f *fixture) nothingMore() {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(f.t.Context(), 1500*time.Millisecond)
	defer cancel()
	d, err := f.jobs.Next(ctx)
	if err == nil {
		require.True(f.t, d.Job().Confirm, "job %s was given out as if it were new", d.Job().ID)
		reply, err := f.conn.AskRedelivery(f.t.Context(), &queue.Redelivery{Job: d.Job().ID, Execution: d.Job().Execution, Deliveries: 1})
		require.NoError(f.t, err)
		require.Equal(f.t, queue.VerdictDrop, reply.Verdict)
	}
}

// answer is the result of a job with one item that tells who made it.
func answer(d *queue.JobDelivery, text string) *queue.Result {
	r := &queue.Result{Job: d.Job().ID, Execution: d.Job().Execution, Ack: d.Ack()}
	item, _ := json.Marshal(map[string]string{"from": text})
	r.Result.Outputs = []workflow.Items{{{JSON: item}}}
	return r
}

func (f *fixture) send(coordinator string, r *queue.Result) {
	f.t.Helper()
	reply, err := f.conn.SendResult(f.t.Context(), coordinator, r)
	require.NoError(f.t, err)
	require.Equal(f.t, queue.VerdictOK, reply.Verdict, reply.Error)
}

func (f *fixture) finished(id string) (*queue.Execution, map[string][]engine.Record) {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(f.t.Context(), within)
	defer cancel()
	x, err := f.conn.WaitFinished(ctx, engine.ExecutionID(id), true, false)
	require.NoError(f.t, err)
	var data struct {
		ResultData struct {
			RunData map[string][]engine.Record `json:"runData"`
		} `json:"resultData"`
	}
	require.NoError(f.t, json.Unmarshal(x.Data, &data))
	return x, data.ResultData.RunData
}

// Every result goes to the coordinator that has an older state in memory: what
// it has is refused, or looked at again, and nothing is lost or done twice.
func TestResultsReachTheCoordinatorWithStaleState(t *testing.T) {
	t.Parallel()
	f := start(t, 2)
	const nodes = 6
	f.submit("stale", nodes)
	for i := range nodes {
		d := f.next()
		require.Equal(t, fmt.Sprintf("Work %d", i), planNode(t, d))
		to := f.coordinators[i%2].ID()
		f.send(to, answer(d, "first"))
	}
	x, run := f.finished("stale")
	require.Equal(t, engine.StatusSuccess, x.Status)
	for i := range nodes {
		require.Len(t, run[fmt.Sprintf("Work %d", i)], 1)
	}
	f.nothingMore()
}

// A result that comes again, to whichever coordinator and however late, changes
// nothing, and its sender is told that all is well.
func TestResultsThatComeAgainChangeNothing(t *testing.T) {
	t.Parallel()
	f := start(t, 2)
	f.submit("again", 2)
	first := f.next()
	f.send(f.coordinators[0].ID(), answer(first, "right"))
	for _, c := range f.coordinators {
		f.send(c.ID(), answer(first, "wrong"))
	}
	f.send("gone", answer(first, "wrong")) // to any, as its coordinator is no more
	second := f.next()
	for second.Job().ID == first.Job().ID { // published again when the late results came
		second = f.next()
	}
	f.send(f.coordinators[1].ID(), answer(second, "right"))
	f.send(f.coordinators[0].ID(), answer(second, "wrong"))
	_, run := f.finished("again")
	for _, name := range []string{"Work 0", "Work 1"} {
		require.Len(t, run[name], 1)
		require.JSONEq(t, `{"from":"right"}`, string(run[name][0].Data["main"][0][0].JSON))
	}
	f.nothingMore()
}

// A submission that is repeated starts nothing, also at another coordinator.
func TestSubmissionsAreIdempotent(t *testing.T) {
	t.Parallel()
	f := start(t, 2)
	for range 6 {
		f.submit("once", 1)
	}
	require.NoError(t, f.conn.SubmitDurable(t.Context(), &queue.Submission{ID: "once", Workflow: chain(1)}))
	d := f.next()
	f.send(d.Job().Coordinator, answer(d, "it"))
	_, run := f.finished("once")
	require.Len(t, run["Work 0"], 1)
	f.submit("once", 1)
	f.nothingMore()
}

// Cancel is for good: the result that comes later changes nothing.
func TestCancelIsForGood(t *testing.T) {
	t.Parallel()
	f := start(t, 2)
	f.submit("stop", 2)
	d := f.next()
	dropped := make(chan queue.Control, 8)
	stop, err := f.conn.SubscribeControl(func(c queue.Control) { dropped <- c })
	require.NoError(t, err)
	defer stop()
	require.NoError(t, f.conn.Flush(t.Context()))
	require.NoError(t, f.conn.Cancel(t.Context(), "stop", "test"))
	select {
	case c := <-dropped:
		require.Equal(t, []engine.JobID{d.Job().ID}, c.Drop)
	case <-time.After(within):
		t.Fatal("workers were not told")
	}
	f.send(d.Job().Coordinator, answer(d, "late"))
	x, _ := f.finished("stop")
	require.Equal(t, engine.StatusCanceled, x.Status)
	f.nothingMore()
	var problem *queue.Problem
	require.ErrorAs(t, f.conn.Cancel(t.Context(), "unknown", ""), &problem)
	require.Equal(t, queue.CodeNotFound, problem.Code)
}

// A job that is lost from the stream is published again by the sweeper, marked,
// and a coordinator allows it.
func TestLostJobsArePublishedAgain(t *testing.T) {
	t.Parallel()
	f := start(t, 2)
	f.submit("lost", 1)
	d := f.next()
	require.NoError(t, d.Term()) // gone, without an answer
	again := f.next()
	require.Equal(t, d.Job().ID, again.Job().ID)
	require.True(t, again.Job().Confirm)
	require.Equal(t, d.Job().IdempotencyKey, again.Job().IdempotencyKey)
	reply, err := f.conn.AskRedelivery(t.Context(), &queue.Redelivery{Job: again.Job().ID, Execution: "lost", Deliveries: 1})
	require.NoError(t, err)
	require.Equal(t, queue.VerdictRun, reply.Verdict)
	f.send(again.Job().Coordinator, answer(again, "it"))
	x, _ := f.finished("lost")
	require.Equal(t, engine.StatusSuccess, x.Status)
}

func planNode(t *testing.T, d *queue.JobDelivery) string {
	t.Helper()
	var plan queue.Plan
	require.NoError(t, json.Unmarshal(d.Job().Plan, &plan))
	return plan.Node
}
