package approval

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/node"
	"github.com/reprise-engine/reprise/pkg/nodes/toolname"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// Question is what a node asks a person.
type Question struct {
	Title, Text string
	// Approve and Deny label the buttons; without Deny there is one.
	Approve, Deny string
	// FreeText asks for a text instead of a decision.
	FreeText bool
	// Until is when the question expires; zero is never.
	Until time.Time
	// About is the tool call that is run after a yes; nil when it is none.
	About *ToolCall
}

// Wait is the node's answer "ask this and call me again".
func (q Question) Wait() *node.Result {
	asked := &engine.Question{
		Title: q.Title, Text: q.Text, Approve: q.Approve, Deny: q.Deny, FreeText: q.FreeText,
	}
	if q.About != nil {
		asked.Tool, asked.ToolName, asked.Arguments = q.About.Node, q.About.Name, q.About.Arguments
	}
	w := &engine.Wait{Kind: engine.WaitApproval, Question: asked}
	if !q.Until.IsZero() {
		w.Until = q.Until.UnixMilli()
	}
	return &node.Result{Result: engine.Result{Wait: w}}
}

// ToolCall is a tool call that a gate asks about.
type ToolCall struct {
	Node string // the tool node
	Name string // the tool's name, as the model wrote it
	// Arguments are the tool's, exactly as the gate was given them.
	Arguments json.RawMessage
}

// GatedCall is the call that a gate was called for. It fails with a
// *engine.NodeError when the gate was not called by an Agent or when the tool that is meant
// cannot be told: a person must not be shown one tool and allow another.
func GatedCall(ctx context.Context, call *node.Call) (*ToolCall, error) {
	if call.ToolArguments == nil {
		return nil, operationError(fmt.Sprintf("%q asks before a tool is run and cannot be run by itself", call.Node.Name),
			"Connect a tool to it, and connect it to an Agent as a tool.")
	}
	given := gjson.ParseBytes(call.ToolArguments)
	about := &ToolCall{Name: given.Get("tool").String(), Arguments: call.ToolArguments}
	if arguments := given.Get("toolParameters"); arguments.Exists() {
		about.Arguments = json.RawMessage(arguments.Raw)
	}
	tool, err := gatedTool(ctx, call, about.Name)
	if err != nil {
		return nil, err
	}
	about.Node = tool
	if about.Name == "" {
		about.Name = toolname.Legal(tool)
	}
	return about, nil
}

// repeated is what an Agent adds to the name of a tool that another has already.
var repeated = regexp.MustCompile(`_[0-9]+$`)

// gatedTool is the node of the tool that a model called by name.
func gatedTool(ctx context.Context, call *node.Call, name string) (string, error) {
	tools := call.SubNodes[workflow.Tool]
	switch len(tools) {
	case 0:
		return "", operationError(fmt.Sprintf("No tool is connected to %q", call.Node.Name), "Connect the tool that needs an approval, and enable it.")
	case 1:
		return tools[0].Node.Name, nil
	}
	nodes := map[string][]string{} // by the name that models know
	for _, tool := range tools {
		shown := shownName(ctx, tool)
		nodes[shown] = append(nodes[shown], tool.Node.Name)
	}
	if ctx.Err() != nil {
		return "", ctx.Err()
	}
	called := toolname.Legal(name)
	found := nodes[called]
	if len(found) == 0 {
		own := repeated.ReplaceAllString(called, "")
		for _, shown := range slices.Sorted(maps.Keys(nodes)) {
			if shown == own || len(called) == toolname.Max && strings.HasPrefix(shown, own) { // a long name makes room
				found = append(found, nodes[shown]...)
			}
		}
	}
	switch len(found) {
	case 0:
		return "", operationError(fmt.Sprintf("None of the tools behind %q is called %q", call.Node.Name, name), "")
	case 1:
		return found[0], nil
	}
	return "", operationError(fmt.Sprintf("The tools %s behind %q have the same name for a model, so it cannot be told which of them %q is",
		strings.Join(found, ", "), call.Node.Name, name), "Give the tools names that differ in letters or digits.")
}

// shownName is the name under which an Agent offers a tool to its model.
func shownName(ctx context.Context, tool *node.Call) string {
	if tool.Type != nil && tool.Type.Describe != nil {
		if face, err := tool.Type.Describe(ctx, tool); err == nil {
			return toolname.Legal(face.Name)
		}
	}
	return toolname.Legal(tool.Node.Name)
}
