package engine

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/reprise-engine/reprise/pkg/workflow"
)

func TestOverlay(t *testing.T) {
	for _, c := range []struct{ name, base, over, want string }{
		{"new keys come last", `{"a":1}`, `{"b":2}`, `{"a":1,"b":2}`},
		{"a key keeps its place and takes the new value", `{"a":1,"b":2}`, `{"a":3}`, `{"a":3,"b":2}`},
		{"escaped keys are the same keys", `{"a":1}`, `{"\u0061":2}`, `{"a":2}`},
		{"names with dots and wildcards are plain", `{"a.b*":1}`, `{"a.b*":{"x":[1]}}`, `{"a.b*":{"x":[1]}}`},
		{"no base", ``, `{"a":1}`, `{"a":1}`},
		{"what is no object counts as none", `[1]`, `"x"`, `{}`},
		{"text is kept as it is", `{"t":"<b> ü \u00fc"}`, `{}`, `{"t":"<b> ü \u00fc"}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := string(overlay(json.RawMessage(c.base), json.RawMessage(c.over))); got != c.want {
				t.Errorf("overlay(%s, %s) = %s, want %s", c.base, c.over, got, c.want)
			}
		})
	}
}

func TestIsErrorItem(t *testing.T) {
	for text, want := range map[string]bool{
		`{"error":"x"}`:                         true,
		`{"error":{"message":"x"}}`:             true,
		`{"error":"x","message":"m"}`:           true,
		`{"error":"x","details":[]}`:            true,
		`{"error":"x","other":1}`:               false,
		`{"error":false}`:                       false,
		`{"error":null}`:                        false,
		`{"error":""}`:                          false,
		`{"error":0}`:                           false,
		`{"error":1}`:                           true,
		`{"message":"m"}`:                       false,
		`{"nested":{"error":"x"}}`:              false,
		`{}`:                                    false,
		`{"message":"m","error":"x","other":1}`: false,
	} {
		if got := isErrorItem(workflow.Item{JSON: json.RawMessage(text)}); got != want {
			t.Errorf("isErrorItem(%s) = %v, want %v", text, got, want)
		}
	}
	if !isErrorItem(workflow.Item{JSON: json.RawMessage(`{"v":1}`), Error: json.RawMessage(`{"message":"m"}`)}) {
		t.Error("an item with an error is an error item")
	}
}

func TestTries(t *testing.T) {
	for _, c := range []struct {
		node  workflow.Node
		tries int
		wait  int64
	}{
		{workflow.Node{MaxTries: 4}, 1, 0},
		{workflow.Node{RetryOnFail: true}, 3, 1000},
		{workflow.Node{RetryOnFail: true, MaxTries: 1, WaitBetweenTries: 7}, 2, 7},
		{workflow.Node{RetryOnFail: true, MaxTries: 10, WaitBetweenTries: 9000}, 5, 5000},
		{workflow.Node{RetryOnFail: true, MaxTries: -1, WaitBetweenTries: -1}, 2, 0},
	} {
		if n, wait := tries(&c.node); n != c.tries || wait != c.wait {
			t.Errorf("tries(%+v) = %d, %d, want %d, %d", c.node, n, wait, c.tries, c.wait)
		}
	}
}

func TestRestoreRefusesWhatItCannotRead(t *testing.T) {
	knownFlags = []int{1, 2}
	defer func() { knownFlags = nil }()
	good := func() Tables {
		s := NewState(Meta{ID: "x", Flags: []int{1, 2}})
		s.Meta.Error = &NodeError{Message: "m"}
		tables, err := s.Tables()
		if err != nil {
			t.Fatal(err)
		}
		return tables
	}
	s, err := Restore(good())
	if err != nil {
		t.Fatal(err)
	}
	if want := []int{1, 2}; !reflect.DeepEqual(s.Meta.Flags, want) || s.Meta.Error == nil {
		t.Errorf("restored meta %+v, want flags %v and the error", s.Meta, want)
	}
	for _, c := range []struct {
		table       Table
		field, text string
	}{
		{TableMeta, fieldIdentity, `{`},
		{TableMeta, fieldIdentity, `{"flags":"one"}`},
		{TableMeta, fieldProgress, `[]`},
		{TableStack, "1", `{"seq":"x"}`},
		{TableRun, "A", `{}`},
		{TableRun, "-1:A", `{}`},
		{TableRun, "0:A", `[]`},
		{TableOpen, "job:x_1", `[]`},
		{TableOpen, "round:0:0:A", `[]`},
		{TableOpen, "join:1", `[]`},
		{TableOpen, "timer:x", `"soon"`},
		{TableOpen, "future:1", `{}`},
	} {
		tables := good()
		tables[c.table][c.field] = []byte(c.text)
		if _, err := Restore(tables); err == nil {
			t.Errorf("Restore took %s %s = %s", c.table, c.field, c.text)
		}
	}
	if _, err := Restore(Tables{}); err == nil {
		t.Error("Restore took no tables at all")
	}
}

// A state in the middle of a round, and each invariant broken in it.
func TestCheckFindsWhatIsBroken(t *testing.T) {
	for _, c := range []struct {
		name string
		harm func(*State)
		want string
	}{
		{"nothing", func(s *State) {}, ""},
		{"stack out of order", func(s *State) { s.Stack[0].Seq = s.Stack[1].Seq }, "not above"},
		{"number not given out", func(s *State) { s.Stack[1].Seq = 99 }, "not given out"},
		{"requester not found", func(s *State) { delete(s.resumes, RunRef{"Agent", 0}) }, "is not found"},
		{"two owners", func(s *State) { s.Stack[1].Run = 0 }, "belongs to"},
		{"lost job", func(s *State) { delete(s.Jobs, "x_1"); delete(s.Timers, "timeout:x_1") }, "belongs to nobody"},
		{"lost entry", func(s *State) { s.Stack = s.Stack[:1] }, "belongs to nobody"},
		{"lost requester", func(s *State) { s.Stack = s.Stack[1:] }, "belongs to nobody"},
		{"wrong count", func(s *State) { s.Rounds[RunRef{"Agent", 0}][0].Open = 1 }, "open calls"},
		{"round in the wrong place", func(s *State) { s.Rounds[RunRef{"Agent", 0}][0].Index = 1 }, "wrong place"},
		{"call not there", func(s *State) { s.Stack[1].Action = 5 }, "not there"},
		{"call of a job not there", func(s *State) { s.Jobs["x_1"].Entry.Round = 3 }, "not there"},
		{"reference to nothing", func(s *State) { s.Stack[0].Inputs = []Ref{{Node: "Start", Run: 4}} }, "no record"},
		{"timer not set", func(s *State) { delete(s.Timers, "timeout:x_1") }, "is not set"},
		{"timer of nothing", func(s *State) { s.Timers["retry:x_9"] = 1 }, "belongs to nothing"},
		{"index not given out", func(s *State) { s.Run["Start"][0].ExecutionIndex = 50 }, "not given out"},
		{"over with jobs", func(s *State) { s.Meta.Status = StatusSuccess }, "is over and has"},
		{"over with something open", func(s *State) {
			s.Meta.Status, s.Jobs, s.Timers = StatusSuccess, map[JobID]*OpenJob{}, map[string]int64{}
			for _, runs := range s.Run {
				for _, r := range runs {
					if r != nil {
						r.Status = StatusSuccess
					}
				}
			}
			s.Rounds[RunRef{"Agent", 0}][0].Open = 0
		}, "still open"},
		{"waits for nothing", func(s *State) {
			*s = *NewState(Meta{ID: "x", Status: StatusRunning})
		}, "waits for nothing"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m, s := midRound(t)
			c.harm(s)
			err := m.Check(s)
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("Check = %v, want %q", err, c.want)
			}
		})
	}
}

type anyType struct{}

func (anyType) Lookup(name string, _ float64) (*workflow.Spec, bool) {
	return &workflow.Spec{Type: name, Trigger: name == "trigger", ToolNode: name == "tool"}, true
}

// midRound is an execution whose Agent waits for two calls of T, one of them
// in flight.
func midRound(t *testing.T) (*Machine, *State) {
	t.Helper()
	w, err := workflow.Parse([]byte(`{"settings":{"executionOrder":"v1","toolExecution":"sequential"},"nodes":[
		{"name":"Start","type":"trigger","typeVersion":1,"position":[0,0],"parameters":{}},
		{"name":"Agent","type":"agent","typeVersion":1,"position":[1,0],"parameters":{}},
		{"name":"T","type":"tool","typeVersion":1,"position":[1,1],"parameters":{},"timeout":5}],
		"connections":{"Start":{"main":[[{"node":"Agent","type":"main","index":0}]]},
		"T":{"ai_tool":[[{"node":"Agent","type":"ai_tool","index":0}]]}}}`))
	if err != nil {
		t.Fatal(err)
	}
	m, s := New(w, anyType{}), NewState(Meta{ID: "x"})
	call := Action{NodeName: "T", Input: json.RawMessage(`{}`)}
	for _, ev := range []Event{
		Started{At: 1},
		NodeFinished{At: 2, Job: "x_0", Result: Result{Request: &Request{Actions: []Action{call, call}}}},
	} {
		if _, err := m.Apply(s, ev); err != nil {
			t.Fatal(err)
		}
	}
	return m, s
}

func TestApplyUnknownEvent(t *testing.T) {
	m, s := midRound(t)
	if _, err := m.Apply(s, nil); err == nil {
		t.Error("Apply took an event it does not know")
	}
}

func TestRunData(t *testing.T) {
	_, s := midRound(t)
	if n := s.Runs("Start"); n != 1 {
		t.Errorf("Runs(Start) = %d, want 1", n)
	}
	if n := s.Runs("T"); n != 0 {
		t.Errorf("Runs(T) = %d, want 0: its calls are reserved and have not ended", n)
	}
	if n := s.Runs("Agent"); n != 0 {
		t.Errorf("Runs(Agent) = %d, want 0", n)
	}
	if items, ok := s.Items("Start", 0, 0); !ok || len(items) != 1 {
		t.Errorf("Items(Start, 0, 0) = %v, %v, want one item", items, ok)
	}
	if items, ok := s.Items("Start", 0, 3); !ok || items != nil {
		t.Errorf("Items(Start, 0, 3) = %v, %v, want none of an existing run", items, ok)
	}
	if _, ok := s.Items("Agent", 0, 0); ok {
		t.Error("Items(Agent, 0, 0) is there before the Agent has ended")
	}
	if got := s.Sources("T", 0); len(got) != 1 || got[0].PreviousNode != "Agent" {
		t.Errorf("Sources(T, 0) = %v, want the Agent", got)
	}
	if got := s.Sources("T", 9); got != nil {
		t.Errorf("Sources(T, 9) = %v, want none", got)
	}
}

// The stored and exported forms are n8n's where n8n has them.
func TestExportIsN8nsShape(t *testing.T) {
	m, s := midRound(t)
	if _, err := m.Apply(s, CancelRequested{At: 9, Reason: "enough"}); err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(s.RunExecutionData())
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"id":"x","status":"canceled","startedAt":1,"stoppedAt":9,"finished":false,"data":{"resultData":{"runData":{` +
		`"Agent":[{"startTime":1,"executionTime":1,"executionIndex":1,"executionStatus":"canceled","source":[{"previousNode":"Start","previousNodeOutput":0,"previousNodeRun":0}],"metadata":{"nodeWasResumed":true,"rounds":1}}],` +
		`"Start":[{"startTime":1,"executionTime":0,"executionIndex":0,"executionStatus":"success","source":[],"data":{"main":[[{"json":{},"pairedItem":{"item":0}}]]}}],` +
		`"T":[{"startTime":2,"executionTime":7,"executionIndex":2,"executionStatus":"canceled","source":[{"previousNode":"Agent","previousNodeOutput":0,"previousNodeRun":0}],` +
		`"inputOverride":{"ai_tool":[[{"json":{},"pairedItem":{"item":0,"sourceOverwrite":{"previousNode":"Start","previousNodeOutput":0,"previousNodeRun":0}}}]]},` +
		`"metadata":{"preserveSourceOverwrite":true,"preservedSourceOverwrite":{"previousNode":"Start","previousNodeOutput":0,"previousNodeRun":0},"round":0}},` +
		`{"startTime":0,"executionTime":0,"executionIndex":3,"executionStatus":"canceled","source":[{"previousNode":"Agent","previousNodeOutput":0,"previousNodeRun":0}],` +
		`"inputOverride":{"ai_tool":[[{"json":{},"pairedItem":{"item":0,"sourceOverwrite":{"previousNode":"Start","previousNodeOutput":0,"previousNodeRun":0}}}]]},` +
		`"metadata":{"preserveSourceOverwrite":true,"preservedSourceOverwrite":{"previousNode":"Start","previousNodeOutput":0,"previousNodeRun":0},"round":0}}]},` +
		`"lastNodeExecuted":"Start","error":{"message":"enough","name":"ManualExecutionCancelledError","reason":"canceled"}}}}`
	if string(text) != want {
		t.Errorf("export\n got %s\nwant %s", text, want)
	}
}

func TestFormatTrace(t *testing.T) {
	for _, c := range []struct {
		live Live
		want string
	}{
		{Live{Kind: LiveNodeStarted, Node: "Calculator", Stack: []string{"Shout", "AI Agent(resume: 2 results)"}},
			"▶ Calculator stack after pop: [Shout, AI Agent(resume: 2 results)]"},
		{Live{Kind: LiveNodeStarted, Node: "Start", Stack: []string{}}, "▶ Start      stack after pop: []"},
		{Live{Kind: LiveNodeFinished, Node: "Start", Type: "main", Status: StatusSuccess, Stack: []string{"Question"}},
			"✓ Start      output as main             stack: [Question]"},
		{Live{Kind: LiveNodeFinished, Node: "Model", Type: "ai_languageModel", Status: StatusSuccess, Stack: []string{}},
			"✓ Model      output as ai_languageModel stack: []"},
		{Live{Kind: LiveNodeFinished, Node: "Übung", Type: "ai_tool", Status: StatusError, Error: "boom"},
			"✗ Übung      output as ai_tool          stack: [] error: boom"},
		{Live{Kind: LiveExecutionFinished, Status: StatusSuccess}, ""},
	} {
		if got := FormatTrace(c.live, 10); got != c.want {
			t.Errorf("FormatTrace(%+v)\n got %q\nwant %q", c.live, got, c.want)
		}
	}
}
