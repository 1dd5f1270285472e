package ai

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/node"
	"github.com/reprise-engine/reprise/pkg/nodes/toolname"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// tool is a tool as a model sees it. node is empty for what the Agent answers
// itself.
type tool struct {
	name, description, node string
	schema                  json.RawMessage
	gate                    *gate // nil: it is run without asking
}

// toolbox is what an Agent offers to its model.
type toolbox struct {
	tools  []*tool
	byName map[string]*tool
	// own are the names that tools have of themselves. None of them is given to
	// another tool, so that a gate can tell which tool a name means.
	own map[string]bool
}

// openToolbox describes the tools attached to a node, the last connected
// first, as n8n offers them.
func openToolbox(ctx context.Context, user *node.Call) (*toolbox, error) {
	subs := user.SubNodes[workflow.Tool]
	box := &toolbox{byName: make(map[string]*tool, len(subs)), own: make(map[string]bool, len(subs))}
	var found []*tool
	for i := len(subs) - 1; i >= 0; i-- {
		if isGate(subs[i]) {
			gated, err := describeGated(ctx, user, subs[i])
			if err != nil {
				return nil, err
			}
			found = append(found, gated...)
			continue
		}
		t, err := describe(ctx, user, subs[i])
		if err != nil {
			return nil, err
		}
		found = append(found, t)
	}
	for _, t := range found {
		box.own[toolname.Legal(t.name)] = true
	}
	for _, t := range found {
		box.add(t)
	}
	return box, box.undecided()
}

// describe is a node as a tool.
func describe(ctx context.Context, user, sub *node.Call) (*tool, error) {
	if sub.Type == nil || sub.Type.Describe == nil {
		return nil, operationError(fmt.Sprintf("%q cannot be used as a tool", sub.Node.Name), "Its type "+sub.Node.Type+" has no face for a model.")
	}
	face, err := sub.Type.Describe(ctx, attached(user, sub))
	var failure *engine.NodeError
	if errors.As(err, &failure) {
		return nil, failure
	}
	if err != nil {
		return nil, fmt.Errorf("describe tool %q: %w", sub.Node.Name, err)
	}
	t := &tool{name: face.Name, description: face.Description, schema: face.Schema, node: sub.Node.Name}
	if len(t.schema) == 0 {
		t.schema = json.RawMessage(`{"type":"object","properties":{}}`)
	}
	return t, nil
}

// add makes the tool's name legal and distinct and takes it in.
func (b *toolbox) add(t *tool) {
	name := toolname.Legal(t.name)
	t.name = name
	for n := 2; b.byName[t.name] != nil || n > 2 && b.own[t.name]; n++ {
		suffix := "_" + strconv.Itoa(n)
		t.name = name[:min(len(name), toolname.Max-len(suffix))] + suffix
	}
	b.byName[t.name] = t
	b.tools = append(b.tools, t)
}

// find returns the tool that a model means by name. Models that write a node's
// name in place of the tool's are understood.
func (b *toolbox) find(name string) *tool {
	if t := b.byName[name]; t != nil {
		return t
	}
	return b.byName[toolname.Legal(name)]
}
