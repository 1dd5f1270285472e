package engine_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/reprise-engine/reprise/pkg/engine"
)

// FuzzResults: whatever workers answer, the invariants hold after every step and
// the stored form gives the same state. Each line of the input is the result of
// the oldest job, then of the oldest wait's webhook, question or child.
func FuzzResults(f *testing.F) {
	for _, seed := range []string{
		`{"outputs":[[{"json":{"a":1}}]]}`,
		`{"request":{"actions":[{"nodeName":"T","id":"1","input":{"x":1}},{"nodeName":"Gate","id":"2","input":{"toolParameters":{"n":1},"tool":"Pay"}}]}}
{"outputs":[[{"json":{"t":1}}]]}
{"wait":{"kind":"approval","question":{"tool":"Pay"}}}
{"approved":true}
{"outputs":[[{"json":{}}]]}
{"request":{"actions":[{"nodeName":"Pay","id":"2","input":{"n":1},"metadata":{"approval":{"node":"Gate","run":0}}}]}}
{"error":{"message":"no"}}
{"outputs":[[{"json":{"output":1}}]]}`,
		`{"wait":{"kind":"children","children":{"runs":[{"workflowId":"a"},{"workflowId":"b"}],"sequential":true}}}
{"status":"error","error":{"message":"x"}}
{"status":"success","outputs":[[{"json":{}}],null]}`,
		`{"wait":{"kind":"time","until":5}}
{}`,
		`{"outputs":[[{"json":{"error":"soft"}}],[{"json":{},"error":{"message":"m"},"pairedItem":[1,{"item":9,"input":3}]}]]}`,
		`{"error":{"message":"boom","notRetryable":true}}`,
		`{"subRuns":[{"node":"Nowhere","type":"ai_tool"}],"context":{"x":1},"outputs":[]}`,
	} {
		f.Add([]byte(seed))
	}
	w, err := sketch(`
Start: trigger
A: node outputs=2 onError=continueErrorOutput
Agent: agent retry
Gate: gateHitlTool
Pay: tool
T: tool onError=continueErrorOutput
M: node
Start -> Agent
Agent -> A
A -> M/0
A/1 -> M/1
Start -> M/2
Gate ~> Agent
Pay ~> Gate
T ~> Agent
`)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		x := newExecution(w)
		if _, err := x.apply(engine.Started{At: x.now}); err != nil {
			t.Fatal(err)
		}
		lines := bytes.SplitN(data, []byte("\n"), 40)
		for _, line := range lines {
			x.now += 7
			ev := fuzzEvent(x, line)
			if ev == nil {
				continue
			}
			if _, err := x.apply(ev); err != nil {
				t.Fatalf("%#v: %v", ev, err)
			}
		}
		if _, err := x.apply(engine.CancelRequested{At: x.now}); err != nil {
			t.Fatal(err)
		}
		if !x.state.Meta.Status.Finished() {
			t.Fatalf("canceled and %s", x.state.Meta.Status)
		}
	})
}

// fuzzEvent makes a line the answer to what the execution has waited for longest;
// nil when it cannot be read as one, as such a message would be refused.
func fuzzEvent(x *execution, line []byte) engine.Event {
	var oldest *engine.OpenJob
	for _, j := range x.state.Jobs {
		if oldest == nil || j.DispatchedAt < oldest.DispatchedAt || j.DispatchedAt == oldest.DispatchedAt && j.ID < oldest.ID {
			oldest = j
		}
	}
	if oldest != nil {
		if oldest.RetryAt != 0 {
			return engine.TimerFired{At: x.now, Timer: "retry:" + string(oldest.ID)}
		}
		var res engine.Result
		if json.Unmarshal(line, &res) != nil {
			return nil
		}
		return engine.NodeFinished{At: x.now, Job: oldest.ID, Result: res}
	}
	for _, p := range x.state.ParkedInOrder() {
		switch p.Wait.Kind {
		case engine.WaitApproval:
			var d engine.Decision
			if json.Unmarshal(line, &d) != nil {
				return nil
			}
			return engine.Resumed{At: x.now, Token: p.Token, Decision: &d}
		case engine.WaitWebhook:
			if !json.Valid(line) {
				return nil
			}
			return engine.Resumed{At: x.now, Token: p.Token, Data: line}
		case engine.WaitChildren:
			var r engine.ChildResult
			if json.Unmarshal(line, &r) != nil {
				return nil
			}
			return engine.ChildFinished{At: x.now, Token: p.Token, Index: len(x.state.Children[p.Token]), Result: r}
		default:
			return engine.TimerFired{At: x.now, Timer: "wait:" + p.Token}
		}
	}
	return nil
}
