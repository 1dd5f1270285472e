package bench

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/reprise-engine/reprise/internal/stack"
	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/queue"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// The agent scenario: a model calls two tools at the same time and answers with
// their results. It is what every agent does at least, so it is the unit here.
const (
	agentNode   = "AI Agent"
	agentPrompt = "What is 6 * 7?"
	agentAnswer = "42"
)

var agentTools = []string{"Calculator", "Second calculator"}

// agentWorkflow is the scenario's document.
func agentWorkflow() ([]byte, error) { return agentWith(agentKind{tools: agentTools, model: "bench"}) }

// agentKind is an Agent with tools.
type agentKind struct {
	tools []string
	model string
	pool  string // of its nodes, "" is the default one
	// patience is how long it waits for its model, 0 as long as the node does.
	patience time.Duration
}

// toolNames of an Agent with n tools, all of which its model calls at the same time.
func toolNames(n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("Tool %d", i+1)
	}
	return names
}

// toolScript has a model of a name call all tools in one turn, then answer.
func toolScript(model string, tools []string) map[string]any {
	var calls []map[string]any
	for _, name := range tools {
		calls = append(calls, map[string]any{"name": strings.ReplaceAll(name, " ", "_"), "args": map[string]any{"input": "6 * 7"}})
	}
	return map[string]any{model: map[string]any{"turns": []map[string]any{{"tool_calls": calls}, {"content": "It is 42."}}}}
}

// agentWith is the document of an Agent.
func agentWith(a agentKind) ([]byte, error) {
	type object = map[string]any
	link := func(to, kind string) object {
		return object{kind: [][]object{{{"node": to, "type": kind, "index": 0}}}}
	}
	options := object{}
	if a.patience > 0 {
		options["timeout"] = a.patience.Milliseconds()
	}
	nodes := []object{
		{"id": "start", "name": "Start", "type": "n8n-nodes-base.manualTrigger", "typeVersion": 1, "position": []int{0, 0}, "parameters": object{}},
		{
			"id": "agent", "name": agentNode, "type": "@n8n/n8n-nodes-langchain.agent", "typeVersion": 3.1, "position": []int{220, 0},
			"parameters": object{"promptType": "define", "text": agentPrompt, "options": object{}},
		},
		{
			"id": "model", "name": "Model", "type": "@n8n/n8n-nodes-langchain.lmChatOpenAi", "typeVersion": 1.3, "position": []int{120, 220},
			"parameters":  object{"model": object{"__rl": true, "mode": "id", "value": a.model}, "responsesApiEnabled": false, "options": options},
			"credentials": object{"openAiApi": object{"id": stack.MockCredentialID, "name": "Mock LLM"}},
		},
	}
	connections := object{"Start": link(agentNode, workflow.Main), "Model": link(agentNode, workflow.LanguageModel)}
	for i, tool := range a.tools {
		nodes = append(nodes, object{
			"id": fmt.Sprintf("tool%d", i), "name": tool, "type": "@n8n/n8n-nodes-langchain.toolCalculator", "typeVersion": 1,
			"position": []int{320 + 120*i, 220}, "parameters": object{},
		})
		connections[tool] = link(agentNode, workflow.Tool)
	}
	if a.pool != "" {
		for _, n := range nodes {
			n["pool"] = a.pool
		}
	}
	return json.Marshal(object{
		"name": fmt.Sprintf("bench: agent with %d tools", len(a.tools)), "nodes": nodes, "connections": connections,
		"settings": object{"executionOrder": "v1"},
	})
}

// checkAgent looks whether an execution did what the scenario is about, so that
// nothing else is measured.
func checkAgent(x *queue.Execution) error { return checkAgentWith(x, agentTools) }

func checkAgentWith(x *queue.Execution, tools []string) error {
	var data struct {
		ResultData struct {
			RunData map[string][]*engine.Record `json:"runData"`
		} `json:"resultData"`
	}
	if err := json.Unmarshal(x.Data, &data); err != nil {
		return fmt.Errorf("execution %s: unreadable run data: %w", x.ID, err)
	}
	runs := data.ResultData.RunData
	for _, name := range tools {
		if len(runs[name]) != 1 {
			return fmt.Errorf("execution %s: tool %q ran %d times instead of once", x.ID, name, len(runs[name]))
		}
	}
	if len(runs[agentNode]) != 1 || len(runs[agentNode][0].Data[workflow.Main]) == 0 {
		return fmt.Errorf("execution %s: %q gave no output", x.ID, agentNode)
	}
	for _, item := range runs[agentNode][0].Data[workflow.Main][0] {
		if strings.Contains(string(item.JSON), agentAnswer) {
			return nil
		}
	}
	return fmt.Errorf("execution %s: the answer of %q lacks %q", x.ID, agentNode, agentAnswer)
}
