package ai

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/node"
	"github.com/reprise-engine/reprise/pkg/nodes/fromai"
	"github.com/reprise-engine/reprise/pkg/nodes/jsonobject"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// gateSuffix ends the types of nodes that stand between a tool and the Agent
// and ask a person before the tool is run.
const gateSuffix = "HitlTool"

// Members of a gated tool's arguments towards the model, and of what its gate
// is given.
const (
	toolParameters = "toolParameters"
	hitlParameters = "hitlParameters"
	toolMember     = "tool"
)

// gate is what a tool behind a gate has beside its face.
type gate struct {
	node string
	// own is the schema of the tool's arguments, asks that of what the gate takes from
	// the model.
	own, asks json.RawMessage
	// named tools are run with their name beside the arguments, see takesName.
	named bool
}

func isGate(sub *node.Call) bool { return strings.HasSuffix(sub.Node.Type, gateSuffix) }

// describeGated are the tools behind a gate, the last connected first. The model sees
// them under their own names and never the gate.
func describeGated(ctx context.Context, user, sub *node.Call) ([]*tool, error) {
	asks, err := fromai.Schema(sub.Node.Parameters)
	if err != nil {
		return nil, operationError(fmt.Sprintf("The parameters of %q are not understood", sub.Node.Name), err.Error())
	}
	var tools []*tool
	behind := sub.SubNodes[workflow.Tool]
	for i := len(behind) - 1; i >= 0; i-- {
		if isGate(behind[i]) {
			return nil, operationError(fmt.Sprintf("%q cannot stand behind the approval %q", behind[i].Node.Name, sub.Node.Name),
				"Connect the tool to one approval, and that to the Agent.")
		}
		t, err := describe(ctx, user, behind[i])
		if err != nil {
			return nil, err
		}
		t.gate = &gate{node: sub.Node.Name, own: t.schema, asks: asks, named: takesName(behind[i], t.schema)}
		t.schema = t.gate.wrap()
		tools = append(tools, t)
	}
	return tools, nil
}

// undecided returns an error when a tool is connected both through a gate and
// directly: whether a call of it needs an approval cannot be told.
func (b *toolbox) undecided() error {
	free := map[string]bool{}
	for _, t := range b.tools {
		if t.gate == nil && t.node != "" {
			free[t.node] = true
		}
	}
	for _, t := range b.tools {
		if t.gate != nil && free[t.node] {
			return operationError(fmt.Sprintf("The tool %q is connected both directly and through the approval %q", t.node, t.gate.node),
				"Remove one of the two connections: an approval that can be gone around protects nothing.")
		}
	}
	return nil
}

// rootRef is a reference from the root of the schema it stands in.
var rootRef = regexp.MustCompile(`("\$ref"\s*:\s*")#`)

// wrap is the schema towards the model: the tool's arguments in one member, as
// n8n has it, and what the gate wants to know in another.
func (g *gate) wrap() json.RawMessage {
	var properties jsonobject.Object
	properties.Set(toolParameters, rootRef.ReplaceAllString(string(g.own), "${1}#/properties/"+toolParameters))
	properties.Set(hitlParameters, string(g.asks))
	required := []string{toolParameters}
	if gjson.GetBytes(g.asks, "required.0").Exists() {
		required = append(required, hitlParameters)
	}
	return jsonobject.Schema(properties, required, true).JSON()
}

// unwrap splits a model's arguments into those of the tool and those of the
// gate. Models also write the tool's arguments without the wrapper.
func (g *gate) unwrap(arguments string) (own, asked string, wrapped bool) {
	o := jsonobject.Parse(arguments)
	own, asked = o.Get(toolParameters), o.Get(hitlParameters)
	if asked == "" {
		asked = "{}"
	}
	if inner := gjson.Parse(own); inner.Type == gjson.String && isObject(inner.Str) {
		own = inner.Str // an object that was written as a text
	}
	if own != "" && !gjson.GetBytes(g.own, "properties."+toolParameters).Exists() {
		return own, asked, true
	}
	var plain jsonobject.Object
	for _, m := range o.Members() {
		if m.Key != hitlParameters || gjson.GetBytes(g.own, "properties."+hitlParameters).Exists() {
			plain.Set(m.Key, m.Value)
		}
	}
	return plain.String(), asked, false
}

// problem says what is wrong with a model's arguments, "" when a person may be
// asked about them.
func (g *gate) problem(own, asked string, wrapped bool) string {
	in := ""
	if wrapped {
		in = "in " + toolParameters + ": "
	}
	for _, part := range []struct {
		in            string
		schema, value json.RawMessage
	}{{in, g.own, json.RawMessage(own)}, {"in " + hitlParameters + ": ", g.asks, json.RawMessage(asked)}} {
		problem, err := violations(part.schema, part.value)
		if err != nil {
			return "the tool's schema is broken: " + err.Error()
		}
		if problem != "" {
			return part.in + problem
		}
	}
	switch o := jsonobject.Parse(own); {
	case !isObject(own):
		return in + "the arguments are not a JSON object"
	case repeats(o):
		return in + "an argument is given twice" // which of them counts is not for a person to guess
	}
	return ""
}

func repeats(o jsonobject.Object) bool {
	seen := map[string]bool{}
	for _, m := range o.Members() {
		if seen[m.Key] {
			return true
		}
		seen[m.Key] = true
	}
	return false
}

// hitl comes back with the answer of a gate; its names are n8n's.
type hitl struct {
	Node     string `json:"gatedToolNodeName"`
	ToolName string `json:"toolName"`
	Named    bool   `json:"named,omitempty"`
}

type gateExtra struct {
	HITL *hitl `json:"hitl,omitempty"`
}

// question is the request to ask a person about a call. A call with bad
// arguments is refused in the tool's name, and nobody is asked.
func (it *agentItem) question(t *tool, c toolCall) (*engine.Action, error) {
	own, asked, wrapped := t.gate.unwrap(c.Arguments)
	action := newAction(c.ID, t, it.index)
	if problem := t.gate.problem(own, asked, wrapped); problem != "" {
		if !isObject(own) {
			own = "{}"
		}
		action.Input, action.Error = json.RawMessage(own), badArguments(t, problem)
		return action, nil
	}
	input := jsonobject.Parse(asked)
	input.Set(toolParameters, string(plainJSON([]byte(own)))) // as it will come back, see approvedCall
	input.Set(toolMember, jsonobject.Quote(t.name))
	action.NodeName, action.Input = t.gate.node, input.JSON()
	extra, err := json.Marshal(gateExtra{&hitl{Node: t.node, ToolName: t.name, Named: t.gate.named}})
	action.Metadata.Extra = extra
	return action, err
}

// asked returns what a gate's answer is about, nil when the action was no
// question.
func asked(action *engine.Action) (*hitl, error) {
	if len(action.Metadata.Extra) == 0 {
		return nil, nil
	}
	var extra gateExtra
	err := json.Unmarshal(action.Metadata.Extra, &extra)
	return extra.HITL, err
}

// approvedCall requests the tool behind a gate with exactly the arguments that
// were shown, under the call's own id. Encoders on the way may have escaped < and > in
// them; the engine compares texts.
func approvedCall(result *engine.ActionResult, about *hitl) engine.Action {
	shown := gjson.GetBytes(result.Action.Input, toolParameters)
	input := json.RawMessage(plainJSON([]byte(shown.Raw)))
	if about.Named {
		var named jsonobject.Object
		named.Set(toolMember, jsonobject.Quote(about.ToolName))
		named.Overlay(jsonobject.Parse(input), false, nil)
		input = named.JSON()
	}
	return engine.Action{
		ActionType: "ExecutionNodeAction", NodeName: about.Node, Input: input, Type: workflow.Tool, ID: result.Action.ID,
		Metadata: engine.ActionMetadata{
			ItemIndex: result.Action.Metadata.ItemIndex, ToolName: about.ToolName,
			Approval: &engine.RunRef{Node: result.Action.NodeName, Run: result.RunIndex},
		},
	}
}

// takesName reports whether a tool may be given its own name as the argument
// "tool", which n8n adds to an approved call and its run data show. It is for nodes
// that serve several tools; to others it is an argument nobody approved, which reaches
// whatever the node does with all of them. So only nodes get it that take out the
// arguments they know: those of one text, and those whose arguments are read by $fromAI
// and that look at nothing else of their input.
func takesName(sub *node.Call, schema json.RawMessage) bool {
	if gjson.GetBytes(schema, "properties."+toolMember).Exists() {
		return false
	}
	if string(schema) == string(fromai.TextSchema) {
		return true
	}
	own, err := fromai.Schema(sub.Node.Parameters)
	if err != nil || string(own) != string(schema) || !gjson.GetBytes(own, "properties.@keys.0").Exists() {
		return false
	}
	return !looksAtInput.Match(sub.Node.Parameters)
}

// looksAtInput finds expressions that read an item as a whole or by a name.
var looksAtInput = regexp.MustCompile(`\$(json|input|item|data)\b`)
