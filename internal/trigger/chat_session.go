package trigger

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/tidwall/gjson"
	"go.uber.org/zap"

	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/expression"
	"github.com/reprise-engine/reprise/pkg/node"
	"github.com/reprise-engine/reprise/pkg/nodes/ai"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// previousSession answers with the earlier messages of a conversation: those in the memory that is
// attached to the trigger. message is what was sent, with the session's id.
func (c *call) previousSession(p *parameters, message json.RawMessage) {
	from := p.text("options.loadPreviousSession", "")
	switch {
	case p.err != nil:
		c.broken(p.err).write(c.w, "")
		return
	case from != "memory":
		c.writeJSON(`{"data":[]}`)
		return
	case gjson.GetBytes(message, "sessionId").String() == "":
		problem400.write(c.w, "")
		return
	}
	lines, err := c.transcript(message)
	switch failure := (*engine.NodeError)(nil); {
	case errors.As(err, &failure):
		c.broken(fmt.Errorf("%w: %s", err, failure.Description)).write(c.w, "")
	case err != nil:
		c.host.log.Warn("earlier messages of a chat cannot be read", zap.String("workflow_id", c.hook.id), zap.Error(err))
		c.w.Header().Set("Retry-After", "3")
		(&problem{status: http.StatusServiceUnavailable, message: "the messages cannot be read now: try again"}).write(c.w, "")
	default:
		c.writeJSON(string(toJSON(map[string]any{"data": messagesOf(lines)})))
	}
}

// transcript asks the memory as if the trigger had given out message.
func (c *call) transcript(message json.RawMessage) ([]ai.Line, error) {
	w, trigger := c.hook.workflow, c.hook.node
	memories := w.SubNodes(trigger.Name, workflow.Memory)
	if len(memories) == 0 {
		return nil, node.OperationError(-1, "No memory is connected to the chat trigger", "Connect the Agent's memory to it too, or turn “Load Previous Session” off.")
	}
	items := workflow.Items{{JSON: message, PairedItem: workflow.Paired(0)}}
	given := onlyRun{node: trigger.Name, items: items}
	scope := *parametersOf(c.r.Context(), c.host.Evaluator, w, trigger, items).scope
	scope.Sources, scope.RunData, scope.Nodes = []*workflow.Source{{PreviousNode: trigger.Name}}, given, map[string]*workflow.Node{}
	for _, n := range w.Nodes {
		scope.Nodes[n.Name] = n
	}
	user := &node.Call{
		Node: trigger, Workflow: node.WorkflowInfo{ID: w.ID, Name: w.Name, Active: true, Timezone: w.Settings.Timezone, Nodes: scope.Nodes},
		Inputs: scope.Inputs, Source: scope.Sources, RunData: given,
		Services: node.Services{
			Log: c.host.log, Now: c.host.Now, LoadMemory: c.host.Store.Memory, Parameters: &inScope{evaluator: c.host.Evaluator, scope: scope},
		},
	}
	return ai.Transcript(c.r.Context(), user, &node.Call{Node: memories[0]})
}

// messagesOf gives messages the form in which chat pages of n8n read them.
func messagesOf(lines []ai.Line) []any {
	messages := make([]any, len(lines))
	for i, line := range lines {
		kind := "AIMessage"
		if line.Person {
			kind = "HumanMessage"
		}
		messages[i] = map[string]any{
			"lc": 1, "type": "constructor", "id": []string{"langchain_core", "messages", kind},
			"kwargs": map[string]any{"content": line.Text, "additional_kwargs": struct{}{}, "response_metadata": struct{}{}},
		}
	}
	return messages
}

// onlyRun is the run data of an execution in which one node ran, once.
type onlyRun struct {
	node  string
	items workflow.Items
}

func (r onlyRun) Runs(name string) int {
	if name == r.node {
		return 1
	}
	return 0
}

func (r onlyRun) Items(name string, run, output int) (workflow.Items, bool) {
	if name != r.node || run != 0 || output != 0 {
		return nil, false
	}
	return r.items, true
}

func (r onlyRun) Sources(string, int) []*workflow.Source { return nil }

// inScope evaluates the parameters of nodes outside an execution.
type inScope struct {
	evaluator Evaluator
	scope     expression.Scope
}

// Resolve implements node.ParameterResolver.
func (r *inScope) Resolve(ctx context.Context, call *node.Call, item int, raw json.RawMessage) (json.RawMessage, error) {
	scope := r.scope
	scope.Node = call.Node
	value, err := r.evaluator.Resolve(ctx, &scope, item, raw)
	if failed := (*expression.Error)(nil); errors.As(err, &failed) {
		return nil, node.OperationError(item, failed.Message, failed.Description)
	}
	return value, err
}
