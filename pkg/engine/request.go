package engine

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/reprise-engine/reprise/pkg/workflow"
)

const (
	actionExecuteNode = "ExecutionNodeAction"
	// gateSuffix ends the types of nodes that stand between a tool and the
	// Agent and ask a person. The Agent requests the gate and, when the answer is
	// yes, the tool behind it.
	gateSuffix = "HitlTool"
)

// validate checks a whole request before anything is reserved (R8). What is
// wrong is the requester's failure.
func (t *tx) validate(e *Entry, q *Request) *NodeError {
	bad := func(format string, args ...any) *NodeError {
		return &NodeError{Message: fmt.Sprintf(format, args...), Reason: ReasonBadRequest, Node: e.Node}
	}
	if len(q.Actions) == 0 {
		return bad("Node %q sent an empty engine request", e.Node)
	}
	tools := t.tools(e.Node)
	approvals := t.s.approvalsUsed(e.RunRef())
	for _, a := range q.Actions {
		gates, connected := tools[a.NodeName]
		switch {
		case t.workflow.Node(a.NodeName) == nil:
			return bad("Workflow does not contain a node with the name of %q.", a.NodeName)
		case a.ActionType != "" && a.ActionType != actionExecuteNode:
			return bad("Node %q sent an engine request with the unknown action type %q", e.Node, a.ActionType)
		case !connected || a.Type != "" && a.Type != workflow.Tool:
			return bad("Node %q asked for %q, which is not connected to it as a tool", e.Node, a.NodeName)
		case !isObject(a.Input):
			return bad("Node %q asked for %q with arguments that are not an object", e.Node, a.NodeName)
		case len(t.s.Run[a.NodeName]) >= t.limits.RunsPerNode:
			return t.tooManyRuns(a.NodeName)
		case gates == nil && a.Metadata.Approval == nil || a.Error != nil:
		case a.Metadata.Approval == nil:
			return bad("Node %q asked for %q, which is connected through an approval and was not approved", e.Node, a.NodeName)
		case approvals[*a.Metadata.Approval]:
			return bad("Node %q asked for %q with an approval that was used before", e.Node, a.NodeName)
		case !gates[a.Metadata.Approval.Node] || !t.approved(e.RunRef(), a):
			return bad("Node %q asked for %q with an approval that is not for this call", e.Node, a.NodeName)
		default:
			approvals[*a.Metadata.Approval] = true
		}
	}
	return nil
}

// approvalsUsed are the approvals that a requester's run has spent: each allows
// one call.
func (s *State) approvalsUsed(caller RunRef) map[RunRef]bool {
	used := map[RunRef]bool{}
	for _, round := range s.Rounds[caller] {
		for _, c := range round.Calls {
			if ref := c.Action.Metadata.Approval; ref != nil {
				used[*ref] = true
			}
		}
	}
	return used
}

// approved reports whether a person allowed just this call: the approval is the
// answer to a question that the same run asked, about the same call id and the
// same arguments.
func (t *tx) approved(caller RunRef, a Action) bool {
	ref := *a.Metadata.Approval
	r := t.s.Record(ref)
	if r == nil || r.open() || r.Metadata == nil ||
		r.Metadata.Outcome != OutcomeApproved && !(r.Metadata.Outcome == "" && t.pinned(t.workflow.Node(ref.Node)) && saysApproved(r)) {
		return false
	}
	for _, round := range t.s.Rounds[caller] {
		for _, c := range round.Calls {
			if c.Action.NodeName == ref.Node && c.Run == ref.Run {
				return c.Action.ID == a.ID && sameArguments(c.Action.Input, a.Input)
			}
		}
	}
	return false
}

// saysApproved reads the decision in the answer of a gate that asked nobody as its
// answer is pinned, in both forms that n8n knows.
func saysApproved(r *Record) bool {
	outputs := r.Data[workflow.Tool]
	if len(outputs) == 0 || len(outputs[0]) == 0 {
		return false
	}
	item := gjson.ParseBytes(outputs[0][0].JSON)
	return item.Get("approved").Type == gjson.True || item.Get("data.approved").Type == gjson.True
}

// sameArguments compares what a gate showed with what is to be run. The tool's
// name may be added, which n8n does, as the gate knows it.
func sameArguments(asked, given json.RawMessage) bool {
	shown := gjson.GetBytes(asked, "toolParameters")
	name := gjson.GetBytes(asked, "tool")
	want := map[string]any{}
	shown.ForEach(func(key, value gjson.Result) bool {
		want[key.String()] = plainValue(value.Raw)
		return true
	})
	same := true
	gjson.ParseBytes(given).ForEach(func(key, value gjson.Result) bool {
		k := key.String()
		expected, ok := want[k]
		switch {
		case ok:
			same = reflect.DeepEqual(expected, plainValue(value.Raw))
			delete(want, k)
		default:
			same = k == "tool" && name.Exists() && name.String() == value.String()
		}
		return same
	})
	return same && len(want) == 0
}

// plainValue is a JSON value for comparison: numbers as they are written, texts
// however they are escaped.
func plainValue(raw string) any {
	var v any
	d := json.NewDecoder(strings.NewReader(raw))
	d.UseNumber()
	if d.Decode(&v) != nil {
		return raw
	}
	return v
}

// isObject accepts absent arguments, which are none.
func isObject(raw json.RawMessage) bool {
	trimmed := strings.TrimSpace(string(raw))
	return trimmed == "" || trimmed == "null" || trimmed[0] == '{' && json.Valid(raw)
}

// tools names the nodes that are wired as tools to a requester, with nil, and
// those that only lead to it through gates, with these.
func (m *Machine) tools(requester string) map[string]map[string]bool {
	found := map[string]map[string]bool{}
	for _, name := range m.toolsOf(requester) {
		found[name] = nil
	}
	for _, gate := range m.toolsOf(requester) {
		n := m.workflow.Node(gate)
		if n == nil || !strings.HasSuffix(n.Type, gateSuffix) {
			continue
		}
		for _, name := range m.toolsOf(gate) {
			gates, known := found[name]
			if known && gates == nil {
				continue // connected directly too
			}
			if gates == nil {
				gates = map[string]bool{}
				found[name] = gates
			}
			gates[gate] = true
		}
	}
	return found
}

func (m *Machine) toolsOf(user string) []string {
	var names []string
	for _, origins := range m.workflow.Origins(user, workflow.Tool) {
		for _, o := range origins {
			names = append(names, o.Node)
		}
	}
	return names
}

// request opens a round (R2-R6): a record is reserved for every action, the
// requester goes back on the stack with its own entry, the tools above it in
// the order asked.
func (t *tx) request(job *OpenJob, res Result) {
	requester := job.Entry
	p := job.Progress
	requester.Kind, requester.Progress = EntryResume, &p
	caller := requester.RunRef()
	round := &OpenRound{
		Caller: caller, Index: len(t.s.Rounds[caller]), Metadata: res.Request.Metadata,
		SubRuns: job.SubRuns, Logs: job.Logs, Hints: res.Hints,
	}
	lineage := t.s.lineage(&requester)
	var entries []*Entry
	for i, a := range res.Request.Actions {
		if len(a.Input) == 0 || string(a.Input) == "null" {
			a.Input = json.RawMessage("{}")
		}
		a.ActionType, a.Type = actionExecuteNode, workflow.Tool
		e := &Entry{
			Node: a.NodeName, Kind: EntryTool,
			Source: []*workflow.Source{{PreviousNode: caller.Node, PreviousNodeRun: caller.Run}},
			Run:    t.reserve(a.NodeName), Caller: &caller, Round: round.Index, Action: i,
			Preserved: lineage.source,
		}
		if gate := a.Metadata.Approval; gate != nil {
			e.Source = []*workflow.Source{{PreviousNode: gate.Node, PreviousNodeRun: gate.Run}}
		}
		round.Calls = append(round.Calls, Call{Action: a, Run: e.Run})
		r := t.reserved(e, a, lineage.pair(a.Metadata.ItemIndex))
		t.record(e.Node, e.Run, r)
		if a.Error == nil {
			round.Open++
			entries = append(entries, e)
		}
	}
	t.putRound(round)
	t.push(&requester)
	for i := len(entries) - 1; i >= 0; i-- {
		t.push(entries[i])
	}
	for _, c := range round.Calls {
		if c.Action.Error != nil {
			t.refuse(c)
		}
	}
}

// reserved is the record of a tool call that has not begun (R4).
func (t *tx) reserved(e *Entry, a Action, paired workflow.PairedItem) *Record {
	round := e.Round
	return &Record{
		Status: StatusRunning,
		Source: e.Source,
		InputOverride: map[string][]workflow.Items{
			workflow.Tool: {{{JSON: a.Input, PairedItem: workflow.PairedItems{paired}}}},
		},
		Metadata: &RecordMetadata{
			PreserveSourceOverwrite: e.Preserved != nil, PreservedSourceOverwrite: e.Preserved,
			CallID: a.ID, Round: &round,
		},
	}
}

// refuse answers a call that the requester itself found to be wrong: the tool
// is not run, whatever it says about errors.
func (t *tx) refuse(c Call) {
	ref := RunRef{Node: c.Action.NodeName, Run: c.Run}
	r := *t.s.Record(ref)
	err := *c.Action.Error
	r.Status, r.Error, r.StartTime, r.ExecutionIndex = StatusError, &err, t.at, t.s.Meta.NextIndex
	r.Data = map[string][]workflow.Items{workflow.Tool: answerError(&err)}
	t.s.Meta.NextIndex++
	t.s.Meta.LastNode = ref.Node
	t.record(ref.Node, ref.Run, &r)
	t.tell(Live{Kind: LiveNodeStarted, Node: ref.Node, Run: ref.Run, Type: workflow.Tool})
	t.tell(Live{Kind: LiveNodeFinished, Node: ref.Node, Run: ref.Run, Type: workflow.Tool, Status: r.Status, Error: err.Message})
}

// answerError is the answer of a tool that failed: {"error": message} (R14).
func answerError(err *NodeError) []workflow.Items {
	return []workflow.Items{{{JSON: errorJSON(err.Message)}}}
}

func errorJSON(message string) json.RawMessage {
	text, _ := encode(map[string]string{"error": message}) // cannot fail
	return text
}

// Record returns the record of a run, nil when it has none yet.
func (s *State) Record(ref RunRef) *Record {
	if runs := s.Run[ref.Node]; ref.Run >= 0 && ref.Run < len(runs) {
		return runs[ref.Run]
	}
	return nil
}

// Action returns the call that a tool entry answers, nil for other entries.
func (s *State) Action(e *Entry) *Action {
	if e.Caller == nil {
		return nil
	}
	rounds := s.Rounds[*e.Caller]
	if e.Round >= len(rounds) || e.Action >= len(rounds[e.Round].Calls) {
		return nil
	}
	return &rounds[e.Round].Calls[e.Action].Action
}

// openRound is the requester's last round while it lacks answers, else nil.
func (s *State) openRound(caller RunRef) *OpenRound {
	rounds := s.Rounds[caller]
	if n := len(rounds); n > 0 && rounds[n-1].Open > 0 {
		return rounds[n-1]
	}
	return nil
}

// Answers returns the answered rounds of a requester's run, oldest first, with
// the answers in the order asked (R9). The records are the State's own and
// must not be changed.
func (s *State) Answers(caller RunRef) []Round {
	var rounds []Round
	for _, open := range s.Rounds[caller] {
		if open.Open > 0 {
			break
		}
		round := Round{Metadata: open.Metadata}
		for _, c := range open.Calls {
			ref := RunRef{Node: c.Action.NodeName, Run: c.Run}
			round.Results = append(round.Results, ActionResult{Action: c.Action, RunIndex: c.Run, Record: s.Record(ref)})
		}
		rounds = append(rounds, round)
	}
	return rounds
}

// callers lists the requesters with rounds, in order.
func (s *State) callers() []RunRef {
	names := map[string]RunRef{}
	for caller := range s.Rounds {
		names[fmt.Sprintf("%s#%09d", caller.Node, caller.Run)] = caller
	}
	var list []RunRef
	for _, name := range sortedKeys(names) {
		list = append(list, names[name])
	}
	return list
}
