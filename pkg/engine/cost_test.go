package engine_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// agentLoop is an Agent with two tools that asks for both again and again.
func agentLoop(t testing.TB) *execution {
	t.Helper()
	w, err := sketch(`
		Start: trigger
		Agent: agent
		Model: model
		A: tool timeout=1000
		B: tool
		Start -> Agent
		A ~> Agent
		B ~> Agent`)
	if err != nil {
		t.Fatal(err)
	}
	x := newExecution(w)
	x.must(t, engine.Started{At: x.now})
	return x
}

// must applies an event without the checks of apply and gives the bytes it
// stored.
func (x *execution) must(t testing.TB, ev engine.Event) (bytes int) {
	t.Helper()
	step, err := x.machine.Apply(x.state, ev)
	if err != nil || step.Ignored {
		t.Fatalf("apply %#v: ignored %v, error %v", ev, step.Ignored, err)
	}
	for _, c := range step.Changes {
		bytes += len(c.Field) + len(c.Value)
	}
	return bytes
}

func (x *execution) mustJob(t testing.TB, node string) engine.JobID {
	t.Helper()
	id, err := x.job(node, -1)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// round lets the Agent ask once and both tools answer.
func (x *execution) round(t testing.TB, n int) (bytes int) {
	t.Helper()
	x.now++
	request := &engine.Request{Metadata: json.RawMessage(`{"message":"the model said something of some length"}`)}
	for _, tool := range []string{"A", "B"} {
		request.Actions = append(request.Actions, engine.Action{NodeName: tool, ID: fmt.Sprintf("call_%04d", n), Input: json.RawMessage(`{"q":1}`)})
	}
	bytes += x.must(t, engine.NodeFinished{At: x.now, Job: x.mustJob(t, "Agent"), Result: engine.Result{
		Request: request,
		SubRuns: []engine.SubRun{{Node: "Model", Type: workflow.LanguageModel, Output: []workflow.Items{{{JSON: json.RawMessage(`{"text":"hm"}`)}}}}},
	}})
	for _, tool := range []string{"A", "B"} {
		bytes += x.must(t, engine.NodeFinished{At: x.now, Job: x.mustJob(t, tool), Result: engine.Result{
			Outputs: []workflow.Items{{{JSON: json.RawMessage(`{"response":42}`)}}},
		}})
	}
	return bytes
}

// TestRoundsCostTheSame: a round stores as much, and takes as long, after a
// hundred and after a thousand others as after ten.
func TestRoundsCostTheSame(t *testing.T) {
	x := agentLoop(t)
	bytes := make([]int, 1001)
	took := make([]time.Duration, 1001)
	for n := range bytes {
		start := time.Now()
		bytes[n] = x.round(t, n)
		took[n] = time.Since(start)
	}
	if bytes[100]*5 > bytes[10]*6 || bytes[1000]*5 > bytes[10]*6 {
		t.Errorf("round 10 stored %d bytes, round 100 %d, round 1000 %d", bytes[10], bytes[100], bytes[1000])
	}
	best := func(from int) time.Duration {
		least := took[from]
		for _, d := range took[from : from+50] {
			least = min(least, d)
		}
		return least
	}
	// The best of fifty leaves out what the machine does besides; a cost that
	// grew with the rounds would be twenty times as large.
	if early, late := best(10), best(950); late > 3*early {
		t.Errorf("rounds took %v at first and %v after 950 others", early, late)
	}
	x.must(t, engine.NodeFinished{At: x.now, Job: x.mustJob(t, "Agent"), Result: engine.Result{
		Outputs: []workflow.Items{{{JSON: json.RawMessage(`{"output":"done"}`)}}},
	}})
	if err := x.machine.Check(x.state); err != nil {
		t.Error(err)
	}
}

// A round of two tools: three events.
func BenchmarkRound(b *testing.B) {
	x := agentLoop(b)
	stored := 0
	for n := 0; b.Loop(); n++ {
		stored += x.round(b, n)
	}
	b.ReportMetric(float64(stored)/float64(b.N), "bytes/round")
}

// An execution of design's measure: agent, model, two tools, model, answer.
func BenchmarkAgentExecution(b *testing.B) {
	for b.Loop() {
		x := agentLoop(b)
		x.round(b, 0)
		x.must(b, engine.NodeFinished{At: x.now, Job: x.mustJob(b, "Agent"), Result: engine.Result{
			Outputs: []workflow.Items{{{JSON: json.RawMessage(`{"output":"done"}`)}}},
		}})
	}
}
