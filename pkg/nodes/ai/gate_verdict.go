package ai

import (
	"fmt"

	"github.com/tidwall/gjson"

	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/nodes/jsonobject"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// verdict is how a question about a call was decided.
type verdict struct {
	outcome  engine.Outcome
	feedback string
}

// verdictOf reads a gate's record. The engine's own outcome counts; the answer of a
// gate that did not wait for a decision (pinned data, say) is in its item, in one of the
// two shapes that n8n's gates give. An answer that says nothing is no approval.
func verdictOf(record *engine.Record) verdict {
	v := verdict{outcome: engine.OutcomeDenied}
	var item gjson.Result
	if outputs := record.Data[workflow.Tool]; len(outputs) > 0 && len(outputs[0]) > 0 {
		item = gjson.ParseBytes(outputs[0][0].JSON)
	}
	if item.Get("approved").Type == gjson.True || item.Get("data.approved").Type == gjson.True {
		v.outcome = engine.OutcomeApproved
	}
	v.feedback = firstText(item.Get("chatInput"), item.Get("data.chatInput"))
	if m := record.Metadata; m != nil && m.Outcome != "" {
		v.outcome = m.Outcome
		if m.Decision != nil && m.Decision.Feedback != "" {
			v.feedback = m.Decision.Feedback
		}
	}
	return v
}

func firstText(values ...gjson.Result) string {
	for _, value := range values {
		if value.Type == gjson.String && value.Str != "" {
			return value.Str
		}
	}
	return ""
}

// refusal is the answer to a call that was not approved. The words for a
// person's no are n8n's; a question that nobody answered is told apart.
func (v verdict) refusal(node, id string) string {
	call := fmt.Sprintf("tool call to %s (id: %s)", node, id)
	var text string
	switch {
	case v.outcome == engine.OutcomeExpired:
		text = "The approval of the " + call + " expired before anybody decided. The tool was not run."
	case v.outcome == engine.OutcomeCanceled:
		text = "The approval of the " + call + " was withdrawn before anybody decided. The tool was not run."
	case v.feedback != "":
		text = "The user reviewed your planned " + call + ` and provided feedback: "` + v.feedback + `". The tool is still available if needed.`
	default:
		text = "User rejected the " + call + ". STOP what you are doing and wait for the user to tell you how to proceed. The tool is still available if needed."
	}
	return `[{"output":` + jsonobject.Quote(text) + `}]`
}

// answered takes the result of a call of the turn: a tool's, or a gate's.
func (it *agentItem) answered(t *turn, result *engine.ActionResult) error {
	about, err := asked(&result.Action)
	if err != nil {
		return fmt.Errorf("read the question about call %s: %w", result.Action.ID, err)
	}
	if about == nil || result.Record == nil || result.Record.Error != nil {
		t.Answers[result.Action.ID] = observation(result.Record)
		return nil
	}
	if v := verdictOf(result.Record); v.outcome != engine.OutcomeApproved {
		t.Answers[result.Action.ID] = v.refusal(about.Node, result.Action.ID)
		return nil
	}
	it.approved = append(it.approved, approvedCall(result, about))
	return nil
}

// approvedResult takes the result of a call that a person allowed. Its turn is
// of an earlier round.
func (it *agentItem) approvedResult(result *engine.ActionResult) {
	for i, a := range it.approved {
		if a.ID == result.Action.ID {
			it.approved = append(it.approved[:i:i], it.approved[i+1:]...)
			break
		}
	}
	for i := len(it.turns) - 1; i >= 0; i-- {
		for _, c := range it.turns[i].Calls {
			if c.ID == result.Action.ID {
				it.turns[i].Answers[c.ID] = observation(result.Record)
				return
			}
		}
	}
}
