package coordinator_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/queue"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

type object = map[string]any

// flow is a document: a chain of nodes given as "Name: type".
func flow(id string, settings object, nodes ...string) []byte {
	list, connections, last := []object{}, object{}, ""
	for i, text := range nodes {
		name, nodeType, _ := strings.Cut(text, ": ")
		list = append(list, object{"name": name, "type": nodeType, "typeVersion": 1, "position": []int{100 * i, 0}, "parameters": object{}})
		if last != "" {
			connections[last] = object{"main": [][]object{{{"node": name, "type": "main", "index": 0}}}}
		}
		last = name
	}
	all := object{"executionOrder": "v1"}
	for name, value := range settings {
		all[name] = value
	}
	data, _ := json.Marshal(object{"id": id, "name": "The " + id, "nodes": list, "connections": connections, "settings": all})
	return data
}

// items are items with the given JSON.
func items(texts ...string) workflow.Items {
	list := workflow.Items{}
	for _, text := range texts {
		list = append(list, workflow.Item{JSON: []byte(text)})
	}
	return list
}

func outputs(texts ...string) engine.Result {
	return engine.Result{Outputs: []workflow.Items{items(texts...)}}
}

func wait(w engine.Wait) engine.Result { return engine.Result{Wait: &w} }

func failure(message string) engine.Result {
	return engine.Result{Error: &engine.NodeError{Message: message, Name: "NodeOperationError"}}
}

// ledger is what a worker was given to run.
type ledger struct {
	mu   sync.Mutex
	jobs []*queue.Job
}

// of are the jobs of a node in an execution, of any when it is "".
func (l *ledger) of(execution engine.ExecutionID, name string) []*queue.Job {
	l.mu.Lock()
	defer l.mu.Unlock()
	var found []*queue.Job
	for _, j := range l.jobs {
		if (execution == "" || j.Execution == execution) && nodeOf(j) == name {
			found = append(found, j)
		}
	}
	return found
}

func nodeOf(j *queue.Job) string {
	var plan queue.Plan
	if err := json.Unmarshal(j.Plan, &plan); err != nil {
		return ""
	}
	return plan.Node
}

// work runs a worker whose nodes answer as run says, until the test ends. A run that
// returns false does not answer.
func (f *fixture) work(run func(job *queue.Job, name string) (engine.Result, bool)) *ledger {
	l := &ledger{}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	f.t.Cleanup(func() { cancel(); wg.Wait() })
	wg.Go(func() {
		for {
			d, err := f.jobs.Next(ctx)
			if err != nil {
				return
			}
			wg.Go(func() { f.runJob(ctx, d, l, run) })
		}
	})
	return l
}

func (f *fixture) runJob(ctx context.Context, d *queue.JobDelivery, l *ledger, run func(*queue.Job, string) (engine.Result, bool)) {
	defer d.Done()
	job := d.Job()
	// Like a worker's, with a limit for late jobs that fits the sweeps of these tests.
	if job.Confirm || d.Published().UnixMilli()-job.DispatchedAt > 250 {
		reply, err := f.conn.AskRedelivery(ctx, &queue.Redelivery{Job: job.ID, Execution: job.Execution, Deliveries: 1})
		if err != nil || reply.Verdict != queue.VerdictRun {
			_ = d.Term()
			return
		}
	}
	l.mu.Lock()
	l.jobs = append(l.jobs, job)
	l.mu.Unlock()
	answer, ok := run(job, nodeOf(job))
	if !ok {
		return
	}
	r := &queue.Result{Job: job.ID, Execution: job.Execution, Ack: d.Ack()}
	r.Result.Result = answer
	for ctx.Err() == nil {
		reply, err := f.conn.SendResult(ctx, job.Coordinator, r)
		if err == nil && reply.Verdict == queue.VerdictOK {
			return
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
		}
	}
}

func (f *fixture) begin(sub queue.Submission) engine.ExecutionID {
	f.t.Helper()
	id, err := f.conn.Submit(f.t.Context(), &sub)
	require.NoError(f.t, err)
	return id
}

func (f *fixture) put(document []byte) *queue.StoredWorkflow {
	f.t.Helper()
	stored, err := f.conn.PutWorkflow(f.t.Context(), queue.WorkflowPutRequest{Document: document})
	require.NoError(f.t, err)
	return stored
}

// waiting waits until an execution waits for n things.
func (f *fixture) waiting(id engine.ExecutionID, n int) *queue.Execution {
	f.t.Helper()
	var x *queue.Execution
	require.Eventually(f.t, func() bool {
		var err error
		x, err = f.conn.Get(f.t.Context(), id, false)
		return err == nil && x.Status == engine.StatusWaiting && len(x.Waiting) == n
	}, within, 10*time.Millisecond)
	return x
}

// refused checks that an answer is a refusal with this code, whose text has all words.
func (f *fixture) refused(err error, code string, words ...string) {
	f.t.Helper()
	var problem *queue.Problem
	require.Truef(f.t, errors.As(err, &problem), "want %s, got %v", code, err)
	require.Equal(f.t, code, problem.Code, problem.Message)
	for _, word := range words {
		require.Contains(f.t, problem.Message, word)
	}
}

// oneWins calls f at the same time from several goroutines and returns the index of
// the only one that got no error, and the errors of the others.
func (f *fixture) oneWins(n int, call func(i int) error) (winner int, others []error) {
	f.t.Helper()
	errs := make([]error, n)
	var wg sync.WaitGroup
	ready := make(chan struct{})
	for i := range n {
		wg.Go(func() {
			<-ready
			errs[i] = call(i)
		})
	}
	close(ready)
	wg.Wait()
	winner = -1
	for i, err := range errs {
		if err != nil {
			others = append(others, err)
			continue
		}
		require.Equal(f.t, -1, winner, "two were told that they had won")
		winner = i
	}
	require.NotEqual(f.t, -1, winner, "nobody won: %v", errs)
	return winner, others
}

// now is a time in the engine's form.
func inMillis(d time.Duration) int64 { return time.Now().Add(d).UnixMilli() }
