package runner

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/expression"
	"github.com/reprise-engine/reprise/pkg/node"
	"github.com/reprise-engine/reprise/pkg/queue"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// run runs a job of a node whose code is execute.
func run(t *testing.T, change func(*queue.Job), execute func(context.Context, *node.Call) (*node.Result, error)) (node.Result, error) {
	t.Helper()
	registry := &node.Registry{}
	registry.Register(
		&node.Type{Spec: workflow.Spec{Type: "test.work", Versions: []float64{1}}, Execute: execute},
		&node.Type{Spec: workflow.Spec{Type: "test.sub", Versions: []float64{1}, SubNode: true}},
	)
	evaluator, err := expression.New()
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, evaluator.Close()) })
	r := New(Config{Registry: registry, Evaluator: evaluator, MaxResultBytes: 1000})
	plan := queue.Plan{
		Node: "Work",
		Nodes: []*workflow.Node{
			{Name: "Work", Type: "test.work", TypeVersion: 1, Parameters: []byte(`{"text":"={{ $json.a }} of {{ $('Before').first().json.b }}"}`)},
			{Name: "Before", Type: "test.work", TypeVersion: 1, Parameters: []byte(`{}`)},
			{Name: "Sub", Type: "test.sub", TypeVersion: 1, Parameters: []byte(`{"key":"={{ $json.a }}"}`)},
		},
		// Sub is attached to itself too, as no sane document has it.
		SubNodes: map[string]map[string][]string{"Work": {"ai_memory": {"Sub"}}, "Sub": {"ai_memory": {"Sub"}}},
	}
	raw, err := json.Marshal(plan)
	require.NoError(t, err)
	job := &queue.Job{
		ID: "x_1", Execution: "x", Attempt: 1, IdempotencyKey: "key", Plan: raw, PlanHash: "p",
		Inputs:  []workflow.Items{{{JSON: []byte(`{"a":"one"}`)}}},
		Source:  []*workflow.Source{{PreviousNode: "Before"}},
		RunData: map[string]map[int]queue.JobRecord{"Before": {0: {Outputs: []workflow.Items{{{JSON: []byte(`{"b":"two"}`)}}}}}},
		Runs:    map[string]int{"Before": 1},
	}
	if change != nil {
		change(job)
	}
	return r.Run(t.Context(), job, nil)
}

func output(json string) *node.Result {
	return &node.Result{Result: engine.Result{Outputs: []workflow.Items{{{JSON: []byte(json)}}}}}
}

func TestRunGivesTheNodeWhatTheJobBrought(t *testing.T) {
	result, err := run(t, nil, func(ctx context.Context, call *node.Call) (*node.Result, error) {
		text, err := call.String(ctx, 0, "text", "")
		require.NoError(t, err)
		require.Equal(t, "one of two", text)
		require.Equal(t, "key", call.IdempotencyKey)
		sub := call.SubNodes["ai_memory"][0]
		require.Equal(t, "Sub", sub.Node.Name)
		require.Empty(t, sub.SubNodes["ai_memory"], "a circle of sub-nodes ends")
		key, err := sub.String(ctx, 0, "key", "")
		require.NoError(t, err)
		require.Equal(t, "one", key, "sub-nodes see the inputs of the node they serve")
		return output(`{"ok":true}`), nil
	})
	require.NoError(t, err)
	require.Nil(t, result.Error)
	require.JSONEq(t, `{"ok":true}`, string(result.Outputs[0][0].JSON))
}

func TestWhateverGoesWrongIsInTheResult(t *testing.T) {
	for _, test := range []struct {
		name    string
		change  func(*queue.Job)
		execute func(context.Context, *node.Call) (*node.Result, error)
		message string
		reason  engine.Reason
	}{
		{
			"an error", nil,
			func(context.Context, *node.Call) (*node.Result, error) { return nil, errors.New("no luck") }, "no luck", "",
		},
		{
			"a node error", nil,
			func(context.Context, *node.Call) (*node.Result, error) {
				return nil, &engine.NodeError{Message: "model is away", Reason: engine.ReasonModel}
			}, "model is away", engine.ReasonModel,
		},
		{
			"a panic", nil,
			func(context.Context, *node.Call) (*node.Result, error) { panic("oops") }, "internal error in node type test.work: oops", "",
		},
		{
			"the deadline", func(j *queue.Job) { j.Deadline = time.Now().Add(20 * time.Millisecond).UnixMilli() },
			func(ctx context.Context, _ *node.Call) (*node.Result, error) { <-ctx.Done(); return nil, ctx.Err() },
			"Error: timed out", engine.ReasonTimeout,
		},
		{
			"too large", nil,
			func(context.Context, *node.Call) (*node.Result, error) {
				return output(`{"long":"` + string(make([]byte, 2000)) + `"}`), nil
			}, "the node's output has 2011 bytes, more than the 1000 allowed", engine.ReasonTooLarge,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			result, err := run(t, test.change, test.execute)
			require.NoError(t, err)
			require.NotNil(t, result.Error)
			require.Equal(t, test.message, result.Error.Message)
			require.Equal(t, test.reason, result.Error.Reason)
			require.Nil(t, result.Outputs)
		})
	}
}

func TestFailedRunKeepsWhatWasDoneBefore(t *testing.T) {
	result, err := run(t, nil, func(context.Context, *node.Call) (*node.Result, error) {
		done := &node.Result{}
		done.SubRuns = []engine.SubRun{{Node: "Sub", Type: "ai_memory"}}
		return done, errors.New("later")
	})
	require.NoError(t, err)
	require.Len(t, result.SubRuns, 1)
	require.Equal(t, "later", result.Error.Message)
}

func TestJobsThatCannotBeRead(t *testing.T) {
	_, err := run(t, func(j *queue.Job) { j.Plan = []byte(`{"node":`) }, nil)
	require.ErrorContains(t, err, "decode plan")
	_, err = run(t, func(j *queue.Job) { j.Plan = []byte(`{"node":"Gone"}`) }, nil)
	require.ErrorContains(t, err, `lacks its own node "Gone"`)
	result, err := run(t, func(j *queue.Job) {
		j.Plan = []byte(`{"node":"W","nodes":[{"name":"W","type":"test.other","typeVersion":2}]}`)
	}, nil)
	require.NoError(t, err)
	require.Equal(t, "Unrecognized node type: test.other version 2", result.Error.Message)
	require.True(t, result.Error.NotRetryable)
}

func TestRunTellsTheNodeHowItsWaitEnded(t *testing.T) {
	resumption := &engine.Resumption{Kind: engine.WaitWebhook, Data: []byte(`{"body":{"a":1}}`)}
	_, err := run(t, func(j *queue.Job) {
		j.ResumeURL, j.ApprovalURL, j.Resumption = "http://host/resume", "http://host/approval", resumption
		j.Plan = []byte(`{"node":"Work","nodes":[{"name":"Work","type":"test.work","typeVersion":1,"parameters":{"text":"={{ $execution.resumeUrl }}?a=1"}}]}`)
		j.PlanHash = "resume"
	}, func(ctx context.Context, call *node.Call) (*node.Result, error) {
		require.Equal(t, resumption, call.Resumption)
		require.Equal(t, "http://host/approval", call.Execution.ApprovalURL)
		require.Equal(t, "http://host/resume", call.Execution.ResumeURL)
		text, err := call.String(ctx, 0, "text", "")
		require.NoError(t, err)
		require.Equal(t, "http://host/resume?a=1", text)
		return output(`{}`), nil
	})
	require.NoError(t, err)
}
