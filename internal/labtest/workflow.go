package labtest

import (
	"encoding/json"
	"maps"
)

// Node is a node of a document, in n8n's form. Tests change it as they need.
type Node map[string]any

// With returns the node with more fields: With("retryOnFail", true).
func (n Node) With(field string, value any) Node {
	out := maps.Clone(n)
	out[field] = value
	return out
}

func newNode(name, typ string, version float64, parameters map[string]any) Node {
	return Node{
		"id": "id-" + name, "name": name, "type": typ, "typeVersion": version,
		"position": []int{0, 0}, "parameters": parameters,
	}
}

// Calculator is n8n's tool of that name.
func Calculator() Node {
	return newNode("Calculator", "@n8n/n8n-nodes-langchain.toolCalculator", 1, map[string]any{})
}

// CodeTool is a tool that runs JavaScript on its argument "query".
func CodeTool(name, code string) Node {
	return newNode(name, "@n8n/n8n-nodes-langchain.toolCode", 1.3, map[string]any{"description": name + " a text", "jsCode": code})
}

// HTTPTool is a tool that posts its argument "text" to a URL.
func HTTPTool(name, url string) Node {
	return newNode(name, "n8n-nodes-base.httpRequestTool", 4.2, map[string]any{
		"toolDescription": "Sends a text", "method": "POST", "url": url, "sendBody": true,
		"bodyParameters": map[string]any{"parameters": []any{
			map[string]any{"name": "text", "value": "={{ $fromAI('text', 'the text to send', 'string') }}"},
		}},
		"options": map[string]any{},
	})
}

// Agent is the document of a workflow Start -> AI Agent, whose model is the
// site's; the prompt is "go", or the input's chatInput.
func (s *Site) Agent(model string, tools ...Node) []byte {
	return Document(s.AgentNodes(model, tools...), nil)
}

// AgentNodes are the nodes of Agent: Start, AI Agent, Model, then the tools.
func (s *Site) AgentNodes(model string, tools ...Node) []Node {
	nodes := []Node{
		newNode("Start", "n8n-nodes-base.manualTrigger", 1, map[string]any{}),
		newNode("AI Agent", "@n8n/n8n-nodes-langchain.agent", 3.1, map[string]any{
			"promptType": "define", "text": `={{ $json.chatInput || "go" }}`, "options": map[string]any{"maxIterations": 200},
		}),
		s.ModelNode("Model", model),
	}
	return append(nodes, tools...)
}

// Memory keeps the conversation of a session, which is an expression or a text.
func Memory(session string) Node {
	return newNode("Memory", "@n8n/n8n-nodes-langchain.memoryBufferWindow", 1.3, map[string]any{
		"sessionIdType": "customKey", "sessionKey": session, "contextWindowLength": 10,
	})
}

// Document joins the nodes of AgentNodes: the model, the memory and the tools are
// attached to the Agent.
func Document(nodes []Node, settings map[string]any) []byte {
	connections := map[string]any{}
	for _, n := range nodes {
		name := n["name"].(string)
		kind := "ai_tool"
		switch name {
		case "Start":
			kind = "main"
		case "AI Agent":
			continue
		case "Model":
			kind = "ai_languageModel"
		case "Memory":
			kind = "ai_memory"
		}
		connections[name] = map[string]any{kind: []any{[]any{map[string]any{"node": "AI Agent", "type": kind, "index": 0}}}}
	}
	if settings == nil {
		settings = map[string]any{"executionOrder": "v1"}
	}
	data, err := json.Marshal(map[string]any{
		"id": "lab", "name": "Lab", "nodes": nodes, "connections": connections, "settings": settings,
	})
	if err != nil {
		panic(err) // only values that JSON knows
	}
	return data
}
