package ai

import (
	"bytes"
	"fmt"

	"github.com/segmentio/encoding/json"

	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/nodes/jsonobject"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// roundState is the metadata of a request: what happened in the slice that
// made it, and nothing of earlier ones. The package comment shows it.
type roundState struct {
	Items []itemState `json:"items,omitempty"`
}

type itemState struct {
	Item  int     `json:"item"`
	Turns []*turn `json:"turns,omitempty"`
	Final *final  `json:"final,omitempty"`
}

// request asks for the tools of all items; nil when no item waits for one.
func (r *agentRun) request() (*engine.Request, error) {
	request := &engine.Request{}
	var state roundState
	for _, item := range r.items {
		request.Actions = append(request.Actions, item.pending...)
		if s, ok := item.state(); ok {
			state.Items = append(state.Items, s)
		}
	}
	if len(request.Actions) == 0 {
		return nil, nil
	}
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(state); err != nil {
		return nil, err
	}
	request.Metadata = bytes.TrimSpace(b.Bytes())
	return request, nil
}

// state is what this slice added to the item.
func (it *agentItem) state() (itemState, bool) {
	s := itemState{Item: it.index}
	asked := map[string]string{}
	for _, action := range it.pending {
		asked[action.ID] = string(action.Input)
	}
	for _, t := range it.turns[it.fresh:] {
		stored := &turn{Text: t.Text, Answers: t.Answers}
		for _, c := range t.Calls {
			if asked[c.ID] == c.Arguments {
				c.Arguments = "" // the action has them; a gate's has them in another form
			}
			stored.Calls = append(stored.Calls, c)
		}
		s.Turns = append(s.Turns, stored)
	}
	if it.final != nil && !it.finishedBefore {
		s.Final = it.final
	}
	return s, len(s.Turns) > 0 || s.Final != nil
}

// replay rebuilds the items from the rounds of the run.
func (r *agentRun) replay() error {
	for n, round := range r.call.Rounds {
		var state roundState
		if err := json.Unmarshal(round.Metadata, &state); err != nil {
			return fmt.Errorf("read the agent's round %d: %w", n, err)
		}
		results := make(map[resultKey]*engine.ActionResult, len(round.Results))
		for i := range round.Results {
			result := &round.Results[i]
			results[resultKey{result.Action.Metadata.ItemIndex, result.Action.ID}] = result
		}
		for _, s := range state.Items {
			if s.Item < 0 || s.Item >= len(r.items) {
				return fmt.Errorf("read the agent's round %d: it has an item %d of %d", n, s.Item, len(r.items))
			}
			if err := r.items[s.Item].restore(s, results); err != nil {
				return fmt.Errorf("read the agent's round %d: %w", n, err)
			}
		}
		for i := range round.Results {
			action := &round.Results[i].Action
			if item := action.Metadata.ItemIndex; action.Metadata.Approval != nil && item >= 0 && item < len(r.items) {
				r.items[item].approvedResult(&round.Results[i])
			}
		}
	}
	for _, item := range r.items {
		item.fresh = len(item.turns)
		item.pending, item.approved = item.approved, nil
		item.complete()
	}
	return nil
}

// approvals reports whether calls that a person allowed are to be run now. They are
// run before any model is asked: the answers of the turn are not complete without them.
func (r *agentRun) approvals() bool {
	for _, item := range r.items {
		if len(item.pending) > 0 {
			return true
		}
	}
	return false
}

// complete gives every call that has no answer and gets none a last one.
func (it *agentItem) complete() {
	if len(it.turns) == 0 {
		return
	}
	open := map[string]bool{}
	for _, action := range it.pending {
		open[action.ID] = true
	}
	for _, t := range it.turns {
		for _, c := range t.Calls {
			if _, answered := t.Answers[c.ID]; !answered && !open[c.ID] {
				t.Answers[c.ID] = `{"error":"There is no result of this call"}`
			}
		}
	}
}

type resultKey struct {
	item int
	id   string
}

func (it *agentItem) restore(s itemState, results map[resultKey]*engine.ActionResult) error {
	for _, t := range s.Turns {
		if t.Answers == nil {
			t.Answers = map[string]string{}
		}
		for i := range t.Calls {
			c := &t.Calls[i]
			result := results[resultKey{s.Item, c.ID}]
			if result == nil {
				continue
			}
			if c.Arguments == "" {
				c.Arguments = string(plainJSON(result.Action.Input))
			}
			if err := it.answered(t, result); err != nil {
				return err
			}
		}
		it.turns = append(it.turns, t)
	}
	if s.Final != nil {
		it.final, it.finishedBefore = s.Final, true
	}
	return nil
}

// observation is a tool's record as the model reads it: the items of its first
// output that has any, else its error, else an empty text (in quotes, as n8n
// writes it).
func observation(record *engine.Record) string {
	if record == nil {
		return `""`
	}
	outputs := record.Data[workflow.Tool]
	if len(outputs) > 0 && len(outputs[0]) > 0 {
		return jsonOf(outputs[0])
	}
	if record.Error != nil {
		text := `{"error":` + jsonobject.Quote(record.Error.Message)
		if record.Error.Name != "" {
			text += `,"errorType":` + jsonobject.Quote(record.Error.Name)
		}
		return text + "}"
	}
	for _, output := range outputs {
		if len(output) > 0 {
			return jsonOf(output)
		}
	}
	return `""`
}

func jsonOf(items workflow.Items) string {
	b := []byte{'['}
	for i, item := range items {
		if i > 0 {
			b = append(b, ',')
		}
		if len(item.JSON) == 0 {
			b = append(b, "{}"...)
			continue
		}
		b = append(b, plainJSON(item.JSON)...)
	}
	return string(append(b, ']'))
}

// steps are the answered calls as n8n shows them in intermediateSteps.
func (it *agentItem) steps() string {
	b := []byte{'['}
	for _, t := range it.turns {
		for _, c := range t.Calls {
			if len(b) > 1 {
				b = append(b, ',')
			}
			b = append(b, it.step(c, t.Answers[c.ID])...)
		}
	}
	return string(append(b, ']'))
}

func (it *agentItem) step(c toolCall, answer string) string {
	caption, tool, input := c.Name, c.Name, c.replayed()
	if t := it.run.box.find(c.Name); t != nil && t.node != "" {
		caption, tool = t.node, t.name
		if t.gate != nil {
			input, _, _ = t.gate.unwrap(input)
		}
	}
	arguments := jsonobject.Parse(input)
	if !arguments.Has("id") {
		arguments.Set("id", jsonobject.Quote(c.ID))
	}
	name, id := jsonobject.Quote(tool), jsonobject.Quote(c.ID)
	calls := `[{"id":` + id + `,"name":` + name + `,"args":` + arguments.String() + `,"type":"tool_call"}]`
	body := `"content":[],"tool_calls":` + calls + `,"invalid_tool_calls":[],"additional_kwargs":{},"response_metadata":{}`
	return `{"action":{"tool":` + name + `,"toolInput":` + input +
		`,"log":` + jsonobject.Quote("Calling "+caption) +
		`,"messageLog":[{"lc_serializable":true,"lc_kwargs":{` + body + `},"lc_namespace":["langchain_core","messages"],` + body + `,"type":"ai"}]` +
		`,"toolCallId":` + id + `,"type":"tool_call"},"observation":` + jsonobject.Quote(answer) + `}`
}
